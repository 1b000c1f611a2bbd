// Reads ranges into files: large ones each by a request of its own, small ones many to a request,
// several requests at a time, a bounded number of open files. One thread.
#pragma once

#include "console.h"
#include "descriptors.h"
#include "destination.h"
#include "interrupt.h"
#include "options.h"
#include "pull_plan.h"
#include "session.h"
#include "transfer_end.h"
#include "transfer_window.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace wherry::cli {

class FilePull {
public:
  FilePull(Session& session, const PullOptions& options, Destination& destination,
           TransferWindow& window)
      : session_(session), options_(options), destination_(destination), window_(window),
        open_files_max_(raise_descriptor_limit().part_files) {}

  /// All of them, or until something stops it.
  TransferEnd run(std::span<const PullItem> items);

private:
  // A file on its way.
  struct Member {
    const PullItem* item;
    PartFile part;
    std::optional<Registration> registration{}; // none for an empty file
  };
  using Group = std::vector<Member>;

  bool can_start() const;
  void start_group();
  bool may_join(const Group& group, std::uint64_t group_bytes, const PullItem& item) const;
  Result<Member> prepare(const PullItem& item);
  void submit(Group group);
  void finish_group();
  void divide(Group group, const Report& report);
  void finish(Member& member);
  Result<void> complete(Member& member);
  void fail_member(const Member& member, const Error& error, LocalDrain drain);
  void fail_item(const PullItem& item, const Error& error, LocalDrain drain);
  bool stopped() const { return window_.stopped().has_value() || failed_fast_; }

  Session& session_;
  const PullOptions& options_;
  Destination& destination_;
  TransferWindow& window_;
  std::span<const PullItem> waiting_;
  std::deque<Member> alone_; // shared a request with a file that failed: once more, each by itself
  std::unordered_map<std::uint64_t, Group> groups_; // in flight, by tag
  std::uint64_t next_tag_ = 0;
  const std::size_t open_files_max_; // part files; the library bounds its own
  std::size_t open_files_ = 0;
  bool failed_fast_ = false;
  TransferEnd end_;
};

} // namespace wherry::cli

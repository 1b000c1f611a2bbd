// Writes files into ranges, several at a time. A WRITE is never tried twice: what it did is in its
// report, and goes to the user with it (R29). One thread.
#pragma once

#include "options.h"
#include "session.h"
#include "transfer_end.h"
#include "transfer_window.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace wherry::cli {

struct PushItem {
  std::string source; ///< A path here.
  NamedRemoteRange target;
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;
};

/// What is known of one file at the end.
struct PushedFile {
  RemoteEffect effect = RemoteEffect::none;
  std::uint64_t confirmed_bytes = 0;
  bool completed = false;
};

class FilePush {
public:
  FilePush(Session& session, const PushOptions& options, TransferWindow& window)
      : session_(session), options_(options), window_(window) {}

  /// All of them, or until something stops it. `pushed` gets one entry a file.
  TransferEnd run(std::span<const PushItem> items, std::vector<PushedFile>& pushed);

private:
  void start(std::size_t index);
  void finish(std::size_t index, const Report& report);
  Result<void> verify(const PushItem& item);
  void fail_item(std::size_t index, Error error, LocalDrain drain);

  Session& session_;
  const PushOptions& options_;
  TransferWindow& window_;
  std::span<const PushItem> items_;
  std::vector<PushedFile>* pushed_ = nullptr;
  std::vector<std::optional<Registration>> registrations_;
  TransferEnd end_;
};

/// What an unfinished push did to the owner's bytes, as the end of a sentence; empty where nothing.
std::string effect_text(RemoteEffect effect, std::uint64_t confirmed_bytes);

} // namespace wherry::cli

// A link that does what its script says. It moves bytes itself, under the owner's access check, in
// one process and on one thread.
#pragma once

#include "path/path.h"
#include "path/scripted/script.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace wherry {

class ScriptedLink final : public Link {
public:
  ScriptedLink(Script& script, const ScriptedLane& lane) : script_(script), lane_(lane) {}
  ScriptedLink(const ScriptedLink&) = delete;
  ScriptedLink& operator=(const ScriptedLink&) = delete;
  /// As the owner's end of a lane: what has not arrived never will.
  ~ScriptedLink() override;

  bool has_room() const override;
  void submit(const Slice& slice) override;
  bool progress(std::uint64_t now_ns) override;
  std::size_t poll(std::span<Completion> out) override;
  void request_cancel(std::uint64_t request, std::uint64_t now_ns) override;
  std::size_t using_range(std::uint64_t remote_range) const override;
  void begin_close(Error why) override;
  LinkState state() const override { return state_; }
  const Error& why() const override { return why_; }
  /// At once while there is anything to do: the script may have changed since the last turn.
  std::uint64_t next_deadline_ns() const override;

  void release_all();
  void release(std::size_t index);
  std::size_t held() const;

private:
  struct Pending {
    Slice slice;
    Fate fate;
  };

  bool has_work() const;
  void run(const Pending& pending);
  void complete(const Slice& slice, const Completion& end);
  void cut(const Pending& pending);

  Script& script_;
  const ScriptedLane lane_;
  std::vector<Pending> pending_; // In the order of submission.
  std::deque<Completion> completions_;
  LinkState state_ = LinkState::ready;
  Error why_;
};

} // namespace wherry

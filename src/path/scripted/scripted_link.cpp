#include "path/scripted/scripted_link.h"

#include "base/assert.h"
#include "base/clock.h"

#include <algorithm>
#include <utility>

namespace wherry {

ScriptedLink::~ScriptedLink() {
  WHERRY_ASSERT(pending_.empty());
  script_.drop_late(lane_);
  script_.forget(this);
}

bool ScriptedLink::has_room() const {
  return state_ == LinkState::ready && pending_.size() + completions_.size() < script_.room;
}

void ScriptedLink::submit(const Slice& slice) {
  WHERRY_ASSERT(has_room() && slice.length_bytes > 0);
  pending_.push_back({slice, script_.fate_of(slice)});
}

// --- Turns ------------------------------------------------------------------------------------

bool ScriptedLink::has_work() const {
  if (state_ == LinkState::drained) {
    return false;
  }
  const bool runnable = std::any_of(pending_.begin(), pending_.end(), [](const Pending& pending) {
    return pending.fate.hold == Hold::no;
  });
  return runnable || !completions_.empty() || (state_ == LinkState::closing && !script_.linger);
}

std::uint64_t ScriptedLink::next_deadline_ns() const {
  return has_work() ? 0 : never_ns;
}

bool ScriptedLink::progress(std::uint64_t) {
  bool moved = false;
  for (std::size_t i = 0; i < pending_.size();) {
    if (pending_[i].fate.hold != Hold::no) {
      ++i;
      continue;
    }
    const Pending pending = pending_[i];
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    run(pending);
    moved = true;
  }
  if (state_ == LinkState::closing && pending_.empty() && !script_.linger) {
    state_ = LinkState::drained;
    moved = true;
  }
  return moved;
}

void ScriptedLink::run(const Pending& pending) {
  const Slice& slice = pending.slice;
  const Fate& fate = pending.fate;
  const std::uint32_t moved = std::min(fate.moved_bytes, slice.length_bytes);
  const std::uint32_t confirmed = std::min(fate.confirmed_bytes, moved);
  Slice asked = slice;
  if (script_.forge) {
    script_.forge(asked);
  }
  Completion end;
  end.confirmed_bytes = confirmed;
  if (auto refused = script_.move(lane_, asked, moved)) {
    end.confirmed_bytes = 0;
    end.error = std::move(refused);
  } else if (confirmed < slice.length_bytes) {
    WHERRY_ASSERT(fate.error.has_value()); // The test's to say.
    end.error = std::make_shared<const Error>(*fate.error);
    end.uncertain = fate.uncertain;
  }
  complete(slice, end);
}

void ScriptedLink::complete(const Slice& slice, const Completion& end) {
  Completion& completion = completions_.emplace_back(end);
  completion.request = slice.request;
  completion.index = slice.index;
  ++script_.counters_.completions;
}

std::size_t ScriptedLink::poll(std::span<Completion> out) {
  const std::size_t count = std::min(out.size(), completions_.size());
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = std::move(completions_.front());
    completions_.pop_front();
  }
  return count;
}

// --- Ends -------------------------------------------------------------------------------------

void ScriptedLink::request_cancel(std::uint64_t request, std::uint64_t) {
  ++script_.counters_.cancels;
  if (script_.ignore_cancel) {
    return;
  }
  std::erase_if(pending_, [&](const Pending& pending) {
    const bool answer_due =
        pending.slice.kind == OperationKind::write && pending.fate.hold == Hold::unanswered;
    if (pending.slice.request != request || pending.fate.hold == Hold::no || answer_due) {
      return false;
    }
    Completion end;
    end.cancelled = true;
    complete(pending.slice, end);
    return true;
  });
}

void ScriptedLink::begin_close(Error why) {
  if (state_ != LinkState::ready) {
    return;
  }
  state_ = LinkState::closing;
  why_ = std::move(why);
  why_.path = "scripted lane";
  const std::vector<Pending> pending = std::exchange(pending_, {});
  for (const Pending& one : pending) {
    // With ignore_cancel a READ that is under way goes on into local memory, as a device's would.
    if (script_.ignore_cancel && one.slice.kind == OperationKind::read &&
        one.fate.hold == Hold::unanswered) {
      pending_.push_back(one);
    } else {
      cut(one);
    }
  }
}

void ScriptedLink::cut(const Pending& pending) {
  Completion end;
  end.error = std::make_shared<const Error>(why_);
  if (pending.slice.kind == OperationKind::write && pending.fate.hold == Hold::unanswered) {
    end.uncertain = end.unsettled = true;
    script_.keep_late(lane_, pending.slice, 0);
  }
  complete(pending.slice, end);
}

std::size_t ScriptedLink::using_range(std::uint64_t remote_range) const {
  return static_cast<std::size_t>(
      std::count_if(pending_.begin(), pending_.end(), [&](const Pending& pending) {
        return pending.slice.remote_range == remote_range;
      }));
}

// --- What is held -----------------------------------------------------------------------------

void ScriptedLink::release_all() {
  for (Pending& pending : pending_) {
    pending.fate.hold = Hold::no;
  }
}

void ScriptedLink::release(std::size_t index) {
  for (Pending& pending : pending_) {
    if (pending.fate.hold != Hold::no && index-- == 0) {
      pending.fate.hold = Hold::no;
      return;
    }
  }
  WHERRY_ASSERT(false);
}

std::size_t ScriptedLink::held() const {
  return static_cast<std::size_t>(
      std::count_if(pending_.begin(), pending_.end(),
                    [](const Pending& pending) { return pending.fate.hold != Hold::no; }));
}

} // namespace wherry

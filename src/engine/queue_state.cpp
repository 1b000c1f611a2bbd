#include "engine/queue_state.h"

#include "base/assert.h"

#include <fmt/format.h>

#include <algorithm>

namespace wherry {

Result<void> QueueState::reserve() {
  const std::lock_guard lock(mutex_);
  if (count_ + reserved_ + 2 > ring_.size()) {
    return fail(ErrorCode::resource_exhausted,
                fmt::format("the completion queue has {} entries: {} are there, {} are reserved, "
                            "and a request takes 2",
                            ring_.size(), count_, reserved_));
  }
  reserved_ += 2;
  return {};
}

void QueueState::unreserve() {
  const std::lock_guard lock(mutex_);
  WHERRY_ASSERT(reserved_ >= 2);
  reserved_ -= 2;
}

void QueueState::push(const CompletionEntry& entry) {
  const std::lock_guard lock(mutex_);
  WHERRY_ASSERT(reserved_ > 0);
  --reserved_;
  ring_[(first_ + count_) % ring_.size()] = entry;
  if (++count_ == 1 && watched_) {
    event_.set();
  }
}

std::size_t QueueState::poll(std::span<CompletionEntry> out) {
  const std::lock_guard lock(mutex_);
  const std::size_t taken = std::min(out.size(), count_);
  for (std::size_t i = 0; i < taken; ++i) {
    out[i] = ring_[(first_ + i) % ring_.size()];
  }
  first_ = (first_ + taken) % ring_.size();
  count_ -= taken;
  if (taken > 0 && count_ == 0 && watched_) {
    event_.clear();
  }
  return taken;
}

bool QueueState::empty() const {
  const std::lock_guard lock(mutex_);
  return count_ == 0;
}

int QueueState::fd() {
  const std::lock_guard lock(mutex_);
  if (!watched_ && count_ > 0) {
    event_.set();
  }
  watched_ = true;
  return event_.fd();
}

bool QueueState::watched() const {
  const std::lock_guard lock(mutex_);
  return watched_;
}

} // namespace wherry

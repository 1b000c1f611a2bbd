#include "path/staging_pool.h"

#include <new>

namespace wherry {

std::byte* StagingPool::take(Staging use) {
  const std::size_t kept_for_storing = (buffers_max_ + 3) / 4;
  const bool loading = use == Staging::loading;
  if (in_use() == buffers_max_ || (loading && loading_ == buffers_max_ - kept_for_storing)) {
    ++waits_;
    wanted_ = true;
    return nullptr;
  }
  if (loading) {
    ++loading_;
  }
  if (free_.empty()) {
    auto* memory = static_cast<std::byte*>(::operator new[](buffer_bytes_, std::align_val_t{4096}));
    all_.emplace_back(memory);
    free_.reserve(all_.size());
    return memory;
  }
  std::byte* buffer = free_.back();
  free_.pop_back();
  return buffer;
}

void StagingPool::give(std::byte* buffer, Staging use) {
  WHERRY_ASSERT(free_.size() < all_.size());
  if (use == Staging::loading) {
    --loading_;
  }
  free_.push_back(buffer);
  if (wanted_) {
    ++reliefs_;
  }
  wanted_ = false;
}

} // namespace wherry

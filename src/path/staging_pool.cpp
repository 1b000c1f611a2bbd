#include "path/staging_pool.h"

#include <new>

namespace wherry {

std::byte* StagingPool::take() {
  if (free_.empty()) {
    if (all_.size() == buffers_max_) {
      ++waits_;
      wanted_ = true;
      return nullptr;
    }
    auto* memory = static_cast<std::byte*>(::operator new[](buffer_bytes_, std::align_val_t{4096}));
    all_.emplace_back(memory);
    free_.reserve(all_.size());
    return memory;
  }
  std::byte* buffer = free_.back();
  free_.pop_back();
  return buffer;
}

void StagingPool::give(std::byte* buffer) {
  WHERRY_ASSERT(free_.size() < all_.size());
  free_.push_back(buffer);
  if (wanted_) ++reliefs_;
  wanted_ = false;
}

}  // namespace wherry

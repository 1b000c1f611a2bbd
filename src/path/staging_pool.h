// The shard's host buffers between sockets and files: one segment each, bounded (R43).
//
// Loading from files may not take the last of them: what is loaded waits for a peer to take it, and
// a peer may itself be waiting for a buffer to store into. What is stored waits for a file only, so
// that buffers for storing always come back, and with them the other side.
#pragma once

#include "base/assert.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace wherry {

enum class Staging : std::uint8_t { loading, storing };

class StagingPool {
public:
  /// `buffers_max` is at least 2.
  StagingPool(std::size_t buffer_bytes, std::size_t buffers_max)
      : buffer_bytes_(buffer_bytes), buffers_max_(buffers_max) {
    WHERRY_ASSERT(buffers_max >= 2);
  }

  /// Null when none may be had for this: try again later. Page-aligned.
  std::byte* take(Staging use);
  void give(std::byte* buffer, Staging use);

  std::size_t in_use() const { return all_.size() - free_.size(); }
  std::size_t buffer_bytes() const { return buffer_bytes_; }
  std::uint64_t waits() const { return waits_; }     ///< How often there was none,
  std::uint64_t reliefs() const { return reliefs_; } ///< and how often one came back after that.

private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{4096}); }
  };
  std::size_t buffer_bytes_;
  std::size_t buffers_max_;
  std::size_t loading_ = 0; // In use for it.
  std::uint64_t waits_ = 0;
  std::uint64_t reliefs_ = 0;
  bool wanted_ = false;
  std::vector<std::unique_ptr<std::byte, Free>> all_;
  std::vector<std::byte*> free_;
};

} // namespace wherry

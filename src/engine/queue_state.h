// A completion queue: bounded, both entries of a request reserved at admission. Thread-safe.
#pragma once

#include "os/event_fd.h"

#include <wherry/request.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace wherry {

class QueueState {
public:
  QueueState(std::uint32_t capacity, EventFd event) : event_(std::move(event)), ring_(capacity) {}

  /// Room for both entries of one more request. Error: resource_exhausted.
  Result<void> reserve();
  /// Gives a reservation back that was not used.
  void unreserve();
  void push(const CompletionEntry& entry);
  std::size_t poll(std::span<CompletionEntry> out);
  bool empty() const;
  /// From now on the descriptor says whether entries are there.
  int fd();
  bool watched() const;

private:
  EventFd event_;
  mutable std::mutex mutex_;
  std::vector<CompletionEntry> ring_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::size_t reserved_ = 0; // Entries that will still be pushed.
  bool watched_ = false;
};

} // namespace wherry

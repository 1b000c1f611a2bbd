// The world's time: it stands still until the world moves it. One thread.
#pragma once

#include "base/assert.h"
#include "base/clock.h"

#include <cstdint>

namespace wherry {

class SimClock final : public Clock {
public:
  explicit SimClock(std::uint64_t start_ns = 1'000'000'000) : now_ns_(start_ns) {}

  std::uint64_t now_ns() override { return now_ns_; }
  /// Never backwards. What is due by then is made to happen by its owner: see
  /// SimSwitch::advance_to.
  void advance_to(std::uint64_t ns) {
    WHERRY_ASSERT(ns >= now_ns_);
    now_ns_ = ns;
  }

private:
  std::uint64_t now_ns_;
};

} // namespace wherry

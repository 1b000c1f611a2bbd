// The clock seam. Owns nothing; any thread may ask.
#pragma once

#include <cstdint>

namespace wherry {

/// Nanoseconds of a monotonic clock with an arbitrary origin. The real one counts as
/// std::chrono::steady_clock does, so that a Deadline says the same moment to every clock.
class Clock {
public:
  virtual ~Clock() = default;
  virtual std::uint64_t now_ns() = 0;
};

inline constexpr std::uint64_t never_ns = UINT64_MAX;

/// `now + after`, saturating at never_ns.
constexpr std::uint64_t add_ns(std::uint64_t now_ns, std::uint64_t after_ns) {
  return after_ns > never_ns - now_ns ? never_ns : now_ns + after_ns;
}

} // namespace wherry

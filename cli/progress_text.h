// What a progress line says, and how rate and time left are estimated. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace wherry::cli {

/// The rate over the last seconds: a long stall shows, a short one does not make it jump.
class RateMeter {
public:
  using Time = std::chrono::steady_clock::time_point;

  explicit RateMeter(Time start) { samples_.push_back({start, 0}); }

  /// `bytes` moved since the start. May come at any interval.
  void update(Time now, std::uint64_t bytes);
  double bytes_per_second() const;
  /// At this rate; nothing while there is none.
  std::optional<std::chrono::seconds> time_left(std::uint64_t bytes_left) const;

private:
  struct Sample {
    Time when;
    std::uint64_t bytes;
  };
  std::deque<Sample> samples_; // bounded: one each tenth of a second over the window
};

struct ProgressFacts {
  std::uint64_t bytes = 0;
  std::uint64_t total_bytes = 0;
  double bytes_per_second = 0;
  std::optional<std::chrono::seconds> left{};
};

/// At most `columns` - 1 characters (a full last column would wrap): per cent, amount, rate, time
/// left; where there is room also the total and a bar. What does not fit is left out, from the
/// right.
std::string progress_line(const ProgressFacts& facts, std::size_t columns);

} // namespace wherry::cli

// Sizes, durations and rates as users write and read them. Pure.
#pragma once

#include <wherry/error.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace wherry::cli {

/// `4096`, `64KiB`, `10GiB` (powers of 1024), `5k`, `2M`, `1G` (powers of 1000).
/// Error: invalid_argument, which names the text.
Result<std::uint64_t> parse_size(std::string_view text);

/// `5`, `0.5` (seconds), `200ms`, `30s`, `2m`, `1h`; at most ten years.
/// Error: invalid_argument, which names the text.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

/// `512 B`, `1.5 KiB`, `64 MiB`: three digits at most.
std::string format_size(std::uint64_t bytes);

/// `1.2 GiB/s`.
std::string format_rate(double bytes_per_second);

/// `0:07`, `12:03`, `1:00:00`. More than 99 hours are `>99 h`.
std::string format_clock(std::chrono::seconds duration);

/// `30 s`, `0.2 s`: a duration in a sentence.
std::string format_seconds(std::chrono::nanoseconds duration);

/// Rounded down, so that 100 means all; all of nothing is 100.
unsigned percent(std::uint64_t done, std::uint64_t total);

} // namespace wherry::cli

#include "units.h"

#include "errors.h"
#include "text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>

namespace wherry::cli {
namespace {

struct Unit {
  std::string_view suffix;
  std::uint64_t factor;
};

constexpr std::uint64_t kib = 1024;
constexpr std::array size_units{
    Unit{"", 1},
    Unit{"KiB", kib},
    Unit{"MiB", kib* kib},
    Unit{"GiB", kib* kib* kib},
    Unit{"TiB", kib* kib* kib* kib},
    Unit{"k", 1'000},
    Unit{"M", 1'000'000},
    Unit{"G", 1'000'000'000},
    Unit{"T", 1'000'000'000'000},
};
constexpr std::array duration_units{
    Unit{"", 1'000'000'000},   Unit{"ms", 1'000'000},        Unit{"s", 1'000'000'000},
    Unit{"m", 60'000'000'000}, Unit{"h", 3'600'000'000'000},
};
constexpr double longest_duration_ns = 10.0 * 365 * 86'400 * 1e9;

template <std::size_t N>
const Unit* find_unit(const std::array<Unit, N>& units, std::string_view suffix) {
  for (const Unit& unit : units) {
    if (unit.suffix == suffix) {
      return &unit;
    }
  }
  return nullptr;
}

// Three digits, with a fraction only below 10: "9.9", "10", "999".
std::string three_digits(double value) {
  return value < 9.95 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

std::string scaled(double value) {
  static constexpr std::array<std::string_view, 7> suffixes{"B",   "KiB", "MiB", "GiB",
                                                            "TiB", "PiB", "EiB"};
  std::size_t step = 0;
  while (value >= 999.5 && step + 1 < suffixes.size()) {
    value /= 1024;
    ++step;
  }
  return step == 0 ? fmt::format("{:.0f} B", value)
                   : fmt::format("{} {}", three_digits(value), suffixes[step]);
}

} // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const Unit* unit = nullptr;
  if (parsed.ec == std::errc()) {
    unit = find_unit(size_units, text.substr(static_cast<std::size_t>(parsed.ptr - text.data())));
  }
  if (unit == nullptr && parsed.ec != std::errc::result_out_of_range) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("'{}' is no size; sizes are written like 4096, 64KiB, 10GiB or 5M",
                            printable(text)));
  }
  std::uint64_t bytes = 0;
  if (unit == nullptr || __builtin_mul_overflow(number, unit->factor, &bytes)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("the size '{}' is too large", printable(text)));
  }
  return bytes;
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  double number = 0;
  const auto parsed =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const Unit* unit = nullptr;
  if (parsed.ec == std::errc()) {
    unit =
        find_unit(duration_units, text.substr(static_cast<std::size_t>(parsed.ptr - text.data())));
  }
  const double duration_ns = unit == nullptr ? -1 : number * static_cast<double>(unit->factor);
  if (!std::isfinite(duration_ns) || duration_ns < 0) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("'{}' is no duration; durations are written like 5, 0.5, 200ms, 30s or 2m",
                    printable(text)));
  }
  if (duration_ns > longest_duration_ns) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("the duration '{}' is too long", printable(text)));
  }
  return std::chrono::nanoseconds(static_cast<std::int64_t>(duration_ns));
}

std::string format_size(std::uint64_t bytes) {
  return scaled(static_cast<double>(bytes));
}

std::string format_rate(double bytes_per_second) {
  return scaled(bytes_per_second) + "/s";
}

std::string format_clock(std::chrono::seconds duration) {
  const auto seconds = duration.count();
  if (seconds >= 100 * 3600) {
    return ">99 h";
  }
  if (seconds >= 3600) {
    return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  }
  return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
}

std::string format_seconds(std::chrono::nanoseconds duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  return fmt::format("{:.3g} s", seconds);
}

unsigned percent(std::uint64_t done, std::uint64_t total) {
  if (done >= total) {
    return 100;
  }
  // 128 bits: 100 times a large file does not fit into 64.
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned>(Wide{done} * 100 / total);
}

} // namespace wherry::cli

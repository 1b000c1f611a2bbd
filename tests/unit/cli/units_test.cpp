#include "units.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace wherry::cli {
namespace {

using namespace std::chrono_literals;

TEST(ParseSize, takes_binary_and_decimal_units) {
  struct Row {
    const char* text;
    std::optional<std::uint64_t> bytes; // none: refused
  };
  const Row rows[] = {
      {"0", 0},
      {"4096", 4096},
      {"64KiB", 65536},
      {"3MiB", 3145728},
      {"10GiB", 10737418240},
      {"1TiB", 1099511627776},
      {"5k", 5000},
      {"5M", 5000000},
      {"5G", 5000000000},
      {"2T", 2000000000000},
      {"18446744073709551615", UINT64_MAX},
      {"18446744073709551616", {}},
      {"16777216TiB", {}},
      {"", {}},
      {"-1", {}},
      {"+1", {}},
      {" 1", {}},
      {"1 ", {}},
      {"1.5GiB", {}},
      {"KiB", {}},
      {"1kib", {}},
      {"1K", {}},
      {"0x10", {}},
  };
  for (const Row& row : rows) {
    const auto bytes = parse_size(row.text);
    EXPECT_EQ(bytes.has_value(), row.bytes.has_value()) << row.text;
    if (bytes && row.bytes) {
      EXPECT_EQ(*bytes, *row.bytes) << row.text;
    } else if (!bytes) {
      EXPECT_EQ(bytes.error().code, ErrorCode::invalid_argument) << row.text;
      EXPECT_NE(bytes.error().message.find(row.text), std::string::npos) << row.text;
    }
  }
}

TEST(ParseDuration, takes_seconds_where_no_unit_is_given) {
  struct Row {
    const char* text;
    std::optional<std::chrono::nanoseconds> duration;
  };
  const Row rows[] = {
      {"5", 5s},    {"0", 0s},        {"0.5", 500ms}, {"200ms", 200ms},
      {"30s", 30s}, {"1.5s", 1500ms}, {"2m", 2min},   {"1h", 1h},
      {"", {}},     {"-1", {}},       {"5x", {}},     {"s", {}},
      {"nan", {}},  {"inf", {}},      {"1e300", {}},  {"99999999999h", {}},
  };
  for (const Row& row : rows) {
    const auto duration = parse_duration(row.text);
    EXPECT_EQ(duration.has_value(), row.duration.has_value()) << row.text;
    if (duration && row.duration) {
      EXPECT_EQ(*duration, *row.duration) << row.text;
    }
  }
}

TEST(FormatSize, has_three_digits_at_most) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(999), "999 B");
  EXPECT_EQ(format_size(1000), "1.0 KiB");
  EXPECT_EQ(format_size(1536), "1.5 KiB");
  EXPECT_EQ(format_size(10 * 1024), "10 KiB");
  EXPECT_EQ(format_size(1ULL << 30), "1.0 GiB");
  EXPECT_EQ(format_size(UINT64_MAX), "16 EiB");
}

TEST(FormatClock, grows_from_seconds_to_hours) {
  EXPECT_EQ(format_clock(7s), "0:07");
  EXPECT_EQ(format_clock(723s), "12:03");
  EXPECT_EQ(format_clock(3600s), "1:00:00");
  EXPECT_EQ(format_clock(400h), ">99 h");
}

TEST(Percent, is_100_only_when_all_is_done) {
  EXPECT_EQ(percent(0, 0), 100U);
  EXPECT_EQ(percent(0, 1), 0U);
  EXPECT_EQ(percent(999, 1000), 99U);
  EXPECT_EQ(percent(1000, 1000), 100U);
  EXPECT_EQ(percent(UINT64_MAX - 1, UINT64_MAX), 99U);
  EXPECT_EQ(percent(2, 1), 100U);
}

} // namespace
} // namespace wherry::cli

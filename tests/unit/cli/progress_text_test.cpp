#include "progress_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace wherry::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t mib = 1 << 20;

TEST(ProgressLine, shows_what_there_is_room_for) {
  const ProgressFacts facts{460 * mib, 1024 * mib, 512.0 * mib, 2s};
  EXPECT_EQ(progress_line(facts, 80),
            " 44%  [########............]   460 MiB of 1.0 GiB  512 MiB/s  0:02 left");
  EXPECT_EQ(progress_line(facts, 60), " 44%  460 MiB of 1.0 GiB  512 MiB/s  0:02 left");
  EXPECT_EQ(progress_line(facts, 40), " 44%  460 MiB  512 MiB/s  0:02 left");
  EXPECT_EQ(progress_line(facts, 30), " 44%  460 MiB  512 MiB/s");
  EXPECT_EQ(progress_line(facts, 10), " 44%");
  EXPECT_EQ(progress_line(facts, 3), " 4");
  EXPECT_EQ(progress_line(facts, 0), "");
}

TEST(ProgressLine, never_fills_the_last_column) {
  const std::uint64_t sizes[] = {
      0, 1, 999, 1000, 1023 * mib, 1024 * mib, std::numeric_limits<std::uint64_t>::max()};
  for (std::size_t columns = 1; columns <= 200; ++columns) {
    for (const std::uint64_t bytes : sizes) {
      const ProgressFacts facts{bytes, std::numeric_limits<std::uint64_t>::max(),
                                static_cast<double>(bytes), 359999s};
      EXPECT_LT(progress_line(facts, columns).size(), columns);
    }
  }
}

TEST(ProgressLine, at_40_columns_everything_is_there) {
  const ProgressFacts facts{999 * mib, 999 * mib * 1024, 999.0 * mib, 99h};
  EXPECT_EQ(progress_line(facts, 40), "  0%  999 MiB  999 MiB/s  99:00:00 left");
}

TEST(RateMeter, is_the_rate_of_the_last_seconds) {
  RateMeter::Time now{};
  RateMeter meter(now);
  EXPECT_EQ(meter.bytes_per_second(), 0);
  EXPECT_FALSE(meter.time_left(1).has_value());
  std::uint64_t bytes = 0;
  for (int i = 0; i < 100; ++i) { // ten seconds of 10 MB/s
    now += 100ms;
    bytes += 1'000'000;
    meter.update(now, bytes);
  }
  EXPECT_NEAR(meter.bytes_per_second(), 1e7, 1e5);
  EXPECT_EQ(meter.time_left(100'000'000), 10s);
  for (int i = 0; i < 100; ++i) { // ten of none: the past is forgotten
    now += 100ms;
    meter.update(now, bytes);
  }
  EXPECT_NEAR(meter.bytes_per_second(), 0, 1);
  EXPECT_FALSE(meter.time_left(1).has_value());
}

TEST(RateMeter, does_not_grow_with_the_number_of_updates) {
  RateMeter::Time now{};
  RateMeter meter(now);
  for (int i = 0; i < 100'000; ++i) {
    now += 10us;
    meter.update(now, static_cast<std::uint64_t>(i));
  }
  EXPECT_NEAR(meter.bytes_per_second(), 1e5, 1e3);
}

} // namespace
} // namespace wherry::cli

// The real clock and randomness.
#include "os/system.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <vector>

namespace wherry {
namespace {

TEST(SystemClock, never_goes_back_and_is_the_clock_of_deadlines) {
  const auto clock = make_system_clock();
  const auto before = std::chrono::steady_clock::now().time_since_epoch();
  const std::uint64_t first = clock->now_ns();
  const std::uint64_t second = clock->now_ns();
  const auto after = std::chrono::steady_clock::now().time_since_epoch();
  EXPECT_GE(second, first);
  EXPECT_GE(first, static_cast<std::uint64_t>(before.count()));
  EXPECT_LE(second, static_cast<std::uint64_t>(after.count()));
}

TEST(SystemRandom, R20_numbers_do_not_repeat) {
  const auto random = make_system_random();
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(seen.insert(random->u64()).second);
  }
}

// More than the 256 bytes that getrandom gives in one piece for certain.
TEST(SystemRandom, fills_a_large_buffer_to_its_end_and_an_empty_one) {
  const auto random = make_system_random();
  std::vector<std::byte> buffer(100'000);
  random->fill(buffer);
  std::vector<std::byte> tail(buffer.end() - 32, buffer.end());
  EXPECT_NE(tail, std::vector<std::byte>(32));
  random->fill({});
}

} // namespace
} // namespace wherry

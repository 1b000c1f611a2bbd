// The seeded generator: the same everywhere, for ever. A seed in a bug report depends on it.
#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <vector>

namespace wherry {
namespace {

// xoshiro256** seeded with splitmix64(0), as other implementations give it.
TEST(SeededRandom, gives_the_published_sequence_of_seed_zero) {
  SeededRandom random(0);
  EXPECT_EQ(random.next(), 0x99ec5f36cb75f2b4ULL);
  EXPECT_EQ(random.next(), 0xbf6e1f784956452aULL);
  EXPECT_EQ(random.next(), 0x1a5f849d4933e6e0ULL);
}

TEST(SeededRandom, the_same_seed_repeats_and_another_one_does_not) {
  SeededRandom a(42);
  SeededRandom b(42);
  SeededRandom c(43);
  EXPECT_EQ(a.next(), b.next());
  EXPECT_NE(a.next(), c.next());
}

TEST(SeededRandom, bytes_are_the_numbers_in_little_endian_order) {
  SeededRandom numbers(5);
  SeededRandom bytes(5);
  std::array<std::byte, 11> out{};
  bytes.fill(out);
  const std::uint64_t first = numbers.next();
  const std::uint64_t second = numbers.next();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t word = i < 8 ? first : second;
    EXPECT_EQ(out[i], static_cast<std::byte>((word >> (8 * (i % 8))) & 0xff)) << i;
  }
}

TEST(SeededRandom, below_stays_below_and_reaches_every_value) {
  SeededRandom random(1);
  std::vector<int> seen(7);
  for (int i = 0; i < 7000; ++i) {
    ++seen.at(random.below(7));
  }
  for (const int count : seen) {
    EXPECT_GT(count, 800);
    EXPECT_LT(count, 1200);
  }
  EXPECT_EQ(random.below(1), 0U);
}

// A plain modulo would put half of the results into the lowest third.
TEST(SeededRandom, below_is_not_skewed_by_a_huge_bound) {
  SeededRandom random(2);
  const std::uint64_t bound = 3ULL << 62;
  int low = 0;
  for (int i = 0; i < 3000; ++i) {
    low += random.below(bound) < (1ULL << 62) ? 1 : 0;
  }
  EXPECT_GT(low, 900);
  EXPECT_LT(low, 1100);
}

TEST(SeededRandomDeathTest, nothing_is_below_zero) {
  SeededRandom random(1);
  EXPECT_DEATH(static_cast<void>(random.below(0)), "broken invariant");
}

} // namespace
} // namespace wherry

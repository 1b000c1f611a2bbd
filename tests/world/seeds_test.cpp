// Runs of whole seeds: that they repeat, and that the oracle is awake.
#include "world/simulation.h"

#include <gtest/gtest.h>

#include <string>

namespace wherry::world {
namespace {

TEST(Seeds, the_same_seed_gives_the_same_trace) {
  std::uint64_t other = 0;
  for (const std::uint64_t seed : {1U, 3U, 44U, 173U, 526U}) {
    const Verdict first = run_seed(seed);
    const Verdict second = run_seed(seed);
    EXPECT_EQ(first.trace_hash, second.trace_hash) << "seed " << seed;
    EXPECT_EQ(first.steps, second.steps) << "seed " << seed;
    EXPECT_NE(first.trace_hash, other);
    other = first.trace_hash;
  }
}

/// A fuzzer that must fail: the lie is found within `seeds` seeds.
void expect_found(Lie lie, std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Verdict verdict = run_seed(seed, {.lie = lie});
    if (verdict.wrong) {
      SUCCEED() << "found with seed " << seed << ": " << *verdict.wrong;
      return;
    }
  }
  ADD_FAILURE() << "no seed from 1 to " << seeds << " shows the lie";
}

TEST(Canary, R28_a_confirmed_byte_too_many_is_found) {
  expect_found(Lie::one_byte_more, 20);
}
TEST(Canary, R30_a_drain_that_comes_too_early_is_found) {
  expect_found(Lie::drained_early, 100);
}
TEST(Canary, R29_an_uncertain_effect_called_none_is_found) {
  expect_found(Lie::certain_early, 100);
}
TEST(Canary, R29_an_effect_settled_too_early_is_found) {
  expect_found(Lie::settled_early, 100);
}
TEST(Canary, R31_an_outcome_that_changes_is_found) {
  expect_found(Lie::changed_outcome, 50);
}

} // namespace
} // namespace wherry::world

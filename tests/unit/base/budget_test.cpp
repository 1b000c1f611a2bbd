// Budgets: all or nothing, never negative, never overflowing (R13, R27, R43).
#include "base/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace wherry {
namespace {

using ::testing::HasSubstr;

TEST(Budget, R27_the_last_unit_is_granted_and_the_next_one_refused) {
  Budget budget("requests", 3);
  EXPECT_TRUE(budget.charge(2));
  EXPECT_TRUE(budget.charge(1));
  const auto refused = budget.charge(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_EQ(budget.used(), 3U);
}

TEST(Budget, R13_a_refusal_names_budget_request_use_and_limit_and_charges_nothing) {
  Budget budget("registered bytes", 100);
  ASSERT_TRUE(budget.charge(60));
  const auto refused = budget.charge(41);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("registered bytes"));
  EXPECT_THAT(refused.error().message, HasSubstr("41"));
  EXPECT_THAT(refused.error().message, HasSubstr("60 of 100"));
  EXPECT_EQ(budget.used(), 60U);
  EXPECT_EQ(budget.refusals(), 1U);
}

TEST(Budget, R42_the_largest_charge_does_not_wrap_around) {
  Budget budget("bytes", 10);
  ASSERT_TRUE(budget.charge(1));
  EXPECT_FALSE(budget.charge(UINT64_MAX));
  EXPECT_EQ(budget.used(), 1U);
  Budget endless("bytes", UINT64_MAX);
  EXPECT_TRUE(endless.charge(UINT64_MAX));
  EXPECT_FALSE(endless.charge(1));
}

TEST(Budget, a_charge_of_nothing_fits_into_a_full_budget) {
  Budget budget("bytes", 0);
  EXPECT_TRUE(budget.charge(0));
}

TEST(Budget, R13_the_limit_moves_down_to_the_use_and_not_below) {
  Budget budget("registrations", 10);
  ASSERT_TRUE(budget.charge(4));
  const auto refused = budget.set_limit(3);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(budget.limit(), 10U);
  EXPECT_TRUE(budget.set_limit(4));
  EXPECT_FALSE(budget.charge(1));
  budget.release(1);
  EXPECT_TRUE(budget.charge(1));
}

TEST(BudgetDeathTest, releasing_more_than_was_charged_is_a_broken_invariant) {
  Budget budget("bytes", 10);
  ASSERT_TRUE(budget.charge(1));
  EXPECT_DEATH(budget.release(2), "broken invariant");
}

TEST(Budget, threads_together_never_get_more_than_the_limit) {
  Budget budget("bytes", 1000);
  std::vector<std::thread> threads;
  std::vector<int> granted(4);
  threads.reserve(granted.size());
  for (int& mine : granted) {
    threads.emplace_back([&budget, &mine] {
      for (int i = 0; i < 400; ++i) {
        mine += budget.charge(1) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(granted[0] + granted[1] + granted[2] + granted[3], 1000);
  EXPECT_EQ(budget.refusals(), 600U);
}

} // namespace
} // namespace wherry

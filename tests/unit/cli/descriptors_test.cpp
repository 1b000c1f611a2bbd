#include "descriptors.h"

#include <gtest/gtest.h>

namespace wherry::cli {
namespace {

TEST(Descriptors, R43_files_fit_under_the_limit_and_a_few_always_do) {
  for (const std::uint64_t limit : {128ULL, 256ULL, 1024ULL, 1ULL << 20, ~0ULL}) {
    const DescriptorBudget budget = descriptor_budget(limit);
    EXPECT_LE(std::uint64_t{budget.library_files} + budget.part_files + 80, limit) << limit;
    EXPECT_LE(budget.library_files, 256U);
    EXPECT_LE(budget.part_files, 256U);
  }
  const DescriptorBudget least = descriptor_budget(0);
  EXPECT_GE(least.library_files, 1U);
  EXPECT_GE(least.part_files, 1U);
}

} // namespace
} // namespace wherry::cli

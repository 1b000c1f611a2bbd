// Broken invariants end the process, in every build, and say where.
#include "base/assert.h"

#include <gtest/gtest.h>

namespace wherry {
namespace {

TEST(AssertDeathTest, a_broken_invariant_names_its_expression_file_and_line) {
  const int one = 1;
  EXPECT_DEATH(WHERRY_ASSERT(one == 2),
               "broken invariant: one == 2 \\(.*assert_test.cpp:[0-9]+\\)");
}

TEST(Assert, one_that_holds_evaluates_its_expression_once) {
  int evaluated = 0;
  WHERRY_ASSERT(++evaluated == 1);
  EXPECT_EQ(evaluated, 1);
}

} // namespace
} // namespace wherry

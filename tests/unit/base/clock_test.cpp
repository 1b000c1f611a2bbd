// Arithmetic on times.
#include "base/clock.h"

#include <gtest/gtest.h>

namespace wherry {
namespace {

TEST(Clock, adding_saturates_at_never) {
  EXPECT_EQ(add_ns(1, 2), 3U);
  EXPECT_EQ(add_ns(1, never_ns), never_ns);
  EXPECT_EQ(add_ns(never_ns, 1), never_ns);
  EXPECT_EQ(add_ns(never_ns - 1, 1), never_ns);
}

} // namespace
} // namespace wherry

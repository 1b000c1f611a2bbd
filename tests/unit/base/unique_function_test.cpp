// The move-only function.
#include "base/unique_function.h"

#include <gtest/gtest.h>

#include <memory>
#include <type_traits>
#include <utility>

namespace wherry {
namespace {

static_assert(!std::is_copy_constructible_v<UniqueFunction<void()>>);
static_assert(std::is_nothrow_move_constructible_v<UniqueFunction<void()>>);

TEST(UniqueFunction, holds_what_cannot_be_copied_and_drops_it_with_itself) {
  auto counted = std::make_shared<int>(5);
  {
    UniqueFunction<int(int)> add = [kept = counted, owned = std::make_unique<int>(1)](int n) {
      return *kept + *owned + n;
    };
    UniqueFunction<int(int)> moved = std::move(add);
    EXPECT_TRUE(moved);
    EXPECT_EQ(moved(10), 16);
    EXPECT_EQ(counted.use_count(), 2);
  }
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(UniqueFunction, is_empty_until_it_is_given_something) {
  UniqueFunction<void()> empty;
  EXPECT_FALSE(empty);
  empty = [] {};
  EXPECT_TRUE(empty);
}

TEST(UniqueFunction, passes_references_and_move_only_arguments_through) {
  UniqueFunction<int(int&, std::unique_ptr<int>)> take = [](int& out, std::unique_ptr<int> in) {
    out = *in;
    return *in + 1;
  };
  int seen = 0;
  EXPECT_EQ(take(seen, std::make_unique<int>(7)), 8);
  EXPECT_EQ(seen, 7);
}

} // namespace
} // namespace wherry

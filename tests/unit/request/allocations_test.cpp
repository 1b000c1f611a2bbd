// The proof that the allocation counter sees: a test that says "nothing was allocated" is worth
// what its counter is worth.
#include "support/allocations.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>

namespace wherry::test {
namespace {

TEST(Allocations, are_counted) {
  WHERRY_SKIP_WITHOUT_ALLOCATIONS();
  const std::uint64_t before = allocation_count();
  const std::unique_ptr<std::uint64_t[]> numbers(new std::uint64_t[8]);
  // A pair of new and delete that nobody can see may be left out by the compiler.
  static std::uint64_t* volatile seen = nullptr;
  seen = numbers.get();
  EXPECT_NE(seen, nullptr);
  EXPECT_EQ(allocation_count(), before + 1);
}

TEST(Allocations, fail_from_the_one_that_was_named) {
  WHERRY_SKIP_WITHOUT_ALLOCATIONS();
  std::unique_ptr<int> first;
  bool refused = false;
  {
    const FailingAllocations failing(1);
    first = std::make_unique<int>(1);
    try {
      first = std::make_unique<int>(2);
    } catch (const std::bad_alloc&) {
      refused = true;
    }
  }
  EXPECT_TRUE(refused);
  EXPECT_EQ(*first, 1);
}

} // namespace
} // namespace wherry::test

// Counts and refuses allocations of the calling thread. One operator new serves the whole program
// (allocations.cpp), which is why this is of the tests only.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WHERRY_TEST_ALLOCATIONS 0 // Its runtime brings an operator new that cannot be replaced.
#endif
#endif
#ifndef WHERRY_TEST_ALLOCATIONS
#define WHERRY_TEST_ALLOCATIONS 1
#endif

/// For a test that counts allocations or makes them fail.
#define WHERRY_SKIP_WITHOUT_ALLOCATIONS()                                                          \
  if (!WHERRY_TEST_ALLOCATIONS) {                                                                  \
    GTEST_SKIP() << "allocations are not counted in this build";                                   \
  }                                                                                                \
  static_assert(true)

namespace wherry::test {

/// Allocations of this thread since it began.
std::uint64_t allocation_count();

/// While it lives, the allocation number `after` (counted from 0) of this thread throws bad_alloc,
/// and so do all behind it.
class FailingAllocations {
public:
  explicit FailingAllocations(std::uint64_t after);
  ~FailingAllocations();
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;
};

} // namespace wherry::test

// Counts and refuses allocations of the calling thread. One operator new serves the whole program
// (allocations_test.cpp), which is why this is of the tests only.
#pragma once

#include <cstdint>

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

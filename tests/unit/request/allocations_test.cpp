// The allocation counter, and the proof that it sees: a test that says "nothing was allocated" is
// worth what its counter is worth.
#include "unit/request/allocations.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>

namespace {

thread_local std::uint64_t count = 0;
thread_local std::uint64_t refused_from = UINT64_MAX;

[[maybe_unused]] void* allocate(std::size_t bytes, std::size_t alignment) {
  if (count++ >= refused_from) {
    throw std::bad_alloc();
  }
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

} // namespace

#if WHERRY_TEST_ALLOCATIONS
void* operator new(std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

#endif

namespace wherry::test {

std::uint64_t allocation_count() {
  return count;
}

FailingAllocations::FailingAllocations(std::uint64_t after) {
  refused_from = count + after;
}
FailingAllocations::~FailingAllocations() {
  refused_from = UINT64_MAX;
}

namespace {

TEST(Allocations, are_counted) {
  WHERRY_SKIP_WITHOUT_ALLOCATIONS();
  const std::uint64_t before = allocation_count();
  const std::unique_ptr<std::uint64_t[]> numbers(new std::uint64_t[8]);
  EXPECT_NE(numbers, nullptr);
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

// The program's operator new, for tests that count or refuse allocations; in a program only if one
// of its tests asks for the count.
#include "support/allocations.h"

#include <cstdlib>
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

} // namespace wherry::test

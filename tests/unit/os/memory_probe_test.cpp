// What the kernel says about memory before it is registered (R17): asked, never touched.
#include "os/memory_probe.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

namespace wherry {
namespace {

/// Three pages, of which a test changes the middle one.
class MemoryProbeTest : public ::testing::Test {
protected:
  MemoryProbeTest()
      : page_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        start_(static_cast<std::byte*>(mmap(nullptr, 3 * page_bytes_, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~MemoryProbeTest() override { munmap(start_, 3 * page_bytes_); }

  std::span<const std::byte> bytes(std::size_t from, std::size_t to) const {
    return {start_ + from, to - from};
  }
  MemoryFacts probe(std::size_t from, std::size_t to) const {
    const auto facts = probe_memory(bytes(from, to));
    EXPECT_TRUE(facts);
    return facts.value_or(MemoryFacts{});
  }

  std::size_t page_bytes_;
  std::byte* start_;
};

TEST_F(MemoryProbeTest, ordinary_memory_is_all_three) {
  ASSERT_NE(start_, MAP_FAILED);
  const MemoryFacts facts = probe(1, 3 * page_bytes_ - 1);
  EXPECT_TRUE(facts.mapped && facts.readable && facts.writable);
  std::array<std::byte, 16> on_the_stack{};
  EXPECT_TRUE(probe_memory(on_the_stack)->writable);
  const std::vector<std::byte> on_the_heap(1000);
  EXPECT_TRUE(probe_memory(on_the_heap)->writable);
}

TEST_F(MemoryProbeTest, R17_one_page_in_the_middle_decides_for_the_whole) {
  ASSERT_EQ(mprotect(start_ + page_bytes_, page_bytes_, PROT_READ), 0);
  MemoryFacts facts = probe(0, 3 * page_bytes_);
  EXPECT_TRUE(facts.mapped && facts.readable);
  EXPECT_FALSE(facts.writable);
  EXPECT_TRUE(probe(0, page_bytes_).writable);
  EXPECT_TRUE(probe(2 * page_bytes_, 3 * page_bytes_).writable);

  ASSERT_EQ(mprotect(start_ + page_bytes_, page_bytes_, PROT_NONE), 0);
  facts = probe(page_bytes_ - 1, page_bytes_ + 1);
  EXPECT_TRUE(facts.mapped);
  EXPECT_FALSE(facts.readable || facts.writable);
}

TEST_F(MemoryProbeTest, R17_a_hole_is_not_mapped) {
  ASSERT_EQ(munmap(start_ + page_bytes_, page_bytes_), 0);
  for (const auto& [from, to] : std::array<std::pair<std::size_t, std::size_t>, 3>{
           {{0, 3 * page_bytes_},
            {page_bytes_ - 1, page_bytes_ + 1},
            {2 * page_bytes_ - 1, 2 * page_bytes_ + 1}}}) {
    const MemoryFacts facts = probe(from, to);
    EXPECT_FALSE(facts.mapped || facts.readable || facts.writable) << from;
  }
  EXPECT_TRUE(probe(0, page_bytes_).mapped);
  EXPECT_TRUE(probe(2 * page_bytes_, 3 * page_bytes_).mapped);
}

TEST_F(MemoryProbeTest, R42_the_first_page_of_the_address_space_is_not_mapped) {
  const std::span<const std::byte> nothing(static_cast<const std::byte*>(nullptr), 8);
  EXPECT_FALSE(probe_memory(nothing)->mapped);
}

} // namespace
} // namespace wherry

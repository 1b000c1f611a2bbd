// Staging buffers: bounded, and the last ones are kept for storing (R43).
#include "path/staging_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace wherry {
namespace {

std::vector<std::byte*> take_all(StagingPool& pool, Staging use) {
  std::vector<std::byte*> all;
  while (std::byte* buffer = pool.take(use)) {
    all.push_back(buffer);
  }
  return all;
}

TEST(StagingPool, R43_buffers_are_bounded_and_used_again) {
  StagingPool pool(4096, 8);
  const auto all = take_all(pool, Staging::storing);
  EXPECT_EQ(all.size(), 8U);
  EXPECT_EQ(pool.in_use(), 8U);
  EXPECT_EQ(pool.waits(), 1U);
  for (std::byte* buffer : all) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer) % 4096, 0U);
    pool.give(buffer, Staging::storing);
  }
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_EQ(take_all(pool, Staging::storing).size(), 8U);
}

// Loads wait for peers, who may wait for a buffer to store into: if loads took all, both ends of
// two engines could wait for each other for ever.
TEST(StagingPool, R43_loading_leaves_some_for_storing) {
  for (std::size_t buffers = 2; buffers <= 40; ++buffers) {
    StagingPool pool(4096, buffers);
    const auto loads = take_all(pool, Staging::loading);
    EXPECT_GE(loads.size(), 1U);
    const auto stores = take_all(pool, Staging::storing);
    EXPECT_GE(stores.size(), 1U);
    EXPECT_EQ(loads.size() + stores.size(), buffers);
    EXPECT_EQ(pool.take(Staging::loading), nullptr);
    pool.give(loads.front(), Staging::loading);
    EXPECT_NE(pool.take(Staging::storing), nullptr)
        << "what loading gave back may be used for storing";
  }
}

TEST(StagingPool, a_buffer_that_comes_back_after_somebody_went_without_is_news) {
  StagingPool pool(4096, 2);
  std::byte* first = pool.take(Staging::storing);
  pool.give(first, Staging::storing);
  EXPECT_EQ(pool.reliefs(), 0U) << "nobody had asked in vain";
  const auto all = take_all(pool, Staging::storing);
  pool.give(all[0], Staging::storing);
  EXPECT_EQ(pool.reliefs(), 1U);
  pool.give(all[1], Staging::storing);
  EXPECT_EQ(pool.reliefs(), 1U);
}

} // namespace
} // namespace wherry

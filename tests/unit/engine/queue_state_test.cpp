// Completion queues: both entries of a request reserved, a descriptor that says what is there
// (R27).
#include "engine/queue_state.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace wherry {
namespace {

QueueState make_queue(std::uint32_t capacity) {
  auto event = EventFd::make();
  EXPECT_TRUE(event);
  return QueueState(capacity, std::move(*event));
}

CompletionEntry entry(std::uint64_t user_data) {
  CompletionEntry one;
  one.user_data = user_data;
  return one;
}

bool is_readable(int descriptor) {
  pollfd poll{descriptor, POLLIN, 0};
  return ::poll(&poll, 1, 0) == 1;
}

std::vector<std::uint64_t> take(QueueState& queue, std::size_t count) {
  std::vector<CompletionEntry> out(count);
  out.resize(queue.poll(out));
  std::vector<std::uint64_t> taken;
  taken.reserve(out.size());
  for (const CompletionEntry& one : out) {
    taken.push_back(one.user_data);
  }
  return taken;
}

TEST(QueueState, R27_both_entries_of_a_request_are_reserved_or_it_is_refused) {
  auto queue = make_queue(5);
  ASSERT_TRUE(queue.reserve());
  ASSERT_TRUE(queue.reserve());
  const auto refused = queue.reserve();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(refused.error().message.find("5 entries"), std::string::npos);
  EXPECT_NE(refused.error().message.find("4 are reserved"), std::string::npos);
  queue.unreserve();
  EXPECT_TRUE(queue.reserve());
}

TEST(QueueState, R27_entries_that_nobody_took_count_against_new_requests) {
  auto queue = make_queue(4);
  ASSERT_TRUE(queue.reserve());
  queue.push(entry(1));
  queue.push(entry(1));
  ASSERT_TRUE(queue.reserve());
  EXPECT_FALSE(queue.reserve());
  EXPECT_EQ(take(queue, 1).size(), 1U);
  EXPECT_FALSE(queue.reserve()) << "one place is not enough";
  EXPECT_EQ(take(queue, 1).size(), 1U);
  EXPECT_TRUE(queue.reserve());
}

TEST(QueueState, entries_come_in_order_across_the_ends_of_the_ring) {
  auto queue = make_queue(5);
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  for (unsigned round = 0; round < 50; ++round) {
    ASSERT_TRUE(queue.reserve());
    queue.push(entry(in++));
    queue.push(entry(in++));
    for (const std::uint64_t seen : take(queue, round % 3 + 1U)) {
      EXPECT_EQ(seen, out++);
    }
    while (in - out > 3) {
      EXPECT_EQ(take(queue, 1), (std::vector<std::uint64_t>{out}));
      ++out;
    }
  }
  take(queue, 10);
  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(take(queue, 0).empty());
}

TEST(QueueState, the_descriptor_is_readable_exactly_while_entries_are_there) {
  auto queue = make_queue(8);
  ASSERT_TRUE(queue.reserve());
  queue.push(entry(1));
  EXPECT_FALSE(queue.watched());
  const int descriptor = queue.fd();
  EXPECT_TRUE(queue.watched());
  EXPECT_TRUE(is_readable(descriptor)) << "what came before it was asked for counts too";
  EXPECT_TRUE(is_readable(descriptor)) << "level-triggered";
  queue.push(entry(2));
  take(queue, 1);
  EXPECT_TRUE(is_readable(descriptor));
  take(queue, 1);
  EXPECT_FALSE(is_readable(descriptor));
  ASSERT_TRUE(queue.reserve());
  EXPECT_FALSE(is_readable(descriptor));
  queue.push(entry(3));
  EXPECT_TRUE(is_readable(descriptor));
}

TEST(QueueState, threads_that_push_and_poll_lose_nothing) {
  auto queue = make_queue(64);
  constexpr std::uint64_t requests = 2000;
  std::atomic<std::uint64_t> sum = 0;
  std::atomic<std::uint64_t> seen = 0;
  const auto poller = [&] {
    std::array<CompletionEntry, 7> out;
    while (seen < 2 * requests) {
      const std::size_t count = queue.poll(out);
      for (std::size_t i = 0; i < count; ++i) {
        sum += out[i].user_data;
      }
      seen += count;
      if (count == 0) {
        std::this_thread::yield();
      }
    }
  };
  std::thread one(poller);
  std::thread other(poller);
  for (std::uint64_t i = 1; i <= requests; ++i) {
    while (!queue.reserve()) {
      std::this_thread::yield();
    }
    queue.push(entry(i));
    queue.push(entry(i));
  }
  one.join();
  other.join();
  EXPECT_EQ(sum, requests * (requests + 1));
}

} // namespace
} // namespace wherry

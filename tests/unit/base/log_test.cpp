// The log sink: one call at a time, and silence without one (R42).
#include "base/log.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace wherry {
namespace {

TEST(Log, without_a_sink_it_says_nothing) {
  Log log({});
  log(LogLevel::error, "nobody listens");
}

TEST(Log, the_sink_is_never_called_twice_at_once) {
  std::atomic<int> inside = 0;
  int calls = 0; // without a lock of its own
  Log log([&](LogLevel level, std::string_view message) {
    EXPECT_EQ(inside.fetch_add(1), 0);
    EXPECT_EQ(level, LogLevel::warning);
    EXPECT_EQ(message, "x");
    ++calls;
    inside.fetch_sub(1);
  });
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&log] {
      for (int n = 0; n < 200; ++n) {
        log(LogLevel::warning, "x");
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(calls, 800);
}

} // namespace
} // namespace wherry

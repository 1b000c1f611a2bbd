// The hand-over of leadership between threads: one leader at a time, nobody sleeps through what it
// waits for, nobody waits for a lead that is free (R31, R42).
//
// Method: where the order of steps matters it is forced, by doing the other thread's step inside
// the question `done`; in the end several threads race for a while, and a counter that only leaders
// touch must have missed nothing.
#include "base/clock.h"
#include "engine/leader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace wherry {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

std::uint64_t now_ns(void*) {
  return static_cast<std::uint64_t>(SteadyClock::now().time_since_epoch().count());
}
std::uint64_t in(std::chrono::nanoseconds duration) {
  return now_ns(nullptr) + static_cast<std::uint64_t>(duration.count());
}
bool never() {
  return false;
}
/// Far longer than any wait here should take, and short enough for a test that fails.
constexpr auto long_time = 5s;

TEST(Leader, one_leads_at_a_time) {
  Leader leader([] {});
  EXPECT_TRUE(leader.try_lead());
  EXPECT_FALSE(leader.try_lead());
  leader.give_up(false);
  EXPECT_TRUE(leader.try_lead());
  leader.give_up(false);
}

TEST(Leader, a_free_lead_is_taken_at_once_and_the_question_is_not_asked) {
  Leader leader([] {});
  int asked = 0;
  EXPECT_TRUE(leader.lead([&] { return ++asked > 0; }, 0, now_ns, nullptr));
  EXPECT_EQ(asked, 0);
  leader.give_up(false);
}

TEST(Leader, R31_a_deadline_ends_the_wait_for_a_lead) {
  Leader leader([] {});
  ASSERT_TRUE(leader.try_lead());
  const auto start = SteadyClock::now();
  EXPECT_FALSE(leader.lead(never, in(20ms), now_ns, nullptr));
  EXPECT_GE(SteadyClock::now() - start, 20ms);
  EXPECT_LT(SteadyClock::now() - start, long_time);
  EXPECT_FALSE(leader.lead(never, 0, now_ns, nullptr)) << "a deadline that has passed";
  leader.give_up(false);
}

TEST(Leader, a_follower_whose_wait_is_over_does_not_take_the_lead) {
  Leader leader([] {});
  ASSERT_TRUE(leader.try_lead());
  EXPECT_FALSE(leader.lead([] { return true; }, in(long_time), now_ns, nullptr));
  leader.give_up(false);
}

// The leader makes it true just after the follower has looked, and tells: the follower must not
// sleep until its deadline.
TEST(Leader, R31_news_that_come_between_looking_and_sleeping_are_not_lost) {
  Leader leader([] {});
  ASSERT_TRUE(leader.try_lead());
  bool over = false;
  const auto start = SteadyClock::now();
  const auto done = [&] {
    if (over) {
      return true;
    }
    over = true;
    leader.tell_followers();
    return false;
  };
  EXPECT_FALSE(leader.lead(done, in(long_time), now_ns, nullptr));
  EXPECT_LT(SteadyClock::now() - start, long_time / 2);
  leader.give_up(false);
}

TEST(Leader, a_lead_given_up_between_looking_and_sleeping_is_taken) {
  Leader leader([] {});
  ASSERT_TRUE(leader.try_lead());
  const auto start = SteadyClock::now();
  const auto done = [&] {
    leader.give_up(false);
    return false;
  };
  EXPECT_TRUE(leader.lead(done, in(long_time), now_ns, nullptr));
  EXPECT_LT(SteadyClock::now() - start, long_time / 2);
  leader.give_up(false);
}

TEST(Leader, a_sleeping_follower_hears_news_and_looks_again) {
  Leader leader([] {});
  ASSERT_TRUE(leader.try_lead());
  std::atomic<int> looked = 0;
  std::atomic<bool> over = false;
  std::thread follower([&] {
    EXPECT_FALSE(leader.lead(
        [&] {
          ++looked;
          return over.load();
        },
        in(long_time), now_ns, nullptr));
  });
  while (looked < 1) {
    std::this_thread::yield();
  }
  over = true;
  leader.tell_followers();
  follower.join();
  EXPECT_GE(looked, 2);
  leader.give_up(false);
}

TEST(Leader, a_follower_becomes_the_leader_when_the_lead_is_given_up) {
  Leader leader([] {});
  ASSERT_TRUE(leader.try_lead());
  std::thread follower([&] {
    EXPECT_TRUE(leader.lead(never, in(long_time), now_ns, nullptr));
    leader.give_up(false);
  });
  leader.give_up(false);
  follower.join();
  EXPECT_TRUE(leader.try_lead());
  leader.give_up(false);
}

/// An engine's thread that leads as EngineCore's does: until somebody wants the lead.
class EngineThread {
public:
  EngineThread() : leader([this] { interrupted = true; }), thread_([this] { run(); }) {}
  ~EngineThread() {
    leader.stop();
    thread_.join();
  }

  std::atomic<bool> interrupted = false;
  std::atomic<int> turns = 0;
  std::atomic<bool> leads = false;
  Leader leader;

private:
  void run() {
    while (leader.lead_as_engine()) {
      leads = true;
      while (!leader.wanted() && !leader.stopping()) {
        ++turns;
        while (!interrupted.exchange(false)) {
          std::this_thread::sleep_for(50us);
        }
      }
      leads = false;
      leader.give_up_as_engine();
    }
  }
  std::thread thread_;
};

void wait_for(const std::atomic<bool>& flag) {
  const auto end = SteadyClock::now() + long_time;
  while (!flag && SteadyClock::now() < end) {
    std::this_thread::sleep_for(100us);
  }
  EXPECT_TRUE(flag);
}

TEST(Leader, the_engines_thread_leads_when_nobody_else_does) {
  EngineThread engine;
  wait_for(engine.leads);
  EXPECT_FALSE(engine.leader.try_lead());
}

TEST(Leader, the_engines_thread_gives_the_lead_up_to_whoever_waits_for_it_and_takes_it_again) {
  EngineThread engine;
  for (int i = 0; i < 20; ++i) {
    wait_for(engine.leads);
    if (i % 2 == 0) {
      EXPECT_TRUE(engine.leader.lead(never, in(long_time), now_ns, nullptr));
    } else {
      engine.leader.lead_now();
    }
    EXPECT_FALSE(engine.leads);
    engine.leader.give_up(i % 3 == 0);
  }
}

TEST(Leader, the_engines_thread_leaves_the_lead_to_application_threads_that_come_and_go) {
  EngineThread engine;
  wait_for(engine.leads);
  engine.leader.lead_now();
  int taken = 0;
  for (int i = 0; i < 100; ++i) {
    engine.leader.give_up(false);
    taken += engine.leader.try_lead() ? 1 : 0;
    if (taken != i + 1) {
      break; // It was slower than the engine's thread lingers, on a busy machine.
    }
  }
  EXPECT_GE(taken, 1);
  if (taken == 100) {
    engine.leader.give_up(true);
  }
}

TEST(Leader, a_stopped_engines_thread_ends_while_an_application_thread_leads) {
  EngineThread engine;
  wait_for(engine.leads);
  engine.leader.lead_now();
  engine.leader.stop();
  // The destructor joins; the lead is still ours.
}

// Threads lead for their own ends and for those of others: each waits until a turn has served it.
TEST(Leader, R42_racing_threads_lose_neither_the_lead_nor_a_wait) {
  struct Waiter {
    std::atomic<bool> wanted = false;
    std::atomic<bool> served = false;
  };
  constexpr std::size_t threads = 4;
  constexpr int rounds = 300;
  EngineThread engine;
  std::array<Waiter, threads> waiters;
  std::uint64_t leaders_only = 0; // A data race here is two leaders; TSan says so.
  std::atomic<std::uint64_t> turns = 0;
  const auto turn = [&] {
    ++leaders_only;
    ++turns;
    for (Waiter& waiter : waiters) {
      if (waiter.wanted.exchange(false)) {
        waiter.served = true;
      }
    }
    engine.leader.tell_followers();
  };
  std::vector<std::thread> all;
  all.reserve(threads);
  for (std::size_t t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        Waiter& waiter = waiters[t];
        waiter.served = false;
        waiter.wanted = true;
        const auto served = [&] { return waiter.served.load(); };
        if (!engine.leader.lead(served, in(long_time), now_ns, nullptr)) {
          ASSERT_TRUE(served()) << "a wait of " << i << " was lost";
          continue;
        }
        while (!served()) {
          turn();
        }
        engine.leader.give_up(i % 2 == 0);
      }
    });
  }
  for (std::thread& thread : all) {
    thread.join();
  }
  EXPECT_EQ(leaders_only, turns);
}

} // namespace
} // namespace wherry

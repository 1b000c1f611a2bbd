// Threads of ours inside somebody else's process.
#include "os/thread.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace wherry {
namespace {

sigset_t current_mask() {
  sigset_t set;
  pthread_sigmask(SIG_SETMASK, nullptr, &set);
  return set;
}

TEST(Thread, R42_application_signals_are_blocked_in_it_and_faults_are_not) {
  sigset_t inside;
  auto thread = Thread::start("wherry-test", [&inside] { inside = current_mask(); });
  ASSERT_TRUE(thread);
  thread->join();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD, SIGALRM, SIGPIPE, SIGPROF}) {
    EXPECT_EQ(sigismember(&inside, signal), 1) << signal;
  }
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    EXPECT_EQ(sigismember(&inside, fault), 0) << fault;
  }
}

TEST(Thread, R42_the_mask_of_the_thread_that_starts_it_is_as_before) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
  auto thread = Thread::start("wherry-test", [] {});
  ASSERT_TRUE(thread);
  const sigset_t after = current_mask();
  EXPECT_EQ(sigismember(&after, SIGUSR2), 1);
  EXPECT_EQ(sigismember(&after, SIGINT), 0);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  thread->join();
}

TEST(Thread, carries_its_name) {
  std::string name(16, '\0');
  auto thread = Thread::start(
      "wherry-named", [&name] { pthread_getname_np(pthread_self(), name.data(), name.size()); });
  ASSERT_TRUE(thread);
  thread->join();
  EXPECT_STREQ(name.c_str(), "wherry-named");
}

TEST(Thread, moves_with_the_duty_to_join) {
  auto started = Thread::start("wherry-test", [] {});
  ASSERT_TRUE(started);
  Thread moved = std::move(*started);
  EXPECT_FALSE(started->joinable()); // NOLINT(bugprone-use-after-move): this is what is tested
  ASSERT_TRUE(moved.joinable());
  moved.join();
  EXPECT_FALSE(moved.joinable());
}

} // namespace
} // namespace wherry

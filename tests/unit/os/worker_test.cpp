// The native workers: bounded, every job handed back once, signals kept away (R27, R42, R44).
#include "base/unique_function.h"
#include "os/worker.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace wherry {
namespace {

/// Runs a function; counts its returns.
class TestJob final : public Job {
public:
  TestJob() = default;
  explicit TestJob(UniqueFunction<void()> body) : body_(std::move(body)) {}
  void run() override {
    if (body_) {
      body_();
    }
    ++runs;
  }
  void finished() override {
    EXPECT_EQ(runs.load(), finishes.load() + 1); // run() first, on each round
    ++finishes;
  }

  std::atomic<int> runs = 0;
  std::atomic<int> finishes = 0;

private:
  UniqueFunction<void()> body_;
};

std::unique_ptr<Worker> threaded(unsigned threads, std::size_t queue_max) {
  auto worker = make_threaded_worker(threads, queue_max);
  EXPECT_TRUE(worker);
  return std::move(*worker);
}

TEST(ThreadedWorker, R44_jobs_run_on_its_own_threads) {
  std::thread::id seen;
  std::latch done(1);
  TestJob job([&] {
    seen = std::this_thread::get_id();
    done.count_down();
  });
  auto worker = threaded(1, 4);
  ASSERT_TRUE(worker->post(&job));
  done.wait();
  EXPECT_NE(seen, std::this_thread::get_id());
  EXPECT_FALSE(worker->run_one());
}

TEST(ThreadedWorker, R44_one_job_that_hangs_does_not_hold_up_the_other_thread) {
  std::latch let_go(1);
  std::latch done(1);
  TestJob hanging([&] { let_go.wait(); });
  TestJob quick([&] { done.count_down(); });
  auto worker = threaded(2, 4);
  ASSERT_TRUE(worker->post(&hanging));
  ASSERT_TRUE(worker->post(&quick));
  done.wait();
  EXPECT_EQ(hanging.finishes, 0);
  let_go.count_down();
}

TEST(ThreadedWorker, R27_a_full_queue_refuses_and_never_blocks) {
  std::latch started(1);
  std::latch let_go(1);
  TestJob running([&] {
    started.count_down();
    let_go.wait();
  });
  std::array<TestJob, 3> queued;
  auto worker = threaded(1, 2);
  ASSERT_TRUE(worker->post(&running));
  started.wait(); // it has left the queue
  EXPECT_TRUE(worker->post(&queued[0]));
  EXPECT_TRUE(worker->post(&queued[1]));
  EXPECT_FALSE(worker->post(&queued[2]));
  EXPECT_EQ(worker->outstanding(), 3U);
  let_go.count_down();
  worker.reset();
  EXPECT_EQ(queued[1].finishes, 1);
  EXPECT_EQ(queued[2].runs, 0);
}

TEST(ThreadedWorker, ends_after_the_jobs_that_are_queued) {
  std::array<TestJob, 100> jobs;
  auto worker = threaded(3, jobs.size());
  for (TestJob& job : jobs) {
    ASSERT_TRUE(worker->post(&job));
  }
  worker.reset();
  for (const TestJob& job : jobs) {
    EXPECT_EQ(job.finishes, 1);
  }
}

TEST(ThreadedWorker, one_thread_runs_jobs_in_the_order_of_posting) {
  std::vector<int> order;
  std::vector<std::unique_ptr<TestJob>> jobs;
  auto worker = threaded(1, 64);
  for (int i = 0; i < 64; ++i) {
    jobs.push_back(std::make_unique<TestJob>([&order, i] { order.push_back(i); }));
    ASSERT_TRUE(worker->post(jobs.back().get()));
  }
  worker.reset();
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  }
}

TEST(ThreadedWorker, a_job_may_free_itself_when_it_is_finished) {
  struct SelfOwned final : Job {
    explicit SelfOwned(std::atomic<int>& count) : ended(count) {}
    void run() override {}
    void finished() override {
      ++ended;
      delete this;
    }
    std::atomic<int>& ended;
  };
  std::atomic<int> ended = 0;
  auto worker = threaded(2, 64);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(worker->post(new SelfOwned(ended)));
  }
  worker.reset();
  EXPECT_EQ(ended, 50);
}

TEST(ThreadedWorker, many_threads_may_post_and_every_accepted_job_is_handed_back_once) {
  auto worker = threaded(3, 8);
  std::vector<std::thread> posters;
  posters.reserve(4);
  std::vector<std::vector<std::unique_ptr<TestJob>>> accepted(4);
  for (auto& mine : accepted) {
    posters.emplace_back([&worker, &mine] {
      for (int i = 0; i < 300; ++i) {
        auto job = std::make_unique<TestJob>();
        while (!worker->post(job.get())) {
          std::this_thread::yield();
        }
        mine.push_back(std::move(job));
      }
    });
  }
  for (std::thread& poster : posters) {
    poster.join();
  }
  worker.reset();
  for (const auto& mine : accepted) {
    for (const auto& job : mine) {
      EXPECT_EQ(job->finishes, 1);
    }
  }
}

TEST(ThreadedWorker, R42_signals_of_the_application_are_blocked_in_its_threads) {
  sigset_t inside;
  sigemptyset(&inside);
  TestJob job([&inside] { pthread_sigmask(SIG_SETMASK, nullptr, &inside); });
  auto worker = threaded(1, 1);
  ASSERT_TRUE(worker->post(&job));
  worker.reset();
  EXPECT_EQ(sigismember(&inside, SIGINT), 1);
  EXPECT_EQ(sigismember(&inside, SIGUSR1), 1);
}

TEST(InlineWorker, jobs_wait_for_run_one_and_run_on_the_callers_thread) {
  auto worker = make_inline_worker(2);
  std::thread::id seen;
  TestJob first([&seen] { seen = std::this_thread::get_id(); });
  TestJob second;
  TestJob third;
  ASSERT_TRUE(worker->post(&first));
  ASSERT_TRUE(worker->post(&second));
  EXPECT_FALSE(worker->post(&third)); // R27
  EXPECT_EQ(first.runs, 0);
  EXPECT_TRUE(worker->run_one());
  EXPECT_EQ(seen, std::this_thread::get_id());
  EXPECT_EQ(first.finishes, 1);
  EXPECT_EQ(second.runs, 0);
  EXPECT_EQ(worker->outstanding(), 1U);
  EXPECT_TRUE(worker->post(&third));
  EXPECT_TRUE(worker->run_one());
  EXPECT_TRUE(worker->run_one());
  EXPECT_FALSE(worker->run_one());
  EXPECT_EQ(worker->outstanding(), 0U);
}

TEST(InlineWorker, hands_back_what_is_left_when_it_ends) {
  TestJob job;
  auto worker = make_inline_worker(1);
  ASSERT_TRUE(worker->post(&job));
  worker.reset();
  EXPECT_EQ(job.finishes, 1);
}

TEST(InlineWorker, a_job_may_post_the_next_one) {
  auto worker = make_inline_worker(1);
  TestJob second;
  TestJob first([&] { EXPECT_TRUE(worker->post(&second)); });
  ASSERT_TRUE(worker->post(&first));
  EXPECT_TRUE(worker->run_one());
  EXPECT_TRUE(worker->run_one());
  EXPECT_EQ(second.finishes, 1);
}

TEST(JobQueue, is_first_in_first_out_and_can_be_filled_again) {
  JobQueue queue;
  std::array<TestJob, 3> jobs;
  EXPECT_EQ(queue.pop(), nullptr);
  for (int round = 0; round < 2; ++round) {
    for (TestJob& job : jobs) {
      queue.push(&job);
    }
    EXPECT_EQ(queue.size(), 3U);
    for (TestJob& job : jobs) {
      EXPECT_EQ(queue.pop(), &job);
    }
    EXPECT_EQ(queue.pop(), nullptr);
    EXPECT_EQ(queue.size(), 0U);
  }
}

} // namespace
} // namespace wherry

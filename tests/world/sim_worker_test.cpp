// The simulated worker: simulated time, one job at a time, from a seed.
#include "world/sim_worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace wherry {
namespace {

class NotedJob final : public Job {
public:
  NotedJob(int number, std::vector<int>& order) : number_(number), order_(order) {}
  void run() override { ran_ = true; }
  void finished() override {
    EXPECT_TRUE(ran_);
    order_.push_back(number_);
  }

private:
  int number_;
  std::vector<int>& order_;
  bool ran_ = false;
};

std::vector<int> order_of(std::uint64_t seed) {
  SimClock clock;
  SimWorker worker(clock, seed);
  std::vector<int> order;
  std::vector<std::unique_ptr<NotedJob>> jobs;
  for (int i = 0; i < 20; ++i) {
    jobs.push_back(std::make_unique<NotedJob>(i, order));
    EXPECT_TRUE(worker.post(jobs.back().get()));
  }
  while (worker.next_due_ns() != never_ns) {
    clock.advance_to(worker.next_due_ns());
    EXPECT_TRUE(worker.run_one());
  }
  EXPECT_FALSE(worker.run_one());
  return order;
}

TEST(SimWorker, jobs_overtake_each_other_and_a_seed_repeats_their_order) {
  const std::vector<int> order = order_of(1);
  EXPECT_EQ(order.size(), 20U);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(order, order_of(1));
  EXPECT_NE(order, order_of(2));
}

TEST(SimWorker, no_job_runs_before_its_time) {
  SimClock clock;
  SimWorker worker(clock, 1, {.delay_min_ns = 100, .delay_max_ns = 100, .queue_max = 1});
  std::vector<int> order;
  NotedJob job(1, order);
  NotedJob refused(2, order);
  ASSERT_TRUE(worker.post(&job));
  EXPECT_FALSE(worker.post(&refused)); // R27
  EXPECT_EQ(worker.next_due_ns(), clock.now_ns() + 100);
  clock.advance_to(clock.now_ns() + 99);
  EXPECT_FALSE(worker.run_one());
  EXPECT_EQ(worker.outstanding(), 1U);
  clock.advance_to(clock.now_ns() + 1);
  EXPECT_TRUE(worker.run_one());
  EXPECT_EQ(worker.outstanding(), 0U);
}

TEST(SimWorker, R44_while_held_every_call_is_overdue) {
  SimClock clock;
  SimWorker worker(clock, 1, {.delay_min_ns = 1, .delay_max_ns = 1, .queue_max = 4});
  std::vector<int> order;
  NotedJob job(1, order);
  worker.hold(true);
  ASSERT_TRUE(worker.post(&job));
  EXPECT_EQ(worker.next_due_ns(), never_ns);
  clock.advance_to(clock.now_ns() + 1'000'000);
  EXPECT_FALSE(worker.run_one());
  worker.hold(false);
  EXPECT_EQ(worker.next_due_ns(), clock.now_ns());
  EXPECT_TRUE(worker.run_one());
}

TEST(SimWorker, hands_back_what_is_left_when_it_ends) {
  SimClock clock;
  std::vector<int> order;
  NotedJob job(7, order);
  {
    SimWorker worker(clock, 1);
    ASSERT_TRUE(worker.post(&job));
  }
  EXPECT_EQ(order, std::vector<int>{7});
}

} // namespace
} // namespace wherry

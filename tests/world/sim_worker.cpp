// The simulated worker. Owns the order of the jobs; the jobs belong to who posted them. One thread.
#include "world/sim_worker.h"

#include "base/assert.h"

#include <algorithm>

namespace wherry {

SimWorker::~SimWorker() {
  while (!jobs_.empty()) {
    run_first();
  }
}

bool SimWorker::post(Job* job) {
  WHERRY_ASSERT(job != nullptr);
  WHERRY_ASSERT(options_.delay_min_ns <= options_.delay_max_ns);
  if (jobs_.size() >= options_.queue_max) {
    return false;
  }
  const std::uint64_t delay_ns =
      options_.delay_min_ns + random_.below(options_.delay_max_ns - options_.delay_min_ns + 1);
  jobs_.emplace(std::pair(add_ns(clock_.now_ns(), delay_ns), posted_++), job);
  return true;
}

bool SimWorker::run_one() {
  if (next_due_ns() > clock_.now_ns()) {
    return false;
  }
  run_first();
  return true;
}

std::uint64_t SimWorker::next_due_ns() const {
  if (held_ || jobs_.empty()) {
    return never_ns;
  }
  return std::max(jobs_.begin()->first.first, clock_.now_ns());
}

void SimWorker::hurry() {
  std::map<std::pair<std::uint64_t, std::uint64_t>, Job*> due;
  for (const auto& [when, job] : jobs_) {
    due.emplace(std::pair(std::min(when.first, clock_.now_ns()), when.second), job);
  }
  jobs_ = std::move(due);
}

void SimWorker::run_first() {
  Job* job = jobs_.begin()->second;
  jobs_.erase(jobs_.begin());
  running_ = true;
  job->run();
  job->finished(); // the job may be gone now
  running_ = false;
}

} // namespace wherry

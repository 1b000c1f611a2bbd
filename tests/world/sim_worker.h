// The native worker of the simulation: a job takes simulated time, and jobs may overtake each other
// as on several threads. One thread.
#pragma once

#include "base/random.h"
#include "os/worker.h"
#include "world/sim_clock.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace wherry {

struct SimWorkerOptions {
  std::uint64_t delay_min_ns = 1'000;
  std::uint64_t delay_max_ns = 2'000'000;
  std::size_t queue_max = 1024;
};

class SimWorker final : public Worker {
public:
  SimWorker(SimClock& clock, std::uint64_t seed, const SimWorkerOptions& options = {})
      : clock_(clock), random_(seed), options_(options) {}
  SimWorker(const SimWorker&) = delete;
  SimWorker& operator=(const SimWorker&) = delete;
  /// Runs what is left, due or not: whoever posted a job gets it back.
  ~SimWorker() override;

  bool post(Job* job) override;
  /// Runs the job whose time came first; false when none is due, or while held.
  bool run_one() override;
  std::size_t outstanding() const override { return jobs_.size() + (running_ ? 1 : 0); }

  /// When run_one() has something to do; never_ns if nothing was posted, or while held.
  std::uint64_t next_due_ns() const;
  /// While held no job runs, as when every thread hangs in a call.
  void hold(bool held) { held_ = held; }
  /// What was posted is due now, as when whoever waits for it has no more time to give.
  void hurry();
  /// For what is posted from now on.
  void set_options(const SimWorkerOptions& options) { options_ = options; }

private:
  void run_first();

  SimClock& clock_;
  SeededRandom random_;
  SimWorkerOptions options_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Job*> jobs_; ///< By due time, then by order.
  std::uint64_t posted_ = 0;
  bool held_ = false;
  bool running_ = false;
};

} // namespace wherry

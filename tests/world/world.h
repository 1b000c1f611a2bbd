// The simulated world: processes with an engine each, the network between them, their files, and
// the one clock. Everything runs in one thread and repeats from one seed.
//
// A step lets every engine work once that has a reason to: an event, a deadline, a job that is
// done, or a turn before that moved something. An engine that needs another turn and does not say
// so is left asleep, as its thread would be. When nobody had anything to do, time goes on to what
// happens next. Blocking calls step the world from within (EngineOptions::on_idle), all but their
// own engine.
#pragma once

#include "base/random.h"
#include "engine/access.h"
#include "world/process_network.h"
#include "world/sim_clock.h"
#include "world/sim_files.h"
#include "world/sim_network.h"
#include "world/sim_worker.h"
#include "world/trace.h"

#include <wherry/wherry.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wherry::world {

inline constexpr std::uint64_t us = 1'000;
inline constexpr std::uint64_t ms = 1'000'000;
inline constexpr std::uint64_t second = 1'000'000'000;

/// A process on a host of its own. Its engine comes and goes.
struct Process {
  std::string host;
  EngineOptions options;
  SimWorkerOptions worker_options;
  std::shared_ptr<ProcessNetwork> network;
  std::shared_ptr<SimWorker> worker;
  std::optional<TransferEngine> engine;
  bool blocking = false; ///< A blocking call of its user is under way.
  bool dying = false;
  std::uint32_t idle_turns = 0;       ///< While dying.
  bool awake = true;                  ///< Its last turn moved something, or its user did something.
  std::uint64_t stopped_until_ns = 0; ///< Gets no processor before that.
};

class World {
public:
  World(std::uint64_t seed, const SimNetworkOptions& network, Trace& trace);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  SimClock& clock() { return clock_; }
  std::uint64_t now_ns() { return clock_.now_ns(); }
  SimSwitch& net() { return net_; }
  SimFiles& files() { return files_; }
  SeededRandom& random() { return random_; }
  Trace& trace() { return trace_; }

  Process& add_process(const std::string& host, EngineOptions options);
  std::vector<std::unique_ptr<Process>>& processes() { return processes_; }
  /// Gives the process a new engine.
  void start(Process& process);
  /// Kills it: its sockets end, calls into files that are under way end, nothing else happens any
  /// more. Its user still holds handles; bury() when they are gone.
  void kill(Process& process);
  void bury(Process& process);

  /// False: nothing will happen any more.
  bool step();
  /// Until then, or until nothing happens any more.
  void run_until(std::uint64_t ns);
  /// Until `done`; false if that did not come within `limit_ns`.
  bool run_until(std::uint64_t limit_ns, const std::function<bool()>& done);

  /// A blocking call of the process's user, which gives up after `limit_ns`.
  template <class F>
  auto block(Process& process, std::uint64_t limit_ns, F&& call) {
    const std::uint64_t deadline_ns = add_ns(now_ns(), limit_ns);
    process.blocking = true;
    process.stopped_until_ns = 0;
    blocked_until_ns_ = deadline_ns;
    auto result = call(deadline(deadline_ns));
    process.blocking = false;
    process.awake = true;
    blocked_until_ns_ = never_ns;
    return result;
  }
  /// On this world's clock.
  static Deadline deadline(std::uint64_t ns) {
    return Deadline::at(Deadline::Clock::time_point(std::chrono::nanoseconds(ns)));
  }

  /// Lets `what` happen then: also while somebody blocks.
  void at(std::uint64_t ns, std::function<void()> what);
  /// After every step in which something moved: also while somebody blocks.
  std::function<void()> on_step;

  /// Something is wrong. The first is kept.
  void blame(std::string what);
  const std::optional<std::string>& wrong() const { return wrong_; }
  std::uint64_t steps() const { return steps_; }

private:
  void idle(Process& process);
  bool let_work();
  bool has_reason_to_work(Process& process);
  bool go_on();
  std::uint64_t next_ns();
  std::string what_is_due();

  Trace& trace_;
  SeededRandom random_;
  SimClock clock_;
  SimSwitch net_;
  SimFiles files_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::multimap<std::uint64_t, std::function<void()>> timers_;
  std::uint64_t blocked_until_ns_ = never_ns;
  std::uint64_t steps_ = 0;
  std::uint32_t standing_still_ = 0;
  std::optional<std::string> wrong_;
};

} // namespace wherry::world

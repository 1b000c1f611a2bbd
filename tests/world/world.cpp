#include "world/world.h"

#include "base/assert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace wherry::world {
namespace {

// Rounds at one moment in which something is due and nothing moves. An engine may need two to see
// that a deadline has come.
constexpr std::uint32_t standing_still_max = 64;
constexpr std::uint32_t dying_turns_max = 64;

} // namespace

World::World(std::uint64_t seed, const SimNetworkOptions& network, Trace& trace)
    : trace_(trace), random_(seed), net_(clock_, random_.next(), network),
      files_(clock_, random_.next()) {
  trace_.set_clock(&clock_);
}

World::~World() {
  processes_.clear();
  trace_.set_clock(nullptr);
}

Process& World::add_process(const std::string& host, EngineOptions options) {
  auto process = std::make_unique<Process>();
  Process& made = *process;
  made.host = host;
  made.options = std::move(options);
  made.options.threads = 0;
  made.options.on_idle = [this, &made] { idle(made); };
  if (trace_.verbose()) {
    made.options.log = [this, host](LogLevel, std::string_view message) {
      trace_.tell(fmt::format("{}: {}", host, message));
    };
  }
  processes_.push_back(std::move(process));
  return made;
}

void World::start(Process& process) {
  WHERRY_ASSERT(!process.engine);
  process.network = std::make_shared<ProcessNetwork>(net_.attach(process.host));
  process.worker = std::make_shared<SimWorker>(clock_, random_.next(), process.worker_options);
  process.dying = false;
  process.stopped_until_ns = 0;
  process.awake = true;
  Seams seams;
  // The world owns its parts and outlives every engine.
  seams.clock = std::shared_ptr<Clock>(std::shared_ptr<void>(), &clock_);
  seams.random = std::make_shared<SeededRandom>(random_.next());
  seams.network = process.network;
  seams.files = std::shared_ptr<Files>(std::shared_ptr<void>(), &files_);
  seams.worker = process.worker;
  auto engine = EngineAccess::create(process.options, std::move(seams));
  WHERRY_ASSERT(engine.has_value());
  process.engine.emplace(std::move(*engine));
}

void World::kill(Process& process) {
  WHERRY_ASSERT(process.engine && !process.blocking);
  process.network->die();
  process.dying = true;
  process.idle_turns = 0;
  if (auto closed = process.engine->close(Deadline::now()); !closed) {
    blame(fmt::format("a killed engine does not end: {}", closed.error().message));
  }
}

void World::bury(Process& process) {
  process.engine.reset();
  process.network.reset();
  process.worker.reset();
  process.dying = false;
}

// --- Steps
// ----------------------------------------------------------------------------------------

bool World::let_work() {
  bool moved = false;
  const std::size_t count = processes_.size();
  const std::size_t first = count > 1 ? static_cast<std::size_t>(random_.below(count)) : 0;
  for (std::size_t i = 0; i < count; ++i) {
    Process& process = *processes_[(first + i) % count];
    if (has_reason_to_work(process)) {
      process.awake = process.engine->progress();
      moved |= process.awake;
    }
  }
  return moved;
}

bool World::has_reason_to_work(Process& process) {
  if (!process.engine || process.blocking || process.dying || process.stopped_until_ns > now_ns()) {
    return false;
  }
  return process.awake || process.network->sim()->has_events() ||
         process.worker->next_due_ns() <= now_ns() ||
         EngineAccess::earliest_deadline_ns(*process.engine) <= now_ns();
}

std::uint64_t World::next_ns() {
  std::uint64_t next = net_.next_timer_ns();
  if (blocked_until_ns_ != never_ns) {
    // A call whose time is up may still give others a little: only the engine knows how long.
    next = std::min(next, blocked_until_ns_ > now_ns() ? blocked_until_ns_ : now_ns() + 1 * ms);
  }
  if (!timers_.empty()) {
    next = std::min(next, timers_.begin()->first);
  }
  for (const auto& process : processes_) {
    if (!process->engine || process->dying) {
      continue;
    }
    if (process->stopped_until_ns > now_ns()) {
      next = std::min(next, process->stopped_until_ns);
      continue;
    }
    if (process->network->sim()->has_events()) {
      return now_ns();
    }
    next = std::min({next, process->worker->next_due_ns(),
                     EngineAccess::earliest_deadline_ns(*process->engine)});
  }
  return std::max(next, now_ns());
}

std::string World::what_is_due() {
  std::string text = fmt::format(" network {}", net_.next_timer_ns() <= now_ns());
  for (const auto& process : processes_) {
    if (process->engine && !process->dying && process->stopped_until_ns <= now_ns()) {
      text += fmt::format("; {}: events {}, files {}, deadline {} ns ago", process->host,
                          process->network->sim()->has_events(),
                          process->worker->next_due_ns() <= now_ns(),
                          static_cast<std::int64_t>(
                              now_ns() - EngineAccess::earliest_deadline_ns(*process->engine)));
    }
  }
  return text;
}

bool World::go_on() {
  const std::uint64_t next = next_ns();
  if (next == never_ns) {
    return false;
  }
  if (next > now_ns() || net_.next_timer_ns() <= now_ns()) {
    standing_still_ = 0;
    net_.advance_to(next);
  } else if (++standing_still_ > standing_still_max) {
    blame("something is due, and nobody does anything: a thread would spin;" + what_is_due());
    net_.advance_to(next + 1 * ms);
  }
  while (!timers_.empty() && timers_.begin()->first <= now_ns()) {
    auto timer = timers_.extract(timers_.begin());
    timer.mapped()();
  }
  return true;
}

bool World::step() {
  ++steps_;
  const bool moved = let_work();
  bool more = true;
  if (moved) {
    standing_still_ = 0;
  } else {
    more = go_on();
  }
  if (on_step) {
    on_step();
  }
  return more;
}

// Called by the engine of a blocking call when it has nothing to do.
void World::idle(Process& process) {
  if (process.dying) {
    // Nothing but its own calls into files happens while a process dies.
    if (process.worker->outstanding() > 0) {
      process.worker->hurry();
    } else if (++process.idle_turns > dying_turns_max) {
      net_.advance_to(now_ns() + 1 * ms); // so that the call ends, and the world can say so
    }
    return;
  }
  if (!step()) {
    // Not even a deadline: the call would never return.
    trace_.tell("everything stands still, and somebody blocks without a deadline");
    std::fputs("world: a blocking call that never returns\n", stderr);
    std::abort();
  }
}

void World::run_until(std::uint64_t ns) {
  run_until(ns > now_ns() ? ns - now_ns() : 0, [] { return false; });
}

bool World::run_until(std::uint64_t limit_ns, const std::function<bool()>& done) {
  for (const auto& process : processes_) {
    process->awake = true; // its user may have done something before
  }
  const std::uint64_t until_ns = add_ns(now_ns(), limit_ns);
  // Time must not run over the end.
  bool over = false;
  const auto timer = timers_.emplace(until_ns, [&over] { over = true; });
  while (!over && !done()) {
    step();
  }
  if (!over) {
    timers_.erase(timer); // it refers to this frame
  }
  return done();
}

void World::at(std::uint64_t ns, std::function<void()> what) {
  timers_.emplace(ns, std::move(what));
}

void World::blame(std::string what) {
  if (wrong_) {
    return;
  }
  trace_.tell("WRONG: " + what);
  wrong_ = std::move(what);
}

} // namespace wherry::world

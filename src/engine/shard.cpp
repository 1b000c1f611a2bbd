#include "engine/shard.h"

#include "base/assert.h"
#include "wire/frames.h"

#include <algorithm>

namespace wherry {

namespace {
constexpr std::size_t events_max = 256;
// How often a shard that is busy looks for deadlines.
constexpr std::uint64_t busy_check_ns = 10'000'000;
// How long submits alone may lead before one of them looks at the network too.
constexpr std::uint64_t kick_turn_ns = 500'000;
} // namespace

struct Shard::Blocking final : Job {
  Shard* shard = nullptr;
  UniqueFunction<void()> work;
  UniqueFunction<void()> then;

  void run() override { work(); }
  void finished() override {
    // Under the lock to the end: the shard may be gone as soon as it has seen this.
    const std::lock_guard lock(shard->blocking_mutex_);
    shard->blocking_done_.push_back(this);
    shard->any_blocking_done_.store(true, std::memory_order_seq_cst);
    shard->notify();
  }
};

Shard::Shard(const Seams& seams, std::uint64_t staging_bytes, std::uint64_t spin_ns)
    : seams_(seams), spin_(spin_ns), file_io_(*seams.worker, [this] { notify(); }),
      staging_(wire::segment_bytes_max,
               std::max<std::uint64_t>(staging_bytes / wire::segment_bytes_max, 2)),
      events_(events_max) {
  now_ns_ = seams_.clock->now_ns();
}

Shard::~Shard() {
  WHERRY_ASSERT(blocking_ == 0);
}

// -- Spin
// ------------------------------------------------------------------------------------------

void Spin::failed() {
  credit_ = 0;
  now_ns_ = now_ns_ < 2 * least_ns ? 0 : now_ns_ / 2;
}

void Spin::slept(std::uint64_t slept_ns) {
  if (slept_ns >= max_ns_ || ++credit_ < credit_needed) {
    return;
  }
  credit_ = 0;
  now_ns_ = std::min(std::max(now_ns_ * 2, least_ns), max_ns_);
}

// -- endpoints
// -------------------------------------------------------------------------------------

std::uint64_t Shard::add(Endpoint* endpoint) {
  const std::uint64_t token = endpoints_.emplace(Entry{endpoint, true}).first;
  active_.push_back(token);
  return token;
}

void Shard::remove(std::uint64_t token) {
  endpoints_.erase(token);
}

void Shard::activate(std::uint64_t token) {
  Entry* entry = endpoints_.find(token);
  if (entry == nullptr || entry->active) {
    return;
  }
  entry->active = true;
  active_.push_back(token);
}

bool Shard::run_endpoints() {
  bool moved = false;
  running_.swap(active_);
  for (const std::uint64_t token : running_) {
    Entry* entry = endpoints_.find(token);
    if (entry == nullptr) {
      continue;
    }
    entry->active = false;
    const bool more = entry->endpoint->progress(now_ns_);
    moved |= more;
    entry = endpoints_.find(token); // progress() may have removed it.
    if (entry == nullptr) {
      continue;
    }
    if (more) {
      activate(token);
    }
    if (entry->waits_for_files || !entry->endpoint->waits_for_files()) {
      continue;
    }
    entry->waits_for_files = true;
    waiting_for_files_.push_back(token);
  }
  running_.clear();
  return moved;
}

// Ends of file transfers, room in the worker, and buffers that others gave back, are news for
// whoever waits for one of these.
bool Shard::deliver_files(bool worker_has_room) {
  const bool delivered = file_io_.deliver() > 0;
  if (!delivered && !worker_has_room && staging_.reliefs() == reliefs_seen_) {
    return false;
  }
  reliefs_seen_ = staging_.reliefs();
  for (const std::uint64_t token : waiting_for_files_) {
    Entry* entry = endpoints_.find(token);
    if (entry == nullptr) {
      continue;
    }
    entry->waits_for_files = false;
    activate(token);
  }
  waiting_for_files_.clear();
  return true;
}

bool Shard::take_events(std::int64_t timeout_ns) {
  const std::size_t count = seams_.network->wait(events_, timeout_ns);
  for (std::size_t i = 0; i < count; ++i) {
    Entry* entry = endpoints_.find(events_[i].token);
    if (entry == nullptr) {
      continue;
    }
    entry->endpoint->on_event(events_[i]);
    activate(events_[i].token);
  }
  return count > 0;
}

// -- blocking work
// ---------------------------------------------------------------------------------

void Shard::run_blocking(UniqueFunction<void()> work, UniqueFunction<void()> then) {
  auto blocking = std::make_unique<Blocking>();
  blocking->shard = this;
  blocking->work = std::move(work);
  blocking->then = std::move(then);
  blocking_waiting_.push_back(std::move(blocking));
  ++blocking_;
  start_blocking();
}

void Shard::start_blocking() {
  while (!blocking_waiting_.empty() && seams_.worker->post(blocking_waiting_.front().get())) {
    // The job owns itself until finish_blocking() has it back.
    static_cast<void>(blocking_waiting_.front().release());
    blocking_waiting_.pop_front();
  }
}

bool Shard::finish_blocking() {
  if (!any_blocking_done_.load(std::memory_order_acquire)) {
    return false;
  }
  std::vector<Blocking*> done;
  {
    const std::lock_guard lock(blocking_mutex_);
    done.swap(blocking_done_);
    any_blocking_done_.store(false, std::memory_order_release);
  }
  for (Blocking* pointer : done) {
    const std::unique_ptr<Blocking> blocking(pointer);
    --blocking_;
    blocking->then();
  }
  start_blocking();
  return true;
}

// -- turns
// -----------------------------------------------------------------------------------------

bool Shard::work() {
  bool moved = seams_.worker->run_one();
  const bool finished = finish_blocking();
  moved |= finished;
  moved |= deliver_files(finished);
  if (!blocking_waiting_.empty()) {
    start_blocking(); // The worker may have been full of files.
  }
  moved |= run_endpoints();
  moved |= on_turn(now_ns_);
  // What on_turn handed to the endpoints goes out at once.
  if (!active_.empty()) {
    moved |= run_endpoints();
  }
  return moved || staging_.reliefs() != reliefs_seen_;
}

bool Shard::kick() {
  now_ns_ = seams_.clock->now_ns();
  // Whoever submits without end keeps the engine's thread from leading: the network has its turn.
  if (now_ns_ - last_turn_ns_ >= kick_turn_ns) {
    return turn(0);
  }
  const bool moved = work();
  if (moved) {
    last_moved_ns_ = now_ns_;
  }
  return moved;
}

std::uint64_t Shard::earliest_deadline() {
  std::uint64_t earliest = next_deadline_ns();
  endpoints_.for_each([&](std::uint64_t, Entry& entry) {
    earliest = std::min(earliest, entry.endpoint->next_deadline_ns());
  });
  return earliest;
}

void Shard::wake_due() {
  endpoints_.for_each([&](std::uint64_t token, Entry& entry) {
    if (entry.endpoint->next_deadline_ns() <= now_ns_) {
      activate(token);
    }
  });
}

bool Shard::turn(std::uint64_t block_until_ns) {
  ++counters_.turns;
  now_ns_ = last_turn_ns_ = seams_.clock->now_ns();
  bool moved = take_events(0);
  if (now_ns_ >= wake_at_ns_) {
    wake_due();
    // Deadlines that came up since are seen by the next turn that finds nothing to do.
    wake_at_ns_ = never_ns;
  }
  moved |= work();
  if (moved) {
    last_moved_ns_ = now_ns_;
    wake_at_ns_ = std::min(wake_at_ns_, add_ns(now_ns_, busy_check_ns));
    return true;
  }
  if (block_until_ns <= now_ns_) {
    wake_at_ns_ = earliest_deadline();
    return false;
  }
  if (!active_.empty() || now_ns_ - last_moved_ns_ < spin_.now_ns()) {
    wake_at_ns_ = std::min(wake_at_ns_, add_ns(now_ns_, busy_check_ns));
    return false;
  }
  wake_at_ns_ = earliest_deadline();
  const std::uint64_t until = std::min(block_until_ns, wake_at_ns_);
  if (until <= now_ns_) {
    return false;
  }
  spin_.failed();
  bool woken = false;
  sleeping_.store(true, std::memory_order_seq_cst);
  if (!has_inbox() && !file_io_.any_done() && !any_blocking_done_.load(std::memory_order_seq_cst)) {
    ++counters_.sleeps;
    const std::uint64_t timeout = std::min<std::uint64_t>(until - now_ns_, 3'600'000'000'000);
    woken = take_events(static_cast<std::int64_t>(timeout));
  }
  sleeping_.store(false, std::memory_order_seq_cst);
  last_moved_ns_ = seams_.clock->now_ns();
  if (woken) {
    spin_.slept(last_moved_ns_ - now_ns_);
  }
  return true;
}

void Shard::interrupt() {
  seams_.network->wake();
}

} // namespace wherry

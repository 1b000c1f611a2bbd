// A shard: the sockets, timers and endpoints that one thread at a time works for, without locks
// inside. Whoever leads it (leader.h) calls turn(); everything else here is the leader's, except
// post().
#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/unique_function.h"
#include "engine/seams.h"
#include "path/file/posix_file.h"
#include "path/staging_pool.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace wherry {

/// Something that lives on a socket or on time. Owned by its session, known to the shard by a
/// token.
class Endpoint {
public:
  virtual ~Endpoint() = default;
  virtual void on_event(const NetworkEvent& event) = 0;
  /// A bounded amount of work. True: call again this turn or next, there is more.
  virtual bool progress(std::uint64_t now_ns) = 0;
  virtual std::uint64_t next_deadline_ns() const = 0;
  /// Whether progress() is to be called when a file transfer ends or a staging buffer comes free.
  virtual bool waits_for_files() const { return false; }
};

/// How long to poll before sleeping. Polling spares a wake-up where the peer answers on another
/// core, and keeps the peer from answering where it waits for this one; only trying tells which. So
/// a poll that was in vain halves the next, and sleeps that would have been spared, several in a
/// row, double it.
class Spin {
public:
  explicit Spin(std::uint64_t max_ns) : max_ns_(max_ns), now_ns_(max_ns) {}
  std::uint64_t now_ns() const { return now_ns_; }
  /// Nothing came while polling.
  void failed();
  /// An event ended a sleep of that length.
  void slept(std::uint64_t slept_ns);

private:
  static constexpr std::uint64_t least_ns = 4'000;
  static constexpr std::uint32_t credit_needed = 8;
  const std::uint64_t max_ns_;
  std::uint64_t now_ns_;
  std::uint32_t credit_ = 0;
};

class Shard {
public:
  Shard(const Seams& seams, std::uint64_t staging_bytes, std::uint64_t spin_ns);
  ~Shard();

  Clock& clock() { return *seams_.clock; }
  std::uint64_t now_ns() const { return now_ns_; }
  Network& network() { return *seams_.network; }
  Random& random() { return *seams_.random; }
  PosixFileIo& files() { return file_io_; }
  StagingPool& staging() { return staging_; }

  std::uint64_t add(Endpoint* endpoint); ///< The token; the endpoint is active.
  void remove(std::uint64_t token);
  void activate(std::uint64_t token);

  /// Runs `work` on the native worker, then `then` on the leader. Both are destroyed on the leader.
  void run_blocking(UniqueFunction<void()> work, UniqueFunction<void()> then);
  std::size_t blocking() const { return blocking_; }

  /// Called once a turn, between events and sleep: hands work between sessions. Returns whether it
  /// moved.
  std::function<bool(std::uint64_t now_ns)> on_turn;
  /// Asked before sleeping: when on_turn must run even if nothing happens.
  std::function<std::uint64_t()> next_deadline_ns;
  /// Asked before sleeping, after the intent to sleep is public: whether there is work after all.
  std::function<bool()> has_inbox;

  /// One round of work. `block_until_ns`: how long it may sleep when there is none (0: not at all).
  /// Returns whether anything moved.
  bool turn(std::uint64_t block_until_ns);
  /// Work without asking the network: after a submit.
  bool kick();
  /// When turn() must be called even if nothing happens.
  std::uint64_t earliest_deadline();
  /// Any thread: makes a sleeping turn return.
  void interrupt();
  /// Any thread, after it has made work visible: interrupts the leader only if it sleeps.
  void notify() {
    if (sleeping_.load(std::memory_order_seq_cst)) {
      interrupt();
    }
  }

  struct Counters {
    std::uint64_t turns = 0, sleeps = 0;
  };
  const Counters& counters() const { return counters_; }
  const Seams& seams() const { return seams_; }

private:
  struct Entry {
    Endpoint* endpoint = nullptr;
    bool active = false;
    bool waits_for_files = false;
  };
  struct Blocking;

  bool take_events(std::int64_t timeout_ns);
  bool run_endpoints();
  bool deliver_files(bool worker_has_room);
  bool finish_blocking();
  void start_blocking();
  bool work();
  void wake_due();

  Seams seams_;
  Spin spin_;
  PosixFileIo file_io_;
  StagingPool staging_;
  std::uint64_t now_ns_ = 0;
  std::uint64_t last_moved_ns_ = 0;
  std::uint64_t last_turn_ns_ = 0;
  std::uint64_t wake_at_ns_ = 0;
  SlotMap<Entry> endpoints_;
  std::vector<std::uint64_t> active_;
  std::vector<std::uint64_t> running_;
  std::vector<std::uint64_t> waiting_for_files_;
  std::uint64_t reliefs_seen_ = 0;
  std::vector<NetworkEvent> events_;
  std::atomic<bool> sleeping_ = false;
  std::deque<std::unique_ptr<Blocking>> blocking_waiting_;
  std::size_t blocking_ = 0;
  std::mutex blocking_mutex_;
  std::vector<Blocking*> blocking_done_;
  std::atomic<bool> any_blocking_done_ = false;
  Counters counters_;
};

} // namespace wherry

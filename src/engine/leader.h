// Leadership of a shard: one thread at a time (leader/followers). The engine's own thread leads
// when no application thread wants to; an application thread that waits for a request leads
// meanwhile, which spares two context switches on the way of a small operation.
//
// This file is all there is to the hand-over. The mutex here guards only who leads, never the
// shard.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace wherry {

class Leader {
public:
  /// `interrupt` makes a leader that blocks in the network return; any thread may call it.
  explicit Leader(std::function<void()> interrupt) : interrupt_(std::move(interrupt)) {}

  // -- application threads
  // ---------------------------------------------------------------------------
  /// Takes the lead if nobody has it.
  bool try_lead();
  /// Waits until this thread leads (true), or `done()` or the time has come (false). The engine's
  /// thread gives the lead up at once; another application thread keeps it while it waits for its
  /// own, and serves this one meanwhile. `done` is asked without the lead, on this thread;
  /// `sleep_ns` bounds one sleep.
  template <class Done>
  bool lead(Done&& done, std::uint64_t deadline_ns, std::uint64_t (*now_ns)(void*), void* clock) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (holder_ == Holder::none) {
        holder_ = Holder::application;
        return true;
      }
      // Taken before the question: what is told while it is asked is not slept through.
      const std::uint64_t seen = news_;
      lock.unlock();
      const bool over = done();
      lock.lock();
      if (over) {
        return false;
      }
      if (holder_ == Holder::none) {
        continue;
      }
      const std::uint64_t now = now_ns(clock);
      if (now >= deadline_ns) {
        return false;
      }
      if (holder_ == Holder::engine) {
        ++urgent_;
        lock.unlock();
        interrupt_();
        lock.lock();
        wait(lock, seen, deadline_ns - now);
        --urgent_;
      } else {
        wait(lock, seen, deadline_ns - now);
      }
    }
  }
  /// Waits for the lead without condition.
  void lead_now();
  /// `attention`: the engine's thread should take over now; else it does within its linger.
  void give_up(bool attention);

  // -- the leader
  // ------------------------------------------------------------------------------------
  /// An application thread wants the engine's thread to give up the lead.
  bool wanted() const { return urgent_.load(std::memory_order_relaxed) > 0; }
  /// Something that a follower may wait for has happened.
  void tell_followers();

  // -- the engine's thread
  // ---------------------------------------------------------------------------
  /// Waits until the engine's thread leads (true) or must end (false).
  bool lead_as_engine();
  void give_up_as_engine();
  void stop();
  bool stopping() const { return stop_.load(std::memory_order_relaxed); }

private:
  enum class Holder : std::uint8_t { none, engine, application };

  void wait(std::unique_lock<std::mutex>& lock, std::uint64_t seen_news, std::uint64_t for_ns);

  std::function<void()> interrupt_;
  std::mutex mutex_;
  std::condition_variable followers_changed_;
  std::condition_variable engine_changed_;
  Holder holder_ = Holder::none;
  std::atomic<std::uint32_t> urgent_ = 0;
  std::uint32_t followers_ = 0;
  std::uint64_t news_ = 0;
  std::uint64_t application_leads_ = 0;
  bool attention_ = false;
  std::atomic<bool> stop_ = false;
};

} // namespace wherry

#include "engine/leader.h"

#include "base/assert.h"

#include <algorithm>
#include <chrono>

namespace wherry {

namespace {
// How long the engine's thread leaves the lead to application threads that come and go. Long enough
// for a loop of submit and wait, short enough for whoever submits and does not wait.
constexpr std::chrono::microseconds linger{1000};
constexpr std::uint64_t sleep_max_ns =
    3'600'000'000'000; // Condition variables dislike the far future.
} // namespace

bool Leader::try_lead() {
  const std::lock_guard lock(mutex_);
  if (holder_ != Holder::none) {
    return false;
  }
  holder_ = Holder::application;
  return true;
}

void Leader::lead_now() {
  std::unique_lock lock(mutex_);
  ++urgent_;
  while (holder_ != Holder::none) {
    lock.unlock();
    interrupt_();
    lock.lock();
    if (holder_ == Holder::none) {
      break;
    }
    wait(lock, news_, sleep_max_ns);
  }
  --urgent_;
  holder_ = Holder::application;
}

void Leader::wait(std::unique_lock<std::mutex>& lock, std::uint64_t seen_news,
                  std::uint64_t for_ns) {
  if (holder_ == Holder::none || news_ != seen_news) {
    return;
  }
  ++followers_;
  followers_changed_.wait_for(lock, std::chrono::nanoseconds(std::min(for_ns, sleep_max_ns)),
                              [&] { return holder_ == Holder::none || news_ != seen_news; });
  --followers_;
}

void Leader::give_up(bool attention) {
  bool followers = false;
  {
    const std::lock_guard lock(mutex_);
    WHERRY_ASSERT(holder_ == Holder::application);
    holder_ = Holder::none;
    ++application_leads_;
    attention_ = attention_ || attention;
    ++news_;
    followers = followers_ > 0;
  }
  if (followers) {
    followers_changed_.notify_all();
  } else if (attention) {
    engine_changed_.notify_one();
  }
}

void Leader::tell_followers() {
  {
    const std::lock_guard lock(mutex_);
    ++news_;
    if (followers_ == 0) {
      return;
    }
  }
  followers_changed_.notify_all();
}

bool Leader::lead_as_engine() {
  std::unique_lock lock(mutex_);
  std::uint64_t seen = application_leads_ - 1;
  while (!stopping()) {
    const bool quiet = attention_ || seen == application_leads_;
    if (holder_ == Holder::none && urgent_ == 0 && quiet) {
      holder_ = Holder::engine;
      attention_ = false;
      return true;
    }
    seen = application_leads_;
    engine_changed_.wait_for(lock, linger);
  }
  return false;
}

void Leader::give_up_as_engine() {
  {
    const std::lock_guard lock(mutex_);
    WHERRY_ASSERT(holder_ == Holder::engine);
    holder_ = Holder::none;
    ++news_;
  }
  followers_changed_.notify_all();
}

void Leader::stop() {
  stop_.store(true);
  engine_changed_.notify_one();
  interrupt_();
}

} // namespace wherry

#include "interrupt.h"

#include "exit_status.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <optional>

namespace wherry::cli {
namespace {

using Clock = std::chrono::steady_clock;

int milliseconds_until(std::optional<Clock::time_point> when) {
  if (!when) {
    return -1;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*when - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

} // namespace

Interrupt::Interrupt() {
  // A gone reader and a file size limit are errors of a call, with words, not ends of the process.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  wakeup_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  thread_ = std::thread([this] { run(); });
}

Interrupt::~Interrupt() {
  const std::uint64_t one = 1;
  (void)!::write(wakeup_, &one, sizeof one);
  thread_.join();
  ::close(signals_);
  ::close(wakeup_);
}

void Interrupt::expect(std::chrono::nanoseconds grace, unsigned signals_to_force) {
  const std::lock_guard lock(mutex_);
  grace_ = grace;
  signals_to_force_ = signals_to_force;
}

int Interrupt::signal() const {
  const std::lock_guard lock(mutex_);
  return signal_;
}

unsigned Interrupt::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

void Interrupt::wait(unsigned seen, std::chrono::nanoseconds duration) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, duration, [&] { return count_ > seen; });
}

void Interrupt::add_part_file(const std::string& path) {
  const std::lock_guard lock(mutex_);
  part_files_.insert(path);
}

void Interrupt::remove_part_file(const std::string& path) {
  const std::lock_guard lock(mutex_);
  ::unlink(path.c_str());
  part_files_.erase(path);
}

// The thread: takes signals, and after the grace of the first one ends the process.
void Interrupt::run() {
  std::optional<Clock::time_point> forced_at;
  for (;;) {
    pollfd descriptors[] = {{signals_, POLLIN, 0}, {wakeup_, POLLIN, 0}};
    ::poll(descriptors, 2, milliseconds_until(forced_at));
    if (descriptors[1].revents != 0) {
      return;
    }
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) == sizeof info) {
      take(static_cast<int>(info.ssi_signo));
      const std::lock_guard lock(mutex_);
      forced_at = forced_at.value_or(
          Clock::now() + std::min<std::chrono::nanoseconds>(grace_, std::chrono::hours(1)));
      if (count_ >= signals_to_force_) {
        force();
      }
    }
    if (forced_at && Clock::now() >= *forced_at) {
      const std::lock_guard lock(mutex_);
      force();
    }
  }
}

void Interrupt::take(int signal) {
  {
    const std::lock_guard lock(mutex_);
    signal_ = signal_ == 0 ? signal : signal_;
    ++count_;
  }
  changed_.notify_all();
}

// With the mutex held: no rename runs.
void Interrupt::force() {
  for (const std::string& path : part_files_) {
    ::unlink(path.c_str());
  }
  ::_exit(exit_signal_base + signal_);
}

} // namespace wherry::cli

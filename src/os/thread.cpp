// Threads with blocked signals. Touches the calling thread's signal mask only for the moment of the
// creation, which is how a new thread inherits it before its first instruction. Any thread.
#include "os/thread.h"

#include "base/assert.h"

#include <csignal>
#include <memory>
#include <utility>

namespace wherry {
namespace {

struct Start {
  const char* name;
  UniqueFunction<void()> body;
};

void* run(void* argument) {
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  pthread_setname_np(pthread_self(), start->name); // A name that is too long is only not set.
  start->body();
  return nullptr;
}

sigset_t all_but_faults() {
  sigset_t set;
  sigfillset(&set);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
    sigdelset(&set, fault);
  }
  return set;
}

} // namespace

Thread::Thread(Thread&& other) noexcept
    : handle_(other.handle_), joinable_(std::exchange(other.joinable_, false)) {}

Thread& Thread::operator=(Thread&& other) noexcept {
  if (this == &other) {
    return *this;
  }
  WHERRY_ASSERT(!joinable_);
  handle_ = other.handle_;
  joinable_ = std::exchange(other.joinable_, false);
  return *this;
}

Thread::~Thread() {
  WHERRY_ASSERT(!joinable_);
}

Result<Thread> Thread::start(const char* name, UniqueFunction<void()> body) {
  auto start = std::make_unique<Start>(Start{name, std::move(body)});
  const sigset_t blocked = all_but_faults();
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  Thread thread;
  const int error = pthread_create(&thread.handle_, nullptr, run, start.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    Error refusal = native_error("pthread_create", error,
                                 "the thread " + std::string(name) + " cannot be started");
    refusal.code = ErrorCode::resource_exhausted;
    return fail(std::move(refusal));
  }
  // The thread owns it now.
  static_cast<void>(start.release()); // NOLINT(bugprone-unused-return-value)
  thread.joinable_ = true;
  return thread;
}

void Thread::join() {
  WHERRY_ASSERT(joinable_);
  const int error = pthread_join(handle_, nullptr);
  WHERRY_ASSERT(error == 0); // It is ours, not detached, and does not join itself.
  joinable_ = false;
}

} // namespace wherry

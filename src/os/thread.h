// Starting threads of ours inside somebody else's process.
#pragma once

#include "base/error.h"
#include "base/unique_function.h"

#include <pthread.h>

namespace wherry {

/// A thread that runs none of the application's signal handlers: it is born with all signals
/// blocked but those that its own faults raise (SIGSEGV and its like must still reach a crash
/// handler). Movable. Must be joined before it is dropped.
class Thread {
public:
  Thread() = default;
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread();

  /// `name` shows in ps and debuggers: at most 15 bytes.
  /// Errors: resource_exhausted, with pthread_create's errno.
  static Result<Thread> start(const char* name, UniqueFunction<void()> body);

  bool joinable() const { return joinable_; }
  /// Waits for the end of `body`.
  void join();

private:
  pthread_t handle_{};
  bool joinable_ = false;
};

} // namespace wherry

// The native workers. A ThreadedWorker owns its threads and its queue; post() and outstanding()
// come from any thread; jobs run on the worker's threads. An InlineWorker owns a queue; jobs run on
// the thread that calls run_one(). Rules: R27 (the queue is bounded), R44.
#include "os/worker.h"

#include "base/assert.h"
#include "os/thread.h"

#include <condition_variable>
#include <mutex>
#include <vector>

namespace wherry {
namespace {

/// The bounded queue that both kinds have.
class JobBoard {
public:
  explicit JobBoard(std::size_t queue_max) : queue_max_(queue_max) {}

  bool post(Job* job) {
    WHERRY_ASSERT(job != nullptr);
    {
      const std::lock_guard lock(mutex_);
      if (queue_.size() >= queue_max_) {
        return false;
      }
      queue_.push(job);
      ++outstanding_;
    }
    arrived_.notify_one();
    return true;
  }

  /// The next job; null when there is none now.
  Job* take() {
    const std::lock_guard lock(mutex_);
    return queue_.pop();
  }

  /// As take(), but waits; null when there is none and the board is ending.
  Job* wait_and_take() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return ending_ || queue_.size() > 0; });
    return queue_.pop();
  }

  void perform(Job* job) {
    job->run();
    job->finished(); // The last touch: the job may be gone already when this returns.
    const std::lock_guard lock(mutex_);
    --outstanding_;
  }

  void end() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    arrived_.notify_all();
  }

  std::size_t outstanding() const {
    const std::lock_guard lock(mutex_);
    return outstanding_;
  }

private:
  const std::size_t queue_max_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  JobQueue queue_;
  std::size_t outstanding_ = 0;
  bool ending_ = false;
};

class ThreadedWorker final : public Worker {
public:
  explicit ThreadedWorker(std::size_t queue_max) : board_(queue_max) {}

  ~ThreadedWorker() override {
    board_.end();
    for (Thread& thread : threads_) {
      thread.join();
    }
  }

  Result<void> start(unsigned threads) {
    threads_.reserve(threads);
    for (unsigned i = 0; i < threads; ++i) {
      auto thread = Thread::start("wherry-worker", [this] {
        while (Job* job = board_.wait_and_take()) {
          board_.perform(job);
        }
      });
      if (!thread) {
        return tl::unexpected(std::move(thread.error()));
      }
      threads_.push_back(std::move(*thread));
    }
    return {};
  }

  bool post(Job* job) override { return board_.post(job); }
  std::size_t outstanding() const override { return board_.outstanding(); }

private:
  JobBoard board_;
  std::vector<Thread> threads_;
};

class InlineWorker final : public Worker {
public:
  explicit InlineWorker(std::size_t queue_max) : board_(queue_max) {}

  ~InlineWorker() override {
    // As with threads: whoever posted a job gets it back.
    while (run_one()) {
    }
  }

  bool post(Job* job) override { return board_.post(job); }

  bool run_one() override {
    Job* job = board_.take();
    if (job == nullptr) {
      return false;
    }
    board_.perform(job);
    return true;
  }

  std::size_t outstanding() const override { return board_.outstanding(); }

private:
  JobBoard board_;
};

} // namespace

Result<std::unique_ptr<Worker>> make_threaded_worker(unsigned threads, std::size_t queue_max) {
  WHERRY_ASSERT(threads > 0);
  auto worker = std::make_unique<ThreadedWorker>(queue_max);
  // If the third of four threads cannot be started, the destructor ends the first two.
  if (auto started = worker->start(threads); !started) {
    return tl::unexpected(std::move(started.error()));
  }
  return worker;
}

std::unique_ptr<Worker> make_inline_worker(std::size_t queue_max) {
  return std::make_unique<InlineWorker>(queue_max);
}

} // namespace wherry

// The bounded native worker (R44): the only place where calls that may block are made.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace wherry {

/// A piece of blocking work, owned by whoever posts it until finished() was called.
class Job {
public:
  virtual ~Job() = default;
  /// On a worker's thread.
  virtual void run() = 0;
  /// On the same thread, afterwards, as the last touch: hands the job back (see JobInbox).
  virtual void finished() = 0;

private:
  friend class JobQueue;
  Job* next_ = nullptr;
};

/// An intrusive first-in first-out list of jobs; not thread-safe.
class JobQueue {
public:
  void push(Job* job) {
    job->next_ = nullptr;
    if (tail_ != nullptr) {
      tail_->next_ = job;
    } else {
      head_ = job;
    }
    tail_ = job;
    ++size_;
  }
  Job* pop() {
    Job* job = head_;
    if (job == nullptr) {
      return nullptr;
    }
    head_ = job->next_;
    if (head_ == nullptr) {
      tail_ = nullptr;
    }
    --size_;
    return job;
  }
  std::size_t size() const { return size_; }

private:
  Job* head_ = nullptr;
  Job* tail_ = nullptr;
  std::size_t size_ = 0;
};

class Worker {
public:
  virtual ~Worker() = default;
  /// Never blocks. False when the queue is full: try again when a job has finished.
  virtual bool post(Job* job) = 0;
  /// For workers without threads: runs one job on the caller's thread; false when there was none.
  virtual bool run_one() { return false; }
  /// Jobs posted and not finished.
  virtual std::size_t outstanding() const = 0;
};

/// Starts `threads` threads (at least 1), which end with the object, after the queued jobs.
/// Errors: resource_exhausted with the errno when a thread cannot be started.
Result<std::unique_ptr<Worker>> make_threaded_worker(unsigned threads, std::size_t queue_max);
/// No threads: jobs run in run_one(), for engines with threads = 0.
std::unique_ptr<Worker> make_inline_worker(std::size_t queue_max);

} // namespace wherry

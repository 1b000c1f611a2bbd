// A level-triggered eventfd that says whether something is there. Close-on-exec.
#pragma once

#include "base/error.h"

namespace wherry {

class EventFd {
public:
  /// Errors: resource_exhausted with the errno.
  static Result<EventFd> make();
  EventFd(EventFd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  EventFd& operator=(EventFd&& other) noexcept;
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;
  ~EventFd();

  int fd() const { return fd_; }
  void set();
  void clear();

private:
  explicit EventFd(int fd) : fd_(fd) {}
  int fd_;
};

} // namespace wherry

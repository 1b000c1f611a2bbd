#include "os/event_fd.h"

#include "base/assert.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace wherry {

Result<EventFd> EventFd::make() {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd >= 0) {
    return EventFd(fd);
  }
  Error error = native_error("eventfd", errno, "cannot make an eventfd");
  error.code = ErrorCode::resource_exhausted;
  return fail(std::move(error));
}

EventFd& EventFd::operator=(EventFd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

EventFd::~EventFd() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

// Neither can fail on an eventfd of ours: the counter never comes near its end.
void EventFd::set() {
  const int result = ::eventfd_write(fd_, 1);
  WHERRY_ASSERT(result == 0);
}

void EventFd::clear() {
  eventfd_t value = 0;
  const int result = ::eventfd_read(fd_, &value);
  WHERRY_ASSERT(result == 0 || errno == EAGAIN);
}

} // namespace wherry

// The descriptor of a completion queue: level-triggered, settable any number of times.
#include "os/event_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <utility>

namespace wherry {
namespace {

bool is_readable(const EventFd& event) {
  pollfd entry{event.fd(), POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

TEST(EventFd, stays_readable_from_set_to_clear_however_often_either_is_called) {
  auto event = EventFd::make();
  ASSERT_TRUE(event);
  EXPECT_FALSE(is_readable(*event));
  event->clear();
  event->set();
  event->set();
  EXPECT_TRUE(is_readable(*event));
  EXPECT_TRUE(is_readable(*event)); // looking does not take it
  event->clear();
  EXPECT_FALSE(is_readable(*event));
}

TEST(EventFd, R45_is_close_on_exec_and_closes_with_its_owner) {
  int fd = -1;
  {
    auto event = EventFd::make();
    ASSERT_TRUE(event);
    const EventFd moved = std::move(*event);
    fd = moved.fd();
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

} // namespace
} // namespace wherry

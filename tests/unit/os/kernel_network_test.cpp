// The kernel's sockets behind the network seam, over loopback: what network.h says, edge by edge.
//
// Both ends of each connection hang on one Network. Nothing sleeps: tests wait for events, with a
// limit that only a failure reaches.
#include "os/network.h"
#include "os/socket_address.h"
#include "support/allocations.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace wherry {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::int64_t limit_ns = 20'000'000'000; // only a failure waits so long

/// What is known of one token's events.
struct Seen {
  int events = 0;
  bool readable = false;
  bool writable = false;
  bool hangup = false;
};

class KernelNetworkTest : public ::testing::Test {
protected:
  KernelNetworkTest() {
    auto made = make_kernel_network();
    EXPECT_TRUE(made);
    network_ = std::move(*made);
  }

  /// Collects events until `done` says so; false when none came for too long.
  template <class Done>
  bool pump(Done&& done) {
    while (!done()) {
      std::array<NetworkEvent, 16> events;
      const std::size_t count = network_->wait(events, limit_ns);
      if (count == 0) {
        return false;
      }
      note(std::span(events).first(count));
    }
    return true;
  }
  /// Takes what is there now.
  void look() {
    std::array<NetworkEvent, 64> events;
    std::size_t count = 0;
    while ((count = network_->wait(events, 0)) > 0) {
      note(std::span(events).first(count));
    }
  }
  void note(std::span<const NetworkEvent> events) {
    for (const NetworkEvent& event : events) {
      Seen& seen = seen_[event.token];
      ++seen.events;
      seen.readable |= event.readable;
      seen.writable |= event.writable;
      seen.hangup |= event.hangup;
    }
  }
  Seen& fresh(std::uint64_t token) { return seen_[token] = Seen(); }

  /// Fills client_ (token 1) and server_ (token 2); the listener has token 3.
  void connect_pair(const std::string& host = "127.0.0.1") {
    auto listener = network_->listen({host, 0}, 3);
    ASSERT_TRUE(listener) << listener.error().message;
    listener_ = *listener;
    connect_to(listener_);
  }
  void connect_to(const Listener& listener) {
    const auto client = network_->connect(listener.bound, 1);
    ASSERT_TRUE(client) << client.error().message;
    client_ = *client;
    server_ = 0;
    ASSERT_TRUE(pump([&] {
      if (server_ == 0) {
        server_ = network_->accept(listener.socket).value_or(0);
      }
      return server_ != 0 && network_->connect_error(client_) != EINPROGRESS;
    }));
    ASSERT_EQ(network_->connect_error(client_), 0);
    network_->set_token(server_, 2);
    look();
  }

  IoResult read(SocketId socket, std::span<char> into) {
    const iovec piece{into.data(), into.size()};
    return network_->readv(socket, std::span(&piece, 1));
  }
  IoResult write(SocketId socket, std::string_view text) {
    const iovec piece{const_cast<char*>(text.data()), text.size()};
    return network_->writev(socket, std::span(&piece, 1));
  }
  /// Reads until EAGAIN, the end or an error, whose result it gives.
  IoResult drain(SocketId socket, std::size_t& bytes) {
    std::vector<char> buffer(65536);
    while (true) {
      const IoResult result = read(socket, buffer);
      if (result.error != 0 || result.bytes == 0) {
        return result;
      }
      bytes += result.bytes;
    }
  }
  /// Writes until EAGAIN.
  std::size_t fill(SocketId socket) {
    const std::string block(65536, 'x');
    std::size_t bytes = 0;
    while (true) {
      const IoResult result = write(socket, block);
      if (result.error != 0) {
        EXPECT_EQ(result.error, EAGAIN);
        return bytes;
      }
      bytes += result.bytes;
    }
  }

  std::unique_ptr<Network> network_;
  std::map<std::uint64_t, Seen> seen_;
  Listener listener_;
  SocketId client_ = 0;
  SocketId server_ = 0;
};

// --- Addresses, listening, connecting ---

TEST_F(KernelNetworkTest, connects_and_carries_bytes_both_ways) {
  connect_pair();
  EXPECT_NE(listener_.bound.port, 0);
  EXPECT_EQ(network_->peer_name(client_), listener_.bound.to_string());
  EXPECT_THAT(network_->peer_name(server_), StartsWith("127.0.0.1:"));
  EXPECT_EQ(network_->accept(listener_.socket).value_or(99), 0U);

  EXPECT_EQ(write(client_, "question").bytes, 8U);
  EXPECT_EQ(write(server_, "answer").bytes, 6U);
  ASSERT_TRUE(pump([&] { return seen_[1].readable && seen_[2].readable; }));
  std::array<char, 64> buffer{};
  EXPECT_EQ(read(server_, buffer).bytes, 8U);
  EXPECT_EQ(std::string(buffer.data(), 8), "question");
  EXPECT_EQ(read(client_, buffer).bytes, 6U);
  EXPECT_EQ(read(client_, buffer).error, EAGAIN);
  EXPECT_EQ(network_->calls().readv, 3U);
  EXPECT_EQ(network_->calls().writev, 2U);
  EXPECT_GT(network_->calls().wait, 0U);
}

TEST_F(KernelNetworkTest, connects_over_ipv6) {
  if (!network_->listen({"::1", 0}, 9)) {
    GTEST_SKIP() << "this machine has no ::1";
  }
  connect_pair("::1");
  EXPECT_EQ(network_->peer_name(client_), listener_.bound.to_string());
  EXPECT_THAT(network_->peer_name(server_), StartsWith("[::1]:"));
  EXPECT_EQ(write(client_, "x").bytes, 1U);
  ASSERT_TRUE(pump([&] { return seen_[2].readable; }));
}

TEST_F(KernelNetworkTest, the_ipv6_wildcard_serves_ipv4_peers_and_names_them_as_such) {
  const auto listener = network_->listen({"::", 0}, 3);
  if (!listener) {
    GTEST_SKIP() << "this machine has no IPv6: " << listener.error().message;
  }
  EXPECT_EQ(listener->bound.host, "::");
  connect_to({listener->socket, {"127.0.0.1", listener->bound.port}});
  EXPECT_THAT(network_->peer_name(server_), StartsWith("127.0.0.1:"));
}

TEST_F(KernelNetworkTest, a_port_that_is_taken_is_an_io_error_of_bind) {
  const auto first = network_->listen({"127.0.0.1", 0}, 1);
  ASSERT_TRUE(first);
  const auto second = network_->listen(first->bound, 2);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::io_error);
  EXPECT_EQ(second.error().native_call, "bind");
  EXPECT_EQ(second.error().native_number, EADDRINUSE);
  EXPECT_THAT(second.error().message, HasSubstr(first->bound.to_string()));
}

TEST_F(KernelNetworkTest, an_owner_that_restarts_gets_its_port_back_at_once) {
  connect_pair();
  network_->close(server_); // closed first: this side goes to TIME_WAIT
  ASSERT_TRUE(pump([&] { return seen_[1].hangup; }));
  network_->close(client_);
  network_->close(listener_.socket);
  EXPECT_TRUE(network_->listen(listener_.bound, 4));
}

TEST_F(KernelNetworkTest, an_address_of_another_machine_cannot_be_listened_on) {
  const auto listener = network_->listen({"192.0.2.1", 0}, 1);
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().native_number, EADDRNOTAVAIL);
}

TEST_F(KernelNetworkTest, R42_host_names_are_refused_and_never_looked_up_here) {
  EXPECT_EQ(network_->listen({"localhost", 0}, 1).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(network_->connect({"localhost", 1}, 1).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(network_->connect({"", 1}, 1).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(network_->connect({"::1%nosuchdevice", 1}, 1).error().code,
            ErrorCode::invalid_argument);
}

TEST_F(KernelNetworkTest, a_refused_connection_says_so_as_often_as_it_is_asked) {
  const auto listener = network_->listen({"127.0.0.1", 0}, 3);
  ASSERT_TRUE(listener);
  network_->close(listener->socket);
  const auto client = network_->connect(listener->bound, 1);
  ASSERT_TRUE(client);
  ASSERT_TRUE(pump([&] { return seen_[1].writable; }));
  EXPECT_TRUE(seen_[1].hangup);
  EXPECT_EQ(network_->connect_error(*client), ECONNREFUSED);
  EXPECT_EQ(network_->connect_error(*client), ECONNREFUSED); // the kernel tells it only once
  EXPECT_EQ(network_->peer_name(*client), listener->bound.to_string());
}

// A listener that accepts nothing, with room for one: the next connections stay undecided.
TEST_F(KernelNetworkTest, an_undecided_connection_is_in_progress_and_takes_no_bytes) {
  const int raw = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto address = *to_socket_address({"127.0.0.1", 0});
  ASSERT_EQ(::bind(raw, &address.any, address.size()), 0);
  ASSERT_EQ(::listen(raw, 0), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(raw, &address.any, &size), 0);
  std::vector<SocketId> sockets;
  for (int i = 0; i < 4; ++i) {
    const auto socket = network_->connect(address.to_address(), 1);
    ASSERT_TRUE(socket);
    sockets.push_back(*socket);
  }
  EXPECT_EQ(network_->connect_error(sockets.front()), 0);
  EXPECT_EQ(network_->connect_error(sockets.back()), EINPROGRESS);
  EXPECT_EQ(write(sockets.back(), "x").error, EAGAIN);
  std::array<char, 1> buffer{};
  EXPECT_EQ(read(sockets.back(), buffer).error, EAGAIN);
  ::close(raw);
}

TEST_F(KernelNetworkTest, accepted_and_connecting_sockets_send_small_pieces_at_once) {
  connect_pair();
  // The descriptors are not to be had through the seam: look at all of this process's.
  int sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::atoi(entry.path().filename().c_str());
    int nodelay = -1;
    socklen_t size = sizeof nodelay;
    sockaddr_in peer{};
    socklen_t peer_size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 &&
        peer.sin_family == AF_INET &&
        ::getsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &nodelay, &size) == 0) {
      ++sockets;
      EXPECT_NE(nodelay, 0) << fd;
    }
  }
  EXPECT_EQ(sockets, 2);
}

TEST_F(KernelNetworkTest, R45_every_descriptor_is_close_on_exec) {
  const auto flags_of_all = [] {
    std::map<int, int> flags;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int fd = std::atoi(entry.path().filename().c_str());
      flags[fd] = ::fcntl(fd, F_GETFD);
    }
    return flags;
  };
  network_.reset();
  const auto before = flags_of_all();
  network_ = std::move(*make_kernel_network());
  connect_pair();
  int ours = 0;
  for (const auto& [fd, flags] : flags_of_all()) {
    if (flags < 0 || before.contains(fd)) {
      continue; // the directory itself, or not ours
    }
    ++ours;
    EXPECT_NE(flags & FD_CLOEXEC, 0) << fd;
  }
  EXPECT_GE(ours, 4); // epoll, eventfd, listener, two ends; one may have an old number
}

// --- Events ---

TEST_F(KernelNetworkTest, an_event_is_told_once_and_again_after_new_bytes_for_a_drained_socket) {
  connect_pair();
  std::array<char, 64> buffer{};
  ASSERT_EQ(read(server_, buffer).error, EAGAIN);
  fresh(2);
  ASSERT_EQ(write(client_, "one").bytes, 3U);
  ASSERT_TRUE(pump([&] { return seen_[2].readable; }));
  EXPECT_FALSE(seen_[2].hangup);
  fresh(2);
  look();
  EXPECT_EQ(seen_[2].events, 0); // unread, but told

  ASSERT_EQ(read(server_, buffer).bytes, 3U); // fewer than offered: no EAGAIN needed
  ASSERT_EQ(write(client_, "two").bytes, 3U);
  EXPECT_TRUE(pump([&] { return seen_[2].readable; }));
}

TEST_F(KernelNetworkTest, room_is_told_after_a_full_socket_was_drained) {
  connect_pair();
  const std::size_t written = fill(client_);
  fresh(1);
  look();
  EXPECT_FALSE(seen_[1].writable);
  std::size_t got = 0;
  ASSERT_TRUE(pump([&] {
    EXPECT_EQ(drain(server_, got).error, EAGAIN);
    return got == written && seen_[1].writable;
  }));
  EXPECT_GT(write(client_, "more").bytes, 0U);
}

TEST_F(KernelNetworkTest, a_short_write_promises_an_event_as_eagain_does) {
  connect_pair();
  const std::string huge(64U << 20, 'x');
  std::size_t written = write(client_, huge).bytes;
  ASSERT_LT(written, huge.size()) << "the kernel took 64 MiB at once";
  fresh(1);
  std::size_t got = 0;
  ASSERT_TRUE(pump([&] {
    EXPECT_EQ(drain(server_, got).error, EAGAIN);
    return got == written && seen_[1].writable;
  }));
}

TEST_F(KernelNetworkTest, the_end_comes_after_the_last_byte_and_the_other_direction_goes_on) {
  connect_pair();
  ASSERT_EQ(write(client_, "last").bytes, 4U);
  network_->shutdown_write(client_);
  ASSERT_TRUE(pump([&] { return seen_[2].hangup; }));
  EXPECT_TRUE(seen_[2].readable);
  std::size_t got = 0;
  const IoResult end = drain(server_, got);
  EXPECT_EQ(got, 4U);
  EXPECT_EQ(end.error, 0);
  EXPECT_EQ(end.bytes, 0U);

  EXPECT_EQ(write(client_, "x").error, EPIPE);
  ASSERT_EQ(write(server_, "answer").bytes, 6U);
  fresh(1);
  ASSERT_TRUE(pump([&] { return seen_[1].readable; }));
  std::array<char, 64> buffer{};
  EXPECT_EQ(read(client_, buffer).bytes, 6U);
}

TEST_F(KernelNetworkTest, closing_with_unread_input_resets_the_peer) {
  connect_pair();
  ASSERT_EQ(write(client_, "unread").bytes, 6U);
  ASSERT_TRUE(pump([&] { return seen_[2].readable; }));
  network_->close(server_);
  ASSERT_TRUE(pump([&] { return seen_[1].hangup; }));
  EXPECT_TRUE(seen_[1].readable);
  EXPECT_TRUE(seen_[1].writable);
  std::array<char, 8> buffer{};
  EXPECT_EQ(read(client_, buffer).error, ECONNRESET);
  EXPECT_THAT(network_->peer_name(client_), StartsWith("127.0.0.1:"));
}

TEST_F(KernelNetworkTest, R42_writing_to_a_gone_peer_is_an_error_and_no_signal) {
  connect_pair();
  network_->close(server_);
  ASSERT_TRUE(pump([&] { return seen_[1].hangup; }));
  IoResult result;
  ASSERT_TRUE(pump([&] {
    result = write(client_, "x"); // the first one provokes the peer's reset
    return result.error != 0;
  }));
  EXPECT_TRUE(result.error == EPIPE || result.error == ECONNRESET) << result.error;
  EXPECT_EQ(write(client_, "x").error, EPIPE);
  const std::array<iovec, 2> two = {iovec{&result, 1}, iovec{&result, 1}};
  EXPECT_EQ(network_->writev(client_, two).error, EPIPE);
}

TEST_F(KernelNetworkTest, a_closed_socket_has_no_events_and_its_id_is_never_used_again) {
  connect_pair();
  const SocketId old = server_;
  ASSERT_EQ(write(client_, "x").bytes, 1U); // an event is ready for it
  network_->close(server_);
  fresh(2);
  look();
  EXPECT_EQ(seen_[2].events, 0);
  std::array<char, 1> buffer{};
  EXPECT_EQ(read(old, buffer).error, EBADF);
  EXPECT_EQ(write(old, "x").error, EBADF);
  EXPECT_EQ(network_->connect_error(old), EBADF);
  network_->set_token(old, 7);
  network_->shutdown_write(old);
  network_->close(old);
  network_->close(client_);
  std::set<SocketId> ids = {old};
  for (int i = 0; i < 20; ++i) {
    connect_to(listener_);
    EXPECT_TRUE(ids.insert(client_).second);
    EXPECT_TRUE(ids.insert(server_).second);
    network_->close(client_);
    network_->close(server_);
  }
}

// The child keeps the descriptor: the kernel's own end of watching does not happen.
TEST_F(KernelNetworkTest, R45_a_forked_child_does_not_keep_closed_sockets_talking) {
  connect_pair();
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    ::close(pipe[1]);
    char byte = 0;
    static_cast<void>(::read(pipe[0], &byte, 1) + 1); // until the parent lets go
    _exit(0);
  }
  network_->close(server_);
  ASSERT_EQ(write(client_, "x").bytes, 1U);
  // Not even a wait that ends early with nothing.
  std::array<NetworkEvent, 4> events;
  while (network_->wait(events, 0) > 0) {
  }
  const auto before = std::chrono::steady_clock::now();
  ASSERT_EQ(write(client_, "y").bytes, 1U);
  EXPECT_EQ(network_->wait(events, 5'000'000), 0U);
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(5));
  ::close(pipe[1]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  ::close(pipe[0]);
}

TEST_F(KernelNetworkTest, hundreds_of_sockets_are_all_told_through_a_small_window) {
  const auto listener = network_->listen({"127.0.0.1", 0}, 0);
  ASSERT_TRUE(listener);
  constexpr std::uint64_t pairs = 300;
  std::vector<SocketId> clients;
  std::vector<SocketId> servers;
  for (std::uint64_t i = 0; i < pairs; ++i) {
    clients.push_back(network_->connect(listener->bound, 1'000 + i).value_or(0));
    ASSERT_TRUE(pump([&] {
      const SocketId server = network_->accept(listener->socket).value_or(0);
      if (server != 0) {
        network_->set_token(server, 2'000 + i);
        servers.push_back(server);
      }
      return servers.size() == i + 1;
    }));
  }
  look();
  seen_.clear();
  for (const SocketId client : clients) {
    ASSERT_EQ(write(client, "x").bytes, 1U);
  }
  std::set<std::uint64_t> told;
  while (told.size() < pairs) {
    std::array<NetworkEvent, 7> window;
    const std::size_t count = network_->wait(window, limit_ns);
    ASSERT_GT(count, 0U);
    for (const NetworkEvent& event : std::span(window).first(count)) {
      ASSERT_GE(event.token, 2'000U);
      if (event.readable) {
        told.insert(event.token);
      }
    }
  }
}

// --- Reading and writing ---

TEST_F(KernelNetworkTest,
       pieces_are_filled_in_order_and_more_than_the_kernel_takes_is_a_short_write) {
  connect_pair();
  std::string text(IOV_MAX + 100, ' ');
  std::vector<iovec> pieces;
  for (std::size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<char>('a' + i % 26);
    pieces.push_back({&text[i], 1});
  }
  EXPECT_EQ(network_->writev(client_, pieces).bytes, static_cast<std::size_t>(IOV_MAX));
  ASSERT_TRUE(pump([&] { return seen_[2].readable; }));
  std::string got(IOV_MAX + 100, ' ');
  std::vector<iovec> into;
  for (char& c : got) {
    into.push_back({&c, 1});
  }
  EXPECT_EQ(network_->readv(server_, into).bytes, static_cast<std::size_t>(IOV_MAX));
  EXPECT_EQ(got.substr(0, IOV_MAX), text.substr(0, IOV_MAX));
}

TEST_F(KernelNetworkTest, the_hot_calls_allocate_nothing) {
  WHERRY_SKIP_WITHOUT_ALLOCATIONS();
  connect_pair();
  std::array<char, 256> out{};
  std::array<char, 256> in{};
  std::array<NetworkEvent, 16> events;
  const std::array<iovec, 2> from = {iovec{out.data(), 100}, iovec{out.data() + 100, 156}};
  const std::array<iovec, 2> into = {iovec{in.data(), 10}, iovec{in.data() + 10, 246}};
  const std::uint64_t before = test::allocation_count();
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(network_->writev(client_, from).bytes, 256U);
    std::size_t got = 0;
    while (got < 256) {
      ASSERT_GT(network_->wait(events, limit_ns), 0U);
      const IoResult result = network_->readv(server_, into);
      got += result.bytes;
    }
  }
  EXPECT_EQ(test::allocation_count(), before);
}

TEST_F(KernelNetworkTest, nothing_to_read_into_is_a_mistake_of_ours) {
  connect_pair();
  const iovec nothing{nullptr, 0};
  EXPECT_DEATH(network_->readv(client_, std::span(&nothing, 1)), "broken invariant");
  EXPECT_DEATH(network_->writev(client_, {}), "broken invariant");
}

// --- Descriptors run out ---

TEST_F(KernelNetworkTest, R42_a_connection_that_found_no_descriptor_is_told_again) {
  connect_pair();
  const auto second = network_->connect(listener_.bound, 4);
  ASSERT_TRUE(second);
  ASSERT_TRUE(pump([&] { return seen_[3].readable; }));

  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest_free = ::dup(0);
  ::close(lowest_free);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(lowest_free);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto refused = network_->accept(listener_.socket);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::io_error);
  EXPECT_EQ(refused.error().native_call, "accept4");
  EXPECT_EQ(refused.error().native_number, EMFILE);

  fresh(3);
  look();
  ASSERT_TRUE(pump([&] { return seen_[3].readable; })); // no connection came in between
  EXPECT_NE(network_->accept(listener_.socket).value_or(0), 0U);
  EXPECT_EQ(network_->accept(listener_.socket).value_or(99), 0U);
}

// --- Waiting and waking ---

TEST_F(KernelNetworkTest, waiting_lasts_its_time_below_a_millisecond_and_above) {
  for (const std::int64_t timeout_ns :
       {std::int64_t{0}, std::int64_t{200'000}, std::int64_t{3'500'000}}) {
    std::array<NetworkEvent, 1> events;
    const auto before = std::chrono::steady_clock::now();
    EXPECT_EQ(network_->wait(events, timeout_ns), 0U);
    EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::nanoseconds(timeout_ns));
  }
}

TEST_F(KernelNetworkTest, a_wake_up_ends_a_wait_of_another_thread) {
  std::thread waker([this] { network_->wake(); });
  std::array<NetworkEvent, 1> events;
  EXPECT_EQ(network_->wait(events, -1), 0U);
  waker.join();
}

TEST_F(KernelNetworkTest, a_wake_up_before_the_wait_ends_the_next_one_only) {
  network_->wake();
  network_->wake();
  std::array<NetworkEvent, 1> events;
  EXPECT_EQ(network_->wait(events, -1), 0U); // would hang
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(network_->wait(events, 1'000'000), 0U);
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(1));
  network_->wake();
  EXPECT_EQ(network_->wait(events, -1), 0U);
}

// Threads publish work, then wake. The waiter blocks for ever each time: a lost wake-up hangs the
// test.
TEST_F(KernelNetworkTest, no_wake_up_is_lost_between_many_threads) {
  constexpr int threads = 4;
  constexpr int rounds = 5'000;
  std::atomic<int> published = 0;
  std::vector<std::thread> wakers;
  wakers.reserve(threads);
  for (int i = 0; i < threads; ++i) {
    wakers.emplace_back([&] {
      for (int n = 0; n < rounds; ++n) {
        published.fetch_add(1, std::memory_order_relaxed);
        network_->wake();
      }
    });
  }
  std::array<NetworkEvent, 1> events;
  while (published.load(std::memory_order_relaxed) < threads * rounds) {
    network_->wait(events, -1);
  }
  for (std::thread& waker : wakers) {
    waker.join();
  }
}

TEST_F(KernelNetworkTest, a_signal_ends_a_wait_so_that_the_application_can_look) {
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  std::atomic<bool> ended = false;
  const pthread_t waiter = pthread_self();
  std::thread sender([&] {
    while (!ended) {
      pthread_kill(waiter, SIGUSR1);
      std::this_thread::yield();
    }
  });
  std::array<NetworkEvent, 1> events;
  EXPECT_EQ(network_->wait(events, -1), 0U);
  ended = true;
  sender.join();
  sigaction(SIGUSR1, &before, nullptr);
}

// --- Names ---

TEST_F(KernelNetworkTest, resolves_numbers_and_localhost_and_explains_what_it_cannot) {
  const auto numeric = network_->resolve("127.0.0.1", 7);
  ASSERT_TRUE(numeric);
  ASSERT_EQ(numeric->size(), 1U);
  EXPECT_EQ(numeric->front().to_string(), "127.0.0.1:7");
  const auto local = network_->resolve("localhost", 8);
  ASSERT_TRUE(local);
  for (const Address& address : *local) {
    EXPECT_TRUE(to_socket_address(address)) << address.host;
    EXPECT_EQ(address.port, 8);
  }
  const auto missing = network_->resolve("no-such-host.invalid", 1);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_EQ(missing.error().native_call, "getaddrinfo");
  EXPECT_THAT(missing.error().message, HasSubstr("no-such-host.invalid"));
}

} // namespace
} // namespace wherry

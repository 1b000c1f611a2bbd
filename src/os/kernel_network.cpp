// The kernel's sockets behind the network seam.
//
// Owns one epoll instance, one eventfd and the sockets. One thread at a time, but for wake() and
// resolve(), which touch nothing that the others change. Never touches signal handlers
// (MSG_NOSIGNAL), prints nothing; every descriptor is close-on-exec from birth (R42, R45).
//
// Every socket is registered once, edge-triggered, for both directions: the steady state makes no
// epoll_ctl call, and readv, writev and wait allocate nothing. The kernel's edges are a superset of
// what network.h promises (it may tell again what was told before).
#include "base/assert.h"
#include "base/ids.h"
#include "os/network.h"
#include "os/socket_address.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <ctime>
#include <utility>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 // Linux 5.11; the number is the same on every architecture
#endif

namespace wherry {
namespace {

constexpr std::size_t events_max = 256; // looked at in one wait()
constexpr std::uint64_t wake_id = 0;    // is never a socket's
constexpr std::int64_t starved_retry_ns = 100'000'000;
constexpr std::uint32_t both_directions = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

/// Closes at the end of a scope.
class OwnedDescriptor {
public:
  explicit OwnedDescriptor(int fd = -1) : fd_(fd) {}
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedDescriptor& operator=(OwnedDescriptor&&) = delete;
  ~OwnedDescriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  int get() const { return fd_; }

private:
  int fd_;
};

struct Socket {
  Socket(OwnedDescriptor&& descriptor, std::uint64_t first_token, const SocketAddress& peer_address)
      : fd(std::move(descriptor)), token(first_token), peer(peer_address) {}

  OwnedDescriptor fd;
  std::uint64_t token;
  SocketAddress peer;    // Kept: after a reset the kernel no longer knows it.
  int connect_error = 0; // EINPROGRESS until decided.
  bool starved = false;  // A listener whose last accept() found no free descriptor.
};

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void set_flag(int fd, int level, int option, int value) {
  // Fails for no reason that could matter: the options exist and the socket is new.
  static_cast<void>(::setsockopt(fd, level, option, &value, sizeof value));
}

std::size_t total_bytes(std::span<const iovec> pieces) {
  std::size_t sum = 0;
  for (const iovec& piece : pieces) {
    sum += piece.iov_len;
  }
  return sum;
}

/// How a connection attempt stands. Asking takes the error from the socket: the caller keeps it.
int ask_connect_error(int fd, const SocketAddress& peer) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
    return errno;
  }
  if (error != 0) {
    return error;
  }
  tcp_info info{};
  size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
    return errno;
  }
  if (info.tcpi_state == TCP_SYN_SENT || info.tcpi_state == TCP_SYN_RECV) {
    return EINPROGRESS;
  }
  // A read or write has taken the error before we asked.
  if (info.tcpi_state == TCP_CLOSE) {
    return ECONNRESET;
  }
  // Connecting to a local port that nobody listens on can meet itself, when the kernel picks the
  // very same port for this end. Nobody is there.
  SocketAddress self;
  size = sizeof self;
  if (::getsockname(fd, &self.any, &size) == 0 && self == peer) {
    return ECONNREFUSED;
  }
  return 0;
}

class KernelNetwork final : public Network {
public:
  KernelNetwork(OwnedDescriptor&& epoll, OwnedDescriptor&& event)
      : epoll_(std::move(epoll)), event_(std::move(event)) {}

  Result<Listener> listen(const Address& address, std::uint64_t token) override;
  Result<SocketId> accept(SocketId listener) override;
  Result<SocketId> connect(const Address& address, std::uint64_t token) override;
  int connect_error(SocketId id) override;
  void set_token(SocketId id, std::uint64_t token) override;
  std::string peer_name(SocketId id) override;
  IoResult readv(SocketId id, std::span<const iovec> into) override;
  IoResult writev(SocketId id, std::span<const iovec> from) override;
  void shutdown_write(SocketId id) override;
  void close(SocketId id) override;
  std::size_t wait(std::span<NetworkEvent> out, std::int64_t timeout_ns) override;
  void wake() override;
  Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port) override;
  Calls calls() const override { return calls_; }

private:
  Result<SocketId> add(OwnedDescriptor&& fd, std::uint64_t token, const SocketAddress& peer,
                       std::uint32_t events);
  int wait_kernel(int count_max, std::int64_t timeout_ns);
  bool translate(const epoll_event& event, NetworkEvent& out);
  void starve(Socket& listener);
  std::size_t feed_starved(std::span<NetworkEvent> out);

  OwnedDescriptor epoll_;
  OwnedDescriptor event_;
  SlotMap<Socket> sockets_;
  std::array<epoll_event, events_max> events_{};
  bool has_pwait2_ = true;
  std::int64_t starved_until_ns_ = -1; // -1: no listener is starved.
  Calls calls_;
  // Spares the system call while a wake-up is already on its way. On its own cache line: other
  // threads write it.
  alignas(64) std::atomic<bool> wake_pending_{false};
};

Result<SocketId> KernelNetwork::add(OwnedDescriptor&& fd, std::uint64_t token,
                                    const SocketAddress& peer, std::uint32_t events) {
  const int number = fd.get();
  const auto [id, socket] = sockets_.emplace(std::move(fd), token, peer);
  WHERRY_ASSERT(socket != nullptr); // 2^32 slots; there are fewer descriptors.
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, number, &event) != 0) {
    const int error = errno; // ENOMEM, or the user's limit of watches
    sockets_.erase(id);
    return fail(native_error("epoll_ctl", error, "a socket cannot be watched"));
  }
  return id;
}

Result<Listener> KernelNetwork::listen(const Address& address, std::uint64_t token) {
  auto local = to_socket_address(address);
  if (!local) {
    return tl::unexpected(std::move(local.error()));
  }
  const auto refuse = [&address](const char* call) {
    return fail(native_error(call, errno, "cannot listen on " + address.to_string()));
  };
  OwnedDescriptor fd(
      ::socket(local->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (fd.get() < 0) {
    return refuse("socket");
  }
  // Connections of an earlier owner in TIME_WAIT do not keep the port.
  set_flag(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (local->any.sa_family == AF_INET6) {
    // A source listens on one address: "[::]" must serve IPv4 peers too, as users of other servers
    // expect, whatever net.ipv6.bindv6only says.
    set_flag(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  }
  if (::bind(fd.get(), &local->any, local->size()) != 0) {
    return refuse("bind");
  }
  if (::listen(fd.get(), SOMAXCONN) != 0) {
    return refuse("listen");
  }
  SocketAddress bound;
  socklen_t size = sizeof bound;
  if (::getsockname(fd.get(), &bound.any, &size) != 0) {
    return refuse("getsockname");
  }

  const auto id = add(std::move(fd), token, SocketAddress(), EPOLLIN | EPOLLET);
  if (!id) {
    return tl::unexpected(id.error());
  }
  return Listener{*id, Address{address.host, bound.to_address().port}};
}

Result<SocketId> KernelNetwork::accept(SocketId listener) {
  Socket* socket = sockets_.find(listener);
  if (socket == nullptr) {
    return fail(native_error("accept4", EBADF, "a closed listener"));
  }
  while (true) {
    SocketAddress peer;
    socklen_t size = sizeof peer;
    const int number = ::accept4(socket->fd.get(), &peer.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (number >= 0) {
      OwnedDescriptor fd(number);
      set_flag(number, IPPROTO_TCP, TCP_NODELAY, 1);
      return add(std::move(fd), 0, peer, both_directions);
    }
    switch (errno) {
    case EAGAIN:
      return SocketId{0};
    // The peer gave up while it was queued, or its network did (accept(2) lists these): the next
    // one may be good.
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
      continue;
    default:
      break;
    }
    const int error = errno;
    starve(*socket);
    return fail(native_error("accept4", error, "cannot take a connection"));
  }
}

/// Out of descriptors or memory: the connection stays in the kernel's queue, and no edge will tell
/// of it again. wait() does, a little later.
void KernelNetwork::starve(Socket& listener) {
  listener.starved = true;
  if (starved_until_ns_ < 0) {
    starved_until_ns_ = monotonic_ns() + starved_retry_ns;
  }
}

std::size_t KernelNetwork::feed_starved(std::span<NetworkEvent> out) {
  if (starved_until_ns_ < 0 || monotonic_ns() < starved_until_ns_) {
    return 0;
  }
  std::size_t count = 0;
  bool left = false;
  sockets_.for_each([&](SocketId, Socket& socket) {
    if (!socket.starved) {
      return;
    }
    left = left || count == out.size();
    if (count == out.size()) {
      return;
    }
    socket.starved = false;
    out[count++] = NetworkEvent{.token = socket.token, .readable = true};
  });
  if (!left) {
    starved_until_ns_ = -1;
  }
  return count;
}

Result<SocketId> KernelNetwork::connect(const Address& address, std::uint64_t token) {
  auto peer = to_socket_address(address);
  if (!peer) {
    return tl::unexpected(std::move(peer.error()));
  }
  const auto refuse = [&address](const char* call) {
    return fail(native_error(call, errno, "cannot connect to " + address.to_string()));
  };
  OwnedDescriptor fd(
      ::socket(peer->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (fd.get() < 0) {
    return refuse("socket");
  }
  set_flag(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  if (::connect(fd.get(), &peer->any, peer->size()) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    return refuse("connect");
  }
  // Watched only now: a socket that has not begun to connect would report a hang-up.
  auto id = add(std::move(fd), token, *peer, both_directions);
  if (id) {
    sockets_.find(*id)->connect_error = EINPROGRESS;
  }
  return id;
}

int KernelNetwork::connect_error(SocketId id) {
  Socket* socket = sockets_.find(id);
  if (socket == nullptr) {
    return EBADF;
  }
  if (socket->connect_error == EINPROGRESS) {
    socket->connect_error = ask_connect_error(socket->fd.get(), socket->peer);
  }
  return socket->connect_error;
}

void KernelNetwork::set_token(SocketId id, std::uint64_t token) {
  Socket* socket = sockets_.find(id);
  if (socket != nullptr) {
    socket->token = token;
  }
}

std::string KernelNetwork::peer_name(SocketId id) {
  const Socket* socket = sockets_.find(id);
  return socket != nullptr ? socket->peer.to_address().to_string() : "a closed socket";
}

IoResult KernelNetwork::readv(SocketId id, std::span<const iovec> into) {
  const Socket* socket = sockets_.find(id);
  if (socket == nullptr) {
    return {0, EBADF};
  }
  WHERRY_ASSERT(total_bytes(into) > 0); // The answer 0 would look like the peer's end.
  ++calls_.readv;
  ssize_t count = 0;
  do {
    // One piece is the common case, and recv spares the kernel the copy of the vector.
    count = into.size() == 1
                ? ::recv(socket->fd.get(), into[0].iov_base, into[0].iov_len, 0)
                : ::readv(socket->fd.get(), into.data(),
                          static_cast<int>(std::min<std::size_t>(into.size(), IOV_MAX)));
  } while (count < 0 && errno == EINTR);
  if (count < 0) {
    return {0, errno};
  }
  return {static_cast<std::size_t>(count), 0};
}

IoResult KernelNetwork::writev(SocketId id, std::span<const iovec> from) {
  const Socket* socket = sockets_.find(id);
  if (socket == nullptr) {
    return {0, EBADF};
  }
  WHERRY_ASSERT(total_bytes(from) > 0);
  ++calls_.writev;
  ssize_t count = 0;
  do {
    if (from.size() == 1) {
      count = ::send(socket->fd.get(), from[0].iov_base, from[0].iov_len, MSG_NOSIGNAL);
    } else {
      msghdr message{};
      message.msg_iov = const_cast<iovec*>(from.data()); // sendmsg only reads it
      message.msg_iovlen = std::min<std::size_t>(from.size(), IOV_MAX);
      count = ::sendmsg(socket->fd.get(), &message, MSG_NOSIGNAL);
    }
  } while (count < 0 && errno == EINTR);
  if (count < 0) {
    return {0, errno};
  }
  return {static_cast<std::size_t>(count), 0};
}

void KernelNetwork::shutdown_write(SocketId id) {
  const Socket* socket = sockets_.find(id);
  // Fails only where the connection is gone, which reading tells.
  if (socket != nullptr) {
    static_cast<void>(::shutdown(socket->fd.get(), SHUT_WR));
  }
}

void KernelNetwork::close(SocketId id) {
  const Socket* socket = sockets_.find(id);
  if (socket == nullptr) {
    return;
  }
  // close() alone would leave it watched if a forked child still holds the descriptor.
  static_cast<void>(::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket->fd.get(), nullptr));
  sockets_.erase(id);
}

int KernelNetwork::wait_kernel(int count_max, std::int64_t timeout_ns) {
  ++calls_.wait;
  if (timeout_ns > 0 && has_pwait2_) {
    const timespec timeout{.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000),
                           .tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000)};
    const long count = ::syscall(SYS_epoll_pwait2, epoll_.get(), events_.data(), count_max,
                                 &timeout, nullptr, std::size_t{0});
    // EPERM: a seccomp filter that does not know the call.
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) {
      return static_cast<int>(count);
    }
    has_pwait2_ = false;
  }
  int timeout_ms = timeout_ns < 0 ? -1 : 0;
  if (timeout_ns > 0) {
    // Rounded up: waking before a deadline would make the caller spin until it.
    timeout_ms =
        static_cast<int>(std::min<std::int64_t>((timeout_ns - 1) / 1'000'000 + 1, INT_MAX));
  }
  return ::epoll_wait(epoll_.get(), events_.data(), count_max, timeout_ms);
}

/// False: nothing that the caller should see.
bool KernelNetwork::translate(const epoll_event& event, NetworkEvent& out) {
  if (event.data.u64 == wake_id) {
    // The eventfd is never read: each write to it is an edge. Whoever skipped its write has
    // published its work before this exchange, and the caller looks for work after it.
    wake_pending_.exchange(false, std::memory_order_acq_rel);
    return false;
  }
  const Socket* socket = sockets_.find(event.data.u64);
  if (socket == nullptr) {
    return false;
  }
  const bool broken = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
  out.token = socket->token;
  out.hangup = broken || (event.events & EPOLLRDHUP) != 0;
  out.readable = out.hangup || (event.events & EPOLLIN) != 0;
  out.writable = broken || (event.events & EPOLLOUT) != 0;
  return true;
}

std::size_t KernelNetwork::wait(std::span<NetworkEvent> out, std::int64_t timeout_ns) {
  WHERRY_ASSERT(!out.empty());
  if (starved_until_ns_ >= 0) {
    const std::int64_t left = std::max<std::int64_t>(starved_until_ns_ - monotonic_ns(), 0);
    if (timeout_ns < 0 || timeout_ns > left) {
      timeout_ns = left;
    }
  }
  // A signal ends the wait with no events: the application may want to look at what it did.
  const int ready = wait_kernel(static_cast<int>(std::min(out.size(), events_max)), timeout_ns);
  std::size_t count = 0;
  for (int i = 0; i < ready; ++i) {
    if (translate(events_[static_cast<std::size_t>(i)], out[count])) {
      ++count;
    }
  }
  return count + feed_starved(out.subspan(count));
}

void KernelNetwork::wake() {
  if (wake_pending_.exchange(true, std::memory_order_acq_rel)) {
    return;
  }
  const std::uint64_t one = 1;
  // Cannot be full: it would take 2^64 wake-ups.
  const ssize_t count = ::write(event_.get(), &one, sizeof one);
  WHERRY_ASSERT(count == static_cast<ssize_t>(sizeof one));
}

Result<std::vector<Address>> KernelNetwork::resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int status = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  const int error_number = errno;
  if (status != 0) {
    Error error;
    error.code = ErrorCode::not_found;
    error.message = "no address of the host " + host + ": " +
                    (status == EAI_SYSTEM ? errno_text(error_number) : ::gai_strerror(status));
    error.native_call = "getaddrinfo";
    error.native_number = status;
    return fail(std::move(error));
  }
  std::vector<Address> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    SocketAddress address;
    if (entry->ai_addrlen > sizeof address) {
      continue;
    }
    std::copy_n(reinterpret_cast<const char*>(entry->ai_addr), entry->ai_addrlen,
                reinterpret_cast<char*>(&address));
    addresses.push_back({address.to_address().host, port});
  }
  ::freeaddrinfo(list);
  return addresses;
}

} // namespace

Result<std::unique_ptr<Network>> make_kernel_network() {
  const auto refuse = [](const char* call) {
    Error error = native_error(call, errno, "the kernel gives no means to wait for sockets");
    error.code = ErrorCode::unavailable;
    return fail(std::move(error));
  };
  OwnedDescriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (epoll.get() < 0) {
    return refuse("epoll_create1");
  }
  OwnedDescriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (event.get() < 0) {
    return refuse("eventfd");
  }
  epoll_event watch{};
  watch.events = EPOLLIN | EPOLLET;
  watch.data.u64 = wake_id;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, event.get(), &watch) != 0) {
    return refuse("epoll_ctl");
  }
  return std::make_unique<KernelNetwork>(std::move(epoll), std::move(event));
}

} // namespace wherry

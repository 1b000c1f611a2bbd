// The network seam: stream sockets that never block, and one place to wait for them.
//
// One Network belongs to one shard. Except for wake(), one thread at a time may call it. A
// simulated one (tests/world) drives the same engine code.
#pragma once

#include "base/error.h"

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wherry {

/// An address to listen on or to connect to. `host` is numeric IPv4 or IPv6 without brackets.
struct Address {
  std::string host;
  std::uint16_t port = 0;
  std::string to_string() const; ///< "127.0.0.1:80", "[::1]:80"
};

/// Splits "HOST:PORT" ("[::1]:80" for IPv6). Errors: invalid_argument, naming the part.
Result<Address> parse_address(std::string_view text);

/// A socket in its Network. 0 is none. Never used again.
using SocketId = std::uint64_t;

/// How a read or write ended: error 0 and how many bytes (0 of a read: the peer's end), or errno
/// (EAGAIN: nothing now, an event will say when).
struct IoResult {
  std::size_t bytes = 0;
  int error = 0;
};

struct Listener {
  SocketId socket = 0;
  Address bound; ///< With the port that was taken.
};

/// What became possible. Edge-triggered: it is said once, after the socket had answered EAGAIN (or
/// moved fewer bytes than it was offered). `hangup` means that reading will show an end or an
/// error.
struct NetworkEvent {
  std::uint64_t token = 0;
  bool readable = false;
  bool writable = false;
  bool hangup = false;
};

class Network {
public:
  virtual ~Network() = default;

  /// Errors: io_error with the call ("bind") and errno.
  virtual Result<Listener> listen(const Address& address, std::uint64_t token) = 0;
  /// The next connection, or 0 with no error when there is none now. Its events carry the token
  /// that set_token gives; until then 0. Errors: io_error (for example EMFILE).
  virtual Result<SocketId> accept(SocketId listener) = 0;
  /// Starts connecting. A first `writable` event says that connect_error() has the answer.
  virtual Result<SocketId> connect(const Address& address, std::uint64_t token) = 0;
  /// 0 when connected, EINPROGRESS while not decided, else the errno.
  virtual int connect_error(SocketId socket) = 0;
  virtual void set_token(SocketId socket, std::uint64_t token) = 0;
  /// "127.0.0.1:53211": for messages.
  virtual std::string peer_name(SocketId socket) = 0;

  virtual IoResult readv(SocketId socket, std::span<const iovec> into) = 0;
  virtual IoResult writev(SocketId socket, std::span<const iovec> from) = 0;
  /// Sends what was written, then the end; reading goes on.
  virtual void shutdown_write(SocketId socket) = 0;
  /// Returns at once; the socket's events end. Unread input makes the kernel reset the connection.
  virtual void close(SocketId socket) = 0;

  /// Waits until there are events, wake() was called, or the timeout has passed (0: only looks;
  /// negative: for ever). Returns how many events were filled in.
  virtual std::size_t wait(std::span<NetworkEvent> out, std::int64_t timeout_ns) = 0;
  /// Makes a wait() that is running or comes next return. Any thread.
  virtual void wake() = 0;

  /// Numeric addresses of a host name. May block: called on the native worker only.
  /// Errors: not_found with getaddrinfo's text.
  virtual Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port) = 0;

  /// System calls made so far, for counters.
  struct Calls {
    std::uint64_t readv = 0, writev = 0, wait = 0;
  };
  virtual Calls calls() const = 0;
};

/// The kernel's: epoll, an eventfd, TCP_NODELAY, close-on-exec, MSG_NOSIGNAL.
/// Errors: unavailable with the call and errno.
Result<std::unique_ptr<Network>> make_kernel_network();

} // namespace wherry

// Numeric addresses as the kernel takes them. Values; any thread.
#pragma once

#include "os/network.h"

#include <netinet/in.h>
#include <sys/socket.h>

namespace wherry {

/// An IPv4 or IPv6 address; family AF_UNSPEC: none.
union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;

  SocketAddress() : v6{} {}
  socklen_t size() const;
  /// An IPv4 peer of a listener for both families is shown as the IPv4 address that it has.
  Address to_address() const;
  bool operator==(const SocketAddress& other) const;
};

/// Errors: invalid_argument when `host` is no numeric address ("::1", "fe80::1%eth0", "10.0.0.1").
Result<SocketAddress> to_socket_address(const Address& address);

} // namespace wherry

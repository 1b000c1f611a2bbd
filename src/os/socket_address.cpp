// Numeric addresses to and from the kernel's form. Any thread. if_nametoindex, for the zone of a
// link-local address, is the one system call here.
#include "os/socket_address.h"

#include <arpa/inet.h>
#include <net/if.h>

#include <cstring>

namespace wherry {

socklen_t SocketAddress::size() const {
  return any.sa_family == AF_INET6 ? sizeof v6 : sizeof v4;
}

Address SocketAddress::to_address() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (any.sa_family == AF_INET) {
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return {text, ntohs(v4.sin_port)};
  }
  if (any.sa_family != AF_INET6) {
    return {"unknown", 0};
  }
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
    return {text, ntohs(v6.sin6_port)};
  }
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  std::string host = text;
  char zone[IF_NAMESIZE];
  if (v6.sin6_scope_id != 0 && if_indextoname(v6.sin6_scope_id, zone) != nullptr) {
    host += '%';
    host += zone;
  }
  return {std::move(host), ntohs(v6.sin6_port)};
}

bool SocketAddress::operator==(const SocketAddress& other) const {
  if (any.sa_family != other.any.sa_family) {
    return false;
  }
  if (any.sa_family == AF_INET) {
    return v4.sin_port == other.v4.sin_port && v4.sin_addr.s_addr == other.v4.sin_addr.s_addr;
  }
  return v6.sin6_port == other.v6.sin6_port && v6.sin6_scope_id == other.v6.sin6_scope_id &&
         std::memcmp(&v6.sin6_addr, &other.v6.sin6_addr, sizeof v6.sin6_addr) == 0;
}

Result<SocketAddress> to_socket_address(const Address& address) {
  SocketAddress result;
  if (inet_pton(AF_INET, address.host.c_str(), &result.v4.sin_addr) == 1) {
    result.v4.sin_family = AF_INET;
    result.v4.sin_port = htons(address.port);
    return result;
  }
  result = SocketAddress();
  const std::size_t percent = address.host.find('%');
  const std::string host = address.host.substr(0, percent);
  if (inet_pton(AF_INET6, host.c_str(), &result.v6.sin6_addr) != 1) {
    return fail(ErrorCode::invalid_argument,
                "\"" + address.host + "\" is not a numeric IPv4 or IPv6 address");
  }
  if (percent != std::string::npos) {
    result.v6.sin6_scope_id = if_nametoindex(address.host.c_str() + percent + 1);
    if (result.v6.sin6_scope_id == 0) {
      return fail(ErrorCode::invalid_argument,
                  "\"" + address.host + "\" names an interface that is not there");
    }
  }
  result.v6.sin6_family = AF_INET6;
  result.v6.sin6_port = htons(address.port);
  return result;
}

} // namespace wherry

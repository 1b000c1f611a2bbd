// The small grammars that references and addresses share: decimal numbers, hosts. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wherry {

/// Digits only, no sign, no leading zero but "0" itself, at most `max`.
std::optional<std::uint64_t> parse_decimal(std::string_view text, std::uint64_t max);

/// HOST:PORT as it was split; nothing is judged yet but the brackets.
struct HostAndPort {
  std::string_view host; ///< Without brackets.
  std::string_view port;
  bool bracketed = false;
};

/// Splits at the colon behind the host. A text explains what is wrong with it.
struct HostAndPortSplit {
  HostAndPort parts;
  std::string problem; ///< Empty: none.
};
HostAndPortSplit split_host_and_port(std::string_view text);

/// What is wrong with a host; empty if nothing. Bracketed: an IPv6 address. Otherwise an IPv4
/// address, or a host name of letters, digits, '.' and '-'.
std::string host_problem(std::string_view host, bool bracketed);

} // namespace wherry

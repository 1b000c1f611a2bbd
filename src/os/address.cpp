// Addresses as text. Pure; any thread.
#include "base/error.h"
#include "base/syntax.h"
#include "os/network.h"

namespace wherry {
namespace {

tl::unexpected<Error> refuse(std::string_view text, std::string_view problem) {
  return fail(ErrorCode::invalid_argument, "not an address: \"" + std::string(text) +
                                               "\": " + std::string(problem) +
                                               " (for example 127.0.0.1:7000 or [::1]:7000)");
}

} // namespace

std::string Address::to_string() const {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Address> parse_address(std::string_view text) {
  const auto [parts, problem] = split_host_and_port(text);
  if (!problem.empty()) {
    return refuse(text, problem);
  }
  if (const auto wrong = host_problem(parts.host, parts.bracketed); !wrong.empty()) {
    return refuse(text, wrong);
  }
  const auto port = parse_decimal(parts.port, UINT16_MAX);
  if (!port) {
    return refuse(text, "the port is not a decimal number from 0 to 65535");
  }
  return Address{std::string(parts.host), static_cast<std::uint16_t>(*port)};
}

} // namespace wherry

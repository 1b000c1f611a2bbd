// Decimal numbers and hosts. Pure; any thread.
#include "base/syntax.h"

namespace wherry {
namespace {

constexpr std::size_t host_bytes_max = 253; // RFC 1035, without the root's dot

bool is_ipv4(std::string_view text) {
  int octets = 0;
  while (true) {
    const std::size_t dot = text.find('.');
    if (++octets > 4 || !parse_decimal(text.substr(0, dot), 255)) {
      return false;
    }
    if (dot == std::string_view::npos) {
      return octets == 4;
    }
    text.remove_prefix(dot + 1);
  }
}

bool is_ipv6_group(std::string_view text) {
  return !text.empty() && text.size() <= 4 &&
         text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

/// How many groups of 16 bits stand in a run of "GROUP:GROUP"; an IPv4 address at the end counts as
/// two. -1: it is no such run. The empty run has none.
int count_ipv6_groups(std::string_view text, bool may_end_in_ipv4) {
  int groups = 0;
  while (!text.empty()) {
    const std::size_t colon = text.find(':');
    const std::string_view group = text.substr(0, colon);
    if (colon == std::string_view::npos && may_end_in_ipv4 && is_ipv4(group)) {
      return groups + 2;
    }
    if (!is_ipv6_group(group)) {
      return -1;
    }
    ++groups;
    if (colon == std::string_view::npos) {
      return groups;
    }
    text.remove_prefix(colon + 1);
    if (text.empty()) {
      return -1; // a colon at the end
    }
  }
  return groups;
}

bool is_ipv6(std::string_view text) {
  const std::size_t gap = text.find("::");
  if (gap == std::string_view::npos) {
    return count_ipv6_groups(text, true) == 8;
  }
  const int before = count_ipv6_groups(text.substr(0, gap), false);
  const int after = count_ipv6_groups(text.substr(gap + 2), true);
  return before >= 0 && after >= 0 && before + after <= 7;
}

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-';
}

} // namespace

std::optional<std::uint64_t> parse_decimal(std::string_view text, std::uint64_t max) {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (digit > max || value > (max - digit) / 10) {
      return std::nullopt;
    }
    value = value * 10 + digit;
  }
  return value;
}

HostAndPortSplit split_host_and_port(std::string_view text) {
  HostAndPortSplit split;
  std::size_t colon = std::string_view::npos;
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) {
      split.problem = "the host's '[' has no ']'";
      return split;
    }
    split.parts.bracketed = true;
    split.parts.host = text.substr(1, bracket - 1);
    if (bracket + 1 < text.size() && text[bracket + 1] == ':') {
      colon = bracket + 1;
    }
  } else {
    colon = text.find(':');
    if (colon != std::string_view::npos && text.find(':', colon + 1) != std::string_view::npos) {
      split.problem = "the host has several colons; an IPv6 address stands in brackets";
      return split;
    }
    split.parts.host = text.substr(0, colon);
  }
  if (colon == std::string_view::npos) {
    split.problem = "the port is missing";
    return split;
  }
  split.parts.port = text.substr(colon + 1);
  return split;
}

std::string host_problem(std::string_view host, bool bracketed) {
  if (host.empty()) {
    return "the host is missing";
  }
  if (host.find('\0') != std::string_view::npos) {
    return "the host contains a NUL";
  }
  if (bracketed) {
    if (is_ipv6(host)) {
      return {};
    }
    return "the host in brackets is not an IPv6 address";
  }
  for (const char c : host) {
    if (!is_host_character(c)) {
      return "the host has a character that is no letter, digit, '.' or '-'";
    }
  }
  if (host.size() > host_bytes_max) {
    return "the host is longer than 253 bytes";
  }
  // A text of digits and dots alone is meant as an IPv4 address; no name server should be asked for
  // "127.0.0.256", nor should "127.1" silently mean 127.0.0.1.
  const bool digits_and_dots = host.find_first_not_of("0123456789.") == std::string_view::npos;
  if (digits_and_dots && !is_ipv4(host)) {
    return "the host is not an IPv4 address";
  }
  return {};
}

} // namespace wherry

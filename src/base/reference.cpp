// SourceReference: `wherry://HOST:PORT/NAME?epoch=E` to and from its parts (R20). Pure; any thread.
// The text comes from users and files: nothing in it may do more than be refused (R42).
#include "base/error.h"
#include "base/syntax.h"

#include <wherry/source.hpp>

#include <algorithm>
#include <string>

namespace wherry {
namespace {

constexpr std::size_t name_bytes_max = 4095;
constexpr std::string_view scheme = "wherry://";

/// Every refusal names the part and shows what a reference looks like.
tl::unexpected<Error> refuse(std::string_view problem) {
  return fail(ErrorCode::invalid_argument,
              "not a source reference: " + std::string(problem) +
                  " (for example wherry://10.0.0.1:7000/weights?epoch=42)");
}

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  if (c >= 'A' && c <= 'F') {
    return c - 'A' + 10;
  }
  return -1;
}

Result<std::string> decode_name(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 1 < text.size() ? hex_value(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return refuse("a '%' in the name is not followed by two hex digits");
      }
      c = static_cast<char>(high * 16 + low);
      i += 2;
      if (c == '\0') {
        return refuse("the name contains a NUL");
      }
    } else if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || c == '#') {
      // Mostly a line end that was pasted along; a raw byte of UTF-8 is welcome.
      return refuse("the name has a space, control character or '#'; write it as %20 and so on");
    }
    name += c;
    if (name.size() > name_bytes_max) {
      return refuse("the name is longer than 4095 bytes");
    }
  }
  if (name.empty()) {
    return refuse("the name is missing");
  }
  return name;
}

Result<std::uint64_t> parse_epoch(std::string_view query) {
  constexpr std::string_view key = "epoch=";
  if (!query.starts_with(key)) {
    return refuse("after '?' only epoch=NUMBER is known");
  }
  const auto epoch = parse_decimal(query.substr(key.size()), UINT64_MAX);
  if (!epoch || *epoch == 0) {
    return refuse("the epoch is not a decimal number from 1 to 2^64-1");
  }
  return *epoch;
}

} // namespace

inline namespace v0 {

Result<SourceReference> SourceReference::parse(std::string_view text) {
  if (!text.starts_with(scheme)) {
    return refuse("it does not start with the scheme wherry://");
  }
  text.remove_prefix(scheme.size());
  const std::size_t slash = text.find('/');
  const std::size_t authority_end = std::min(slash, text.find('?'));
  const auto [parts, problem] = split_host_and_port(text.substr(0, authority_end));
  if (!problem.empty()) {
    return refuse(problem);
  }
  if (const auto wrong = host_problem(parts.host, parts.bracketed); !wrong.empty()) {
    return refuse(wrong);
  }
  const auto port = parse_decimal(parts.port, UINT16_MAX);
  if (!port || *port == 0) {
    return refuse("the port is not a decimal number from 1 to 65535");
  }
  if (slash != authority_end || slash == std::string_view::npos) {
    return refuse("the name is missing");
  }

  SourceReference reference;
  reference.host = parts.host;
  reference.port = static_cast<std::uint16_t>(*port);
  text.remove_prefix(slash + 1);
  const std::size_t question = text.find('?');
  auto name = decode_name(text.substr(0, question));
  if (!name) {
    return tl::unexpected(std::move(name.error()));
  }
  reference.name = std::move(*name);
  if (question != std::string_view::npos) {
    const auto epoch = parse_epoch(text.substr(question + 1));
    if (!epoch) {
      return tl::unexpected(epoch.error());
    }
    reference.epoch = *epoch;
  }
  return reference;
}

std::string SourceReference::to_string() const {
  constexpr char digits[] = "0123456789ABCDEF";
  const bool is_ipv6 = host.find(':') != std::string::npos;
  std::string text(scheme);
  text += is_ipv6 ? "[" + host + "]" : host;
  text += ":" + std::to_string(port) + "/";
  for (const char c : name) {
    if (is_unreserved(c) || c == '/') {
      text += c;
      continue;
    }
    text += '%';
    text += digits[static_cast<unsigned char>(c) >> 4];
    text += digits[static_cast<unsigned char>(c) & 15];
  }
  if (epoch) {
    text += "?epoch=" + std::to_string(*epoch);
  }
  return text;
}

} // namespace v0
} // namespace wherry

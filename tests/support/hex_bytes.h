// Bytes to and from hexadecimal digits, for golden encodings.
#pragma once

#include "base/assert.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::testing {

inline std::string to_hex(std::span<const std::byte> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += digits[static_cast<std::uint8_t>(byte) >> 4];
    text += digits[static_cast<std::uint8_t>(byte) & 15];
  }
  return text;
}

inline std::vector<std::byte> from_hex(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  WHERRY_ASSERT(text.size() % 2 == 0);
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(digits.find(text[i]) * 16 + digits.find(text[i + 1])));
  }
  return bytes;
}

} // namespace wherry::testing

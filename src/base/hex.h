// Bytes as lower-case hexadecimal digits. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace wherry {

inline std::string hex_text(std::span<const std::uint8_t> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

} // namespace wherry

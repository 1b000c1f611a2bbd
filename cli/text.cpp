#include "text.h"

#include <fmt/format.h>

#include <cstdint>

namespace wherry::cli {
namespace {

std::uint32_t decode(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(character[i]); };
  switch (character.size()) {
  case 1:
    return byte(0);
  case 2:
    return (byte(0) & 0x1FU) << 6 | (byte(1) & 0x3FU);
  case 3:
    return (byte(0) & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU);
  default:
    return (byte(0) & 0x07U) << 18 | (byte(1) & 0x3FU) << 12 | (byte(2) & 0x3FU) << 6 |
           (byte(3) & 0x3FU);
  }
}

// Controls of both tables, line and paragraph separators, and what overrides writing direction.
bool must_be_escaped(std::uint32_t character) {
  return character < 0x20 || (character >= 0x7F && character < 0xA0) ||
         (character >= 0x200E && character <= 0x200F) ||
         (character >= 0x2028 && character <= 0x202E) ||
         (character >= 0x2066 && character <= 0x2069) || character == 0xFEFF;
}

void append_escaped(std::string& text, std::string_view bytes) {
  for (const char c : bytes) {
    switch (c) {
    case '\n':
      text += "\\n";
      break;
    case '\r':
      text += "\\r";
      break;
    case '\t':
      text += "\\t";
      break;
    default:
      text += fmt::format("\\x{:02x}", static_cast<std::uint8_t>(c));
    }
  }
}

} // namespace

std::size_t utf8_length(std::string_view bytes) {
  if (bytes.empty()) {
    return 0;
  }
  const auto first = static_cast<std::uint8_t>(bytes[0]);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length == 0 || bytes.size() < length) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<std::uint8_t>(bytes[i]) & 0xC0U) != 0x80) {
      return 0;
    }
  }
  const std::uint32_t character = decode(bytes.substr(0, length));
  const bool overlong = (length == 3 && character < 0x800) || (length == 4 && character < 0x10000);
  const bool surrogate = character >= 0xD800 && character < 0xE000;
  return overlong || surrogate || character > 0x10FFFF ? 0 : length;
}

std::string printable(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    const std::string_view taken = bytes.substr(0, length == 0 ? 1 : length);
    if (length == 0 || must_be_escaped(decode(taken))) {
      append_escaped(text, taken);
    } else {
      text += taken;
    }
    bytes.remove_prefix(taken.size());
  }
  return text;
}

std::string replace_invalid(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    if (length == 0) {
      text += "\xEF\xBF\xBD";
      bytes.remove_prefix(1);
    } else {
      text += bytes.substr(0, length);
      bytes.remove_prefix(length);
    }
  }
  return text;
}

std::string base64(std::string_view bytes) {
  static constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view group = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (j < group.size() ? static_cast<std::uint8_t>(group[j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += j <= group.size() ? digits[bits >> (18 - 6 * j) & 0x3FU] : '=';
    }
  }
  return text;
}

} // namespace wherry::cli

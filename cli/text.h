// Names are byte vectors; terminals and JSON want text. How one becomes the other. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace wherry::cli {

/// How many bytes at the start of `bytes` form one valid UTF-8 character; 0 where they form none.
std::size_t utf8_length(std::string_view bytes);

/// For one line of a terminal: what moves the cursor, starts an escape sequence, turns the writing
/// direction or is no UTF-8 stands as `\n`, `\x1b`, `\xff`. A peer chooses names; it must not get
/// to draw on the user's screen.
std::string printable(std::string_view bytes);

/// For JSON: bytes that are no UTF-8 become U+FFFD, one each.
std::string replace_invalid(std::string_view bytes);

/// RFC 4648, with padding.
std::string base64(std::string_view bytes);

} // namespace wherry::cli

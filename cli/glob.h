// Patterns over range names. Pure.
#pragma once

#include <string_view>

namespace wherry::cli {

/// Whether the text holds a character that means something in a pattern.
bool is_glob(std::string_view text);

/// Whether all of `name` matches. `?` is one byte but `/`, `*` any number of them, `**` any number
/// with `/` too, `[a-z]` and `[!a-z]` one of a set, `\` takes the next byte as it is. An unfinished
/// `[` stands for itself. The time is at most pattern times name, whatever the owner's names are.
bool glob_match(std::string_view pattern, std::string_view name);

} // namespace wherry::cli

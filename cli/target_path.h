// Which file names an owner's range names may become. Pure: judged before any file is made, because
// the owner of the names is not trusted (R42).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::cli {

/// What a file is called while it is incomplete: `TARGET.wherry-part`. A last component for which
/// that would be too long for a file system is cut, and told apart by a hash.
std::string part_path(std::string_view target);

/// Why the name cannot be a path below a directory: empty, NUL, absolute, an empty, `.` or `..`
/// component, one of more than 255 bytes. Nothing where it can.
std::optional<std::string> unsafe_name(std::string_view name);

struct RefusedName {
  std::size_t index = 0; ///< In the names given.
  std::string reason;
};

/// Which of these names cannot be files of one directory: the unsafe ones, and those that collide
/// (the same twice, a file where another needs a directory, or where another's part file goes).
std::vector<RefusedName> refused_names(std::span<const std::string_view> names);

} // namespace wherry::cli

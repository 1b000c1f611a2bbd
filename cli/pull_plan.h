// Which range goes into which file: decided from names alone, before a file is made. Pure.
#pragma once

#include "session.h"

#include <wherry/error.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::cli {

/// What is known of DEST.
struct PullTarget {
  std::string dest;               ///< As given; may be empty, is not `-`.
  bool is_directory = false;      ///< Whether it exists as one (or ends in a slash).
  bool single = false;            ///< Whether one range was named, by its name.
  std::string_view source_name{}; ///< Of the reference.
};

struct PullRoot {
  std::string directory;             ///< Into which files go.
  std::optional<std::string> file{}; ///< The name of the only one, where DEST gives it.
};

/// A range named alone goes to the file DEST, anything else into the directory DEST. Without DEST
/// the range's or the source's name stands for it. Error: invalid_argument (the source's name is
/// none for a directory).
Result<PullRoot> pull_root(const PullTarget& target);

struct PullItem {
  std::string name;   ///< Of the range.
  std::string target; ///< Of the file, below the root.
  RemoteRange range;
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;
};

/// Offset and length fitted to the range. Error: out_of_range.
Result<PullItem> pull_item(NamedRemoteRange range, std::uint64_t offset,
                           std::optional<std::uint64_t> length);

/// Refuses the whole pull where names cannot be files. Error: invalid_argument, which lists some.
Result<void> check_targets(std::span<const PullItem> items);

} // namespace wherry::cli

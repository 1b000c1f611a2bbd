// What `serve` publishes: the files that its RANGEs name, and what was left out. Looks at files and
// directories, opens none.
#pragma once

#include "range_spec.h"

#include <wherry/error.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace wherry::cli {

struct CatalogEntry {
  std::string name;
  std::string path; ///< Empty for memory.
  bool writable = false;
  std::uint64_t length_bytes = 0; ///< Of memory.
  std::optional<std::uint64_t> random_seed{};
};

class Catalog {
public:
  /// Errors: invalid_argument (no such path, two ranges of one name), io_error.
  Result<void> add(const RangeSpec& spec);

  const std::vector<CatalogEntry>& entries() const { return entries_; }

  /// Leaves out what cannot be published.
  void skip(const std::string& kind, const std::string& path);
  /// "3 entries were left out: 2 sockets (a, b), 1 dangling link (c)"; empty where there is none.
  std::string skipped_text() const;

private:
  struct Skipped {
    std::size_t count = 0;
    std::vector<std::string> examples;
  };

  Result<void> add_memory(const RangeSpec& spec);
  Result<void> add_directory(const RangeSpec& spec);
  Result<void> add_file(const RangeSpec& spec, std::string name, const std::string& path);
  Result<void> add_entry(CatalogEntry entry);

  std::vector<CatalogEntry> entries_;
  std::unordered_map<std::string, std::string> paths_; // by name, for the collision's words
  std::map<std::string, Skipped> skipped_;             // by kind
};

/// The name that a path gives: its last component, that of `.` included.
std::string default_name(const std::string& path);

/// Makes the file of a spec with `create`, where there is none; one that is there must have the
/// size. Errors: invalid_argument, io_error (the disk is full).
Result<void> create_file(const RangeSpec& spec);

} // namespace wherry::cli

// What `serve` is told to publish: PATH[,name=N][,access=read|write][,size=S,create] or
// mem:SIZE[,fill=zero|random:SEED][,name=N][,access=read|write]. Pure.
#pragma once

#include <wherry/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wherry::cli {

struct RangeSpec {
  bool memory = false;
  std::string path;                  ///< Of a file or directory.
  std::optional<std::string> name{}; ///< Raw bytes, 1 to 4095, without NUL.
  bool writable = false;
  std::uint64_t size_bytes = 0;               ///< Of memory, and of a file to create.
  bool create = false;                        ///< Make the file where it is not there yet.
  std::optional<std::uint64_t> random_seed{}; ///< Memory is zero without one.
};

/// Errors: invalid_argument, which names the RANGE and the part of it that is wrong.
Result<RangeSpec> parse_range_spec(std::string_view text);

/// Fills memory with bytes that depend on the seed alone, the same everywhere.
void fill_random(std::uint64_t seed, unsigned char* bytes, std::uint64_t length_bytes);

} // namespace wherry::cli

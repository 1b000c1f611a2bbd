// What kind of memory stands at an address, as the kernel says it (/proc/self/maps).
#pragma once

#include "base/error.h"

#include <cstddef>
#include <span>

namespace wherry {

struct MemoryFacts {
  bool mapped = false;   ///< All of it.
  bool readable = false; ///< All of it.
  bool writable = false; ///< All of it.
};

/// Never touches the memory. Errors: unavailable, when the kernel does not tell.
Result<MemoryFacts> probe_memory(std::span<const std::byte> bytes);

} // namespace wherry

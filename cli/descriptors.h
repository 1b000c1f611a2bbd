// How many files may be open at a time, here and in the library, under the process's limit.
#pragma once

#include <cstdint>

namespace wherry::cli {

struct DescriptorBudget {
  std::uint32_t library_files = 0; ///< Limits::open_files
  std::uint32_t part_files = 0;    ///< What a pull holds open besides.
};

/// For a process that may have `limit` descriptors. Sockets come first; a process with few of them
/// still gets on, with fewer files at a time. Pure.
DescriptorBudget descriptor_budget(std::uint64_t limit);

/// Raises the process's limit as far as it may, and gives the budget for it.
DescriptorBudget raise_descriptor_limit();

} // namespace wherry::cli

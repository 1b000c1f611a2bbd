#include "descriptors.h"

#include <sys/resource.h>

#include <algorithm>

namespace wherry::cli {
namespace {

constexpr std::uint64_t other_descriptors = 96; // lanes, events, directories, standard streams
constexpr std::uint64_t library_files_max = 256;
constexpr std::uint64_t part_files_max = 256;

} // namespace

DescriptorBudget descriptor_budget(std::uint64_t limit) {
  const std::uint64_t files = limit > other_descriptors ? limit - other_descriptors : 0;
  return {static_cast<std::uint32_t>(std::clamp<std::uint64_t>(files / 2, 8, library_files_max)),
          static_cast<std::uint32_t>(std::clamp<std::uint64_t>(files / 3, 4, part_files_max))};
}

DescriptorBudget raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return descriptor_budget(1024);
  }
  if (limit.rlim_cur < limit.rlim_max) {
    rlimit raised{limit.rlim_max, limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) {
      limit = raised;
    }
  }
  return descriptor_budget(limit.rlim_cur);
}

} // namespace wherry::cli

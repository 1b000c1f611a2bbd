#include "target_path.h"

#include "text.h"

#include <fmt/format.h>

// The whole of xxHash as static functions: nothing to link.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace wherry::cli {
namespace {

constexpr std::string_view part_suffix = ".wherry-part";
constexpr std::size_t component_bytes_max = 255; // NAME_MAX of the file systems that matter
constexpr std::size_t hash_digits = 16;

// Orders `/` before every other byte: what lies below a directory then stands right behind it.
bool path_less(std::string_view left, std::string_view right) {
  const auto rank = [](char c) { return c == '/' ? 0 : int{static_cast<std::uint8_t>(c)} + 1; };
  return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(),
                                      [&](char a, char b) { return rank(a) < rank(b); });
}

bool is_below(std::string_view path, std::string_view directory) {
  return path.size() > directory.size() && path.starts_with(directory) &&
         path[directory.size()] == '/';
}

std::optional<std::string> unsafe_component(std::string_view component) {
  if (component.empty()) {
    return "it has an empty component";
  }
  if (component == "." || component == "..") {
    return fmt::format("it has the component '{}'", component);
  }
  if (component.size() > component_bytes_max) {
    return fmt::format("a component of it has {} bytes, and files have at most {}",
                       component.size(), component_bytes_max);
  }
  return {};
}

// Why the name at `at` of the sorted names collides with another.
std::optional<std::string> collision(std::span<const std::string_view> names,
                                     std::span<const std::size_t> sorted, std::size_t at) {
  const std::string_view name = names[sorted[at]];
  if (at > 0 && names[sorted[at - 1]] == name) {
    return "another range has the same name";
  }
  if (at + 1 < sorted.size() && is_below(names[sorted[at + 1]], name)) {
    return fmt::format("it would have to be a directory too, for '{}'",
                       printable(names[sorted[at + 1]]));
  }
  const std::string part = part_path(name);
  const auto found = std::lower_bound(
      sorted.begin(), sorted.end(), std::string_view(part),
      [&](std::size_t index, std::string_view wanted) { return path_less(names[index], wanted); });
  if (found != sorted.end() && (names[*found] == part || is_below(names[*found], part))) {
    return fmt::format("its part file would be in the place of '{}'", printable(names[*found]));
  }
  return {};
}

} // namespace

std::string part_path(std::string_view target) {
  const std::size_t slash = target.rfind('/');
  const std::size_t base_at = slash == std::string_view::npos ? 0 : slash + 1;
  const std::string_view base = target.substr(base_at);
  std::string path(target.substr(0, base_at));
  if (base.size() + part_suffix.size() <= component_bytes_max) {
    path += base;
  } else {
    const std::size_t kept = component_bytes_max - part_suffix.size() - hash_digits - 1;
    path += base.substr(0, kept);
    path += fmt::format("~{:016x}", XXH3_64bits(base.data(), base.size()));
  }
  path += part_suffix;
  return path;
}

std::optional<std::string> unsafe_name(std::string_view name) {
  if (name.empty()) {
    return "it is empty";
  }
  if (name.find('\0') != std::string_view::npos) {
    return "it has a NUL byte";
  }
  if (name.front() == '/') {
    return "it is an absolute path";
  }
  for (std::size_t start = 0; start <= name.size();) {
    const std::size_t end = std::min(name.find('/', start), name.size());
    if (auto reason = unsafe_component(name.substr(start, end - start))) {
      return reason;
    }
    start = end + 1;
  }
  return {};
}

std::vector<RefusedName> refused_names(std::span<const std::string_view> names) {
  std::vector<RefusedName> refused;
  std::vector<std::size_t> sorted;
  sorted.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (auto reason = unsafe_name(names[i])) {
      refused.push_back({i, std::move(*reason)});
    } else {
      sorted.push_back(i);
    }
  }
  // Names that are the same stay in their order.
  std::sort(sorted.begin(), sorted.end(), [&](std::size_t left, std::size_t right) {
    if (path_less(names[left], names[right])) {
      return true;
    }
    return left < right && !path_less(names[right], names[left]);
  });
  for (std::size_t at = 0; at < sorted.size(); ++at) {
    if (auto reason = collision(names, sorted, at)) {
      refused.push_back({sorted[at], std::move(*reason)});
    }
  }
  return refused;
}

} // namespace wherry::cli

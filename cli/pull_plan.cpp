#include "pull_plan.h"

#include "errors.h"
#include "target_path.h"
#include "text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace wherry::cli {
namespace {

constexpr std::size_t listed_max = 10;

PullRoot file_at(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) {
    return {".", path};
  }
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

} // namespace

Result<PullRoot> pull_root(const PullTarget& target) {
  if (target.single) {
    if (target.dest.empty()) {
      return PullRoot{".", {}};
    }
    return target.is_directory ? PullRoot{target.dest, {}} : file_at(target.dest);
  }
  if (!target.dest.empty()) {
    return PullRoot{target.dest, {}};
  }
  if (const auto reason = unsafe_name(target.source_name)) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("the source's name '{}' cannot name a directory here: {}; name one as DEST",
                    printable(target.source_name), *reason));
  }
  return PullRoot{std::string(target.source_name), {}};
}

Result<PullItem> pull_item(NamedRemoteRange range, std::uint64_t offset,
                           std::optional<std::uint64_t> length) {
  const std::uint64_t all = range.range.length_bytes;
  if (offset > all || length.value_or(0) > all - offset) {
    return fail(ErrorCode::out_of_range,
                fmt::format("'{}' has {} bytes; offset {} and length {} do not fit",
                            printable(range.name), all, offset,
                            length ? fmt::format("{}", *length) : "none"));
  }
  PullItem item;
  item.target = range.name;
  item.name = std::move(range.name);
  item.range = range.range;
  item.offset = offset;
  item.length_bytes = length.value_or(all - offset);
  return item;
}

Result<void> check_targets(std::span<const PullItem> items) {
  std::vector<std::string_view> names;
  names.reserve(items.size());
  for (const PullItem& item : items) {
    names.emplace_back(item.target);
  }
  const std::vector<RefusedName> refused = refused_names(names);
  if (refused.empty()) {
    return {};
  }
  std::string list;
  for (std::size_t i = 0; i < std::min(refused.size(), listed_max); ++i) {
    list += fmt::format("{}'{}': {}", i == 0 ? "" : "; ", printable(names[refused[i].index]),
                        refused[i].reason);
  }
  if (refused.size() > listed_max) {
    list += fmt::format("; and {} more", refused.size() - listed_max);
  }
  return fail(
      ErrorCode::invalid_argument,
      fmt::format(
          "the owner's names cannot be files here: {}; pull such a range alone, by --range, "
          "to a DEST that is a file name",
          list));
}

} // namespace wherry::cli

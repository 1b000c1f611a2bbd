// `wherry describe`: what a source publishes, page by page, so that a million ranges need no
// memory.
#include "commands.h"
#include "exit_status.h"
#include "session.h"
#include "text.h"
#include "transfer_end.h"
#include "units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace wherry::cli {
namespace {

using Json = nlohmann::json;

struct Totals {
  std::uint64_t ranges = 0;
  std::uint64_t bytes = 0;
};

std::string routes_text(const RangeDescription& range) {
  std::string text;
  for (const PathKind path : range.routes) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", to_string(path));
  }
  return text.empty() ? "none" : text;
}

std::string_view access_text(const RemoteRange& range) {
  return range.visibility == Visibility::remote_read_write ? "write" : "read";
}

// The name comes last: it may be of any length.
std::string line_of(const RangeDescription& range) {
  return fmt::format("{:>8}  {:5}  {:6}  {:8}  {}  ({})\n", format_size(range.range.length_bytes),
                     access_text(range.range),
                     range.range.kind == RangeKind::file ? "file" : "memory", routes_text(range),
                     printable(range.name), printable(range.evidence));
}

Json json_of(const RangeDescription& range) {
  Json routes = Json::array();
  for (const PathKind path : range.routes) {
    routes.push_back(to_string(path));
  }
  Json object{{"length_bytes", range.range.length_bytes},
              {"visibility", to_string(range.range.visibility)},
              {"kind", to_string(range.range.kind)},
              {"routes", std::move(routes)},
              {"evidence", range.evidence}};
  add_name(object, "name", range.name);
  if (range.version) {
    object["version"] = {{"device", range.version->device},
                         {"inode", range.version->inode},
                         {"size_bytes", range.version->size_bytes},
                         {"mtime_ns", range.version->mtime_ns}};
  }
  return object;
}

Result<void> describe_text(RemoteSource& remote, Console& console) {
  Totals totals;
  const SourceReference& reference = remote.reference();
  if (auto told = console.print(
          fmt::format("{}\nepoch {}\n", reference.to_string(), reference.epoch.value_or(0)));
      !told) {
    return told;
  }
  auto listed = for_each_page(remote, [&](const std::vector<RangeDescription>& page) {
    std::string text;
    for (const RangeDescription& range : page) {
      ++totals.ranges;
      totals.bytes += range.range.length_bytes;
      text += line_of(range);
    }
    return console.print(text);
  });
  if (!listed) {
    return listed;
  }
  return console.print(fmt::format("{} {}, {}\n", totals.ranges,
                                   totals.ranges == 1 ? "range" : "ranges",
                                   format_size(totals.bytes)));
}

// One document, written as it comes: its head, the ranges, its tail.
Result<void> describe_json(RemoteSource& remote, Console& console) {
  const SourceReference& reference = remote.reference();
  Json head{{"reference", reference.to_string()}, {"epoch", reference.epoch.value_or(0)}};
  add_name(head, "name", reference.name);
  Json routes = Json::array();
  for (const Route& route : remote.routes()) {
    routes.push_back({{"path", to_string(route.path)},
                      {"ready", to_string(route.ready.answer)},
                      {"reason", route.ready.reason},
                      {"lanes", route.lanes}});
  }
  head["routes"] = std::move(routes);
  std::string start = dump(head);
  start.pop_back();
  if (auto told = console.print(start + R"(,"ranges":[)"); !told) {
    return told;
  }
  Totals totals;
  auto listed = for_each_page(remote, [&](const std::vector<RangeDescription>& page) {
    std::string text;
    for (const RangeDescription& range : page) {
      text += (totals.ranges++ == 0 ? "\n" : ",\n") + dump(json_of(range));
      totals.bytes += range.range.length_bytes;
    }
    return console.print(text);
  });
  if (!listed) {
    return listed;
  }
  return console.print(
      fmt::format("],\"range_count\":{},\"length_bytes\":{}}}\n", totals.ranges, totals.bytes));
}

} // namespace

int run(const DescribeOptions& options, Console& console, Interrupt&) {
  auto session = open_session(options.peer, {}, console);
  if (!session) {
    return end_with(console, session.error());
  }
  const auto described = console.json() ? describe_json(session->remote, console)
                                        : describe_text(session->remote, console);
  return described ? static_cast<int>(exit_ok) : end_with(console, described.error());
}

} // namespace wherry::cli

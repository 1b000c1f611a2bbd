// `wherry push`: which file goes into which range, and how the end is told.
#include "commands.h"
#include "errors.h"
#include "exit_status.h"
#include "progress.h"
#include "push_files.h"
#include "session.h"
#include "text.h"
#include "transfer_end.h"
#include "transfer_window.h"
#include "units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace wherry::cli {
namespace {

using Json = nlohmann::json;

Result<std::uint64_t> file_size(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    return fail(system_error(missing ? ErrorCode::invalid_argument : ErrorCode::io_error, "stat",
                             errno, fmt::format("'{}'", printable(path))));
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("'{}' is no regular file", printable(path)));
  }
  return static_cast<std::uint64_t>(status.st_size);
}

std::string base_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

Result<PushItem> make_item(const PushOptions& options, const std::string& source,
                           RemoteSource& remote) {
  const auto length = file_size(source);
  if (!length) {
    return fail(length.error());
  }
  const std::string name = options.range.value_or(base_name(source));
  auto range = remote.range(name);
  if (!range) {
    return fail(range.error());
  }
  if (range->visibility != Visibility::remote_read_write) {
    return fail(ErrorCode::access_denied,
                fmt::format("the range '{}' is not writable", printable(name)));
  }
  if (options.offset > range->length_bytes || *length > range->length_bytes - options.offset) {
    return fail(
        ErrorCode::out_of_range,
        fmt::format(
            "'{}' has {} bytes, and at offset {} the range '{}' of {} bytes has no room for them",
            printable(source), *length, options.offset, printable(name), range->length_bytes));
  }
  return PushItem{source, {name, *range}, options.offset, *length};
}

// All of it is judged before a byte moves.
Result<std::vector<PushItem>> make_items(const PushOptions& options, RemoteSource& remote) {
  std::vector<PushItem> items;
  for (const std::string& source : options.sources) {
    auto item = make_item(options, source, remote);
    if (!item) {
      return fail(item.error());
    }
    const auto same = std::find_if(items.begin(), items.end(), [&](const PushItem& other) {
      return other.target.range.id == item->target.range.id;
    });
    if (same != items.end()) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("'{}' and '{}' would both be written to the range '{}'",
                              printable(same->source), printable(source),
                              printable(item->target.name)));
    }
    items.push_back(std::move(*item));
  }
  return items;
}

// What needs no owner to be judged.
Result<void> check_usage(const PushOptions& options) {
  if (options.range && options.sources.size() > 1) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("--range is for a single SRC, and {} are given", options.sources.size()));
  }
  if (auto reference = SourceReference::parse(options.peer.reference); !reference) {
    return fail(reference.error());
  }
  for (const std::string& source : options.sources) {
    if (auto size = file_size(source); !size) {
      return fail(size.error());
    }
  }
  return {};
}

struct Summary {
  const PushOptions& options;
  const std::vector<PushItem>& items;
  const std::vector<PushedFile>& pushed;
  const TransferEnd& end;
  std::string reference;
  std::uint64_t bytes;
  double seconds;
};

Result<void> print_summary_json(const Summary& summary, Console& console) {
  Json files = Json::array();
  for (std::size_t i = 0; i < summary.items.size(); ++i) {
    const PushItem& item = summary.items[i];
    const PushedFile& pushed = summary.pushed[i];
    Json file{{"offset", item.offset},
              {"length_bytes", item.length_bytes},
              {"confirmed_bytes", pushed.confirmed_bytes},
              {"completed", pushed.completed},
              {"remote_effect", to_string(pushed.effect)}};
    add_name(file, "source", item.source);
    add_name(file, "range", item.target.name);
    files.push_back(std::move(file));
  }
  const TransferEnd& end = summary.end;
  return console.print_json(
      {{"reference", summary.reference},
       {"files", std::move(files)},
       {"completed", end.completed},
       {"bytes", summary.bytes},
       {"seconds", summary.seconds},
       {"verified", summary.options.transfer.verify && end.completed == end.files},
       {"failed", failed_json(end)}});
}

Result<void> summarise(const Summary& summary, Console& console) {
  if (console.json()) {
    return print_summary_json(summary, console);
  }
  const TransferEnd& end = summary.end;
  if (end.completed == end.files) {
    console.note(done_text("pushed", end.files, summary.bytes, summary.seconds,
                           summary.options.transfer.verify));
  }
  return {};
}

} // namespace

int run(const PushOptions& options, Console& console, Interrupt& interrupt) {
  if (auto usage = check_usage(options); !usage) {
    return end_with(console, usage.error());
  }
  auto session = open_session(options.peer, options.transfer, console);
  if (!session) {
    return end_with(console, session.error());
  }
  const auto items = make_items(options, session->remote);
  if (!items) {
    return end_with(console, items.error());
  }
  std::uint64_t bytes = 0;
  for (const PushItem& item : *items) {
    bytes += item.length_bytes;
  }
  const auto start = std::chrono::steady_clock::now();
  Progress progress(console, options.transfer.progress, bytes);
  auto window =
      TransferWindow::create(*session, options.transfer, options.peer.path, interrupt, progress);
  if (!window) {
    return end_with(console, window.error());
  }
  interrupt.expect(std::chrono::seconds(3), 2);
  std::vector<PushedFile> pushed;
  const TransferEnd end = FilePush(*session, options, *window).run(*items, pushed);
  progress.finish();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const std::string reference = session->remote.reference().to_string();
  const auto told =
      summarise({options, *items, pushed, end, reference, bytes, took.count()}, console);
  const int status = report_end(console, end, interrupt.signal());
  return told || status != exit_ok ? status : end_with(console, told.error());
}

} // namespace wherry::cli

// `wherry pull`: what is read, where it goes, and how the end is told.
#include "commands.h"
#include "destination.h"
#include "errors.h"
#include "exit_status.h"
#include "glob.h"
#include "progress.h"
#include "pull_files.h"
#include "pull_plan.h"
#include "pull_stdout.h"
#include "session.h"
#include "text.h"
#include "transfer_end.h"
#include "transfer_window.h"
#include "units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace wherry::cli {
namespace {

using Json = nlohmann::json;

struct Plan {
  PullRoot root;
  std::vector<PullItem> items;
  std::uint64_t bytes = 0;
};

bool to_stdout(const PullOptions& options) {
  return options.dest == "-";
}

bool is_directory(const std::string& path) {
  struct stat status{};
  return path.ends_with('/') || (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode));
}

// What needs one range and got another number.
Result<void> check_count(const PullOptions& options, std::size_t count) {
  const bool part = options.offset != 0 || options.length;
  if (count == 1 || (!part && !to_stdout(options))) {
    return {};
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} takes one range, and {} are selected; choose one with --range",
                          part ? "a part (--offset, --length)" : "standard output", count));
}

Result<Plan> make_plan(const PullOptions& options, RemoteSource& remote) {
  auto ranges = select_ranges(remote, options.ranges);
  if (!ranges) {
    return fail(ranges.error());
  }
  if (auto fits = check_count(options, ranges->size()); !fits) {
    return fail(fits.error());
  }
  Plan plan;
  // One that was named, not one that a glob happened to find.
  const bool single = ranges->size() == 1 && options.ranges.size() == 1 &&
                      ranges->front().name == options.ranges.front();
  for (NamedRemoteRange& range : *ranges) {
    auto item = pull_item(std::move(range), options.offset, options.length);
    if (!item) {
      return fail(item.error());
    }
    plan.bytes += item->length_bytes;
    plan.items.push_back(std::move(*item));
  }
  if (to_stdout(options)) {
    return plan;
  }
  auto root = pull_root({.dest = options.dest,
                         .is_directory = is_directory(options.dest),
                         .single = single,
                         .source_name = remote.reference().name});
  if (!root) {
    return fail(root.error());
  }
  plan.root = std::move(*root);
  if (plan.root.file) {
    plan.items.front().target = *plan.root.file;
  }
  if (auto safe = check_targets(plan.items); !safe) {
    return fail(safe.error());
  }
  return plan;
}

int print_plan(const PullOptions& options, const Plan& plan, Console& console) {
  Json files = Json::array();
  std::string text;
  for (const PullItem& item : plan.items) {
    const std::string path =
        to_stdout(options) ? "-" : fmt::format("{}/{}", plan.root.directory, item.target);
    Json file{{"length_bytes", item.length_bytes}};
    add_name(file, "name", item.name);
    add_name(file, "path", path);
    files.push_back(std::move(file));
    text += fmt::format("{:>9}  {} -> {}\n", format_size(item.length_bytes), printable(item.name),
                        printable(path));
  }
  text +=
      fmt::format("{} files, {}; nothing was pulled\n", plan.items.size(), format_size(plan.bytes));
  const auto printed =
      console.json() ? console.print_json(
                           {{"dry_run", true}, {"files", std::move(files)}, {"bytes", plan.bytes}})
                     : console.print(text);
  return printed ? static_cast<int>(exit_ok) : end_with(console, printed.error());
}

// What was done, once no error has to be told.
struct Summary {
  const PullOptions& options;
  const Plan& plan;
  const TransferEnd& end;
  std::string reference;
  double seconds;
};

Result<void> summarise(const Summary& summary, Console& console) {
  const TransferEnd& end = summary.end;
  if (console.json()) {
    Json document{{"reference", summary.reference},
                  {"files", end.files},
                  {"completed", end.completed},
                  {"bytes", summary.plan.bytes},
                  {"seconds", summary.seconds},
                  {"verified", summary.options.transfer.verify && end.completed == end.files},
                  {"failed", failed_json(end)}};
    add_name(document, "dest", to_stdout(summary.options) ? "-" : summary.plan.root.directory);
    if (!to_stdout(summary.options)) {
      return console.print_json(document);
    }
    console.progress_json(document); // standard output has the bytes
  } else if (end.completed == end.files) {
    console.note(done_text("pulled", end.files, summary.plan.bytes, summary.seconds,
                           summary.options.transfer.verify));
  }
  return {};
}

// The files that are in the way, told before any byte moves.
Result<void> check_all_free(const Destination& destination, const Plan& plan) {
  for (const PullItem& item : plan.items) {
    if (auto free = destination.check_free(item.target); !free) {
      return free;
    }
  }
  return {};
}

Result<TransferEnd> transfer(Session& session, const PullOptions& options, const Plan& plan,
                             Interrupt& interrupt, Progress& progress) {
  auto window =
      TransferWindow::create(session, options.transfer, options.peer.path, interrupt, progress);
  if (!window) {
    return fail(window.error());
  }
  interrupt.expect(std::chrono::seconds(3), 2);
  if (to_stdout(options)) {
    return pull_to_stdout(session, options, plan.items.front(), *window);
  }
  auto destination = Destination::open(
      plan.root.directory, {.overwrite = options.overwrite, .sync = options.sync}, interrupt);
  if (!destination) {
    return fail(destination.error());
  }
  if (auto free = check_all_free(*destination, plan); !free) {
    return fail(free.error());
  }
  return FilePull(session, options, *destination, *window).run(plan.items);
}

} // namespace

int run(const PullOptions& options, Console& console, Interrupt& interrupt) {
  auto session = open_session(options.peer, options.transfer, console);
  if (!session) {
    return end_with(console, session.error());
  }
  const auto plan = make_plan(options, session->remote);
  if (!plan) {
    return end_with(console, plan.error());
  }
  if (options.dry_run) {
    return print_plan(options, *plan, console);
  }
  const auto start = std::chrono::steady_clock::now();
  Progress progress(console, options.transfer.progress, plan->bytes);
  const auto end = transfer(*session, options, *plan, interrupt, progress);
  progress.finish();
  if (!end) {
    return end_with(console, end.error());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const std::string reference = session->remote.reference().to_string();
  const auto told = summarise({options, *plan, *end, reference, took.count()}, console);
  const int status = report_end(console, *end, interrupt.signal());
  return told || status != exit_ok ? status : end_with(console, told.error());
}

} // namespace wherry::cli

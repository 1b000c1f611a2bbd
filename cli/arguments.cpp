#include "arguments.h"

#include "errors.h"
#include "text.h"
#include "units.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace wherry::cli {
namespace {

// CLI11 takes an argument in brackets apart as a list, and forgets `--` inside a command. A NUL in
// front, which no argument can hold, lets them pass as they are.
std::string shielded(const std::string& argument) {
  return std::string(1, '\0') + argument;
}
std::string unshielded(std::string argument) {
  if (argument.starts_with('\0')) {
    argument.erase(0, 1);
  }
  return argument;
}

std::vector<std::string> shielded_arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  bool all_positional = false;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (!all_positional && argument == "--") {
      all_positional = true;
    } else if (all_positional || (argument.starts_with('[') && argument.ends_with(']'))) {
      arguments.push_back(shielded(argument));
    } else {
      arguments.push_back(std::move(argument));
    }
  }
  return arguments;
}

// The value of an option, by a function that gives a Result.
template <class T, class Parse>
auto into(T& value, Parse parse) {
  return [&value, parse](const std::string& text) {
    auto parsed = parse(unshielded(text));
    if (!parsed) {
      throw CLI::ValidationError(parsed.error().message);
    }
    value = std::move(*parsed);
  };
}

Result<std::string> any_text(const std::string& text) {
  return text;
}

Result<std::uint32_t> parse_count(const std::string& text) {
  std::uint32_t count = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), count);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || count == 0) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("'{}' is no number from 1 to {}", printable(text),
                            std::numeric_limits<std::uint32_t>::max()));
  }
  return count;
}

constexpr PathKind path_kinds[] = {PathKind::tcp,  PathKind::io_uring, PathKind::posix,
                                   PathKind::rdma, PathKind::cuda,     PathKind::gds};

Result<PathKind> parse_path(const std::string& text) {
  for (const PathKind path : path_kinds) {
    if (to_string(path) == text) {
      return path;
    }
  }
  std::string known;
  for (const PathKind path : path_kinds) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", to_string(path));
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("'{}' is no path; paths are {}", printable(text), known));
}

Result<PathKind> parse_path_or_auto(const std::string& text) {
  return text == "auto" ? Result<PathKind>(PathKind::automatic) : parse_path(text);
}

Result<LogLevel> parse_log_level(const std::string& text) {
  static constexpr std::pair<std::string_view, LogLevel> levels[] = {
      {"debug", LogLevel::debug},
      {"info", LogLevel::info},
      {"warning", LogLevel::warning},
      {"error", LogLevel::error},
  };
  for (const auto& [name, level] : levels) {
    if (name == text) {
      return level;
    }
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("'{}' is no log level; levels are debug, info, warning and error",
                          printable(text)));
}

// Adds options to one command; each call is one row of its help.
class Options {
public:
  explicit Options(CLI::App& app) : app_(app) {}

  template <class T, class Parse>
  CLI::Option* value(const std::string& name, T& target, Parse parse, const std::string& type,
                     const std::string& help) {
    return app_.add_option_function<std::string>(name, into(target, parse), help)->type_name(type);
  }
  CLI::Option* text(const std::string& name, std::string& target, const std::string& type,
                    const std::string& help) {
    return value(name, target, any_text, type, help);
  }
  CLI::Option* texts(const std::string& name, std::vector<std::string>& target,
                     const std::string& type, const std::string& help) {
    const auto take = [&target](const std::vector<std::string>& values) {
      std::transform(values.begin(), values.end(), std::back_inserter(target), unshielded);
    };
    return app_.add_option_function<std::vector<std::string>>(name, take, help)->type_name(type);
  }
  void flag(const std::string& name, bool& target, bool to, const std::string& help) {
    app_.add_flag_callback(name, [&target, to] { target = to; }, help);
  }

private:
  CLI::App& app_;
};

CLI::App& add_command(CLI::App& app, CommonOptions& common, const std::string& name,
                      const std::string& description, const std::string& example) {
  CLI::App& command = *app.add_subcommand(name, description);
  command.footer("Example:\n  " + example);
  Options options(command);
  options.flag("--json", common.json, true, "Print JSON");
  options.value("--log-level", common.log_level, parse_log_level, "LEVEL",
                "debug, info, warning (the default) or error");
  return command;
}

void add_peer(Options& options, PeerOptions& peer) {
  options.value("--connect-timeout", peer.connect_timeout, parse_duration, "TIME",
                "How long connecting and greeting may take (5s)");
  options.value(
      "--path", peer.path, parse_path_or_auto, "PATH",
      "How bytes travel: auto (the default), tcp, rdma, ...; one that cannot serve is refused");
}

constexpr const char* reference_help = "wherry://HOST:PORT/NAME?epoch=E, as the owner printed it";

void add_transfer(Options& options, TransferOptions& transfer) {
  options.value("--stall-timeout", transfer.stall_timeout, parse_duration, "TIME",
                "Give up after so long without a byte (30s)");
  options.value("--timeout", transfer.timeout, parse_duration, "TIME",
                "Give up after so long in all (no limit)");
  options.value("--lanes", transfer.lanes, parse_count, "N", "Data connections, 1 to 64 (2)");
  options.flag("--verify", transfer.verify, true, "Compare checksums by both ends afterwards");
  options.flag("--progress", transfer.progress, true, "Show progress though it is no terminal");
}

void add_serve(CLI::App& app, CommonOptions& common, ServeOptions& serve) {
  CLI::App& command = add_command(
      app, common, "serve", "Publish files, directories and memory until a signal ends it",
      "wherry serve --name weights model/ mem:1GiB,name=inbox,access=write");
  Options options(command);
  options
      .texts("RANGE", serve.ranges, "",
             "PATH[,name=N][,access=read|write][,size=10GiB,create] or "
             "mem:SIZE[,fill=zero|random:SEED][,name=N][,access=read|write]; `\\,` is a comma")
      ->required();
  options.text("--listen", serve.listen, "HOST:PORT", "Where to listen (127.0.0.1:0, a free port)");
  options.text("--advertise", serve.advertise, "HOST:PORT",
               "What the reference names; needed where --listen is a wildcard address");
  options.text("--name", serve.name, "NAME",
               "The source's name (that of the only RANGE, or 'wherry')");
  options.value("--close-timeout", serve.close_timeout, parse_duration, "TIME",
                "How long closing may take; a second signal shortens it (5s)");
  options.flag("--no-checksum", serve.checksum, false, "Send payload without checksums");
}

void add_describe(CLI::App& app, CommonOptions& common, DescribeOptions& describe) {
  CLI::App& command =
      add_command(app, common, "describe", "Show a source's epoch, ranges and routes",
                  "wherry describe wherry://127.0.0.1:7000/weights");
  Options options(command);
  options.text("REF", describe.peer.reference, "", reference_help)->required();
  add_peer(options, describe.peer);
}

void add_pull(CLI::App& app, CommonOptions& common, PullOptions& pull) {
  CLI::App& command = add_command(app, common, "pull", "Read a source, or parts of it, into files",
                                  "wherry pull --verify wherry://127.0.0.1:7000/weights copies/");
  Options options(command);
  options.text("REF", pull.peer.reference, "", reference_help)->required();
  options.text("DEST", pull.dest, "",
               "A directory to receive into, a new name, or - for standard output; by default the "
               "source's or the range's name here");
  options
      .texts("--range", pull.ranges, "NAME",
             "Only this range, or those that match the glob; repeatable")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  options.value("--offset", pull.offset, parse_size, "SIZE", "Of one range, only what follows");
  options.value("--length", pull.length, parse_size, "SIZE", "Of one range, only so many bytes");
  options.value("--jobs", pull.jobs, parse_count, "N", "Requests at the same time (4)");
  options.flag("--overwrite", pull.overwrite, true, "Replace files that exist");
  options.flag("--fail-fast", pull.fail_fast, true, "Stop at the first file that fails");
  options.flag("--dry-run", pull.dry_run, true, "Say what would be pulled, and make no file");
  options.flag("--no-sync", pull.sync, false, "Do not wait for the disk");
  options.flag("--no-checksum", pull.transfer.checksum, false, "Send payload without checksums");
  add_transfer(options, pull.transfer);
  add_peer(options, pull.peer);
}

void add_push(CLI::App& app, CommonOptions& common, PushOptions& push) {
  CLI::App& command =
      add_command(app, common, "push", "Write files into a source's writable ranges",
                  "wherry push --range inbox model.bin wherry://127.0.0.1:7000/weights");
  Options options(command);
  // The reference is the last one of them; see take_reference().
  options
      .texts("SRC... REF", push.sources, "",
             "Files, each for the range of its base name or for --range; then the source")
      ->required()
      ->expected(2, -1)
      ->allow_extra_args();
  options.value("--range", push.range, any_text, "NAME", "The range to write to, for a single SRC");
  options.value("--offset", push.offset, parse_size, "SIZE", "Where in the range to start");
  options.flag("--no-checksum", push.transfer.checksum, false, "Send payload without checksums");
  add_transfer(options, push.transfer);
  add_peer(options, push.peer);
}

void add_doctor(CLI::App& app, CommonOptions& common, DoctorOptions& doctor) {
  CLI::App& command = add_command(
      app, common, "doctor", "Say per path whether it is built, loadable, discovered and ready",
      "wherry doctor --require tcp wherry://127.0.0.1:7000/weights");
  Options options(command);
  options.text("REF", doctor.peer.reference, "",
               "The source for which to ask whether paths are ready");
  options.value("--require", doctor.require, parse_path, "PATH",
                "Exit 3 unless this path is ready");
  add_peer(options, doctor.peer);
}

struct AllOptions {
  CommonOptions common;
  ServeOptions serve;
  DescribeOptions describe;
  PullOptions pull;
  PushOptions push;
  DoctorOptions doctor;
};

void take_reference(PushOptions& push) {
  push.peer.reference = std::move(push.sources.back());
  push.sources.pop_back();
}

Arguments chosen(const CLI::App& app, AllOptions& all) {
  const std::string name = app.get_subcommands().front()->get_name();
  if (name == "serve") {
    return {all.common, std::move(all.serve)};
  }
  if (name == "describe") {
    return {all.common, std::move(all.describe)};
  }
  if (name == "pull") {
    return {all.common, std::move(all.pull)};
  }
  if (name == "push") {
    take_reference(all.push);
    return {all.common, std::move(all.push)};
  }
  if (name == "doctor") {
    return {all.common, std::move(all.doctor)};
  }
  return {all.common, VersionOptions{}};
}

// CLI11's sentences start like a title and may end in a full stop; ours do not.
std::string sentence(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    for (const std::string& extra : app.remaining(true)) {
      const std::string_view what = extra.starts_with('-')          ? "unknown option"
                                    : app.get_subcommands().empty() ? "unknown command"
                                                                    : "unexpected argument";
      return fmt::format("{} '{}'", what, printable(unshielded(extra)));
    }
  }
  std::string text = error.what();
  std::erase(text, '\0');
  if (text.size() > 1 && CLI::detail::to_lower(text.substr(1, 1)) == text.substr(1, 1)) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

UsageError usage_error(const CLI::App& app, std::string message, bool json) {
  const auto commands = app.get_subcommands();
  const std::string command = commands.empty() ? "" : " " + commands.front()->get_name();
  return {make_error(ErrorCode::invalid_argument, std::move(message)),
          fmt::format(
              "'wherry{} --help' shows what it takes; see docs/TROUBLESHOOTING.md#invalid_argument",
              command),
          json};
}

} // namespace

std::variant<Arguments, HelpText, UsageError> parse_arguments(int argc, const char* const* argv) {
  AllOptions all;
  CLI::App app("Wherry moves bytes between the memory and files of two programs.", "wherry");
  app.require_subcommand(0, 1); // none is refused below, in our own words
  app.get_formatter()->column_width(34);
  add_serve(app, all.common, all.serve);
  add_describe(app, all.common, all.describe);
  add_pull(app, all.common, all.pull);
  add_push(app, all.common, all.push);
  add_doctor(app, all.common, all.doctor);
  add_command(app, all.common, "version", "Show version, commit, protocol and build options",
              "wherry version --json");

  std::vector<std::string> arguments = shielded_arguments(argc, argv);
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  std::reverse(arguments.begin(), arguments.end()); // CLI11 wants the last one first
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return HelpText{app.help()};
  } catch (const CLI::ParseError& error) {
    return usage_error(app, sentence(app, error), json);
  }
  if (app.get_subcommands().empty()) {
    return usage_error(app, "a command is required", json);
  }
  return chosen(app, all);
}

} // namespace wherry::cli

// The wherry command: reads the command line, runs one command, gives its exit status.
#include "arguments.h"
#include "commands.h"
#include "console.h"
#include "exit_status.h"
#include "interrupt.h"
#include "transfer_end.h"

#include <wherry/error.hpp>

#include <exception>
#include <new>
#include <variant>

namespace {

namespace cli = wherry::cli;

int run(const cli::Arguments& arguments, cli::Console& console) {
  cli::Interrupt interrupt;
  return std::visit([&](const auto& options) { return cli::run(options, console, interrupt); },
                    arguments.command);
}

int say_help(const cli::HelpText& help) {
  cli::Console console(false, wherry::LogLevel::warning);
  const auto told = console.print(help.text);
  return told ? static_cast<int>(cli::exit_ok) : cli::end_with(console, told.error());
}

int refuse_usage(const cli::UsageError& usage) {
  cli::Console console(usage.json, wherry::LogLevel::warning);
  console.error(usage.error, usage.hint);
  return cli::exit_mend_call;
}

int main_without_exceptions(int argc, char** argv) {
  const auto parsed = cli::parse_arguments(argc, argv);
  if (const auto* help = std::get_if<cli::HelpText>(&parsed)) {
    return say_help(*help);
  }
  if (const auto* usage = std::get_if<cli::UsageError>(&parsed)) {
    return refuse_usage(*usage);
  }
  const auto& arguments = std::get<cli::Arguments>(parsed);
  cli::Console console(arguments.common.json, arguments.common.log_level);
  return run(arguments, console);
}

} // namespace

int main(int argc, char** argv) {
  try {
    return main_without_exceptions(argc, argv);
  } catch (const std::bad_alloc&) {
    // Nothing else that we call throws; whatever the source of the shortage, the words are these.
    cli::Console console(false, wherry::LogLevel::warning);
    wherry::Error error;
    error.code = wherry::ErrorCode::resource_exhausted;
    error.message = "there is not enough memory";
    return cli::end_with(console, error);
  }
}

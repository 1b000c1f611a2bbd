// The command line: what may be said, and its help. The only user of CLI11.
#pragma once

#include "options.h"

#include <wherry/error.hpp>

#include <string>
#include <variant>

namespace wherry::cli {

struct Arguments {
  CommonOptions common;
  CommandOptions command;
};

struct HelpText {
  std::string text;
};

struct UsageError {
  Error error;
  std::string hint;
  bool json = false; ///< Whether it is to be told as JSON.
};

std::variant<Arguments, HelpText, UsageError> parse_arguments(int argc, const char* const* argv);

} // namespace wherry::cli

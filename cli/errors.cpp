#include "errors.h"

#include <fmt/format.h>

#include <system_error>

namespace wherry::cli {

Error system_error(ErrorCode code, std::string_view call, int number, std::string_view what) {
  Error error =
      make_error(code, fmt::format("{}: {}", what, std::generic_category().message(number)));
  error.native_call = call;
  error.native_number = number;
  return error;
}

} // namespace wherry::cli

// Errors that carry an errno. Pure functions; any thread.
#include "base/error.h"

#include <array>
#include <cstring>

namespace wherry {

std::string errno_text(int number) {
  std::array<char, 256> buffer{};
  // The GNU form: it may answer with a static text instead of the buffer, and never fails.
  return strerror_r(number, buffer.data(), buffer.size());
}

Error native_error(std::string_view call, int number, std::string message) {
  Error error;
  error.code = ErrorCode::io_error;
  error.message = std::move(message);
  error.message += ": ";
  error.message += errno_text(number);
  error.native_call = call;
  error.native_number = number;
  return error;
}

} // namespace wherry

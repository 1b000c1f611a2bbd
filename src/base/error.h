// Making errors. Whoever first knows a failure makes the error, with the evidence it saw.
#pragma once

#include <wherry/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace wherry {

/// An unexpected value for a Result<T>: `return fail(ErrorCode::busy, "...")`.
inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  Error error;
  error.code = code;
  error.message = std::move(message);
  return tl::unexpected<Error>(std::move(error));
}
inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

/// io_error with the call and errno as evidence; the message ends in the errno's text.
Error native_error(std::string_view call, int number, std::string message);

/// As strerror_r gives it, for example "Connection refused".
std::string errno_text(int number);

} // namespace wherry

// Making errors of the command's own; the library's come as they are. Pure.
#pragma once

#include <wherry/error.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace wherry::cli {

inline Error make_error(ErrorCode code, std::string message) {
  Error error;
  error.code = code;
  error.message = std::move(message);
  return error;
}

/// An unexpected value for a Result<T>: `return fail(ErrorCode::invalid_argument, "...")`.
inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(make_error(code, std::move(message)));
}
inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

/// A system call's no: the sentence ends in the errno's text, call and number are the evidence.
Error system_error(ErrorCode code, std::string_view call, int number, std::string_view what);

} // namespace wherry::cli

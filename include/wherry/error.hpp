// Errors of the public interface: what went wrong, what the caller should do, and the evidence.
#pragma once

#include <wherry/export.hpp>

#include <tl/expected.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wherry::inline v0 {

/// What the caller should do next decides the code; what happened is in the message and evidence.
/// The numbers are part of the wire protocol and of the C ABI: they never change.
enum class ErrorCode : std::uint16_t {
  // Look at the cause.
  io_error = 1,    ///< A file, device or socket answered with an error.
  invalidated = 2, ///< The memory or file behind a registration is not what it was.
  cancelled = 3,   ///< The caller asked for the end.
  // Mend the call.
  invalid_argument = 4,
  wrong_process = 5, ///< A handle was used in a child after fork.
  // Install, configure, or restart what is named.
  unavailable = 6,
  fenced = 7,
  // Ask the owner again.
  stale_epoch = 8,
  protocol_mismatch = 9,
  unauthenticated = 10,
  access_denied = 11,
  out_of_range = 12,
  not_found = 13,
  range_withdrawn = 14,
  range_changed = 15,
  // Wait, retire, or raise a budget.
  resource_exhausted = 16,
  busy = 17,
  unsettled = 18, ///< An earlier WRITE to these bytes may still change them.
  // Keep the memory, keep the evidence.
  unquiesced = 19,
  // Try again.
  connection_lost = 20,
  timed_out = 21,
  stalled = 22,
};

/// The code's name as users see it, for example "stale_epoch".
WHERRY_API std::string_view to_string(ErrorCode code);

/// An error with its evidence. Evidence is first-hand only: empty or zero means not known.
struct Error {
  ErrorCode code{};
  std::string message; ///< One sentence that names the thing and, where there is one, the way out.
  std::string native_call; ///< The system or library call that answered, for example "connect".
  int native_number = 0;   ///< Its errno or status.
  std::string device;
  std::string path; ///< The path or rail, for example "tcp lane 1".
  std::optional<std::uint64_t>
      current_epoch{}; ///< With stale_epoch: the owner's, where it said so.
};

/// Every factory and operation returns one. Nothing throws across the interface.
template <class T>
using Result = tl::expected<T, Error>;

} // namespace wherry::inline v0

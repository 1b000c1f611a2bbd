// What a report may say: on its own (R28 to R31), and after an earlier report of the same request.
// Pure functions of what a user sees.
#pragma once

#include <wherry/request.hpp>

#include <optional>
#include <span>
#include <string>

namespace wherry::world {

/// What the user knows of the request besides its reports.
struct Asked {
  std::span<const Operation> operations;
  bool per_operation = false;
  bool cancel_asked = false; ///< Or its handle was dropped, or its engine closed.
  bool time_is_up = false;   ///< Its own timeout has passed.
};

/// Nothing if the report is consistent.
std::optional<std::string> check_report(const Asked& asked, const Report& report);
/// Nothing if `now` may follow `before`.
std::optional<std::string> check_change(const Asked& asked, const Report& before,
                                        const Report& now);
/// How many leading bytes of operation `index` the report says are confirmed.
std::uint64_t confirmed_bytes(const Asked& asked, const Report& report, std::size_t index);
/// One line, for the reader of a failure.
std::string describe(const Report& report);

} // namespace wherry::world

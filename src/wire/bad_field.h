// How decoders say what is wrong: where, which field, its value, and what it may be. Cold code.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace wherry::wire {

/// The largest ErrorCode of this protocol version.
inline constexpr std::uint16_t error_code_max = static_cast<std::uint16_t>(ErrorCode::stalled);

/// protocol_mismatch: "WHERE: FIELD is VALUE, not EXPECTED".
[[gnu::cold, gnu::noinline]] inline tl::unexpected<Error> bad_field(std::string_view where,
                                                                    std::string_view field,
                                                                    std::uint64_t value,
                                                                    std::string_view expected) {
  std::string text(where);
  text.append(": ").append(field).append(" is ").append(std::to_string(value));
  text.append(", not ").append(expected);
  return fail(ErrorCode::protocol_mismatch, std::move(text));
}

} // namespace wherry::wire

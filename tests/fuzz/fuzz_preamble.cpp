// The preamble from a stranger (R22, R42): what decodes encodes back to the same bytes, what cannot
// become a preamble does not decode.
#include "base/assert.h"
#include "wire/preamble.h"

#include <algorithm>

using namespace wherry;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const bool possible = wire::may_be_preamble(bytes);
  if (!possible) {
    const Error error = wire::not_a_preamble(bytes);
    WHERRY_ASSERT(error.code == ErrorCode::protocol_mismatch && error.message.size() < 200);
  }
  if (size < wire::preamble_bytes) {
    return 0;
  }
  const auto decoded = wire::decode_preamble(bytes.first<wire::preamble_bytes>());
  if (!decoded) {
    WHERRY_ASSERT(decoded.error().code == ErrorCode::protocol_mismatch);
    return 0;
  }
  WHERRY_ASSERT(possible);
  const auto again = wire::encode(*decoded);
  WHERRY_ASSERT(std::equal(again.begin(), again.end(), bytes.begin()));
  return 0;
}

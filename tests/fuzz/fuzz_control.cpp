// Control frames from a peer (R21, R42): what decodes obeys the bounds, or encode() would assert,
// and comes back equal after another round.
//
// The first byte says whether the rest is a frame as it came, or a body whose checksum is right: a
// search does not find checksums, and behind them is what matters.
#include "base/assert.h"
#include "base/crc32c.h"
#include "support/control_text.h"
#include "wire/control.h"

#include <algorithm>

using namespace wherry;

namespace {

void expect_refusal(const Error& error) {
  WHERRY_ASSERT(error.code == ErrorCode::protocol_mismatch && !error.message.empty());
}

Result<wire::ControlMessage> decode_frame(std::span<const std::byte> frame) {
  const auto header = wire::decode_control_header(frame.first<wire::control_header_bytes>());
  if (!header) {
    return fail(header.error());
  }
  const auto body = frame.subspan(wire::control_header_bytes);
  if (body.size() < header->body_bytes) {
    return fail(ErrorCode::protocol_mismatch, "not yet");
  }
  return wire::decode_control(*header, body.first(header->body_bytes));
}

void expect_round_trip(const Result<wire::ControlMessage>& decoded) {
  if (!decoded) {
    return expect_refusal(decoded.error());
  }
  const auto again = decode_frame(wire::encode(*decoded));
  WHERRY_ASSERT(again.has_value());
  WHERRY_ASSERT(wherry::testing::control_text(*again) == wherry::testing::control_text(*decoded));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  if ((data[0] & 1) != 0) {
    const auto body =
        bytes.first(std::min<std::size_t>(bytes.size(), wire::control_body_bytes_max));
    expect_round_trip(
        wire::decode_control({static_cast<std::uint32_t>(body.size()), crc32c(body)}, body));
  } else if (bytes.size() >= wire::control_header_bytes) {
    expect_round_trip(decode_frame(bytes));
  }
  return 0;
}

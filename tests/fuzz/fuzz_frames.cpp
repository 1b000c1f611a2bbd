// Data frames, lane joins and accepts from a peer (R22, R25, R42): what decodes obeys the bounds
// and encodes back to the same bytes.
//
// The first byte chooses the decoder and whether the input's checksum is set right first: a search
// does not find checksums, and behind them is what matters.
#include "base/assert.h"
#include "base/crc32c.h"
#include "wire/bytes.h"
#include "wire/frames.h"

#include <algorithm>
#include <vector>

using namespace wherry;

namespace {

using Bytes = std::vector<std::byte>;

void expect_refusal(const Error& error) {
  WHERRY_ASSERT(error.code == ErrorCode::protocol_mismatch && !error.message.empty());
}

/// Writes the checksum of all bytes, with the field itself as zero if it lies among them.
void set_crc(std::span<std::byte> bytes, std::size_t at, std::size_t length) {
  wire::FieldWriter(bytes.data() + at).u32(0);
  wire::FieldWriter(bytes.data() + at).u32(crc32c(bytes.first(length)));
}

void encode_again(wire::FrameType type, std::span<const std::byte> from, std::size_t index,
                  std::span<std::byte> to) {
  const auto out = to.subspan(index * wire::descriptor_bytes(type));
  switch (type) {
  case wire::FrameType::read: {
    const auto d = wire::read_at(from, index);
    WHERRY_ASSERT(d.length_bytes >= 1 && d.length_bytes <= wire::slice_bytes_max);
    WHERRY_ASSERT(d.offset + d.length_bytes > d.offset);
    return wire::encode(d, out.first<32>());
  }
  case wire::FrameType::payload: {
    const auto d = wire::extent_at(from, index);
    WHERRY_ASSERT(d.length_bytes >= 1 && d.length_bytes <= wire::segment_bytes_max);
    WHERRY_ASSERT(d.offset + d.length_bytes > d.offset);
    return wire::encode(d, out.first<32>());
  }
  case wire::FrameType::result: {
    const auto d = wire::result_at(from, index);
    WHERRY_ASSERT((d.code != 0 || d.bytes != 0) && d.bytes <= wire::slice_bytes_max);
    return wire::encode(d, out.first<24>());
  }
  case wire::FrameType::cancel:
    return wire::encode(wire::cancel_at(from, index), out.first<8>());
  }
}

void frame(Bytes bytes, bool seal) {
  if (bytes.size() < wire::frame_header_bytes) {
    return;
  }
  const auto head = std::span(bytes).first<wire::frame_header_bytes>();
  auto header = wire::decode_header(head);
  if (!header) {
    return expect_refusal(header.error());
  }
  const std::size_t length = header->count * wire::descriptor_bytes(header->type);
  WHERRY_ASSERT(header->count >= 1 && header->count <= wire::frame_descriptors_max);
  WHERRY_ASSERT(header->payload_bytes <= wire::segment_bytes_max);
  if (bytes.size() - head.size() < length) {
    return;
  }
  if (seal) {
    set_crc(bytes, 12, head.size() + length);
    header = wire::decode_header(head);
  }
  const auto descriptors = std::span<const std::byte>(bytes).subspan(head.size(), length);
  const auto verified = wire::verify_descriptors(*header, head, descriptors);
  if (!verified) {
    return expect_refusal(verified.error());
  }
  Bytes again(head.size() + length);
  for (std::size_t i = 0; i < header->count; ++i) {
    encode_again(header->type, descriptors, i, std::span(again).subspan(head.size()));
  }
  wire::seal(*header, std::span(again).subspan(head.size()),
             std::span(again).first<wire::frame_header_bytes>());
  WHERRY_ASSERT(std::equal(again.begin(), again.end(), bytes.begin()));
}

void join(Bytes bytes, bool seal) {
  if (bytes.size() < wire::lane_join_bytes) {
    return;
  }
  if (seal) {
    set_crc(bytes, wire::lane_join_bytes - 4, wire::lane_join_bytes - 4);
  }
  const auto decoded = wire::decode_lane_join(std::span(bytes).first<wire::lane_join_bytes>());
  if (!decoded) {
    return expect_refusal(decoded.error());
  }
  std::array<std::byte, wire::lane_join_bytes> again{};
  wire::encode(*decoded, again);
  WHERRY_ASSERT(std::equal(again.begin(), again.end(), bytes.begin()));
}

void accept(Bytes bytes, bool seal) {
  if (bytes.size() < wire::lane_accept_bytes) {
    return;
  }
  if (seal) {
    set_crc(bytes, wire::lane_accept_bytes - 4, wire::lane_accept_bytes - 4);
  }
  const auto decoded = wire::decode_lane_accept(std::span(bytes).first<wire::lane_accept_bytes>());
  if (!decoded) {
    return expect_refusal(decoded.error());
  }
  std::array<std::byte, wire::lane_accept_bytes> again{};
  wire::encode(*decoded, again);
  WHERRY_ASSERT(std::equal(again.begin(), again.end(), bytes.begin()));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const auto given = std::as_bytes(std::span(data, size)).subspan(1);
  Bytes bytes(given.begin(), given.end());
  const bool seal = (data[0] & 1) != 0;
  switch ((data[0] >> 1) % 3) {
  case 0:
    frame(std::move(bytes), seal);
    break;
  case 1:
    join(std::move(bytes), seal);
    break;
  default:
    accept(std::move(bytes), seal);
  }
  return 0;
}

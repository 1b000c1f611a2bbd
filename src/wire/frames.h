// Data frames: what lanes carry. Fixed little-endian structs with static offsets, one frame for
// many descriptors, payload behind. Encoders and decoders are pure; decoders check everything that
// can be checked without state, and bound everything before anybody allocates.
//
//   frame = header (32 bytes), `count` descriptors of one type, `payload_bytes` of payload
//
// consumer -> owner: join (once), read, payload (WRITE), cancel
// owner -> consumer: accept (once), payload (answers to READ), result
#pragma once

#include "base/error.h"
#include "base/ids.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry::wire {

inline constexpr std::size_t frame_header_bytes = 32;
inline constexpr std::uint32_t frame_descriptors_max = 256;
inline constexpr std::uint32_t segment_bytes_max = 256 * 1024;
/// A READ slice's longest length; also that of a WRITE slice.
inline constexpr std::uint32_t slice_bytes_max = 1 << 20;
inline constexpr std::uint32_t lanes_max = 64; ///< Of a session, whatever the limits say.

enum class FrameType : std::uint8_t {
  read = 1,    ///< Asks for bytes: ReadDescriptor.
  payload = 2, ///< Carries bytes: PayloadExtent. A segment.
  result = 3,  ///< How slices, or parts of them, ended at the owner: ResultDescriptor.
  cancel = 4,  ///< READ slices that are not wanted any more: CancelDescriptor.
};

inline constexpr std::uint8_t flag_payload_checksum = 1;

/// 0 type u8, 1 flags u8, 2 count u16, 4 payload_bytes u32, 8 sequence u32, 12 crc32c u32 (of
/// header with this field zero, and descriptors), 16 payload_checksum u64 (XXH3-64), 24 zero u64.
struct FrameHeader {
  FrameType type{};
  std::uint8_t flags = 0;
  std::uint16_t count = 0;
  std::uint32_t payload_bytes = 0;
  std::uint32_t sequence = 0; ///< Counts the frames of a direction from 0, wrapping.
  std::uint32_t crc32c = 0;
  std::uint64_t payload_checksum = 0; ///< With flag_payload_checksum, else 0.
};

/// 32 bytes: slice u64, range u64, offset u64, length u32, zero u32.
struct ReadDescriptor {
  std::uint64_t slice =
      0; ///< The consumer's name for it; opaque to the owner, unique while it is out.
  std::uint64_t range = 0;
  std::uint64_t offset = 0;
  std::uint32_t length_bytes = 0; ///< 1 to slice_bytes_max.
};

/// 32 bytes: slice u64, range u64, offset u64, length u32, last u32.
struct PayloadExtent {
  std::uint64_t slice = 0;
  std::uint64_t range = 0;        ///< WRITE: the owner's range. Answer to a READ: 0.
  std::uint64_t offset = 0;       ///< WRITE: in the range. Answer to a READ: in the slice.
  std::uint32_t length_bytes = 0; ///< At least 1; the sum over a frame is its payload_bytes.
  bool last = false;              ///< No further extent of this slice follows.
};

/// 24 bytes: slice u64, bytes u32, code u16, zero u16, native i32, zero u32.
struct ResultDescriptor {
  std::uint64_t slice = 0;
  /// WRITE: how many bytes of the slice, in the order they were sent, this answers (1 to
  /// slice_bytes_max); every byte that is sent is answered once. READ: 0.
  std::uint32_t bytes = 0;
  /// WRITE: 0 when these bytes are in place, else the ErrorCode for which they are not, or may not
  /// be. READ: the ErrorCode for which nothing more of the slice comes.
  std::uint16_t code = 0;
  std::int32_t native_number = 0; ///< The owner's errno where that is the evidence.
};

/// 8 bytes.
struct CancelDescriptor {
  std::uint64_t slice = 0;
};

/// Bytes of one descriptor of this type.
std::size_t descriptor_bytes(FrameType type);

// -- encoding: descriptors first, then the header over them, which seals the frame ---------------
void encode(const ReadDescriptor& d, std::span<std::byte, 32> out);
void encode(const PayloadExtent& d, std::span<std::byte, 32> out);
void encode(const ResultDescriptor& d, std::span<std::byte, 24> out);
void encode(const CancelDescriptor& d, std::span<std::byte, 8> out);
/// Computes header.crc32c over the header and `descriptors` (already encoded) and writes the
/// header.
void seal(FrameHeader& header, std::span<const std::byte> descriptors,
          std::span<std::byte, frame_header_bytes> out);

// -- decoding ------------------------------------------------------------------------------------
/// Checks type, flags, zero fields, count (1 to max), payload_bytes (only and always for payload, 1
/// to segment_bytes_max). Errors: protocol_mismatch naming the field and its value.
Result<FrameHeader> decode_header(std::span<const std::byte, frame_header_bytes> bytes);
/// The descriptors' length is count * descriptor_bytes. Checks the crc, and of each descriptor zero
/// fields, lengths, ranges of values, offset + length without overflow, and that the extents of a
/// payload frame sum up to payload_bytes. Afterwards the at() functions cannot fail.
Result<void> verify_descriptors(const FrameHeader& header,
                                std::span<const std::byte, frame_header_bytes> header_bytes,
                                std::span<const std::byte> descriptors);
ReadDescriptor read_at(std::span<const std::byte> descriptors, std::size_t index);
PayloadExtent extent_at(std::span<const std::byte> descriptors, std::size_t index);
ResultDescriptor result_at(std::span<const std::byte> descriptors, std::size_t index);
CancelDescriptor cancel_at(std::span<const std::byte> descriptors, std::size_t index);

// -- joining a lane (R22), once each way behind the preamble -------------------------------------
inline constexpr std::size_t lane_join_bytes = 96;
inline constexpr std::size_t lane_accept_bytes = 32;

/// session u64, epoch u64, consumer 16, owner 16, key 16, nonce 16, lane u32, generation u32, zero
/// u32, crc32c u32.
struct LaneJoin {
  std::uint64_t session = 0;
  std::uint64_t epoch = 0;
  EngineId consumer;
  EngineId owner;
  std::array<std::uint8_t, 16>
      key{}; ///< From Welcome. Without TLS it guards against accidents only.
  std::array<std::uint8_t, 16> nonce{}; ///< Fresh.
  std::uint32_t lane = 0;
  std::uint32_t generation = 0; ///< Larger than that of any earlier join of this lane: used once.
};

/// nonce 16 (echoed), code u16 (0 or an ErrorCode), zero u16, zero u64, crc32c u32.
struct LaneAccept {
  std::array<std::uint8_t, 16> nonce{};
  std::uint16_t code = 0;
};

void encode(const LaneJoin& join, std::span<std::byte, lane_join_bytes> out);
Result<LaneJoin> decode_lane_join(std::span<const std::byte, lane_join_bytes> bytes);
void encode(const LaneAccept& accept, std::span<std::byte, lane_accept_bytes> out);
Result<LaneAccept> decode_lane_accept(std::span<const std::byte, lane_accept_bytes> bytes);

} // namespace wherry::wire

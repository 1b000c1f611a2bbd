// Data frames and lane joins: encode, decode, verify. Pure; any thread. On the way of every
// segment: nothing here allocates unless it refuses (R42).
#include "wire/frames.h"

#include "base/assert.h"
#include "base/crc32c.h"
#include "wire/bad_field.h"
#include "wire/bytes.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace wherry::wire {
namespace {

constexpr std::size_t header_crc_offset = 12;
constexpr std::size_t join_crc_offset = lane_join_bytes - 4;
constexpr std::size_t accept_crc_offset = lane_accept_bytes - 4;

constexpr std::string_view type_names[] = {"", "read frame", "payload frame", "result frame",
                                           "cancel frame"};

std::string_view type_name(FrameType type) {
  return type_names[static_cast<std::uint8_t>(type)];
}

const std::byte* descriptor_at(std::span<const std::byte> descriptors, std::size_t index,
                               FrameType type) {
  const std::size_t size = descriptor_bytes(type);
  WHERRY_ASSERT(index < descriptors.size() / size);
  return descriptors.data() + index * size;
}

/// Of the header with its crc field zero, and the descriptors.
std::uint32_t frame_crc(std::span<const std::byte, frame_header_bytes> header,
                        std::span<const std::byte> descriptors) {
  std::array<std::byte, frame_header_bytes> copy{};
  std::copy(header.begin(), header.end(), copy.begin());
  std::fill_n(copy.begin() + header_crc_offset, 4, std::byte{0});
  return crc32c(descriptors, crc32c(copy));
}

bool wraps(std::uint64_t offset, std::uint32_t length_bytes) {
  return offset > UINT64_MAX - length_bytes;
}

[[gnu::cold, gnu::noinline]] tl::unexpected<Error> bad_descriptor(FrameType type, std::size_t index,
                                                                  std::string_view field,
                                                                  std::uint64_t value,
                                                                  std::string_view expected) {
  return bad_field(std::string(type_name(type)) + ", descriptor " + std::to_string(index), field,
                   value, expected);
}

Result<void> verify_reads(std::span<const std::byte> descriptors, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const ReadDescriptor d = read_at(descriptors, i);
    FieldReader unused(descriptor_at(descriptors, i, FrameType::read) + 28);
    if (const std::uint32_t zero = unused.u32(); zero != 0) {
      return bad_descriptor(FrameType::read, i, "its unused field", zero, "0");
    }
    if (d.length_bytes == 0 || d.length_bytes > slice_bytes_max) {
      return bad_descriptor(FrameType::read, i, "length", d.length_bytes, "1 to 1048576");
    }
    if (wraps(d.offset, d.length_bytes)) {
      return bad_descriptor(FrameType::read, i, "offset", d.offset, "below 2^64 - length");
    }
  }
  return {};
}

Result<void> verify_extents(std::span<const std::byte> descriptors, std::size_t count,
                            std::uint32_t payload_bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const PayloadExtent d = extent_at(descriptors, i);
    FieldReader flag(descriptor_at(descriptors, i, FrameType::payload) + 28);
    if (const std::uint32_t last = flag.u32(); last > 1) {
      return bad_descriptor(FrameType::payload, i, "last", last, "0 or 1");
    }
    if (d.length_bytes == 0 || d.length_bytes > segment_bytes_max) {
      return bad_descriptor(FrameType::payload, i, "length", d.length_bytes, "1 to 262144");
    }
    if (wraps(d.offset, d.length_bytes)) {
      return bad_descriptor(FrameType::payload, i, "offset", d.offset, "below 2^64 - length");
    }
    sum += d.length_bytes;
  }
  if (sum != payload_bytes) {
    return bad_field(type_name(FrameType::payload), "the sum of lengths", sum,
                     "payload_bytes, " + std::to_string(payload_bytes));
  }
  return {};
}

Result<void> verify_results(std::span<const std::byte> descriptors, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const ResultDescriptor d = result_at(descriptors, i);
    const std::byte* bytes = descriptor_at(descriptors, i, FrameType::result);
    const std::uint32_t unused = FieldReader(bytes + 14).u16() | FieldReader(bytes + 20).u32();
    if (unused != 0) {
      return bad_descriptor(FrameType::result, i, "an unused field", unused, "0");
    }
    if (d.code > error_code_max) {
      return bad_descriptor(FrameType::result, i, "code", d.code, "0 or an error code");
    }
    // An error without bytes answers a READ; whose slice this is only its sender knows.
    if (d.bytes > slice_bytes_max) {
      return bad_descriptor(FrameType::result, i, "bytes", d.bytes, "1048576 at most");
    }
    if (d.code == 0 && d.bytes == 0) {
      return bad_descriptor(FrameType::result, i, "bytes with code 0", d.bytes, "1 to 1048576");
    }
  }
  return {};
}

} // namespace

std::size_t descriptor_bytes(FrameType type) {
  switch (type) {
  case FrameType::read:
  case FrameType::payload:
    return 32;
  case FrameType::result:
    return 24;
  case FrameType::cancel:
    return 8;
  }
  WHERRY_ASSERT(false && "frame type");
}

void encode(const ReadDescriptor& d, std::span<std::byte, 32> out) {
  FieldWriter(out.data()).u64(d.slice).u64(d.range).u64(d.offset).u32(d.length_bytes).u32(0);
}

void encode(const PayloadExtent& d, std::span<std::byte, 32> out) {
  FieldWriter(out.data())
      .u64(d.slice)
      .u64(d.range)
      .u64(d.offset)
      .u32(d.length_bytes)
      .u32(d.last ? 1 : 0);
}

void encode(const ResultDescriptor& d, std::span<std::byte, 24> out) {
  FieldWriter(out.data()).u64(d.slice).u32(d.bytes).u16(d.code).u16(0).i32(d.native_number).u32(0);
}

void encode(const CancelDescriptor& d, std::span<std::byte, 8> out) {
  FieldWriter(out.data()).u64(d.slice);
}

void seal(FrameHeader& header, std::span<const std::byte> descriptors,
          std::span<std::byte, frame_header_bytes> out) {
  WHERRY_ASSERT(header.count >= 1 && header.count <= frame_descriptors_max);
  WHERRY_ASSERT(descriptors.size() == header.count * descriptor_bytes(header.type));
  FieldWriter(out.data())
      .u8(static_cast<std::uint8_t>(header.type))
      .u8(header.flags)
      .u16(header.count)
      .u32(header.payload_bytes)
      .u32(header.sequence)
      .u32(0)
      .u64(header.payload_checksum)
      .u64(0);
  header.crc32c = frame_crc(out, descriptors);
  FieldWriter(out.data() + header_crc_offset).u32(header.crc32c);
}

Result<FrameHeader> decode_header(std::span<const std::byte, frame_header_bytes> bytes) {
  FieldReader reader(bytes.data());
  const std::uint8_t type = reader.u8();
  if (type < 1 || type > 4) {
    return bad_field("frame header", "type", type, "1 to 4");
  }
  FrameHeader header;
  header.type = static_cast<FrameType>(type);
  header.flags = reader.u8();
  header.count = reader.u16();
  header.payload_bytes = reader.u32();
  header.sequence = reader.u32();
  header.crc32c = reader.u32();
  header.payload_checksum = reader.u64();
  const std::uint64_t zero = reader.u64();

  const bool payload = header.type == FrameType::payload;
  const bool checksum = header.flags == flag_payload_checksum;
  const std::string_view where = type_name(header.type);
  if (header.flags != 0 && !(payload && checksum)) {
    return bad_field(where, "flags", header.flags, payload ? "0 or 1" : "0");
  }
  if (header.count < 1 || header.count > frame_descriptors_max) {
    return bad_field(where, "count", header.count, "1 to 256");
  }
  if (payload && (header.payload_bytes < 1 || header.payload_bytes > segment_bytes_max)) {
    return bad_field(where, "payload_bytes", header.payload_bytes, "1 to 262144");
  }
  if (!payload && header.payload_bytes != 0) {
    return bad_field(where, "payload_bytes", header.payload_bytes, "0");
  }
  if (!checksum && header.payload_checksum != 0) {
    return bad_field(where, "payload_checksum without its flag", header.payload_checksum, "0");
  }
  if (zero != 0) {
    return bad_field(where, "the header's unused field", zero, "0");
  }
  return header;
}

Result<void> verify_descriptors(const FrameHeader& header,
                                std::span<const std::byte, frame_header_bytes> header_bytes,
                                std::span<const std::byte> descriptors) {
  WHERRY_ASSERT(descriptors.size() == header.count * descriptor_bytes(header.type));
  if (const std::uint32_t crc = frame_crc(header_bytes, descriptors); crc != header.crc32c) {
    return bad_field(type_name(header.type), "crc32c", header.crc32c, std::to_string(crc));
  }
  switch (header.type) {
  case FrameType::read:
    return verify_reads(descriptors, header.count);
  case FrameType::payload:
    return verify_extents(descriptors, header.count, header.payload_bytes);
  case FrameType::result:
    return verify_results(descriptors, header.count);
  case FrameType::cancel:
    break;
  }
  return {};
}

ReadDescriptor read_at(std::span<const std::byte> descriptors, std::size_t index) {
  FieldReader reader(descriptor_at(descriptors, index, FrameType::read));
  ReadDescriptor d;
  d.slice = reader.u64();
  d.range = reader.u64();
  d.offset = reader.u64();
  d.length_bytes = reader.u32();
  return d;
}

PayloadExtent extent_at(std::span<const std::byte> descriptors, std::size_t index) {
  FieldReader reader(descriptor_at(descriptors, index, FrameType::payload));
  PayloadExtent d;
  d.slice = reader.u64();
  d.range = reader.u64();
  d.offset = reader.u64();
  d.length_bytes = reader.u32();
  d.last = reader.u32() != 0;
  return d;
}

ResultDescriptor result_at(std::span<const std::byte> descriptors, std::size_t index) {
  FieldReader reader(descriptor_at(descriptors, index, FrameType::result));
  ResultDescriptor d;
  d.slice = reader.u64();
  d.bytes = reader.u32();
  d.code = reader.u16();
  reader.u16();
  d.native_number = reader.i32();
  return d;
}

CancelDescriptor cancel_at(std::span<const std::byte> descriptors, std::size_t index) {
  FieldReader reader(descriptor_at(descriptors, index, FrameType::cancel));
  return CancelDescriptor{reader.u64()};
}

void encode(const LaneJoin& join, std::span<std::byte, lane_join_bytes> out) {
  FieldWriter(out.data())
      .u64(join.session)
      .u64(join.epoch)
      .bytes16(join.consumer.bytes)
      .bytes16(join.owner.bytes)
      .bytes16(join.key)
      .bytes16(join.nonce)
      .u32(join.lane)
      .u32(join.generation)
      .u32(0)
      .u32(0);
  FieldWriter(out.data() + join_crc_offset).u32(crc32c(out.first<join_crc_offset>()));
}

Result<LaneJoin> decode_lane_join(std::span<const std::byte, lane_join_bytes> bytes) {
  FieldReader reader(bytes.data());
  LaneJoin join;
  join.session = reader.u64();
  join.epoch = reader.u64();
  join.consumer.bytes = reader.bytes16();
  join.owner.bytes = reader.bytes16();
  join.key = reader.bytes16();
  join.nonce = reader.bytes16();
  join.lane = reader.u32();
  join.generation = reader.u32();
  const std::uint32_t zero = reader.u32();
  const std::uint32_t crc = reader.u32();
  if (const auto computed = crc32c(bytes.first<join_crc_offset>()); crc != computed) {
    return bad_field("lane join", "crc32c", crc, std::to_string(computed));
  }
  if (zero != 0) {
    return bad_field("lane join", "its unused field", zero, "0");
  }
  if (join.lane >= lanes_max) {
    return bad_field("lane join", "lane", join.lane, "0 to 63");
  }
  return join;
}

void encode(const LaneAccept& accept, std::span<std::byte, lane_accept_bytes> out) {
  FieldWriter(out.data()).bytes16(accept.nonce).u16(accept.code).u16(0).u64(0).u32(0);
  FieldWriter(out.data() + accept_crc_offset).u32(crc32c(out.first<accept_crc_offset>()));
}

Result<LaneAccept> decode_lane_accept(std::span<const std::byte, lane_accept_bytes> bytes) {
  FieldReader reader(bytes.data());
  LaneAccept accept;
  accept.nonce = reader.bytes16();
  accept.code = reader.u16();
  const std::uint64_t zero_16 = reader.u16();
  const std::uint64_t zero_64 = reader.u64();
  const std::uint32_t crc = reader.u32();
  if (const auto computed = crc32c(bytes.first<accept_crc_offset>()); crc != computed) {
    return bad_field("lane accept", "crc32c", crc, std::to_string(computed));
  }
  if ((zero_16 | zero_64) != 0) {
    return bad_field("lane accept", "an unused field", zero_16 | zero_64, "0");
  }
  if (accept.code > error_code_max) {
    return bad_field("lane accept", "code", accept.code, "0 or an error code");
  }
  return accept;
}

} // namespace wherry::wire

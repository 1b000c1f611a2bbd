// Data frames and lane joins (R22, R25, R42): their bytes, what is refused and by which name, and
// that nothing is allocated on the way of a segment.
//
// Method: build a frame, change one thing, seal it again where the check under test lies behind the
// checksum, and look at the refusal.
#include "base/crc32c.h"
#include "support/allocations.h"
#include "support/hex_bytes.h"
#include "wire/bytes.h"
#include "wire/frames.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::wire {
namespace {

using wherry::testing::from_hex;
using wherry::testing::to_hex;
using Bytes = std::vector<std::byte>;

constexpr std::string_view golden_read =
    "0100020000000000070000005b31a5b700000000000000000000000000000000"
    "8877665544332211990000000000000000100000000000000020000000000000"
    "02000000000000000300000000000000feffffffffffffff0100000000000000";
constexpr std::string_view golden_payload =
    "0201020000030000080000008a17b1ee0df0fecaefbeadde0000000000000000"
    "0100000000000000030000000500000010000000000000000001000000000000"
    "0200000000000000000000000000000020000000000000000002000001000000";
constexpr std::string_view golden_result =
    "030002000000000009000000bc09c1d100000000000000000000000000000000"
    "050000000000000000100000000000000000000000000000"
    "060000000000000000000000" // bytes
    "01000000fbffffff00000000";
constexpr std::string_view golden_cancel =
    "04000100000000000a000000d8b966ef00000000000000000000000000000000"
    "ff00000000000000";
constexpr std::string_view golden_join =
    "08070605040302012a00000000000000101112131415161718191a1b1c1d1e1f"
    "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"
    "404142434445464748494a4b4c4d4e4f3f00000009000000000000000214963e";
constexpr std::string_view golden_accept =
    "404142434445464748494a4b4c4d4e4f0800000000000000000000008b4bf63b";

template <class D>
Bytes frame_of(FrameHeader header, const std::vector<D>& descriptors) {
  const std::size_t size = descriptor_bytes(header.type);
  Bytes bytes(frame_header_bytes + size * descriptors.size());
  std::byte* at = bytes.data() + frame_header_bytes;
  for (const D& d : descriptors) {
    if constexpr (std::is_same_v<D, CancelDescriptor>) {
      encode(d, std::span<std::byte, 8>(at, 8));
    } else if constexpr (std::is_same_v<D, ResultDescriptor>) {
      encode(d, std::span<std::byte, 24>(at, 24));
    } else {
      encode(d, std::span<std::byte, 32>(at, 32));
    }
    at += size;
  }
  header.count = static_cast<std::uint16_t>(descriptors.size());
  seal(header, std::span(bytes).subspan(frame_header_bytes),
       std::span<std::byte, frame_header_bytes>(bytes.data(), frame_header_bytes));
  return bytes;
}

Bytes read_frame() {
  return frame_of<ReadDescriptor>(
      {.type = FrameType::read, .sequence = 7},
      {{0x1122334455667788, 0x99, 0x1000, 0x2000}, {2, 3, UINT64_MAX - 1, 1}});
}
Bytes payload_frame() {
  return frame_of<PayloadExtent>(
      {.type = FrameType::payload,
       .flags = flag_payload_checksum,
       .payload_bytes = 0x300,
       .sequence = 8,
       .payload_checksum = 0xdeadbeefcafef00d},
      {{1, 0x0000000500000003, 0x10, 0x100, false}, {2, 0, 0x20, 0x200, true}});
}
Bytes result_frame() {
  return frame_of<ResultDescriptor>({.type = FrameType::result, .sequence = 9},
                                    {{5, 0x1000, 0, 0}, {6, 0, 1, -5}});
}
Bytes cancel_frame() {
  return frame_of<CancelDescriptor>({.type = FrameType::cancel, .sequence = 10}, {{0xff}});
}
std::vector<Bytes> a_frame_of_each_type() {
  return {read_frame(), payload_frame(), result_frame(), cancel_frame()};
}

/// Seals whatever is there now.
void seal_again(Bytes& bytes) {
  FieldWriter(bytes.data() + 12).u32(0);
  FieldWriter(bytes.data() + 12).u32(crc32c(bytes));
}

/// As a reader does: header, then as many descriptors as it says. Fewer bytes are "not yet".
Result<FrameHeader> decode(std::span<const std::byte> bytes) {
  const auto head = bytes.first<frame_header_bytes>();
  auto header = decode_header(head);
  if (!header) {
    return header;
  }
  const std::size_t length = header->count * descriptor_bytes(header->type);
  if (bytes.size() - frame_header_bytes < length) {
    return fail(ErrorCode::busy, "not yet");
  }
  auto verified = verify_descriptors(*header, head, bytes.subspan(frame_header_bytes, length));
  if (!verified) {
    return fail(verified.error());
  }
  return header;
}

std::string refusal(std::span<const std::byte> bytes) {
  const auto decoded = decode(bytes);
  if (decoded) {
    return "accepted";
  }
  EXPECT_EQ(decoded.error().code, ErrorCode::protocol_mismatch);
  return decoded.error().message;
}

/// Writes `value` over `width` bytes.
void poke(Bytes& bytes, std::size_t at, std::size_t width, std::uint64_t value) {
  for (std::size_t i = 0; i < width; ++i) {
    bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
  }
}

TEST(Frames, R22_bytes_are_those_of_protocol_version_1) {
  EXPECT_EQ(to_hex(read_frame()), golden_read);
  EXPECT_EQ(to_hex(payload_frame()), golden_payload);
  EXPECT_EQ(to_hex(result_frame()), golden_result);
  EXPECT_EQ(to_hex(cancel_frame()), golden_cancel);
}

TEST(Frames, R22_decodes_what_was_encoded) {
  const Bytes read = from_hex(golden_read);
  ASSERT_TRUE(decode(read));
  EXPECT_EQ(decode(read)->sequence, 7u);
  const auto reads = std::span(read).subspan(frame_header_bytes);
  EXPECT_EQ(read_at(reads, 0).slice, 0x1122334455667788u);
  EXPECT_EQ(read_at(reads, 0).range, 0x99u);
  EXPECT_EQ(read_at(reads, 1).offset, UINT64_MAX - 1);
  EXPECT_EQ(read_at(reads, 1).length_bytes, 1u);

  const Bytes payload = from_hex(golden_payload);
  const auto header = decode(payload);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->flags, flag_payload_checksum);
  EXPECT_EQ(header->payload_bytes, 0x300u);
  EXPECT_EQ(header->payload_checksum, 0xdeadbeefcafef00du);
  const auto extents = std::span(payload).subspan(frame_header_bytes);
  EXPECT_EQ(extent_at(extents, 0).range, 0x0000000500000003u);
  EXPECT_FALSE(extent_at(extents, 0).last);
  EXPECT_EQ(extent_at(extents, 1).offset, 0x20u);
  EXPECT_EQ(extent_at(extents, 1).length_bytes, 0x200u);
  EXPECT_TRUE(extent_at(extents, 1).last);

  const Bytes result = from_hex(golden_result);
  ASSERT_TRUE(decode(result));
  const auto results = std::span(result).subspan(frame_header_bytes);
  EXPECT_EQ(result_at(results, 0).bytes, 0x1000u);
  EXPECT_EQ(result_at(results, 1).slice, 6u);
  EXPECT_EQ(result_at(results, 1).code, 1u);
  EXPECT_EQ(result_at(results, 1).native_number, -5);

  const Bytes cancel = from_hex(golden_cancel);
  ASSERT_TRUE(decode(cancel));
  EXPECT_EQ(cancel_at(std::span(cancel).subspan(frame_header_bytes), 0).slice, 0xffu);
}

TEST(Frames, R22_decodes_at_every_alignment) {
  for (const Bytes& frame : a_frame_of_each_type()) {
    for (std::size_t shift = 0; shift < 8; ++shift) {
      Bytes shifted(shift + frame.size());
      std::copy(frame.begin(), frame.end(), shifted.begin() + static_cast<std::ptrdiff_t>(shift));
      EXPECT_TRUE(decode(std::span(shifted).subspan(shift))) << shift;
    }
  }
}

TEST(Frames, R42_every_flipped_bit_is_refused) {
  for (const Bytes& frame : a_frame_of_each_type()) {
    for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
      Bytes bytes = frame;
      bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
      EXPECT_FALSE(decode(bytes)) << "bit " << bit << " of " << to_hex(frame);
    }
  }
}

TEST(Frames, R42_a_frame_that_lost_its_tail_is_refused) {
  for (const Bytes& frame : a_frame_of_each_type()) {
    for (std::size_t kept = 0; kept < frame.size(); ++kept) {
      Bytes bytes = frame;
      std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(kept), bytes.end(), std::byte{0xee});
      EXPECT_FALSE(decode(bytes)) << kept << " of " << to_hex(frame);
    }
  }
}

TEST(Frames, R42_a_header_that_names_fewer_or_more_descriptors_is_refused) {
  Bytes bytes = read_frame();
  poke(bytes, 2, 2, 1);
  EXPECT_NE(refusal(bytes).find("crc32c"), std::string::npos);
  poke(bytes, 2, 2, 3);
  bytes.resize(bytes.size() + 32);
  EXPECT_NE(refusal(bytes).find("crc32c"), std::string::npos);
}

TEST(Frames, R42_header_fields_out_of_bounds_are_refused_by_name) {
  struct Row {
    Bytes frame;
    std::size_t at, width;
    std::uint64_t value;
    std::string_view refused;
  };
  const Row rows[] = {
      {read_frame(), 0, 1, 0, "frame header: type is 0, not 1 to 4"},
      {read_frame(), 0, 1, 5, "frame header: type is 5, not 1 to 4"},
      {read_frame(), 0, 1, 255, "frame header: type is 255, not 1 to 4"},
      {read_frame(), 1, 1, 1, "read frame: flags is 1, not 0"},
      {result_frame(), 1, 1, 1, "result frame: flags is 1, not 0"},
      {payload_frame(), 1, 1, 2, "payload frame: flags is 2, not 0 or 1"},
      {payload_frame(), 1, 1, 3, "payload frame: flags is 3, not 0 or 1"},
      {cancel_frame(), 2, 2, 0, "cancel frame: count is 0, not 1 to 256"},
      {cancel_frame(), 2, 2, 257, "cancel frame: count is 257, not 1 to 256"},
      {read_frame(), 2, 2, 65535, "read frame: count is 65535, not 1 to 256"},
      {read_frame(), 4, 4, 1, "read frame: payload_bytes is 1, not 0"},
      {result_frame(), 4, 4, UINT32_MAX, "result frame: payload_bytes is 4294967295, not 0"},
      {cancel_frame(), 4, 4, 1, "cancel frame: payload_bytes is 1, not 0"},
      {payload_frame(), 4, 4, 0, "payload frame: payload_bytes is 0, not 1 to 262144"},
      {payload_frame(), 4, 4, 262145, "payload frame: payload_bytes is 262145, not 1 to 262144"},
      {payload_frame(), 4, 4, 0x301, "payload frame: the sum of lengths is 768, not payload_bytes"},
      {payload_frame(), 1, 1, 0, "payload frame: payload_checksum without its flag"},
      {read_frame(), 16, 8, 1, "read frame: payload_checksum without its flag is 1, not 0"},
      {read_frame(), 24, 1, 1, "read frame: the header's unused field is 1, not 0"},
      {payload_frame(), 31, 1, 1, "payload frame: the header's unused field is 72057594037927936"},
  };
  for (const Row& row : rows) {
    Bytes bytes = row.frame;
    poke(bytes, row.at, row.width, row.value);
    seal_again(bytes);
    EXPECT_TRUE(refusal(bytes).starts_with(row.refused)) << refusal(bytes) << "\n" << row.refused;
  }
}

TEST(Frames, R25_R42_descriptor_fields_out_of_bounds_are_refused_by_name) {
  struct Row {
    Bytes frame;
    std::size_t at, width;
    std::uint64_t value;
    std::string_view refused;
  };
  constexpr std::size_t d1 = frame_header_bytes + 32;
  constexpr std::size_t r1 = frame_header_bytes + 24;
  const Row rows[] = {
      {read_frame(), d1 + 24, 4, 0, "read frame, descriptor 1: length is 0, not 1 to 1048576"},
      {read_frame(), d1 + 24, 4, 1048577, "read frame, descriptor 1: length is 1048577"},
      {read_frame(), d1 + 24, 4, 2, "read frame, descriptor 1: offset is 18446744073709551614"},
      {read_frame(), d1 + 16, 8, UINT64_MAX,
       "read frame, descriptor 1: offset is 18446744073709551615"},
      {read_frame(), d1 + 28, 4, 1, "read frame, descriptor 1: its unused field is 1, not 0"},
      {payload_frame(), d1 + 24, 4, 0, "payload frame, descriptor 1: length is 0"},
      {payload_frame(), d1 + 24, 4, 262145, "payload frame, descriptor 1: length is 262145"},
      {payload_frame(), d1 + 24, 4, UINT32_MAX, "payload frame, descriptor 1: length is 4294967"},
      {payload_frame(), d1 + 24, 4, 0x1ff, "payload frame: the sum of lengths is 767"},
      {payload_frame(), d1 + 16, 8, UINT64_MAX - 0x1ff, "payload frame, descriptor 1: offset is"},
      {payload_frame(), d1 + 28, 4, 2, "payload frame, descriptor 1: last is 2, not 0 or 1"},
      {result_frame(), r1 + 14, 2, 1, "result frame, descriptor 1: an unused field is 1, not 0"},
      {result_frame(), r1 + 20, 4, 2, "result frame, descriptor 1: an unused field is 2, not 0"},
      {result_frame(), r1 + 12, 2, 23, "result frame, descriptor 1: code is 23, not 0 or an error"},
      {result_frame(), r1 + 12, 2, 0, "result frame, descriptor 1: bytes with code 0 is 0"},
      {result_frame(), r1 + 8, 4, 1048577, "result frame, descriptor 1: bytes is 1048577, not 10"},
      {result_frame(), frame_header_bytes + 8, 4, UINT32_MAX,
       "result frame, descriptor 0: bytes is 4294967295, not 1048576 at most"},
  };
  for (const Row& row : rows) {
    Bytes bytes = row.frame;
    poke(bytes, row.at, row.width, row.value);
    seal_again(bytes);
    EXPECT_TRUE(refusal(bytes).starts_with(row.refused)) << refusal(bytes) << "\n" << row.refused;
  }
}

TEST(Frames, R25_fields_at_their_bounds_are_accepted) {
  struct Row {
    std::string_view name;
    Bytes frame;
  };
  const FrameHeader read{.type = FrameType::read, .sequence = UINT32_MAX};
  const FrameHeader payload{.type = FrameType::payload, .payload_bytes = segment_bytes_max};
  const FrameHeader result{.type = FrameType::result};
  const Row rows[] = {
      {"longest read", frame_of<ReadDescriptor>(read, {{0, 0, 0, slice_bytes_max}})},
      {"last byte of all", frame_of<ReadDescriptor>(read, {{0, 0, UINT64_MAX - 1, 1}})},
      {"most reads", frame_of<ReadDescriptor>(read, std::vector(256, ReadDescriptor{1, 2, 3, 4}))},
      {"longest extent", frame_of<PayloadExtent>(payload, {{0, 0, 0, segment_bytes_max, true}})},
      {"most extents",
       frame_of<PayloadExtent>(payload, std::vector(256, PayloadExtent{1, 2, 3, 1024, false}))},
      {"most progress", frame_of<ResultDescriptor>(result, {{0, slice_bytes_max, 0, 0}})},
      {"last code", frame_of<ResultDescriptor>(result, {{0, 0, 22, INT32_MIN}})},
      {"most refused", frame_of<ResultDescriptor>(result, {{0, slice_bytes_max, 11, 0}})},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(refusal(row.frame), "accepted") << row.name;
  }
}

TEST(Frames, R42_lengths_that_sum_up_beyond_32_bits_are_refused) {
  // 2^32 + 1024 as a sum: a 32-bit sum would agree with payload_bytes.
  const Bytes bytes =
      frame_of<PayloadExtent>({.type = FrameType::payload, .payload_bytes = 1024},
                              std::vector(256, PayloadExtent{1, 2, 3, (1u << 24) + 4, false}));
  EXPECT_NE(refusal(bytes), "accepted");
}

TEST(Frames, R42_decoding_allocates_nothing) {
  WHERRY_SKIP_WITHOUT_ALLOCATIONS();
  std::vector<Bytes> frames = a_frame_of_each_type();
  frames.push_back(frame_of<ReadDescriptor>({.type = FrameType::read},
                                            std::vector(256, ReadDescriptor{1, 2, 3, 4})));
  const std::uint64_t before = test::allocation_count();
  bool good = true;
  for (const Bytes& frame : frames) {
    good = decode(frame).has_value() && good;
  }
  EXPECT_EQ(test::allocation_count(), before);
  EXPECT_TRUE(good);
  // The counter sees what a refusal allocates.
  EXPECT_FALSE(decode(Bytes(64)));
  EXPECT_GT(test::allocation_count(), before + 1);
}

LaneJoin some_join() {
  LaneJoin join;
  join.session = 0x0102030405060708;
  join.epoch = 42;
  join.lane = 63;
  join.generation = 9;
  std::uint8_t next = 16;
  for (auto* field : {&join.consumer.bytes, &join.owner.bytes, &join.key, &join.nonce}) {
    for (std::uint8_t& byte : *field) {
      byte = next++;
    }
  }
  return join;
}

std::array<std::byte, lane_join_bytes> encoded(const LaneJoin& join) {
  std::array<std::byte, lane_join_bytes> bytes{};
  encode(join, bytes);
  return bytes;
}

std::array<std::byte, lane_accept_bytes> encoded(const LaneAccept& accept) {
  std::array<std::byte, lane_accept_bytes> bytes{};
  encode(accept, bytes);
  return bytes;
}

TEST(LaneJoin, R22_bytes_are_those_of_protocol_version_1) {
  EXPECT_EQ(to_hex(encoded(some_join())), golden_join);
  EXPECT_EQ(to_hex(encoded(LaneAccept{some_join().nonce, 8})), golden_accept);
}

TEST(LaneJoin, R22_decodes_what_was_encoded) {
  const LaneJoin sent = some_join();
  const auto join = decode_lane_join(encoded(sent));
  ASSERT_TRUE(join) << join.error().message;
  EXPECT_EQ(join->session, sent.session);
  EXPECT_EQ(join->epoch, sent.epoch);
  EXPECT_EQ(join->consumer, sent.consumer);
  EXPECT_EQ(join->owner, sent.owner);
  EXPECT_EQ(join->key, sent.key);
  EXPECT_EQ(join->nonce, sent.nonce);
  EXPECT_EQ(join->lane, sent.lane);
  EXPECT_EQ(join->generation, sent.generation);

  const auto accept = decode_lane_accept(encoded(LaneAccept{sent.nonce, 8}));
  ASSERT_TRUE(accept) << accept.error().message;
  EXPECT_EQ(accept->nonce, sent.nonce);
  EXPECT_EQ(accept->code, 8);
}

TEST(LaneJoin, R42_every_flipped_bit_is_refused) {
  for (std::size_t bit = 0; bit < lane_join_bytes * 8; ++bit) {
    auto bytes = encoded(some_join());
    bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    EXPECT_FALSE(decode_lane_join(bytes)) << bit;
  }
  for (std::size_t bit = 0; bit < lane_accept_bytes * 8; ++bit) {
    auto bytes = encoded(LaneAccept{some_join().nonce, 8});
    bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    EXPECT_FALSE(decode_lane_accept(bytes)) << bit;
  }
}

TEST(LaneJoin, R42_fields_out_of_bounds_are_refused_by_name) {
  LaneJoin join = some_join();
  join.lane = lanes_max;
  const auto lane = decode_lane_join(encoded(join));
  ASSERT_FALSE(lane);
  EXPECT_EQ(lane.error().message, "lane join: lane is 64, not 0 to 63");

  auto bytes = encoded(some_join());
  bytes[88] = std::byte{1};
  FieldWriter(bytes.data() + 92).u32(crc32c(std::span(bytes).first(92)));
  const auto unused = decode_lane_join(bytes);
  ASSERT_FALSE(unused);
  EXPECT_EQ(unused.error().message, "lane join: its unused field is 1, not 0");

  const auto code = decode_lane_accept(encoded(LaneAccept{{}, 23}));
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().message, "lane accept: code is 23, not 0 or an error code");

  for (const std::size_t at : {std::size_t{18}, std::size_t{20}, std::size_t{27}}) {
    auto accept = encoded(LaneAccept{});
    accept[at] = std::byte{1};
    FieldWriter(accept.data() + 28).u32(crc32c(std::span(accept).first(28)));
    const auto decoded = decode_lane_accept(accept);
    ASSERT_FALSE(decoded) << at;
    EXPECT_TRUE(decoded.error().message.starts_with("lane accept: an unused field is"));
  }
}

} // namespace
} // namespace wherry::wire

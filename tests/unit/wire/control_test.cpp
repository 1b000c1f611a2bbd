// Control documents (R20 to R23, R42): every message comes back as it was sent, every field is held
// to its bounds by name, and a body from a stranger costs no more than its own size.
//
// Method for refusals: build a FlatBuffer directly, with the schema's own builders, so that it says
// what encode() would never say; seal it with a right checksum and look at the refusal.
#include "base/crc32c.h"
#include "control_generated.h"
#include "support/control_text.h"
#include "support/hex_bytes.h"
#include "wire/bytes.h"
#include "wire/control.h"
#include "wire/frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

namespace wherry::wire {
namespace {

using flatbuffers::Offset;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using wherry::testing::control_text;
using Builder = flatbuffers::FlatBufferBuilder;
using Bytes = std::vector<std::byte>;

std::array<std::uint8_t, 16> sixteen(std::uint8_t first) {
  std::array<std::uint8_t, 16> bytes{};
  for (std::uint8_t& byte : bytes) {
    byte = first++;
  }
  return bytes;
}

RangeDescription host_range() {
  return {"layer0",
          {make_id(3, 1), 4096, Visibility::remote_read_write, RangeKind::host_memory},
          std::nullopt,
          {PathKind::tcp},
          "direct host memory"};
}

RangeDescription file_range() {
  return {"dir/\xff\x01 file",
          {make_id(4, 9), UINT64_MAX, Visibility::remote_read, RangeKind::file},
          FileVersion{1, 2, 3, -4},
          {PathKind::tcp, PathKind::gds},
          "staged posix file"};
}

/// Every message, with every field different from its default; and the extremes that differ in
/// kind.
std::vector<ControlMessage> all_messages() {
  return {
      Hello{"weights", {sixteen(1)}, 42, EngineId{sixteen(17)}, 64, 99},
      Hello{"x", {sixteen(1)}, 0, std::nullopt, 1, 0},
      Hello{std::string(name_bytes_max, '\xff'), {}, UINT64_MAX, EngineId{}, 1, UINT64_MAX},
      Welcome{{sixteen(1)}, 42, make_id(7, 8), sixteen(33), 64, 128},
      Refusal{ErrorCode::stale_epoch, "another one", 43},
      Refusal{ErrorCode::stalled, "", 0},
      DescribeRequest{5, 6},
      DescribeReply{7, {host_range(), file_range()}, 8},
      DescribeReply{7, {}, 0},
      LookupRequest{9, "layer0"},
      LookupReply{10, file_range()},
      ChecksumRequest{11, 12, 13, 14},
      ChecksumReply{15, {sixteen(5)}},
      ErrorReply{16, ErrorCode::io_error, -5, "file gone"},
      FenceRequest{17, 63, UINT32_MAX},
      FenceReply{18},
      Recall{19},
      RecallDone{20},
      Goodbye{},
  };
}

Result<ControlMessage> decode(std::span<const std::byte> frame) {
  const auto header = decode_control_header(frame.first<control_header_bytes>());
  if (!header) {
    return fail(header.error());
  }
  const auto body = frame.subspan(control_header_bytes);
  if (body.size() < header->body_bytes) {
    return fail(ErrorCode::busy, "not yet");
  }
  return decode_control(*header, body.first(header->body_bytes));
}

/// Of a body, sealed rightly.
Result<ControlMessage> decode_body(std::span<const std::byte> body) {
  return decode_control({static_cast<std::uint32_t>(body.size()), crc32c(body)}, body);
}

using Build = std::function<Offset<void>(Builder&)>;

Result<ControlMessage> decode_built(fb::Message type, const Build& build) {
  Builder builder;
  const auto message = build(builder);
  builder.Finish(fb::CreateEnvelope(builder, type, message));
  return decode_body(
      std::as_bytes(std::span(builder.GetBufferPointer(), std::size_t{builder.GetSize()})));
}

Offset<flatbuffers::Vector<std::uint8_t>> bytes_of(Builder& builder, std::string_view text) {
  return builder.CreateVector(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

const fb::Bytes16 some_id(flatbuffers::span<const std::uint8_t, 16>(sixteen(1)));

TEST(Control, R21_every_message_comes_back_as_it_was_sent) {
  for (const ControlMessage& message : all_messages()) {
    const auto decoded = decode(encode(message));
    ASSERT_TRUE(decoded) << control_text(message) << "\n" << decoded.error().message;
    EXPECT_EQ(control_text(*decoded), control_text(message));
  }
}

TEST(Control, R42_bodies_decode_at_every_alignment) {
  const Bytes frame = encode(DescribeReply{7, {host_range(), file_range()}, 8});
  const auto body = std::span(frame).subspan(control_header_bytes);
  for (std::size_t shift = 0; shift < 8; ++shift) {
    Bytes shifted(shift + body.size());
    std::copy(body.begin(), body.end(), shifted.begin() + static_cast<std::ptrdiff_t>(shift));
    EXPECT_TRUE(decode_body(std::span(shifted).subspan(shift))) << shift;
  }
}

TEST(Control, R42_every_flipped_bit_is_refused) {
  for (const ControlMessage& message : all_messages()) {
    const Bytes frame = encode(message);
    for (std::size_t bit = 0; bit < std::min<std::size_t>(frame.size(), 512) * 8; ++bit) {
      Bytes bytes = frame;
      bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
      EXPECT_FALSE(decode(bytes)) << "bit " << bit << " of " << control_text(message);
    }
  }
}

TEST(Control, R42_a_flipped_bit_under_a_right_checksum_does_no_harm) {
  for (const ControlMessage& message : all_messages()) {
    const Bytes frame = encode(message);
    const auto body = std::span(frame).subspan(control_header_bytes);
    if (body.size() > 512) {
      continue; // The long name: thousands of bits that all mean the same.
    }
    for (std::size_t bit = 0; bit < body.size() * 8; ++bit) {
      Bytes bytes(body.begin(), body.end());
      bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
      const auto decoded = decode_body(bytes);
      if (decoded) {
        EXPECT_EQ(control_text(*decode(encode(*decoded))), control_text(*decoded));
      } else {
        EXPECT_EQ(decoded.error().code, ErrorCode::protocol_mismatch);
      }
    }
  }
}

TEST(Control, R42_every_truncation_is_refused) {
  for (const ControlMessage& message : all_messages()) {
    const Bytes frame = encode(message);
    const auto body = std::span(frame).subspan(control_header_bytes);
    for (std::size_t kept = 1; kept < std::min<std::size_t>(body.size(), 512); ++kept) {
      // A copy, so that the address sanitizer sees reading beyond.
      const Bytes bytes(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(kept));
      EXPECT_FALSE(decode_control({static_cast<std::uint32_t>(kept), crc32c(body)}, bytes));
      // Under a right checksum only padding may be missing.
      if (const auto decoded = decode_body(bytes); decoded) {
        EXPECT_GE(kept + 8, body.size());
        EXPECT_EQ(control_text(*decoded), control_text(message));
      }
    }
  }
}

TEST(Control, R42_header_lengths_are_bounded_before_anything_is_read) {
  struct Row {
    std::uint32_t body_bytes;
    bool accepted;
  };
  const Row rows[] = {{0, false},
                      {1, true},
                      {control_body_bytes_max, true},
                      {control_body_bytes_max + 1, false},
                      {UINT32_MAX, false}};
  for (const Row& row : rows) {
    std::array<std::byte, control_header_bytes> bytes{};
    FieldWriter(bytes.data()).u32(row.body_bytes).u32(77);
    const auto header = decode_control_header(bytes);
    ASSERT_EQ(header.has_value(), row.accepted) << row.body_bytes;
    if (header) {
      EXPECT_EQ(header->body_bytes, row.body_bytes);
      EXPECT_EQ(header->crc32c, 77u);
    } else {
      EXPECT_EQ(header.error().code, ErrorCode::protocol_mismatch);
      EXPECT_EQ(header.error().message, "control header: body_bytes is " +
                                            std::to_string(row.body_bytes) + ", not 1 to 1048576");
    }
  }
}

struct Wrong {
  std::string_view refused;
  fb::Message type;
  Build build;
};

void expect_refused(std::span<const Wrong> rows) {
  for (const Wrong& row : rows) {
    const auto decoded = decode_built(row.type, row.build);
    ASSERT_FALSE(decoded) << row.refused;
    EXPECT_EQ(decoded.error().code, ErrorCode::protocol_mismatch);
    EXPECT_THAT(decoded.error().message, HasSubstr(std::string(row.refused)));
  }
}

TEST(Control, R42_a_message_that_is_missing_or_unknown_is_refused) {
  const auto goodbye = [](Builder& b) { return fb::CreateGoodbye(b).Union(); };
  const Wrong rows[] = {
      {"it is missing", fb::Message::Hello, [](Builder&) { return Offset<void>(); }},
      {"type is 0, not 1 to 15", fb::Message::NONE, goodbye},
      {"type is 16, not 1 to 15", static_cast<fb::Message>(16), goodbye},
      {"type is 255, not 1 to 15", static_cast<fb::Message>(255), goodbye},
  };
  expect_refused(rows);
}

TEST(Control, R21_R42_fields_of_greetings_out_of_bounds_are_refused_by_name) {
  const auto hello = [](std::string_view name, std::uint32_t lanes) -> Build {
    return [=](Builder& b) {
      return fb::CreateHello(b, bytes_of(b, name), &some_id, 0, nullptr, lanes).Union();
    };
  };
  const auto welcome = [](std::uint64_t epoch, std::uint64_t session, std::uint32_t lanes,
                          std::uint32_t slices) -> Build {
    return [=](Builder& b) {
      return fb::CreateWelcome(b, &some_id, epoch, session, &some_id, lanes, slices).Union();
    };
  };
  const auto refusal = [](std::uint16_t code, std::size_t length) -> Build {
    return [=](Builder& b) {
      return fb::CreateRefusal(b, code, b.CreateString(std::string(length, 'x'))).Union();
    };
  };
  static const std::string long_name(4096, 'n');
  const Wrong rows[] = {
      {"Hello: name has length 0, not 1 to 4095", fb::Message::Hello, hello("", 1)},
      {"Hello: name has length 4096, not 1 to 4095", fb::Message::Hello, hello(long_name, 1)},
      {"Hello: name has a NUL byte", fb::Message::Hello, hello({"a\0b", 3}, 1)},
      {"Hello: name is missing", fb::Message::Hello,
       [](Builder& b) { return fb::CreateHello(b, 0, &some_id, 0, nullptr, 1).Union(); }},
      {"Hello: consumer is missing", fb::Message::Hello,
       [](Builder& b) {
         return fb::CreateHello(b, bytes_of(b, "x"), nullptr, 0, nullptr, 1).Union();
       }},
      {"Hello: lanes is 0, not 1 to 64", fb::Message::Hello, hello("x", 0)},
      {"Hello: lanes is 65, not 1 to 64", fb::Message::Hello, hello("x", 65)},
      {"Welcome: owner is missing", fb::Message::Welcome,
       [](Builder& b) { return fb::CreateWelcome(b, nullptr, 1, 1, &some_id, 1, 1).Union(); }},
      {"Welcome: key is missing", fb::Message::Welcome,
       [](Builder& b) { return fb::CreateWelcome(b, &some_id, 1, 1, nullptr, 1, 1).Union(); }},
      {"Welcome: epoch is 0, not 1 to", fb::Message::Welcome, welcome(0, 1, 1, 1)},
      {"Welcome: session is 0, not 1 to", fb::Message::Welcome, welcome(1, 0, 1, 1)},
      {"Welcome: lanes is 0, not 1 to 64", fb::Message::Welcome, welcome(1, 1, 0, 1)},
      {"Welcome: lanes is 65, not 1 to 64", fb::Message::Welcome, welcome(1, 1, 65, 1)},
      {"Welcome: slices_max is 0, not 1 to", fb::Message::Welcome, welcome(1, 1, 1, 0)},
      {"Refusal: code is 0, not 1 to 22", fb::Message::Refusal, refusal(0, 1)},
      {"Refusal: code is 23, not 1 to 22", fb::Message::Refusal, refusal(23, 1)},
      {"Refusal: message has length 4097, not 0 to 4096", fb::Message::Refusal, refusal(1, 4097)},
  };
  expect_refused(rows);
}

TEST(Control, R42_fields_of_answers_out_of_bounds_are_refused_by_name) {
  const Wrong rows[] = {
      {"LookupRequest: name is missing", fb::Message::LookupRequest,
       [](Builder& b) { return fb::CreateLookupRequest(b, 1, 0).Union(); }},
      {"LookupReply: range is missing", fb::Message::LookupReply,
       [](Builder& b) { return fb::CreateLookupReply(b, 1, 0).Union(); }},
      {"ChecksumReply: digest is missing", fb::Message::ChecksumReply,
       [](Builder& b) { return fb::CreateChecksumReply(b, 1, nullptr).Union(); }},
      {"ErrorReply: code is 0", fb::Message::ErrorReply,
       [](Builder& b) { return fb::CreateErrorReply(b, 1, 0).Union(); }},
      {"ErrorReply: message has length 4097", fb::Message::ErrorReply,
       [](Builder& b) {
         return fb::CreateErrorReply(b, 1, 1, 0, b.CreateString(std::string(4097, 'x'))).Union();
       }},
      {"FenceRequest: lane is 64, not 0 to 63", fb::Message::FenceRequest,
       [](Builder& b) { return fb::CreateFenceRequest(b, 1, 64, 1).Union(); }},
  };
  expect_refused(rows);
}

/// The fields of a range description, all good unless changed.
struct RangeFields {
  std::string name = "x";
  std::uint64_t id = 1, length_bytes = 1;
  std::uint8_t visibility = 1, kind = 0;
  std::vector<std::uint8_t> routes = {1};
  std::string evidence = "e";
};

Offset<fb::RangeDescription> build(Builder& b, const RangeFields& f) {
  const auto name = bytes_of(b, f.name);
  const auto routes = b.CreateVector(f.routes);
  const auto evidence = b.CreateString(f.evidence);
  return fb::CreateRangeDescription(b, name, f.id, f.length_bytes, f.visibility, f.kind, nullptr,
                                    routes, evidence);
}

TEST(Control, R23_R42_fields_of_descriptions_out_of_bounds_are_refused_by_name) {
  struct Row {
    std::string_view refused;
    RangeFields fields;
  };
  const Row rows[] = {
      {"range name has length 0", {.name = ""}},
      {"range name has length 4096", {.name = std::string(4096, 'n')}},
      {"range name has a NUL byte", {.name = std::string(2, '\0')}},
      {"range id is 0", {.id = 0}},
      {"range visibility is 0, not 1 to 2", {.visibility = 0}},
      {"range visibility is 3, not 1 to 2", {.visibility = 3}},
      {"range kind is 2, not 0 to 1", {.kind = 2}},
      {"range route is 0, not 1 to 6", {.routes = {1, 0}}},
      {"range route is 7, not 1 to 6", {.routes = {7}}},
      {"range routes has length 17, not 0 to 16", {.routes = std::vector<std::uint8_t>(17, 1)}},
      {"range evidence has length 4097", {.evidence = std::string(4097, 'e')}},
  };
  for (const Row& row : rows) {
    const Wrong wrong[] = {
        {row.refused, fb::Message::LookupReply,
         [&](Builder& b) { return fb::CreateLookupReply(b, 1, build(b, row.fields)).Union(); }},
        {row.refused, fb::Message::DescribeReply, [&](Builder& b) {
           const std::vector ranges = {build(b, {}), build(b, row.fields)};
           return fb::CreateDescribeReply(b, 1, b.CreateVector(ranges), 0).Union();
         }}};
    expect_refused(wrong);
  }
  EXPECT_TRUE(decode_built(fb::Message::LookupReply, [](Builder& b) {
    return fb::CreateLookupReply(b, 1, build(b, {})).Union();
  }));
}

TEST(Control, R42_pages_of_too_many_ranges_are_refused) {
  const auto page_of = [](std::size_t count) {
    return decode_built(fb::Message::DescribeReply, [&](Builder& b) {
      std::vector<Offset<fb::RangeDescription>> ranges;
      ranges.reserve(count);
      for (std::size_t i = 0; i < count; ++i) {
        ranges.push_back(build(b, {}));
      }
      return fb::CreateDescribeReply(b, 1, b.CreateVector(ranges), 0).Union();
    });
  };
  EXPECT_TRUE(page_of(describe_page_max));
  const auto over = page_of(describe_page_max + 1);
  ASSERT_FALSE(over);
  EXPECT_THAT(over.error().message, HasSubstr("ranges has length 257, not 0 to 256"));
  const auto far_over = page_of(5000);
  ASSERT_FALSE(far_over);
  EXPECT_THAT(far_over.error().message, HasSubstr("does not pass the verifier"));
}

TEST(Control, R42_a_small_body_cannot_name_long_strings_many_times) {
  RangeFields fields;
  fields.name = std::string(4000, 'n');
  fields.evidence = std::string(4000, 'e');
  const auto decoded = decode_built(fb::Message::DescribeReply, [&](Builder& b) {
    const std::vector ranges(describe_page_max, build(b, fields));
    return fb::CreateDescribeReply(b, 1, b.CreateVector(ranges), 0).Union();
  });
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().message, "control message DescribeReply: ranges overlap");
}

TEST(Control, R42_noise_and_empty_documents_are_refused) {
  for (const std::string_view hex :
       {"00", "00000000", "04000000", "ffffffff", "ffffff7f00000000", "0400000004000000",
        "08000000000000000400040004000000", "0c000000080008000000000004000000"}) {
    const auto decoded = decode_body(wherry::testing::from_hex(hex));
    ASSERT_FALSE(decoded) << hex;
    EXPECT_THAT(decoded.error().message, StartsWith("control message: "));
  }
}

TEST(Control, R23_description_bytes_bounds_what_a_range_takes_of_a_page) {
  const std::size_t empty = encode(DescribeReply{1, {}, 2}).size();
  for (std::size_t name = 1; name < 20; ++name) {
    for (std::size_t evidence = 0; evidence < 9; ++evidence) {
      for (std::size_t routes = 0; routes <= routes_max; ++routes) {
        RangeDescription range = evidence % 2 == 0 ? host_range() : file_range();
        range.name = std::string(name, 'n');
        range.evidence = std::string(evidence, 'e');
        range.routes.assign(routes, PathKind::rdma);
        const auto one = encode(DescribeReply{1, {range}, 2}).size();
        EXPECT_LE(one, empty + description_bytes(range)) << name << evidence << routes;
        const auto three = encode(DescribeReply{1, {host_range(), range, range}, 2}).size();
        EXPECT_LE(three, empty + 2 * description_bytes(range) + description_bytes(host_range()));
      }
    }
  }
}

TEST(Control, R23_a_page_filled_to_its_bound_is_encoded_and_decoded) {
  DescribeReply page{1, {}, 2};
  std::size_t bytes = 0;
  RangeDescription range = file_range();
  range.name = std::string(name_bytes_max, 'n');
  range.evidence = std::string(message_bytes_max, 'e');
  while (bytes + description_bytes(range) <= describe_page_bytes_max) {
    bytes += description_bytes(range);
    page.ranges.push_back(range);
  }
  range.evidence.clear();
  range.name.resize(describe_page_bytes_max - bytes - description_bytes(range) + range.name.size());
  page.ranges.push_back(range);
  EXPECT_EQ(bytes + description_bytes(range), describe_page_bytes_max);
  const auto decoded = decode(encode(page));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(std::get<DescribeReply>(*decoded).ranges.size(), page.ranges.size());
}

TEST(Control, R42_texts_for_people_are_cut_between_characters) {
  struct Row {
    std::string_view name;
    std::string text;
    std::size_t sent_bytes;
  };
  const std::string fits(message_bytes_max - 2, 'x');
  const Row rows[] = {
      {"at the bound", fits + "yz", message_bytes_max},
      {"beyond", fits + "yzz", message_bytes_max},
      {"character across the bound", fits + "\xe2\x82\xac", message_bytes_max - 2},
      {"character before the bound", fits + "\xc3\xa9!", message_bytes_max},
      {"long character", fits + "\xf0\x9f\x9a\xa4", message_bytes_max - 2},
      {"no text at all", fits + std::string(10, '\x80'), message_bytes_max - 3},
  };
  for (const Row& row : rows) {
    const auto decoded = decode(encode(Refusal{ErrorCode::busy, row.text, 0}));
    ASSERT_TRUE(decoded) << row.name << decoded.error().message;
    EXPECT_EQ(std::get<Refusal>(*decoded).message, row.text.substr(0, row.sent_bytes)) << row.name;
  }
}

TEST(Control, names_are_1_to_4095_bytes_without_nul) {
  EXPECT_FALSE(is_name(""));
  EXPECT_TRUE(is_name("x"));
  EXPECT_TRUE(is_name("\xff/\n"));
  EXPECT_TRUE(is_name(std::string(4095, 'n')));
  EXPECT_FALSE(is_name(std::string(4096, 'n')));
  EXPECT_FALSE(is_name(std::string_view("a\0", 2)));
}

TEST(ControlDeathTest, encoding_what_is_out_of_bounds_is_our_own_mistake) {
  EXPECT_DEATH(encode(LookupRequest{1, ""}), "is_name");
  EXPECT_DEATH(encode(DescribeReply{1, std::vector(257, host_range()), 0}), "describe_page_max");
}

} // namespace
} // namespace wherry::wire

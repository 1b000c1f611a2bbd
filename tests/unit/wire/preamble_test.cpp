// The preamble (R22): its bytes, what it refuses and by which name.
#include "support/hex_bytes.h"
#include "wire/preamble.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace wherry::wire {
namespace {

using Bytes = std::array<std::byte, preamble_bytes>;

constexpr std::string_view golden = "5748455252590d0a010003009e8aaf2e";

Bytes bytes_of(std::string_view text) {
  Bytes bytes{};
  const auto source = std::as_bytes(std::span(text)).first(std::min(text.size(), bytes.size()));
  std::copy(source.begin(), source.end(), bytes.begin());
  return bytes;
}

TEST(Preamble, R22_bytes_are_those_of_every_version) {
  EXPECT_EQ(wherry::testing::to_hex(encode({.role = Role::lane_consumer})), golden);
}

TEST(Preamble, R22_decodes_what_was_encoded) {
  for (const Role role :
       {Role::control_consumer, Role::control_owner, Role::lane_consumer, Role::lane_owner}) {
    const auto decoded = decode_preamble(encode({.role = role}));
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(decoded->version, protocol_version);
    EXPECT_EQ(decoded->role, role);
    EXPECT_EQ(decoded->security, Security::none);
  }
}

TEST(Preamble, R22_role_and_security_that_are_not_known_are_left_to_the_caller) {
  const auto decoded = decode_preamble(
      encode({.role = static_cast<Role>(250), .security = static_cast<Security>(7)}));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(static_cast<int>(decoded->role), 250);
  EXPECT_EQ(static_cast<int>(decoded->security), 7);
}

TEST(Preamble, R22_another_version_is_refused_with_both_versions) {
  const auto decoded = decode_preamble(encode({.version = 713, .role = Role::control_consumer}));
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, ErrorCode::protocol_mismatch);
  EXPECT_EQ(decoded.error().message,
            "the peer speaks Wherry protocol version 713, this engine version 1");
}

TEST(Preamble, R42_every_flipped_bit_is_refused) {
  const Bytes whole = encode({.role = Role::control_owner});
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    const auto decoded = decode_preamble(bytes);
    ASSERT_FALSE(decoded) << "bit " << bit;
    EXPECT_EQ(decoded.error().code, ErrorCode::protocol_mismatch);
  }
}

TEST(Preamble, R22_a_preamble_may_become_one_at_every_length) {
  const Bytes whole = encode({.role = Role::control_owner});
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    EXPECT_TRUE(may_be_preamble(std::span(whole).first(length))) << length;
  }
}

TEST(Preamble, R22_a_stranger_is_known_at_the_first_wrong_byte) {
  const Bytes whole = encode({.role = Role::control_owner});
  for (std::size_t wrong = 0; wrong < 8; ++wrong) {
    Bytes bytes = whole;
    bytes[wrong] ^= std::byte{0x20};
    EXPECT_TRUE(may_be_preamble(std::span(bytes).first(wrong)));
    EXPECT_FALSE(may_be_preamble(std::span(bytes).first(wrong + 1)));
    EXPECT_FALSE(may_be_preamble(bytes));
  }
}

TEST(Preamble, R22_strangers_are_called_by_name) {
  struct Row {
    std::string_view sent;
    std::string_view named;
  };
  const Row rows[] = {
      {"HTTP/1.1 400 Bad", "an HTTP response"},
      {"GET / HTTP/1.1\r\n", "an HTTP request"},
      {"POST /v3/kv/put ", "an HTTP request"},
      {"OPTIONS * HTTP/1", "an HTTP request"},
      {"PRI * HTTP/2.0\r\n", "an HTTP/2 request"},
      {std::string_view("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 01234", 16),
       "a TLS handshake"},
      {std::string_view("\x15\x03\x03\x00\x02\x02\x28 01234567", 16), "a TLS alert"},
      {"SSH-2.0-OpenSSH_", "an SSH banner"},
      {"WHERRY\n\0\1\0\1\0....", "hex 5748455252590a"},
      {"0123456789abcdef", "hex 30313233343536373839616263646566"},
      {"", "hex 00000000000000000000000000000000"},
  };
  for (const Row& row : rows) {
    const auto decoded = decode_preamble(bytes_of(row.sent));
    ASSERT_FALSE(decoded) << row.named;
    EXPECT_EQ(decoded.error().code, ErrorCode::protocol_mismatch);
    EXPECT_TRUE(decoded.error().message.starts_with(
        "the peer does not speak Wherry: its first bytes are " + std::string(row.named)))
        << decoded.error().message;
  }
}

TEST(Preamble, R22_a_short_stranger_is_shown_as_far_as_it_came) {
  const std::string_view sent = "SS";
  EXPECT_EQ(not_a_preamble(std::as_bytes(std::span(sent))).message,
            "the peer does not speak Wherry: its first bytes are hex 5353");
  const std::string_view banner = "SSH-";
  EXPECT_EQ(not_a_preamble(std::as_bytes(std::span(banner))).message,
            "the peer does not speak Wherry: its first bytes are an SSH banner");
  EXPECT_EQ(not_a_preamble({}).code, ErrorCode::protocol_mismatch);
}

} // namespace
} // namespace wherry::wire

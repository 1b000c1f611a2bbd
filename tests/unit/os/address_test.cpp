// HOST:PORT, as options and peers write it (R42).
#include "os/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace wherry {
namespace {

using ::testing::HasSubstr;

struct Row {
  const char* text;
  const char* host;
  std::uint16_t port;
};

TEST(Address, is_split_and_printed_back) {
  constexpr std::array rows = {
      Row{"127.0.0.1:0", "127.0.0.1", 0},
      Row{"[::1]:80", "::1", 80},
      Row{"[::]:65535", "::", 65535},
      Row{"0.0.0.0:1", "0.0.0.0", 1},
      Row{"owner.example:7", "owner.example", 7},
  };
  for (const Row& row : rows) {
    const auto address = parse_address(row.text);
    ASSERT_TRUE(address) << row.text;
    EXPECT_EQ(address->host, row.host);
    EXPECT_EQ(address->port, row.port);
    EXPECT_EQ(address->to_string(), row.text);
  }
}

struct BadRow {
  const char* text;
  const char* part;
};

TEST(Address, R42_a_refusal_names_the_part_quotes_the_text_and_shows_an_example) {
  constexpr std::array rows = {
      BadRow{"", "port"},        BadRow{"127.0.0.1", "port"},     BadRow{"127.0.0.1:", "port"},
      BadRow{"a:65536", "port"}, BadRow{"a:-1", "port"},          BadRow{"a: 1", "port"},
      BadRow{":80", "host"},     BadRow{"[]:80", "host"},         BadRow{"::1:80", "brackets"},
      BadRow{"[::1:80", "host"}, BadRow{"[10.0.0.1]:80", "host"}, BadRow{"1.2.3:80", "host"},
      BadRow{"a b:80", "host"},
  };
  for (const BadRow& row : rows) {
    const auto address = parse_address(row.text);
    ASSERT_FALSE(address) << row.text;
    EXPECT_EQ(address.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(address.error().message, HasSubstr(row.part)) << row.text;
    EXPECT_THAT(address.error().message, HasSubstr("\"" + std::string(row.text) + "\""));
    EXPECT_THAT(address.error().message, HasSubstr("127.0.0.1:7000"));
  }
}

} // namespace
} // namespace wherry

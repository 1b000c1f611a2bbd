// Decimal numbers and hosts, as they come from users and files (R42).
#include "base/random.h"
#include "base/syntax.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace wherry {
namespace {

TEST(Syntax, R42_decimal_numbers_are_digits_and_nothing_else) {
  EXPECT_EQ(parse_decimal("0", 10), 0U);
  EXPECT_EQ(parse_decimal("10", 10), 10U);
  EXPECT_EQ(parse_decimal("18446744073709551615", UINT64_MAX), UINT64_MAX);
  for (const char* text : {"", "11", "-1", "+1", " 1", "1 ", "01", "00", "0x1", "1e1", "1.0",
                           "18446744073709551616", "99999999999999999999999999"}) {
    EXPECT_EQ(parse_decimal(text, text[0] == '1' && text[1] == '1' ? 10 : UINT64_MAX), std::nullopt)
        << text;
  }
}

struct HostRow {
  const char* host;
  bool bracketed;
  bool good;
};

TEST(Syntax, hosts) {
  constexpr std::array rows = {
      HostRow{"10.0.0.1", false, true},
      HostRow{"255.255.255.255", false, true},
      HostRow{"localhost", false, true},
      HostRow{"node-7.rack.example", false, true},
      HostRow{"7up.example", false, true},
      HostRow{"::1", true, true},
      HostRow{"fe80::1234", true, true},
      HostRow{"::ffff:10.0.0.1", true, true},
      HostRow{"1:2:3:4:5:6:7:8", true, true},
      HostRow{"::", true, true},
      HostRow{"", false, false},
      HostRow{"", true, false},
      HostRow{"10.0.0.256", false, false}, // would be asked of a name server
      HostRow{"127.1", false, false},      // means 127.0.0.1 to some
      HostRow{"10.0.0.01", false, false},  // means octal to some
      HostRow{"1.2.3.4.5", false, false},
      HostRow{"10.0.0.", false, false},
      HostRow{"host_name", false, false},
      HostRow{"höst", false, false},
      HostRow{"a b", false, false},
      HostRow{"user@host", false, false},
      HostRow{"10.0.0.1", true, false},     // brackets are for IPv6
      HostRow{"fe80::1%eth0", true, false}, // means nothing on another host
      HostRow{"1:2:3:4:5:6:7", true, false},
      HostRow{"1:2:3:4:5:6:7:8:9", true, false},
      HostRow{"1::2::3", true, false},
      HostRow{":::", true, false},
      HostRow{"1:", true, false},
      HostRow{"12345::", true, false},
      HostRow{"g::1", true, false},
  };
  for (const HostRow& row : rows) {
    EXPECT_EQ(host_problem(row.host, row.bracketed).empty(), row.good)
        << row.host << ": " << host_problem(row.host, row.bracketed);
  }
  EXPECT_EQ(host_problem(std::string(253, 'a'), false), "");
  EXPECT_NE(host_problem(std::string(254, 'a'), false), "");
  EXPECT_NE(host_problem(std::string("a\0b", 3), false), "");
}

// The C library's judge, over texts that are nearly addresses.
TEST(Syntax, numeric_addresses_are_those_that_inet_pton_takes) {
  SeededRandom random(1);
  constexpr std::string_view alphabet = "0123::::..af";
  int accepted = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text(1 + random.below(12), ' ');
    for (char& c : text) {
      c = alphabet[random.below(alphabet.size())];
    }
    std::array<unsigned char, 16> address{};
    const bool ipv6 = inet_pton(AF_INET6, text.c_str(), address.data()) == 1;
    ASSERT_EQ(host_problem(text, true).empty(), ipv6) << text;
    if (text.find_first_not_of("0123456789.") == std::string::npos) {
      const bool ipv4 = inet_pton(AF_INET, text.c_str(), address.data()) == 1;
      ASSERT_EQ(host_problem(text, false).empty(), ipv4) << text;
    }
    accepted += ipv6 ? 1 : 0;
  }
  EXPECT_GT(accepted, 100); // the texts were near enough
}

struct SplitRow {
  const char* text;
  const char* host;
  const char* port;
  bool bracketed;
};

TEST(Syntax, host_and_port_are_split_at_the_colon_behind_the_host) {
  constexpr std::array rows = {
      SplitRow{"host:1", "host", "1", false}, SplitRow{"[::1]:80", "::1", "80", true},
      SplitRow{":80", "", "80", false},       SplitRow{"host:", "host", "", false},
      SplitRow{"[]:1", "", "1", true},
  };
  for (const SplitRow& row : rows) {
    const auto [parts, problem] = split_host_and_port(row.text);
    EXPECT_EQ(problem, "") << row.text;
    EXPECT_EQ(parts.host, row.host) << row.text;
    EXPECT_EQ(parts.port, row.port) << row.text;
    EXPECT_EQ(parts.bracketed, row.bracketed) << row.text;
  }
  for (const char* text : {"", "host", "[::1]", "[::1", "[::1]x:80", "::1:80", "a:b:c"}) {
    EXPECT_NE(split_host_and_port(text).problem, "") << text;
  }
}

} // namespace
} // namespace wherry

// Source references as users type, paste and store them (R20, R42).
#include "base/random.h"

#include <wherry/source.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace wherry {
namespace {

using ::testing::HasSubstr;

struct GoodRow {
  const char* text;
  const char* host;
  std::uint16_t port;
  std::string name;
  std::optional<std::uint64_t> epoch;
};

TEST(SourceReference, R20_is_taken_apart) {
  const std::array rows = {
      GoodRow{"wherry://10.0.0.1:7000/weights?epoch=42", "10.0.0.1", 7000, "weights", 42},
      GoodRow{"wherry://[::1]:1/a", "::1", 1, "a", {}},
      GoodRow{"wherry://node-7.example:65535/a", "node-7.example", 65535, "a", {}},
      GoodRow{"wherry://h:1/a/b//c/", "h", 1, "a/b//c/", {}},
      GoodRow{"wherry://h:1//abs", "h", 1, "/abs", {}},
      GoodRow{"wherry://h:1/a%2Fb%2fc", "h", 1, "a/b/c", {}},
      GoodRow{"wherry://h:1/100%25%3Fx%20y", "h", 1, "100%?x y", {}},
      GoodRow{"wherry://h:1/gr%C3%BC\xc3\x9f", "h", 1, "gr\xc3\xbc\xc3\x9f", {}},
      GoodRow{"wherry://h:1/%ff%01", "h", 1, "\xff\x01", {}},
      GoodRow{"wherry://h:1/a:b@c+d&e=f", "h", 1, "a:b@c+d&e=f", {}},
      GoodRow{"wherry://h:1/a?epoch=18446744073709551615", "h", 1, "a", UINT64_MAX},
  };
  for (const GoodRow& row : rows) {
    const auto reference = SourceReference::parse(row.text);
    ASSERT_TRUE(reference) << row.text << ": " << reference.error().message;
    EXPECT_EQ(reference->host, row.host) << row.text;
    EXPECT_EQ(reference->port, row.port) << row.text;
    EXPECT_EQ(reference->name, row.name) << row.text;
    EXPECT_EQ(reference->epoch, row.epoch) << row.text;
  }
}

struct BadRow {
  std::string text;
  const char* part; ///< The word of the message that names what is wrong.
};

TEST(SourceReference, R42_a_refusal_names_the_part_and_shows_an_example) {
  const std::array rows = {
      BadRow{"", "scheme"},
      BadRow{"weights", "scheme"},
      BadRow{"http://h:1/a", "scheme"},
      BadRow{"wherry:/h:1/a", "scheme"},
      BadRow{"Wherry://h:1/a", "scheme"},
      BadRow{" wherry://h:1/a", "scheme"},
      BadRow{"wherry://", "port"},
      BadRow{"wherry:///a", "port"},
      BadRow{"wherry://:1/a", "host"},
      BadRow{"wherry://u@h:1/a", "host"},
      BadRow{"wherry://300.0.0.1:1/a", "host"},
      BadRow{"wherry://[::g]:1/a", "host"},
      BadRow{"wherry://[::1:1/a", "host"},
      BadRow{"wherry://::1:1/a", "brackets"},
      BadRow{"wherry://h/a", "port"},
      BadRow{"wherry://[::1]/a", "port"},
      BadRow{"wherry://h:/a", "port"},
      BadRow{"wherry://h:0/a", "port"},
      BadRow{"wherry://h:65536/a", "port"},
      BadRow{"wherry://h:-1/a", "port"},
      BadRow{"wherry://h:080/a", "port"},
      BadRow{"wherry://h:1", "name"},
      BadRow{"wherry://h:1/", "name"},
      BadRow{"wherry://h:1?epoch=1", "name"},
      BadRow{"wherry://h:1/?epoch=1", "name"},
      BadRow{"wherry://h:1?a/b", "name"},
      BadRow{"wherry://h:1/a%", "name"},
      BadRow{"wherry://h:1/a%2", "name"},
      BadRow{"wherry://h:1/a%zz", "name"},
      BadRow{"wherry://h:1/a%-1", "name"},
      BadRow{"wherry://h:1/a%00", "NUL"},
      BadRow{std::string("wherry://h:1/a\0b", 16), "name"},
      BadRow{"wherry://h:1/a b", "name"},
      BadRow{"wherry://h:1/a\n", "name"},
      BadRow{"wherry://h:1/a#b", "name"},
      BadRow{"wherry://h:1/a?", "epoch"},
      BadRow{"wherry://h:1/a?Epoch=1", "epoch"},
      BadRow{"wherry://h:1/a?epoch=", "epoch"},
      BadRow{"wherry://h:1/a?epoch=0", "epoch"},
      BadRow{"wherry://h:1/a?epoch=-1", "epoch"},
      BadRow{"wherry://h:1/a?epoch=0x1", "epoch"},
      BadRow{"wherry://h:1/a?epoch=1\n", "epoch"},
      BadRow{"wherry://h:1/a?epoch=1&x=2", "epoch"},
      BadRow{"wherry://h:1/a?epoch=1?epoch=1", "epoch"},
      BadRow{"wherry://h:1/a?epoch=18446744073709551616", "epoch"},
  };
  for (const BadRow& row : rows) {
    const auto reference = SourceReference::parse(row.text);
    ASSERT_FALSE(reference) << row.text;
    EXPECT_EQ(reference.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(reference.error().message, HasSubstr(row.part)) << row.text;
    EXPECT_THAT(reference.error().message, HasSubstr("wherry://10.0.0.1:7000/weights?epoch=42"));
  }
}

TEST(SourceReference, R42_a_name_has_1_to_4095_bytes_after_decoding) {
  std::string longest = "wherry://h:1/";
  for (int i = 0; i < 4095; ++i) {
    longest += "%41";
  }
  ASSERT_TRUE(SourceReference::parse(longest));
  EXPECT_EQ(SourceReference::parse(longest)->name, std::string(4095, 'A'));
  const auto refused = SourceReference::parse(longest + "A");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("4095"));
}

TEST(SourceReference, prints_all_but_unreserved_characters_and_slashes_encoded) {
  SourceReference reference;
  reference.host = "fe80::1";
  reference.port = 7;
  reference.name = "a/B-9._~ %?#\xff";
  EXPECT_EQ(reference.to_string(), "wherry://[fe80::1]:7/a/B-9._~%20%25%3F%23%FF");
  reference.host = "h";
  reference.epoch = 9;
  EXPECT_EQ(reference.to_string(), "wherry://h:7/a/B-9._~%20%25%3F%23%FF?epoch=9");
}

TEST(SourceReference, any_name_survives_printing_and_parsing) {
  SeededRandom random(9);
  for (int i = 0; i < 2000; ++i) {
    SourceReference reference;
    reference.host = random.one_in(2) ? "::1" : "10.0.0.1";
    reference.port = static_cast<std::uint16_t>(1 + random.below(65535));
    reference.name.resize(1 + random.below(40));
    for (char& c : reference.name) {
      c = static_cast<char>(1 + random.below(255));
    }
    if (random.one_in(2)) {
      reference.epoch = 1 + random.below(UINT64_MAX);
    }
    const auto back = SourceReference::parse(reference.to_string());
    ASSERT_TRUE(back) << reference.to_string();
    EXPECT_EQ(back->host, reference.host);
    EXPECT_EQ(back->port, reference.port);
    EXPECT_EQ(back->name, reference.name);
    EXPECT_EQ(back->epoch, reference.epoch);
  }
}

} // namespace
} // namespace wherry

#include "range_spec.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace wherry::cli {
namespace {

RangeSpec parsed(std::string_view text) {
  auto spec = parse_range_spec(text);
  EXPECT_TRUE(spec.has_value()) << text;
  return spec.value_or(RangeSpec{});
}

TEST(RangeSpec, a_path_is_read_only_and_named_later) {
  const RangeSpec spec = parsed("models/a.bin");
  EXPECT_FALSE(spec.memory);
  EXPECT_EQ(spec.path, "models/a.bin");
  EXPECT_FALSE(spec.name.has_value());
  EXPECT_FALSE(spec.writable);
  EXPECT_FALSE(spec.create);
}

TEST(RangeSpec, takes_every_option_of_a_file) {
  const RangeSpec spec = parsed("big,size=10GiB,create,access=write,name=w/x");
  EXPECT_EQ(spec.path, "big");
  EXPECT_EQ(spec.size_bytes, 10737418240U);
  EXPECT_TRUE(spec.create);
  EXPECT_TRUE(spec.writable);
  EXPECT_EQ(spec.name, "w/x");
}

TEST(RangeSpec, takes_every_option_of_memory) {
  const RangeSpec spec = parsed("mem:1GiB,fill=random:7,name=inbox,access=write");
  EXPECT_TRUE(spec.memory);
  EXPECT_EQ(spec.size_bytes, 1073741824U);
  EXPECT_EQ(spec.random_seed, 7U);
  EXPECT_EQ(spec.name, "inbox");
  EXPECT_TRUE(spec.writable);
  EXPECT_FALSE(parsed("mem:4k,fill=zero").random_seed.has_value());
}

TEST(RangeSpec, a_backslash_keeps_a_comma_and_a_backslash) {
  EXPECT_EQ(parsed("a\\,b").path, "a,b");
  EXPECT_EQ(parsed("a\\\\,name=n").path, "a\\");
  EXPECT_EQ(parsed("a\\b").path, "a\\b");
  EXPECT_EQ(parsed("a\\").path, "a\\");
  EXPECT_EQ(parsed("x,name=a\\,b").name, "a,b");
  EXPECT_EQ(parsed("x,name=a=b").name, "a=b");
}

TEST(RangeSpec, a_file_may_be_called_like_memory) {
  const RangeSpec spec = parsed("./mem:x");
  EXPECT_FALSE(spec.memory);
  EXPECT_EQ(spec.path, "./mem:x");
}

TEST(RangeSpec, refuses_and_names_what_is_wrong) {
  struct Row {
    std::string text;
    const char* part;
  };
  const Row rows[] = {
      {"", "empty"},
      {",name=x", "empty"},
      {"a,nmae=x", "'nmae=x'"},
      {"a,", "''"},
      {"a,name=", "name="},
      {"a,name=" + std::string(4096, 'n'), "4095"},
      {"a,name=x,name=y", "name is given twice"},
      {"a,access=rw", "'rw'"},
      {"a,access=read,access=write", "access is given twice"},
      {"a,size=1k", "create"},
      {"a,create", "size="},
      {"a,create,create,size=1", "create is given twice"},
      {"a,size=0,create", "0 bytes"},
      {"a,size=big,create", "'big'"},
      {"a,fill=zero", "'fill=zero'"},
      {"a,name", "'name'"},
      {"mem:", "''"},
      {"mem:0", "0 bytes"},
      {"mem:x", "'x'"},
      {"mem:1k,size=1k", "'size=1k'"},
      {"mem:1k,create", "'create'"},
      {"mem:1k,fill=ones", "'ones'"},
      {"mem:1k,fill=random:", "random:SEED"},
      {"mem:1k,fill=random:x", "random:SEED"},
      {"mem:1k,fill=", "random:SEED"},
  };
  for (const Row& row : rows) {
    const auto spec = parse_range_spec(row.text);
    ASSERT_FALSE(spec.has_value()) << row.text;
    EXPECT_EQ(spec.error().code, ErrorCode::invalid_argument) << row.text;
    EXPECT_NE(spec.error().message.find(row.part), std::string::npos) << spec.error().message;
    EXPECT_EQ(spec.error().message.rfind("RANGE '", 0), 0U) << spec.error().message;
  }
}

TEST(FillRandom, depends_on_the_seed_alone_and_stays_inside) {
  std::vector<unsigned char> first(1003, 0xEE);
  std::vector<unsigned char> second(1003, 0x11);
  fill_random(7, first.data(), 1001);
  fill_random(7, second.data(), 1001);
  EXPECT_TRUE(std::equal(first.begin(), first.begin() + 1001, second.begin()));
  EXPECT_EQ(first[1001], 0xEE);
  EXPECT_EQ(second[1002], 0x11);
  fill_random(8, second.data(), 1001);
  EXPECT_FALSE(std::equal(first.begin(), first.begin() + 1001, second.begin()));
  // splitmix64 of seed 0, so that other programs can make the same bytes.
  std::array<unsigned char, 8> zero{};
  fill_random(0, zero.data(), zero.size());
  EXPECT_EQ(zero, (std::array<unsigned char, 8>{0xAF, 0xCD, 0x1D, 0x7B, 0x39, 0xA8, 0x20, 0xE2}));
}

} // namespace
} // namespace wherry::cli

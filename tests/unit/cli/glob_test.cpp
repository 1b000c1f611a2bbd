#include "glob.h"

#include <gtest/gtest.h>

#include <string>

namespace wherry::cli {
namespace {

TEST(Glob, matches_whole_names) {
  struct Row {
    const char* pattern;
    const char* name;
    bool matches;
  };
  const Row rows[] = {
      {"", "", true},
      {"", "a", false},
      {"layer0", "layer0", true},
      {"layer0", "layer00", false},
      {"layer*", "layer", true},
      {"layer*", "layer12", true},
      {"*", "a/b", false},
      {"**", "a/b", true},
      {"**", "", true},
      {"a/**", "a/b/c", true},
      {"**/c", "a/b/c", true},
      {"**.bin", "a/b.bin", true},
      {"a*c*e", "abcde", true},
      {"a*c*e", "abcd", false},
      {"?", "a", true},
      {"?", "/", false},
      {"?", "", false},
      {"[a-c]x", "bx", true},
      {"[a-c]x", "dx", false},
      {"[!a-c]x", "dx", true},
      {"[!a-c]x", "ax", false},
      {"[!a]", "/", false},
      {"[]]", "]", true},
      {"[a-]", "-", true},
      {"[ab", "[ab", true},
      {"[ab", "a", false},
      {"\\*", "*", true},
      {"\\*", "x", false},
      {"\\", "\\", true},
      {"\xff*", "\xff\xfe", true},
      {"a\n*", "a\nb", true},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(glob_match(row.pattern, row.name), row.matches) << row.pattern << " on " << row.name;
  }
}

TEST(Glob, R42_takes_no_exponential_time) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) {
    pattern += "*a";
  }
  EXPECT_FALSE(glob_match(pattern, std::string(4000, 'a') + "b"));
}

TEST(Glob, is_told_from_a_name) {
  EXPECT_FALSE(is_glob("layer0/weights.bin"));
  EXPECT_TRUE(is_glob("layer*"));
  EXPECT_TRUE(is_glob("layer?"));
  EXPECT_TRUE(is_glob("[ab]"));
}

} // namespace
} // namespace wherry::cli

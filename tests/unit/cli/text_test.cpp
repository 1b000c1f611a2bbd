#include "text.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace wherry::cli {
namespace {

using namespace std::string_view_literals;

struct Row {
  const char* name;
  std::string_view bytes;
  std::string_view text;
};

TEST(Printable, R42_lets_no_name_draw_on_the_terminal) {
  const Row rows[] = {
      {"plain", "layer 0, x", "layer 0, x"},
      {"letters of other scripts", "naïve 日本 🚢", "naïve 日本 🚢"},
      {"newline, tab, return", "a\nb\tc\r", "a\\nb\\tc\\r"},
      {"escape sequence", "\x1b[2J", "\\x1b[2J"},
      {"NUL and DEL", "\0\x7f"sv, "\\x00\\x7f"},
      {"C1 control", "\xc2\x9b", "\\xc2\\x9b"},
      {"right-to-left override", "\xe2\x80\xae", "\\xe2\\x80\\xae"},
      {"no UTF-8", "\xff\xfe", "\\xff\\xfe"},
      {"overlong slash", "\xc0\xaf", "\\xc0\\xaf"},
      {"surrogate", "\xed\xa0\x80", "\\xed\\xa0\\x80"},
      {"beyond Unicode", "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
      {"cut short", "a\xe6\x97", "a\\xe6\\x97"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(printable(row.bytes), row.text) << row.name;
  }
}

TEST(ReplaceInvalid, gives_one_replacement_a_bad_byte) {
  EXPECT_EQ(replace_invalid("a\xff\xfe日"), "a\xef\xbf\xbd\xef\xbf\xbd日");
  EXPECT_EQ(replace_invalid("line\nbreak"), "line\nbreak");
  EXPECT_EQ(replace_invalid(""), "");
}

TEST(Base64, agrees_with_the_vectors_of_rfc_4648) {
  const Row rows[] = {{"", "", ""},
                      {"1", "f", "Zg=="},
                      {"2", "fo", "Zm8="},
                      {"3", "foo", "Zm9v"},
                      {"4", "foob", "Zm9vYg=="},
                      {"5", "fooba", "Zm9vYmE="},
                      {"6", "foobar", "Zm9vYmFy"},
                      {"high", "\xff\xfe\xfd", "//79"}};
  for (const Row& row : rows) {
    EXPECT_EQ(base64(row.bytes), row.text) << row.name;
  }
}

} // namespace
} // namespace wherry::cli

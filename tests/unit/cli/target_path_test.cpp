#include "target_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::cli {
namespace {

using namespace std::string_view_literals;

TEST(UnsafeName, R42_refuses_every_way_out_of_the_directory) {
  struct Row {
    std::string_view name;
    const char* reason; // null: safe
  };
  const std::string long_component(256, 'x');
  const std::string longest(255, 'x');
  const Row rows[] = {
      {"a", nullptr},
      {"a/b/c", nullptr},
      {".hidden", nullptr},
      {"...", nullptr},
      {"a/..b", nullptr},
      {"-rf", nullptr},
      {"with space\nand newline", nullptr},
      {"\xff\xfe", nullptr},
      {"a\\..\\b", nullptr},
      {longest, nullptr},
      {"", "empty"},
      {"/", "absolute"},
      {"/etc/passwd", "absolute"},
      {"..", "'..'"},
      {".", "'.'"},
      {"../x", "'..'"},
      {"a/../x", "'..'"},
      {"a/..", "'..'"},
      {"a/./b", "'.'"},
      {"a//b", "empty component"},
      {"a/", "empty component"},
      {"a\0b"sv, "NUL"},
      {"\0"sv, "NUL"},
      {long_component, "256 bytes"},
  };
  for (const Row& row : rows) {
    const auto reason = unsafe_name(row.name);
    EXPECT_EQ(reason.has_value(), row.reason != nullptr) << row.name;
    if (reason && row.reason != nullptr) {
      EXPECT_NE(reason->find(row.reason), std::string::npos) << *reason;
    }
  }
}

std::vector<std::size_t> refused(const std::vector<std::string_view>& names) {
  std::vector<std::size_t> indices;
  for (const RefusedName& name : refused_names(names)) {
    indices.push_back(name.index);
  }
  std::sort(indices.begin(), indices.end());
  return indices;
}

TEST(RefusedNames, R42_finds_names_that_need_the_same_place) {
  using Indices = std::vector<std::size_t>;
  EXPECT_EQ(refused({}), Indices{});
  EXPECT_EQ(refused({"a", "b", "a/b"}), Indices{0}) << "a file where a directory is needed";
  EXPECT_EQ(refused({"a/b/c", "a/b-c", "a/b"}), Indices{2});
  EXPECT_EQ(refused({"a", "a-b", "a.b", "ab/c", "a0"}), Indices{});
  EXPECT_EQ(refused({"a", "b", "a"}), Indices{2}) << "the same twice";
  EXPECT_EQ(refused({"a", "a.wherry-part"}), Indices{0}) << "another's part file";
  EXPECT_EQ(refused({"a.wherry-part/x", "a"}), Indices{1}) << "a directory in its place";
  EXPECT_EQ(refused({"b/a.wherry-part", "a"}), Indices{});
  EXPECT_EQ(refused({"../x", "a", ""}), (Indices{0, 2})) << "unsafe ones are among them";
}

TEST(RefusedNames, says_with_what_a_name_collides) {
  const std::vector<std::string_view> names{"a", "a/b"};
  const auto found = refused_names(names);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].reason.find("'a/b'"), std::string::npos) << found[0].reason;
}

TEST(PartPath, stays_beside_its_target_and_fits_a_file_system) {
  EXPECT_EQ(part_path("a"), "a.wherry-part");
  EXPECT_EQ(part_path("d/e/a.bin"), "d/e/a.bin.wherry-part");
  const std::string fits = "d/" + std::string(243, 'x');
  EXPECT_EQ(part_path(fits), fits + ".wherry-part");
  const std::string first = "d/" + std::string(250, 'x') + "1";
  const std::string second = "d/" + std::string(250, 'x') + "2";
  EXPECT_EQ(part_path(first).size(), 2U + 255U);
  EXPECT_NE(part_path(first), part_path(second));
  EXPECT_TRUE(part_path(first).ends_with(".wherry-part"));
}

} // namespace
} // namespace wherry::cli

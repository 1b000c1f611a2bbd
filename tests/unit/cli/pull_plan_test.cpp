#include "pull_plan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

namespace wherry::cli {
namespace {

TEST(PullRoot, follows_the_shape_of_the_command_and_not_of_the_source) {
  struct Row {
    const char* name;
    PullTarget target;
    const char* directory;
    std::optional<std::string> file;
  };
  const Row rows[] = {
      {"source, no DEST", {.dest = "", .source_name = "weights"}, "weights", {}},
      {"source, DEST", {.dest = "copies", .source_name = "weights"}, "copies", {}},
      {"source, existing DEST",
       {.dest = "copies", .is_directory = true, .source_name = "w"},
       "copies",
       {}},
      {"range, no DEST", {.dest = "", .single = true}, ".", {}},
      {"range, file DEST", {.dest = "x.bin", .single = true}, ".", "x.bin"},
      {"range, file DEST below", {.dest = "d/x.bin", .single = true}, "d", "x.bin"},
      {"range, file DEST at root", {.dest = "/x.bin", .single = true}, "/", "x.bin"},
      {"range, directory DEST", {.dest = "d", .is_directory = true, .single = true}, "d", {}},
  };
  for (const Row& row : rows) {
    const auto root = pull_root(row.target);
    ASSERT_TRUE(root.has_value()) << row.name;
    EXPECT_EQ(root->directory, row.directory) << row.name;
    EXPECT_EQ(root->file, row.file) << row.name;
  }
}

TEST(PullRoot, R42_a_source_name_does_not_lead_out_of_here) {
  for (const char* name : {"..", "/etc", "a/../..", "."}) {
    const auto root = pull_root({.dest = "", .source_name = name});
    ASSERT_FALSE(root.has_value()) << name;
    EXPECT_EQ(root.error().code, ErrorCode::invalid_argument);
    EXPECT_TRUE(pull_root({.dest = "safe", .source_name = name}).has_value());
  }
}

NamedRemoteRange range_of(std::uint64_t length_bytes) {
  return {"layer0", {.id = 1, .length_bytes = length_bytes}};
}

TEST(PullItem, fits_offset_and_length_to_the_range) {
  const auto all = pull_item(range_of(100), 0, {});
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->length_bytes, 100U);
  EXPECT_EQ(all->target, "layer0");
  const auto rest = pull_item(range_of(100), 30, {});
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(rest->offset, 30U);
  EXPECT_EQ(rest->length_bytes, 70U);
  EXPECT_EQ(pull_item(range_of(100), 30, 70)->length_bytes, 70U);
  EXPECT_EQ(pull_item(range_of(100), 100, {})->length_bytes, 0U);
}

TEST(PullItem, R42_refuses_what_does_not_fit_without_overflow) {
  struct Row {
    std::uint64_t offset;
    std::optional<std::uint64_t> length;
  };
  for (const Row& row :
       {Row{101, {}}, Row{30, 71}, Row{0, UINT64_MAX}, Row{UINT64_MAX, 1}, Row{2, UINT64_MAX}}) {
    const auto item = pull_item(range_of(100), row.offset, row.length);
    ASSERT_FALSE(item.has_value());
    EXPECT_EQ(item.error().code, ErrorCode::out_of_range);
    EXPECT_NE(item.error().message.find("100 bytes"), std::string::npos) << item.error().message;
  }
}

TEST(CheckTargets, R42_lists_bad_names_and_bounds_the_list) {
  std::vector<PullItem> items;
  for (int i = 0; i < 50; ++i) {
    items.push_back(*pull_item({"../" + std::to_string(i), {.id = 1, .length_bytes = 1}}, 0, {}));
  }
  const auto checked = check_targets(items);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(checked.error().message.find("'../9'"), std::string::npos);
  EXPECT_EQ(checked.error().message.find("'../10'"), std::string::npos);
  EXPECT_NE(checked.error().message.find("and 40 more"), std::string::npos);
}

} // namespace
} // namespace wherry::cli

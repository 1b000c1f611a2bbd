#include "destination.h"
#include "interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace wherry::cli {
namespace {

namespace fs = std::filesystem;

class DestinationTest : public testing::Test {
protected:
  DestinationTest() {
    std::string pattern = (fs::temp_directory_path() / "destination.XXXXXX").native();
    root_ = ::mkdtemp(pattern.data());
  }
  ~DestinationTest() override { fs::remove_all(root_); }

  Destination open(Destination::Options options = {}) {
    auto destination = Destination::open((root_ / "dest").native(), options, interrupt_);
    EXPECT_TRUE(destination.has_value());
    return std::move(*destination);
  }
  static void put(const PartFile& part, const std::string& text) {
    ASSERT_EQ(::pwrite(part.descriptor(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
  }
  static std::string content(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Interrupt interrupt_;
  fs::path root_;
};

TEST_F(DestinationTest, a_file_has_its_name_only_when_it_is_whole) {
  Destination destination = open();
  auto part = destination.create("a/b", 4);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->path(), (root_ / "dest/a/b.wherry-part").native());
  EXPECT_EQ(fs::file_size(part->path()), 4U);
  EXPECT_FALSE(fs::exists(root_ / "dest/a/b"));
  put(*part, "data");
  ASSERT_TRUE(destination.complete(*part));
  ASSERT_TRUE(destination.sync_directories());
  EXPECT_EQ(content(root_ / "dest/a/b"), "data");
  EXPECT_FALSE(fs::exists(root_ / "dest/a/b.wherry-part"));
}

TEST_F(DestinationTest, a_dropped_part_file_is_gone) {
  Destination destination = open();
  {
    auto part = destination.create("x", 10);
    ASSERT_TRUE(part.has_value());
    ASSERT_TRUE(fs::exists(root_ / "dest/x.wherry-part"));
  }
  EXPECT_TRUE(fs::is_empty(root_ / "dest"));
}

TEST_F(DestinationTest, R42_links_in_the_directory_lead_nowhere) {
  Destination destination = open();
  fs::create_directory(root_ / "outside");
  fs::create_symlink(root_ / "outside", root_ / "dest/link");
  fs::create_symlink(root_ / "outside/file", root_ / "dest/y.wherry-part");
  const auto below = destination.create("link/x", 1);
  ASSERT_FALSE(below.has_value());
  EXPECT_EQ(below.error().code, ErrorCode::invalid_argument);
  const auto part = destination.create("y", 1);
  ASSERT_FALSE(part.has_value());
  EXPECT_EQ(part.error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(fs::is_empty(root_ / "outside"));
}

TEST_F(DestinationTest, an_existing_file_stays_unless_it_may_be_replaced) {
  Destination destination = open();
  std::ofstream(root_ / "dest/x") << "old";
  const auto refused = destination.check_free("x");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(refused.error().message.find("--overwrite"), std::string::npos);
  EXPECT_TRUE(destination.check_free("y"));

  // One that appears only after the check is not replaced either.
  auto part = destination.create("x", 3);
  ASSERT_TRUE(part.has_value());
  put(*part, "new");
  const auto late = destination.complete(*part);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(content(root_ / "dest/x"), "old");
}

TEST_F(DestinationTest, overwrite_replaces_files_and_nothing_else) {
  Destination destination = open({.overwrite = true});
  std::ofstream(root_ / "dest/x") << "old";
  fs::create_directory(root_ / "dest/directory");
  EXPECT_TRUE(destination.check_free("x"));
  EXPECT_FALSE(destination.check_free("directory"));
  auto part = destination.create("x", 3);
  ASSERT_TRUE(part.has_value());
  put(*part, "new");
  ASSERT_TRUE(destination.complete(*part));
  EXPECT_EQ(content(root_ / "dest/x"), "new");
}

TEST_F(DestinationTest, a_left_over_part_file_is_taken_over_but_not_a_busy_one) {
  Destination destination = open();
  std::ofstream(root_ / "dest/x.wherry-part") << "left over from a crash";
  auto part = destination.create("x", 3);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(content(part->path()), std::string(3, '\0'));
  const auto second = destination.create("x", 3);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::busy);
  EXPECT_TRUE(fs::exists(root_ / "dest/x.wherry-part")) << "the first one's file stays";
}

TEST_F(DestinationTest, a_part_file_with_another_name_is_left_alone) {
  Destination destination = open();
  std::ofstream(root_ / "precious") << "keep";
  fs::create_hard_link(root_ / "precious", root_ / "dest/x.wherry-part");
  const auto part = destination.create("x", 3);
  ASSERT_FALSE(part.has_value());
  EXPECT_EQ(part.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(content(root_ / "precious"), "keep");
}

TEST_F(DestinationTest, no_room_is_told_at_once_and_leaves_nothing) {
  Destination destination = open();
  const auto part = destination.create("x", std::uint64_t{1} << 62);
  ASSERT_FALSE(part.has_value());
  EXPECT_EQ(part.error().code, ErrorCode::io_error);
  EXPECT_EQ(part.error().native_call, "fallocate");
  EXPECT_NE(part.error().native_number, 0);
  EXPECT_TRUE(fs::is_empty(root_ / "dest"));
}

TEST_F(DestinationTest, the_parent_must_be_there) {
  const auto destination = Destination::open((root_ / "no/such").native(), {}, interrupt_);
  ASSERT_FALSE(destination.has_value());
  EXPECT_EQ(destination.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(destination.error().native_number, ENOENT);
}

} // namespace
} // namespace wherry::cli

#include "catalog.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace wherry::cli {
namespace {

namespace fs = std::filesystem;

class CatalogTest : public testing::Test {
protected:
  CatalogTest() {
    std::string pattern = (fs::temp_directory_path() / "catalog.XXXXXX").native();
    root_ = ::mkdtemp(pattern.data());
  }
  ~CatalogTest() override { fs::remove_all(root_); }

  std::string file(const std::string& name, const std::string& content = "x") {
    const fs::path path = root_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << content;
    return path.native();
  }
  static std::vector<std::string> names(const Catalog& catalog) {
    std::vector<std::string> list;
    for (const CatalogEntry& entry : catalog.entries()) {
      list.push_back(entry.name);
    }
    return list;
  }
  Result<void> add(const std::string& text) {
    auto spec = parse_range_spec(text);
    EXPECT_TRUE(spec.has_value()) << text;
    return catalog_.add(*spec);
  }

  fs::path root_;
  Catalog catalog_;
};

using Names = std::vector<std::string>;

TEST_F(CatalogTest, a_directory_gives_its_files_by_relative_name) {
  file("d/b");
  file("d/a/deep");
  file("d/.hidden");
  ASSERT_TRUE(add((root_ / "d").native()));
  EXPECT_EQ(names(catalog_), (Names{".hidden", "a/deep", "b"}));
  EXPECT_EQ(catalog_.skipped_text(), "");
}

TEST_F(CatalogTest, a_name_is_the_prefix_of_a_directory) {
  file("d/a");
  ASSERT_TRUE(add((root_ / "d").native() + "/,name=models"));
  EXPECT_EQ(names(catalog_), (Names{"models/a"}));
}

TEST_F(CatalogTest, links_to_files_are_followed_and_the_rest_is_counted) {
  file("d/real");
  file("elsewhere/x");
  fs::create_symlink(root_ / "d/real", root_ / "d/link");
  fs::create_symlink(root_ / "elsewhere", root_ / "d/linked-directory");
  fs::create_symlink("nowhere", root_ / "d/dangling-1");
  fs::create_symlink("nowhere", root_ / "d/dangling-2");
  ASSERT_EQ(::mkfifo((root_ / "d/fifo").c_str(), 0600), 0);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (root_ / "d/sock").native();
  ASSERT_LT(path.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(socket);

  ASSERT_TRUE(add((root_ / "d").native()));
  EXPECT_EQ(names(catalog_), (Names{"link", "real"}));
  const std::string text = catalog_.skipped_text();
  EXPECT_EQ(text.rfind("left out 5 entries: 2 dangling links (", 0), 0U) << text;
  for (const char* part : {"1 link to a directory (", "1 pipe (", "1 socket ("}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST_F(CatalogTest, two_ranges_of_one_name_are_refused_with_both) {
  const std::string first = file("one/x");
  const std::string second = file("two/x");
  ASSERT_TRUE(add(first));
  const auto refused = add(second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(refused.error().message.find(first), std::string::npos);
  EXPECT_NE(refused.error().message.find(second), std::string::npos);
  EXPECT_TRUE(add(second + ",name=y"));
}

TEST_F(CatalogTest, a_missing_path_is_named) {
  const auto refused = add((root_ / "missing").native());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(refused.error().native_number, ENOENT);
  EXPECT_NE(refused.error().message.find("missing"), std::string::npos);
}

TEST_F(CatalogTest, names_of_paths) {
  EXPECT_EQ(default_name("a/b.bin"), "b.bin");
  EXPECT_EQ(default_name("a/b//"), "b");
  EXPECT_EQ(default_name((root_ / ".").native()), root_.filename().native());
  EXPECT_EQ(default_name("/"), "root");
}

TEST_F(CatalogTest, create_makes_a_file_of_that_size_once) {
  const std::string path = (root_ / "new").native();
  const auto spec = parse_range_spec(path + ",size=12345,create");
  ASSERT_TRUE(spec.has_value());
  ASSERT_TRUE(create_file(*spec));
  EXPECT_EQ(fs::file_size(path), 12345U);
  std::ofstream(path, std::ios::in | std::ios::out) << "kept";
  ASSERT_TRUE(create_file(*spec)) << "one that is there is taken as it is";
  std::string start(4, ' ');
  std::ifstream(path).read(start.data(), 4);
  EXPECT_EQ(start, "kept");
  const auto other = parse_range_spec(path + ",size=1,create");
  const auto refused = create_file(*other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
}

TEST_F(CatalogTest, a_full_disk_leaves_no_file) {
  const std::string path = (root_ / "huge").native();
  const auto spec = parse_range_spec(path + ",size=4000000TiB,create");
  ASSERT_TRUE(spec.has_value());
  const auto refused = create_file(*spec);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::io_error);
  EXPECT_EQ(refused.error().native_call, "posix_fallocate");
  EXPECT_FALSE(fs::exists(path));
}

} // namespace
} // namespace wherry::cli

// The kernel's files: evidence in errors, no surprises from odd files, replacing all or nothing.
#include "os/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace wherry {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

class KernelFilesTest : public ::testing::Test {
protected:
  KernelFilesTest() {
    std::string pattern = ::testing::TempDir() + "/wherry-files-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~KernelFilesTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string write_file(const std::string& name, std::string_view content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  static std::string content_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t entries() const {
    const std::filesystem::directory_iterator all(folder_);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  std::string folder_;
  const std::unique_ptr<Files> files_ = make_kernel_files();
};

TEST_F(KernelFilesTest, reads_and_writes_at_offsets_and_shows_the_end) {
  const auto file = files_->open(write_file("a", "0123456789"), true);
  ASSERT_TRUE(file);
  std::array<std::byte, 4> buffer{};
  EXPECT_EQ(files_->read(*file, 3, buffer).bytes, 4U);
  EXPECT_EQ(static_cast<char>(buffer[0]), '3');
  EXPECT_EQ(files_->read(*file, 8, buffer).bytes, 2U);
  const IoResult end = files_->read(*file, 10, buffer);
  EXPECT_EQ(end.bytes, 0U);
  EXPECT_EQ(end.error, 0);
  EXPECT_EQ(files_->write(*file, 8, bytes_of("xyz")).bytes, 3U);
  files_->close(*file);
  EXPECT_EQ(content_of(path("a")), "01234567xyz");
}

TEST_F(KernelFilesTest, R42_offsets_beyond_what_a_file_can_have_are_errors) {
  const auto file = files_->open(write_file("a", "0"), true);
  ASSERT_TRUE(file);
  std::array<std::byte, 1> buffer{};
  EXPECT_EQ(files_->read(*file, UINT64_MAX, buffer).error, EINVAL);
  EXPECT_EQ(files_->write(*file, 1ULL << 63, buffer).error, EFBIG);
  files_->close(*file);
}

TEST_F(KernelFilesTest, R37_writing_to_a_file_that_was_opened_for_reading_is_an_error) {
  const auto file = files_->open(write_file("a", "0"), false);
  ASSERT_TRUE(file);
  EXPECT_EQ(files_->write(*file, 0, bytes_of("x")).error, EBADF);
  files_->close(*file);
}

TEST_F(KernelFilesTest, R23_stat_recognises_a_file_and_its_changes) {
  const auto file = files_->open(write_file("a", "012"), true);
  ASSERT_TRUE(file);
  const auto before = files_->stat(*file);
  ASSERT_TRUE(before);
  EXPECT_EQ(before->size_bytes, 3U);
  EXPECT_TRUE(before->regular);
  const std::array<timespec, 2> times = {timespec{1, 0}, timespec{1'000, 5}};
  ASSERT_EQ(futimens(*file, times.data()), 0);
  const auto after = files_->stat(*file);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->mtime_ns, 1'000'000'000'005);
  EXPECT_EQ(after->inode, before->inode);
  files_->close(*file);

  std::filesystem::rename(write_file("b", "012"), path("a"));
  const auto replaced = files_->open(path("a"), false);
  ASSERT_TRUE(replaced);
  EXPECT_NE(files_->stat(*replaced)->inode, before->inode);
  files_->close(*replaced);
}

TEST_F(KernelFilesTest, an_open_that_fails_tells_code_call_errno_and_path) {
  const auto missing = files_->open(path("missing"), false);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_EQ(missing.error().native_call, "open");
  EXPECT_EQ(missing.error().native_number, ENOENT);
  EXPECT_THAT(missing.error().message, HasSubstr(path("missing")));

  EXPECT_EQ(files_->open(write_file("a", "") + "/b", false).error().code, ErrorCode::not_found);
  const auto folder = files_->open(folder_, true);
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, ErrorCode::io_error);
  EXPECT_EQ(folder.error().native_number, EISDIR);
}

// In a child that is nobody: root may open everything.
TEST_F(KernelFilesTest, a_file_without_permission_is_access_denied) {
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(chmod(write_file("a", "0").c_str(), 0444), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) {
      _exit(2);
    }
    const auto denied = files_->open(path("a"), true);
    _exit(!denied && denied.error().code == ErrorCode::access_denied ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(KernelFilesTest, R42_a_path_with_a_nul_does_not_open_the_file_before_it) {
  write_file("a", "secret");
  const auto refused = files_->open(path("a") + std::string("\0b", 2), false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(files_->replace_small(path("a") + std::string("\0b", 2), "x"));
  EXPECT_EQ(content_of(path("a")), "secret");
}

// Opening a pipe without a writer would block for ever.
TEST_F(KernelFilesTest, R42_a_pipe_does_not_hang_us_and_is_not_regular) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const auto pipe = files_->open(path("pipe"), false);
  ASSERT_TRUE(pipe);
  EXPECT_FALSE(files_->stat(*pipe)->regular);
  files_->close(*pipe);
  EXPECT_EQ(files_->read_small(path("pipe"), 10).value_or("error"), "");
}

TEST_F(KernelFilesTest, R45_descriptors_are_close_on_exec) {
  const auto file = files_->open(write_file("a", "0"), false);
  ASSERT_TRUE(file);
  EXPECT_NE(fcntl(*file, F_GETFD) & FD_CLOEXEC, 0);
  files_->close(*file);
}

TEST_F(KernelFilesTest, read_small_takes_a_file_up_to_the_limit_and_refuses_the_next_byte) {
  const std::string content(5000, 'x'); // more than one read of ours
  write_file("a", content);
  EXPECT_EQ(files_->read_small(path("a"), 5000).value_or("error"), content);
  const auto refused = files_->read_small(path("a"), 4999);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_EQ(files_->read_small(write_file("empty", ""), 0).value_or("error"), "");
  EXPECT_EQ(files_->read_small(path("missing"), 1).error().code, ErrorCode::not_found);
  EXPECT_EQ(files_->read_small(folder_, 1).error().native_number, EISDIR);
}

TEST_F(KernelFilesTest, replace_small_makes_or_replaces_the_file_and_leaves_nothing_beside_it) {
  ASSERT_TRUE(files_->replace_small(path("epoch"), "1\n"));
  EXPECT_EQ(content_of(path("epoch")), "1\n");
  ASSERT_TRUE(files_->replace_small(path("epoch"), "2\n"));
  EXPECT_EQ(content_of(path("epoch")), "2\n");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(KernelFilesTest, replace_small_keeps_the_permissions_and_never_touches_the_old_file) {
  ASSERT_EQ(chmod(write_file("epoch", "1").c_str(), 0604), 0);
  const auto old = files_->open(path("epoch"), false);
  ASSERT_TRUE(old);
  ASSERT_TRUE(files_->replace_small(path("epoch"), "2"));
  EXPECT_EQ(std::filesystem::status(path("epoch")).permissions(), std::filesystem::perms(0604));
  std::array<std::byte, 1> buffer{};
  ASSERT_EQ(files_->read(*old, 0, buffer).bytes, 1U);
  EXPECT_EQ(static_cast<char>(buffer[0]), '1');
  files_->close(*old);
}

TEST_F(KernelFilesTest, replace_small_that_fails_leaves_the_folder_as_it_was) {
  const auto nowhere = files_->replace_small(path("missing/epoch"), "1");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::not_found);

  // The rename fails: a folder with something in it is in the way.
  std::filesystem::create_directories(path("epoch/occupied"));
  const auto refused = files_->replace_small(path("epoch"), "1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().native_call, "rename");
  EXPECT_EQ(entries(), 1U);
  EXPECT_TRUE(std::filesystem::exists(path("epoch/occupied")));
}

// In a child: a working directory belongs to the whole process.
TEST_F(KernelFilesTest, replace_small_takes_a_bare_name_in_the_working_directory) {
  const pid_t child = fork();
  if (child == 0) {
    const bool done = chdir(folder_.c_str()) == 0 && files_->replace_small("epoch", "7");
    _exit(done ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content_of(path("epoch")), "7");
}

} // namespace
} // namespace wherry

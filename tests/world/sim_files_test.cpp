// Files in memory behave as files do, and fail as ordered.
#include "world/sim_files.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

namespace wherry {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

class SimFilesTest : public ::testing::Test {
protected:
  std::string read(FileDescriptor file, std::uint64_t offset, std::size_t count) {
    std::string text(count, ' ');
    const IoResult result = files_.read(file, offset, std::as_writable_bytes(std::span(text)));
    EXPECT_EQ(result.error, 0);
    text.resize(result.bytes);
    return text;
  }

  SimClock clock_;
  SimFiles files_{clock_, 1, {.short_io_one_in = 0, .open_files_max = 2}};
};

TEST_F(SimFilesTest, reads_writes_grows_and_shows_the_end) {
  files_.create("/a", bytes_of("0123"));
  const FileDescriptor file = *files_.open("/a", true);
  EXPECT_EQ(read(file, 1, 2), "12");
  EXPECT_EQ(read(file, 3, 9), "3");
  EXPECT_EQ(read(file, 4, 9), "");
  EXPECT_EQ(files_.write(file, 6, bytes_of("x")).bytes, 1U);
  EXPECT_EQ(read(file, 0, 9), std::string("0123\0\0x", 7));
  EXPECT_EQ(files_.write(file, UINT64_MAX, bytes_of("x")).error, EFBIG);
  files_.close(file);
  EXPECT_EQ(files_.open_files(), 0U);
}

TEST_F(SimFilesTest, R23_every_change_has_its_own_mtime_and_a_replacement_its_own_inode) {
  files_.create("/a", bytes_of("0123"));
  const FileStat first = files_.stat_of("/a");
  files_.overwrite("/a", 1, bytes_of("x"));
  const FileStat second = files_.stat_of("/a");
  EXPECT_GT(second.mtime_ns, first.mtime_ns);
  EXPECT_EQ(second.inode, first.inode);
  files_.resize("/a", 2);
  EXPECT_EQ(files_.stat_of("/a").size_bytes, 2U);
  EXPECT_GT(files_.stat_of("/a").mtime_ns, second.mtime_ns);
  ASSERT_TRUE(files_.replace_small("/a", "new"));
  EXPECT_NE(files_.stat_of("/a").inode, first.inode);
}

TEST_F(SimFilesTest, an_open_file_outlives_its_name) {
  files_.create("/a", bytes_of("old"));
  const FileDescriptor file = *files_.open("/a", false);
  files_.create("/a", bytes_of("new"));
  EXPECT_EQ(read(file, 0, 9), "old");
  files_.remove("/a");
  EXPECT_FALSE(files_.exists("/a"));
  EXPECT_EQ(read(file, 0, 9), "old");
  files_.close(file);
}

TEST_F(SimFilesTest, refuses_as_the_kernel_does) {
  EXPECT_EQ(files_.open("/a", false).error().code, ErrorCode::not_found);
  files_.create("/a", bytes_of("0"));
  files_.set_read_only("/a", true);
  EXPECT_EQ(files_.open("/a", true).error().code, ErrorCode::access_denied);
  const FileDescriptor first = *files_.open("/a", false);
  EXPECT_EQ(files_.write(first, 0, bytes_of("x")).error, EBADF);
  const FileDescriptor second = *files_.open("/a", false);
  EXPECT_EQ(files_.open("/a", false).error().native_number, EMFILE);
  files_.close(first);
  EXPECT_EQ(*files_.open("/a", false), first); // numbers come back at once
  EXPECT_NE(first, second);
  files_.set_regular("/a", false);
  EXPECT_FALSE(files_.stat(second)->regular);
  files_.close(first);
  files_.close(second);
}

TEST_F(SimFilesTest, planted_errors_come_once_after_the_calls_that_are_skipped) {
  files_.create("/a", bytes_of("0"));
  const FileDescriptor file = *files_.open("/a", true);
  std::array<std::byte, 1> buffer{};
  files_.fail_next(SimFileCall::read, EIO, 1);
  EXPECT_EQ(files_.read(file, 0, buffer).bytes, 1U);
  EXPECT_EQ(files_.read(file, 0, buffer).error, EIO);
  EXPECT_EQ(files_.read(file, 0, buffer).bytes, 1U);
  files_.fail_next(SimFileCall::write, ENOSPC);
  EXPECT_EQ(files_.write(file, 0, buffer).error, ENOSPC);
  files_.fail_next(SimFileCall::stat, EIO);
  EXPECT_EQ(files_.stat(file).error().code, ErrorCode::io_error);
  files_.fail_next(SimFileCall::replace_small, ENOSPC);
  EXPECT_FALSE(files_.replace_small("/a", "lost"));
  EXPECT_EQ(files_.read_small("/a", 10).value_or("error"), "0");
  files_.close(file);
}

TEST_F(SimFilesTest, read_small_takes_a_file_up_to_the_limit) {
  files_.create("/a", bytes_of("0123"));
  EXPECT_EQ(files_.read_small("/a", 4).value_or("error"), "0123");
  EXPECT_EQ(files_.read_small("/a", 3).error().code, ErrorCode::resource_exhausted);
  EXPECT_EQ(files_.read_small("/b", 3).error().code, ErrorCode::not_found);
}

TEST(SimFiles, R37_short_reads_and_writes_happen_and_add_up) {
  SimClock clock;
  SimFiles files(clock, 1, {.short_io_one_in = 1, .open_files_max = 1});
  files.create("/a", {});
  const FileDescriptor file = *files.open("/a", true);
  const std::vector<std::byte> content(5000, std::byte{7});
  std::uint64_t done = 0;
  int calls = 0;
  for (; done < content.size(); ++calls) {
    const IoResult result = files.write(file, done, std::span(content).subspan(done));
    ASSERT_GT(result.bytes, 0U);
    done += result.bytes;
  }
  EXPECT_GT(calls, 1);
  EXPECT_EQ(files.content("/a"), content);
  files.close(file);
}

} // namespace
} // namespace wherry

// File ranges by pread and pwrite: changes are noticed, short moves continued, open files bounded,
// transfers handed to the native worker and back (R23, R37, R43, R44).
#include "path/file/posix_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace wherry {
namespace {

using Bytes = std::vector<std::byte>;

Bytes text(std::string_view words) {
  const auto* begin = reinterpret_cast<const std::byte*>(words.data());
  return {begin, begin + words.size()};
}

/// Files in memory by name; moves are at most `step` bytes; what the test plants happens.
/// Thread-safe.
class PlainFiles final : public Files {
public:
  struct File {
    Bytes content;
    FileStat stat{.device = 1, .inode = 1, .size_bytes = 0, .mtime_ns = 5, .regular = true};
  };

  File& make(const std::string& path, std::string_view content) {
    auto file = std::make_shared<File>();
    file->content = text(content);
    file->stat.size_bytes = file->content.size();
    file->stat.inode = ++inodes_;
    named_[path] = file;
    return *file;
  }
  void remove(const std::string& path) { named_.erase(path); }

  Result<FileDescriptor> open(const std::string& path, bool) override {
    const std::lock_guard lock(mutex_);
    const auto found = named_.find(path);
    if (found == named_.end()) {
      return fail(ErrorCode::not_found, path + ": No such file or directory");
    }
    ++opens;
    open_[++last_] = found->second;
    most_open = std::max(most_open, open_.size());
    return last_;
  }
  void close(FileDescriptor file) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(open_.erase(file), 1U);
  }
  Result<FileStat> stat(FileDescriptor file) override {
    const std::lock_guard lock(mutex_);
    if (fail_stat) {
      return fail(native_error("fstat", EIO, "an open file"));
    }
    return open_.at(file)->stat;
  }
  IoResult read(FileDescriptor file, std::uint64_t offset, std::span<std::byte> into) override {
    const std::lock_guard lock(mutex_);
    ++moves;
    if (move_error != 0) {
      return {0, move_error};
    }
    const Bytes& content = open_.at(file)->content;
    const std::size_t left =
        offset < content.size() ? content.size() - static_cast<std::size_t>(offset) : 0;
    const std::size_t n = std::min({step, into.size(), left});
    std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(offset), n, into.begin());
    after_move(*open_.at(file));
    return {n, 0};
  }
  IoResult write(FileDescriptor file, std::uint64_t offset,
                 std::span<const std::byte> from) override {
    const std::lock_guard lock(mutex_);
    ++moves;
    if (move_error != 0) {
      return {0, move_error};
    }
    File& it = *open_.at(file);
    const std::size_t n = std::min(step, from.size());
    it.content.resize(
        std::max<std::size_t>(it.content.size(), static_cast<std::size_t>(offset) + n));
    std::copy_n(from.begin(), n, it.content.begin() + static_cast<std::ptrdiff_t>(offset));
    it.stat.mtime_ns += 1;
    after_move(it);
    return {n, 0};
  }
  Result<std::string> read_small(const std::string&, std::size_t) override { return std::string(); }
  Result<void> replace_small(const std::string&, std::string_view) override { return {}; }

  std::size_t open_now() const { return open_.size(); }

  std::size_t step = SIZE_MAX;
  int move_error = 0;
  bool fail_stat = false;
  std::function<void(File&)> after_move = [](File&) {};
  std::atomic<int> opens = 0;
  std::atomic<int> moves = 0;
  std::size_t most_open = 0;

private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<File>> named_;
  std::map<FileDescriptor, std::shared_ptr<File>> open_;
  FileDescriptor last_ = 2;
  std::uint64_t inodes_ = 0;
};

std::unique_ptr<PosixFile> opened(FileCache& cache, const PosixFileSpec& spec) {
  auto result = open_posix_file(cache, spec);
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result ? std::move(result->file) : nullptr;
}

Bytes read(PosixFile& file, std::uint64_t offset, std::size_t length) {
  Bytes bytes(length);
  const auto result = file.read(offset, bytes);
  EXPECT_TRUE(result) << result.error().message;
  return bytes;
}

// -- registration
// --------------------------------------------------------------------------------------

struct SpecRow {
  const char* name = nullptr;
  PosixFileSpec spec;
  ErrorCode code{}; ///< 0: good.
  std::uint64_t length = 0;
};

TEST(PosixFile, R17_only_ranges_inside_regular_files_are_registered) {
  PlainFiles files;
  FileCache cache(files, 4);
  files.make("ten", "0123456789");
  files.make("empty", "");
  files.make("pipe", "").stat.regular = false;
  const SpecRow rows[] = {
      {"all", {"ten", false, 0, {}}, ErrorCode{}, 10},
      {"from the middle", {"ten", false, 4, {}}, ErrorCode{}, 6},
      {"a part", {"ten", false, 4, 3}, ErrorCode{}, 3},
      {"to the end", {"ten", false, 4, 6}, ErrorCode{}, 6},
      {"beyond the end", {"ten", false, 4, 7}, ErrorCode::invalid_argument, 0},
      {"behind the end", {"ten", false, 11, {}}, ErrorCode::invalid_argument, 0},
      {"so long that it wraps around",
       {"ten", false, 4, UINT64_MAX},
       ErrorCode::invalid_argument,
       0},
      {"no such file", {"nine", false, 0, {}}, ErrorCode::not_found, 0},
      {"no regular file", {"pipe", false, 0, {}}, ErrorCode::invalid_argument, 0},
  };
  for (const SpecRow& row : rows) {
    const auto result = open_posix_file(cache, row.spec);
    EXPECT_EQ(result.has_value(), row.code == ErrorCode{}) << row.name;
    if (result) {
      EXPECT_EQ(result->length_bytes, row.length) << row.name;
    } else {
      EXPECT_EQ(result.error().code, row.code) << row.name;
      EXPECT_NE(result.error().message.find(row.spec.path), std::string::npos) << row.name;
    }
  }
  EXPECT_EQ(files.open_now(), 0U) << "files are opened on demand";
}

// -- moving
// ----------------------------------------------------------------------------------------------

TEST(PosixFile, R37_short_moves_are_continued) {
  PlainFiles files;
  files.step = 3;
  FileCache cache(files, 4);
  auto& content = files.make("a", "0123456789abcdef").content;
  auto file = opened(cache, {"a", true, 2, 12});
  EXPECT_EQ(read(*file, 1, 10), text("3456789abc"));
  ASSERT_TRUE(file->write(0, text("ABCDEFGHIJ")));
  EXPECT_EQ(content, text("01ABCDEFGHIJcdef"));
  EXPECT_EQ(files.moves, 4 + 4);
}

TEST(PosixFile, R37_an_early_end_is_an_error_never_a_whole_read) {
  PlainFiles files;
  FileCache cache(files, 4);
  auto& it = files.make("a", "0123456789");
  auto file = opened(cache, {"a", false, 0, {}});
  // Shorter, though its stat does not say so yet.
  it.content.resize(4);
  Bytes bytes(10);
  const auto result = file->read(0, bytes);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::range_changed);
  EXPECT_NE(result.error().message.find("ends at byte 4"), std::string::npos)
      << result.error().message;
}

TEST(PosixFile, R28_errors_name_the_call_the_errno_and_where) {
  PlainFiles files;
  FileCache cache(files, 4);
  files.make("a", "0123456789");
  auto file = opened(cache, {"a", true, 3, {}});
  files.move_error = EIO;
  Bytes bytes(2);
  const auto read = file->read(1, bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().native_call, "pread");
  EXPECT_EQ(read.error().native_number, EIO);
  EXPECT_NE(read.error().message.find("byte 4"), std::string::npos);
  files.move_error = ENOSPC;
  const auto write = file->write(1, bytes);
  ASSERT_FALSE(write);
  EXPECT_EQ(write.error().native_call, "pwrite");
  EXPECT_EQ(write.error().native_number, ENOSPC);
  files.move_error = 0;
  files.step = 0; // A write that takes nothing must not be tried for ever.
  EXPECT_EQ(file->write(1, bytes).error().native_number, ENOSPC);
  files.step = SIZE_MAX;
  files.fail_stat = true;
  EXPECT_EQ(file->read(1, bytes).error().native_call, "fstat");
  files.fail_stat = false;
  EXPECT_TRUE(file->read(1, bytes)) << "an error does not keep the file";
}

// -- changes (R23)
// -----------------------------------------------------------------------------------------

struct ChangeRow {
  const char* name;
  std::function<void(PlainFiles::File&)> change;
  bool read_only_notices;
  bool writable_notices;
};

const ChangeRow changes[] = {
    {"nothing", [](auto&) {}, false, false},
    {"mtime", [](auto& f) { f.stat.mtime_ns += 1; }, true, false},
    {"an earlier mtime", [](auto& f) { f.stat.mtime_ns -= 1; }, true, false},
    {"longer", [](auto& f) { f.stat.size_bytes += 1; }, true, false},
    {"shorter, behind the range", [](auto& f) { f.stat.size_bytes -= 1; }, true, false},
    {"shorter than the range", [](auto& f) { f.stat.size_bytes = 7; }, true, true},
    {"another inode", [](auto& f) { f.stat.inode += 1; }, true, true},
    {"another device", [](auto& f) { f.stat.device += 1; }, true, true},
    {"removed", [](auto& f) { f.stat.unlinked = true; }, true, true},
};

TEST(PosixFile, R23_changes_are_noticed_before_an_operation_and_after_it) {
  for (const ChangeRow& row : changes) {
    for (const bool writable : {false, true}) {
      for (const bool during : {false, true}) {
        SCOPED_TRACE(std::string(row.name) + (writable ? ", writable" : "") +
                     (during ? ", meanwhile" : ""));
        PlainFiles files;
        FileCache cache(files, 4);
        auto& it = files.make("a", "0123456789");
        auto file = opened(cache, {"a", writable, 0, 8});
        if (during) {
          files.after_move = row.change;
        } else {
          row.change(it);
        }
        Bytes bytes(4);
        const auto result = file->read(0, bytes);
        const bool noticed = writable ? row.writable_notices : row.read_only_notices;
        EXPECT_EQ(result.has_value(), !noticed);
        if (!result) {
          EXPECT_EQ(result.error().code, ErrorCode::range_changed);
        }
        EXPECT_EQ(files.moves, noticed && !during ? 0 : 1);
      }
    }
  }
}

TEST(PosixFile, R23_a_file_that_never_had_a_name_needs_none) {
  PlainFiles files;
  FileCache cache(files, 4);
  files.make("memfd", "0123456789").stat.unlinked = true;
  auto file = opened(cache, {"memfd", true, 0, {}});
  EXPECT_EQ(read(*file, 0, 2), text("01"));
}

TEST(PosixFile, R23_a_writable_range_is_not_upset_by_its_own_writes) {
  PlainFiles files;
  FileCache cache(files, 4);
  files.make("a", "0123456789");
  auto file = opened(cache, {"a", true, 0, {}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(file->write(0, text("xx")));
  }
  EXPECT_EQ(read(*file, 0, 4), text("xx23"));
}

TEST(PosixFile, R23_a_file_that_was_replaced_is_noticed_when_it_is_opened_again) {
  PlainFiles files;
  FileCache cache(files, 1);
  files.make("a", "0123456789");
  files.make("b", "0123456789");
  auto a = opened(cache, {"a", true, 0, {}});
  auto b = opened(cache, {"b", true, 0, {}});
  read(*a, 0, 2);
  read(*b, 0, 2); // Closes a.
  files.make("a", "another one");
  Bytes bytes(2);
  EXPECT_EQ(a->read(0, bytes).error().code, ErrorCode::range_changed);
  EXPECT_EQ(read(*b, 0, 2), text("01")) << "the other one is as it was";
}

// -- the cache
// -----------------------------------------------------------------------------------------------

TEST(FileCache, R43_open_files_are_bounded_and_the_longest_idle_one_goes) {
  PlainFiles files;
  FileCache cache(files, 3);
  std::vector<std::unique_ptr<PosixFile>> all;
  for (int i = 0; i < 5; ++i) {
    files.make(std::to_string(i), "0123456789");
    all.push_back(opened(cache, {std::to_string(i), false, 0, {}}));
  }
  files.opens = 0;
  for (const int i : {0, 1, 2, 0}) {
    read(*all[static_cast<std::size_t>(i)], 0, 2);
  }
  EXPECT_EQ(files.opens, 3);
  EXPECT_EQ(cache.open(), 3U);
  read(*all[3], 0, 2); // 1 goes.
  EXPECT_EQ(cache.open(), 3U);
  read(*all[0], 0, 2);
  read(*all[2], 0, 2);
  EXPECT_EQ(files.opens, 4);
  read(*all[1], 0, 2);
  EXPECT_EQ(files.opens, 5);
  EXPECT_LE(files.most_open, 3U);
  all.clear();
  EXPECT_EQ(cache.open(), 0U);
  EXPECT_EQ(files.open_now(), 0U);
}

TEST(FileCache, a_file_that_cannot_be_opened_again_gives_its_place_back) {
  PlainFiles files;
  FileCache cache(files, 1);
  files.make("a", "0123456789");
  auto a = opened(cache, {"a", false, 0, {}});
  files.remove("a");
  Bytes bytes(1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(a->read(0, bytes).error().code, ErrorCode::range_changed) << "it was there";
    EXPECT_EQ(cache.open(), 0U);
  }
  files.make("b", "b");
  auto b = opened(cache, {"b", false, 0, {}});
  EXPECT_EQ(read(*b, 0, 1), text("b"));
}

TEST(FileCache, R43_threads_share_open_files_and_close_each_once) {
  PlainFiles files;
  FileCache cache(files, 3);
  std::vector<std::unique_ptr<PosixFile>> all;
  for (int i = 0; i < 6; ++i) {
    files.make(std::to_string(i), "0123456789");
    all.push_back(opened(cache, {std::to_string(i), false, 0, {}}));
  }
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Bytes bytes(5);
      for (unsigned i = 0; i < 400; ++i) {
        ASSERT_TRUE(all[(t * 7 + i * i) % all.size()]->read(i % 5, bytes));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_LE(cache.open(), 3U + 4U);
  EXPECT_EQ(files.open_now(), cache.open());
  all.clear();
  EXPECT_EQ(files.open_now(), 0U);
}

// -- transfers over the worker
// -----------------------------------------------------------------------------

class Ends final : public FileTransferOwner {
public:
  void on_transfer(FileTransfer& transfer) override { ended.push_back(&transfer); }
  std::vector<FileTransfer*> ended;
};

FileTransfer transfer_of(Ends& ends, PosixFile& file, std::span<std::byte> bytes,
                         std::uint64_t offset, bool write) {
  FileTransfer transfer;
  transfer.owner = &ends;
  transfer.file = &file;
  transfer.offset = offset;
  transfer.bytes = bytes.data();
  transfer.length_bytes = static_cast<std::uint32_t>(bytes.size());
  transfer.write = write;
  return transfer;
}

TEST(PosixFileIo, R44_transfers_run_on_the_worker_and_end_at_deliver) {
  PlainFiles files;
  FileCache cache(files, 4);
  files.make("a", "0123456789");
  auto file = opened(cache, {"a", true, 0, {}});
  auto worker = make_inline_worker(16);
  int wakes = 0;
  PosixFileIo io(*worker, [&] { ++wakes; });
  Ends ends;
  Bytes in(4);
  Bytes out = text("AB");
  FileTransfer read = transfer_of(ends, *file, in, 3, false);
  FileTransfer write = transfer_of(ends, *file, out, 0, true);
  ASSERT_TRUE(io.start(read));
  ASSERT_TRUE(io.start(write));
  EXPECT_EQ(files.moves, 0) << "start never blocks";
  EXPECT_EQ(io.deliver(), 0U);
  while (worker->run_one()) {
  }
  EXPECT_EQ(wakes, 2);
  EXPECT_TRUE(ends.ended.empty()) << "ends are told by the leader only";
  EXPECT_TRUE(io.any_done());
  EXPECT_EQ(io.deliver(), 2U);
  EXPECT_FALSE(io.any_done());
  EXPECT_EQ(ends.ended, (std::vector<FileTransfer*>{&read, &write}));
  EXPECT_EQ(read.error, nullptr);
  EXPECT_EQ(in, text("3456"));
  EXPECT_EQ(io.counters().reads, 1U);
  EXPECT_EQ(io.counters().bytes_written, 2U);
}

TEST(PosixFileIo, R28_the_error_of_a_transfer_comes_with_its_end) {
  PlainFiles files;
  FileCache cache(files, 4);
  files.make("a", "0123456789");
  auto file = opened(cache, {"a", false, 0, {}});
  files.move_error = EIO;
  auto worker = make_inline_worker(16);
  PosixFileIo io(*worker, [] {});
  Ends ends;
  Bytes in(4);
  FileTransfer read = transfer_of(ends, *file, in, 0, false);
  ASSERT_TRUE(io.start(read));
  worker->run_one();
  io.deliver();
  ASSERT_NE(read.error, nullptr);
  EXPECT_EQ(read.error->native_number, EIO);
  EXPECT_EQ(io.counters().errors, 1U);
  EXPECT_EQ(io.counters().reads, 0U);
}

TEST(PosixFileIo, R43_no_room_is_an_answer) {
  PlainFiles files;
  FileCache cache(files, 4);
  files.make("a", "0123456789");
  auto file = opened(cache, {"a", false, 0, {}});
  for (const bool worker_is_full : {false, true}) {
    auto worker = make_inline_worker(worker_is_full ? 2 : 16);
    PosixFileIo io(*worker, [] {}, worker_is_full ? 16 : 2);
    Ends ends;
    Bytes in(1);
    std::vector<FileTransfer> transfers;
    transfers.reserve(3);
    for (int i = 0; i < 3; ++i) {
      transfers.push_back(transfer_of(ends, *file, in, 0, false));
    }
    EXPECT_TRUE(io.start(transfers[0]));
    EXPECT_TRUE(io.start(transfers[1]));
    EXPECT_FALSE(io.start(transfers[2]));
    worker->run_one();
    io.deliver();
    EXPECT_TRUE(io.start(transfers[2]));
    while (worker->run_one()) {
    }
    io.deliver();
    EXPECT_EQ(ends.ended.size(), 3U);
  }
}

TEST(PosixFileIo, R44_threads_end_each_transfer_once) {
  PlainFiles files;
  FileCache cache(files, 2);
  std::vector<std::unique_ptr<PosixFile>> all;
  for (int i = 0; i < 4; ++i) {
    files.make(std::to_string(i), std::string(64, static_cast<char>('a' + i)));
    all.push_back(opened(cache, {std::to_string(i), false, 0, {}}));
  }
  auto worker = *make_threaded_worker(3, 64);
  std::atomic<int> wakes = 0;
  Ends ends;
  {
    PosixFileIo io(*worker, [&] { ++wakes; }, 8);
    std::vector<Bytes> buffers(200, Bytes(16));
    std::vector<FileTransfer> transfers;
    transfers.reserve(buffers.size());
    while (ends.ended.size() < buffers.size()) {
      if (transfers.size() < buffers.size()) {
        const std::size_t i = transfers.size();
        transfers.push_back(transfer_of(ends, *all[i % 4], buffers[i], i % 48, false));
        if (!io.start(transfers.back())) {
          transfers.pop_back();
        }
      }
      io.deliver();
      std::this_thread::yield();
    }
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_EQ(buffers[i], Bytes(16, static_cast<std::byte>('a' + i % 4)));
      EXPECT_EQ(transfers[i].error, nullptr);
    }
  }
  EXPECT_EQ(wakes, 200);
  std::sort(ends.ended.begin(), ends.ended.end());
  EXPECT_EQ(std::unique(ends.ended.begin(), ends.ended.end()), ends.ended.end());
}

} // namespace
} // namespace wherry

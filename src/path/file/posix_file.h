// File ranges by pread and pwrite: the `posix` engine of R37. Files are opened on demand, on the
// native worker, and recognised by device and inode each time (R23).
#pragma once

#include "memory/range_table.h"
#include "os/files.h"
#include "os/worker.h"
#include "path/file_io.h"

#include <wherry/source.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace wherry {

class FileCache;

/// A registered file range: the native owner of its registration. Immutable but for the cache's
/// part.
class PosixFile final : public NativeOwner {
public:
  PosixFile(FileCache& cache, std::string path, bool writable, std::uint64_t offset,
            std::uint64_t length_bytes, const FileVersion& version, bool named)
      : cache_(cache), path_(std::move(path)), writable_(writable), named_(named), offset_(offset),
        length_bytes_(length_bytes), version_(version) {}
  ~PosixFile() override;

  const FileVersion& version() const { return version_; }
  const std::string& path() const { return path_; }

  /// Moves all of `bytes` or answers why not; checks that the file is still the one that was
  /// registered, before and after. Blocks; any worker thread.
  /// Errors: range_changed, io_error (call and errno), and those of opening.
  Result<void> read(std::uint64_t offset, std::span<std::byte> bytes);
  Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes);

private:
  friend class FileCache;
  Result<FileDescriptor> open();
  Result<void> check(const FileStat& now) const;

  FileCache& cache_;
  const std::string path_;
  const bool writable_;
  const bool named_; // It had a name when it was registered (memory files have none).
  const std::uint64_t offset_;
  const std::uint64_t length_bytes_;
  const FileVersion version_;

  // Owned by the cache, under its mutex.
  FileDescriptor descriptor_ = -1;
  std::uint32_t users_ = 0;
  std::list<PosixFile*>::iterator idle_place_;
};

/// Bounds how many files are open at once (R43): those in use, plus idle ones in
/// least-recently-used order. Thread-safe. Outlives its files.
class FileCache {
public:
  FileCache(Files& files, std::uint32_t open_max) : files_(files), open_max_(open_max) {}
  ~FileCache();

  Files& files() { return files_; }
  std::uint32_t open() const;

private:
  friend class PosixFile;
  Result<FileDescriptor> acquire(PosixFile& file);
  void release(PosixFile& file);
  void forget(PosixFile& file);
  FileDescriptor evict_one();

  Files& files_;
  const std::uint32_t open_max_;
  mutable std::mutex mutex_;
  std::uint32_t open_ = 0;
  std::list<PosixFile*> idle_;
};

/// Checks the file at registration and makes its native owner. Blocks.
struct PosixFileSpec {
  std::string path;
  bool writable = false;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length_bytes;
};
struct OpenedPosixFile {
  std::unique_ptr<PosixFile> file;
  std::uint64_t length_bytes = 0;
};
/// Errors: invalid_argument (not regular, empty range, beyond the end), and those of opening.
Result<OpenedPosixFile> open_posix_file(FileCache& cache, const PosixFileSpec& spec);

/// FileIo over the native worker. `wake` is called, from any thread, when an end has come in.
class PosixFileIo final : public FileIo {
public:
  PosixFileIo(Worker& worker, std::function<void()> wake, std::size_t transfers_max = 256);
  ~PosixFileIo() override;

  bool start(FileTransfer& transfer) override;
  std::size_t deliver() override;
  /// Whether deliver() has something to tell. Sequentially consistent with `wake`.
  bool any_done() const { return any_done_.load(std::memory_order_seq_cst); }

  struct Counters {
    std::uint64_t reads = 0, writes = 0, bytes_read = 0, bytes_written = 0, errors = 0;
  };
  const Counters& counters() const { return counters_; }

private:
  struct TransferJob;
  void finished(TransferJob* job);

  Worker& worker_;
  std::function<void()> wake_;
  std::vector<std::unique_ptr<TransferJob>> jobs_;
  std::vector<TransferJob*> free_;
  Counters counters_;
  std::atomic<bool> any_done_ = false;
  std::mutex mutex_;
  std::vector<TransferJob*> done_;
  std::vector<TransferJob*> delivering_;
};

} // namespace wherry

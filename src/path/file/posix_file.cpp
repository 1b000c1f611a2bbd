#include "path/file/posix_file.h"

#include <fmt/format.h>

#include <cerrno>

namespace wherry {

namespace {

FileVersion version_of(const FileStat& stat) {
  return {stat.device, stat.inode, stat.size_bytes, stat.mtime_ns};
}

Error early_end(const std::string& path, std::uint64_t at) {
  Error error;
  error.code = ErrorCode::range_changed;
  error.message =
      fmt::format("{}: the file ends at byte {}, inside the registered range", path, at);
  error.native_call = "pread";
  return error;
}

} // namespace

// -- FileCache
// ---------------------------------------------------------------------------------------

FileCache::~FileCache() {
  WHERRY_ASSERT(open_ == 0);
}

std::uint32_t FileCache::open() const {
  const std::lock_guard lock(mutex_);
  return open_;
}

// Takes the longest idle descriptor out of the cache; -1 when none is idle. Under the mutex.
FileDescriptor FileCache::evict_one() {
  if (idle_.empty()) {
    return -1;
  }
  PosixFile* victim = idle_.front();
  idle_.pop_front();
  const FileDescriptor descriptor = victim->descriptor_;
  victim->descriptor_ = -1;
  return descriptor;
}

Result<FileDescriptor> FileCache::acquire(PosixFile& file) {
  FileDescriptor evicted = -1;
  {
    const std::lock_guard lock(mutex_);
    if (file.descriptor_ >= 0) {
      if (file.users_++ == 0) {
        idle_.erase(file.idle_place_);
      }
      return file.descriptor_;
    }
    // The bound counts what is open; files in use beyond it are at most the worker's threads.
    if (open_ >= open_max_) {
      evicted = evict_one();
    }
    if (evicted < 0) {
      ++open_;
    }
  }
  if (evicted >= 0) {
    files_.close(evicted);
  }
  auto opened = files_.open(file.path_, file.writable_);
  FileDescriptor spare = -1;
  const std::lock_guard lock(mutex_);
  if (!opened) {
    --open_;
    return opened;
  }
  if (file.descriptor_ >= 0) { // Another thread was faster.
    spare = *opened;
    --open_;
    files_.close(spare);
    if (file.users_++ == 0) {
      idle_.erase(file.idle_place_);
    }
    return file.descriptor_;
  }
  file.descriptor_ = *opened;
  file.users_ = 1;
  return *opened;
}

void FileCache::release(PosixFile& file) {
  const std::lock_guard lock(mutex_);
  WHERRY_ASSERT(file.users_ > 0);
  if (--file.users_ == 0) {
    file.idle_place_ = idle_.insert(idle_.end(), &file);
  }
}

void FileCache::forget(PosixFile& file) {
  FileDescriptor descriptor = -1;
  {
    const std::lock_guard lock(mutex_);
    WHERRY_ASSERT(file.users_ == 0);
    if (file.descriptor_ < 0) {
      return;
    }
    idle_.erase(file.idle_place_);
    descriptor = file.descriptor_;
    --open_;
  }
  files_.close(descriptor);
}

// -- PosixFile
// ---------------------------------------------------------------------------------------

PosixFile::~PosixFile() {
  cache_.forget(*this);
}

Result<FileDescriptor> PosixFile::open() {
  auto descriptor = cache_.acquire(*this);
  if (!descriptor && descriptor.error().code == ErrorCode::not_found) {
    Error error = descriptor.error();
    error.code = ErrorCode::range_changed; // It was there.
    return fail(std::move(error));
  }
  return descriptor;
}

// R23: a read-only file is what it was in device, inode, size and mtime; a writable one in device
// and inode, and is not shorter than the range.
Result<void> PosixFile::check(const FileStat& now) const {
  if (named_ && now.unlinked) {
    // Still open here: bytes would go to, or come from, a file that nobody else can find.
    return fail(ErrorCode::range_changed,
                fmt::format("{}: the file was removed or replaced", path_));
  }
  const FileVersion seen = version_of(now);
  const bool same = writable_ ? seen.device == version_.device && seen.inode == version_.inode &&
                                    seen.size_bytes >= offset_ + length_bytes_
                              : seen == version_;
  if (same) {
    return {};
  }
  return fail(ErrorCode::range_changed,
              fmt::format("{}: the file is not what it was when it was registered (inode {}, {} "
                          "bytes, mtime {} ns; "
                          "was inode {}, {} bytes, mtime {} ns)",
                          path_, seen.inode, seen.size_bytes, seen.mtime_ns, version_.inode,
                          version_.size_bytes, version_.mtime_ns));
}

namespace {

// The common shape of reading and writing: acquire, check, move, check, release.
template <class Move>
Result<void> with_checks(Files& files, FileDescriptor descriptor, Move&& move, auto&& check) {
  for (const bool before : {true, false}) {
    auto stat = files.stat(descriptor);
    if (!stat) {
      return fail(stat.error());
    }
    if (auto same = check(*stat); !same) {
      return same;
    }
    if (!before) {
      break;
    }
    if (auto moved = move(); !moved) {
      return moved;
    }
  }
  return {};
}

} // namespace

Result<void> PosixFile::read(std::uint64_t offset, std::span<std::byte> bytes) {
  auto descriptor = open();
  if (!descriptor) {
    return fail(descriptor.error());
  }
  Files& files = cache_.files();
  auto move = [&]() -> Result<void> {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const std::uint64_t at = offset_ + offset + done;
      const IoResult got = files.read(*descriptor, at, bytes.subspan(done));
      if (got.error != 0) {
        return fail(
            native_error("pread", got.error, fmt::format("{}: reading at byte {}", path_, at)));
      }
      if (got.bytes == 0) {
        return fail(early_end(path_, at));
      }
      done += got.bytes;
    }
    return {};
  };
  auto result =
      with_checks(files, *descriptor, move, [this](const FileStat& now) { return check(now); });
  cache_.release(*this);
  return result;
}

Result<void> PosixFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  auto descriptor = open();
  if (!descriptor) {
    return fail(descriptor.error());
  }
  Files& files = cache_.files();
  auto move = [&]() -> Result<void> {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const std::uint64_t at = offset_ + offset + done;
      const IoResult put = files.write(*descriptor, at, bytes.subspan(done));
      const int number = put.error != 0 ? put.error : put.bytes == 0 ? ENOSPC : 0;
      if (number != 0) {
        return fail(
            native_error("pwrite", number, fmt::format("{}: writing at byte {}", path_, at)));
      }
      done += put.bytes;
    }
    return {};
  };
  auto result =
      with_checks(files, *descriptor, move, [this](const FileStat& now) { return check(now); });
  cache_.release(*this);
  return result;
}

Result<OpenedPosixFile> open_posix_file(FileCache& cache, const PosixFileSpec& spec) {
  Files& files = cache.files();
  auto descriptor = files.open(spec.path, spec.writable);
  if (!descriptor) {
    return fail(descriptor.error());
  }
  auto stat = files.stat(*descriptor);
  files.close(*descriptor);
  if (!stat) {
    return fail(stat.error());
  }
  if (!stat->regular) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: not a regular file; only those can be registered", spec.path));
  }
  const std::uint64_t size = stat->size_bytes;
  const std::uint64_t length =
      spec.length_bytes.value_or(size > spec.offset ? size - spec.offset : 0);
  if (spec.offset > size || length > size - spec.offset) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: bytes {} to {} are beyond the end of the file, which has {}",
                            spec.path, spec.offset, spec.offset + length, size));
  }
  OpenedPosixFile opened;
  opened.length_bytes = length;
  opened.file = std::make_unique<PosixFile>(cache, spec.path, spec.writable, spec.offset, length,
                                            version_of(*stat), !stat->unlinked);
  return opened;
}

// -- PosixFileIo
// -------------------------------------------------------------------------------------

struct PosixFileIo::TransferJob final : Job {
  PosixFileIo* io = nullptr;
  FileTransfer* transfer = nullptr;

  void run() override {
    auto& file = static_cast<PosixFile&>(*transfer->file);
    const std::span<std::byte> bytes(transfer->bytes, transfer->length_bytes);
    auto result =
        transfer->write ? file.write(transfer->offset, bytes) : file.read(transfer->offset, bytes);
    transfer->error = result ? nullptr : std::make_unique<Error>(std::move(result.error()));
  }
  void finished() override { io->finished(this); }
};

PosixFileIo::PosixFileIo(Worker& worker, std::function<void()> wake, std::size_t transfers_max)
    : worker_(worker), wake_(std::move(wake)) {
  for (std::size_t i = 0; i < transfers_max; ++i) {
    jobs_.push_back(std::make_unique<TransferJob>());
    jobs_.back()->io = this;
    free_.push_back(jobs_.back().get());
  }
  done_.reserve(transfers_max);
  delivering_.reserve(transfers_max);
}

PosixFileIo::~PosixFileIo() {
  WHERRY_ASSERT(free_.size() == jobs_.size());
}

bool PosixFileIo::start(FileTransfer& transfer) {
  if (free_.empty()) {
    return false;
  }
  TransferJob* job = free_.back();
  job->transfer = &transfer;
  if (!worker_.post(job)) {
    return false;
  }
  free_.pop_back();
  return true;
}

void PosixFileIo::finished(TransferJob* job) {
  // The wake comes under the lock: once the shard has seen the job it may end, and this object with
  // it.
  const std::lock_guard lock(mutex_);
  done_.push_back(job);
  any_done_.store(true, std::memory_order_seq_cst);
  wake_();
}

std::size_t PosixFileIo::deliver() {
  if (!any_done_.load(std::memory_order_acquire)) {
    return 0;
  }
  {
    const std::lock_guard lock(mutex_);
    delivering_.swap(done_);
    any_done_.store(false, std::memory_order_release);
  }
  for (TransferJob* job : delivering_) {
    FileTransfer& transfer = *job->transfer;
    if (transfer.error) {
      ++counters_.errors;
    } else {
      (transfer.write ? counters_.writes : counters_.reads) += 1;
      (transfer.write ? counters_.bytes_written : counters_.bytes_read) += transfer.length_bytes;
    }
    free_.push_back(job);
    transfer.owner->on_transfer(transfer);
  }
  const std::size_t count = delivering_.size();
  delivering_.clear();
  return count;
}

} // namespace wherry

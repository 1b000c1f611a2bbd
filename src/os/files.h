// The system-call seam for files. All calls may block: they run on the native worker only, on any
// of its threads.
#pragma once

#include "base/error.h"
#include "os/network.h" // IoResult

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace wherry {

/// What fstat tells.
struct FileStat {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size_bytes = 0;
  std::int64_t mtime_ns = 0;
  bool regular = false;
  bool unlinked = false; ///< No name leads to it any more.
};

/// An open file; -1 is none.
using FileDescriptor = int;

class Files {
public:
  virtual ~Files() = default;

  /// Close-on-exec, non-blocking for what is no regular file (a pipe must not hang us).
  /// Errors: not_found, access_denied, io_error; each with the errno.
  virtual Result<FileDescriptor> open(const std::string& path, bool writable) = 0;
  virtual void close(FileDescriptor file) = 0;
  virtual Result<FileStat> stat(FileDescriptor file) = 0;
  /// One pread or pwrite; may be short. Interrupted calls are repeated inside.
  virtual IoResult read(FileDescriptor file, std::uint64_t offset, std::span<std::byte> into) = 0;
  virtual IoResult write(FileDescriptor file, std::uint64_t offset,
                         std::span<const std::byte> from) = 0;
  /// Reads a small file whole (at most `bytes_max`). Errors as open; resource_exhausted if larger.
  virtual Result<std::string> read_small(const std::string& path, std::size_t bytes_max) = 0;
  /// Replaces a small file: temporary file, sync, rename, sync of the directory. All or nothing.
  virtual Result<void> replace_small(const std::string& path, std::string_view content) = 0;
};

std::unique_ptr<Files> make_kernel_files();

} // namespace wherry

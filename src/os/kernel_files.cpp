// The kernel's files. No state of its own; any worker thread. Touches nothing that belongs to the
// whole process: no umask, no working directory, no signal (R42).
#include "base/assert.h"
#include "os/files.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <string_view>
#include <utility>

namespace wherry {
namespace {

/// Closes at the end of a scope.
class OwnedFile {
public:
  explicit OwnedFile(int file) : file_(file) {}
  OwnedFile(const OwnedFile&) = delete;
  OwnedFile& operator=(const OwnedFile&) = delete;
  ~OwnedFile() {
    if (file_ >= 0) {
      ::close(file_);
    }
  }
  int get() const { return file_; }
  int release() { return std::exchange(file_, -1); }

private:
  int file_;
};

ErrorCode code_of(int number) {
  switch (number) {
  case ENOENT:
  case ENOTDIR:
    return ErrorCode::not_found;
  case EACCES:
  case EPERM:
  case EROFS:
    return ErrorCode::access_denied;
  default:
    return ErrorCode::io_error;
  }
}

tl::unexpected<Error> file_error(std::string_view call, int number, const std::string& path) {
  Error error = native_error(call, number, "the file " + path);
  error.code = code_of(number);
  return fail(std::move(error));
}

int open_repeated(const char* path, int flags, mode_t mode = 0) {
  int file = -1;
  do {
    file = ::open(path, flags | O_CLOEXEC | O_NOCTTY, mode);
  } while (file < 0 && errno == EINTR);
  return file;
}

Result<void> check_path(const std::string& path) {
  // The kernel would see a shorter path, that is another file.
  if (path.find('\0') == std::string::npos) {
    return {};
  }
  return fail(ErrorCode::invalid_argument, "the path of a file contains a NUL");
}

bool fits_offset(std::uint64_t offset) {
  return offset <= static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
}

/// Writes all of it: a short write is continued.
int write_whole(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t count = ::write(file, content.data(), content.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return errno;
    }
    if (count == 0) {
      return EIO;
    }
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) {
    return ".";
  }
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// A new file beside `path`, so that rename() stays inside one file system.
Result<std::pair<int, std::string>> make_temporary(const std::string& path) {
  constexpr int tries = 16;
  for (int i = 0; i < tries; ++i) {
    std::uint64_t suffix = 0;
    if (getrandom(&suffix, sizeof suffix, 0) != static_cast<ssize_t>(sizeof suffix)) {
      continue;
    }
    std::string name = path + ".wherry-" + std::to_string(suffix);
    // 0666 under the process's umask, as any new file; mkstemp would make it private.
    const int file = open_repeated(name.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (file >= 0) {
      return std::pair{file, std::move(name)};
    }
    if (errno != EEXIST) {
      return file_error("open", errno, name);
    }
  }
  return file_error("open", EEXIST, path);
}

/// Content and permissions into the temporary file, and onto the device.
Result<void> fill_temporary(int file, const std::string& name, const std::string& path,
                            std::string_view content) {
  if (const int error = write_whole(file, content); error != 0) {
    return file_error("write", error, name);
  }
  struct stat old{};
  if (::stat(path.c_str(), &old) == 0 && ::fchmod(file, old.st_mode & 07777) != 0) {
    return file_error("fchmod", errno, name);
  }
  if (::fsync(file) != 0) {
    return file_error("fsync", errno, name);
  }
  return {};
}

Result<void> sync_directory(const std::string& path) {
  const std::string directory = directory_of(path);
  const OwnedFile file(open_repeated(directory.c_str(), O_RDONLY | O_DIRECTORY));
  if (file.get() < 0) {
    return file_error("open", errno, directory);
  }
  // EINVAL: a file system that has no such thing to sync.
  if (::fsync(file.get()) != 0 && errno != EINVAL) {
    return file_error("fsync", errno, directory);
  }
  return {};
}

class KernelFiles final : public Files {
public:
  Result<FileDescriptor> open(const std::string& path, bool writable) override {
    if (auto good = check_path(path); !good) {
      return tl::unexpected(std::move(good.error()));
    }
    const int file = open_repeated(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_NONBLOCK);
    if (file < 0) {
      return file_error("open", errno, path);
    }
    return file;
  }

  void close(FileDescriptor file) override {
    WHERRY_ASSERT(file >= 0);
    // Not repeated after EINTR: Linux has closed it, and the number may be somebody else's by now.
    ::close(file);
  }

  Result<FileStat> stat(FileDescriptor file) override {
    struct stat found{};
    if (::fstat(file, &found) != 0) {
      return fail(native_error("fstat", errno, "an open file"));
    }
    return FileStat{
        .device = found.st_dev,
        .inode = found.st_ino,
        .size_bytes = static_cast<std::uint64_t>(found.st_size),
        .mtime_ns = std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec,
        .regular = S_ISREG(found.st_mode),
        .unlinked = found.st_nlink == 0,
    };
  }

  IoResult read(FileDescriptor file, std::uint64_t offset, std::span<std::byte> into) override {
    if (!fits_offset(offset)) {
      return {0, EINVAL};
    }
    ssize_t count = 0;
    do {
      count = ::pread(file, into.data(), into.size(), static_cast<off_t>(offset));
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
      return {0, errno};
    }
    return {static_cast<std::size_t>(count), 0};
  }

  IoResult write(FileDescriptor file, std::uint64_t offset,
                 std::span<const std::byte> from) override {
    if (!fits_offset(offset)) {
      return {0, EFBIG};
    }
    ssize_t count = 0;
    do {
      count = ::pwrite(file, from.data(), from.size(), static_cast<off_t>(offset));
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
      return {0, errno};
    }
    return {static_cast<std::size_t>(count), 0};
  }

  Result<std::string> read_small(const std::string& path, std::size_t bytes_max) override {
    auto opened = open(path, false);
    if (!opened) {
      return tl::unexpected(std::move(opened.error()));
    }
    const OwnedFile file(*opened);
    std::string content;
    while (true) {
      char buffer[4096];
      const ssize_t count = ::read(file.get(), buffer, sizeof buffer);
      if (count < 0 && errno == EINTR) {
        continue;
      }
      if (count < 0) {
        return file_error("read", errno, path);
      }
      if (count == 0) {
        return content;
      }
      if (static_cast<std::size_t>(count) > bytes_max - content.size()) {
        return fail(ErrorCode::resource_exhausted,
                    "the file " + path + " is larger than " + std::to_string(bytes_max) + " bytes");
      }
      content.append(buffer, static_cast<std::size_t>(count));
    }
  }

  Result<void> replace_small(const std::string& path, std::string_view content) override {
    if (auto good = check_path(path); !good) {
      return good;
    }
    auto temporary = make_temporary(path);
    if (!temporary) {
      return tl::unexpected(std::move(temporary.error()));
    }
    const auto& [descriptor, name] = *temporary;
    auto done = replace_by(OwnedFile(descriptor), name, path, content);
    if (!done) {
      ::unlink(name.c_str());
      return done;
    }
    return sync_directory(path);
  }

private:
  static Result<void> replace_by(OwnedFile&& file, const std::string& name, const std::string& path,
                                 std::string_view content) {
    if (auto filled = fill_temporary(file.get(), name, path, content); !filled) {
      return filled;
    }
    // NFS and quotas may tell of a failed write only now.
    if (::close(file.release()) != 0 && errno != EINTR) {
      return file_error("close", errno, name);
    }
    if (::rename(name.c_str(), path.c_str()) != 0) {
      return file_error("rename", errno, path);
    }
    return {};
  }
};

} // namespace

std::unique_ptr<Files> make_kernel_files() {
  return std::make_unique<KernelFiles>();
}

} // namespace wherry

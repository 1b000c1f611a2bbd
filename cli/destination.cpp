#include "destination.h"

#include "errors.h"
#include "target_path.h"
#include "text.h"
#include "units.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>

namespace wherry::cli {
namespace {

constexpr int directory_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

std::pair<std::string, std::string> split_last(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::pair(std::string(), path)
                                    : std::pair(path.substr(0, slash), path.substr(slash + 1));
}

Error exists_error(const std::string& path) {
  return make_error(ErrorCode::invalid_argument,
                    fmt::format("'{}' exists; --overwrite replaces files", printable(path)));
}

// Room for the whole file, so that a full disk says so now and not in the middle.
int allocate(int descriptor, std::uint64_t length_bytes) {
  const auto length = static_cast<off_t>(length_bytes);
  if (::ftruncate(descriptor, 0) != 0) {
    return errno;
  }
  if (length_bytes == 0) {
    return 0;
  }
  int number = 0;
  do {
    number = ::fallocate(descriptor, 0, 0, length) == 0 ? 0 : errno;
  } while (number == EINTR);
  if (number == EOPNOTSUPP || number == ENOSYS) {
    number = ::ftruncate(descriptor, length) == 0 ? 0 : errno;
  }
  return number;
}

int rename_exclusively(int directory, const char* from, const char* to) {
  if (::renameat2(directory, from, directory, to, RENAME_NOREPLACE) == 0) {
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) {
    return errno;
  }
  // A file system without it: a link cannot replace anything either.
  if (::linkat(directory, from, directory, to, 0) != 0) {
    return errno;
  }
  return ::unlinkat(directory, from, 0) == 0 ? 0 : errno;
}

} // namespace

Descriptor::~Descriptor() {
  ::close(number_);
}

PartFile::PartFile(Interrupt& interrupt, std::shared_ptr<Descriptor> directory,
                   std::unique_ptr<Descriptor> file, std::string path, std::string target)
    : interrupt_(&interrupt), directory_(std::move(directory)), file_(std::move(file)),
      path_(std::move(path)), target_(std::move(target)) {
  interrupt_->add_part_file(path_);
}

PartFile::~PartFile() {
  if (file_ != nullptr) {
    interrupt_->remove_part_file(path_);
  }
}

Destination::Destination(std::string root, std::shared_ptr<Descriptor> directory, Options options,
                         Interrupt& interrupt)
    : root_(std::move(root)), directory_(std::move(directory)), options_(options),
      interrupt_(&interrupt), recent_(directory_) {}

Result<Destination> Destination::open(const std::string& root, Options options,
                                      Interrupt& interrupt) {
  const bool made = ::mkdir(root.c_str(), 0777) == 0;
  if (!made && errno != EEXIST) {
    return fail(system_error(errno == ENOENT ? ErrorCode::invalid_argument : ErrorCode::io_error,
                             "mkdir", errno, fmt::format("the directory '{}'", printable(root))));
  }
  const int number = ::open(root.c_str(), directory_flags);
  if (number < 0) {
    return fail(system_error(errno == ENOTDIR ? ErrorCode::invalid_argument : ErrorCode::io_error,
                             "open", errno, fmt::format("the directory '{}'", printable(root))));
  }
  Destination destination(root, std::make_shared<Descriptor>(number), options, interrupt);
  if (made && options.sync) {
    const std::string parent = split_last(root).first;
    const Descriptor above(::open(
        parent.empty() ? (root.starts_with('/') ? "/" : ".") : parent.c_str(), directory_flags));
    ::fsync(above.number());
  }
  return destination;
}

std::string Destination::path_of(std::string_view target) const {
  return root_ == "." ? std::string(target)
                      : fmt::format("{}{}{}", root_, root_.ends_with('/') ? "" : "/", target);
}

Result<void> Destination::check_free(const std::string& target) const {
  struct stat status{};
  if (::fstatat(directory_->number(), target.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) {
      return {};
    }
    return fail(system_error(errno == ENOTDIR ? ErrorCode::invalid_argument : ErrorCode::io_error,
                             "fstatat", errno, fmt::format("'{}'", printable(path_of(target)))));
  }
  if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("'{}' exists and is no file", printable(path_of(target))));
  }
  if (!options_.overwrite) {
    return fail(exists_error(path_of(target)));
  }
  return {};
}

Result<PartFile> Destination::create(const std::string& target, std::uint64_t length_bytes) {
  const std::string path = path_of(part_path(target));
  if (path.size() >= PATH_MAX) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("'{}' is too long a path: {} bytes, and {} are the most",
                            printable(path), path.size(), PATH_MAX - 1));
  }
  auto directory = directory_of(target);
  if (!directory) {
    return fail(directory.error());
  }
  auto file = open_locked(**directory, split_last(part_path(target)).second, path);
  if (!file) {
    return fail(file.error());
  }
  PartFile part(*interrupt_, *directory, std::move(*file), path, target);
  if (const int number = allocate(part.descriptor(), length_bytes); number != 0) {
    return fail(system_error(ErrorCode::io_error, "fallocate", number,
                             fmt::format("no room for {} in '{}'", format_size(length_bytes),
                                         printable(path_of(target)))));
  }
  return part;
}

Result<std::shared_ptr<Descriptor>> Destination::directory_of(const std::string& target) {
  const std::string wanted = split_last(target).first;
  if (wanted == recent_path_) {
    return recent_;
  }
  std::shared_ptr<Descriptor> directory = directory_;
  for (std::size_t start = 0; start < wanted.size();) {
    const std::size_t end = std::min(wanted.find('/', start), wanted.size());
    auto next = open_below(directory, wanted.substr(start, end - start), wanted.substr(0, end));
    if (!next) {
      return next;
    }
    directory = std::move(*next);
    start = end + 1;
  }
  recent_path_ = wanted;
  recent_ = directory;
  return directory;
}

// Makes the directory where it is missing; a symbolic link in its place is refused.
Result<std::shared_ptr<Descriptor>>
Destination::open_below(const std::shared_ptr<Descriptor>& parent, const std::string& component,
                        const std::string& path) {
  if (::mkdirat(parent->number(), component.c_str(), 0777) == 0) {
    unsynced_.insert(split_last(path).first);
  } else if (errno != EEXIST) {
    return fail(system_error(ErrorCode::io_error, "mkdirat", errno,
                             fmt::format("the directory '{}'", printable(path_of(path)))));
  }
  const int number = ::openat(parent->number(), component.c_str(), directory_flags | O_NOFOLLOW);
  if (number < 0) {
    const bool in_the_way = errno == ENOTDIR || errno == ELOOP;
    return fail(system_error(in_the_way ? ErrorCode::invalid_argument : ErrorCode::io_error,
                             "openat", errno,
                             fmt::format("'{}' is to be a directory", printable(path_of(path)))));
  }
  return std::make_shared<Descriptor>(number);
}

// A part file that another process left behind is taken over; one that it still holds is not.
Result<std::unique_ptr<Descriptor>> Destination::open_locked(const Descriptor& directory,
                                                             const std::string& name,
                                                             const std::string& path) const {
  const std::string quoted = fmt::format("'{}'", printable(path));
  const int number = ::openat(directory.number(), name.c_str(),
                              O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  if (number < 0) {
    return fail(system_error(errno == ELOOP ? ErrorCode::invalid_argument : ErrorCode::io_error,
                             "openat", errno, quoted));
  }
  auto file = std::make_unique<Descriptor>(number);
  if (::flock(number, LOCK_EX | LOCK_NB) != 0) {
    return fail(system_error(errno == EWOULDBLOCK ? ErrorCode::busy : ErrorCode::io_error, "flock",
                             errno, fmt::format("another process writes {}", quoted)));
  }
  struct stat opened{};
  struct stat named{};
  if (::fstat(number, &opened) != 0 ||
      ::fstatat(directory.number(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 ||
      opened.st_ino != named.st_ino || opened.st_dev != named.st_dev) {
    // Its writer completed it between our open and our lock.
    return fail(ErrorCode::busy, fmt::format("another process wrote {}", quoted));
  }
  if (!S_ISREG(opened.st_mode) || opened.st_nlink != 1) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is in the way: it is no file, or one with other names", quoted));
  }
  return file;
}

Result<void> Destination::complete(PartFile& part) {
  const auto [parent, name] = split_last(part.target_);
  if (options_.sync && ::fsync(part.descriptor()) != 0) {
    return fail(system_error(ErrorCode::io_error, "fsync", errno,
                             fmt::format("'{}'", printable(part.path()))));
  }
  const std::string from = split_last(part.path()).second;
  const int directory = part.directory_->number();
  const int number = interrupt_->complete_part_file(part.path(), [&, &base = name] {
    if (options_.overwrite) {
      return ::renameat(directory, from.c_str(), directory, base.c_str()) == 0 ? 0 : errno;
    }
    return rename_exclusively(directory, from.c_str(), base.c_str());
  });
  if (number == EEXIST) {
    return fail(exists_error(path_of(part.target_)));
  }
  if (number != 0) {
    return fail(system_error(ErrorCode::io_error, "renameat", number,
                             fmt::format("'{}'", printable(path_of(part.target_)))));
  }
  part.file_.reset();
  if (options_.sync) {
    unsynced_.insert(parent);
  }
  return {};
}

Result<void> Destination::sync_directories() {
  for (const std::string& directory : std::exchange(unsynced_, {})) {
    const Descriptor opened(::openat(directory_->number(),
                                     directory.empty() ? "." : directory.c_str(),
                                     directory_flags | O_NOFOLLOW));
    if (options_.sync && (opened.number() < 0 || ::fsync(opened.number()) != 0)) {
      return fail(system_error(ErrorCode::io_error, "fsync", errno,
                               fmt::format("the directory '{}'", printable(path_of(directory)))));
    }
  }
  return {};
}

} // namespace wherry::cli

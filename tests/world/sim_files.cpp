// Files in memory. Owns names, inodes and open descriptors. One thread; all from the seed.
#include "world/sim_files.h"

#include "base/assert.h"
#include "base/error.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace wherry {
namespace {

tl::unexpected<Error> refuse(std::string_view call, int number, const std::string& path) {
  Error error = native_error(call, number, "the file " + path);
  if (number == ENOENT || number == ENOTDIR) {
    error.code = ErrorCode::not_found;
  } else if (number == EACCES || number == EPERM || number == EROFS) {
    error.code = ErrorCode::access_denied;
  }
  return fail(std::move(error));
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

} // namespace

void SimFiles::create(const std::string& path, std::vector<std::byte> content) {
  auto inode = std::make_shared<Inode>();
  inode->number = ++inodes_made_;
  inode->content = std::move(content);
  touch(*inode);
  names_[path] = std::move(inode);
}

void SimFiles::remove(const std::string& path) {
  names_.erase(path);
}

void SimFiles::resize(const std::string& path, std::size_t size_bytes) {
  named(path).content.resize(size_bytes);
  touch(named(path));
}

void SimFiles::overwrite(const std::string& path, std::size_t offset,
                         std::span<const std::byte> bytes) {
  Inode& inode = named(path);
  WHERRY_ASSERT(offset <= inode.content.size() && bytes.size() <= inode.content.size() - offset);
  std::copy(bytes.begin(), bytes.end(),
            inode.content.begin() + static_cast<std::ptrdiff_t>(offset));
  touch(inode);
}

void SimFiles::set_read_only(const std::string& path, bool read_only) {
  named(path).read_only = read_only;
}

void SimFiles::set_regular(const std::string& path, bool regular) {
  named(path).regular = regular;
}

const std::vector<std::byte>& SimFiles::content(const std::string& path) const {
  return named(path).content;
}

FileStat SimFiles::stat_of(const std::string& path) const {
  return describe(named(path));
}

void SimFiles::fail_next(SimFileCall call, int error, std::uint32_t skip) {
  planted_[call].push_back({skip, error});
}

SimFiles::Inode& SimFiles::named(const std::string& path) const {
  const auto found = names_.find(path);
  WHERRY_ASSERT(found != names_.end());
  return *found->second;
}

FileStat SimFiles::describe(const Inode& inode) const {
  const bool named = std::any_of(names_.begin(), names_.end(),
                                 [&](const auto& name) { return name.second.get() == &inode; });
  return {.device = 1,
          .inode = inode.number,
          .size_bytes = inode.content.size(),
          .mtime_ns = inode.mtime_ns,
          .regular = inode.regular,
          .unlinked = !named};
}

/// Every change has an mtime of its own, however little the clock has moved.
void SimFiles::touch(Inode& inode) {
  inode.mtime_ns = std::max(static_cast<std::int64_t>(clock_.now_ns()), inode.mtime_ns + 1);
}

int SimFiles::planted_error(SimFileCall call) {
  auto& list = planted_[call];
  if (list.empty()) {
    return 0;
  }
  if (list.front().skip > 0) {
    --list.front().skip;
    return 0;
  }
  const int error = list.front().error;
  list.pop_front();
  return error;
}

std::size_t SimFiles::draw_count(std::size_t count) {
  if (count < 2 || options_.short_io_one_in == 0 || !random_.one_in(options_.short_io_one_in)) {
    return count;
  }
  return static_cast<std::size_t>(1 + random_.below(count));
}

Result<FileDescriptor> SimFiles::open(const std::string& path, bool writable) {
  if (const int error = planted_error(SimFileCall::open); error != 0) {
    return refuse("open", error, path);
  }
  const auto found = names_.find(path);
  if (found == names_.end()) {
    return refuse("open", ENOENT, path);
  }
  if (writable && found->second->read_only) {
    return refuse("open", EACCES, path);
  }
  if (open_.size() >= options_.open_files_max) {
    return refuse("open", EMFILE, path);
  }
  FileDescriptor lowest = 3;
  while (open_.contains(lowest)) {
    ++lowest;
  }
  open_[lowest] = {found->second, writable};
  return lowest;
}

void SimFiles::close(FileDescriptor file) {
  const std::size_t closed = open_.erase(file);
  WHERRY_ASSERT(closed == 1); // twice would close somebody else's, in a real process
}

Result<FileStat> SimFiles::stat(FileDescriptor file) {
  if (const int error = planted_error(SimFileCall::stat); error != 0) {
    return fail(native_error("fstat", error, "an open file"));
  }
  const auto found = open_.find(file);
  WHERRY_ASSERT(found != open_.end());
  return describe(*found->second.inode);
}

IoResult SimFiles::read(FileDescriptor file, std::uint64_t offset, std::span<std::byte> into) {
  if (const int error = planted_error(SimFileCall::read); error != 0) {
    return {0, error};
  }
  const auto found = open_.find(file);
  WHERRY_ASSERT(found != open_.end());
  const std::vector<std::byte>& content = found->second.inode->content;
  if (offset >= content.size()) {
    return {0, 0};
  }
  const auto start = static_cast<std::size_t>(offset);
  const std::size_t count = draw_count(std::min(into.size(), content.size() - start));
  std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(start), count, into.begin());
  return {count, 0};
}

IoResult SimFiles::write(FileDescriptor file, std::uint64_t offset,
                         std::span<const std::byte> from) {
  if (const int error = planted_error(SimFileCall::write); error != 0) {
    return {0, error};
  }
  const auto found = open_.find(file);
  WHERRY_ASSERT(found != open_.end());
  if (!found->second.writable) {
    return {0, EBADF};
  }
  constexpr std::uint64_t size_max = 1ULL << 32; // a world has no business with more
  if (offset > size_max || from.size() > size_max - offset) {
    return {0, EFBIG};
  }
  Inode& inode = *found->second.inode;
  const auto start = static_cast<std::size_t>(offset);
  const std::size_t count = draw_count(from.size());
  if (count == 0) {
    return {0, 0};
  }
  inode.content.resize(std::max(inode.content.size(), start + count));
  std::copy_n(from.begin(), count, inode.content.begin() + static_cast<std::ptrdiff_t>(start));
  touch(inode);
  return {count, 0};
}

Result<std::string> SimFiles::read_small(const std::string& path, std::size_t bytes_max) {
  if (const int error = planted_error(SimFileCall::read_small); error != 0) {
    return refuse("read", error, path);
  }
  const auto found = names_.find(path);
  if (found == names_.end()) {
    return refuse("open", ENOENT, path);
  }
  const std::vector<std::byte>& content = found->second->content;
  if (content.size() > bytes_max) {
    return fail(ErrorCode::resource_exhausted,
                "the file " + path + " is larger than " + std::to_string(bytes_max) + " bytes");
  }
  return std::string(reinterpret_cast<const char*>(content.data()), content.size());
}

Result<void> SimFiles::replace_small(const std::string& path, std::string_view content) {
  if (const int error = planted_error(SimFileCall::replace_small); error != 0) {
    return refuse("rename", error, path);
  }
  create(path, bytes_of(content));
  return {};
}

} // namespace wherry

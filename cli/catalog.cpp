#include "catalog.h"

#include "errors.h"
#include "text.h"
#include "units.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace wherry::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t examples_max = 3;

std::string in_quotes(const std::string& path) {
  return fmt::format("'{}'", printable(path));
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) {
    path.pop_back();
  }
  return path;
}

// What is skipped, and what it is called; nothing for a regular file or a link to one.
std::optional<std::string> skipped_kind(const fs::path& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return "dangling link";
  }
  switch (status.st_mode & S_IFMT) {
  case S_IFREG:
    return {};
  case S_IFDIR:
    return "link to a directory";
  case S_IFSOCK:
    return "socket";
  case S_IFIFO:
    return "pipe";
  default:
    return "device";
  }
}

// Every entry below a directory that is no directory itself, in the order of names.
Result<std::vector<std::string>> paths_below(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error);
  while (!error && entry != fs::recursive_directory_iterator()) {
    const bool is_directory = fs::is_directory(entry->symlink_status(error));
    if (!error && !is_directory) {
      paths.push_back(entry->path().native());
    }
    if (!error) {
      entry.increment(error);
    }
  }
  if (error) {
    return fail(system_error(ErrorCode::io_error, "readdir", error.value(), in_quotes(directory)));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

} // namespace

std::string default_name(const std::string& path) {
  std::error_code error;
  std::string last = fs::path(without_trailing_slashes(path)).filename().native();
  if (last != "." && last != ".." && !last.empty() && last != "/") {
    return last;
  }
  const std::string real = fs::canonical(path, error).filename().native();
  return error || real.empty() ? "root" : real;
}

Result<void> Catalog::add(const RangeSpec& spec) {
  if (spec.memory) {
    return add_memory(spec);
  }
  struct stat status{};
  if (::stat(spec.path.c_str(), &status) != 0) {
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    return fail(system_error(missing ? ErrorCode::invalid_argument : ErrorCode::io_error, "stat",
                             errno, in_quotes(spec.path)));
  }
  if (S_ISDIR(status.st_mode)) {
    return add_directory(spec);
  }
  return add_file(spec, spec.name.value_or(default_name(spec.path)), spec.path);
}

Result<void> Catalog::add_memory(const RangeSpec& spec) {
  return add_entry(
      {spec.name.value_or("mem"), "", spec.writable, spec.size_bytes, spec.random_seed});
}

Result<void> Catalog::add_directory(const RangeSpec& spec) {
  if (spec.create) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("{} is a directory; size= and create are for a file", in_quotes(spec.path)));
  }
  const std::string root = without_trailing_slashes(spec.path);
  auto paths = paths_below(root);
  if (!paths) {
    return fail(paths.error());
  }
  std::string prefix = spec.name.value_or("");
  if (!prefix.empty() && !prefix.ends_with('/')) {
    prefix += '/';
  }
  const std::size_t root_bytes = root == "/" ? 1 : root.size() + 1;
  for (const std::string& path : *paths) {
    if (auto added = add_file(spec, prefix + path.substr(root_bytes), path); !added) {
      return added;
    }
  }
  return {};
}

Result<void> Catalog::add_file(const RangeSpec& spec, std::string name, const std::string& path) {
  if (const auto kind = skipped_kind(path)) {
    skip(*kind, path);
    return {};
  }
  // Now, and not when a peer first asks for the bytes.
  if (::access(path.c_str(), spec.writable ? R_OK | W_OK : R_OK) != 0) {
    return fail(system_error(ErrorCode::io_error, "access", errno, in_quotes(path)));
  }
  return add_entry({std::move(name), path, spec.writable, 0, {}});
}

Result<void> Catalog::add_entry(CatalogEntry entry) {
  const std::string what = entry.path.empty() ? "memory" : in_quotes(entry.path);
  const auto [place, is_new] = paths_.emplace(entry.name, what);
  if (!is_new) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format(
            "two ranges would have the name '{}': {} and {}; give one another name with name=",
            printable(entry.name), place->second, what));
  }
  entries_.push_back(std::move(entry));
  return {};
}

void Catalog::skip(const std::string& kind, const std::string& path) {
  Skipped& skipped = skipped_[kind];
  ++skipped.count;
  if (skipped.examples.size() < examples_max) {
    skipped.examples.push_back(printable(path));
  }
}

std::string Catalog::skipped_text() const {
  std::size_t count = 0;
  std::string list;
  for (const auto& [kind, skipped] : skipped_) {
    count += skipped.count;
    const bool several = skipped.count > 1;
    const std::string kinds = several && kind == "link to a directory"
                                  ? "links to directories"
                                  : kind + (several ? "s" : "");
    list +=
        fmt::format("{}{} {} ({}{})", list.empty() ? "" : ", ", skipped.count, kinds,
                    fmt::join(skipped.examples, ", "), skipped.count > examples_max ? ", ..." : "");
  }
  return count == 0
             ? ""
             : fmt::format("left out {} {}: {}", count, count == 1 ? "entry" : "entries", list);
}

Result<void> create_file(const RangeSpec& spec) {
  struct stat status{};
  if (::stat(spec.path.c_str(), &status) == 0) {
    if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) != spec.size_bytes) {
      return fail(ErrorCode::invalid_argument, fmt::format("{} exists and is no file of {} bytes",
                                                           in_quotes(spec.path), spec.size_bytes));
    }
    return {};
  }
  const int file = ::open(spec.path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) {
    return fail(system_error(ErrorCode::io_error, "open", errno, in_quotes(spec.path)));
  }
  // Room for all of it: a peer's write must not be what finds the disk full.
  const int number = ::posix_fallocate(file, 0, static_cast<off_t>(spec.size_bytes));
  ::close(file);
  if (number != 0) {
    ::unlink(spec.path.c_str());
    return fail(system_error(
        ErrorCode::io_error, "posix_fallocate", number,
        fmt::format("no room for {} in {}", format_size(spec.size_bytes), in_quotes(spec.path))));
  }
  return {};
}

} // namespace wherry::cli

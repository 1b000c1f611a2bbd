#include "os/memory_probe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

namespace wherry {

namespace {

// The file is made as it is read; a mapping that appears or goes meanwhile is the caller's race.
Result<std::vector<char>> read_maps() {
  const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    Error error = native_error("open", errno, "/proc/self/maps");
    error.code = ErrorCode::unavailable;
    return fail(std::move(error));
  }
  std::vector<char> text;
  std::size_t size = 0;
  for (;;) {
    text.resize(size + 64 * 1024);
    const ssize_t got = ::read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      break;
    }
    size += static_cast<std::size_t>(got);
  }
  ::close(fd);
  text.resize(size);
  return text;
}

} // namespace

Result<MemoryFacts> probe_memory(std::span<const std::byte> bytes) {
  auto maps = read_maps();
  if (!maps) {
    return fail(maps.error());
  }
  auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t end = at + bytes.size();
  MemoryFacts facts{false, true, true};
  std::string_view text(maps->data(), maps->size());
  while (!text.empty() && at < end) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    // "7f0000000000-7f0000021000 rw-p ..."
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    const char* last = line.data() + line.size();
    auto parsed = std::from_chars(line.data(), last, from, 16);
    if (parsed.ec != std::errc{} || parsed.ptr == last || *parsed.ptr != '-') {
      continue;
    }
    parsed = std::from_chars(parsed.ptr + 1, last, to, 16);
    if (parsed.ec != std::errc{} || last - parsed.ptr < 3) {
      continue;
    }
    if (to <= at) {
      continue;
    }
    if (from > at) {
      break; // A hole.
    }
    facts.readable = facts.readable && parsed.ptr[1] == 'r';
    facts.writable = facts.writable && parsed.ptr[2] == 'w';
    at = to;
  }
  facts.mapped = at >= end;
  facts.readable = facts.readable && facts.mapped;
  facts.writable = facts.writable && facts.mapped;
  return facts;
}

} // namespace wherry

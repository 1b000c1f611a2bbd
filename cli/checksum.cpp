#include "checksum.h"

#include "errors.h"

#include <fmt/format.h>
#include <unistd.h>

// The whole of xxHash as static functions: nothing to link.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace wherry::cli {
namespace {

constexpr std::uint64_t buffer_bytes = 1 << 20;

} // namespace

struct Hasher::State {
  XXH3_state_t xxh3;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh3);
}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

Digest Hasher::take() {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh3));
  XXH3_128bits_reset(&state_->xxh3);
  Digest digest;
  static_assert(sizeof canonical.digest == sizeof digest.bytes);
  std::memcpy(digest.bytes.data(), canonical.digest, digest.bytes.size());
  return digest;
}

Result<Digest> file_digest(int descriptor, std::uint64_t offset, std::uint64_t length_bytes,
                           std::string_view what) {
  std::vector<std::byte> buffer(std::min(buffer_bytes, length_bytes));
  Hasher hasher;
  while (length_bytes > 0) {
    const ssize_t got =
        ::pread(descriptor, buffer.data(), std::min<std::uint64_t>(buffer.size(), length_bytes),
                static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return fail(system_error(ErrorCode::io_error, "pread", errno, what));
    }
    if (got == 0) {
      return fail(ErrorCode::io_error, fmt::format("{}: the file became shorter", what));
    }
    const auto count = static_cast<std::uint64_t>(got);
    hasher.add(std::span(buffer.data(), count));
    offset += count;
    length_bytes -= count;
  }
  return hasher.take();
}

} // namespace wherry::cli

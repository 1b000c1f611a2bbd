// --verify: the owner's checksum of its bytes against ours of ours, piece by piece, so that a large
// file does not keep either side silent for long.
#pragma once

#include "options.h"

#include <wherry/source.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace wherry::cli {

inline constexpr std::uint64_t verify_piece_bytes = std::uint64_t{256} << 20;

/// What is compared: a part of the owner's range.
struct VerifiedPart {
  const RemoteRange& range;
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;
};

/// `ours` gives our digest of a piece, by its offset in the part. `stopped` is asked before each
/// piece. Errors: io_error (they differ; says where), timed_out (the owner's answer took longer
/// than `stall_timeout`), `ours`'s, `stopped`'s, checksum's.
Result<void>
verify_part(RemoteSource& remote, const VerifiedPart& part, std::chrono::nanoseconds stall_timeout,
            const std::function<std::optional<Error>()>& stopped,
            const std::function<Result<Digest>(std::uint64_t offset, std::uint64_t length)>& ours);

} // namespace wherry::cli

#include "verify.h"

#include "errors.h"
#include "units.h"

#include <fmt/format.h>

#include <algorithm>

namespace wherry::cli {

Result<void> verify_part(RemoteSource& remote, const VerifiedPart& part,
                         std::chrono::nanoseconds stall_timeout,
                         const std::function<std::optional<Error>()>& stopped,
                         const std::function<Result<Digest>(std::uint64_t, std::uint64_t)>& ours) {
  for (std::uint64_t at = 0; at < part.length_bytes; at += verify_piece_bytes) {
    if (auto reason = stopped()) {
      return fail(std::move(*reason));
    }
    const std::uint64_t length = std::min(verify_piece_bytes, part.length_bytes - at);
    const auto theirs =
        remote.checksum(part.range, part.offset + at, length, Deadline::after(stall_timeout));
    if (!theirs) {
      return fail(theirs.error());
    }
    const auto mine = ours(at, length);
    if (!mine) {
      return fail(mine.error());
    }
    if (*mine != *theirs) {
      return fail(ErrorCode::io_error,
                  fmt::format("the {} at offset {} differ: the owner's checksum is {}, ours {}",
                              format_size(length), part.offset + at, theirs->to_string(),
                              mine->to_string()));
    }
  }
  return {};
}

} // namespace wherry::cli

// Registered ranges of memory and of files.
#pragma once

#include <wherry/capability.hpp>
#include <wherry/error.hpp>
#include <wherry/export.hpp>
#include <wherry/options.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace wherry::inline v0 {

class EngineCore;
class TransferEngine;

enum class Visibility : std::uint8_t { local_only = 0, remote_read = 1, remote_read_write = 2 };

WHERRY_API std::string_view to_string(Visibility visibility);

enum class RangeKind : std::uint8_t { host_memory = 0, file = 1 };

WHERRY_API std::string_view to_string(RangeKind kind);

struct RegisterOptions {
  Visibility visibility = Visibility::local_only;
  /// Held until the range has retired with ok. Without it the memory must outlive that moment.
  std::shared_ptr<void> keep_alive{};
};

/// A range of a file. The file is opened when it is first used, and may be closed and opened again
/// in between; it is recognised by device and inode.
struct FileOptions {
  Visibility visibility = Visibility::local_only;
  /// Whether operations may write to it. A remote_read_write range is always writable.
  bool writable = false;
  std::uint64_t offset = 0;
  /// Until the end of the file where none is given.
  std::optional<std::uint64_t> length{};
  /// automatic: posix here, and counters say so (R4). Any other engine is refused if not built.
  PathKind engine = PathKind::automatic;
};

/// What retire() did besides ending the range.
struct Retired {
  std::uint32_t sessions_cut =
      0; ///< Sessions whose lanes were ended because they did not acknowledge.
};

/// A registered range. Movable, not copyable; any thread may use it, one at a time. Dropping it
/// starts its retirement in the background and ends nothing: the memory may be reused only after
/// retire() said ok, or when keep_alive is released.
class [[nodiscard]] WHERRY_API Registration {
public:
  Registration(Registration&& other) noexcept;
  Registration& operator=(Registration&& other) noexcept;
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration();

  std::uint64_t id() const { return id_; }
  std::uint64_t length() const { return length_; }
  RangeKind kind() const { return kind_; }
  Visibility visibility() const { return visibility_; }

  /// Ends the range (R18): it leaves every source, sessions are asked to withdraw from it, access
  /// is revoked, leases are awaited, charges are returned. Blocks until `deadline` at most.
  /// Errors: busy (requests still hold the range; call again), unquiesced.
  Result<Retired> retire(Deadline deadline);

private:
  friend class TransferEngine;
  Registration(std::shared_ptr<EngineCore> core, std::uint64_t id, std::uint64_t length,
               RangeKind kind, Visibility visibility);

  std::shared_ptr<EngineCore> core_;
  std::uint64_t id_ = 0;
  std::uint64_t length_ = 0;
  RangeKind kind_ = RangeKind::host_memory;
  Visibility visibility_ = Visibility::local_only;
};

} // namespace wherry::inline v0

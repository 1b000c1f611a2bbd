// Sources: what an owner publishes, and what a consumer opens.
#pragma once

#include <wherry/error.hpp>
#include <wherry/export.hpp>
#include <wherry/options.hpp>
#include <wherry/registration.hpp>
#include <wherry/request.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wherry::inline v0 {

class EngineCore;
class TransferEngine;

/// `wherry://HOST:PORT/NAME?epoch=E`. IPv6 hosts stand in brackets; the name is percent-encoded.
struct WHERRY_API SourceReference {
  std::string host; ///< Without brackets.
  std::uint16_t port = 0;
  std::string name; ///< Raw bytes, 1 to 4095, without NUL.
  std::optional<std::uint64_t> epoch{};

  /// Errors: invalid_argument, which names the part that is wrong.
  static Result<SourceReference> parse(std::string_view text);
  std::string to_string() const;
};

/// 128 bits as the owner computed them.
struct Digest {
  std::array<std::uint8_t, 16> bytes{};
  bool operator==(const Digest&) const = default;
  /// 32 hexadecimal digits.
  WHERRY_API std::string to_string() const;
};

struct SourceOptions {
  /// HOST:PORT; port 0 takes a free one. IPv6 hosts stand in brackets.
  std::string listen = "127.0.0.1:0";
  /// HOST:PORT that the reference names; needed where `listen` is a wildcard address.
  std::string advertise{};
  /// Where this source's last epoch is kept; the new one is larger (R20). Without it, 52 random
  /// bits.
  std::string epoch_file{};
};

struct NamedRange {
  NamedRange(std::string range_name, const Registration& range)
      : name(std::move(range_name)), registration(range.id()) {}
  std::string name;
  std::uint64_t registration; ///< Registration::id()
};

/// A published source. Dropping it withdraws its ranges and closes it, in the background.
class [[nodiscard]] WHERRY_API Source {
public:
  Source(Source&& other) noexcept;
  Source& operator=(Source&& other) noexcept;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source();

  /// With the epoch, and the port that was taken.
  const SourceReference& reference() const { return reference_; }

  /// Publishes more ranges, all or none (R24).
  Result<void> add(std::span<const NamedRange> ranges);
  /// Takes one range back: ok means that no peer of this source can reach its bytes any more.
  /// Errors: not_found, busy (an operation of a peer still uses it; call again).
  Result<Retired> withdraw(std::string_view name, Deadline deadline);

private:
  friend class TransferEngine;
  Source(std::shared_ptr<EngineCore> core, std::uint64_t id, SourceReference reference);
  std::shared_ptr<EngineCore> core_;
  std::uint64_t id_ = 0;
  SourceReference reference_;
};

/// What tells one content of a file range from another (R23).
struct FileVersion {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size_bytes = 0;
  std::int64_t mtime_ns = 0;
  bool operator==(const FileVersion&) const = default;
};

/// A range as its owner described it. Values; valid as long as the source has this epoch.
struct RemoteRange {
  std::uint64_t id = 0;
  std::uint64_t length_bytes = 0;
  Visibility visibility = Visibility::remote_read;
  RangeKind kind = RangeKind::host_memory;
};

struct RangeDescription {
  std::string name; ///< Raw bytes.
  RemoteRange range;
  std::optional<FileVersion> version{}; ///< For files.
  std::vector<PathKind> routes;         ///< Offered by the owner for this range.
  std::string
      evidence; ///< How the owner reaches the bytes: "direct host memory", "staged posix file".
};

/// One page of a source's ranges.
struct Description {
  std::vector<RangeDescription> ranges;
  std::optional<std::uint64_t> next{}; ///< Give it to describe() for the next page.
};

/// Whether a path can serve this source from here, now.
struct Route {
  PathKind path{};
  Fact ready;
  std::uint32_t lanes = 0; ///< Lanes on which an exchange has succeeded.
};

enum class SourceState : std::uint8_t {
  open,
  lost,  ///< The session ended; the next submit opens it again, under the same binding (R21).
  stale, ///< The owner is another one now. For ever.
  closed,
};
WHERRY_API std::string_view to_string(SourceState state);

struct OpenOptions {
  /// For the whole of connecting, greeting and joining.
  std::chrono::nanoseconds timeout = std::chrono::seconds(5);
  /// Overrides TcpConfig::lanes for this source.
  std::optional<std::uint32_t> lanes{};
  PathKind path = PathKind::automatic;
};

/// An opened source. Dropping it closes the session once its requests have ended. Any thread may
/// use it.
class [[nodiscard]] WHERRY_API RemoteSource {
public:
  RemoteSource(RemoteSource&& other) noexcept;
  RemoteSource& operator=(RemoteSource&& other) noexcept;
  RemoteSource(const RemoteSource&) = delete;
  RemoteSource& operator=(const RemoteSource&) = delete;
  ~RemoteSource();

  /// With the epoch to which this handle is bound (R21).
  const SourceReference& reference() const { return reference_; }
  SourceState state() const;
  std::vector<Route> routes() const;

  /// One page of ranges, in the owner's order, from `page` (empty: the first). Blocks.
  Result<Description> describe(std::optional<std::uint64_t> page = {},
                               Deadline deadline = Deadline::after(std::chrono::seconds(30)));
  /// The range of that name. Blocks. Errors: not_found, and what a lost session gives.
  Result<RemoteRange> range(std::string_view name,
                            Deadline deadline = Deadline::after(std::chrono::seconds(30)));
  /// XXH3-128 of bytes in the owner's range, computed there (R23). Blocks.
  Result<Digest> checksum(const RemoteRange& range, std::uint64_t offset,
                          std::uint64_t length_bytes, Deadline deadline);

  /// Admits the whole batch or refuses it (R27); never blocks. Errors: invalid_argument (a local
  /// range, its kind or bounds), out_of_range, access_denied, not_found, range_withdrawn (a remote
  /// one), resource_exhausted, unsettled, stale_epoch, unavailable (path).
  Result<Request> submit(std::span<const Operation> operations, const SubmitOptions& options = {});
  Result<Request> submit(std::initializer_list<Operation> operations,
                         const SubmitOptions& options = {}) {
    return submit(std::span<const Operation>(operations.begin(), operations.size()), options);
  }

private:
  friend class TransferEngine;
  RemoteSource(std::shared_ptr<EngineCore> core, std::uint64_t id, SourceReference reference);
  std::shared_ptr<EngineCore> core_;
  std::uint64_t id_ = 0;
  SourceReference reference_;
};

} // namespace wherry::inline v0

// Ranges: registrations, their leases, charges and retirement. Pure state; thread-safe (one mutex,
// held for a few instructions); no I/O. Serves R13, R14, R17, R18, R27.
//
// Life of a range: live -> retiring -> revoked -> (last lease gone) -> erased, which releases the
// native owner, keep_alive and the charges, in that order (deregister, then free); the first two
// outside the mutex, because they run foreign destructors.
#pragma once

#include "base/budget.h"
#include "base/error.h"
#include "base/ids.h"

#include <wherry/options.hpp>
#include <wherry/registration.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

namespace wherry {

/// What a path made for a range (for a file: the object that opens it). Destroyed with the range.
class NativeOwner {
public:
  virtual ~NativeOwner() = default;
};

struct RangeSpec {
  RangeKind kind = RangeKind::host_memory;
  std::byte* base = nullptr; ///< Host memory; else null.
  std::uint64_t length_bytes = 0;
  Visibility visibility = Visibility::local_only;
  bool writable = true; ///< Whether bytes may be put into it at all (memory protection, file mode).
  std::shared_ptr<void> keep_alive;
  std::unique_ptr<NativeOwner> native;
};

/// Where the bytes of a leased piece are. Valid while the lease is held.
struct LeasedBytes {
  std::uint64_t range = 0; ///< Whose lease it is.
  RangeKind kind = RangeKind::host_memory;
  std::byte* base = nullptr;     ///< Of the range.
  NativeOwner* native = nullptr; ///< Of the range.
  std::uint64_t length_bytes = 0;
  bool writable = false;
};

enum class Access : std::uint8_t { read, write };

class RangeTable {
public:
  explicit RangeTable(const Limits& limits);
  ~RangeTable();
  RangeTable(const RangeTable&) = delete;
  RangeTable& operator=(const RangeTable&) = delete;

  /// Errors: invalid_argument (memory of zero bytes, null, wrap-around, remote_read_write but not
  /// writable), resource_exhausted (names the budget).
  Result<std::uint64_t> add(RangeSpec spec);

  struct Facts {
    RangeKind kind{};
    std::uint64_t length_bytes = 0;
    Visibility visibility{};
    NativeOwner* native = nullptr;
  };
  /// Of a live (not retiring) range. Errors: invalid_argument.
  Result<Facts> facts(std::uint64_t id) const;

  /// A lease for a request of this engine.
  /// Errors: invalid_argument: no such range, retiring, not writable.
  Result<LeasedBytes> lease(std::uint64_t id, Access access);
  /// A lease for a peer's operation: also while the range is retiring but not yet revoked.
  /// Visibility and bounds are the caller's to check (source/). Error: range_withdrawn.
  Result<LeasedBytes> lease_for_peer(std::uint64_t id);
  /// Each kind of lease is given back by its own call.
  void release(std::uint64_t id);
  void release_for_peer(std::uint64_t id);

  /// R18 step 1, local half: no new lease for requests. Calling it again is fine.
  /// Errors: invalid_argument (unknown or already erased).
  Result<void> begin_retire(std::uint64_t id);
  /// R18 step 2: no new lease for peers.
  void revoke(std::uint64_t id);
  /// R18 steps 3 and 4: erases a retiring, revoked range without leases. False: leases remain, or
  /// another thread is just erasing it. True, also for an id that is gone: all that it held is
  /// gone.
  bool try_erase(std::uint64_t id);
  std::uint64_t leases(std::uint64_t id) const; ///< Of both kinds.
  std::uint64_t peer_leases(std::uint64_t id) const;

  Result<void> set_budget(std::uint32_t registrations, std::uint64_t registered_bytes);

  struct Counters {
    std::uint64_t registrations = 0, registered_bytes = 0, leases = 0, refusals = 0;
  };
  Counters counters() const;

private:
  struct Range {
    RangeSpec spec;
    std::uint64_t leases = 0;
    std::uint64_t peer_leases = 0; ///< Of these.
    bool retiring = false;
    bool revoked = false;
    bool erasing = false; ///< Its specification belongs to the thread that set this.
  };

  void erase(std::uint64_t id, Range& range);

  mutable std::mutex mutex_;
  SlotMap<Range> ranges_;
  Budget registrations_;
  Budget bytes_;
  std::uint64_t leases_ = 0;
};

} // namespace wherry

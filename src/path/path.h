// The interface between the engine and the ways to move bytes. A link moves slices between two
// engines by one mechanism and ends each slice with exactly one completion; it never decides
// policy.
//
// Everything here runs on the thread that leads the shard, never blocks and never calls back.
#pragma once

#include "base/error.h"
#include "memory/range_table.h"

#include <wherry/capability.hpp>
#include <wherry/request.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace wherry {

/// Where the local bytes of a slice are: at `memory`, or in `file` at `offset` of its range.
struct LocalBytes {
  std::byte* memory = nullptr;
  NativeOwner* file = nullptr;
  std::uint64_t offset = 0;
};

/// The piece of a leased range that starts at `offset`.
inline LocalBytes local_bytes(const LeasedBytes& lease, std::uint64_t offset) {
  return lease.kind == RangeKind::host_memory ? LocalBytes{lease.base + offset, nullptr, 0}
                                              : LocalBytes{nullptr, lease.native, offset};
}

/// What a link moves. Its local bytes are leased by the caller until the slice's completion.
struct Slice {
  std::uint64_t request = 0; ///< Whom it belongs to: the unit of cancelling.
  std::uint32_t index = 0;   ///< Given back in the completion.
  OperationKind kind{};
  LocalBytes local;
  std::uint64_t remote_range = 0;
  std::uint64_t remote_offset = 0;
  std::uint32_t length_bytes = 0;
};

/// The end of a slice: nothing that the link started touches its local bytes any more.
struct Completion {
  std::uint64_t request = 0;
  std::uint32_t index = 0;
  std::uint32_t confirmed_bytes = 0;  ///< Leading bytes known to be in place.
  bool uncertain = false;             ///< WRITE: other bytes may have changed,
  bool unsettled = false;             ///< and may go on changing until the link is fenced.
  bool cancelled = false;             ///< Cut short because somebody asked for it.
  std::shared_ptr<const Error> error; ///< Why it is short; null when it is not, or was cancelled.
};

enum class LinkState : std::uint8_t {
  ready,   ///< Takes slices.
  closing, ///< Takes none; its completions still come.
  drained, ///< Nothing that it started can touch local bytes. May be destroyed.
};

class Link {
public:
  virtual ~Link() = default;

  /// Whether submit() would take a slice now.
  virtual bool has_room() const = 0;
  /// Takes a slice; has_room() holds. It ends with one completion, whatever happens.
  virtual void submit(const Slice& slice) = 0;
  /// Does a bounded amount of work. True when something moved.
  virtual bool progress(std::uint64_t now_ns) = 0;
  /// Hands completions over; returns how many.
  virtual std::size_t poll(std::span<Completion> out) = 0;
  /// Asks for an early end of the request's slices; their completions still come.
  virtual void request_cancel(std::uint64_t request, std::uint64_t now_ns) = 0;
  /// Slices of the link that touch this remote range and have not ended.
  virtual std::size_t using_range(std::uint64_t remote_range) const = 0;
  virtual void begin_close(Error why) = 0;
  virtual LinkState state() const = 0;
  /// Why it closes; meaningful unless ready.
  virtual const Error& why() const = 0;
  /// When progress() must be called even if nothing happens; never_ns if it need not.
  virtual std::uint64_t next_deadline_ns() const = 0;
};

/// How a path reaches what peers may touch: the access check of every operation (R25).
class OwnerAccess {
public:
  struct Grant {
    ErrorCode refused{}; ///< Valid when lease is 0.
    LocalBytes local;
    std::uint64_t lease = 0;
  };

  virtual ~OwnerAccess() = default;
  virtual Grant acquire(std::uint64_t range, std::uint64_t offset, std::uint64_t length_bytes,
                        Access access) = 0;
  virtual void release(std::uint64_t lease) = 0;
};

} // namespace wherry

// The ledger of one request: which slices went out, how they ended, and what may be claimed (R28 to
// R31). Pure state, no I/O, no clock, not thread-safe: the shard's leader owns it.
//
// Operations are cut into slices in order. Slices may end in any order; the window of slices that
// are out is a ring, so that the prefix is what lies before the ring's head plus the head's
// confirmed leading bytes. Facts are kept apart: outcome, prefix, failure, remote effect, drain.
#pragma once

#include "base/error.h"

#include <wherry/request.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace wherry {

/// A contiguous piece of one operation, as the planner deals it to a link.
struct SlicePlan {
  std::uint32_t index = 0; ///< The ledger's name for it, until complete().
  std::uint32_t operation = 0;
  OperationKind kind{};
  std::uint64_t local_range = 0;
  std::uint64_t local_offset = 0;
  std::uint64_t remote_range = 0;
  std::uint64_t remote_offset = 0;
  std::uint32_t length_bytes = 0;
};

/// How a slice ended at its link: its local bytes are not touched any more.
struct SliceEnd {
  /// Leading bytes that are known to be where they belong.
  std::uint32_t confirmed_bytes = 0;
  /// WRITE: bytes beyond the confirmed ones may have changed, or may still change.
  bool uncertain = false;
  /// Not confirmed whole because somebody asked for the end; no failure of its own.
  bool cancelled = false;
  /// Why it is not confirmed whole; null when it is, or when cancelled. Read before complete()
  /// returns.
  const Error* error = nullptr;
};

struct LedgerOptions {
  OnError on_error = OnError::stop;
  bool per_operation = false;
  std::uint32_t slice_bytes_max = 1 << 20;
  std::uint32_t window_max = 4096; ///< Slices out at once; a power of two.
};

class Ledger {
public:
  /// Starts over with a batch (empty ones too). Keeps its memory: the steady state allocates
  /// nothing. Operations of zero bytes are confirmed when all before them are.
  void start(std::span<const Operation> operations, const LedgerOptions& options);

  /// Whether next() would give a slice: some are left, nothing stopped, and the window has room.
  /// After a failure carry_on goes on with the next operation: the rest of one that has failed is
  /// not sent, so that less of it lies where no report can say.
  bool has_next() const;
  /// Cuts the next slice and counts it as out.
  SlicePlan next();
  /// The slice of that index has ended. Once a slice; whole, cancelled or with an error: exactly
  /// one. A slice that ends cancelled stops the request even where end() was not called: somebody
  /// asked.
  void complete(std::uint32_t index, const SliceEnd& end);

  /// Ends the outcome now as cancelled, timed_out or (the session is gone before anything could be
  /// sent) failed, unless it has ended already; no further slice goes out. True if this call ended
  /// it. A failure given counts as one of the first slice that was not sent.
  bool end(Outcome outcome, const Error* failure = nullptr);
  /// A fence has shown that uncertain bytes will not change any more (R29). A slice that ends
  /// uncertain afterwards needs another one.
  void settle();

  std::optional<Outcome> outcome() const { return outcome_; }
  /// Nothing is out, and nothing will go out any more.
  bool drained() const;
  /// Slices that are out.
  std::uint32_t out() const { return out_; }

  bool has_unsettled() const { return uncertain_slices_ > 0 && !settled_; }
  /// What a report says of it.
  bool is_settled() const { return remote_effect().settled; }
  std::span<const Operation> operations() const { return operations_; }

  /// Fills in everything but `path`; local_drain is drained or in_flight.
  /// Allocates only for failures and per_operation.
  void report(Report& out) const;

private:
  /// A slice from next() until the ring's head has passed it.
  struct Slot {
    std::uint64_t offset = 0; ///< In its operation.
    std::uint32_t operation = 0;
    std::uint32_t length_bytes = 0;
    std::uint32_t confirmed_bytes = 0; ///< Once it has ended.
    bool out = false;
  };
  /// With per_operation, one an operation.
  struct OperationProgress {
    std::uint64_t confirmed_bytes = 0;
    std::uint32_t out = 0;
    bool uncertain = false;
  };
  /// Between two bytes of the batch.
  struct Position {
    std::uint32_t operation = 0;
    std::uint64_t offset = 0;
    auto operator<=>(const Position&) const = default;
  };
  struct Effect {
    RemoteEffect effect{};
    bool settled = true;
  };

  Slot& slot(std::uint32_t index) { return ring_[index & (ring_.size() - 1)]; }
  std::uint32_t occupied() const { return tail_ - head_; }
  bool something_left() const { return !stopped_ && cut_.operation < operations_.size(); }
  void reset();
  void grow_ring();
  /// Moves a position at the end of an operation to the next operation that has bytes after it.
  void skip_ended(Position& position) const;
  void count_end(const Slot& ended, const SliceEnd& end);
  void note_unfinished(const Slot& ended, const SliceEnd& end);
  void note_failure(Position position, const Error& error);
  void advance_prefix();
  void decide_outcome();
  Effect remote_effect() const;
  bool confirmed_writes_are_told() const;
  OperationState operation_state(std::uint32_t index) const;
  std::optional<Failure> failure() const;

  std::vector<Operation> operations_;
  std::vector<OperationProgress> progress_; ///< Empty without per_operation.
  LedgerOptions options_;

  // Slices in the order of issue: [head_, tail_), counted modulo 2^32. The size is a power of two.
  std::vector<Slot> ring_;
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
  std::uint32_t out_ = 0;
  Position cut_; ///< Where the next slice begins; never at the end of an operation.
  bool stopped_ = false;

  std::optional<Outcome> outcome_;
  Position prefix_; ///< Where the prefix ends; never at the end of an operation.
  std::uint64_t prefix_bytes_ = 0;
  bool prefix_frozen_ = false; ///< A slice that is not whole bounds it.

  std::optional<Failure> failure_; ///< The first in the batch of those that slices had.
  Position failure_position_;
  std::uint32_t timed_out_operation_ = 0; ///< The first unconfirmed when the time was up.

  std::uint64_t write_bytes_ = 0;            ///< Of the batch.
  std::uint32_t writes_end_ = 0;             ///< After the last WRITE that has bytes.
  std::uint64_t writes_confirmed_bytes_ = 0; ///< Anywhere.
  std::uint64_t writes_prefix_bytes_ = 0;    ///< Those within the prefix.
  std::uint32_t writes_out_ = 0;             ///< Slices.
  std::uint64_t uncertain_slices_ = 0;
  bool settled_ = false;
};

} // namespace wherry

// The ledger of one request. Owns a copy of the batch and the ring of slices that are out; touches
// nothing else. The shard's leader runs it. Serves R28 to R31: each fact is kept by its own few
// members, and none is ever derived from another's claim.
#include "request/ledger.h"

#include "base/assert.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace wherry {
namespace {

constexpr std::size_t ring_slots_first = 16;

bool is_whole(std::uint32_t length_bytes, const SliceEnd& end) {
  return end.confirmed_bytes == length_bytes;
}

} // namespace

// --- Starting, cutting ------------------------------------------------------------------------

void Ledger::start(std::span<const Operation> operations, const LedgerOptions& options) {
  WHERRY_ASSERT(out_ == 0 && head_ == tail_);
  WHERRY_ASSERT(options.slice_bytes_max > 0);
  WHERRY_ASSERT(std::has_single_bit(options.window_max));
  WHERRY_ASSERT(operations.size() <= UINT32_MAX);
  reset();
  options_ = options;
  operations_.assign(operations.begin(), operations.end());
  progress_.assign(options.per_operation ? operations.size() : 0, {});

  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < operations_.size(); ++i) {
    const Operation& operation = operations_[i];
    // Admission has refused batches whose sum does not fit.
    WHERRY_ASSERT(!__builtin_add_overflow(bytes, operation.length_bytes, &bytes));
    if (operation.kind == OperationKind::write && operation.length_bytes > 0) {
      write_bytes_ += operation.length_bytes;
      writes_end_ = i + 1;
    }
  }
  skip_ended(cut_);
  skip_ended(prefix_);
  decide_outcome();
}

void Ledger::reset() {
  head_ = tail_ = out_ = 0;
  cut_ = prefix_ = failure_position_ = {};
  stopped_ = prefix_frozen_ = settled_ = false;
  outcome_.reset();
  failure_.reset();
  timed_out_operation_ = writes_end_ = writes_out_ = 0;
  prefix_bytes_ = write_bytes_ = writes_confirmed_bytes_ = writes_prefix_bytes_ = 0;
  uncertain_slices_ = 0;
}

void Ledger::skip_ended(Position& position) const {
  while (position.operation < operations_.size() &&
         position.offset == operations_[position.operation].length_bytes) {
    position = {position.operation + 1, 0};
  }
}

bool Ledger::has_next() const {
  return something_left() && occupied() < options_.window_max;
}

SlicePlan Ledger::next() {
  WHERRY_ASSERT(has_next());
  if (occupied() == ring_.size()) {
    grow_ring();
  }
  const Operation& operation = operations_[cut_.operation];
  const std::uint64_t left_bytes = operation.length_bytes - cut_.offset;
  const auto length_bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(left_bytes, options_.slice_bytes_max));
  const std::uint32_t index = tail_++;
  slot(index) = {cut_.offset, cut_.operation, length_bytes, 0, true};
  const SlicePlan plan = {index,
                          cut_.operation,
                          operation.kind,
                          operation.local_range,
                          operation.local_offset + cut_.offset,
                          operation.remote_range,
                          operation.remote_offset + cut_.offset,
                          length_bytes};
  ++out_;
  if (operation.kind == OperationKind::write) {
    ++writes_out_;
  }
  if (options_.per_operation) {
    ++progress_[cut_.operation].out;
  }
  cut_.offset += length_bytes;
  skip_ended(cut_);
  return plan;
}

// A slice's place depends on the size, so those in the ring move; their indexes stay.
void Ledger::grow_ring() {
  std::vector<Slot> larger(std::max(ring_slots_first, ring_.size() * 2));
  for (std::uint32_t index = head_; index != tail_; ++index) {
    larger[index & (larger.size() - 1)] = slot(index);
  }
  ring_ = std::move(larger);
}

// --- Ends -------------------------------------------------------------------------------------

void Ledger::complete(std::uint32_t index, const SliceEnd& end) {
  WHERRY_ASSERT(index - head_ < occupied());
  Slot& ended = slot(index);
  WHERRY_ASSERT(ended.out);
  WHERRY_ASSERT(end.confirmed_bytes <= ended.length_bytes);
  const bool whole = is_whole(ended.length_bytes, end);
  WHERRY_ASSERT(int{whole} + int{end.cancelled} + int{end.error != nullptr} == 1);

  ended.out = false;
  ended.confirmed_bytes = end.confirmed_bytes;
  --out_;
  count_end(ended, end);
  if (!whole) {
    note_unfinished(ended, end);
  }
  advance_prefix();
  decide_outcome();
}

void Ledger::count_end(const Slot& ended, const SliceEnd& end) {
  const bool write = operations_[ended.operation].kind == OperationKind::write;
  WHERRY_ASSERT(!end.uncertain || (write && !is_whole(ended.length_bytes, end)));
  if (write) {
    --writes_out_;
    writes_confirmed_bytes_ += end.confirmed_bytes;
  }
  if (end.uncertain) {
    ++uncertain_slices_;
    settled_ = false; // A fence before this end does not speak of it.
  }
  if (options_.per_operation) {
    OperationProgress& progress = progress_[ended.operation];
    --progress.out;
    progress.confirmed_bytes += end.confirmed_bytes;
    progress.uncertain |= end.uncertain;
  }
}

void Ledger::note_unfinished(const Slot& ended, const SliceEnd& end) {
  if (end.error != nullptr) {
    note_failure({ended.operation, ended.offset}, *end.error);
  }
  const bool stop = options_.on_error == OnError::stop;
  stopped_ |= end.cancelled || stop;
  if (!stop && cut_.operation == ended.operation) {
    cut_ = {ended.operation + 1, 0};
    skip_ended(cut_);
  }
}

void Ledger::note_failure(Position position, const Error& error) {
  if (!failure_ || position < failure_position_) {
    failure_ = Failure{error, position.operation};
    failure_position_ = position;
  }
}

void Ledger::advance_prefix() {
  for (; head_ != tail_ && !slot(head_).out; ++head_) {
    if (prefix_frozen_) {
      continue;
    }
    const Slot& head = slot(head_);
    prefix_.offset += head.confirmed_bytes;
    prefix_bytes_ += head.confirmed_bytes;
    if (operations_[head.operation].kind == OperationKind::write) {
      writes_prefix_bytes_ += head.confirmed_bytes;
    }
    prefix_frozen_ = head.confirmed_bytes < head.length_bytes;
    skip_ended(prefix_);
  }
}

void Ledger::decide_outcome() {
  if (outcome_) {
    return;
  }
  if (prefix_.operation == operations_.size()) {
    outcome_ = Outcome::completed;
  } else if (out_ == 0 && !something_left()) {
    outcome_ = failure_ ? Outcome::failed : Outcome::cancelled;
  }
}

bool Ledger::end(Outcome outcome, const Error* failure) {
  WHERRY_ASSERT(outcome != Outcome::completed);
  if (outcome_) {
    return false;
  }
  if (failure != nullptr) {
    note_failure(cut_.operation < operations_.size() ? cut_ : prefix_, *failure);
  }
  WHERRY_ASSERT(outcome != Outcome::failed || failure_);
  timed_out_operation_ = prefix_.operation;
  stopped_ = true;
  outcome_ = outcome;
  return true;
}

void Ledger::settle() {
  settled_ = true;
}

bool Ledger::drained() const {
  return out_ == 0 && outcome_.has_value();
}

// --- What may be claimed ----------------------------------------------------------------------

void Ledger::report(Report& out) const {
  out.outcome = outcome_;
  out.completed_ops = prefix_.operation;
  out.completed_bytes = prefix_bytes_;
  out.failure = failure();
  const Effect effect = remote_effect();
  out.remote_effect = effect.effect;
  out.remote_settled = effect.settled;
  out.local_drain = drained() ? LocalDrain::drained : LocalDrain::in_flight;
  out.operations.resize(progress_.size());
  for (std::uint32_t i = 0; i < progress_.size(); ++i) {
    out.operations[i] = operation_state(i);
  }
}

std::optional<Failure> Ledger::failure() const {
  if (failure_ || outcome_ != Outcome::timed_out) {
    return failure_;
  }
  Failure failure;
  failure.error.code = ErrorCode::timed_out;
  failure.error.message = "the request's timeout passed before all of it was confirmed";
  failure.operation = timed_out_operation_;
  return failure;
}

// Weakest claim first: what is known of every slice decides before what is known of their sum.
Ledger::Effect Ledger::remote_effect() const {
  if (writes_out_ > 0) {
    return {RemoteEffect::uncertain, false};
  }
  if (uncertain_slices_ > 0) {
    return {RemoteEffect::uncertain, settled_ && drained()};
  }
  const bool writes_ended = stopped_ || cut_.operation >= writes_end_;
  if (writes_confirmed_bytes_ == 0) {
    return {RemoteEffect::none, writes_ended};
  }
  if (writes_confirmed_bytes_ == write_bytes_) {
    return {RemoteEffect::applied, true};
  }
  if (confirmed_writes_are_told()) {
    return {RemoteEffect::partial, writes_ended};
  }
  // Nothing goes on changing, but the report has no words for what is in place. A prefix that can
  // still move may find them.
  return {RemoteEffect::uncertain, writes_ended && prefix_frozen_};
}

// Whether prefix and operation states say exactly which bytes the WRITEs have put in place.
bool Ledger::confirmed_writes_are_told() const {
  if (writes_confirmed_bytes_ == writes_prefix_bytes_) {
    return true;
  }
  for (std::uint32_t i = prefix_.operation; i < progress_.size(); ++i) {
    const Operation& operation = operations_[i];
    const std::uint64_t told_bytes = i == prefix_.operation ? prefix_.offset : 0;
    const std::uint64_t confirmed_bytes = progress_[i].confirmed_bytes;
    if (operation.kind == OperationKind::write && confirmed_bytes != told_bytes &&
        confirmed_bytes != operation.length_bytes) {
      return false;
    }
  }
  return !progress_.empty();
}

OperationState Ledger::operation_state(std::uint32_t index) const {
  const bool issued = Position{index, 0} < cut_;
  if (index < prefix_.operation) {
    return OperationState::confirmed;
  }
  if (operations_[index].length_bytes == 0) {
    // Nothing to send: confirmed in its turn, or where the prefix cannot reach it any more.
    const bool tried = options_.on_error == OnError::carry_on && prefix_frozen_ && issued;
    return tried ? OperationState::confirmed : OperationState::not_started;
  }
  if (!issued) {
    return OperationState::not_started;
  }
  const OperationProgress& progress = progress_[index];
  if (progress.confirmed_bytes == operations_[index].length_bytes) {
    return OperationState::confirmed;
  }
  const bool being_cut = something_left() && cut_.operation == index;
  if (progress.uncertain || progress.out > 0 || being_cut) {
    return OperationState::uncertain;
  }
  return OperationState::failed;
}

} // namespace wherry

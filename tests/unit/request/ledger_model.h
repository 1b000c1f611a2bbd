// A slow and simple ledger: a letter for every byte of the batch. Nothing is counted or kept; each
// claim is worked out anew from the letters, by the words of the contract (R28 to R31). The real
// ledger must claim exactly the same at every moment.
#pragma once

#include "request/ledger.h"

#include <wherry/request.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace wherry::test {

/// What is known of one byte.
enum class Byte : char {
  untouched = 'u', ///< Of no slice yet.
  out = 'o',       ///< Of a slice that is out.
  confirmed = 'c',
  ended = 'e',     ///< Its slice has ended without it; for a WRITE: it did not change.
  uncertain = '?', ///< Its slice has ended without it; it may have changed.
};

class LedgerModel {
public:
  LedgerModel(std::vector<Operation> operations, const LedgerOptions& options);

  bool something_left() const { return !stopped_ && next_operation() < operations_.size(); }
  std::uint32_t out() const { return static_cast<std::uint32_t>(out_.size()); }
  bool drained() const { return out_.empty() && outcome_.has_value(); }
  std::optional<Outcome> outcome() const { return outcome_; }

  /// Empty when the plan is the slice that has to come; else what is wrong with it.
  std::string next(const SlicePlan& plan);
  void complete(std::uint32_t index, const SliceEnd& end);
  bool end(Outcome outcome, const Error* failure);
  void settle() { settled_ = true; }

  /// Empty when the ledger claims what is true; else the first claim that differs.
  std::string difference(const Ledger& ledger) const;

private:
  std::size_t next_operation() const;
  bool has(std::size_t operation, Byte byte) const;
  bool is_all(std::size_t operation, Byte byte) const;
  bool has_failed(std::size_t i) const { return has(i, Byte::ended) || has(i, Byte::uncertain); }
  std::uint64_t leading(std::size_t operation) const;
  std::uint64_t first_untouched(std::size_t operation) const;
  bool is_write(std::size_t i) const { return operations_[i].kind == OperationKind::write; }
  bool anything_has(Byte byte) const;
  bool prefix_ended() const;
  void decide_outcome();
  Report expected() const;
  OperationState state(std::size_t operation, std::uint64_t completed_ops) const;
  RemoteEffect effect(const Report& report) const;
  bool report_tells_the_writes(const Report& report) const;

  std::vector<Operation> operations_;
  LedgerOptions options_;
  std::vector<std::vector<Byte>> bytes_;
  std::map<std::uint32_t, SlicePlan> out_;
  std::map<std::tuple<std::uint64_t, std::uint64_t>, Error> failures_; ///< By operation and offset.
  std::optional<Outcome> outcome_;
  std::uint64_t timed_out_operation_ = 0;
  bool stopped_ = false;
  bool settled_ = false;
};

inline LedgerModel::LedgerModel(std::vector<Operation> operations, const LedgerOptions& options)
    : operations_(std::move(operations)), options_(options) {
  for (const Operation& operation : operations_) {
    bytes_.emplace_back(operation.length_bytes, Byte::untouched);
  }
  decide_outcome();
}

inline bool LedgerModel::has(std::size_t operation, Byte byte) const {
  for (const Byte b : bytes_[operation]) {
    if (b == byte) {
      return true;
    }
  }
  return false;
}

inline bool LedgerModel::is_all(std::size_t operation, Byte byte) const {
  for (const Byte b : bytes_[operation]) {
    if (b != byte) {
      return false;
    }
  }
  return true;
}

inline bool LedgerModel::anything_has(Byte byte) const {
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (has(i, byte)) {
      return true;
    }
  }
  return false;
}

// The next slice is of the first operation that has bytes left; what has failed is not gone on
// with.
inline std::size_t LedgerModel::next_operation() const {
  std::size_t i = 0;
  while (i < operations_.size() &&
         (!has(i, Byte::untouched) || (options_.on_error == OnError::carry_on && has_failed(i)))) {
    ++i;
  }
  return i;
}

inline std::uint64_t LedgerModel::leading(std::size_t operation) const {
  std::uint64_t bytes = 0;
  while (bytes < bytes_[operation].size() && bytes_[operation][bytes] == Byte::confirmed) {
    ++bytes;
  }
  return bytes;
}

inline std::uint64_t LedgerModel::first_untouched(std::size_t operation) const {
  std::uint64_t offset = 0;
  while (bytes_[operation][offset] != Byte::untouched) {
    ++offset;
  }
  return offset;
}

inline std::string LedgerModel::next(const SlicePlan& plan) {
  const std::size_t i = next_operation();
  if (stopped_ || i != plan.operation) {
    return "a slice of operation " + std::to_string(plan.operation);
  }
  const std::uint64_t offset = first_untouched(i);
  const Operation& operation = operations_[i];
  const std::uint64_t length =
      std::min<std::uint64_t>(options_.slice_bytes_max, operation.length_bytes - offset);
  if (plan.length_bytes != length || plan.kind != operation.kind ||
      plan.local_range != operation.local_range || plan.remote_range != operation.remote_range ||
      plan.local_offset != operation.local_offset + offset ||
      plan.remote_offset != operation.remote_offset + offset || out_.contains(plan.index)) {
    return "a slice that does not belong at byte " + std::to_string(offset);
  }
  for (std::uint64_t k = 0; k < length; ++k) {
    bytes_[i][offset + k] = Byte::out;
  }
  out_[plan.index] = plan;
  return {};
}

inline void LedgerModel::complete(std::uint32_t index, const SliceEnd& end) {
  const SlicePlan plan = out_.at(index);
  out_.erase(index);
  const std::uint64_t offset = plan.local_offset - operations_[plan.operation].local_offset;
  for (std::uint64_t k = 0; k < plan.length_bytes; ++k) {
    bytes_[plan.operation][offset + k] = k < end.confirmed_bytes ? Byte::confirmed
                                         : end.uncertain         ? Byte::uncertain
                                                                 : Byte::ended;
  }
  if (end.error != nullptr) {
    failures_.try_emplace({plan.operation, offset}, *end.error);
  }
  const bool whole = end.confirmed_bytes == plan.length_bytes;
  stopped_ |= end.cancelled || (!whole && options_.on_error == OnError::stop);
  settled_ &= !end.uncertain;
  decide_outcome();
}

inline bool LedgerModel::end(Outcome outcome, const Error* failure) {
  if (outcome_) {
    return false;
  }
  const Report now = expected();
  timed_out_operation_ = now.completed_ops;
  if (failure != nullptr) {
    const bool all_sent = next_operation() == operations_.size();
    const std::uint64_t operation = all_sent ? now.completed_ops : next_operation();
    const std::uint64_t offset = all_sent ? leading(operation) : first_untouched(operation);
    failures_.try_emplace({operation, offset}, *failure);
  }
  stopped_ = true;
  outcome_ = outcome;
  return true;
}

inline void LedgerModel::decide_outcome() {
  if (outcome_) {
    return;
  }
  bool all = true;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    all &= is_all(i, Byte::confirmed);
  }
  if (all) {
    outcome_ = Outcome::completed;
  } else if (out_.empty() && !something_left()) {
    outcome_ = failures_.empty() ? Outcome::cancelled : Outcome::failed;
  }
}

// The prefix is the leading run of confirmed bytes, and the operations that lie in it.
inline Report LedgerModel::expected() const {
  Report report;
  report.outcome = outcome_;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    report.completed_bytes += leading(i);
    if (leading(i) < bytes_[i].size()) {
      break;
    }
    ++report.completed_ops;
  }
  if (!failures_.empty()) {
    const auto& [place, error] = *failures_.begin();
    report.failure = Failure{error, std::get<0>(place)};
  } else if (outcome_ == Outcome::timed_out) {
    report.failure.emplace();
    report.failure->error.code = ErrorCode::timed_out;
    report.failure->operation = timed_out_operation_;
  }
  report.local_drain = drained() ? LocalDrain::drained : LocalDrain::in_flight;
  for (std::size_t i = 0; options_.per_operation && i < operations_.size(); ++i) {
    report.operations.push_back(state(i, report.completed_ops));
  }
  report.remote_effect = effect(report);
  return report;
}

// Whether the byte behind the prefix belongs to a slice that has ended without it.
inline bool LedgerModel::prefix_ended() const {
  for (const auto& operation : bytes_) {
    for (const Byte byte : operation) {
      if (byte != Byte::confirmed) {
        return byte == Byte::ended || byte == Byte::uncertain;
      }
    }
  }
  return false;
}

inline OperationState LedgerModel::state(std::size_t i, std::uint64_t completed_ops) const {
  if (operations_[i].length_bytes == 0) {
    // Tried as soon as no operation before it has anything left to send.
    bool tried = options_.on_error == OnError::carry_on && prefix_ended();
    for (std::size_t k = 0; k < i; ++k) {
      tried &= !has(k, Byte::untouched) || has_failed(k);
    }
    return i < completed_ops || tried ? OperationState::confirmed : OperationState::not_started;
  }
  if (is_all(i, Byte::confirmed)) {
    return OperationState::confirmed;
  }
  if (is_all(i, Byte::untouched)) {
    return OperationState::not_started;
  }
  const bool goes_on = something_left() && next_operation() == i;
  return has(i, Byte::uncertain) || has(i, Byte::out) || goes_on ? OperationState::uncertain
                                                                 : OperationState::failed;
}

inline RemoteEffect LedgerModel::effect(const Report& report) const {
  bool any = false, all = true, loose = false;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (is_write(i)) {
      any |= has(i, Byte::confirmed);
      all &= is_all(i, Byte::confirmed);
      loose |= has(i, Byte::out) || has(i, Byte::uncertain);
    }
  }
  if (loose) {
    return RemoteEffect::uncertain;
  }
  if (!any) {
    return RemoteEffect::none;
  }
  if (all) {
    return RemoteEffect::applied;
  }
  return report_tells_the_writes(report) ? RemoteEffect::partial : RemoteEffect::uncertain;
}

// What somebody who has only the report would say of each byte, against what is.
inline bool LedgerModel::report_tells_the_writes(const Report& report) const {
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const bool told_whole =
        options_.per_operation && report.operations[i] == OperationState::confirmed;
    for (const Byte byte : bytes_[i]) {
      const bool told = told_whole || before < report.completed_bytes;
      if (is_write(i) && told != (byte == Byte::confirmed)) {
        return false;
      }
      ++before;
    }
  }
  return true;
}

inline std::string LedgerModel::difference(const Ledger& ledger) const {
  const Report want = expected();
  Report got;
  ledger.report(got);
  if (got.outcome != want.outcome || ledger.outcome() != want.outcome) {
    return "outcome";
  }
  if (got.completed_ops != want.completed_ops) {
    return "completed_ops " + std::to_string(got.completed_ops);
  }
  if (got.completed_bytes != want.completed_bytes) {
    return "completed_bytes " + std::to_string(got.completed_bytes);
  }
  if (got.failure.has_value() != want.failure.has_value()) {
    return "failure";
  }
  if (got.failure && (got.failure->operation != want.failure->operation ||
                      got.failure->error.code != want.failure->error.code ||
                      got.failure->error.native_number != want.failure->error.native_number)) {
    return "failure of operation " + std::to_string(got.failure->operation);
  }
  if (got.remote_effect != want.remote_effect) {
    return "remote_effect " + std::string(to_string(got.remote_effect));
  }
  if (got.local_drain != want.local_drain || ledger.drained() != drained()) {
    return "local_drain";
  }
  if (ledger.out() != out()) {
    return "out";
  }
  if (got.operations != want.operations) {
    return "operations";
  }
  if (ledger.has_next() && !something_left()) {
    return "has_next";
  }
  if (ledger.has_unsettled() != (anything_has(Byte::uncertain) && !settled_)) {
    return "has_unsettled";
  }
  if (got.remote_settled && ledger.has_unsettled()) {
    return "remote_settled before the fence";
  }
  // Drained, every effect is final but one: bytes that may go on changing until a fence.
  if (drained() && got.remote_settled != !ledger.has_unsettled()) {
    return "remote_settled";
  }
  return {};
}

/// The ledger and its model, told the same. Copies are independent: a walk can branch.
class Twin {
public:
  Twin(const std::vector<Operation>& operations, const LedgerOptions& options)
      : model_(operations, options) {
    ledger_.start(operations, options);
    check();
  }

  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }
  /// The first difference of all; empty while there is none.
  const std::string& fault() const { return fault_; }

  SlicePlan next() {
    const SlicePlan plan = ledger_.next();
    note(model_.next(plan));
    check();
    return plan;
  }
  void complete(std::uint32_t index, const SliceEnd& end) { complete(index, end, end); }
  /// A link that lies: the model is told what really happened.
  void complete(std::uint32_t index, const SliceEnd& told, const SliceEnd& truth) {
    ledger_.complete(index, told);
    model_.complete(index, truth);
    check();
  }
  void end(Outcome outcome, const Error* failure = nullptr) {
    if (ledger_.end(outcome, failure) != model_.end(outcome, failure)) {
      note("the answer of end");
    }
    check();
  }
  void settle() {
    ledger_.settle();
    model_.settle();
    check();
  }

private:
  void note(const std::string& what) {
    if (fault_.empty()) {
      fault_ = what;
    }
  }
  void check() {
    note(model_.difference(ledger_));
    Report now;
    ledger_.report(now);
    if (last_.outcome && now.outcome != last_.outcome) {
      note("a second outcome");
    }
    if (now.completed_bytes < last_.completed_bytes || now.completed_ops < last_.completed_ops) {
      note("a prefix that moved back");
    }
    if (effect_was_final_ && (!now.remote_settled || now.remote_effect != last_.remote_effect)) {
      note("an effect that changed after it was final");
    }
    effect_was_final_ = now.remote_settled;
    last_ = now;
  }

  Ledger ledger_;
  LedgerModel model_;
  Report last_;
  bool effect_was_final_ = false;
  std::string fault_;
};

} // namespace wherry::test

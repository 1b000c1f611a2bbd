// The ledger by example: the edges of each rule, in numbers that can be followed by hand. What
// holds for all orders and ends is proven in ledger_model_test.cpp.
#include "request/ledger.h"
#include "support/allocations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

namespace wherry {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto rd = OperationKind::read;
constexpr auto wr = OperationKind::write;
using State = OperationState;

Operation operation(OperationKind kind, std::uint64_t length_bytes) {
  return {kind, 1, 100, 2, 200, length_bytes};
}

SliceEnd whole(const SlicePlan& plan) {
  return {plan.length_bytes, false, false, nullptr};
}

Error lost(std::string message = "connection reset") {
  Error error;
  error.code = ErrorCode::connection_lost;
  error.message = std::move(message);
  return error;
}

class LedgerTest : public ::testing::Test {
protected:
  /// Slices of 4 bytes, a window of 8, with operation states.
  static LedgerOptions options(OnError on_error = OnError::stop) { return {on_error, true, 4, 8}; }

  void start(std::vector<Operation> operations, LedgerOptions with = options()) {
    ledger_.start(operations, with);
  }
  void complete(const SlicePlan& plan) { ledger_.complete(plan.index, whole(plan)); }
  void fail(const SlicePlan& plan, std::uint32_t confirmed_bytes, const Error& error = lost()) {
    ledger_.complete(plan.index, {confirmed_bytes, false, false, &error});
  }
  void fail_uncertain(const SlicePlan& plan, std::uint32_t confirmed_bytes) {
    const Error error = lost();
    ledger_.complete(plan.index, {confirmed_bytes, true, false, &error});
  }
  void cancel(const SlicePlan& plan, std::uint32_t confirmed_bytes = 0) {
    ledger_.complete(plan.index, {confirmed_bytes, false, true, nullptr});
  }
  Report report() const {
    Report out;
    ledger_.report(out);
    return out;
  }

  Ledger ledger_;
};

using LedgerDeathTest = LedgerTest;

// --- Cutting ----------------------------------------------------------------------------------

TEST_F(LedgerTest, R27_slices_are_cut_in_order_and_the_last_of_an_operation_is_the_rest) {
  start({{rd, 7, 1000, 8, 5000, 10}, {wr, 9, 0, 6, 64, 4}});
  const SlicePlan a = ledger_.next(), b = ledger_.next(), c = ledger_.next(), d = ledger_.next();
  EXPECT_FALSE(ledger_.has_next());

  EXPECT_EQ(a.operation, 0U);
  EXPECT_EQ(a.kind, rd);
  EXPECT_EQ(a.local_range, 7U);
  EXPECT_EQ(a.local_offset, 1000U);
  EXPECT_EQ(a.remote_range, 8U);
  EXPECT_EQ(a.remote_offset, 5000U);
  EXPECT_EQ(a.length_bytes, 4U);
  EXPECT_EQ(b.local_offset, 1004U);
  EXPECT_EQ(b.remote_offset, 5004U);
  EXPECT_EQ(b.length_bytes, 4U);
  EXPECT_EQ(c.local_offset, 1008U);
  EXPECT_EQ(c.length_bytes, 2U);
  EXPECT_EQ(d.operation, 1U);
  EXPECT_EQ(d.kind, wr);
  EXPECT_EQ(d.local_range, 9U);
  EXPECT_EQ(d.remote_offset, 64U);
  EXPECT_EQ(ledger_.out(), 4U);
}

TEST_F(LedgerTest, R27_an_operation_over_4_GiB_is_cut_without_wrapping_around) {
  const std::uint64_t length_bytes = (1ULL << 33) + 1;
  start({operation(rd, length_bytes)}, {OnError::stop, false, 1U << 31, 8});
  std::uint64_t sum = 0;
  while (ledger_.has_next()) {
    const SlicePlan plan = ledger_.next();
    EXPECT_EQ(plan.local_offset, 100 + sum);
    sum += plan.length_bytes;
    complete(plan);
  }
  EXPECT_EQ(sum, length_bytes);
  EXPECT_EQ(report().completed_bytes, length_bytes);
  EXPECT_TRUE(report().completed());
}

TEST_F(LedgerTest, R27_the_window_bounds_what_lies_between_the_first_slice_out_and_the_next) {
  start({operation(rd, 400)}, {OnError::stop, false, 4, 2});
  const SlicePlan first = ledger_.next();
  const SlicePlan second = ledger_.next();
  EXPECT_FALSE(ledger_.has_next());
  complete(second);
  EXPECT_FALSE(ledger_.has_next()); // The first still holds the ring's head.
  complete(first);
  EXPECT_TRUE(ledger_.has_next());
}

TEST_F(LedgerTest, R27_the_ring_grows_in_the_middle_of_a_batch_and_keeps_what_is_out) {
  start({operation(rd, 400)}, {OnError::stop, false, 4, 64});
  complete(ledger_.next());
  std::vector<SlicePlan> out;
  while (ledger_.has_next()) {
    out.push_back(ledger_.next());
  }
  EXPECT_EQ(out.size(), 64U);
  for (auto plan = out.rbegin(); plan != out.rend(); ++plan) {
    EXPECT_EQ(report().completed_bytes, 4U);
    complete(*plan);
  }
  EXPECT_EQ(report().completed_bytes, 4U + 256U);
}

// --- The prefix -------------------------------------------------------------------------------

TEST_F(LedgerTest, R28_an_empty_batch_is_complete_and_drained_at_once) {
  start({});
  EXPECT_FALSE(ledger_.has_next());
  EXPECT_TRUE(ledger_.drained());
  EXPECT_TRUE(report().completed());
  EXPECT_EQ(report().completed_ops, 0U);
  EXPECT_EQ(report().remote_effect, RemoteEffect::none);
  EXPECT_TRUE(report().remote_settled);
}

TEST_F(LedgerTest, R28_operations_of_zero_bytes_alone_are_complete_at_once) {
  start({operation(rd, 0), operation(wr, 0)});
  EXPECT_FALSE(ledger_.has_next());
  EXPECT_TRUE(report().completed());
  EXPECT_EQ(report().completed_ops, 2U);
  EXPECT_EQ(report().remote_effect, RemoteEffect::none);
  EXPECT_THAT(report().operations, ElementsAre(State::confirmed, State::confirmed));
}

TEST_F(LedgerTest, R28_an_operation_of_zero_bytes_is_confirmed_when_all_before_it_are) {
  start({operation(rd, 0), operation(rd, 4), operation(rd, 0), operation(rd, 4)});
  EXPECT_EQ(report().completed_ops, 1U);
  EXPECT_THAT(report().operations, ElementsAre(State::confirmed, State::not_started,
                                               State::not_started, State::not_started));
  const SlicePlan a = ledger_.next();
  const SlicePlan b = ledger_.next();
  EXPECT_EQ(b.operation, 3U);
  complete(b);
  EXPECT_EQ(report().completed_ops, 1U);
  EXPECT_EQ(report().operations[2], State::not_started);
  complete(a);
  EXPECT_EQ(report().completed_ops, 4U);
}

TEST_F(LedgerTest, R28_prefix_waits_for_the_first_slice_however_many_others_have_ended) {
  start({operation(rd, 4), operation(rd, 8)});
  const SlicePlan a = ledger_.next(), b = ledger_.next(), c = ledger_.next();
  complete(c);
  complete(b);
  EXPECT_EQ(report().completed_bytes, 0U);
  EXPECT_EQ(report().completed_ops, 0U);
  EXPECT_THAT(report().operations, ElementsAre(State::uncertain, State::confirmed));
  complete(a);
  EXPECT_EQ(report().completed_bytes, 12U);
  EXPECT_EQ(report().completed_ops, 2U);
}

TEST_F(LedgerTest, R28_prefix_counts_the_leading_bytes_of_the_slice_that_failed_and_stays_there) {
  start({operation(rd, 4), operation(rd, 8)});
  const SlicePlan a = ledger_.next(), b = ledger_.next(), c = ledger_.next();
  complete(a);
  fail(b, 3);
  EXPECT_EQ(report().completed_bytes, 7U);
  EXPECT_EQ(report().completed_ops, 1U);
  complete(c);
  EXPECT_EQ(report().completed_bytes, 7U);
  EXPECT_EQ(report().completed_ops, 1U);
  EXPECT_EQ(report().outcome, Outcome::failed);
}

TEST_F(LedgerTest, R28_prefix_of_a_failed_slice_waits_for_those_before_it) {
  start({operation(rd, 8)});
  const SlicePlan a = ledger_.next(), b = ledger_.next();
  fail(b, 3);
  EXPECT_EQ(report().completed_bytes, 0U);
  complete(a);
  EXPECT_EQ(report().completed_bytes, 7U);
  EXPECT_EQ(report().completed_ops, 0U);
}

// --- Failures ---------------------------------------------------------------------------------

TEST_F(LedgerTest, R28_stop_sends_nothing_more_and_fails_once_nothing_is_out) {
  start({operation(rd, 4), operation(rd, 4), operation(rd, 4)});
  const SlicePlan a = ledger_.next(), b = ledger_.next();
  fail(a, 0);
  EXPECT_FALSE(ledger_.has_next());
  EXPECT_FALSE(ledger_.outcome());
  EXPECT_FALSE(ledger_.drained());
  EXPECT_TRUE(report().failure.has_value());
  complete(b);
  EXPECT_EQ(ledger_.outcome(), Outcome::failed);
  EXPECT_TRUE(ledger_.drained());
  EXPECT_THAT(report().operations,
              ElementsAre(State::failed, State::confirmed, State::not_started));
}

TEST_F(LedgerTest, R28_carry_on_tries_all_operations_but_not_the_rest_of_the_failed_one) {
  start({operation(rd, 40), operation(rd, 0), operation(rd, 4)}, options(OnError::carry_on));
  fail(ledger_.next(), 0);
  EXPECT_FALSE(ledger_.outcome());
  ASSERT_TRUE(ledger_.has_next());
  const SlicePlan plan = ledger_.next();
  EXPECT_EQ(plan.operation, 2U);
  EXPECT_FALSE(ledger_.has_next());
  complete(plan);
  EXPECT_EQ(report().outcome, Outcome::failed);
  EXPECT_EQ(report().completed_ops, 0U);
  EXPECT_THAT(report().operations, ElementsAre(State::failed, State::confirmed, State::confirmed));
}

TEST_F(LedgerTest, R28_stop_does_not_confirm_an_operation_of_zero_bytes_behind_the_failure) {
  start({operation(rd, 4), operation(rd, 0)});
  fail(ledger_.next(), 0);
  EXPECT_THAT(report().operations, ElementsAre(State::failed, State::not_started));
}

TEST_F(LedgerTest, R28_the_failure_is_the_first_in_the_batch_not_the_first_in_time) {
  start({operation(rd, 8), operation(rd, 4)}, options(OnError::carry_on));
  const SlicePlan a = ledger_.next(), b = ledger_.next(), c = ledger_.next();
  fail(c, 0, lost("third"));
  EXPECT_EQ(report().failure->operation, 1U);
  EXPECT_EQ(report().failure->error.message, "third");
  fail(a, 0, lost("first"));
  EXPECT_EQ(report().failure->operation, 0U);
  EXPECT_EQ(report().failure->error.message, "first");
  fail(b, 0, lost("second"));
  EXPECT_EQ(report().failure->error.message, "first");
}

TEST_F(LedgerTest, R28_the_failure_is_a_copy_with_its_evidence) {
  start({operation(rd, 4)});
  {
    Error error = lost();
    error.native_call = "recvmsg";
    error.native_number = 104;
    error.path = "tcp lane 1";
    fail(ledger_.next(), 0, error);
    error = {};
  }
  ASSERT_TRUE(report().failure);
  EXPECT_EQ(report().failure->error.code, ErrorCode::connection_lost);
  EXPECT_EQ(report().failure->error.native_call, "recvmsg");
  EXPECT_EQ(report().failure->error.native_number, 104);
  EXPECT_EQ(report().failure->error.path, "tcp lane 1");
}

// --- Outcomes that come from outside ----------------------------------------------------------

TEST_F(LedgerTest, R30_cancelling_ends_the_outcome_and_not_the_drain) {
  start({operation(rd, 4), operation(rd, 4)});
  const SlicePlan a = ledger_.next();
  EXPECT_TRUE(ledger_.end(Outcome::cancelled));
  EXPECT_EQ(report().outcome, Outcome::cancelled);
  EXPECT_EQ(report().local_drain, LocalDrain::in_flight);
  EXPECT_FALSE(ledger_.has_next());
  cancel(a, 2);
  EXPECT_EQ(report().local_drain, LocalDrain::drained);
  EXPECT_EQ(report().completed_bytes, 2U); // Bytes already moved stay.
  EXPECT_FALSE(report().failure);
}

TEST_F(LedgerTest, R31_a_request_has_one_outcome) {
  start({operation(rd, 4)});
  const SlicePlan a = ledger_.next();
  EXPECT_TRUE(ledger_.end(Outcome::timed_out));
  EXPECT_FALSE(ledger_.end(Outcome::cancelled));
  complete(a);
  EXPECT_EQ(report().outcome, Outcome::timed_out);
  EXPECT_EQ(report().completed_ops, 1U); // The facts go on: all of it arrived after all.
  EXPECT_TRUE(ledger_.drained());
}

TEST_F(LedgerTest, R31_an_outcome_that_was_reached_is_not_ended_again) {
  start({operation(rd, 4)});
  complete(ledger_.next());
  EXPECT_FALSE(ledger_.end(Outcome::cancelled));
  EXPECT_TRUE(report().completed());
}

TEST_F(LedgerTest, R31_a_timeout_is_a_failure_that_names_the_first_operation_not_confirmed) {
  start({operation(rd, 4), operation(rd, 4)});
  complete(ledger_.next());
  const SlicePlan b = ledger_.next();
  ledger_.end(Outcome::timed_out);
  complete(b);
  ASSERT_TRUE(report().failure);
  EXPECT_EQ(report().failure->error.code, ErrorCode::timed_out);
  EXPECT_THAT(report().failure->error.message, HasSubstr("timeout"));
  EXPECT_EQ(report().failure->operation, 1U);
}

TEST_F(LedgerTest, R31_a_failure_that_a_slice_had_comes_before_the_timeout) {
  start({operation(rd, 4), operation(rd, 4)});
  const SlicePlan a = ledger_.next();
  ledger_.end(Outcome::timed_out);
  fail(a, 0);
  EXPECT_EQ(report().outcome, Outcome::timed_out);
  EXPECT_EQ(report().failure->error.code, ErrorCode::connection_lost);
}

TEST_F(LedgerTest, R28_a_session_that_is_gone_fails_what_could_not_be_sent) {
  start({operation(rd, 0), operation(wr, 4)});
  const Error error = lost("the session is gone");
  EXPECT_TRUE(ledger_.end(Outcome::failed, &error));
  EXPECT_EQ(report().outcome, Outcome::failed);
  EXPECT_TRUE(ledger_.drained());
  EXPECT_EQ(report().failure->operation, 1U);
  EXPECT_EQ(report().failure->error.message, "the session is gone");
  EXPECT_EQ(report().remote_effect, RemoteEffect::none);
  EXPECT_TRUE(report().remote_settled);
  EXPECT_THAT(report().operations, ElementsAre(State::confirmed, State::not_started));
}

TEST_F(LedgerTest, R31_a_slice_that_was_cancelled_ends_the_request_even_if_nobody_said_so_here) {
  start({operation(rd, 4), operation(rd, 4)}, options(OnError::carry_on));
  cancel(ledger_.next());
  EXPECT_EQ(report().outcome, Outcome::cancelled);
  EXPECT_FALSE(ledger_.has_next());
}

// --- The remote effect ------------------------------------------------------------------------

TEST_F(LedgerTest, R29_effect_of_reads_is_none_and_final) {
  start({operation(rd, 4)});
  const SlicePlan a = ledger_.next();
  EXPECT_EQ(report().remote_effect, RemoteEffect::none);
  EXPECT_TRUE(report().remote_settled);
  fail(a, 0);
  EXPECT_EQ(report().remote_effect, RemoteEffect::none);
}

TEST_F(LedgerTest, R29_effect_is_uncertain_while_a_write_is_out) {
  start({operation(wr, 4)});
  EXPECT_EQ(report().remote_effect, RemoteEffect::none);
  EXPECT_FALSE(report().remote_settled); // It will be sent.
  const SlicePlan a = ledger_.next();
  EXPECT_EQ(report().remote_effect, RemoteEffect::uncertain);
  EXPECT_FALSE(report().remote_settled);
  complete(a);
  EXPECT_EQ(report().remote_effect, RemoteEffect::applied);
  EXPECT_TRUE(report().remote_settled);
}

TEST_F(LedgerTest, R29_effect_of_refused_writes_is_none) {
  start({operation(wr, 4)});
  fail(ledger_.next(), 0);
  EXPECT_EQ(report().remote_effect, RemoteEffect::none);
  EXPECT_TRUE(report().remote_settled);
  EXPECT_THAT(report().operations, ElementsAre(State::failed));
}

TEST_F(LedgerTest, R29_effect_is_applied_when_all_writes_are_whatever_the_reads_do) {
  start({operation(rd, 4), operation(wr, 4)}, options(OnError::carry_on));
  fail(ledger_.next(), 0);
  complete(ledger_.next());
  EXPECT_EQ(report().outcome, Outcome::failed);
  EXPECT_EQ(report().remote_effect, RemoteEffect::applied);
  EXPECT_TRUE(report().remote_settled);
}

TEST_F(LedgerTest, R29_effect_is_partial_when_the_prefix_says_which_bytes) {
  start({operation(wr, 8)}, {OnError::stop, false, 4, 8});
  complete(ledger_.next());
  fail(ledger_.next(), 1);
  EXPECT_EQ(report().completed_bytes, 5U);
  EXPECT_EQ(report().remote_effect, RemoteEffect::partial);
  EXPECT_TRUE(report().remote_settled);
}

TEST_F(LedgerTest, R29_effect_beyond_the_prefix_is_partial_only_with_operation_states) {
  for (const bool per_operation : {false, true}) {
    start({operation(wr, 4), operation(wr, 4)}, {OnError::carry_on, per_operation, 4, 8});
    fail(ledger_.next(), 0);
    complete(ledger_.next());
    EXPECT_EQ(report().completed_bytes, 0U);
    EXPECT_EQ(report().remote_effect,
              per_operation ? RemoteEffect::partial : RemoteEffect::uncertain);
    EXPECT_TRUE(report().remote_settled);
    EXPECT_FALSE(ledger_.has_unsettled());
  }
}

TEST_F(LedgerTest, R29_effect_that_states_cannot_tell_is_uncertain_and_settled) {
  start({operation(wr, 4), operation(wr, 8)}, options(OnError::carry_on));
  fail(ledger_.next(), 0);
  complete(ledger_.next());
  fail(ledger_.next(), 0); // The second half: which half is in place, no state can say.
  EXPECT_THAT(report().operations, ElementsAre(State::failed, State::failed));
  EXPECT_EQ(report().remote_effect, RemoteEffect::uncertain);
  EXPECT_TRUE(report().remote_settled);
  EXPECT_FALSE(ledger_.has_unsettled());
}

TEST_F(LedgerTest, R29_effect_behind_a_read_that_is_out_is_not_final) {
  start({operation(rd, 4), operation(wr, 4), operation(wr, 4)}, {OnError::stop, false, 4, 8});
  const SlicePlan read = ledger_.next();
  complete(ledger_.next());
  fail(ledger_.next(), 0);
  EXPECT_EQ(report().remote_effect, RemoteEffect::uncertain);
  EXPECT_FALSE(report().remote_settled);
  complete(read);
  EXPECT_EQ(report().completed_bytes, 8U);
  EXPECT_EQ(report().remote_effect, RemoteEffect::partial);
  EXPECT_TRUE(report().remote_settled);
}

TEST_F(LedgerTest, R29_an_uncertain_write_stays_uncertain_and_is_settled_by_a_fence) {
  start({operation(wr, 4)});
  fail_uncertain(ledger_.next(), 2);
  EXPECT_EQ(report().completed_bytes, 2U);
  EXPECT_EQ(report().remote_effect, RemoteEffect::uncertain);
  EXPECT_FALSE(report().remote_settled);
  EXPECT_TRUE(ledger_.has_unsettled());
  EXPECT_TRUE(ledger_.drained()); // The local bytes are free; the remote ones are another fact.
  EXPECT_THAT(report().operations, ElementsAre(State::uncertain));
  ledger_.settle();
  EXPECT_EQ(report().remote_effect, RemoteEffect::uncertain);
  EXPECT_TRUE(report().remote_settled);
  EXPECT_FALSE(ledger_.has_unsettled());
}

TEST_F(LedgerTest, R29_a_fence_settles_nothing_that_ended_uncertain_after_it) {
  start({operation(wr, 4), operation(wr, 4)}, options(OnError::carry_on));
  const SlicePlan a = ledger_.next(), b = ledger_.next();
  fail_uncertain(a, 0);
  ledger_.settle();
  EXPECT_FALSE(report().remote_settled); // The other is still out.
  fail_uncertain(b, 0);
  EXPECT_FALSE(report().remote_settled);
  EXPECT_TRUE(ledger_.has_unsettled());
  ledger_.settle();
  EXPECT_TRUE(report().remote_settled);
}

TEST_F(LedgerTest, R29_a_cancelled_write_may_be_uncertain_too) {
  start({operation(wr, 4)});
  const SlicePlan a = ledger_.next();
  ledger_.end(Outcome::cancelled);
  ledger_.complete(a.index, {0, true, true, nullptr});
  EXPECT_EQ(report().remote_effect, RemoteEffect::uncertain);
  EXPECT_FALSE(report().failure);
  EXPECT_THAT(report().operations, ElementsAre(State::uncertain));
}

TEST_F(LedgerTest, R28_an_operation_half_sent_is_not_called_failed_before_it_ends) {
  start({operation(rd, 8)});
  complete(ledger_.next());
  EXPECT_THAT(report().operations, ElementsAre(State::uncertain));
  ledger_.end(Outcome::cancelled);
  EXPECT_THAT(report().operations, ElementsAre(State::failed));
}

// --- Reuse and cost ---------------------------------------------------------------------------

TEST_F(LedgerTest, R28_a_report_that_is_used_again_keeps_nothing_of_the_last_request) {
  Report used;
  start({operation(wr, 4), operation(wr, 4)});
  fail_uncertain(ledger_.next(), 1);
  ledger_.report(used);
  start({operation(rd, 4)}, {OnError::stop, false, 4, 8});
  ledger_.report(used);
  EXPECT_FALSE(used.outcome);
  EXPECT_FALSE(used.failure);
  EXPECT_EQ(used.completed_bytes, 0U);
  EXPECT_EQ(used.remote_effect, RemoteEffect::none);
  EXPECT_TRUE(used.remote_settled);
  EXPECT_EQ(used.local_drain, LocalDrain::in_flight);
  EXPECT_TRUE(used.operations.empty());
}

TEST_F(LedgerTest, R43_the_steady_state_allocates_nothing) {
  WHERRY_SKIP_WITHOUT_ALLOCATIONS();
  const std::vector<Operation> batch(100, operation(wr, 40));
  const LedgerOptions with = {OnError::stop, true, 4, 64};
  std::vector<SlicePlan> out;
  out.reserve(64);
  Report filled;
  const auto run = [&] {
    ledger_.start(batch, with);
    while (!ledger_.drained()) {
      while (ledger_.has_next()) {
        out.push_back(ledger_.next());
      }
      for (; !out.empty(); out.pop_back()) {
        complete(out.back());
      }
      ledger_.report(filled);
    }
  };
  run();
  const std::uint64_t before = test::allocation_count();
  run();
  EXPECT_EQ(test::allocation_count(), before);
  EXPECT_TRUE(filled.completed());
}

TEST_F(LedgerTest, R28_a_window_of_one_carries_a_whole_batch) {
  start({operation(rd, 9), operation(wr, 9)}, {OnError::stop, true, 4, 1});
  while (ledger_.has_next()) {
    const SlicePlan plan = ledger_.next();
    EXPECT_FALSE(ledger_.has_next() && ledger_.out() > 0);
    complete(plan);
  }
  EXPECT_TRUE(report().completed());
}

// --- Our own mistakes -------------------------------------------------------------------------

TEST_F(LedgerDeathTest, a_slice_ends_once) {
  start({operation(rd, 8)});
  const SlicePlan a = ledger_.next(), b = ledger_.next();
  complete(b);
  EXPECT_DEATH(complete(b), "broken invariant");
  complete(a);
  EXPECT_DEATH(complete(a), "broken invariant");
}

TEST_F(LedgerDeathTest, an_index_that_was_never_given_does_not_end) {
  start({operation(rd, 8)});
  const SlicePlan a = ledger_.next();
  EXPECT_DEATH(ledger_.complete(a.index + 1, whole(a)), "broken invariant");
  EXPECT_DEATH(ledger_.complete(a.index - 1, whole(a)), "broken invariant");
}

TEST_F(LedgerDeathTest, a_slice_confirms_no_more_than_its_bytes) {
  start({operation(rd, 4)});
  const SlicePlan a = ledger_.next();
  EXPECT_DEATH(ledger_.complete(a.index, {5, false, true, nullptr}), "broken invariant");
}

TEST_F(LedgerDeathTest, a_slice_ends_whole_or_cancelled_or_with_an_error) {
  start({operation(wr, 4)});
  const SlicePlan a = ledger_.next();
  const Error error = lost();
  EXPECT_DEATH(ledger_.complete(a.index, {3, false, false, nullptr}), "broken invariant");
  EXPECT_DEATH(ledger_.complete(a.index, {3, false, true, &error}), "broken invariant");
  EXPECT_DEATH(ledger_.complete(a.index, {4, false, false, &error}), "broken invariant");
  EXPECT_DEATH(ledger_.complete(a.index, {4, false, true, nullptr}), "broken invariant");
  EXPECT_DEATH(ledger_.complete(a.index, {4, true, false, nullptr}), "broken invariant");
}

TEST_F(LedgerDeathTest, a_read_is_never_uncertain) {
  start({operation(rd, 4)});
  const SlicePlan a = ledger_.next();
  const Error error = lost();
  EXPECT_DEATH(ledger_.complete(a.index, {0, true, false, &error}), "broken invariant");
}

TEST_F(LedgerDeathTest, next_is_not_asked_for_what_is_not_there) {
  start({});
  EXPECT_DEATH(ledger_.next(), "broken invariant");
}

TEST_F(LedgerDeathTest, nobody_but_the_ledger_says_completed_and_a_failure_has_a_reason) {
  start({operation(rd, 4)});
  EXPECT_DEATH(ledger_.end(Outcome::completed), "broken invariant");
  EXPECT_DEATH(ledger_.end(Outcome::failed), "broken invariant");
}

TEST_F(LedgerDeathTest, a_batch_does_not_start_over_one_that_is_out) {
  start({operation(rd, 4)});
  std::ignore = ledger_.next();
  EXPECT_DEATH(start({}), "broken invariant");
}

TEST_F(LedgerDeathTest, options_and_sums_are_what_the_ledger_can_count_with) {
  EXPECT_DEATH(start({}, {OnError::stop, false, 0, 8}), "broken invariant");
  EXPECT_DEATH(start({}, {OnError::stop, false, 4, 0}), "broken invariant");
  EXPECT_DEATH(start({}, {OnError::stop, false, 4, 3}), "broken invariant");
  EXPECT_DEATH(start({operation(rd, UINT64_MAX), operation(rd, 1)}), "broken invariant");
}

} // namespace
} // namespace wherry

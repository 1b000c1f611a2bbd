// R28 and R29 when something goes wrong: how much of a request is claimed, what is said about the
// remote bytes, and how uncertainty ends. Every claim is held against the bytes.
#include "conformance/conformance.h"
#include "path/scripted/script.h"

#include <algorithm>
#include <array>

namespace wherry::conformance {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

class Effects : public Conformance {
protected:
  static PairOptions one_lane(std::size_t bytes = 1 * mib) {
    PairOptions options;
    options.their_bytes = options.my_bytes = bytes;
    options.lanes = 1;
    options.consumer.tcp.cancel_grace = seconds(60);
    return options;
  }

  static Error script_error() {
    Error error;
    error.code = ErrorCode::io_error;
    error.message = "the script says so";
    error.native_call = "script";
    error.native_number = 5;
    return error;
  }
};

// --- Cuts ---------------------------------------------------------------------------------------

TEST_P(Effects, R29_a_write_that_was_never_sent_changed_nothing) {
  WHERRY_NEEDS(cut);
  Pair pair(on(), one_lane());
  const Bytes theirs = *pair.their_bytes;
  on().hold(pair.consumer, pair.owner, Where::unsent);
  Request request = pair.submit({pair.write(0, 4096)});
  on().run_a_while();
  on().cut_lane(pair.consumer);
  const Report report = request.wait_drained(soon());
  EXPECT_EQ(report.outcome, Outcome::failed) << describe(report);
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->error.code, ErrorCode::connection_lost);
  EXPECT_NE(report.failure->error.path.find("lane"), std::string::npos);
  EXPECT_EQ(report.completed_bytes, 0U);
  on().release(pair.consumer, pair.owner);
  EXPECT_EQ(report.remote_effect, RemoteEffect::none);
  EXPECT_TRUE(report.remote_settled);
  EXPECT_TRUE(same(*pair.their_bytes, theirs));
  EXPECT_TRUE(pair.works());
}

TEST_P(Effects, R29_a_read_that_is_cut_has_no_remote_effect_and_a_true_prefix) {
  WHERRY_NEEDS(cut);
  Pair pair(on(), one_lane());
  on().hold(pair.consumer, pair.owner, Where::unanswered);
  Request request = pair.submit({pair.read(0, 1 * mib)});
  on().run_a_while();
  on().cut_lane(pair.consumer);
  const Report report = request.wait_drained(soon());
  EXPECT_EQ(report.outcome, Outcome::failed) << describe(report);
  EXPECT_EQ(report.remote_effect, RemoteEffect::none);
  EXPECT_TRUE(report.remote_settled);
  EXPECT_TRUE(same(pair.mine(0, report.completed_bytes), pair.theirs(0, report.completed_bytes)));
  on().release(pair.consumer, pair.owner);
  EXPECT_TRUE(pair.works());
}

TEST_P(Effects, R29_a_write_cut_without_an_answer_is_uncertain_until_its_lane_was_fenced) {
  WHERRY_NEEDS(cut);
  Pair pair(on(), one_lane());
  on().hold(pair.consumer, pair.owner, Where::unanswered);
  on().hold_fences(pair.consumer, true);
  Request request = pair.submit({pair.write(0, 64 * kib)});
  on().run_a_while();
  on().cut_lane(pair.consumer);
  Report report = request.wait_drained(soon());
  EXPECT_EQ(report.outcome, Outcome::failed) << describe(report);
  EXPECT_EQ(report.local_drain, LocalDrain::drained);
  EXPECT_EQ(report.remote_effect, RemoteEffect::uncertain);
  EXPECT_FALSE(report.remote_settled);
  EXPECT_EQ(report.completed_bytes, 0U);

  // What overlaps is refused, and nothing else is.
  const std::uint64_t before = counter(pair.consumer, "requests_submitted_total");
  EXPECT_TRUE(refused(pair.remote->submit({pair.write(0, 1)}), ErrorCode::unsettled));
  EXPECT_TRUE(refused(pair.remote->submit({pair.read(0, 1), pair.write(0, 64 * kib - 1, 10)}),
                      ErrorCode::unsettled));
  EXPECT_EQ(counter(pair.consumer, "requests_submitted_total"), before);
  Request beside = pair.submit({pair.write(64 * kib, 100)});
  Request reading = pair.submit({pair.read(512 * kib, 0, 64 * kib)});
  SubmitOptions allowed;
  allowed.allow_unsettled = true;
  Request forced = pair.submit({pair.write(100 * kib, 0, 64 * kib)}, allowed);

  on().release(pair.consumer, pair.owner);
  on().hold_fences(pair.consumer, false);
  EXPECT_TRUE(run_until([&] { return request.report().remote_settled; }));
  report = request.report();
  EXPECT_EQ(report.remote_effect, RemoteEffect::uncertain) << "settled is not known";
  EXPECT_EQ(report.outcome, Outcome::failed);
  EXPECT_TRUE(beside.wait_drained(soon()).completed());
  EXPECT_TRUE(reading.wait_drained(soon()).completed());
  EXPECT_TRUE(forced.wait_drained(soon()).completed());
  // Settled: nothing changes any more by itself, and WRITEs are taken again.
  EXPECT_TRUE(pair.run({pair.write(0, 64 * kib)}).completed());
  const Bytes after = *pair.their_bytes;
  on().run_a_while();
  EXPECT_TRUE(same(*pair.their_bytes, after));
  EXPECT_TRUE(same(pair.theirs(0, 64 * kib), pair.mine(0, 64 * kib)));
  EXPECT_TRUE(pair.works());
}

TEST_P(Effects, R21_R29_a_session_that_is_lost_settles_when_it_is_opened_again) {
  WHERRY_NEEDS(cut);
  Pair pair(on(), one_lane());
  on().hold(pair.consumer, pair.owner, Where::unanswered);
  Request request = pair.submit({pair.write(0, 64 * kib)});
  Request behind = pair.submit({pair.read(512 * kib, 1000)});
  on().run_a_while();
  on().cut_session(pair.consumer);
  const Report report = request.wait_drained(soon());
  EXPECT_EQ(report.outcome, Outcome::failed) << describe(report);
  EXPECT_EQ(report.failure->error.code, ErrorCode::connection_lost);
  EXPECT_EQ(report.remote_effect, RemoteEffect::uncertain);
  EXPECT_EQ(behind.wait_drained(soon()).outcome, Outcome::failed) << "READs are not replayed";
  on().release(pair.consumer, pair.owner);
  // The engine opens it again by itself, once, to have the owner end the old session.
  EXPECT_TRUE(run_until([&] { return request.report().remote_settled; }));
  EXPECT_TRUE(run_until([&] { return counter(pair.owner, "sessions_opened_total") == 2; }));
  EXPECT_TRUE(pair.run({pair.write(0, 64 * kib)}).completed());
  EXPECT_TRUE(same(pair.theirs(0, 64 * kib), pair.mine(0, 64 * kib)));
}

TEST_P(Effects, R29_where_the_owner_is_gone_a_write_stays_unsettled) {
  WHERRY_NEEDS(cut);
  PairOptions options = one_lane();
  options.consumer.tcp.connect_timeout = milliseconds(200);
  Pair pair(on(), options);
  on().hold(pair.consumer, pair.owner, Where::unanswered);
  Request request = pair.submit({pair.write(0, 64 * kib)});
  on().run_a_while();
  pair.source.reset();
  pair.their_range.reset();
  on().drop(pair.owner);
  const Report report = request.wait_drained(soon());
  EXPECT_EQ(report.outcome, Outcome::failed) << describe(report);
  EXPECT_EQ(report.remote_effect, RemoteEffect::uncertain);
  EXPECT_TRUE(run_until([&] { return pair.remote->state() == SourceState::lost; }));
  on().run_a_while();
  EXPECT_FALSE(request.report().remote_settled);
  EXPECT_TRUE(refused(pair.remote->submit({pair.write(0, 1)}), ErrorCode::unsettled));
  // Other requests find out that nobody is there.
  auto other = pair.remote->submit({pair.read(0, 1)});
  ASSERT_TRUE(other) << other.error().message;
  const Report failed = other->wait_drained(soon());
  EXPECT_EQ(failed.outcome, Outcome::failed) << describe(failed);
  EXPECT_FALSE(request.report().remote_settled);
}

TEST_P(Effects, R43_R29_beyond_what_is_remembered_every_write_counts_as_overlapping) {
  WHERRY_NEEDS(cut);
  PairOptions options = one_lane();
  options.consumer.limits.unsettled_writes = 2;
  Pair pair(on(), options);
  on().hold(pair.consumer, pair.owner, Where::unanswered);
  on().hold_fences(pair.consumer, true);
  Request request = pair.submit({pair.write(0, 100), pair.write(200, 100), pair.write(400, 100)});
  on().run_a_while();
  on().cut_lane(pair.consumer);
  EXPECT_FALSE(request.wait_drained(soon()).remote_settled);
  EXPECT_TRUE(refused(pair.remote->submit({pair.write(900 * kib, 1)}), ErrorCode::unsettled));
  on().release(pair.consumer, pair.owner);
  on().hold_fences(pair.consumer, false);
  EXPECT_TRUE(run_until([&] { return request.report().remote_settled; }));
  EXPECT_TRUE(pair.run({pair.write(900 * kib, 1)}).completed());
}

// --- Late writes, as a script tells them
// ----------------------------------------------------------

TEST_P(Effects, R29_an_uncertain_write_may_land_late_until_settled_and_is_never_retried) {
  WHERRY_NEEDS(script);
  Pair pair(on(), one_lane());
  Script& script = *on().script();
  const Bytes theirs = *pair.their_bytes;
  on().hold(pair.consumer, pair.owner, Where::unanswered);
  on().hold_fences(pair.consumer, true);
  Request request = pair.submit({pair.write(0, 4096), pair.write(8192, 4096)});
  on().run_a_while();
  const std::uint64_t slices = script.counters().slices;
  EXPECT_EQ(slices, 2U);
  on().cut_lane(pair.consumer);
  EXPECT_FALSE(request.wait_drained(soon()).remote_settled);
  EXPECT_TRUE(same(*pair.their_bytes, theirs));
  // They were on their way: the report has said that this may happen.
  EXPECT_EQ(script.land_late_writes(), 2U);
  EXPECT_TRUE(same(pair.theirs(0, 4096), pair.mine(0, 4096)));
  EXPECT_EQ(request.report().remote_effect, RemoteEffect::uncertain);
  EXPECT_EQ(request.report().completed_bytes, 0U) << "nobody confirmed them";
  on().release(pair.consumer, pair.owner);
  on().hold_fences(pair.consumer, false);
  EXPECT_TRUE(run_until([&] { return request.report().remote_settled; }));
  EXPECT_EQ(script.late_writes(), 0U);
  EXPECT_EQ(script.counters().slices, slices) << "nothing was sent again";
  EXPECT_TRUE(pair.works());
}

TEST_P(Effects, R29_a_fence_ends_what_was_on_its_way) {
  WHERRY_NEEDS(script);
  Pair pair(on(), one_lane());
  Script& script = *on().script();
  const Bytes theirs = *pair.their_bytes;
  on().hold(pair.consumer, pair.owner, Where::unanswered);
  Request request = pair.submit({pair.write(0, 4096)});
  on().run_a_while();
  on().cut_lane(pair.consumer);
  EXPECT_TRUE(run_until([&] { return request.report().remote_settled; }));
  EXPECT_EQ(script.land_late_writes(), 0U);
  on().release(pair.consumer, pair.owner);
  EXPECT_TRUE(same(*pair.their_bytes, theirs));
  EXPECT_TRUE(pair.works());
}

// --- Prefix, failure, states of operations
// --------------------------------------------------------

TEST_P(Effects, R28_the_prefix_is_what_leads_whatever_the_order_of_ends) {
  WHERRY_NEEDS(script);
  Pair pair(on(), one_lane());
  on().hold(pair.consumer, pair.owner, Where::unanswered);
  SubmitOptions options;
  options.per_operation = true;
  Request request = pair.submit(
      {pair.read(0, 100), pair.read(100, 200), pair.read(300, 400), pair.read(700, 800)}, options);
  EXPECT_TRUE(run_until([&] { return on().script()->held() == 4; }));
  const auto release = [&](std::size_t index) {
    on().script()->release(index);
    on().run_a_while();
    return request.report();
  };
  Report report = release(2); // The third operation.
  EXPECT_EQ(report.completed_ops, 0U);
  EXPECT_EQ(report.completed_bytes, 0U);
  EXPECT_EQ(report.operations[2], OperationState::confirmed);
  report = release(0);
  EXPECT_EQ(report.completed_ops, 1U);
  EXPECT_EQ(report.completed_bytes, 100U);
  report = release(0); // The second: the third follows.
  EXPECT_EQ(report.completed_ops, 3U);
  EXPECT_EQ(report.completed_bytes, 700U);
  EXPECT_FALSE(report.outcome);
  report = release(0);
  EXPECT_TRUE(report.completed());
  EXPECT_EQ(report.completed_bytes, 1500U);
  on().release(pair.consumer, pair.owner);
}

TEST_P(Effects, R28_stop_sends_nothing_further_after_a_failure) {
  WHERRY_NEEDS(script);
  Pair pair(on(), one_lane());
  Script& script = *on().script();
  script.room = 1; // One after the other.
  const Bytes theirs = *pair.their_bytes;
  script.decide = [&](const Slice& slice) {
    Fate fate;
    if (slice.remote_offset == 4096) {
      fate.moved_bytes = fate.confirmed_bytes = 1000;
      fate.error = script_error();
    }
    return fate;
  };
  SubmitOptions options;
  options.per_operation = true;
  const Report report =
      pair.run({pair.write(0, 4096), pair.write(4096, 4096), pair.write(8192, 4096)}, options);
  EXPECT_EQ(report.outcome, Outcome::failed) << describe(report);
  EXPECT_EQ(report.completed_ops, 1U);
  EXPECT_EQ(report.completed_bytes, 5096U);
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->operation, 1U);
  EXPECT_EQ(report.failure->error.native_call, "script");
  EXPECT_EQ(report.failure->error.native_number, 5);
  EXPECT_EQ(report.remote_effect, RemoteEffect::partial);
  EXPECT_TRUE(report.remote_settled);
  EXPECT_EQ(report.operations, (std::vector{OperationState::confirmed, OperationState::failed,
                                            OperationState::not_started}));
  EXPECT_EQ(script.counters().slices, 2U);
  // Exactly the confirmed bytes.
  EXPECT_TRUE(same(pair.theirs(0, 5096), pair.mine(0, 5096)));
  EXPECT_TRUE(same(std::span(*pair.their_bytes).subspan(5096), std::span(theirs).subspan(5096)));
  script.decide = {};
  EXPECT_TRUE(pair.works());
}

TEST_P(Effects, R28_carry_on_tries_the_others_and_tells_of_each) {
  WHERRY_NEEDS(script);
  Pair pair(on(), one_lane());
  Script& script = *on().script();
  const Bytes theirs = *pair.their_bytes;
  script.decide = [&](const Slice& slice) {
    Fate fate;
    if (slice.remote_offset == 4096) {
      fate.moved_bytes = fate.confirmed_bytes = 0;
      fate.error = script_error();
    } else if (slice.remote_offset == 12'288) {
      fate.moved_bytes = 2000; // More than is known of.
      fate.confirmed_bytes = 10;
      fate.error = script_error();
      fate.uncertain = true;
    }
    return fate;
  };
  SubmitOptions options;
  options.per_operation = true;
  options.on_error = OnError::carry_on;
  const Report report =
      pair.run({pair.write(0, 4096), pair.write(4096, 4096), pair.write(8192, 4096),
                pair.write(12'288, 4096), pair.write(16'384, 4096)},
               options);
  EXPECT_EQ(report.outcome, Outcome::failed) << describe(report);
  EXPECT_EQ(report.completed_ops, 1U);
  EXPECT_EQ(report.completed_bytes, 4096U);
  EXPECT_EQ(report.failure->operation, 1U) << "the first";
  EXPECT_EQ(report.operations, (std::vector{OperationState::confirmed, OperationState::failed,
                                            OperationState::confirmed, OperationState::uncertain,
                                            OperationState::confirmed}));
  EXPECT_EQ(report.remote_effect, RemoteEffect::uncertain);
  EXPECT_TRUE(report.remote_settled) << "the link has said its last word";
  for (const std::size_t at : {0U, 8192U, 16'384U}) {
    EXPECT_TRUE(same(pair.theirs(at, 4096), pair.mine(at, 4096)));
  }
  EXPECT_TRUE(same(pair.theirs(4096, 4096), std::span(theirs).subspan(4096, 4096)));
  script.decide = {};
  EXPECT_TRUE(pair.run({pair.write(12'288, 4096)}).completed()) << "settled";
}

// --- Cancelling in the middle (R36)
// -----------------------------------------------------------------

TEST_P(Effects, R36_a_cancelled_read_drains_at_once_and_its_memory_is_left_alone) {
  WHERRY_NEEDS(segments);
  Pair pair(on(), one_lane(16 * mib));
  FaultNetwork& network = *on().node(pair.consumer).network;
  network.pass_lane_reads(3 * mib + 100'000); // In the middle of a segment.
  Request request = pair.submit({pair.read(0, 16 * mib)});
  EXPECT_TRUE(run_until([&] { return request.report().completed_bytes >= 2 * mib; }));
  on().run_a_while();
  request.cancel();
  const Report report = request.wait_drained(soon());
  EXPECT_EQ(report.outcome, Outcome::cancelled) << describe(report);
  EXPECT_EQ(report.local_drain, LocalDrain::drained);
  EXPECT_LE(report.completed_bytes, 3 * mib + 100'000);
  EXPECT_TRUE(same(pair.mine(0, report.completed_bytes), pair.theirs(0, report.completed_bytes)));
  // Drained means that the bytes are the application's again, whatever still comes.
  fill(*pair.my_bytes, 99);
  const Bytes mine = *pair.my_bytes;
  network.pass_lane_reads(FaultNetwork::unlimited);
  on().run_a_while();
  EXPECT_TRUE(same(*pair.my_bytes, mine));
  EXPECT_TRUE(pair.works());
  EXPECT_EQ(counter(pair.consumer, "tcp_lanes_cut_total"), 0U);
  EXPECT_LT(counter(pair.owner, "tcp_sent_bytes_total"), 12 * mib) << "the owner heard of it";
}

TEST_P(Effects, R36_a_cancelled_write_finishes_its_segment_and_sends_no_filler) {
  WHERRY_NEEDS(segments);
  Pair pair(on(), one_lane(16 * mib));
  const Bytes theirs = *pair.their_bytes;
  FaultNetwork& network = *on().node(pair.consumer).network;
  network.pass_lane_writes(3 * mib + 100'000);
  Request request = pair.submit({pair.write(0, 16 * mib)});
  EXPECT_TRUE(run_until([&] { return request.report().completed_bytes >= 2 * mib; }));
  on().run_a_while();
  request.cancel();
  Report report = request.wait(soon());
  EXPECT_EQ(report.outcome, Outcome::cancelled) << describe(report);
  EXPECT_EQ(report.local_drain, LocalDrain::in_flight) << "its segment is on its way";
  network.pass_lane_writes(FaultNetwork::unlimited);
  report = request.wait_drained(soon());
  EXPECT_EQ(report.outcome, Outcome::cancelled) << describe(report);
  EXPECT_EQ(report.remote_effect, RemoteEffect::partial);
  EXPECT_TRUE(report.remote_settled);
  // Exactly the confirmed bytes are in place, and nothing else changed.
  const std::size_t prefix = report.completed_bytes;
  EXPECT_GT(prefix, 3 * mib);
  EXPECT_LT(prefix, 5 * mib);
  EXPECT_TRUE(same(pair.theirs(0, prefix), pair.mine(0, prefix)));
  EXPECT_TRUE(
      same(std::span(*pair.their_bytes).subspan(prefix), std::span(theirs).subspan(prefix)));
  EXPECT_EQ(counter(pair.consumer, "tcp_lanes_cut_total"), 0U);
  EXPECT_LT(counter(pair.consumer, "tcp_sent_bytes_total"), 5 * mib);
  EXPECT_TRUE(pair.works());
}

TEST_P(Effects, R36_a_segment_that_outlasts_cancel_grace_costs_its_lane_and_says_so) {
  WHERRY_NEEDS(segments);
  PairOptions options = one_lane(8 * mib);
  options.consumer.tcp.cancel_grace = milliseconds(20);
  Pair pair(on(), options);
  FaultNetwork& network = *on().node(pair.consumer).network;
  network.pass_lane_writes(1 * mib + 1000);
  on().hold_fences(pair.consumer, true);
  Request request = pair.submit({pair.write(0, 4 * mib)});
  Request beside = pair.submit({pair.read(4 * mib, 1 * mib)});
  EXPECT_TRUE(run_until([&] { return request.report().completed_bytes > 0; }));
  on().run_a_while();
  request.cancel();
  const Report report = request.wait_drained(soon());
  EXPECT_EQ(report.outcome, Outcome::cancelled) << describe(report);
  EXPECT_EQ(report.remote_effect, RemoteEffect::uncertain);
  EXPECT_FALSE(report.remote_settled);
  ASSERT_TRUE(report.failure) << "the report names the cause";
  EXPECT_NE(report.failure->error.message.find("cancel_grace"), std::string::npos)
      << report.failure->error.message;
  const Report other = beside.wait_drained(soon());
  if (!other.completed()) {
    EXPECT_EQ(other.outcome, Outcome::failed) << describe(other);
    EXPECT_EQ(other.failure->error.code, ErrorCode::stalled);
  }
  EXPECT_EQ(counter(pair.consumer, "tcp_lanes_cut_total"), 1U);
  network.pass_lane_writes(FaultNetwork::unlimited);
  on().hold_fences(pair.consumer, false);
  EXPECT_TRUE(run_until([&] { return request.report().remote_settled; }));
  EXPECT_TRUE(same(pair.theirs(0, report.completed_bytes), pair.mine(0, report.completed_bytes)));
  EXPECT_TRUE(pair.works());
}

TEST_P(Effects, R36_a_peer_that_stops_cannot_hold_a_lease_beyond_the_stall_timeout) {
  WHERRY_NEEDS(segments);
  PairOptions options = one_lane(8 * mib);
  options.consumer.tcp.peer_stall_timeout = milliseconds(150);
  options.owner.tcp.peer_stall_timeout = milliseconds(150);
  Pair pair(on(), options);
  on().node(pair.owner).network->freeze(true);
  Request reading = pair.submit({pair.read(0, 1 * mib)});
  Request writing = pair.submit({pair.write(0, 8 * mib)});
  const Report report = reading.wait_drained(soon());
  EXPECT_EQ(report.outcome, Outcome::failed) << describe(report);
  EXPECT_EQ(report.failure->error.code, ErrorCode::stalled);
  EXPECT_NE(report.failure->error.message.find("peer_stall_timeout"), std::string::npos);
  const Report wrote = writing.wait_drained(soon());
  EXPECT_EQ(wrote.outcome, Outcome::failed) << describe(wrote);
  EXPECT_EQ(wrote.remote_effect, RemoteEffect::uncertain);
  EXPECT_EQ(counter(pair.consumer, "leases"), 0U);
  EXPECT_GE(counter(pair.consumer, "tcp_stalls_total"), 1U);
  on().node(pair.owner).network->freeze(false);
  EXPECT_TRUE(run_until([&] { return writing.report().remote_settled; }));
  EXPECT_TRUE(pair.works());
}

TEST_P(Effects, R36_an_owner_gives_up_a_consumer_that_does_not_read) {
  WHERRY_NEEDS(segments);
  PairOptions options = one_lane(16 * mib);
  options.owner.tcp.peer_stall_timeout = milliseconds(150);
  Pair pair(on(), options);
  // No more goes out than that, as with a peer whose window is closed.
  FaultNetwork& network = *on().node(pair.owner).network;
  network.pass_lane_writes(3 * mib + 5000);
  Request request = pair.submit({pair.read(0, 16 * mib)});
  EXPECT_TRUE(run_until([&] {
    return counter(pair.owner, "tcp_stalls_total") == 1 && counter(pair.owner, "leases") == 0;
  }));
  const Report report = request.wait_drained(soon());
  EXPECT_EQ(report.outcome, Outcome::failed) << describe(report);
  EXPECT_GE(report.completed_bytes, 2 * mib);
  EXPECT_TRUE(same(pair.mine(0, report.completed_bytes), pair.theirs(0, report.completed_bytes)));
  network.pass_lane_writes(FaultNetwork::unlimited);
  EXPECT_TRUE(pair.works());
}

INSTANTIATE_TEST_SUITE_P(all, Effects, moving(), provider_name);

} // namespace
} // namespace wherry::conformance

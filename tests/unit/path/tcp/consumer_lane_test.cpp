// A consumer's lane against an owner who speaks frames by hand: what it asks, what it believes, and
// how it ends when the owner misbehaves (R28, R29, R36, R42).
#include "unit/path/tcp/lane_fixture.h"

#include <functional>

namespace wherry::testing {
namespace {

constexpr std::uint32_t slice_bytes = 600'000; // Three segments.

struct Consumer {
  explicit Consumer(const WorldOptions& options = quiet())
      : world(1, options),
        lane(world.consumer_stream, world.config, world.services(), world.now_ns),
        owner(world.to_owner, world.to_consumer, world.random) {}
  ~Consumer() {
    // Whatever the test did, the lane can be ended, and nothing is left.
    lane.begin_close(Error{});
    run();
    EXPECT_EQ(lane.state(), LinkState::drained);
    EXPECT_EQ(world.staging.in_use(), 0U);
  }

  static WorldOptions quiet() {
    WorldOptions options;
    options.unkind = 0;
    options.channel_bytes = 4 << 20;
    return options;
  }

  void submit(OperationKind kind, std::uint32_t length = slice_bytes, std::uint64_t request = 1) {
    Slice slice;
    slice.request = request;
    slice.index = submitted++;
    slice.kind = kind;
    slice.local = {memory.data(), nullptr, 0};
    slice.remote_range = 4;
    slice.remote_offset = 1000;
    slice.length_bytes = length;
    lane.submit(slice);
  }
  void run() {
    while (turn(lane, world.consumer_stream, world.now_ns) || world.files.finish_one()) {
    }
  }
  std::vector<Completion> completions() {
    std::vector<Completion> all(64);
    all.resize(lane.poll(all));
    return all;
  }
  Completion completion() {
    auto all = completions();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? Completion{} : all[0];
  }
  /// Submits a READ, and gives the name by which the owner is asked for it.
  std::uint64_t ask(std::uint32_t length = slice_bytes) {
    submit(OperationKind::read, length);
    run();
    return wire::read_at(owner.receive_one().descriptors, 0).slice;
  }
  /// Submits a WRITE that goes out wholly, and gives its name.
  std::uint64_t write(std::uint32_t length = slice_bytes) {
    submit(OperationKind::write, length);
    run();
    return wire::extent_at(owner.receive().front().descriptors, 0).slice;
  }
  void answer(std::uint64_t slice, std::uint32_t from, std::uint32_t length, bool last,
              bool checksum = false) {
    const Bytes bytes = pattern(length, from + 1);
    owner.payload({{slice, 0, from, length, last}}, bytes, checksum);
    run();
  }

  World world;
  ConsumerLane lane;
  HandPeer owner;
  Bytes memory = pattern(1 << 20, 6);
  std::uint32_t submitted = 0;
};

TEST(ConsumerLane, a_read_asks_once_and_is_confirmed_by_segment) {
  Consumer c;
  c.submit(OperationKind::read);
  c.run();
  const Frame frame = c.owner.receive_one();
  ASSERT_EQ(frame.header.type, wire::FrameType::read);
  const wire::ReadDescriptor asked = wire::read_at(frame.descriptors, 0);
  EXPECT_EQ(asked.range, 4U);
  EXPECT_EQ(asked.offset, 1000U);
  EXPECT_EQ(asked.length_bytes, slice_bytes);
  c.answer(asked.slice, 0, 262'144, false);
  EXPECT_TRUE(c.completions().empty());
  c.answer(asked.slice, 262'144, 262'144, false);
  c.answer(asked.slice, 524'288, slice_bytes - 524'288, true);
  const Completion end = c.completion();
  EXPECT_EQ(end.confirmed_bytes, slice_bytes);
  EXPECT_EQ(end.error, nullptr);
  EXPECT_TRUE(
      std::equal(c.memory.begin(), c.memory.begin() + 262'144, pattern(262'144, 1).begin()));
  EXPECT_EQ(c.world.counters.read_slices, 1U);
}

TEST(ConsumerLane, R29_a_write_is_confirmed_by_its_owner_only) {
  Consumer c;
  c.submit(OperationKind::write);
  c.run();
  const auto frames = c.owner.receive();
  ASSERT_EQ(frames.size(), 3U);
  std::uint32_t at = 0;
  for (const Frame& frame : frames) {
    const wire::PayloadExtent extent = wire::extent_at(frame.descriptors, 0);
    EXPECT_EQ(extent.range, 4U);
    EXPECT_EQ(extent.offset, 1000U + at);
    EXPECT_TRUE(std::equal(frame.payload.begin(), frame.payload.end(), c.memory.begin() + at));
    at += extent.length_bytes;
    EXPECT_EQ(extent.last, at == slice_bytes);
  }
  EXPECT_TRUE(c.completions().empty()) << "a socket has accepted them, no owner has";
  const std::uint64_t slice = wire::extent_at(frames[0].descriptors, 0).slice;
  c.owner.result({slice, 262'144, 0, 0});
  c.run();
  EXPECT_TRUE(c.completions().empty());
  c.owner.result({slice, slice_bytes - 262'144, 0, 0});
  c.run();
  const Completion end = c.completion();
  EXPECT_EQ(end.confirmed_bytes, slice_bytes);
  EXPECT_FALSE(end.uncertain);
}

TEST(ConsumerLane, R25_a_refused_read_gives_the_owners_reason_and_the_lane_goes_on) {
  Consumer c;
  const std::uint64_t slice = c.ask();
  c.owner.result({slice, 0, static_cast<std::uint16_t>(ErrorCode::range_withdrawn), 0});
  c.run();
  const Completion end = c.completion();
  EXPECT_EQ(end.confirmed_bytes, 0U);
  ASSERT_NE(end.error, nullptr);
  EXPECT_EQ(end.error->code, ErrorCode::range_withdrawn);
  EXPECT_EQ(end.error->path, "tcp lane 0");
  EXPECT_EQ(c.lane.state(), LinkState::ready);
  const std::uint64_t other = c.ask(100);
  EXPECT_NE(other, slice);
  c.answer(other, 0, 100, true);
  EXPECT_EQ(c.completion().confirmed_bytes, 100U);
}

TEST(ConsumerLane, R28_a_read_that_fails_midway_keeps_its_prefix) {
  Consumer c;
  const std::uint64_t slice = c.ask();
  c.answer(slice, 0, 262'144, false);
  c.owner.result({slice, 0, static_cast<std::uint16_t>(ErrorCode::io_error), ENOSPC});
  c.run();
  const Completion end = c.completion();
  EXPECT_EQ(end.confirmed_bytes, 262'144U);
  ASSERT_NE(end.error, nullptr);
  EXPECT_EQ(end.error->native_number, ENOSPC);
  EXPECT_NE(end.error->message.find("No space left"), std::string::npos);
}

struct RefusalRow {
  ErrorCode code;
  bool touched;
};

TEST(ConsumerLane, R29_a_refused_write_is_uncertain_only_where_bytes_may_have_changed) {
  for (const RefusalRow& row :
       {RefusalRow{ErrorCode::access_denied, false}, RefusalRow{ErrorCode::out_of_range, false},
        RefusalRow{ErrorCode::range_withdrawn, false}, RefusalRow{ErrorCode::not_found, false},
        RefusalRow{ErrorCode::io_error, true}, RefusalRow{ErrorCode::range_changed, true}}) {
    Consumer c;
    const std::uint64_t slice = c.write(100);
    c.owner.result({slice, 100, static_cast<std::uint16_t>(row.code), 0});
    c.run();
    const Completion end = c.completion();
    ASSERT_NE(end.error, nullptr);
    EXPECT_EQ(end.error->code, row.code);
    EXPECT_EQ(end.uncertain, row.touched) << to_string(row.code);
    EXPECT_FALSE(end.unsettled) << "the owner has answered for all of it";
  }
}

TEST(ConsumerLane, R29_bytes_confirmed_behind_a_refused_segment_are_uncertain_not_prefix) {
  Consumer c;
  const std::uint64_t slice = c.write();
  c.owner.result({slice, 262'144, 0, 0});
  c.owner.result({slice, 262'144, static_cast<std::uint16_t>(ErrorCode::range_withdrawn), 0});
  c.owner.result({slice, slice_bytes - 524'288, 0, 0});
  c.run();
  const Completion end = c.completion();
  EXPECT_EQ(end.confirmed_bytes, 262'144U);
  EXPECT_TRUE(end.uncertain);
  EXPECT_FALSE(end.unsettled);
}

TEST(ConsumerLane, R36_a_corrupted_segment_ends_the_prefix_and_not_the_lane) {
  Consumer c;
  const std::uint64_t slice = c.ask();
  c.answer(slice, 0, 262'144, false, true);
  c.world.to_consumer.flip_at = c.world.to_consumer.written + 64 + 17;
  c.answer(slice, 262'144, 262'144, false, true);
  c.answer(slice, 524'288, slice_bytes - 524'288, true, true);
  const Completion end = c.completion();
  EXPECT_EQ(end.confirmed_bytes, 262'144U);
  ASSERT_NE(end.error, nullptr);
  EXPECT_EQ(end.error->code, ErrorCode::io_error);
  EXPECT_EQ(c.world.counters.checksum_errors, 1U);
  EXPECT_EQ(c.lane.state(), LinkState::ready);
}

// -- cancel and stall
// --------------------------------------------------------------------------------

TEST(ConsumerLane, R30_a_read_that_was_not_sent_yet_is_cancelled_without_a_word) {
  Consumer c;
  c.submit(OperationKind::read, 100, 1);
  c.submit(OperationKind::read, 100, 2);
  c.lane.request_cancel(1, c.world.now_ns);
  const Completion end = c.completion();
  EXPECT_EQ(end.index, 0U);
  EXPECT_TRUE(end.cancelled);
  c.run();
  const Frame frame = c.owner.receive_one();
  EXPECT_EQ(frame.header.count, 1U);
}

TEST(ConsumerLane, R36_a_cancelled_read_tells_the_owner_and_drops_what_still_comes) {
  Consumer c;
  const std::uint64_t slice = c.ask();
  c.lane.request_cancel(1, c.world.now_ns);
  EXPECT_TRUE(c.completion().cancelled);
  const Bytes before = c.memory;
  c.run();
  const Frame frame = c.owner.receive_one();
  ASSERT_EQ(frame.header.type, wire::FrameType::cancel);
  EXPECT_EQ(wire::cancel_at(frame.descriptors, 0).slice, slice);
  c.answer(slice, 0, 262'144, false);
  c.owner.result({slice, 0, static_cast<std::uint16_t>(ErrorCode::cancelled), 0});
  c.run();
  EXPECT_EQ(c.memory, before);
  EXPECT_TRUE(c.completions().empty());
  EXPECT_EQ(c.lane.state(), LinkState::ready);
}

TEST(ConsumerLane, R43_a_slot_stays_taken_until_the_owners_last_word) {
  WorldOptions options = Consumer::quiet();
  options.slices_max = 4;
  Consumer c(options);
  std::vector<std::uint64_t> slices;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(c.lane.has_room());
    slices.push_back(c.ask(100));
  }
  EXPECT_FALSE(c.lane.has_room());
  c.lane.request_cancel(1, c.world.now_ns);
  EXPECT_EQ(c.completions().size(), 4U);
  EXPECT_FALSE(c.lane.has_room()) << "the owner may still speak of them";
  c.run();
  c.owner.receive();
  for (const std::uint64_t slice : slices) {
    c.owner.result({slice, 0, static_cast<std::uint16_t>(ErrorCode::cancelled), 0});
  }
  c.run();
  EXPECT_TRUE(c.lane.has_room());
}

TEST(ConsumerLane, R36_a_cancelled_write_sends_no_further_segment) {
  WorldOptions options = Consumer::quiet();
  options.channel_bytes = 100'000; // The first segment is in transit.
  Consumer c(options);
  c.submit(OperationKind::write);
  c.run();
  c.lane.request_cancel(1, c.world.now_ns);
  EXPECT_TRUE(c.completions().empty());
  std::vector<Frame> frames;
  FrameReader reader;
  FrameRecorder recorder;
  MemoryStream in(c.world.to_owner, c.world.to_consumer, c.world.random, 0);
  for (int i = 0; i < 20; ++i) {
    reader.progress(in, recorder, 1 << 20);
    c.run();
  }
  ASSERT_EQ(recorder.frames.size(), 1U) << "the segment in transit is finished, and is the last";
  const wire::PayloadExtent extent = wire::extent_at(recorder.frames[0].descriptors, 0);
  EXPECT_FALSE(extent.last);
  c.owner.result({extent.slice, extent.length_bytes, 0, 0});
  c.run();
  const Completion end = c.completion();
  EXPECT_TRUE(end.cancelled);
  EXPECT_EQ(end.confirmed_bytes, 262'144U);
  EXPECT_FALSE(end.uncertain);
}

TEST(ConsumerLane, R36_a_segment_that_outlasts_cancel_grace_cuts_the_lane) {
  WorldOptions options = Consumer::quiet();
  options.channel_bytes = 100'000;
  Consumer c(options);
  c.submit(OperationKind::write);
  c.run();
  c.lane.request_cancel(1, c.world.now_ns);
  const std::uint64_t deadline_ns = c.lane.next_deadline_ns();
  EXPECT_EQ(deadline_ns, c.world.now_ns + c.world.config.cancel_grace_ns);
  c.world.now_ns = deadline_ns - 1;
  c.run();
  EXPECT_EQ(c.lane.state(), LinkState::ready);
  c.world.now_ns = deadline_ns;
  c.run();
  EXPECT_EQ(c.lane.state(), LinkState::drained);
  EXPECT_EQ(c.lane.why().code, ErrorCode::stalled);
  EXPECT_NE(c.lane.why().message.find("cancel_grace"), std::string::npos);
  const Completion end = c.completion();
  EXPECT_TRUE(end.uncertain && end.unsettled);
  ASSERT_NE(end.error, nullptr);
  EXPECT_EQ(end.error->code, ErrorCode::stalled);
}

// Another request's segment is in transit: the cancelled one has nothing to do with it.
TEST(ConsumerLane, R36_cancelling_a_write_of_which_nothing_is_in_transit_cuts_nobody) {
  WorldOptions options = Consumer::quiet();
  options.channel_bytes = 100'000;
  Consumer c(options);
  c.submit(OperationKind::write, 262'144, 1);
  c.submit(OperationKind::write, 262'144, 2);
  c.run();
  c.lane.request_cancel(2, c.world.now_ns);
  c.run();
  EXPECT_EQ(c.completion().index, 1U);
  c.world.now_ns += 2 * c.world.config.cancel_grace_ns;
  c.run();
  EXPECT_EQ(c.lane.state(), LinkState::ready) << c.lane.why().message;
}

TEST(ConsumerLane, R36_an_owner_that_owes_an_answer_and_stands_still_is_cut) {
  Consumer c;
  c.ask();
  EXPECT_EQ(c.lane.next_deadline_ns(), c.world.now_ns + c.world.config.peer_stall_timeout_ns);
  c.world.now_ns += c.world.config.peer_stall_timeout_ns - 1;
  c.run();
  EXPECT_EQ(c.lane.state(), LinkState::ready);
  c.world.now_ns += 1;
  c.run();
  EXPECT_EQ(c.lane.state(), LinkState::drained);
  EXPECT_EQ(c.lane.why().code, ErrorCode::stalled);
  EXPECT_EQ(c.world.counters.stalls, 1U);
  EXPECT_EQ(c.completion().error->code, ErrorCode::stalled);
}

TEST(ConsumerLane, R36_an_idle_lane_is_never_cut) {
  Consumer c;
  c.run();
  EXPECT_EQ(c.lane.next_deadline_ns(), never_ns);
  c.world.now_ns += 100 * c.world.config.peer_stall_timeout_ns;
  c.run();
  const std::uint64_t slice = c.ask(10);
  EXPECT_EQ(c.lane.state(), LinkState::ready) << "time without anything owed does not count";
  c.answer(slice, 0, 10, true);
  EXPECT_EQ(c.completion().confirmed_bytes, 10U);
}

TEST(ConsumerLane, R28_an_end_of_the_stream_ends_all_slices_with_its_reason) {
  Consumer c;
  const std::uint64_t slice = c.ask();
  c.answer(slice, 0, 262'144, false);
  c.write(100);
  c.world.to_consumer.ended = true;
  c.run();
  ASSERT_EQ(c.lane.state(), LinkState::drained);
  const auto all = c.completions();
  ASSERT_EQ(all.size(), 2U);
  for (const Completion& end : all) {
    ASSERT_NE(end.error, nullptr);
    EXPECT_EQ(end.error->code, ErrorCode::connection_lost);
    EXPECT_EQ(end.error->path, "tcp lane 0");
  }
  EXPECT_EQ(all[0].confirmed_bytes, 262'144U);
  EXPECT_FALSE(all[0].uncertain);
  EXPECT_TRUE(all[1].uncertain && all[1].unsettled) << "nobody has answered for the WRITE";
  EXPECT_FALSE(c.lane.has_room());
}

// -- owners that misbehave
// -----------------------------------------------------------------------------

struct MisbehaviourRow {
  const char* name;
  /// Does it; `read` and `written` are the names of a READ that is out and of a WRITE that was
  /// sent.
  std::function<void(Consumer&, std::uint64_t read, std::uint64_t written)> act;
};

void payload(Consumer& c, wire::PayloadExtent extent) {
  c.owner.payload({extent}, Bytes(extent.length_bytes));
}

const MisbehaviourRow misbehaviours[] = {
    {"a READ frame", [](Consumer& c, auto, auto) { c.owner.read({1, 1, 0, 1}); }},
    {"a cancel frame", [](Consumer& c, auto read, auto) { c.owner.cancel(read); }},
    {"a result of nothing",
     [](Consumer& c, auto, auto) { c.owner.result({make_id(60, 1), 10, 0, 0}); }},
    {"a slot beyond the last",
     [](Consumer& c, auto, auto) { c.owner.result({make_id(4'000'000'000, 1), 10, 0, 0}); }},
    {"a result of an earlier generation",
     [](Consumer& c, auto, auto written) {
       c.owner.result({make_id(id_slot(written), id_generation(written) - 1), 10, 0, 0});
     }},
    {"a READ's result without a reason",
     [](Consumer& c, auto read, auto) { c.owner.result({read, 10, 0, 0}); }},
    {"more confirmed than the WRITE has",
     [](Consumer& c, auto, auto written) { c.owner.result({written, slice_bytes + 1, 0, 0}); }},
    {"more confirmed than the WRITE has, in two",
     [](Consumer& c, auto, auto written) {
       c.owner.result({written, slice_bytes - 10, 0, 0});
       c.owner.result({written, 11, 0, 0});
     }},
    {"a WRITE refused without bytes",
     [](Consumer& c, auto, auto written) {
       c.owner.result({written, 0, static_cast<std::uint16_t>(ErrorCode::io_error), 0});
     }},
    {"a WRITE answered twice",
     [](Consumer& c, auto, auto written) {
       c.owner.result({written, slice_bytes, 0, 0});
       c.owner.result({written, slice_bytes, 0, 0});
     }},
    {"a READ ended twice",
     [](Consumer& c, auto read, auto) {
       for (int i = 0; i < 2; ++i) {
         c.owner.result({read, 0, static_cast<std::uint16_t>(ErrorCode::io_error), 0});
       }
     }},
    {"payload of nothing",
     [](Consumer& c, auto, auto) { payload(c, {make_id(50, 1), 0, 0, 10, false}); }},
    {"payload of a WRITE",
     [](Consumer& c, auto, auto written) { payload(c, {written, 0, 0, 10, false}); }},
    {"payload with a gap",
     [](Consumer& c, auto read, auto) { payload(c, {read, 0, 1, 10, false}); }},
    {"payload twice",
     [](Consumer& c, auto read, auto) {
       payload(c, {read, 0, 0, 10, false});
       payload(c, {read, 0, 0, 10, false});
     }},
    {"payload that overlaps",
     [](Consumer& c, auto read, auto) {
       payload(c, {read, 0, 0, 10, false});
       payload(c, {read, 0, 9, 10, false});
     }},
    {"payload that is too long",
     [](Consumer& c, auto read, auto) {
       payload(c, {read, 0, 0, 262'144, false});
       payload(c, {read, 0, 262'144, 262'144, false});
       payload(c, {read, 0, 524'288, 262'144, true});
     }},
    {"a last extent too early",
     [](Consumer& c, auto read, auto) { payload(c, {read, 0, 0, 10, true}); }},
    {"no last extent",
     [](Consumer& c, auto read, auto) {
       payload(c, {read, 0, 0, 262'144, false});
       payload(c, {read, 0, 262'144, 262'144, false});
       payload(c, {read, 0, 524'288, slice_bytes - 524'288, false});
     }},
    {"payload behind the last word",
     [](Consumer& c, auto read, auto) {
       c.owner.result({read, 0, static_cast<std::uint16_t>(ErrorCode::io_error), 0});
       payload(c, {read, 0, 0, 10, false});
     }},
    {"bytes that are no frame", [](Consumer& c, auto, auto) { c.owner.send(pattern(500, 3)); }},
    {"zeros", [](Consumer& c, auto, auto) { c.owner.send(Bytes(64)); }},
};

TEST(ConsumerLane, R42_an_owner_that_misbehaves_ends_the_lane_and_every_slice_once) {
  for (const MisbehaviourRow& row : misbehaviours) {
    SCOPED_TRACE(row.name);
    Consumer c;
    const std::uint64_t read = c.ask();
    const std::uint64_t written = c.write();
    row.act(c, read, written);
    c.run();
    ASSERT_EQ(c.lane.state(), LinkState::drained);
    EXPECT_EQ(c.lane.why().code, ErrorCode::protocol_mismatch) << c.lane.why().message;
    EXPECT_EQ(c.completions().size(), 2U);
    EXPECT_EQ(c.lane.outstanding(), 0U);
  }
}

// Frames of the right shape, filled at random: nothing crashes, and every slice has one end.
TEST(ConsumerLane, R42_random_frames_never_crash_a_consumer) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SeededRandom random(seed);
    Consumer c;
    std::vector<std::uint64_t> names{c.ask(1000),   c.ask(5000),   c.write(700),
                                     c.write(9000), make_id(9, 1), 0};
    std::size_t ends = 0;
    for (int i = 0; i < 12 && c.lane.state() == LinkState::ready; ++i) {
      const std::uint64_t name = names[random.below(names.size())];
      const auto length = static_cast<std::uint32_t>(1 + random.below(6000));
      const auto code = static_cast<std::uint16_t>(random.below(4) == 0 ? 1 + random.below(22) : 0);
      switch (random.below(3)) {
      case 0:
        c.owner.result({name, code != 0 && random.one_in(2) ? 0 : length, code, 5});
        break;
      case 1:
        payload(c, {name, 0, random.below(3) * 500, length, random.one_in(3)});
        break;
      default:
        c.lane.request_cancel(1, c.world.now_ns);
        break;
      }
      c.run();
      ends += c.completions().size();
    }
    c.world.to_consumer.ended = true;
    c.run();
    ends += c.completions().size();
    ASSERT_EQ(ends, 4U) << "seed " << seed;
  }
}

} // namespace
} // namespace wherry::testing

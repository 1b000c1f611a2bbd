// An owner's lane against a consumer who speaks frames by hand: access, answers, cancels, and
// consumers that misbehave (R18, R25, R36, R42, R43).
#include "unit/path/tcp/lane_fixture.h"

#include <functional>

namespace wherry::testing {
namespace {

constexpr std::uint64_t memory_range = 1;
constexpr std::uint64_t file_range = 2;
constexpr std::uint64_t read_only_range = 3;
constexpr std::uint32_t range_bytes = 600'000;

struct Owner {
  explicit Owner(const WorldOptions& options = quiet())
      : world(1, options),
        lane(world.owner_stream, world.config, world.services(), access, world.now_ns),
        consumer(world.to_consumer, world.to_owner, world.random) {
    file.content = pattern(range_bytes, 2);
    access.add(memory_range, pattern(range_bytes, 1));
    access.add(file_range, file);
    access.add(read_only_range, pattern(range_bytes, 3)).writable = false;
  }
  ~Owner() {
    lane.begin_close(Error{});
    run();
    EXPECT_EQ(lane.state(), LinkState::drained);
    EXPECT_EQ(access.leases(), 0U);
    EXPECT_EQ(world.staging.in_use(), 0U);
  }

  static WorldOptions quiet() {
    WorldOptions options;
    options.unkind = 0;
    options.channel_bytes = 4 << 20;
    return options;
  }
  void run() {
    while (turn(lane, world.owner_stream, world.now_ns) || world.files.finish_one()) {
    }
  }
  wire::ResultDescriptor result() {
    run();
    const Frame frame = consumer.receive_one();
    EXPECT_EQ(frame.header.type, wire::FrameType::result);
    return frame.header.count == 1 ? wire::result_at(frame.descriptors, 0)
                                   : wire::ResultDescriptor{};
  }
  /// Payload of all segments that have come, in order.
  Bytes payload() {
    Bytes all;
    run();
    for (const Frame& frame : consumer.receive()) {
      EXPECT_EQ(frame.header.type, wire::FrameType::payload);
      all.insert(all.end(), frame.payload.begin(), frame.payload.end());
    }
    return all;
  }

  World world;
  TestOwner access;
  TestFile file;
  OwnerLane lane;
  HandPeer consumer;
};

TEST(OwnerLane, R36_a_read_is_answered_in_segments) {
  for (const std::uint64_t range : {memory_range, file_range}) {
    Owner o;
    o.consumer.read({8, range, 10, range_bytes - 10});
    o.run();
    const auto frames = o.consumer.receive();
    ASSERT_EQ(frames.size(), 3U);
    std::uint32_t at = 0;
    for (const Frame& frame : frames) {
      const wire::PayloadExtent extent = wire::extent_at(frame.descriptors, 0);
      EXPECT_EQ(extent.slice, 8U);
      EXPECT_EQ(extent.range, 0U);
      EXPECT_EQ(extent.offset, at);
      EXPECT_TRUE(frame.checksum_ok);
      EXPECT_TRUE(std::equal(frame.payload.begin(), frame.payload.end(),
                             o.access.bytes(range).begin() + 10 + at));
      at += extent.length_bytes;
      EXPECT_EQ(extent.last, at == range_bytes - 10);
    }
    EXPECT_EQ(o.access.leases(), 0U) << "given back once it has gone out";
    EXPECT_EQ(o.world.counters.reads_served, 1U);
  }
}

TEST(OwnerLane, R29_a_write_is_confirmed_once_its_bytes_are_in_place) {
  Owner o;
  const Bytes bytes = pattern(5000, 9);
  o.consumer.payload({{8, file_range, 100, 5000, true}}, bytes);
  turn(o.lane, o.world.owner_stream, o.world.now_ns);
  EXPECT_EQ(o.world.files.pending(), 1U);
  EXPECT_TRUE(o.consumer.receive().empty()) << "not stored yet";
  EXPECT_TRUE(o.lane.waits_for_files());
  const wire::ResultDescriptor result = o.result();
  EXPECT_EQ(result.slice, 8U);
  EXPECT_EQ(result.bytes, 5000U);
  EXPECT_EQ(result.code, 0U);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), o.file.content.begin() + 100));
  EXPECT_FALSE(o.lane.waits_for_files());
}

TEST(OwnerLane, R29_confirmations_keep_their_order_though_files_end_out_of_order) {
  Owner o;
  for (std::uint64_t i = 0; i < 4; ++i) {
    o.consumer.payload({{20 + i, file_range, 1000 * i, 500, true}}, pattern(500, i));
  }
  o.run();
  std::vector<std::uint64_t> slices;
  for (const Frame& frame : o.consumer.receive()) {
    for (std::size_t i = 0; i < frame.header.count; ++i) {
      slices.push_back(wire::result_at(frame.descriptors, i).slice);
    }
  }
  EXPECT_EQ(slices, (std::vector<std::uint64_t>{20, 21, 22, 23}));
}

struct RefusalRow {
  const char* name;
  std::uint64_t range;
  std::uint64_t offset;
  std::uint32_t length;
  ErrorCode read;
  ErrorCode write;
};

constexpr RefusalRow refusals[] = {
    {"no such range", 99, 0, 10, ErrorCode::not_found, ErrorCode::not_found},
    {"beyond the end", memory_range, range_bytes - 5, 10, ErrorCode::out_of_range,
     ErrorCode::out_of_range},
    {"at the end", memory_range, range_bytes, 1, ErrorCode::out_of_range, ErrorCode::out_of_range},
    {"far beyond", memory_range, UINT64_MAX - 10, 10, ErrorCode::out_of_range,
     ErrorCode::out_of_range},
    {"not writable", read_only_range, 0, 10, ErrorCode{}, ErrorCode::access_denied},
    {"the last bytes", memory_range, range_bytes - 10, 10, ErrorCode{}, ErrorCode{}},
};

TEST(OwnerLane,
     R25_every_operation_is_checked_and_a_refusal_touches_no_byte_and_no_other_operation) {
  for (const RefusalRow& row : refusals) {
    SCOPED_TRACE(row.name);
    Owner o;
    const Bytes before = o.access.bytes(memory_range);
    o.consumer.read({5, row.range, row.offset, row.length});
    o.run();
    Frame frame = o.consumer.receive_one();
    if (row.read == ErrorCode{}) {
      EXPECT_EQ(frame.payload.size(), row.length);
    } else {
      EXPECT_EQ(wire::result_at(frame.descriptors, 0).code, static_cast<std::uint16_t>(row.read));
      EXPECT_EQ(wire::result_at(frame.descriptors, 0).bytes, 0U);
    }
    if (row.offset < UINT64_MAX - 10) {
      // One segment: the refused extent between two good ones.
      const Bytes bytes = pattern(40 + row.length, 7);
      o.consumer.payload({{6, memory_range, 0, 20, true},
                          {7, row.range, row.offset, row.length, true},
                          {8, memory_range, 20, 20, true}},
                         bytes);
      o.run();
      frame = o.consumer.receive_one();
      ASSERT_EQ(frame.header.count, 3U);
      EXPECT_EQ(wire::result_at(frame.descriptors, 0).code, 0U);
      EXPECT_EQ(wire::result_at(frame.descriptors, 1).code, static_cast<std::uint16_t>(row.write));
      EXPECT_EQ(wire::result_at(frame.descriptors, 1).bytes, row.length);
      EXPECT_EQ(wire::result_at(frame.descriptors, 2).code, 0U);
      const Bytes& now = o.access.bytes(memory_range);
      EXPECT_TRUE(std::equal(now.begin(), now.begin() + 20, bytes.begin()));
      EXPECT_TRUE(std::equal(now.begin() + 20, now.begin() + 40, bytes.end() - 20));
      if (row.write != ErrorCode{}) {
        EXPECT_TRUE(std::equal(now.begin() + 40, now.end(), before.begin() + 40));
      }
    }
    EXPECT_EQ(o.lane.state(), LinkState::ready);
  }
}

TEST(OwnerLane, R36_a_corrupted_segment_is_reported_as_such) {
  Owner o;
  o.world.to_owner.flip_at = 32 + 32 + 3;
  o.consumer.payload({{6, memory_range, 0, 20, true}}, pattern(20, 1), true);
  const wire::ResultDescriptor result = o.result();
  EXPECT_EQ(result.code, static_cast<std::uint16_t>(ErrorCode::io_error));
  EXPECT_EQ(result.bytes, 20U);
  EXPECT_EQ(result.native_number, 0);
  EXPECT_EQ(o.world.counters.checksum_errors, 1U);
}

TEST(OwnerLane, R36_a_corrupted_segment_is_not_stored_into_a_file) {
  Owner o;
  const Bytes before = o.file.content;
  o.world.to_owner.flip_at = 32 + 32 + 3;
  o.consumer.payload({{6, file_range, 0, 20, true}}, pattern(20, 1), true);
  EXPECT_EQ(o.result().code, static_cast<std::uint16_t>(ErrorCode::io_error));
  EXPECT_EQ(o.file.content, before);
}

TEST(OwnerLane, R36_a_cancelled_read_ends_behind_the_segment_in_transit) {
  WorldOptions options = Owner::quiet();
  options.channel_bytes = 100'000;
  Owner o(options);
  o.consumer.read({8, memory_range, 0, range_bytes});
  o.run();
  o.consumer.cancel(8);
  o.run();
  std::vector<Frame> frames;
  FrameReader reader;
  FrameRecorder recorder;
  MemoryStream in(o.world.to_consumer, o.world.to_owner, o.world.random, 0);
  for (int i = 0; i < 20; ++i) {
    reader.progress(in, recorder, 1 << 20);
    o.run();
  }
  ASSERT_EQ(recorder.frames.size(), 2U);
  EXPECT_EQ(recorder.frames[0].header.type, wire::FrameType::payload);
  const wire::ResultDescriptor last = wire::result_at(recorder.frames[1].descriptors, 0);
  EXPECT_EQ(last.slice, 8U);
  EXPECT_EQ(last.code, static_cast<std::uint16_t>(ErrorCode::cancelled));
}

TEST(OwnerLane, R36_a_cancel_that_comes_too_late_is_no_offence) {
  Owner o;
  o.consumer.read({8, memory_range, 0, 10});
  EXPECT_EQ(o.payload().size(), 10U);
  o.consumer.cancel(8);
  o.consumer.cancel(12345);
  o.run();
  EXPECT_TRUE(o.consumer.receive().empty());
  EXPECT_EQ(o.lane.state(), LinkState::ready);
}

TEST(OwnerLane, R28_a_file_that_cannot_be_read_gives_its_errno) {
  Owner o;
  o.file.fail_after = 1;
  o.consumer.read({8, file_range, 0, range_bytes});
  o.run();
  const auto frames = o.consumer.receive();
  ASSERT_FALSE(frames.empty());
  const wire::ResultDescriptor last = wire::result_at(frames.back().descriptors, 0);
  EXPECT_EQ(last.code, static_cast<std::uint16_t>(ErrorCode::io_error));
  EXPECT_EQ(last.native_number, EIO);
}

TEST(OwnerLane, R18_leases_last_until_the_bytes_are_out_of_use) {
  WorldOptions options = Owner::quiet();
  options.channel_bytes = 100'000;
  Owner o(options);
  o.consumer.read({8, memory_range, 0, range_bytes});
  o.run();
  EXPECT_EQ(o.access.range(memory_range).leases, 1U);
  o.lane.begin_close(Error{});
  EXPECT_EQ(o.access.range(memory_range).leases, 1U);
  o.run();
  EXPECT_EQ(o.access.range(memory_range).leases, 0U);
}

// A consumer sends half a segment and stands still: the lease is not held for ever.
TEST(OwnerLane, R36_a_consumer_that_stands_still_inside_a_segment_loses_its_lease) {
  Owner o;
  const Bytes bytes = pattern(5000, 9);
  Channel sent;
  SeededRandom random(1);
  Channel none;
  HandPeer other(none, sent, random);
  other.payload({{8, memory_range, 0, 5000, true}}, bytes);
  o.consumer.send(std::span(sent.bytes).first(2000));
  o.run();
  EXPECT_EQ(o.access.leases(), 1U);
  EXPECT_EQ(o.lane.next_deadline_ns(), o.world.now_ns + o.world.config.peer_stall_timeout_ns);
  o.world.now_ns += o.world.config.peer_stall_timeout_ns;
  o.run();
  EXPECT_EQ(o.lane.state(), LinkState::drained);
  EXPECT_EQ(o.lane.why().code, ErrorCode::stalled);
  EXPECT_EQ(o.access.leases(), 0U);
}

TEST(OwnerLane, R36_a_consumer_that_does_not_take_what_it_asked_for_is_cut) {
  WorldOptions options = Owner::quiet();
  options.channel_bytes = 1000;
  Owner o(options);
  o.consumer.read({8, memory_range, 0, range_bytes});
  o.run();
  o.world.now_ns += o.world.config.peer_stall_timeout_ns;
  o.run();
  EXPECT_EQ(o.lane.state(), LinkState::drained);
  EXPECT_EQ(o.lane.why().code, ErrorCode::stalled);
}

// A consumer that writes and never reads: what waits for it is bounded.
TEST(OwnerLane, R43_answers_that_nobody_reads_are_bounded) {
  WorldOptions options = Owner::quiet();
  options.channel_bytes = 16 << 20;
  Owner o(options);
  o.world.to_consumer.capacity = 10;
  std::size_t sent = 0;
  for (; sent < 100; ++sent) {
    std::vector<wire::PayloadExtent> extents;
    extents.reserve(256);
    for (std::uint64_t i = 0; i < 256; ++i) {
      extents.push_back({sent * 256 + i, memory_range, i, 1, true});
    }
    o.consumer.payload(extents, Bytes(256));
    o.run();
    if (o.world.to_owner.available() > 0) {
      break;
    }
  }
  EXPECT_LT(sent, 100U) << "the owner went on reading";
  EXPECT_EQ(o.lane.state(), LinkState::ready);
  // Once they are read, all of them come.
  o.world.to_consumer.capacity = 4 << 20;
  std::size_t answers = 0;
  for (int i = 0; i < 10; ++i) {
    o.run();
    for (const Frame& frame : o.consumer.receive()) {
      answers += frame.header.count;
    }
  }
  EXPECT_EQ(answers, (sent + 1) * 256);
}

// -- consumers that misbehave
// ------------------------------------------------------------------------

TEST(OwnerLane, R43_more_reads_than_agreed_end_the_lane) {
  WorldOptions options = Owner::quiet();
  options.slices_max = 4;
  options.channel_bytes = 1000;
  Owner o(options);
  for (std::uint64_t i = 0; i < 4; ++i) {
    o.consumer.read({i, memory_range, 0, range_bytes});
  }
  o.run();
  EXPECT_EQ(o.lane.state(), LinkState::ready);
  o.consumer.read({4, memory_range, 0, 10});
  o.run();
  EXPECT_EQ(o.lane.state(), LinkState::drained);
  EXPECT_EQ(o.lane.why().code, ErrorCode::protocol_mismatch);
}

// Others ended behind a READ whose file is slow: their places are not free yet, but the consumer
// may not be blamed for that.
TEST(OwnerLane, R43_reads_wait_behind_a_slow_file_and_are_no_offence) {
  WorldOptions options = Owner::quiet();
  options.slices_max = 4;
  Owner o(options);
  o.consumer.read({1, file_range, 0, 100});
  for (std::uint64_t i = 2; i <= 4; ++i) {
    o.consumer.read({i, memory_range, 0, 100});
  }
  const auto turns = [&] {
    for (int i = 0; i < 10; ++i) {
      turn(o.lane, o.world.owner_stream, o.world.now_ns);
    }
  };
  turns();
  for (std::uint64_t i = 2; i <= 4; ++i) {
    o.consumer.cancel(i);
  }
  turns();
  EXPECT_EQ(o.consumer.receive().size(), 1U) << "three are cancelled, in one frame";
  o.consumer.read({5, memory_range, 0, 100});
  turns();
  ASSERT_EQ(o.lane.state(), LinkState::ready) << o.lane.why().message;
  EXPECT_TRUE(o.lane.waits_for_files());
  EXPECT_EQ(o.payload().size(), 200U);
}

struct MisbehaviourRow {
  const char* name;
  std::function<void(Owner&)> act;
};

const MisbehaviourRow misbehaviours[] = {
    {"a result", [](Owner& o) { o.consumer.result({1, 10, 0, 0}); }},
    {"bytes that are no frame", [](Owner& o) { o.consumer.send(pattern(500, 3)); }},
    {"zeros", [](Owner& o) { o.consumer.send(Bytes(64)); }},
    {"a READ of nothing", [](Owner& o) { o.consumer.read({1, memory_range, 0, 0}); }},
    {"a READ longer than a slice",
     [](Owner& o) { o.consumer.read({1, memory_range, 0, (1 << 20) + 1}); }},
    {"a READ that wraps around",
     [](Owner& o) { o.consumer.read({1, memory_range, UINT64_MAX, 2}); }},
    {"an extent of nothing",
     [](Owner& o) {
       o.consumer.payload({{1, memory_range, 0, 0, false}, {1, memory_range, 0, 5, true}},
                          Bytes(5));
     }},
    {"an extent that wraps around",
     [](Owner& o) { o.consumer.payload({{1, memory_range, UINT64_MAX, 5, true}}, Bytes(5)); }},
};

TEST(OwnerLane, R42_a_consumer_that_misbehaves_ends_the_lane_and_touches_nothing) {
  for (const MisbehaviourRow& row : misbehaviours) {
    SCOPED_TRACE(row.name);
    Owner o;
    const Bytes before = o.access.bytes(memory_range);
    o.consumer.read({77, memory_range, 0, 100});
    o.run();
    row.act(o);
    o.run();
    EXPECT_EQ(o.lane.state(), LinkState::drained);
    EXPECT_EQ(o.lane.why().code, ErrorCode::protocol_mismatch) << o.lane.why().message;
    EXPECT_EQ(o.access.bytes(memory_range), before);
    EXPECT_EQ(o.access.leases(), 0U);
  }
}

TEST(OwnerLane, R42_random_frames_never_crash_an_owner_nor_leave_its_ranges) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SeededRandom random(seed);
    Owner o;
    const Bytes read_only = o.access.bytes(read_only_range);
    for (int i = 0; i < 20 && o.lane.state() == LinkState::ready; ++i) {
      const std::uint64_t slice = random.below(4);
      const std::uint64_t range = random.below(5);
      const std::uint64_t offset =
          random.one_in(5) ? range_bytes - random.below(20) : random.below(1000);
      const auto length = static_cast<std::uint32_t>(1 + random.below(3000));
      switch (random.below(4)) {
      case 0:
        o.consumer.read({slice, range, offset, length});
        break;
      case 1:
        o.consumer.payload({{slice, range, offset, length, random.one_in(2)}},
                           pattern(length, seed));
        break;
      case 2:
        o.consumer.cancel(slice);
        break;
      default:
        o.access.range(1 + random.below(3)).withdrawn = random.one_in(2);
        break;
      }
      if (random.one_in(2)) {
        o.run();
      } else {
        turn(o.lane, o.world.owner_stream, o.world.now_ns);
      }
    }
    o.run();
    EXPECT_EQ(o.access.bytes(read_only_range), read_only);
    EXPECT_EQ(o.access.leases(), 0U);
    EXPECT_EQ(o.lane.state(), LinkState::ready) << o.lane.why().message;
  }
}

} // namespace
} // namespace wherry::testing

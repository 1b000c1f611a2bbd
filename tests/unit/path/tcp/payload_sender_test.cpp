// Slices into segments: whole, stopped at a segment's border at every step, loaded from files that
// are late, out of order or broken (R28, R30, R36).
#include "unit/path/tcp/lane_fixture.h"

namespace wherry::testing {
namespace {

constexpr std::uint32_t segment = wire::segment_bytes_max;
constexpr std::size_t three_segments = std::size_t{3} * segment;

struct Sending {
  explicit Sending(std::uint64_t seed = 1, std::size_t buffers = 8, std::size_t file_room = 4,
                   std::size_t items_max = 16)
      : random(seed), files(random, file_room), staging(segment, buffers),
        stream(nothing, channel, random, 0), sender(files, staging, items_max) {
    channel.capacity = 0;
    file.content = pattern(three_segments, 2);
  }
  ~Sending() {
    if (!gone) {
      sender.stop_all(writer);
    }
    while (files.finish_one()) {
    }
    EXPECT_TRUE(sender.empty());
    EXPECT_EQ(staging.in_use(), 0U);
  }

  void push(std::uint32_t tag, std::uint32_t offset, std::uint32_t length, bool from_file = false) {
    PayloadSender::Item item;
    item.slice = 1000 + tag;
    item.range = 6;
    item.offset = 50 + offset;
    item.local = from_file ? LocalBytes{nullptr, &file, offset}
                           : LocalBytes{memory.data() + offset, nullptr, 0};
    item.length_bytes = length;
    item.tag = tag;
    sender.push(item);
  }
  /// What a lane does in its turn.
  void turn() {
    sender.load_ahead();
    if (writer.idle()) {
      writer.begin();
      sender.build(writer, true);
      if (writer.idle()) {
        return;
      }
    }
    if (writer.progress(stream) != FrameWriter::Status::end) {
      sender.on_sent(writer);
    }
  }
  void let_through(std::size_t bytes) {
    channel.capacity = channel.available() + bytes;
    turn();
  }
  void run() {
    channel.capacity = SIZE_MAX;
    for (int i = 0; i < 100; ++i) {
      turn();
      files.finish_one();
    }
  }
  std::vector<Frame> frames() {
    SeededRandom other(1);
    MemoryStream in(channel, nothing, other, 0);
    FrameReader reader;
    FrameRecorder recorder;
    while (reader.progress(in, recorder, 1 << 20) == FrameReader::Status::budget) {
    }
    return std::move(recorder.frames);
  }
  /// Checks that what came of a slice is its leading bytes, in order; returns how many.
  std::uint32_t arrived(const std::vector<Frame>& all, std::uint32_t tag, const std::byte* from,
                        std::uint64_t offset) {
    std::uint32_t sum = 0;
    for (const Frame& frame : all) {
      std::size_t at = 0;
      for (std::size_t i = 0; i < frame.header.count; ++i) {
        const wire::PayloadExtent extent = wire::extent_at(frame.descriptors, i);
        if (extent.slice == 1000 + tag) {
          EXPECT_EQ(extent.range, 6U);
          EXPECT_EQ(extent.offset, 50 + offset + sum);
          EXPECT_TRUE(std::equal(frame.payload.begin() + static_cast<std::ptrdiff_t>(at),
                                 frame.payload.begin() +
                                     static_cast<std::ptrdiff_t>(at + extent.length_bytes),
                                 from + sum));
          sum += extent.length_bytes;
        }
        at += extent.length_bytes;
      }
      EXPECT_TRUE(frame.checksum_ok);
    }
    return sum;
  }
  const PayloadSender::Ended* ended(std::uint32_t tag) {
    for (const auto& one : sender.ended()) {
      if (one.tag == tag) {
        return &one;
      }
    }
    return nullptr;
  }

  SeededRandom random;
  LateFiles files;
  StagingPool staging;
  Channel nothing;
  Channel channel;
  MemoryStream stream;
  FrameWriter writer;
  PayloadSender sender;
  Bytes memory = pattern(three_segments, 1);
  TestFile file;
  bool gone = false; ///< stop_all() was called: once in a sender's life.
};

TEST(PayloadSender, items_share_segments_and_end_in_order) {
  Sending s;
  s.push(1, 0, 100);
  s.push(2, 100, 200);
  s.push(3, 300, segment);
  s.run();
  const auto frames = s.frames();
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].header.count, 3U);
  EXPECT_EQ(frames[0].header.payload_bytes, segment);
  EXPECT_EQ(s.arrived(frames, 3, s.memory.data() + 300, 300), segment);
  ASSERT_EQ(s.sender.ended().size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(s.sender.ended()[i].tag, i + 1);
    EXPECT_FALSE(s.sender.ended()[i].stopped);
  }
}

TEST(PayloadSender, R43_a_segment_has_as_many_extents_as_a_frame_may) {
  Sending s(1, 8, 4, 512);
  for (std::uint32_t i = 0; i < 300; ++i) {
    s.push(i, i * 10, 10);
  }
  s.run();
  const auto frames = s.frames();
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].header.count, wire::frame_descriptors_max);
  EXPECT_EQ(frames[1].header.count, 44U);
}

// Three items over two segments; after every number of bytes the middle one is stopped.
TEST(PayloadSender, R36_a_stopped_item_sends_the_segment_in_transit_and_nothing_more) {
  constexpr std::uint32_t first = 1000, middle = segment + 5000, last = 70'000;
  constexpr std::size_t all = first + middle + last + 600;
  for (std::size_t through = 0; through < all; through += through < 400 ? 1 : 9'001) {
    SCOPED_TRACE(through);
    Sending s;
    s.push(1, 0, first);
    s.push(2, first, middle);
    s.push(3, first + middle, last);
    s.let_through(through);
    const bool in_transit = s.sender.stop(2, s.writer);
    if (in_transit) {
      EXPECT_EQ(s.ended(2), nullptr);
    }
    // From here on the bytes of the middle one that are not in transit belong to somebody else.
    const auto* known = s.ended(2);
    const std::uint32_t sent_when_stopped = known != nullptr ? known->sent_bytes : 0;
    const bool over_before = known != nullptr && !known->stopped;
    s.run();
    const auto frames = s.frames();
    EXPECT_EQ(s.arrived(frames, 1, s.memory.data(), 0), first);
    EXPECT_EQ(s.arrived(frames, 3, s.memory.data() + first + middle, first + middle), last);
    const auto* ended = s.ended(2);
    ASSERT_NE(ended, nullptr);
    EXPECT_EQ(s.arrived(frames, 2, s.memory.data() + first, first), ended->sent_bytes);
    EXPECT_EQ(ended->stopped, ended->sent_bytes < middle);
    if (!in_transit && !over_before) {
      EXPECT_EQ(ended->sent_bytes, sent_when_stopped);
    }
    // Whole segments only: none of it, what the first segment has of it, or all.
    EXPECT_TRUE(ended->sent_bytes == 0 || ended->sent_bytes == segment - first ||
                ended->sent_bytes == middle);
    EXPECT_EQ(s.sender.ended().size(), 3U);
  }
}

TEST(PayloadSender, R36_what_is_taken_back_of_a_file_is_sent_from_the_same_buffers) {
  for (std::size_t through : {0UL, 100UL, 1000UL, 300'000UL}) {
    Sending s;
    s.push(1, 0, 2 * segment, true);
    s.push(2, 0, 3 * segment, true);
    s.push(3, 0, 1000);
    s.sender.load_ahead();
    while (s.files.finish_one()) {
      s.sender.load_ahead();
    }
    s.let_through(through);
    s.sender.stop(3, s.writer);
    s.run();
    const auto frames = s.frames();
    EXPECT_EQ(s.arrived(frames, 1, s.file.content.data(), 0), 2 * segment);
    EXPECT_EQ(s.arrived(frames, 2, s.file.content.data(), 0), 3 * segment);
    EXPECT_EQ(s.arrived(frames, 3, s.memory.data(), 0), 0U);
  }
}

TEST(PayloadSender, R36_files_that_are_late_and_out_of_order_are_sent_in_order) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Sending s(seed, 2 + seed % 5, 1 + seed % 3);
    s.push(1, 10, 2 * segment + 100, true);
    s.push(2, 0, 500, true);
    s.push(3, 0, 500);
    s.push(4, 700, segment, true);
    s.run();
    const auto frames = s.frames();
    EXPECT_EQ(s.arrived(frames, 1, s.file.content.data() + 10, 10), 2 * segment + 100);
    EXPECT_EQ(s.arrived(frames, 2, s.file.content.data(), 0), 500U);
    EXPECT_EQ(s.arrived(frames, 3, s.memory.data(), 0), 500U);
    EXPECT_EQ(s.arrived(frames, 4, s.file.content.data() + 700, 700), segment);
    EXPECT_EQ(s.staging.in_use(), 0U);
    EXPECT_FALSE(s.sender.waiting_for_files());
  }
}

TEST(PayloadSender, R43_loading_ahead_is_bounded) {
  Sending s(1, 100, 100, 64);
  for (std::uint32_t i = 0; i < 60; ++i) {
    s.push(i, 0, segment, true);
  }
  s.sender.load_ahead();
  EXPECT_LE(s.staging.in_use(), 16U);
  EXPECT_TRUE(s.sender.waiting_for_files());
}

TEST(PayloadSender, R28_a_load_that_fails_ends_its_item_only_with_the_errno) {
  for (int good = 0; good < 3; ++good) {
    Sending s;
    TestFile broken;
    broken.content = pattern(three_segments, 7);
    broken.fail_after = good;
    PayloadSender::Item item;
    item.slice = 1001;
    item.range = 6;
    item.offset = 50;
    item.local = {nullptr, &broken, 0};
    item.length_bytes = 3 * segment;
    item.tag = 1;
    s.sender.push(item);
    s.push(2, 0, 900);
    s.push(3, 0, 900, true);
    s.run();
    const auto frames = s.frames();
    const auto* ended = s.ended(1);
    ASSERT_NE(ended, nullptr);
    EXPECT_TRUE(ended->stopped);
    ASSERT_NE(ended->error, nullptr);
    EXPECT_EQ(ended->error->native_number, EIO);
    EXPECT_EQ(ended->sent_bytes, s.arrived(frames, 1, broken.content.data(), 0));
    EXPECT_LE(ended->sent_bytes, static_cast<std::uint32_t>(good) * segment);
    EXPECT_EQ(s.arrived(frames, 2, s.memory.data(), 0), 900U);
    EXPECT_EQ(s.arrived(frames, 3, s.file.content.data(), 0), 900U);
  }
}

TEST(PayloadSender, R30_an_item_does_not_end_while_a_file_is_being_read_for_it) {
  Sending s;
  s.push(1, 0, 2 * segment, true);
  s.sender.load_ahead();
  EXPECT_EQ(s.sender.loading(), 2U);
  s.sender.stop(1, s.writer);
  EXPECT_EQ(s.ended(1), nullptr);
  s.files.finish_one();
  EXPECT_EQ(s.ended(1), nullptr);
  s.files.finish_one();
  ASSERT_NE(s.ended(1), nullptr);
  EXPECT_EQ(s.ended(1)->sent_bytes, 0U);
  EXPECT_TRUE(s.ended(1)->stopped);
  EXPECT_EQ(s.staging.in_use(), 0U);
}

// The stream is gone at every point: what was begun counts as sent, what was not does not, and
// nothing is kept.
TEST(PayloadSender, R29_the_end_of_the_stream_counts_what_was_begun_as_sent) {
  for (const bool from_file : {false, true}) {
    for (std::size_t through = 0; through < 2 * segment + 200;
         through += through < 200 ? 1 : 20'001) {
      SCOPED_TRACE(through);
      Sending s;
      s.push(1, 0, 2 * segment, from_file);
      s.push(2, 0, 100);
      s.sender.load_ahead();
      while (s.files.finish_one()) {
      }
      s.let_through(through);
      const std::size_t begun =
          (s.channel.written > 0 ? 1 : 0) + (s.channel.written > 64 + segment ? 1 : 0);
      s.sender.stop_all(s.writer);
      s.gone = true;
      ASSERT_NE(s.ended(1), nullptr);
      EXPECT_EQ(s.ended(1)->sent_bytes, begun * segment);
      ASSERT_NE(s.ended(2), nullptr);
      EXPECT_TRUE(s.sender.empty());
      EXPECT_EQ(s.staging.in_use(), 0U);
    }
  }
}

} // namespace
} // namespace wherry::testing

// Batches of frames: whole over short writes, and taken back at segment borders (R36).
#include "unit/path/tcp/lane_fixture.h"

namespace wherry::testing {
namespace {

/// A batch of one control frame and three segments over `payload`.
struct Batch {
  explicit Batch(SeededRandom& random, std::uint64_t unkind = 0)
      : stream(nothing, channel, random, unkind) {}

  void build(bool checksum) {
    writer.begin();
    writer.control<8>(wire::FrameType::cancel, 2, [](std::size_t i, std::span<std::byte, 8> out) {
      wire::encode(wire::CancelDescriptor{100 + i}, out);
    });
    std::uint32_t at = 0;
    for (const std::uint32_t length : {50U, 1U, 70U}) {
      add_segment(at, length, checksum);
      at += length;
    }
  }
  void add_segment(std::uint32_t at, std::uint32_t length, bool checksum) {
    const wire::PayloadExtent extent{7, 1, at, length, false};
    const iovec piece{payload.data() + at, length};
    ASSERT_TRUE(writer.segment(std::span(&extent, 1), std::span(&piece, 1), checksum));
  }
  /// Lets exactly so many bytes through.
  void write(std::size_t bytes) {
    channel.capacity = channel.available() + bytes;
    while (channel.room() > 0 && writer.progress(stream) == FrameWriter::Status::would_block) {
    }
  }
  std::vector<Frame> frames() {
    Channel none;
    SeededRandom random(1);
    MemoryStream in(channel, none, random, 0);
    FrameReader reader;
    FrameRecorder recorder;
    EXPECT_EQ(reader.progress(in, recorder, 1 << 20), FrameReader::Status::would_block);
    return std::move(recorder.frames);
  }

  Channel nothing;
  Channel channel;
  MemoryStream stream;
  FrameWriter writer;
  Bytes payload = pattern(400, 5);
};

constexpr std::size_t control_bytes = 32 + 2 * 8;
constexpr std::size_t segment_bytes[] = {32 + 32 + 50, 32 + 32 + 1, 32 + 32 + 70};
constexpr std::size_t batch_bytes =
    control_bytes + segment_bytes[0] + segment_bytes[1] + segment_bytes[2];

TEST(FrameWriter, R36_a_batch_is_whole_however_short_the_writes_are) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SeededRandom random(seed);
    Batch batch(random, 2);
    batch.build(seed % 2 == 0);
    while (batch.writer.progress(batch.stream) != FrameWriter::Status::done) {
    }
    EXPECT_TRUE(batch.writer.idle());
    EXPECT_EQ(batch.writer.segments_sent(), 3U);
    EXPECT_EQ(batch.writer.bytes(), batch_bytes);
    const auto frames = batch.frames();
    ASSERT_EQ(frames.size(), 4U);
    EXPECT_EQ(wire::cancel_at(frames[0].descriptors, 1).slice, 101U);
    EXPECT_EQ(frames[3].payload, Bytes(batch.payload.begin() + 51, batch.payload.begin() + 121));
    for (const Frame& frame : frames) {
      EXPECT_TRUE(frame.checksum_ok);
    }
  }
}

TEST(FrameWriter, a_write_that_fills_the_stream_is_not_followed_by_another) {
  SeededRandom random(1);
  Batch batch(random);
  batch.build(false);
  batch.channel.capacity = 10;
  EXPECT_EQ(batch.writer.progress(batch.stream), FrameWriter::Status::would_block);
  EXPECT_EQ(batch.stream.writes, 1U);
}

// After every number of bytes: what has not begun is taken back, and what follows it is a stream
// without a gap, whose next segment takes the place of the first that was taken back.
TEST(FrameWriter, R36_segments_are_taken_back_at_their_borders_only) {
  for (std::size_t written = 0; written <= batch_bytes; ++written) {
    SeededRandom random(1);
    Batch batch(random);
    batch.build(true);
    batch.write(written);
    std::size_t begun = 0;
    for (std::size_t border = control_bytes, i = 0; i < 3; border += segment_bytes[i++]) {
      begun += written > border ? 1 : 0;
    }
    const std::size_t frames_begun = batch.writer.frames();
    ASSERT_EQ(batch.writer.unsend(), begun) << written;
    EXPECT_EQ(batch.writer.segments(), begun);
    EXPECT_EQ(frames_begun - batch.writer.frames(), 3 - begun);
    EXPECT_EQ(batch.writer.unsend(), begun) << "twice is once";
    batch.channel.capacity = 4096;
    ASSERT_EQ(batch.writer.progress(batch.stream), FrameWriter::Status::done);
    batch.writer.begin();
    batch.add_segment(300, 100, true);
    ASSERT_EQ(batch.writer.progress(batch.stream), FrameWriter::Status::done);
    const auto frames = batch.frames();
    ASSERT_EQ(frames.size(), 1 + begun + 1);
    EXPECT_EQ(frames.back().payload, Bytes(batch.payload.begin() + 300, batch.payload.end()));
    EXPECT_TRUE(frames.back().checksum_ok);
  }
}

TEST(FrameWriter, R43_a_batch_is_bounded) {
  SeededRandom random(1);
  Batch batch(random);
  batch.writer.begin();
  std::size_t frames = 0;
  while (batch.writer.has_control_room(wire::FrameType::read, wire::frame_descriptors_max)) {
    batch.writer.control<32>(wire::FrameType::read, wire::frame_descriptors_max,
                             [](std::size_t i, std::span<std::byte, 32> out) {
                               wire::encode(wire::ReadDescriptor{i, 1, 0, 1}, out);
                             });
    ++frames;
  }
  EXPECT_GE(frames, 1U);
  // All segments that a batch may have still fit behind, however many extents they have.
  std::vector<wire::PayloadExtent> extents(wire::frame_descriptors_max, {7, 1, 0, 1, false});
  std::vector<iovec> pieces(extents.size(), {batch.payload.data(), 1});
  std::size_t segments = 0;
  while (batch.writer.has_segment_room(extents.size())) {
    ASSERT_TRUE(batch.writer.segment(extents, pieces, true));
    ++segments;
  }
  EXPECT_GE(segments, 1U);
  EXPECT_LE(segments, FrameWriter::segments_max);
  EXPECT_FALSE(batch.writer.segment(extents, pieces, true));
  EXPECT_FALSE(batch.writer.has_control_room(wire::FrameType::cancel, 1))
      << "control frames come first";
}

struct EndRow {
  const char* name;
  int error;
  ErrorCode code;
};

TEST(FrameWriter, R28_the_end_of_a_stream_says_which_call_and_why) {
  for (const EndRow& row : {EndRow{"broken", EPIPE, ErrorCode::connection_lost},
                            EndRow{"reset", ECONNRESET, ErrorCode::connection_lost},
                            EndRow{"memory is gone", EFAULT, ErrorCode::invalidated}}) {
    SeededRandom random(1);
    Batch batch(random);
    batch.build(false);
    batch.channel.broken = row.error;
    EXPECT_EQ(batch.writer.progress(batch.stream), FrameWriter::Status::end) << row.name;
    EXPECT_EQ(batch.writer.error().code, row.code) << row.name;
    EXPECT_EQ(batch.writer.error().native_number, row.error);
    EXPECT_EQ(batch.writer.error().native_call, "sendmsg");
  }
}

} // namespace
} // namespace wherry::testing

// Frames out of bytes: at every split, payload where its targets say, bad frames refused (R36,
// R42).
#include "base/crc32c.h"
#include "unit/path/tcp/lane_fixture.h"
#include "wire/bytes.h"

#include <functional>

namespace wherry::testing {
namespace {

/// Hands out what the test says, a chunk a call, and notes what was asked for.
class ChunkStream final : public ByteStream {
public:
  IoResult readv(std::span<const iovec> into) override {
    asked.emplace_back(into.begin(), into.end());
    if (at == bytes.size()) {
      return error_at_end == EAGAIN ? IoResult{0, EAGAIN} : IoResult{0, error_at_end};
    }
    std::size_t left = std::min(chunk, bytes.size() - at);
    std::size_t moved = 0;
    for (const iovec& piece : into) {
      const std::size_t n = std::min(left, piece.iov_len);
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), n,
                  static_cast<std::byte*>(piece.iov_base));
      at += n;
      left -= n;
      moved += n;
    }
    return {moved, 0};
  }
  IoResult writev(std::span<const iovec> from) override {
    std::size_t moved = 0;
    for (const iovec& piece : from) {
      const auto* p = static_cast<const std::byte*>(piece.iov_base);
      bytes.insert(bytes.end(), p, p + piece.iov_len);
      moved += piece.iov_len;
    }
    return {moved, 0};
  }

  Bytes bytes;
  std::size_t at = 0;
  std::size_t chunk = SIZE_MAX;
  int error_at_end = EAGAIN; ///< 0: the end of the stream.
  std::vector<std::vector<iovec>> asked;
};

/// A cancel frame, a small segment of two extents, a result frame.
Bytes small_stream(bool checksum = true) {
  FrameWriter writer;
  ChunkStream stream;
  Bytes payload = pattern(100, 3);
  writer.begin();
  writer.control<8>(wire::FrameType::cancel, 1, [](std::size_t, std::span<std::byte, 8> out) {
    wire::encode(wire::CancelDescriptor{5}, out);
  });
  const wire::PayloadExtent extents[] = {{1, 0, 0, 30, true}, {2, 0, 0, 70, true}};
  const iovec piece{payload.data(), payload.size()};
  EXPECT_TRUE(writer.segment(extents, std::span(&piece, 1), checksum));
  EXPECT_EQ(writer.progress(stream), FrameWriter::Status::done);
  writer.begin();
  writer.control<24>(wire::FrameType::result, 1, [](std::size_t, std::span<std::byte, 24> out) {
    wire::encode(wire::ResultDescriptor{9, 10, 0, 0}, out);
  });
  EXPECT_EQ(writer.progress(stream), FrameWriter::Status::done);
  return std::move(stream.bytes);
}

void read_all(FrameReader& reader, ChunkStream& stream, FrameRecorder& recorder) {
  while (stream.at < stream.bytes.size()) {
    const auto status = reader.progress(stream, recorder, 1 << 20);
    ASSERT_NE(status, FrameReader::Status::end) << reader.error().message;
  }
}

TEST(FrameReader, R36_frames_are_the_same_at_every_chunk_size) {
  const Bytes bytes = small_stream();
  for (std::size_t chunk = 1; chunk <= bytes.size(); ++chunk) {
    ChunkStream stream;
    stream.bytes = bytes;
    stream.chunk = chunk;
    FrameReader reader;
    FrameRecorder recorder;
    read_all(reader, stream, recorder);
    ASSERT_EQ(recorder.frames.size(), 3U) << chunk;
    EXPECT_EQ(recorder.frames[1].payload, pattern(100, 3));
    EXPECT_TRUE(recorder.frames[1].checksum_ok);
    EXPECT_EQ(wire::result_at(recorder.frames[2].descriptors, 0).bytes, 10U);
    EXPECT_EQ(reader.bytes(), bytes.size());
    EXPECT_EQ(reader.frames(), 3U);
  }
}

TEST(FrameReader, bytes_behind_a_handshake_come_first) {
  const Bytes bytes = small_stream();
  for (std::size_t before = 0; before <= bytes.size(); ++before) {
    ChunkStream stream;
    stream.bytes.assign(bytes.begin() + static_cast<std::ptrdiff_t>(before), bytes.end());
    FrameReader reader;
    FrameRecorder recorder;
    reader.prepend(std::span(bytes).first(before));
    EXPECT_EQ(reader.progress(stream, recorder, 1 << 20), FrameReader::Status::would_block);
    ASSERT_EQ(recorder.frames.size(), 3U) << before;
    EXPECT_EQ(recorder.frames[1].payload, pattern(100, 3));
  }
}

TEST(FrameReader, a_frame_for_which_there_is_no_room_is_offered_again) {
  ChunkStream stream;
  stream.bytes = small_stream();
  FrameReader reader;
  FrameRecorder recorder;
  recorder.waits_left = 2;
  EXPECT_EQ(reader.progress(stream, recorder, 1 << 20), FrameReader::Status::waiting);
  EXPECT_TRUE(reader.mid_frame());
  EXPECT_EQ(reader.progress(stream, recorder, 1 << 20), FrameReader::Status::waiting);
  EXPECT_EQ(reader.progress(stream, recorder, 1 << 20), FrameReader::Status::would_block);
  EXPECT_EQ(recorder.frames.size(), 3U);
  EXPECT_FALSE(reader.mid_frame());
}

TEST(FrameReader, R36_a_read_is_bounded_by_its_budget) {
  ChunkStream stream;
  stream.bytes = small_stream();
  stream.chunk = 40;
  FrameReader reader;
  FrameRecorder recorder;
  int rounds = 0;
  while (stream.at < stream.bytes.size()) {
    const std::uint64_t before = reader.bytes();
    reader.progress(stream, recorder, 64);
    EXPECT_LE(reader.bytes() - before, 64U + 40U);
    ASSERT_LT(++rounds, 100);
  }
  EXPECT_GE(rounds, 3);
}

// -- where payload goes --------------------------------------------------------------------------

/// Targets by extent; null ones are dropped.
class TargetSink final : public FrameSink {
public:
  Result<Verdict> on_frame(const wire::FrameHeader& header, std::span<const std::byte>,
                           std::span<PayloadTarget> out) override {
    if (header.type == wire::FrameType::payload) {
      std::copy(targets.begin(), targets.end(), out.begin());
    }
    return Verdict::taken;
  }
  void on_payload_end(bool ok) override { ends.push_back(ok); }

  std::vector<PayloadTarget> targets;
  std::vector<bool> ends;
};

Bytes segment(const std::vector<std::uint32_t>& lengths, Bytes& payload, bool checksum) {
  FrameWriter writer;
  ChunkStream stream;
  std::vector<wire::PayloadExtent> extents;
  extents.reserve(lengths.size());
  for (const std::uint32_t length : lengths) {
    extents.push_back({extents.size() + 1, 0, 0, length, true});
  }
  const iovec piece{payload.data(), payload.size()};
  writer.begin();
  EXPECT_TRUE(writer.segment(extents, std::span(&piece, 1), checksum));
  EXPECT_EQ(writer.progress(stream), FrameWriter::Status::done);
  return std::move(stream.bytes);
}

TEST(FrameReader, R36_large_payload_is_read_into_its_targets_without_a_copy) {
  Bytes payload = pattern(200'000, 8);
  ChunkStream stream;
  stream.bytes = segment({200'000}, payload, false);
  FrameReader reader;
  Bytes arrived(payload.size());
  TargetSink sink;
  sink.targets = {{arrived.data(), 200'000}};
  EXPECT_EQ(reader.progress(stream, sink, 1 << 20), FrameReader::Status::would_block);
  EXPECT_EQ(arrived, payload);
  // The first read takes at most the read-ahead buffer, the second goes to the target first, with
  // no more behind it than the next header takes.
  ASSERT_GE(stream.asked.size(), 2U);
  EXPECT_LE(stream.asked[0].front().iov_len, 16U * 1024);
  const auto& second = stream.asked[1];
  ASSERT_EQ(second.size(), 2U);
  EXPECT_GE(static_cast<std::byte*>(second[0].iov_base), arrived.data());
  EXPECT_EQ(static_cast<std::byte*>(second[0].iov_base) + second[0].iov_len,
            arrived.data() + arrived.size());
  EXPECT_EQ(second[1].iov_len, 64U);
}

TEST(FrameReader, R36_extents_that_nobody_wants_touch_no_byte) {
  for (const bool checksum : {false, true}) {
    Bytes payload = pattern(150'000, 9);
    for (const std::size_t chunk : {1000UL, 70'000UL, SIZE_MAX}) {
      ChunkStream stream;
      stream.bytes = segment({20'000, 100'000, 30'000}, payload, checksum);
      stream.chunk = chunk;
      FrameReader reader;
      Bytes first(20'000);
      Bytes third(30'000);
      TargetSink sink;
      sink.targets = {{first.data(), 20'000}, {nullptr, 100'000}, {third.data(), 30'000}};
      while (sink.ends.empty()) {
        ASSERT_NE(reader.progress(stream, sink, 1 << 20), FrameReader::Status::end);
      }
      EXPECT_EQ(first, Bytes(payload.begin(), payload.begin() + 20'000));
      EXPECT_EQ(third, Bytes(payload.begin() + 120'000, payload.end()));
      EXPECT_TRUE(sink.ends[0]) << "dropped bytes are part of the checksum";
    }
  }
}

// Operations may overlap: the later extent wins, and nothing looks corrupt for that.
TEST(FrameReader, R36_extents_that_overlap_in_memory_are_not_taken_for_corrupt_ones) {
  Bytes payload = pattern(30'000, 12);
  for (const std::size_t chunk : {1UL, 700UL, 12'000UL, SIZE_MAX}) {
    ChunkStream stream;
    stream.bytes = segment({10'000, 10'000, 10'000}, payload, true);
    stream.chunk = chunk;
    FrameReader reader;
    Bytes memory(15'000);
    TargetSink sink;
    sink.targets = {
        {memory.data(), 10'000}, {memory.data() + 5'000, 10'000}, {memory.data(), 10'000}};
    while (sink.ends.empty()) {
      ASSERT_NE(reader.progress(stream, sink, 1 << 20), FrameReader::Status::end);
    }
    EXPECT_TRUE(sink.ends[0]) << chunk;
    EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + 10'000, payload.begin() + 20'000));
    EXPECT_TRUE(std::equal(memory.begin() + 10'000, memory.end(), payload.begin() + 15'000));
  }
}

// An extent is given up at every point of its segment: not one byte of it lands afterwards.
TEST(FrameReader, R36_payload_that_is_given_up_lands_nowhere_from_then_on) {
  Bytes payload = pattern(3000, 10);
  const Bytes bytes = segment({1000, 1000, 1000}, payload, true);
  for (std::size_t given_up = 129; given_up < bytes.size(); given_up += 37) {
    ChunkStream stream;
    stream.bytes.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(given_up));
    FrameReader reader;
    std::array<Bytes, 3> targets{Bytes(1000), Bytes(1000), Bytes(1000)};
    TargetSink sink;
    for (Bytes& target : targets) {
      sink.targets.push_back({target.data(), 1000});
    }
    ASSERT_EQ(reader.progress(stream, sink, 1 << 20), FrameReader::Status::would_block);
    ASSERT_TRUE(reader.in_payload());
    reader.discard(1);
    const Bytes before = targets[1];
    stream.bytes.insert(stream.bytes.end(), bytes.begin() + static_cast<std::ptrdiff_t>(given_up),
                        bytes.end());
    ASSERT_EQ(reader.progress(stream, sink, 1 << 20), FrameReader::Status::would_block);
    EXPECT_EQ(targets[1], before) << given_up;
    EXPECT_EQ(targets[0], Bytes(payload.begin(), payload.begin() + 1000));
    EXPECT_EQ(targets[2], Bytes(payload.begin() + 2000, payload.end()));
    ASSERT_EQ(sink.ends.size(), 1U);
    EXPECT_TRUE(sink.ends[0]);
  }
}

TEST(FrameReader, R36_every_flipped_byte_of_a_payload_shows) {
  Bytes payload = pattern(600, 11);
  const Bytes bytes = segment({600}, payload, true);
  for (std::size_t at = 64; at < bytes.size(); ++at) {
    ChunkStream stream;
    stream.bytes = bytes;
    stream.bytes[at] ^= std::byte{1};
    FrameReader reader;
    FrameRecorder recorder;
    read_all(reader, stream, recorder);
    ASSERT_EQ(recorder.frames.size(), 1U);
    EXPECT_FALSE(recorder.frames[0].checksum_ok) << at;
  }
}

// -- how a stream ends
// -----------------------------------------------------------------------------

TEST(FrameReader, R28_an_end_between_frames_and_one_inside_are_told_apart) {
  const Bytes bytes = small_stream();
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    ChunkStream stream;
    stream.bytes.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut));
    stream.error_at_end = 0;
    FrameReader reader;
    reader.expect_end();
    FrameRecorder recorder;
    ASSERT_EQ(reader.progress(stream, recorder, 1 << 20), FrameReader::Status::end) << cut;
    EXPECT_EQ(reader.error().code, ErrorCode::connection_lost);
    const bool between = cut == 0 || cut == 40 || cut == 40 + 32 + 64 + 100 || cut == bytes.size();
    EXPECT_EQ(reader.error().message.find("in the middle of a frame") == std::string::npos, between)
        << cut;
  }
}

TEST(FrameReader, R28_a_broken_stream_says_why) {
  for (const auto& [number, code] : {std::pair{ECONNRESET, ErrorCode::connection_lost},
                                     std::pair{ETIMEDOUT, ErrorCode::connection_lost},
                                     std::pair{EFAULT, ErrorCode::invalidated}}) {
    ChunkStream stream;
    stream.error_at_end = number;
    FrameReader reader;
    FrameRecorder recorder;
    ASSERT_EQ(reader.progress(stream, recorder, 1 << 20), FrameReader::Status::end);
    EXPECT_EQ(reader.error().code, code);
    EXPECT_EQ(reader.error().native_number, number);
    EXPECT_EQ(reader.error().native_call, "readv");
  }
}

// Headers that are sealed, and wrong.
struct HeaderRow {
  const char* name;
  std::function<void(std::span<std::byte>)> change;
};

void reseal(std::span<std::byte> frame) {
  std::fill_n(frame.begin() + 12, 4, std::byte{0});
  wire::FieldWriter(frame.data() + 12).u32(crc32c(frame.first(40)));
}

TEST(FrameReader, R42_bad_headers_end_the_stream) {
  const auto byte = [](std::size_t at, int value) {
    return [at, value](std::span<std::byte> f) { f[at] = static_cast<std::byte>(value); };
  };
  const HeaderRow rows[] = {
      {"type 0", byte(0, 0)},
      {"type 5", byte(0, 5)},
      {"type 255", byte(0, 255)},
      {"a flag of the future", byte(1, 2)},
      {"a checksum without payload", byte(1, 1)},
      {"no descriptor", byte(2, 0)},
      {"257 descriptors", [](auto f) { f[2] = f[3] = std::byte{1}; }},
      {"payload of a cancel", byte(4, 1)},
      {"sequence", byte(8, 1)},
      {"a field of the future", byte(31, 1)},
      {"65535 descriptors", [](auto f) { f[2] = f[3] = std::byte{255}; }},
  };
  for (const HeaderRow& row : rows) {
    ChunkStream stream;
    stream.bytes = small_stream();
    row.change(std::span(stream.bytes).first(40));
    reseal(stream.bytes);
    FrameReader reader;
    FrameRecorder recorder;
    EXPECT_EQ(reader.progress(stream, recorder, 1 << 20), FrameReader::Status::end) << row.name;
    EXPECT_EQ(reader.error().code, ErrorCode::protocol_mismatch) << row.name;
    EXPECT_TRUE(recorder.frames.empty()) << row.name;
  }
}

TEST(FrameReader,
     R42_every_flipped_bit_of_headers_and_descriptors_ends_the_stream_or_waits_for_more) {
  const Bytes bytes = small_stream();
  for (std::size_t bit = 0; bit < 8UL * (40 + 32 + 64); ++bit) {
    ChunkStream stream;
    stream.bytes = bytes;
    stream.bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    FrameReader reader;
    FrameRecorder recorder;
    const auto status = reader.progress(stream, recorder, 1 << 20);
    const std::size_t whole = bit / 8 < 40 ? 0 : 1;
    EXPECT_EQ(recorder.frames.size(), whole) << bit;
    if (status == FrameReader::Status::end) {
      EXPECT_EQ(reader.error().code, ErrorCode::protocol_mismatch) << bit;
    } else {
      EXPECT_EQ(status, FrameReader::Status::would_block)
          << bit; // A larger count: bytes are missing.
    }
  }
}

TEST(FrameReader, R42_what_the_sink_refuses_ends_the_stream) {
  class Refusing final : public FrameSink {
    Result<Verdict> on_frame(const wire::FrameHeader&, std::span<const std::byte>,
                             std::span<PayloadTarget>) override {
      return fail(ErrorCode::protocol_mismatch, "not here");
    }
    void on_payload_end(bool) override { FAIL(); }
  } sink;
  ChunkStream stream;
  stream.bytes = small_stream();
  FrameReader reader;
  EXPECT_EQ(reader.progress(stream, sink, 1 << 20), FrameReader::Status::end);
  EXPECT_EQ(reader.error().message, "not here");
}

} // namespace
} // namespace wherry::testing

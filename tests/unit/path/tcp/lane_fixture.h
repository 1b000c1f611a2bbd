// What the tests of lanes share: streams in memory that are short and late at random, files that
// end late and out of order, an owner's access check that counts its leases, and peers that speak
// frames by hand. All from one seed, on one thread.
#pragma once

#include "base/clock.h"
#include "base/random.h"
#include "path/file_io.h"
#include "path/path.h"
#include "path/staging_pool.h"
#include "path/tcp/byte_stream.h"
#include "path/tcp/consumer_lane.h"
#include "path/tcp/frame_reader.h"
#include "path/tcp/frame_writer.h"
#include "path/tcp/owner_lane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace wherry::testing {

using Bytes = std::vector<std::byte>;

inline Bytes pattern(std::size_t size, std::uint64_t seed) {
  Bytes bytes(size);
  SeededRandom(seed).fill(bytes);
  return bytes;
}

/// One direction of a connection: what has been written and not been read.
struct Channel {
  Bytes bytes;
  std::size_t begin = 0;
  std::size_t capacity = 1 << 20;
  bool ended = false;            ///< The writer has closed.
  int broken = 0;                ///< An errno for both sides.
  std::uint64_t written = 0;     ///< In all.
  std::uint64_t flip_at = never; ///< The byte of that number is changed on its way.
  static constexpr std::uint64_t never = UINT64_MAX;

  std::size_t available() const { return bytes.size() - begin; }
  std::size_t room() const { return capacity > available() ? capacity - available() : 0; }
  void put(std::span<const std::byte> in) {
    bytes.insert(bytes.end(), in.begin(), in.end());
    if (flip_at >= written && flip_at < written + in.size()) {
      bytes[bytes.size() - in.size() + static_cast<std::size_t>(flip_at - written)] ^= std::byte{4};
    }
    written += in.size();
  }
  void take(std::span<std::byte> out) {
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), out.size(), out.begin());
    begin += out.size();
    if (begin == bytes.size()) {
      bytes.clear();
      begin = 0;
    }
  }
};

/// One end of a connection. Events are edge-triggered, as network.h promises: one comes after
/// EAGAIN or a short move, and no other.
class MemoryStream final : public ByteStream {
public:
  /// `unkind`: moves are short, and EAGAIN comes although something is there, one in so many times.
  MemoryStream(Channel& in, Channel& out, SeededRandom& random, std::uint64_t unkind)
      : in_(in), out_(out), random_(random), unkind_(unkind) {}

  IoResult readv(std::span<const iovec> into) override {
    ++reads;
    if (in_.broken != 0) {
      return {0, in_.broken};
    }
    const std::size_t offered = total(into);
    EXPECT_GT(offered, 0U);
    if (in_.available() == 0 && in_.ended) {
      return {0, 0};
    }
    const std::size_t count = draw(std::min(offered, in_.available()));
    wants_read_ = count < offered;
    if (count == 0) {
      return {0, EAGAIN};
    }
    std::size_t left = count;
    for (const iovec& piece : into) {
      const std::size_t n = std::min(left, piece.iov_len);
      in_.take(std::span(static_cast<std::byte*>(piece.iov_base), n));
      left -= n;
    }
    return {count, 0};
  }

  IoResult writev(std::span<const iovec> from) override {
    ++writes;
    if (out_.broken != 0) {
      return {0, out_.broken};
    }
    const std::size_t offered = total(from);
    EXPECT_GT(offered, 0U);
    const std::size_t count = draw(std::min(offered, out_.room()));
    wants_write_ = count < offered;
    if (count == 0) {
      return {0, EAGAIN};
    }
    std::size_t left = count;
    for (const iovec& piece : from) {
      const std::size_t n = std::min(left, piece.iov_len);
      out_.put(std::span(static_cast<const std::byte*>(piece.iov_base), n));
      left -= n;
    }
    return {count, 0};
  }

  struct Events {
    bool readable = false;
    bool writable = false;
    bool hangup = false;
  };
  /// What has become possible since it was last said.
  Events take_events() {
    Events events;
    const bool over = in_.ended || in_.broken != 0;
    // An end is said once: whoever stops reading before it, because a read was short, hears no
    // more.
    events.hangup = over && !hangup_said_;
    events.readable = wants_read_ && (in_.available() > 0 || events.hangup);
    events.writable = wants_write_ && (out_.room() > 0 || (out_.broken != 0 && events.hangup));
    hangup_said_ |= over;
    wants_read_ &= !events.readable;
    wants_write_ &= !events.writable;
    return events;
  }

  std::uint64_t reads = 0;
  std::uint64_t writes = 0;

private:
  static std::size_t total(std::span<const iovec> pieces) {
    std::size_t sum = 0;
    for (const iovec& piece : pieces) {
      sum += piece.iov_len;
    }
    return sum;
  }
  std::size_t draw(std::size_t most) {
    if (most == 0 || unkind_ == 0) {
      return most;
    }
    if (random_.one_in(unkind_ * 2)) {
      return 0;
    }
    return random_.one_in(unkind_) ? 1 + static_cast<std::size_t>(random_.below(most)) : most;
  }

  Channel& in_;
  Channel& out_;
  SeededRandom& random_;
  const std::uint64_t unkind_;
  bool wants_read_ = false;
  bool wants_write_ = false;
  bool hangup_said_ = false;
};

/// A file range's native owner, in memory.
struct TestFile final : NativeOwner {
  Bytes content;
  int fail_after = -1; ///< So many transfers are good; the next one and all others fail with EIO.
};

/// Transfers end when the test says so, in the order that the seed says.
class LateFiles final : public FileIo {
public:
  explicit LateFiles(SeededRandom& random, std::size_t room = 64) : random_(random), room_(room) {}

  bool start(FileTransfer& transfer) override {
    if (pending_.size() >= room_) {
      ++refused;
      return false;
    }
    pending_.push_back(&transfer);
    return true;
  }
  std::size_t deliver() override { return 0; }

  std::size_t pending() const { return pending_.size(); }
  /// Ends one transfer. False: there is none.
  bool finish_one() {
    if (pending_.empty()) {
      return false;
    }
    const auto at = static_cast<std::size_t>(random_.below(pending_.size()));
    FileTransfer& transfer = *pending_[at];
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(at));
    move(transfer);
    transfer.owner->on_transfer(transfer);
    return true;
  }

  std::uint64_t refused = 0;
  void set_room(std::size_t room) { room_ = room; }

private:
  static void move(FileTransfer& transfer) {
    auto& file = static_cast<TestFile&>(*transfer.file);
    const std::size_t size = file.content.size();
    if (file.fail_after == 0 || transfer.offset > size ||
        transfer.length_bytes > size - transfer.offset) {
      transfer.error = std::make_unique<Error>(native_error("pread", EIO, "the test's file"));
      return;
    }
    if (file.fail_after > 0) {
      --file.fail_after;
    }
    std::byte* at = file.content.data() + transfer.offset;
    if (transfer.write) {
      std::copy_n(transfer.bytes, transfer.length_bytes, at);
    } else {
      std::copy_n(at, transfer.length_bytes, transfer.bytes);
    }
  }

  SeededRandom& random_;
  std::size_t room_;
  std::vector<FileTransfer*> pending_;
};

/// The owner's access check over a few ranges.
class TestOwner final : public OwnerAccess {
public:
  struct Range {
    Bytes memory;
    TestFile* file = nullptr;
    bool writable = true;
    bool withdrawn = false;
    std::uint64_t leases = 0;
  };

  Range& add(std::uint64_t id, Bytes memory) {
    ranges_[id].memory = std::move(memory);
    return ranges_[id];
  }
  Range& add(std::uint64_t id, TestFile& file) {
    ranges_[id].file = &file;
    return ranges_[id];
  }
  Range& range(std::uint64_t id) { return ranges_.at(id); }
  /// The bytes as they are in place now.
  Bytes& bytes(std::uint64_t id) {
    return range(id).file != nullptr ? range(id).file->content : range(id).memory;
  }

  Grant acquire(std::uint64_t range, std::uint64_t offset, std::uint64_t length_bytes,
                Access access) override {
    const auto found = ranges_.find(range);
    if (found == ranges_.end()) {
      return {ErrorCode::not_found, {}, 0};
    }
    Range& it = found->second;
    const std::size_t size = bytes(range).size();
    if (it.withdrawn) {
      return {ErrorCode::range_withdrawn, {}, 0};
    }
    if (offset > size || length_bytes > size - offset) {
      return {ErrorCode::out_of_range, {}, 0};
    }
    if (access == Access::write && !it.writable) {
      return {ErrorCode::access_denied, {}, 0};
    }
    ++it.leases;
    leases_[++last_lease_] = range;
    const LocalBytes local = it.file != nullptr ? LocalBytes{nullptr, it.file, offset}
                                                : LocalBytes{it.memory.data() + offset, nullptr, 0};
    return {ErrorCode{}, local, last_lease_};
  }
  void release(std::uint64_t lease) override {
    const auto found = leases_.find(lease);
    ASSERT_NE(found, leases_.end()) << "a lease was given back twice";
    --ranges_.at(found->second).leases;
    leases_.erase(found);
  }
  std::size_t leases() const { return leases_.size(); }

private:
  std::map<std::uint64_t, Range> ranges_;
  std::map<std::uint64_t, std::uint64_t> leases_;
  std::uint64_t last_lease_ = 0;
};

/// A frame as it came, for tests that speak frames by hand.
struct Frame {
  wire::FrameHeader header;
  Bytes descriptors;
  Bytes payload;
  bool checksum_ok = true;
};

/// Takes every frame, keeps it.
class FrameRecorder final : public FrameSink {
public:
  Result<Verdict> on_frame(const wire::FrameHeader& header, std::span<const std::byte> descriptors,
                           std::span<PayloadTarget> targets) override {
    if (waits_left > 0) {
      --waits_left;
      return Verdict::wait;
    }
    Frame frame;
    frame.header = header;
    frame.descriptors.assign(descriptors.begin(), descriptors.end());
    frame.payload.resize(header.payload_bytes);
    std::size_t at = 0;
    for (std::size_t i = 0; header.type == wire::FrameType::payload && i < header.count; ++i) {
      const std::uint32_t length = wire::extent_at(descriptors, i).length_bytes;
      targets[i] = {frame.payload.data() + at, length};
      at += length;
    }
    frames.push_back(std::move(frame));
    return Verdict::taken;
  }
  void on_payload_end(bool checksum_ok) override { frames.back().checksum_ok = checksum_ok; }

  std::vector<Frame> frames;
  int waits_left = 0;
};

/// The other end of a lane under test, by hand.
class HandPeer {
public:
  HandPeer(Channel& in, Channel& out, SeededRandom& random)
      : out_(out), stream_(in, out, random, 0) {}

  void send(std::span<const std::byte> bytes) { out_.put(bytes); }
  void read(const wire::ReadDescriptor& d) { control<32>(wire::FrameType::read, d); }
  void result(const wire::ResultDescriptor& d) { control<24>(wire::FrameType::result, d); }
  void cancel(std::uint64_t slice) {
    control<8>(wire::FrameType::cancel, wire::CancelDescriptor{slice});
  }
  void payload(const std::vector<wire::PayloadExtent>& extents, std::span<const std::byte> bytes,
               bool checksum = false) {
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    writer_.begin();
    EXPECT_TRUE(writer_.segment(extents, std::span(&piece, 1), checksum));
    flush();
  }
  /// The frames that have come since the last call.
  std::vector<Frame> receive() {
    FrameRecorder recorder;
    while (reader_.progress(stream_, recorder, 1 << 20) == FrameReader::Status::budget) {
    }
    return std::move(recorder.frames);
  }
  /// The only frame that has come.
  Frame receive_one() {
    auto frames = receive();
    EXPECT_EQ(frames.size(), 1U);
    return frames.empty() ? Frame{} : std::move(frames.front());
  }

private:
  template <std::size_t Size, class Descriptor>
  void control(wire::FrameType type, const Descriptor& d) {
    writer_.begin();
    writer_.control<Size>(
        type, 1, [&](std::size_t, std::span<std::byte, Size> out) { wire::encode(d, out); });
    flush();
  }
  void flush() {
    while (writer_.progress(stream_) == FrameWriter::Status::would_block) {
      ASSERT_GT(out_.room(), 0U) << "the hand's frames do not fit";
    }
  }

  Channel& out_;
  MemoryStream stream_;
  FrameReader reader_;
  FrameWriter writer_;
};

struct WorldOptions {
  std::uint64_t unkind = 2; ///< See MemoryStream; 0: streams move all that they can.
  std::size_t channel_bytes = 200'000;
  bool checksums = true;
  std::uint32_t slices_max = 64;
  std::size_t staging_buffers = 8;
  std::size_t file_room = 4;
  std::uint64_t stall_timeout_ns = 1'000'000'000;
};

/// Everything around lanes; one of them, or both, are made by the test.
struct World {
  explicit World(std::uint64_t seed, const WorldOptions& options = {})
      : random(seed), files(random, options.file_room),
        staging(wire::segment_bytes_max, options.staging_buffers),
        consumer_stream(to_consumer, to_owner, random, options.unkind),
        owner_stream(to_owner, to_consumer, random, options.unkind) {
    to_owner.capacity = to_consumer.capacity = options.channel_bytes;
    config.name = "tcp lane 0";
    config.slices_max = options.slices_max;
    config.payload_checksums = options.checksums;
    config.cancel_grace_ns = 100'000'000;
    config.peer_stall_timeout_ns = options.stall_timeout_ns;
  }
  LaneServices services() { return {files, staging, counters}; }

  std::uint64_t now_ns = 1'000'000;
  SeededRandom random;
  Channel to_owner;
  Channel to_consumer;
  LateFiles files;
  StagingPool staging;
  LaneCounters counters;
  MemoryStream consumer_stream;
  MemoryStream owner_stream;
  LaneConfig config;
};

/// A lane with its stream's events delivered first.
template <class L>
bool turn(L& lane, MemoryStream& stream, std::uint64_t now_ns) {
  const auto events = stream.take_events();
  if (events.readable || events.writable || events.hangup) {
    lane.on_event(events.readable, events.writable, events.hangup);
  }
  return lane.progress(now_ns);
}

/// Both ends of a lane.
class LanePair {
public:
  explicit LanePair(std::uint64_t seed, const WorldOptions& options = {})
      : world(seed, options),
        consumer(std::make_unique<ConsumerLane>(world.consumer_stream, world.config,
                                                world.services(), world.now_ns)),
        owner(std::make_unique<OwnerLane>(world.owner_stream, world.config, world.services(),
                                          access, world.now_ns)) {}

  /// One thing happens: an end has its turn, or a file transfer ends.
  void step() {
    switch (world.random.below(3)) {
    case 0:
      turn(*consumer, world.consumer_stream, world.now_ns);
      break;
    case 1:
      turn(*owner, world.owner_stream, world.now_ns);
      break;
    default:
      world.files.finish_one();
      break;
    }
    collect();
  }
  /// Until nothing happens any more.
  void run() {
    for (int quiet = 0; quiet < 40; ++quiet) {
      bool moved = turn(*consumer, world.consumer_stream, world.now_ns);
      moved |= turn(*owner, world.owner_stream, world.now_ns);
      moved |= world.files.finish_one();
      collect();
      if (moved) {
        quiet = 0;
      }
    }
  }
  void collect() const {
    std::array<Completion, 16> out;
    while (const std::size_t count = consumer->poll(out)) {
      for (std::size_t i = 0; i < count; ++i) {
        on_completion(out[i]);
      }
    }
  }

  /// Called for each completion as it comes.
  std::function<void(Completion&)> on_completion = [this](Completion& completion) {
    completions.push_back(std::move(completion));
  };
  std::vector<Completion> completions;

  World world;
  TestOwner access;
  std::unique_ptr<ConsumerLane> consumer;
  std::unique_ptr<OwnerLane> owner;
};

} // namespace wherry::testing

// Reads frames from a byte stream: a resumable state machine, without a socket inside.
//
// Payload goes straight to its targets; the read-ahead buffer stands behind them in the same readv,
// so that the next header costs no call of its own (R36). While much payload is left, only as much
// is read ahead as the next header takes: then no payload byte is copied in user space.
#pragma once

#include "base/error.h"
#include "path/tcp/byte_stream.h"
#include "wire/frames.h"

#include <sys/uio.h>
#include <xxhash.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace wherry {

/// Where a piece of payload goes; `at` null: nowhere, it is read and dropped.
struct PayloadTarget {
  std::byte* at = nullptr;
  std::uint32_t length_bytes = 0;
};

/// What a lane does with frames. Called from FrameReader::progress only.
class FrameSink {
public:
  virtual ~FrameSink() = default;
  enum class Verdict : std::uint8_t {
    taken,
    wait, ///< No room now: the reader offers the same frame again at the next progress().
  };
  /// A frame whose descriptors have been verified. For payload frames, fills one target an extent.
  /// An error ends the lane.
  virtual Result<Verdict> on_frame(const wire::FrameHeader& header,
                                   std::span<const std::byte> descriptors,
                                   std::span<PayloadTarget> targets) = 0;
  /// All payload of the last payload frame is where its targets said.
  virtual void on_payload_end(bool checksum_ok) = 0;
};

class FrameReader {
public:
  explicit FrameReader(std::size_t read_ahead_bytes = 16UL * 1024);

  enum class Status : std::uint8_t {
    would_block, ///< The stream has nothing now.
    budget,      ///< There may be more: call again.
    waiting,     ///< The sink has no room: call again when that changed.
    end,         ///< The stream ended; error() says how.
  };
  /// Reads at most about `bytes_max`.
  Status progress(ByteStream& stream, FrameSink& sink, std::size_t bytes_max);

  /// Puts bytes that were read before this reader existed (behind a handshake) in front.
  void prepend(std::span<const std::byte> bytes);

  /// The stream is known to end behind what it holds: it is read until it says so.
  void expect_end() { end_is_near_ = true; }
  /// From now on the extent's remaining payload is dropped.
  void discard(std::size_t extent);
  bool in_payload() const { return state_ == State::payload; }
  /// Whether the stream is inside a frame: its peer owes us bytes.
  bool mid_frame() const { return state_ == State::payload || begin_ != end_; }

  const Error& error() const { return error_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t frames() const { return frames_; }

private:
  enum class State : std::uint8_t { frame, payload };

  std::size_t buffered() const { return end_ - begin_; }
  bool take_frame(FrameSink& sink, Status& status);
  void begin_payload(const wire::FrameHeader& header, std::size_t extents);
  void drain_buffer_into_payload();
  std::size_t gather(std::span<iovec> out);
  static bool overlaps(std::span<const iovec> pieces, const std::byte* begin, std::size_t length);
  void advance_payload(std::size_t bytes);
  void finish_payload(FrameSink& sink);
  bool fill(ByteStream& stream, std::size_t& budget, Status& status);
  Status fail_with(Error error);
  Status end_of_stream(const IoResult& result);

  std::unique_ptr<std::byte[]> buffer_;
  std::size_t capacity_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool end_is_near_ = false;
  bool drained_ = false; // The stream had no more, when it was last asked.

  State state_ = State::frame;
  std::uint32_t sequence_ = 0;
  wire::FrameHeader header_;
  std::array<PayloadTarget, wire::frame_descriptors_max> targets_;
  std::size_t extents_ = 0;
  std::size_t extent_ = 0;        // The one that is being filled,
  std::uint32_t extent_done_ = 0; // and how much of it is there.
  std::uint32_t payload_left_ = 0;
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> hash_;
  std::unique_ptr<std::byte[]> dropped_; // Where dropped payload is read to.
  Error error_;
  std::uint64_t bytes_ = 0;
  std::uint64_t frames_ = 0;
};

} // namespace wherry

// Writes frames to a byte stream in batches: a resumable state machine, without a socket inside.
//
// A batch is control frames first, then payload segments whose bytes are sent from where they are.
// Only the segment in transit must be finished: unsend() takes those back that have not begun
// (R36).
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
#include <vector>

namespace wherry {

class FrameWriter {
public:
  static constexpr std::size_t segments_max = 4;
  static constexpr std::size_t pieces_max = 1024;

  FrameWriter();

  /// The batch is written out, or there is none: a new one may be built.
  bool idle() const { return piece_ == pieces_.size(); }
  /// Forgets a written batch, so that a new one can be built.
  void begin();

  /// Room for control descriptors of a new frame (frames of one batch share a buffer).
  bool has_control_room(wire::FrameType type, std::size_t count) const;
  /// Appends a control frame; its descriptors are encoded by `encode(index, span)`.
  template <std::size_t Bytes, class Encode>
  void control(wire::FrameType type, std::size_t count, Encode&& encode) {
    std::span<std::byte> out = reserve(wire::frame_header_bytes + count * Bytes);
    for (std::size_t i = 0; i < count; ++i) {
      encode(i, out.subspan(wire::frame_header_bytes + i * Bytes).template first<Bytes>());
    }
    seal_frame(type, count, out, 0, 0, 0);
    pieces_.push_back({out.data(), out.size()});
  }

  /// A payload segment: descriptors are given encoded through `extents`, bytes through `payload`.
  /// Returns whether there was room; nothing is appended if not.
  bool segment(std::span<const wire::PayloadExtent> extents, std::span<const iovec> payload,
               bool checksum);
  bool has_segment_room(std::size_t extents) const;

  enum class Status : std::uint8_t { done, would_block, end };
  Status progress(ByteStream& stream);

  /// Segments of this batch that have gone out wholly.
  std::size_t segments_sent() const { return segments_sent_; }
  std::size_t segments() const { return segments_.size(); }
  /// Takes back the segments that have not begun; returns how many remain in the batch.
  std::size_t unsend();

  const Error& error() const { return error_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t batches() const { return batches_; }
  std::uint64_t frames() const { return frames_; } ///< Less those that were taken back.

private:
  struct Segment {
    std::size_t first_piece = 0;
    std::size_t end_piece = 0;
  };

  std::span<std::byte> reserve(std::size_t bytes);
  void seal_frame(wire::FrameType type, std::size_t count, std::span<std::byte> frame,
                  std::uint32_t payload_bytes, std::uint8_t flags, std::uint64_t checksum);

  std::unique_ptr<std::byte[]> headers_;
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> hash_;
  std::size_t headers_used_ = 0;
  std::vector<iovec> pieces_;
  std::size_t piece_ = 0;    // The first that is not written out,
  bool piece_begun_ = false; // and whether some of it is. (Its iovec then holds what is left.)
  std::vector<Segment> segments_;
  std::size_t segments_sent_ = 0;
  std::uint32_t sequence_ = 0;
  Error error_;
  std::uint64_t bytes_ = 0;
  std::uint64_t batches_ = 0;
  std::uint64_t frames_ = 0;
};

} // namespace wherry

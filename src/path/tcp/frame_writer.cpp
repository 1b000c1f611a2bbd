#include "path/tcp/frame_writer.h"

#include "base/assert.h"

#include <xxhash.h>

#include <algorithm>
#include <cerrno>

namespace wherry {

namespace {

// All control frames of a batch and the headers of its segments.
constexpr std::size_t headers_bytes = 64 * 1024;
constexpr std::size_t segment_headers_bytes =
    FrameWriter::segments_max * (wire::frame_header_bytes + wire::frame_descriptors_max * 32);
static_assert(headers_bytes >
              segment_headers_bytes + wire::frame_header_bytes + wire::frame_descriptors_max * 32);

std::uint64_t checksum_of(std::span<const iovec> payload, XXH3_state_t* state) {
  if (payload.size() == 1) {
    return XXH3_64bits(payload[0].iov_base, payload[0].iov_len);
  }
  XXH3_64bits_reset(state);
  for (const iovec& piece : payload) {
    XXH3_64bits_update(state, piece.iov_base, piece.iov_len);
  }
  return XXH3_64bits_digest(state);
}

} // namespace

FrameWriter::FrameWriter()
    : headers_(std::make_unique<std::byte[]>(headers_bytes)),
      hash_(XXH3_createState(), XXH3_freeState) {
  WHERRY_ASSERT(hash_ != nullptr);
  pieces_.reserve(pieces_max);
  segments_.reserve(segments_max);
}

void FrameWriter::begin() {
  WHERRY_ASSERT(idle());
  ++batches_;
  pieces_.clear();
  segments_.clear();
  headers_used_ = 0;
  piece_ = 0;
  piece_begun_ = false;
  segments_sent_ = 0;
}

std::span<std::byte> FrameWriter::reserve(std::size_t bytes) {
  WHERRY_ASSERT(headers_used_ + bytes <= headers_bytes);
  const std::span<std::byte> out(headers_.get() + headers_used_, bytes);
  headers_used_ += bytes;
  return out;
}

bool FrameWriter::has_control_room(wire::FrameType type, std::size_t count) const {
  const std::size_t bytes = wire::frame_header_bytes + count * wire::descriptor_bytes(type);
  return headers_used_ + bytes + segment_headers_bytes <= headers_bytes && segments_.empty();
}

bool FrameWriter::has_segment_room(std::size_t extents) const {
  return segments_.size() < segments_max && pieces_.size() + 1 + extents <= pieces_max;
}

void FrameWriter::seal_frame(wire::FrameType type, std::size_t count, std::span<std::byte> frame,
                             std::uint32_t payload_bytes, std::uint8_t flags,
                             std::uint64_t checksum) {
  wire::FrameHeader header;
  header.type = type;
  header.flags = flags;
  header.count = static_cast<std::uint16_t>(count);
  header.payload_bytes = payload_bytes;
  header.sequence = sequence_++;
  ++frames_;
  header.payload_checksum = checksum;
  wire::seal(header, frame.subspan(wire::frame_header_bytes),
             frame.first<wire::frame_header_bytes>());
}

bool FrameWriter::segment(std::span<const wire::PayloadExtent> extents,
                          std::span<const iovec> payload, bool checksum) {
  if (!has_segment_room(payload.size())) {
    return false;
  }
  const std::span<std::byte> frame = reserve(wire::frame_header_bytes + extents.size() * 32);
  std::uint32_t payload_bytes = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    wire::encode(extents[i], frame.subspan(wire::frame_header_bytes + i * 32).first<32>());
    payload_bytes += extents[i].length_bytes;
  }
  seal_frame(wire::FrameType::payload, extents.size(), frame, payload_bytes,
             checksum ? wire::flag_payload_checksum : std::uint8_t{0},
             checksum ? checksum_of(payload, hash_.get()) : 0);
  const std::size_t first = pieces_.size();
  pieces_.push_back({frame.data(), frame.size()});
  pieces_.insert(pieces_.end(), payload.begin(), payload.end());
  segments_.push_back({first, pieces_.size()});
  return true;
}

FrameWriter::Status FrameWriter::progress(ByteStream& stream) {
  while (!idle()) {
    const IoResult put = stream.writev(std::span<const iovec>(pieces_).subspan(piece_));
    if (put.error == EAGAIN) {
      return Status::would_block;
    }
    if (put.error != 0) {
      error_ = native_error("sendmsg", put.error,
                            put.error == EFAULT ? "registered memory is not mapped any more"
                                                : "the connection broke");
      error_.code = put.error == EFAULT ? ErrorCode::invalidated : ErrorCode::connection_lost;
      return Status::end;
    }
    bytes_ += put.bytes;
    std::size_t offered = 0;
    for (std::size_t i = piece_; i < pieces_.size(); ++i) {
      offered += pieces_[i].iov_len;
    }
    std::size_t left = put.bytes;
    while (left > 0) {
      iovec& piece = pieces_[piece_];
      if (left < piece.iov_len) {
        piece.iov_base = static_cast<std::byte*>(piece.iov_base) + left;
        piece.iov_len -= left;
        piece_begun_ = true;
        break;
      }
      left -= piece.iov_len;
      ++piece_;
      piece_begun_ = false;
    }
    while (segments_sent_ < segments_.size() && segments_[segments_sent_].end_piece <= piece_) {
      ++segments_sent_;
    }
    // A write that moved less than it was offered has filled the stream: an event will say when.
    if (put.bytes < offered) {
      return Status::would_block;
    }
  }
  return Status::done;
}

std::size_t FrameWriter::unsend() {
  while (!segments_.empty()) {
    const std::size_t first = segments_.back().first_piece;
    if (first < piece_ || (first == piece_ && piece_begun_)) {
      break;
    }
    pieces_.resize(first);
    segments_.pop_back();
    --sequence_;
    --frames_;
  }
  return segments_.size();
}

} // namespace wherry

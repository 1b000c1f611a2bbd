#include "path/tcp/frame_reader.h"

#include "base/assert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <new>

namespace wherry {

namespace {

// One readv: enough for a frame of small extents, the drop area and the read-ahead.
constexpr std::size_t iovecs_max = 258;
constexpr std::size_t dropped_bytes = 64 * 1024;
// Read ahead no more than the next header and its single extent while at least this much is to
// come.
constexpr std::uint32_t bulk_bytes = 32 * 1024;
constexpr std::size_t bulk_read_ahead_bytes = wire::frame_header_bytes + 32;

} // namespace

FrameReader::FrameReader(std::size_t read_ahead_bytes)
    : buffer_(std::make_unique<std::byte[]>(read_ahead_bytes)), capacity_(read_ahead_bytes),
      hash_(XXH3_createState(), XXH3_freeState),
      dropped_(std::make_unique<std::byte[]>(dropped_bytes)) {
  // A whole frame's descriptors must fit.
  WHERRY_ASSERT(read_ahead_bytes >= wire::frame_header_bytes + wire::frame_descriptors_max * 32);
  WHERRY_ASSERT(hash_ != nullptr);
}

void FrameReader::prepend(std::span<const std::byte> bytes) {
  WHERRY_ASSERT(begin_ == end_ && bytes.size() <= capacity_);
  std::copy(bytes.begin(), bytes.end(), buffer_.get());
  begin_ = 0;
  end_ = bytes.size();
}

FrameReader::Status FrameReader::progress(ByteStream& stream, FrameSink& sink,
                                          std::size_t bytes_max) {
  std::size_t budget = bytes_max;
  Status status = Status::budget;
  drained_ = false;
  for (;;) {
    if (state_ == State::frame) {
      if (take_frame(sink, status)) {
        continue;
      }
      if (status != Status::budget) {
        return status;
      }
    } else {
      drain_buffer_into_payload();
      if (payload_left_ == 0) {
        finish_payload(sink);
        continue;
      }
    }
    // A read that got less than it could have taken has emptied the stream: no call to hear so
    // again.
    if (drained_) {
      return Status::would_block;
    }
    if (budget == 0) {
      return Status::budget;
    }
    if (!fill(stream, budget, status)) {
      return status;
    }
  }
}

// True when a frame was taken from the buffer. False: more bytes are needed (status stays
// `budget`), or status says what stops us.
bool FrameReader::take_frame(FrameSink& sink, Status& status) {
  if (buffered() < wire::frame_header_bytes) {
    return false;
  }
  const std::span<const std::byte, wire::frame_header_bytes> head(buffer_.get() + begin_,
                                                                  wire::frame_header_bytes);
  auto header = wire::decode_header(head);
  if (!header) {
    status = fail_with(std::move(header.error()));
    return false;
  }
  const std::size_t descriptors_bytes = header->count * wire::descriptor_bytes(header->type);
  if (buffered() < wire::frame_header_bytes + descriptors_bytes) {
    return false;
  }
  const std::span<const std::byte> descriptors(buffer_.get() + begin_ + wire::frame_header_bytes,
                                               descriptors_bytes);
  auto verified = wire::verify_descriptors(*header, head, descriptors);
  if (!verified) {
    status = fail_with(std::move(verified.error()));
    return false;
  }
  if (header->sequence != sequence_) {
    Error error;
    error.code = ErrorCode::protocol_mismatch;
    error.message =
        fmt::format("frame {} came where frame {} was due", header->sequence, sequence_);
    status = fail_with(std::move(error));
    return false;
  }
  auto verdict = sink.on_frame(*header, descriptors, targets_);
  if (!verdict) {
    status = fail_with(std::move(verdict.error()));
    return false;
  }
  if (*verdict == FrameSink::Verdict::wait) {
    status = Status::waiting;
    return false;
  }
  ++sequence_;
  ++frames_;
  begin_ += wire::frame_header_bytes + descriptors_bytes;
  if (header->payload_bytes > 0) {
    begin_payload(*header, header->count);
  }
  return true;
}

void FrameReader::begin_payload(const wire::FrameHeader& header, std::size_t extents) {
  state_ = State::payload;
  header_ = header;
  extents_ = extents;
  extent_ = 0;
  extent_done_ = 0;
  payload_left_ = header.payload_bytes;
  if ((header.flags & wire::flag_payload_checksum) != 0) {
    XXH3_64bits_reset(hash_.get());
  }
}

void FrameReader::drain_buffer_into_payload() {
  while (payload_left_ > 0 && buffered() > 0) {
    const PayloadTarget& target = targets_[extent_];
    const std::size_t n = std::min<std::size_t>(buffered(), target.length_bytes - extent_done_);
    std::byte* from = buffer_.get() + begin_;
    std::byte* to = target.at != nullptr ? target.at + extent_done_ : nullptr;
    if (to != nullptr) {
      std::memcpy(to, from, n);
    }
    if ((header_.flags & wire::flag_payload_checksum) != 0) {
      XXH3_64bits_update(hash_.get(), from, n);
    }
    begin_ += n;
    extent_done_ += static_cast<std::uint32_t>(n);
    payload_left_ -= static_cast<std::uint32_t>(n);
    if (extent_done_ == target.length_bytes) {
      ++extent_;
      extent_done_ = 0;
    }
  }
}

// The remaining payload as iovecs. A dropped piece ends the list: the drop area is used once a
// call. With a checksum so does a piece that overlaps one before it (operations may): what is read
// in one call is hashed where it has landed, and must not have been overwritten by then.
std::size_t FrameReader::gather(std::span<iovec> out) {
  const bool checked = (header_.flags & wire::flag_payload_checksum) != 0;
  const std::less<> before;
  const std::byte* low = nullptr; // Of the pieces so far: outside of these nothing overlaps.
  const std::byte* high = nullptr;
  std::size_t count = 0;
  std::uint32_t skip = extent_done_;
  for (std::size_t i = extent_; i < extents_ && count < out.size(); ++i, skip = 0) {
    const std::size_t n = targets_[i].length_bytes - skip;
    if (targets_[i].at == nullptr) {
      out[count++] = {dropped_.get(), std::min(n, dropped_bytes)};
      break;
    }
    std::byte* const at = targets_[i].at + skip;
    const bool outside = count == 0 || !before(at, high) || !before(low, at + n);
    if (checked && !outside && overlaps(out.first(count), at, n)) {
      break;
    }
    low = count == 0 ? at : std::min<const std::byte*>(low, at, before);
    high = count == 0 ? at + n : std::max<const std::byte*>(high, at + n, before);
    out[count++] = {at, n};
  }
  return count;
}

bool FrameReader::overlaps(std::span<const iovec> pieces, const std::byte* begin,
                           std::size_t length) {
  const std::less<> before;
  return std::any_of(pieces.begin(), pieces.end(), [&](const iovec& piece) {
    const auto* other = static_cast<const std::byte*>(piece.iov_base);
    return before(begin, other + piece.iov_len) && before(other, begin + length);
  });
}

// Counts payload that readv has put into the targets, in order.
void FrameReader::advance_payload(std::size_t bytes) {
  payload_left_ -= static_cast<std::uint32_t>(bytes);
  while (bytes > 0) {
    const PayloadTarget& target = targets_[extent_];
    const std::size_t n = std::min<std::size_t>(bytes, target.length_bytes - extent_done_);
    if ((header_.flags & wire::flag_payload_checksum) != 0) {
      XXH3_64bits_update(hash_.get(),
                         target.at != nullptr ? target.at + extent_done_ : dropped_.get(), n);
    }
    bytes -= n;
    extent_done_ += static_cast<std::uint32_t>(n);
    if (extent_done_ == target.length_bytes) {
      ++extent_;
      extent_done_ = 0;
    }
  }
}

void FrameReader::finish_payload(FrameSink& sink) {
  state_ = State::frame;
  const bool checked = (header_.flags & wire::flag_payload_checksum) != 0;
  sink.on_payload_end(!checked || XXH3_64bits_digest(hash_.get()) == header_.payload_checksum);
}

// One readv. False: status says what stops us.
bool FrameReader::fill(ByteStream& stream, std::size_t& budget, Status& status) {
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, buffered());
    end_ -= begin_;
    begin_ = 0;
  }
  std::array<iovec, iovecs_max> iov;
  std::size_t count = 0;
  std::size_t payload = 0;
  if (state_ == State::payload) {
    count = gather(std::span(iov).first(iovecs_max - 1));
    for (std::size_t i = 0; i < count; ++i) {
      payload += iov[i].iov_len;
    }
  }
  std::size_t ahead = 0;
  if (payload == payload_left_ || state_ == State::frame) {
    ahead = capacity_ - end_;
    if (state_ == State::payload && payload >= bulk_bytes) {
      ahead = std::min(ahead, bulk_read_ahead_bytes);
    }
    iov[count++] = {buffer_.get() + end_, ahead};
  }
  const IoResult got = stream.readv(std::span(iov).first(count));
  if (got.error == EAGAIN) {
    status = Status::would_block;
    return false;
  }
  if (got.error != 0 || got.bytes == 0) {
    status = end_of_stream(got);
    return false;
  }
  drained_ = !end_is_near_ && got.bytes < payload + ahead;
  bytes_ += got.bytes;
  budget -= std::min(budget, got.bytes);
  const std::size_t into_payload = std::min(got.bytes, payload);
  if (into_payload > 0) {
    advance_payload(into_payload);
  }
  end_ += got.bytes - into_payload;
  return true;
}

void FrameReader::discard(std::size_t extent) {
  WHERRY_ASSERT(state_ == State::payload && extent < extents_);
  targets_[extent].at = nullptr;
}

FrameReader::Status FrameReader::fail_with(Error error) {
  error_ = std::move(error);
  return Status::end;
}

FrameReader::Status FrameReader::end_of_stream(const IoResult& result) {
  Error error;
  if (result.error == EFAULT) {
    error =
        native_error("readv", EFAULT, "registered memory is not mapped, or not writable, any more");
    error.code = ErrorCode::invalidated;
  } else if (result.error != 0) {
    error = native_error("readv", result.error, "the connection broke");
    error.code = ErrorCode::connection_lost;
  } else {
    error.code = ErrorCode::connection_lost;
    error.message = mid_frame() ? "the peer closed the connection in the middle of a frame"
                                : "the peer closed the connection";
  }
  return fail_with(std::move(error));
}

} // namespace wherry

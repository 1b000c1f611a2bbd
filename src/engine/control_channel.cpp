#include "engine/control_channel.h"

#include "base/assert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace wherry {

namespace {
constexpr std::size_t read_bytes = 16 * 1024;
// A peer that does not read its answers is not read from beyond this.
constexpr std::size_t out_high_water_bytes = 4 << 20;
constexpr int messages_a_turn = 64;
} // namespace

// -- SocketBuffer
// ------------------------------------------------------------------------------------

SocketBuffer::~SocketBuffer() {
  if (socket_ != 0) {
    network_.close(socket_);
  }
}

SocketId SocketBuffer::release() {
  const SocketId socket = socket_;
  socket_ = 0;
  return socket;
}

bool SocketBuffer::fill() {
  while (readable_ && in_.size() - in_begin_ < in_max_) {
    if (in_begin_ > 0) {
      in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(in_begin_));
      in_begin_ = 0;
    }
    const std::size_t had = in_.size();
    in_.resize(std::min(had + read_bytes, in_max_));
    const iovec into{in_.data() + had, in_.size() - had};
    const IoResult got = network_.readv(socket_, std::span(&into, 1));
    in_.resize(had + got.bytes);
    received_ += got.bytes;
    if (got.error == EAGAIN) {
      readable_ = false;
    } else if (got.error != 0) {
      error_ = native_error("readv", got.error, "the connection broke");
      error_.code = ErrorCode::connection_lost;
      return false;
    } else if (got.bytes == 0) {
      error_ = Error{};
      error_.code = ErrorCode::connection_lost;
      error_.message = "the peer closed the connection";
      return false;
    }
  }
  return true;
}

void SocketBuffer::consume(std::size_t bytes) {
  WHERRY_ASSERT(bytes <= in().size());
  in_begin_ += bytes;
}

bool SocketBuffer::flush() {
  while (writable_ && out_begin_ < out_.size()) {
    const iovec from{out_.data() + out_begin_, out_.size() - out_begin_};
    const IoResult put = network_.writev(socket_, std::span(&from, 1));
    if (put.error == EAGAIN) {
      writable_ = false;
    } else if (put.error != 0) {
      error_ = native_error("sendmsg", put.error, "the connection broke");
      error_.code = ErrorCode::connection_lost;
      return false;
    }
    out_begin_ += put.bytes;
  }
  if (out_begin_ == out_.size()) {
    out_.clear();
    out_begin_ = 0;
  }
  return true;
}

// -- ControlChannel
// ----------------------------------------------------------------------------------

ControlChannel::ControlChannel(Shard& shard, SocketId socket, ControlHandler& handler,
                               std::span<const std::byte> leftover, std::uint64_t stall_timeout_ns)
    : shard_(shard), handler_(handler),
      buffer_(shard.network(), socket, wire::control_header_bytes + wire::control_body_bytes_max),
      stall_timeout_ns_(stall_timeout_ns) {
  token_ = shard_.add(this);
  shard_.network().set_token(socket, token_);
  buffer_.prepend(leftover);
}

ControlChannel::~ControlChannel() {
  shard_.remove(token_);
}

void ControlChannel::greet_owner() {
  expects_preamble_ = true;
  buffer_.send(wire::encode(
      wire::Preamble{wire::protocol_version, wire::Role::control_consumer, wire::Security::none}));
}

void ControlChannel::send(const wire::ControlMessage& message) {
  send_raw(wire::encode(message));
}

void ControlChannel::send_raw(std::span<const std::byte> bytes) {
  if (closed_ || closing_) {
    return;
  }
  buffer_.send(bytes);
  shard_.activate(token_);
}

void ControlChannel::close_after_flush() {
  closing_ = true;
  shard_.activate(token_);
}

// An end counts as a movement: who owns the channel has something to do.
bool ControlChannel::progress(std::uint64_t now_ns) {
  if (closed_) {
    return false;
  }
  bool moved = false;
  const std::size_t pending = buffer_.out_pending();
  const std::uint64_t received = buffer_.received();
  if (!closing_) {
    const bool alive = buffer_.fill();
    for (int i = 0; i < messages_a_turn && !closed_ && buffer_.out_pending() < out_high_water_bytes;
         ++i) {
      if (!take_one()) {
        break;
      }
      moved = true;
    }
    if (closed_) {
      return true;
    }
    // What came before the end has been taken, unless it was too much for one turn.
    if (!alive && !moved) {
      close(buffer_.error());
      return true;
    }
    moved |= !alive;
  }
  if (!buffer_.flush()) {
    close(buffer_.error());
    return true;
  }
  if (closing_ && buffer_.out_pending() == 0) {
    buffer_.finish_writing();
    closed_ = true;
    return true;
  }
  if (buffer_.out_pending() == 0 || buffer_.out_pending() < pending) {
    stuck_since_ns_ = never_ns;
  }
  if (buffer_.out_pending() > 0) {
    stuck_since_ns_ = std::min(stuck_since_ns_, now_ns);
  }
  const bool reads = !closing_ && buffer_.out_pending() < out_high_water_bytes;
  if (!reads || buffer_.in().empty() || moved || buffer_.received() != received) {
    partial_since_ns_ = never_ns;
  }
  if (reads && !buffer_.in().empty()) {
    partial_since_ns_ = std::min(partial_since_ns_, now_ns);
  }
  if (now_ns >= next_deadline_ns()) {
    Error error;
    error.code = ErrorCode::stalled;
    error.message = stuck_since_ns_ <= partial_since_ns_
                        ? "the peer does not read its control connection"
                        : "the peer stopped inside a control message";
    close(error);
    return true;
  }
  return moved || buffer_.may_have_more();
}

std::uint64_t ControlChannel::next_deadline_ns() const {
  return closed_ ? never_ns
                 : add_ns(std::min(stuck_since_ns_, partial_since_ns_), stall_timeout_ns_);
}

bool ControlChannel::take_preamble() {
  const auto prefix = buffer_.in().first(std::min(buffer_.in().size(), wire::preamble_bytes));
  if (prefix.empty()) {
    return false;
  }
  if (!wire::may_be_preamble(prefix)) {
    close(wire::not_a_preamble(prefix));
    return false;
  }
  if (prefix.size() < wire::preamble_bytes) {
    return false;
  }
  auto preamble = wire::decode_preamble(prefix.first<wire::preamble_bytes>());
  if (preamble &&
      (preamble->role != wire::Role::control_owner || preamble->security != wire::Security::none)) {
    preamble =
        fail(ErrorCode::protocol_mismatch,
             fmt::format("the peer answered in role {} and security mode {}",
                         static_cast<int>(preamble->role), static_cast<int>(preamble->security)));
  }
  if (!preamble) {
    close(preamble.error());
    return false;
  }
  buffer_.consume(wire::preamble_bytes);
  expects_preamble_ = false;
  return true;
}

bool ControlChannel::take_one() {
  if (expects_preamble_) {
    return take_preamble();
  }
  if (buffer_.in().size() < wire::control_header_bytes) {
    return false;
  }
  auto header = wire::decode_control_header(buffer_.in().first<wire::control_header_bytes>());
  if (!header) {
    close(header.error());
    return false;
  }
  if (buffer_.in().size() < wire::control_header_bytes + header->body_bytes) {
    return false;
  }
  auto message = wire::decode_control(
      *header, buffer_.in().subspan(wire::control_header_bytes, header->body_bytes));
  if (!message) {
    close(message.error());
    return false;
  }
  buffer_.consume(wire::control_header_bytes + header->body_bytes);
  handler_.on_message(*message);
  return true;
}

void ControlChannel::close(const Error& why) {
  closed_ = true;
  handler_.on_control_closed(why);
}

} // namespace wherry

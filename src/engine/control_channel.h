// Sockets that carry handshakes and control documents: buffered, small, bounded.
#pragma once

#include "engine/shard.h"
#include "wire/control.h"
#include "wire/preamble.h"

#include <cstdint>
#include <span>
#include <vector>

namespace wherry {

/// Bytes in and out of a socket that it owns.
class SocketBuffer {
public:
  SocketBuffer(Network& network, SocketId socket, std::size_t in_max)
      : network_(network), socket_(socket), in_max_(in_max) {}
  ~SocketBuffer();
  SocketBuffer(const SocketBuffer&) = delete;
  SocketBuffer& operator=(const SocketBuffer&) = delete;

  void on_event(const NetworkEvent& event) {
    readable_ |= event.readable || event.hangup;
    writable_ |= event.writable || event.hangup;
  }
  /// Reads until there is nothing more or `in_max` bytes are here. False: the stream ended; see
  /// error().
  bool fill();
  std::span<const std::byte> in() const { return std::span(in_).subspan(in_begin_); }
  void consume(std::size_t bytes);
  /// Bytes that were read before, in front.
  void prepend(std::span<const std::byte> bytes) {
    in_.insert(in_.begin(), bytes.begin(), bytes.end());
  }
  void send(std::span<const std::byte> bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  /// Writes what can be written. False: the stream broke.
  bool flush();
  std::size_t out_pending() const { return out_.size() - out_begin_; }
  bool may_have_more() const { return readable_; }
  void set_in_max(std::size_t in_max) { in_max_ = in_max; }
  const Error& error() const { return error_; }
  SocketId socket() const { return socket_; }
  void finish_writing() { network_.shutdown_write(socket_); }
  SocketId release();
  std::uint64_t received() const { return received_; }

private:
  Network& network_;
  SocketId socket_;
  std::size_t in_max_;
  bool readable_ = true;
  bool writable_ = true;
  std::vector<std::byte> in_;
  std::size_t in_begin_ = 0;
  std::vector<std::byte> out_;
  std::size_t out_begin_ = 0;
  std::uint64_t received_ = 0;
  Error error_;
};

/// What a session does with its control connection.
class ControlHandler {
public:
  virtual ~ControlHandler() = default;
  virtual void on_message(wire::ControlMessage& message) = 0;
  /// Once; the channel is dead.
  virtual void on_control_closed(const Error& why) = 0;
};

/// A control connection behind its preambles. Owned by its session.
class ControlChannel final : public Endpoint {
public:
  ControlChannel(Shard& shard, SocketId socket, ControlHandler& handler,
                 std::span<const std::byte> leftover, std::uint64_t stall_timeout_ns);
  ~ControlChannel() override;

  /// For a consumer: sends ours, and expects the owner's.
  void greet_owner();
  void send(const wire::ControlMessage& message);
  void send_raw(std::span<const std::byte> bytes);
  /// Sends what is queued, then ends. on_control_closed is not called.
  void close_after_flush();
  /// Ends now; what is queued is not sent. on_control_closed is not called.
  void abandon() { closed_ = true; }
  bool closed() const { return closed_; }
  std::uint64_t token() const { return token_; }

  void on_event(const NetworkEvent& event) override { buffer_.on_event(event); }
  bool progress(std::uint64_t now_ns) override;
  std::uint64_t next_deadline_ns() const override;

private:
  bool take_one();
  bool take_preamble();
  void close(const Error& why);

  Shard& shard_;
  ControlHandler& handler_;
  SocketBuffer buffer_;
  const std::uint64_t stall_timeout_ns_;
  std::uint64_t token_ = 0;
  std::uint64_t stuck_since_ns_ = never_ns;   // The peer does not read.
  std::uint64_t partial_since_ns_ = never_ns; // The rest of a message does not come.
  bool expects_preamble_ = false;
  bool closing_ = false;
  bool closed_ = false;
};

} // namespace wherry

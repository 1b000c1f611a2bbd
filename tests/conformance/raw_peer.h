// A peer that is none of ours: it speaks as much of the protocol as a case wants, right or wrong,
// over blocking sockets of its own. For owners with real sockets and a thread.
#pragma once

#include "wire/control.h"
#include "wire/frames.h"
#include "wire/preamble.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace wherry::conformance {

class RawConnection {
public:
  RawConnection(const std::string& host, std::uint16_t port);
  RawConnection(RawConnection&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;
  ~RawConnection();

  /// False when the owner has closed it.
  bool send(std::span<const std::byte> bytes);
  /// So many bytes, or as many as came before the owner closed it (or a minute had passed).
  std::vector<std::byte> receive(std::size_t bytes);
  /// Whether the owner closes it, within a minute.
  bool is_closed() { return receive(1).empty(); }

  /// Preambles, both ways.
  void greet(wire::Role role);
  void send(const wire::ControlMessage& message) { send(wire::encode(message)); }
  std::optional<wire::ControlMessage> receive_control();

private:
  int fd_ = -1;
};

/// A session and a lane with a source, as a consumer that may ask for anything.
class RawConsumer {
public:
  RawConsumer(const std::string& host, std::uint16_t port, const std::string& name,
              std::uint64_t epoch = 0);

  const wire::Welcome& welcome() const { return welcome_; }
  wire::LaneJoin join(std::uint32_t lane, std::uint32_t generation) const;
  RawConnection& control() { return control_; }
  RawConnection& lane() { return *lane_; }
  /// Sends a join on a connection of its own; the code that the owner answers (0: accepted).
  std::uint16_t try_join(const wire::LaneJoin& join);
  void join_lane() { lane_code_ = try_join(join(0, 1)); }

  void send_read(const wire::ReadDescriptor& read);
  void send_write(const wire::PayloadExtent& extent, std::span<const std::byte> payload);
  /// The next frame that the owner sends, its payload dropped into `payload`.
  struct Frame {
    wire::FrameHeader header;
    std::vector<std::byte> descriptors;
    std::vector<std::byte> payload;
  };
  std::optional<Frame> receive_frame();

private:
  void send_frame(wire::FrameType type, std::span<const std::byte> descriptor,
                  std::span<const std::byte> payload);

  std::string host_;
  std::uint16_t port_;
  RawConnection control_;
  wire::Welcome welcome_;
  EngineId self_;
  std::optional<RawConnection> lane_;
  std::uint16_t lane_code_ = 0;
  std::uint32_t sequence_ = 0;
};

} // namespace wherry::conformance

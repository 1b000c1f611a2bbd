#include "conformance/raw_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>

namespace wherry::conformance {

// --- RawConnection ------------------------------------------------------------------------------

RawConnection::RawConnection(const std::string& host, std::uint16_t port)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const timeval patience{60, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, host.c_str(), &to.sin_addr);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    throw std::runtime_error("cannot connect");
  }
}

RawConnection::~RawConnection() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

bool RawConnection::send(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) {
      continue;
    }
    if (sent <= 0) {
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

std::vector<std::byte> RawConnection::receive(std::size_t bytes) {
  std::vector<std::byte> got(bytes);
  std::size_t have = 0;
  while (have < bytes) {
    const ssize_t more = ::recv(fd_, got.data() + have, bytes - have, 0);
    if (more < 0 && errno == EINTR) {
      continue;
    }
    if (more < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      throw std::runtime_error("the owner neither answers nor closes");
    }
    if (more <= 0) {
      break;
    }
    have += static_cast<std::size_t>(more);
  }
  got.resize(have);
  return got;
}

void RawConnection::greet(wire::Role role) {
  send(wire::encode(wire::Preamble{wire::protocol_version, role, wire::Security::none}));
  if (receive(wire::preamble_bytes).size() != wire::preamble_bytes) {
    throw std::runtime_error("the owner did not greet");
  }
}

std::optional<wire::ControlMessage> RawConnection::receive_control() {
  const auto head = receive(wire::control_header_bytes);
  if (head.size() != wire::control_header_bytes) {
    return std::nullopt;
  }
  const auto header =
      wire::decode_control_header(std::span(head).first<wire::control_header_bytes>());
  if (!header) {
    return std::nullopt;
  }
  auto message = wire::decode_control(*header, receive(header->body_bytes));
  if (!message) {
    return std::nullopt;
  }
  return std::move(*message);
}

// --- RawConsumer --------------------------------------------------------------------------------

RawConsumer::RawConsumer(const std::string& host, std::uint16_t port, const std::string& name,
                         std::uint64_t epoch)
    : host_(host), port_(port), control_(host, port) {
  self_.bytes.fill(0xab);
  wire::Hello hello;
  hello.name = name;
  hello.consumer = self_;
  hello.expected_epoch = epoch;
  control_.send(wire::encode(
      wire::Preamble{wire::protocol_version, wire::Role::control_consumer, wire::Security::none}));
  control_.send(wire::ControlMessage(hello));
  control_.receive(wire::preamble_bytes);
  const auto answer = control_.receive_control();
  if (!answer || !std::holds_alternative<wire::Welcome>(*answer)) {
    throw std::runtime_error("not welcome");
  }
  welcome_ = std::get<wire::Welcome>(*answer);
}

wire::LaneJoin RawConsumer::join(std::uint32_t lane, std::uint32_t generation) const {
  wire::LaneJoin join;
  join.session = welcome_.session;
  join.epoch = welcome_.epoch;
  join.consumer = self_;
  join.owner = welcome_.owner;
  join.key = welcome_.key;
  join.nonce.fill(7);
  join.lane = lane;
  join.generation = generation;
  return join;
}

std::uint16_t RawConsumer::try_join(const wire::LaneJoin& join) {
  RawConnection lane(host_, port_);
  std::array<std::byte, wire::lane_join_bytes> bytes;
  wire::encode(join, bytes);
  lane.send(wire::encode(
      wire::Preamble{wire::protocol_version, wire::Role::lane_consumer, wire::Security::none}));
  lane.send(bytes);
  lane.receive(wire::preamble_bytes);
  const auto got = lane.receive(wire::lane_accept_bytes);
  if (got.size() != wire::lane_accept_bytes) {
    throw std::runtime_error("no answer to a join");
  }
  const auto accept = wire::decode_lane_accept(std::span(got).first<wire::lane_accept_bytes>());
  if (!accept) {
    throw std::runtime_error(accept.error().message);
  }
  if (accept->code == 0) {
    lane_.emplace(std::move(lane));
  }
  return accept->code;
}

void RawConsumer::send_frame(wire::FrameType type, std::span<const std::byte> descriptor,
                             std::span<const std::byte> payload) {
  wire::FrameHeader header;
  header.type = type;
  header.count = 1;
  header.payload_bytes = static_cast<std::uint32_t>(payload.size());
  header.sequence = sequence_++;
  std::array<std::byte, wire::frame_header_bytes> head;
  wire::seal(header, descriptor, head);
  std::vector<std::byte> all(head.begin(), head.end());
  all.insert(all.end(), descriptor.begin(), descriptor.end());
  all.insert(all.end(), payload.begin(), payload.end());
  lane_->send(all);
}

void RawConsumer::send_read(const wire::ReadDescriptor& read) {
  std::array<std::byte, 32> bytes;
  wire::encode(read, bytes);
  send_frame(wire::FrameType::read, bytes, {});
}

void RawConsumer::send_write(const wire::PayloadExtent& extent,
                             std::span<const std::byte> payload) {
  std::array<std::byte, 32> bytes;
  wire::encode(extent, bytes);
  send_frame(wire::FrameType::payload, bytes, payload);
}

std::optional<RawConsumer::Frame> RawConsumer::receive_frame() {
  const auto head = lane_->receive(wire::frame_header_bytes);
  if (head.size() != wire::frame_header_bytes) {
    return std::nullopt;
  }
  const auto header = wire::decode_header(std::span(head).first<wire::frame_header_bytes>());
  if (!header) {
    return std::nullopt;
  }
  Frame frame;
  frame.header = *header;
  frame.descriptors = lane_->receive(header->count * wire::descriptor_bytes(header->type));
  frame.payload = lane_->receive(header->payload_bytes);
  return frame;
}

} // namespace wherry::conformance

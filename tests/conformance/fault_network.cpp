#include "conformance/fault_network.h"

#include "wire/preamble.h"

#include <algorithm>
#include <cerrno>

namespace wherry::conformance {
namespace {

constexpr std::size_t payload_piece_bytes_min = 4096;

std::size_t total_bytes(std::span<const iovec> pieces) {
  std::size_t sum = 0;
  for (const iovec& piece : pieces) {
    sum += piece.iov_len;
  }
  return sum;
}

/// The leading `bytes` of the pieces.
std::vector<iovec> leading(std::span<const iovec> pieces, std::uint64_t bytes) {
  std::vector<iovec> out;
  for (const iovec& piece : pieces) {
    if (bytes == 0) {
      break;
    }
    const std::size_t length =
        static_cast<std::size_t>(std::min<std::uint64_t>(piece.iov_len, bytes));
    out.push_back({piece.iov_base, length});
    bytes -= length;
  }
  return out;
}

} // namespace

// --- What a test says -------------------------------------------------------------------------

void FaultNetwork::freeze(bool frozen) {
  set(frozen_, frozen);
}

void FaultNetwork::freeze_lanes(bool frozen) {
  set(lanes_frozen_, frozen);
}

void FaultNetwork::freeze_control(bool frozen) {
  set(control_frozen_, frozen);
}

void FaultNetwork::set(bool& flag, bool value) {
  {
    const std::lock_guard lock(mutex_);
    flag = value;
    tell_all();
  }
  inner_->wake();
}

void FaultNetwork::pass_lane_writes(std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    write_quota_ = bytes;
    tell_all();
  }
  inner_->wake();
}

void FaultNetwork::pass_lane_reads(std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    read_quota_ = bytes;
    tell_all();
  }
  inner_->wake();
}

void FaultNetwork::cut() {
  {
    const std::lock_guard lock(mutex_);
    cut_all_ = true;
  }
  inner_->wake();
}

void FaultNetwork::cut_newest_lane() {
  {
    const std::lock_guard lock(mutex_);
    cut_lane_ = true;
  }
  inner_->wake();
}

void FaultNetwork::corrupt_next_payload() {
  const std::lock_guard lock(mutex_);
  corrupt_ = true;
}

bool FaultNetwork::settled() const {
  const std::lock_guard lock(mutex_);
  return !cut_all_ && !cut_lane_ && !corrupt_;
}

std::uint64_t FaultNetwork::corrupted() const {
  const std::lock_guard lock(mutex_);
  return corrupted_;
}

std::size_t FaultNetwork::lanes() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(sockets_.begin(), sockets_.end(), [](const auto& entry) {
        return entry.second.lane.value_or(false) && !entry.second.dead;
      }));
}

// --- What is done about it --------------------------------------------------------------------

bool FaultNetwork::stopped(const Socket& socket) const {
  if (!socket.lane) {
    return frozen_;
  }
  return frozen_ || (*socket.lane ? lanes_frozen_ : control_frozen_);
}

// The side that opened the connection says its role first.
void FaultNetwork::learn(Socket& socket, std::span<const iovec> pieces, std::size_t bytes) {
  if (socket.lane) {
    return;
  }
  for (const iovec& piece : leading(pieces, bytes)) {
    const auto* from = static_cast<const std::byte*>(piece.iov_base);
    socket.head.insert(socket.head.end(), from, from + piece.iov_len);
  }
  if (socket.head.size() < wire::preamble_bytes) {
    return;
  }
  const auto preamble = wire::decode_preamble(std::span(socket.head).first<wire::preamble_bytes>());
  socket.lane = preamble && preamble->role == wire::Role::lane_consumer;
  socket.head.clear();
}

// Events that were swallowed, or never became due, are made up for: too many do no harm.
void FaultNetwork::tell_all() {
  for (auto& [id, socket] : sockets_) {
    socket.to_tell = true;
  }
  any_to_tell_ = true;
}

void FaultNetwork::kill(SocketId id, Socket& socket) {
  inner_->close(id);
  socket.dead = true;
  socket.to_tell = true;
  any_to_tell_ = true;
}

void FaultNetwork::break_what_is_due() {
  if (cut_all_) {
    for (auto& [id, socket] : sockets_) {
      if (!socket.listener && !socket.dead) {
        kill(id, socket);
      }
    }
  }
  if (cut_lane_) {
    for (auto at = sockets_.rbegin(); at != sockets_.rend(); ++at) {
      if (at->second.lane.value_or(false) && !at->second.dead) {
        kill(at->first, at->second);
        break;
      }
    }
  }
  cut_all_ = cut_lane_ = false;
}

std::size_t FaultNetwork::give_events(std::span<NetworkEvent> out) {
  std::size_t count = 0;
  any_to_tell_ = false;
  for (auto& [id, socket] : sockets_) {
    if (!socket.to_tell || (stopped(socket) && !socket.dead)) {
      continue;
    }
    if (count == out.size()) {
      any_to_tell_ = true;
      break;
    }
    socket.to_tell = false;
    out[count++] = {socket.token, true, true, socket.dead};
  }
  return count;
}

// --- Network ----------------------------------------------------------------------------------

Result<Listener> FaultNetwork::listen(const Address& address, std::uint64_t token) {
  auto made = inner_->listen(address, token);
  if (made) {
    const std::lock_guard lock(mutex_);
    Socket& socket = sockets_[made->socket];
    socket.token = token;
    socket.listener = true;
  }
  return made;
}

Result<SocketId> FaultNetwork::accept(SocketId listener) {
  {
    const std::lock_guard lock(mutex_);
    if (frozen_) {
      sockets_[listener].to_tell = true;
      return SocketId{0};
    }
  }
  auto socket = inner_->accept(listener);
  if (socket && *socket != 0) {
    const std::lock_guard lock(mutex_);
    sockets_[*socket].accepted = true;
  }
  return socket;
}

Result<SocketId> FaultNetwork::connect(const Address& address, std::uint64_t token) {
  auto socket = inner_->connect(address, token);
  if (socket) {
    const std::lock_guard lock(mutex_);
    sockets_[*socket].token = token;
  }
  return socket;
}

int FaultNetwork::connect_error(SocketId id) {
  {
    const std::lock_guard lock(mutex_);
    Socket& socket = sockets_.at(id);
    if (socket.dead) {
      return ECONNRESET;
    }
    if (frozen_) {
      socket.to_tell = true;
      return EINPROGRESS;
    }
  }
  return inner_->connect_error(id);
}

void FaultNetwork::set_token(SocketId id, std::uint64_t token) {
  const std::lock_guard lock(mutex_);
  Socket& socket = sockets_.at(id);
  socket.token = token;
  if (!socket.dead) {
    inner_->set_token(id, token);
  }
}

std::string FaultNetwork::peer_name(SocketId id) {
  const std::lock_guard lock(mutex_);
  return sockets_.at(id).dead ? "gone" : inner_->peer_name(id);
}

IoResult FaultNetwork::readv(SocketId id, std::span<const iovec> into) {
  const std::lock_guard lock(mutex_);
  Socket& socket = sockets_.at(id);
  if (socket.dead) {
    return {0, ECONNRESET};
  }
  const bool metered = socket.lane.value_or(false) && read_quota_ != unlimited;
  if (stopped(socket) || (metered && read_quota_ == 0)) {
    socket.to_tell = true;
    return {0, EAGAIN};
  }
  IoResult result;
  if (metered && total_bytes(into) > read_quota_) {
    result = inner_->readv(id, leading(into, read_quota_));
  } else {
    result = inner_->readv(id, into);
  }
  if (metered) {
    read_quota_ -= result.bytes;
  }
  if (socket.accepted) {
    learn(socket, into, result.bytes);
  }
  if (corrupt_ && !into.empty() && into.front().iov_len >= payload_piece_bytes_min &&
      result.bytes >= payload_piece_bytes_min && into.size() > 1) {
    static_cast<unsigned char*>(into.front().iov_base)[1234] ^= 0x10U;
    corrupt_ = false;
    ++corrupted_;
  }
  return result;
}

IoResult FaultNetwork::writev(SocketId id, std::span<const iovec> from) {
  const std::lock_guard lock(mutex_);
  Socket& socket = sockets_.at(id);
  if (socket.dead) {
    return {0, ECONNRESET};
  }
  const bool metered = socket.lane.value_or(false) && write_quota_ != unlimited;
  if (stopped(socket) || (metered && write_quota_ == 0)) {
    socket.to_tell = true;
    return {0, EAGAIN};
  }
  IoResult result;
  if (metered && total_bytes(from) > write_quota_) {
    result = inner_->writev(id, leading(from, write_quota_));
  } else {
    result = inner_->writev(id, from);
  }
  if (metered) {
    write_quota_ -= result.bytes;
  }
  if (!socket.accepted) {
    learn(socket, from, result.bytes);
  }
  return result;
}

void FaultNetwork::shutdown_write(SocketId id) {
  const std::lock_guard lock(mutex_);
  if (!sockets_.at(id).dead) {
    inner_->shutdown_write(id);
  }
}

void FaultNetwork::close(SocketId id) {
  const std::lock_guard lock(mutex_);
  const auto socket = sockets_.find(id);
  if (socket == sockets_.end()) {
    return;
  }
  if (!socket->second.dead) {
    inner_->close(id);
  }
  sockets_.erase(socket);
}

std::size_t FaultNetwork::wait(std::span<NetworkEvent> out, std::int64_t timeout_ns) {
  {
    const std::lock_guard lock(mutex_);
    break_what_is_due();
    if (any_to_tell_) {
      if (const std::size_t count = give_events(out); count > 0) {
        return count;
      }
    }
  }
  const std::size_t count = inner_->wait(out, timeout_ns);
  const std::lock_guard lock(mutex_);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    // By token: what belongs to a stopped socket is told again when it goes on.
    const auto owner = std::find_if(sockets_.begin(), sockets_.end(), [&](const auto& entry) {
      return entry.second.token == out[i].token && !entry.second.dead;
    });
    if (owner != sockets_.end() && stopped(owner->second)) {
      owner->second.to_tell = true;
    } else {
      out[kept++] = out[i];
    }
  }
  return kept;
}

} // namespace wherry::conformance

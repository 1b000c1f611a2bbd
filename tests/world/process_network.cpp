#include "world/process_network.h"

#include "base/error.h"

#include <cerrno>

namespace wherry::world {
namespace {

tl::unexpected<Error> dead(std::string_view call) {
  return fail(native_error(call, ENETDOWN, "the process is dead"));
}

} // namespace

Result<Listener> ProcessNetwork::listen(const Address& address, std::uint64_t token) {
  return network_ ? network_->listen(address, token) : dead("bind");
}

Result<SocketId> ProcessNetwork::accept(SocketId listener) {
  return network_ ? network_->accept(listener) : dead("accept4");
}

Result<SocketId> ProcessNetwork::connect(const Address& address, std::uint64_t token) {
  return network_ ? network_->connect(address, token) : dead("connect");
}

int ProcessNetwork::connect_error(SocketId socket) {
  return network_ ? network_->connect_error(socket) : ENETDOWN;
}

void ProcessNetwork::set_token(SocketId socket, std::uint64_t token) {
  if (network_) {
    network_->set_token(socket, token);
  }
}

std::string ProcessNetwork::peer_name(SocketId socket) {
  return network_ ? network_->peer_name(socket) : "nobody";
}

IoResult ProcessNetwork::readv(SocketId socket, std::span<const iovec> into) {
  return network_ ? network_->readv(socket, into) : IoResult{0, ENETDOWN};
}

IoResult ProcessNetwork::writev(SocketId socket, std::span<const iovec> from) {
  return network_ ? network_->writev(socket, from) : IoResult{0, ENETDOWN};
}

void ProcessNetwork::shutdown_write(SocketId socket) {
  if (network_) {
    network_->shutdown_write(socket);
  }
}

void ProcessNetwork::close(SocketId socket) {
  if (network_) {
    network_->close(socket);
  }
}

std::size_t ProcessNetwork::wait(std::span<NetworkEvent> out, std::int64_t timeout_ns) {
  return network_ ? network_->wait(out, timeout_ns) : 0;
}

void ProcessNetwork::wake() {
  if (network_) {
    network_->wake();
  }
}

Result<std::vector<Address>> ProcessNetwork::resolve(const std::string& host, std::uint16_t port) {
  return network_ ? network_->resolve(host, port) : dead("getaddrinfo");
}

} // namespace wherry::world

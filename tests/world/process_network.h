// The network of one simulated process, which can die: its sockets end with it, and whatever the
// engine still calls afterwards finds nothing.
#pragma once

#include "world/sim_network.h"

#include <memory>

namespace wherry::world {

class ProcessNetwork final : public Network {
public:
  explicit ProcessNetwork(std::unique_ptr<SimNetwork> network) : network_(std::move(network)) {}

  /// Null once dead.
  SimNetwork* sim() { return network_.get(); }
  void die() { network_.reset(); }

  Result<Listener> listen(const Address& address, std::uint64_t token) override;
  Result<SocketId> accept(SocketId listener) override;
  Result<SocketId> connect(const Address& address, std::uint64_t token) override;
  int connect_error(SocketId socket) override;
  void set_token(SocketId socket, std::uint64_t token) override;
  std::string peer_name(SocketId socket) override;
  IoResult readv(SocketId socket, std::span<const iovec> into) override;
  IoResult writev(SocketId socket, std::span<const iovec> from) override;
  void shutdown_write(SocketId socket) override;
  void close(SocketId socket) override;
  std::size_t wait(std::span<NetworkEvent> out, std::int64_t timeout_ns) override;
  void wake() override;
  Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port) override;
  Calls calls() const override { return network_ ? network_->calls() : Calls{}; }

private:
  std::unique_ptr<SimNetwork> network_;
};

} // namespace wherry::world

// A network that breaks to order, around a real or a simulated one. An engine cannot tell: it gives
// what network.h promises, and less only where a peer or a cable could be at fault.
//
// Lanes are told from control connections by the first bytes that pass. What a test says takes
// effect at the engine's next call; any thread may say it.
#pragma once

#include "os/network.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace wherry::conformance {

class FaultNetwork final : public Network {
public:
  explicit FaultNetwork(std::unique_ptr<Network> inner) : inner_(std::move(inner)) {}

  /// Nothing comes and nothing goes, as when the process were stopped; nobody is told.
  void freeze(bool frozen);
  /// The same for lanes alone, or for control connections.
  void freeze_lanes(bool frozen);
  void freeze_control(bool frozen);
  /// So many more bytes go out on lanes; then they are stuck until the next call.
  void pass_lane_writes(std::uint64_t bytes);
  void pass_lane_reads(std::uint64_t bytes);
  static constexpr std::uint64_t unlimited = UINT64_MAX;
  /// Every connection breaks, as by a reset. Listeners stay.
  void cut();
  /// The lane that was made last breaks.
  void cut_newest_lane();
  /// Flips a bit of the next payload that is read straight into memory: pieces of at least 4 KiB.
  void corrupt_next_payload();
  /// What was asked for last has been done to the sockets.
  bool settled() const;
  std::uint64_t corrupted() const;
  std::size_t lanes() const; ///< Open ones.

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
  void wake() override { inner_->wake(); }
  Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port) override {
    return inner_->resolve(host, port);
  }
  Calls calls() const override { return inner_->calls(); }

private:
  struct Socket {
    std::uint64_t token = 0;
    bool listener = false;
    bool dead = false;           ///< Broken by us: the inner socket is closed.
    bool to_tell = false;        ///< Its next event comes from us.
    std::vector<std::byte> head; ///< The first bytes of the side that opened the connection.
    bool accepted = false;
    std::optional<bool> lane;
  };

  bool stopped(const Socket& socket) const;
  static void learn(Socket& socket, std::span<const iovec> pieces, std::size_t bytes);
  void tell_all();
  void set(bool& flag, bool value);
  void kill(SocketId id, Socket& socket);
  void break_what_is_due();
  std::size_t give_events(std::span<NetworkEvent> out);

  std::unique_ptr<Network> inner_;
  mutable std::mutex mutex_; // Guards all below.
  std::map<SocketId, Socket> sockets_;
  bool frozen_ = false;
  bool lanes_frozen_ = false;
  bool control_frozen_ = false;
  bool cut_all_ = false;
  bool cut_lane_ = false;
  bool corrupt_ = false;
  bool any_to_tell_ = false;
  std::uint64_t corrupted_ = 0;
  std::uint64_t write_quota_ = unlimited;
  std::uint64_t read_quota_ = unlimited;
};

} // namespace wherry::conformance

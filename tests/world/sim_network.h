// The simulated network: a switch that any number of engines hang on, in one thread and one seed.
//
//   SimClock clock;
//   SimSwitch net(clock, seed);
//   auto owner = net.attach("10.0.0.1"), consumer = net.attach("10.0.0.2");   // a Network each
//   ... let the engines work until nothing moves, then: net.advance_to(net.next_event_ns());
//
// It is as unkind as network.h allows: reads and writes move fewer bytes than they could, an event
// that was not promised may not come, events come in any order, an error is told once and then
// reads show a clean end. It never loses a byte or changes their order within a direction, unless
// told to.
#pragma once

#include "base/ids.h"
#include "base/random.h"
#include "os/network.h"
#include "world/sim_clock.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace wherry {

class SimNetwork;

/// How the network behaves while nothing is broken. "one_in": 0 is never, 1 always.
struct SimNetworkOptions {
  std::uint64_t latency_min_ns = 20'000;
  std::uint64_t latency_max_ns = 300'000;
  /// Bytes of one direction that are written and not yet read and acknowledged.
  std::size_t in_flight_bytes_max = 256U << 10;
  std::uint32_t short_read_one_in = 4;
  std::uint32_t short_write_one_in = 4;
  /// A write travels in up to so many chunks, each with its own latency.
  std::uint32_t chunks_per_write_max = 3;
  /// How often an event that the kernel would give and network.h does not promise stays away.
  std::uint32_t unpromised_event_lost_one_in = 2;
  std::size_t backlog_max = 64; ///< Connections that wait to be accepted, per listener.
};

using SimConnectionId = std::uint64_t;

/// What the world may know about a connection.
struct SimConnectionInfo {
  SimConnectionId id = 0;
  Address client;
  Address server;
  bool established = false; ///< As the client sees it.
  bool black_holed = false;
  bool client_open = false; ///< Not yet closed by its process.
  bool server_open = false;
  std::size_t to_server_bytes = 0; ///< In flight.
  std::size_t to_client_bytes = 0;
};

/// The calls in which fail_next() can plant an error.
enum class SimCall : std::uint8_t { listen, accept, connect, readv, writev };

/// The cables. Owns the connections and what is in flight. Must outlive its networks.
class SimSwitch {
public:
  SimSwitch(SimClock& clock, std::uint64_t seed, const SimNetworkOptions& options = {});
  SimSwitch(const SimSwitch&) = delete;
  SimSwitch& operator=(const SimSwitch&) = delete;
  ~SimSwitch();

  /// A network for one engine on the host of that address. Several may share a host and its ports.
  /// Dropping it is the end of its process: its sockets are closed.
  std::unique_ptr<SimNetwork> attach(const std::string& host);
  /// Makes resolve() know a name.
  void add_name(const std::string& name, std::vector<std::string> hosts);

  /// When something happens next: now if a network has something to tell; never_ns if all is still.
  std::uint64_t next_event_ns() const;
  /// The same, but without asking the networks: for a world in which one of them is not served.
  std::uint64_t next_timer_ns() const;
  /// Lets everything up to `ns` happen, in order, and sets the clock.
  void advance_to(std::uint64_t ns);

  const SimNetworkOptions& options() const { return options_; }
  /// For what is written from now on.
  void set_options(const SimNetworkOptions& options) { options_ = options; }

  // --- Faults ---

  /// A reset on both sides, each a little later; what is on its way may arrive before.
  void cut(SimConnectionId id);
  void cut_host(const std::string& host);
  /// Silence: nothing arrives any more, nobody is told.
  void black_hole(SimConnectionId id);
  void black_hole_host(const std::string& host);
  /// Adds to the latency of what is written from now on.
  void delay(SimConnectionId id, std::uint64_t extra_ns);
  void delay_hosts(const std::string& a, const std::string& b, std::uint64_t extra_ns);
  /// Nothing passes between the two hosts; it is held, as by retransmission.
  void partition(const std::string& a, const std::string& b);
  /// Flips one bit of the next bytes that arrive.
  void corrupt(SimConnectionId id, bool to_server);
  /// Ends black holes, delays and partitions: what was held goes on its way.
  void heal();

  std::vector<SimConnectionInfo> connections() const;

private:
  friend class SimNetwork;
  struct Endpoint;
  struct Direction;
  struct Connection;
  enum class Happening : std::uint8_t {
    syn_arrives,     ///< at the server
    syn_is_answered, ///< at the client
    chunk_arrives,
    ack_arrives,
    reset_locally, ///< by cut()
    listener_is_told_again,
  };
  struct Timer {
    std::uint64_t at_ns;
    std::uint64_t sequence; ///< Breaks ties: what was set first comes first.
    Happening what;
    std::uint64_t subject; ///< A connection, or a listener's socket.
    std::uint64_t end;     ///< A direction or an end of the connection; a listener's network.
    bool operator>(const Timer& other) const {
      return std::pair(at_ns, sequence) > std::pair(other.at_ns, other.sequence);
    }
  };
  using HostPair = std::pair<std::string, std::string>; ///< Ordered.

  static HostPair pair_of(const std::string& a, const std::string& b);
  Connection* find(SimConnectionId id) const;
  bool one_in(std::uint32_t n);
  std::uint64_t draw_latency_ns();
  std::uint64_t latency_ns(const Connection& connection);
  bool is_blocked(const Connection& connection) const;
  void set_timer(std::uint64_t at_ns, Happening what, std::uint64_t subject, std::uint64_t end = 0);
  void happen(const Timer& timer);

  // What happens to a connection; `end` 0 is the client, 1 the server, as is the direction from it.
  void syn_arrives(Connection& connection);
  void syn_is_answered(Connection& connection);
  void chunks_arrive(Connection& connection, std::size_t from);
  void acks_arrive(Connection& connection, std::size_t from);
  void reset_end(Connection& connection, std::size_t end);
  void send(Connection& connection, std::size_t from, std::vector<std::byte> bytes);
  void acknowledge(Connection& connection, std::size_t from, std::size_t bytes);
  void send_fin(Connection& connection, std::size_t from);
  void send_reset(Connection& connection, std::size_t from);
  void close_end(Connection& connection, std::size_t end);
  void resume(Connection& connection);
  void signal(Endpoint& end);
  bool read_shows_something(const Connection& connection, std::size_t end) const;
  bool is_writable(const Connection& connection, std::size_t end) const;
  void erase_if_closed(SimConnectionId id);

  SimClock& clock_;
  SeededRandom random_;
  SimNetworkOptions options_;
  std::map<SimConnectionId, std::unique_ptr<Connection>> connections_;
  std::map<std::pair<std::string, std::uint16_t>, std::pair<SimNetwork*, SocketId>> listeners_;
  std::map<std::string, std::uint16_t> next_port_;
  std::map<std::string, std::vector<std::string>> names_;
  std::vector<SimNetwork*> networks_;
  std::set<HostPair> partitions_;
  std::map<HostPair, std::uint64_t> host_delays_ns_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  std::uint64_t timers_set_ = 0;
  std::uint64_t last_network_ = 0;
  SimConnectionId last_connection_ = 0;
};

/// The Network of one engine. wait() never blocks: it gives what is due now.
class SimNetwork final : public Network {
public:
  ~SimNetwork() override;

  const std::string& host() const { return host_; }
  /// Whether wait() would return something, or wake() was called.
  bool has_events() const { return woken_ || !ready_.empty(); }
  std::size_t open_sockets() const { return sockets_.size(); }
  /// The call fails with `error` once, after `skip` good ones. Several may be planted in a row.
  void fail_next(SimCall call, int error, std::uint32_t skip = 0);
  void forget_planted() { planted_.clear(); }
  /// The connection of a socket; 0 for a listener.
  SimConnectionId connection_of(SocketId socket) const;

  Result<Listener> listen(const Address& address, std::uint64_t token) override;
  Result<SocketId> accept(SocketId listener) override;
  Result<SocketId> connect(const Address& address, std::uint64_t token) override;
  int connect_error(SocketId id) override;
  void set_token(SocketId id, std::uint64_t token) override;
  std::string peer_name(SocketId id) override;
  IoResult readv(SocketId id, std::span<const iovec> into) override;
  IoResult writev(SocketId id, std::span<const iovec> from) override;
  void shutdown_write(SocketId id) override;
  void close(SocketId id) override;
  std::size_t wait(std::span<NetworkEvent> out, std::int64_t timeout_ns) override;
  void wake() override { woken_ = true; }
  Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port) override;
  Calls calls() const override { return calls_; }

private:
  friend class SimSwitch;
  struct Socket {
    std::uint64_t token = 0;
    SimConnectionId connection = 0; ///< 0: a listener.
    std::size_t end = 0;
    Address bound;                       ///< Of a listener.
    std::deque<SimConnectionId> waiting; ///< Of a listener: to be accepted.
    bool ready = false;                  ///< Stands in ready_.
  };
  struct Planted {
    std::uint32_t skip;
    int error;
  };

  SimNetwork(SimSwitch& owner, std::uint64_t id, std::string host)
      : switch_(owner), id_(id), host_(std::move(host)) {}
  int planted_error(SimCall call);
  void make_ready(SocketId id);
  bool describe(SocketId id, NetworkEvent& out);
  std::string own_host(const std::string& text) const;
  std::uint16_t free_port();
  void close_listener(Socket& listener);

  SimSwitch& switch_;
  const std::uint64_t id_; ///< Never used again, as an address would be.
  const std::string host_;
  SlotMap<Socket> sockets_;
  std::vector<SocketId> ready_;
  std::map<SimCall, std::deque<Planted>> planted_;
  bool woken_ = false;
  Calls calls_;
};

} // namespace wherry

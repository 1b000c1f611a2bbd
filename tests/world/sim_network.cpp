// The simulated network. One thread; nothing here reads a clock but the world's or draws a number
// but from the seed, and no container is walked in the order of addresses, so that a seed repeats.
#include "world/sim_network.h"

#include "base/assert.h"
#include "base/error.h"

#include <algorithm>
#include <cerrno>

namespace wherry {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t listener_retry_ns = 100'000'000;
constexpr std::uint16_t first_ephemeral_port = 40'000;

std::size_t total_bytes(std::span<const iovec> pieces) {
  std::size_t sum = 0;
  for (const iovec& piece : pieces) {
    sum += piece.iov_len;
  }
  return sum;
}

} // namespace

struct SimSwitch::Endpoint {
  SimNetwork* network = nullptr;
  SocketId socket = 0; ///< 0 before accept() and after close().
  Address address;
  bool open = false;               ///< Its process has not closed it (or not yet accepted it).
  int connect_state = EINPROGRESS; ///< 0 once established.
  bool dead = false;               ///< A reset came, or connecting failed.
  int error = 0;                   ///< Told by the next read or write, once.
  bool write_shut = false;
  bool read_armed = true;  ///< An event was promised for when reading shows something,
  bool write_armed = true; ///< or for when there is room.
};

struct SimSwitch::Direction {
  struct Chunk {
    std::uint64_t at_ns = 0;
    std::vector<std::byte> bytes;
    bool fin = false;
    bool reset = false;
  };
  struct Ack {
    std::uint64_t at_ns = 0;
    std::size_t bytes = 0;
  };
  std::deque<Chunk> wire;
  std::deque<Ack> acks; ///< On their way back to the sender.
  std::uint64_t last_at_ns = 0;
  std::size_t in_flight_bytes = 0; ///< On the wire, unread, or unacknowledged.
  std::deque<std::vector<std::byte>> arrived;
  std::size_t arrived_bytes = 0;
  std::size_t front_offset = 0; ///< How much of arrived.front() was read.
  bool fin_arrived = false;
  bool corrupt_next = false;

  void drop_arrived() {
    arrived.clear();
    arrived_bytes = front_offset = 0;
  }

  /// Moves the first `count` of the bytes that have arrived.
  void take(std::span<const iovec> into, std::size_t count) {
    arrived_bytes -= count;
    for (const iovec& piece : into) {
      auto* to = static_cast<std::byte*>(piece.iov_base);
      std::size_t room = std::min(piece.iov_len, count);
      count -= room;
      while (room > 0) {
        const std::vector<std::byte>& front = arrived.front();
        const std::size_t step = std::min(room, front.size() - front_offset);
        to = std::copy_n(front.data() + front_offset, step, to);
        room -= step;
        front_offset += step;
        if (front_offset == front.size()) {
          arrived.pop_front();
          front_offset = 0;
        }
      }
    }
  }
};

struct SimSwitch::Connection {
  SimConnectionId id = 0;
  std::array<Endpoint, 2> ends;
  std::array<Direction, 2> ways; ///< [0]: from the client.
  bool black_holed = false;
  bool syn_pending = true; ///< The SYN is on its way.
  bool answer_pending = false;
  int answer = 0;
  std::uint64_t extra_ns = 0;
};

// --- The switch: time ---

SimSwitch::SimSwitch(SimClock& clock, std::uint64_t seed, const SimNetworkOptions& options)
    : clock_(clock), random_(seed), options_(options) {}

SimSwitch::~SimSwitch() {
  WHERRY_ASSERT(networks_.empty());
}

std::unique_ptr<SimNetwork> SimSwitch::attach(const std::string& host) {
  std::unique_ptr<SimNetwork> network(new SimNetwork(*this, ++last_network_, host));
  networks_.push_back(network.get());
  return network;
}

void SimSwitch::add_name(const std::string& name, std::vector<std::string> hosts) {
  names_[name] = std::move(hosts);
}

std::uint64_t SimSwitch::next_event_ns() const {
  const auto has_events = [](const SimNetwork* network) { return network->has_events(); };
  if (std::any_of(networks_.begin(), networks_.end(), has_events)) {
    return clock_.now_ns();
  }
  return next_timer_ns();
}

std::uint64_t SimSwitch::next_timer_ns() const {
  return timers_.empty() ? never_ns : std::max(timers_.top().at_ns, clock_.now_ns());
}

void SimSwitch::advance_to(std::uint64_t ns) {
  while (!timers_.empty() && timers_.top().at_ns <= ns) {
    const Timer timer = timers_.top();
    timers_.pop();
    clock_.advance_to(std::max(timer.at_ns, clock_.now_ns()));
    happen(timer);
  }
  clock_.advance_to(std::max(ns, clock_.now_ns()));
}

void SimSwitch::set_timer(std::uint64_t at_ns, Happening what, std::uint64_t subject,
                          std::uint64_t end) {
  timers_.push(Timer{at_ns, timers_set_++, what, subject, end});
}

void SimSwitch::happen(const Timer& timer) {
  if (timer.what == Happening::listener_is_told_again) {
    for (SimNetwork* network : networks_) {
      if (network->id_ == timer.end) {
        network->make_ready(timer.subject);
      }
    }
    return;
  }
  Connection* connection = find(timer.subject);
  if (connection == nullptr) {
    return;
  }
  const auto end = static_cast<std::size_t>(timer.end);
  if (timer.what == Happening::reset_locally) {
    reset_end(*connection, end);
    return;
  }
  if (is_blocked(*connection)) {
    return; // heal() sets it on its way again
  }
  switch (timer.what) {
  case Happening::syn_arrives:
    syn_arrives(*connection);
    break;
  case Happening::syn_is_answered:
    syn_is_answered(*connection);
    break;
  case Happening::chunk_arrives:
    chunks_arrive(*connection, end);
    break;
  case Happening::ack_arrives:
    acks_arrive(*connection, end);
    break;
  case Happening::reset_locally:
  case Happening::listener_is_told_again:
    break;
  }
}

SimSwitch::Connection* SimSwitch::find(SimConnectionId id) const {
  const auto found = connections_.find(id);
  return found != connections_.end() ? found->second.get() : nullptr;
}

bool SimSwitch::one_in(std::uint32_t n) {
  return n != 0 && random_.one_in(n);
}

std::uint64_t SimSwitch::draw_latency_ns() {
  WHERRY_ASSERT(options_.latency_min_ns <= options_.latency_max_ns);
  return options_.latency_min_ns +
         random_.below(options_.latency_max_ns - options_.latency_min_ns + 1);
}

SimSwitch::HostPair SimSwitch::pair_of(const std::string& a, const std::string& b) {
  return a < b ? HostPair(a, b) : HostPair(b, a);
}

std::uint64_t SimSwitch::latency_ns(const Connection& connection) {
  const HostPair hosts = pair_of(connection.ends[0].address.host, connection.ends[1].address.host);
  const auto delay = host_delays_ns_.find(hosts);
  const std::uint64_t hosts_extra_ns = delay != host_delays_ns_.end() ? delay->second : 0;
  return add_ns(add_ns(draw_latency_ns(), hosts_extra_ns), connection.extra_ns);
}

bool SimSwitch::is_blocked(const Connection& connection) const {
  return connection.black_holed || partitions_.contains(pair_of(connection.ends[0].address.host,
                                                                connection.ends[1].address.host));
}

// --- The switch: connecting ---

void SimSwitch::syn_arrives(Connection& connection) {
  if (!connection.syn_pending) {
    return;
  }
  const Address& to = connection.ends[1].address;
  const auto listener = listeners_.find({to.host, to.port});
  int answer = 0;
  if (listener == listeners_.end()) {
    const auto is_there = [&to](const SimNetwork* network) { return network->host() == to.host; };
    const bool host_is_there = std::any_of(networks_.begin(), networks_.end(), is_there);
    answer = host_is_there ? ECONNREFUSED : EHOSTUNREACH;
  } else {
    const auto [network, id] = listener->second;
    SimNetwork::Socket& socket = *network->sockets_.find(id);
    if (socket.waiting.size() >= options_.backlog_max) {
      // The kernel drops it; the client's kernel sends it again.
      set_timer(clock_.now_ns() + second_ns, Happening::syn_arrives, connection.id);
      return;
    }
    Endpoint& server = connection.ends[1];
    server.network = network;
    server.open = true;
    server.connect_state = 0;
    socket.waiting.push_back(connection.id);
    network->make_ready(id);
  }
  connection.syn_pending = false;
  connection.answer_pending = true;
  connection.answer = answer;
  Direction& back = connection.ways[1];
  back.last_at_ns = add_ns(clock_.now_ns(), latency_ns(connection));
  set_timer(back.last_at_ns, Happening::syn_is_answered, connection.id);
}

void SimSwitch::syn_is_answered(Connection& connection) {
  if (!connection.answer_pending) {
    return;
  }
  connection.answer_pending = false;
  Endpoint& client = connection.ends[0];
  if (!client.open || client.dead) {
    // It has given up meanwhile: the server end learns it.
    if (connection.answer == 0) {
      send_reset(connection, 0);
    }
    erase_if_closed(connection.id);
    return;
  }
  client.connect_state = connection.answer;
  client.dead = connection.answer != 0;
  signal(client);
}

// --- The switch: bytes ---

void SimSwitch::send(Connection& connection, std::size_t from, std::vector<std::byte> bytes) {
  Direction& way = connection.ways[from];
  way.in_flight_bytes += bytes.size();
  std::span<const std::byte> left = bytes;
  const std::uint64_t chunks = 1 + random_.below(std::max(options_.chunks_per_write_max, 1U));
  for (std::uint64_t i = 1; !left.empty(); ++i) {
    const std::size_t count =
        i >= chunks ? left.size() : static_cast<std::size_t>(1 + random_.below(left.size()));
    way.last_at_ns = std::max(way.last_at_ns, add_ns(clock_.now_ns(), latency_ns(connection)));
    way.wire.push_back(
        {.at_ns = way.last_at_ns,
         .bytes = {left.begin(), left.begin() + static_cast<std::ptrdiff_t>(count)}});
    set_timer(way.last_at_ns, Happening::chunk_arrives, connection.id, from);
    left = left.subspan(count);
  }
}

void SimSwitch::send_fin(Connection& connection, std::size_t from) {
  Direction& way = connection.ways[from];
  connection.ends[from].write_shut = true;
  way.last_at_ns = std::max(way.last_at_ns, add_ns(clock_.now_ns(), latency_ns(connection)));
  way.wire.push_back({.at_ns = way.last_at_ns, .bytes = {}, .fin = true});
  set_timer(way.last_at_ns, Happening::chunk_arrives, connection.id, from);
}

void SimSwitch::send_reset(Connection& connection, std::size_t from) {
  Direction& way = connection.ways[from];
  connection.ends[from].write_shut = true;
  // What the kernel had not yet sent is dropped; where that line runs nobody can know.
  if (!way.wire.empty()) {
    way.wire.resize(static_cast<std::size_t>(random_.below(way.wire.size() + 1)));
  }
  way.last_at_ns = std::max(way.last_at_ns, add_ns(clock_.now_ns(), latency_ns(connection)));
  way.wire.push_back({.at_ns = way.last_at_ns, .bytes = {}, .reset = true});
  set_timer(way.last_at_ns, Happening::chunk_arrives, connection.id, from);
}

void SimSwitch::chunks_arrive(Connection& connection, std::size_t from) {
  if (from == 1 && connection.answer_pending) {
    // After heal() what came behind the answer may overtake it; it says the same.
    const SimConnectionId id = connection.id;
    syn_is_answered(connection);
    if (find(id) == nullptr) {
      return;
    }
  }
  Direction& way = connection.ways[from];
  Endpoint& reader = connection.ends[1 - from];
  while (!way.wire.empty() && way.wire.front().at_ns <= clock_.now_ns()) {
    Direction::Chunk chunk = std::move(way.wire.front());
    way.wire.pop_front();
    if (chunk.reset) {
      reset_end(connection, 1 - from);
      return;
    }
    if (!reader.open || reader.dead) {
      if (!chunk.bytes.empty() && !connection.ends[from].dead) {
        way.wire.clear();
        send_reset(connection, 1 - from);
      }
      continue;
    }
    if (chunk.fin) {
      way.fin_arrived = true;
      signal(reader);
      continue;
    }
    if (std::exchange(way.corrupt_next, false)) {
      chunk.bytes[random_.below(chunk.bytes.size())] ^=
          static_cast<std::byte>(1U << random_.below(8));
    }
    way.arrived_bytes += chunk.bytes.size();
    way.arrived.push_back(std::move(chunk.bytes));
    if (reader.read_armed || !one_in(options_.unpromised_event_lost_one_in)) {
      signal(reader);
    }
  }
}

void SimSwitch::acknowledge(Connection& connection, std::size_t from, std::size_t bytes) {
  Direction& way = connection.ways[from];
  const std::uint64_t last_ns = way.acks.empty() ? 0 : way.acks.back().at_ns;
  const std::uint64_t at_ns = std::max(last_ns, add_ns(clock_.now_ns(), latency_ns(connection)));
  way.acks.push_back({at_ns, bytes});
  set_timer(at_ns, Happening::ack_arrives, connection.id, from);
}

void SimSwitch::acks_arrive(Connection& connection, std::size_t from) {
  Direction& way = connection.ways[from];
  while (!way.acks.empty() && way.acks.front().at_ns <= clock_.now_ns()) {
    WHERRY_ASSERT(way.in_flight_bytes >= way.acks.front().bytes);
    way.in_flight_bytes -= way.acks.front().bytes;
    way.acks.pop_front();
  }
  Endpoint& writer = connection.ends[from];
  if (writer.write_armed && is_writable(connection, from)) {
    signal(writer);
  }
}

void SimSwitch::reset_end(Connection& connection, std::size_t end) {
  Endpoint& victim = connection.ends[end];
  if (!victim.open || victim.dead) {
    return;
  }
  Direction& incoming = connection.ways[1 - end];
  victim.dead = true;
  if (victim.connect_state != 0) {
    victim.connect_state = ECONNRESET;
  } else {
    victim.error = incoming.fin_arrived ? EPIPE : ECONNRESET; // as Linux has it
  }
  incoming.drop_arrived();
  signal(victim);
}

void SimSwitch::close_end(Connection& connection, std::size_t end) {
  Endpoint& closed = connection.ends[end];
  WHERRY_ASSERT(closed.open);
  closed.open = false;
  closed.socket = 0;
  Direction& incoming = connection.ways[1 - end];
  const bool unread = incoming.arrived_bytes > 0;
  incoming.drop_arrived();
  if (closed.connect_state == 0 && !closed.dead) {
    if (unread) {
      send_reset(connection, end);
    } else if (!closed.write_shut) {
      send_fin(connection, end);
    }
  }
  erase_if_closed(connection.id);
}

void SimSwitch::erase_if_closed(SimConnectionId id) {
  const Connection* connection = find(id);
  // A SYN on its way may yet make the server end, which then learns of the end.
  const bool undecided = connection->syn_pending || connection->answer_pending;
  if (connection->ends[0].open || connection->ends[1].open || undecided) {
    return;
  }
  connections_.erase(id);
}

bool SimSwitch::read_shows_something(const Connection& connection, std::size_t end) const {
  const Direction& incoming = connection.ways[1 - end];
  return connection.ends[end].dead || incoming.fin_arrived || incoming.arrived_bytes > 0;
}

bool SimSwitch::is_writable(const Connection& connection, std::size_t end) const {
  if (connection.ends[end].dead) {
    return true;
  }
  // Like the kernel, which tells of room only when there is a good deal of it.
  return connection.ends[end].connect_state == 0 &&
         connection.ways[end].in_flight_bytes <= options_.in_flight_bytes_max / 2;
}

void SimSwitch::signal(Endpoint& end) {
  if (end.socket != 0) {
    end.network->make_ready(end.socket);
  }
}

// --- The switch: faults ---

void SimSwitch::cut(SimConnectionId id) {
  const Connection* connection = find(id);
  if (connection == nullptr) {
    return;
  }
  for (const std::size_t end : {0U, 1U}) {
    const std::uint64_t at_ns = clock_.now_ns() + random_.below(options_.latency_max_ns + 1);
    set_timer(at_ns, Happening::reset_locally, id, end);
  }
}

void SimSwitch::cut_host(const std::string& host) {
  for (const SimConnectionInfo& info : connections()) {
    if (info.client.host == host || info.server.host == host) {
      cut(info.id);
    }
  }
}

void SimSwitch::black_hole(SimConnectionId id) {
  if (Connection* connection = find(id)) {
    connection->black_holed = true;
  }
}

void SimSwitch::black_hole_host(const std::string& host) {
  for (const SimConnectionInfo& info : connections()) {
    if (info.client.host == host || info.server.host == host) {
      black_hole(info.id);
    }
  }
}

void SimSwitch::delay(SimConnectionId id, std::uint64_t extra_ns) {
  if (Connection* connection = find(id)) {
    connection->extra_ns = extra_ns;
  }
}

void SimSwitch::delay_hosts(const std::string& a, const std::string& b, std::uint64_t extra_ns) {
  host_delays_ns_[pair_of(a, b)] = extra_ns;
}

void SimSwitch::partition(const std::string& a, const std::string& b) {
  partitions_.insert(pair_of(a, b));
}

void SimSwitch::corrupt(SimConnectionId id, bool to_server) {
  if (Connection* connection = find(id)) {
    connection->ways[to_server ? 0 : 1].corrupt_next = true;
  }
}

void SimSwitch::heal() {
  partitions_.clear();
  host_delays_ns_.clear();
  for (auto& [id, connection] : connections_) {
    connection->black_holed = false;
    connection->extra_ns = 0;
    resume(*connection);
  }
}

/// Sends what may have been held on its way again; what was not held merely has two timers now.
void SimSwitch::resume(Connection& connection) {
  const std::uint64_t now_ns = clock_.now_ns();
  if (connection.syn_pending) {
    set_timer(now_ns + latency_ns(connection), Happening::syn_arrives, connection.id);
  }
  if (connection.answer_pending) {
    set_timer(now_ns + latency_ns(connection), Happening::syn_is_answered, connection.id);
  }
  for (const std::size_t from : {0U, 1U}) {
    Direction& way = connection.ways[from];
    way.last_at_ns = now_ns + latency_ns(connection);
    for (Direction::Chunk& chunk : way.wire) {
      chunk.at_ns =
          std::max(way.last_at_ns, std::min(chunk.at_ns, now_ns + options_.latency_max_ns));
      way.last_at_ns = chunk.at_ns;
      set_timer(chunk.at_ns, Happening::chunk_arrives, connection.id, from);
    }
    for (Direction::Ack& ack : way.acks) {
      ack.at_ns = std::min(std::max(ack.at_ns, now_ns), now_ns + options_.latency_max_ns);
      set_timer(ack.at_ns, Happening::ack_arrives, connection.id, from);
    }
  }
}

std::vector<SimConnectionInfo> SimSwitch::connections() const {
  std::vector<SimConnectionInfo> list;
  list.reserve(connections_.size());
  for (const auto& [id, connection] : connections_) {
    list.push_back({.id = id,
                    .client = connection->ends[0].address,
                    .server = connection->ends[1].address,
                    .established = connection->ends[0].connect_state == 0,
                    .black_holed = connection->black_holed,
                    .client_open = connection->ends[0].open,
                    .server_open = connection->ends[1].open,
                    .to_server_bytes = connection->ways[0].in_flight_bytes,
                    .to_client_bytes = connection->ways[1].in_flight_bytes});
  }
  return list;
}

// --- One engine's network ---

SimNetwork::~SimNetwork() {
  sockets_.for_each([this](SocketId id, Socket&) { close(id); });
  std::erase(switch_.networks_, this);
}

void SimNetwork::fail_next(SimCall call, int error, std::uint32_t skip) {
  planted_[call].push_back({skip, error});
}

int SimNetwork::planted_error(SimCall call) {
  auto& list = planted_[call];
  if (list.empty()) {
    return 0;
  }
  if (list.front().skip > 0) {
    --list.front().skip;
    return 0;
  }
  const int error = list.front().error;
  list.pop_front();
  return error;
}

SimConnectionId SimNetwork::connection_of(SocketId socket) const {
  const Socket* found = sockets_.find(socket);
  return found != nullptr ? found->connection : 0;
}

void SimNetwork::make_ready(SocketId id) {
  Socket* socket = sockets_.find(id);
  if (socket == nullptr || socket->ready) {
    return;
  }
  socket->ready = true;
  ready_.push_back(id);
}

std::string SimNetwork::own_host(const std::string& text) const {
  return text == "127.0.0.1" || text == "::1" ? host_ : text;
}

std::uint16_t SimNetwork::free_port() {
  std::uint16_t& next = switch_.next_port_.try_emplace(host_, first_ephemeral_port).first->second;
  std::uint16_t port = 0;
  do {
    port = next;
    next = next == UINT16_MAX ? first_ephemeral_port : static_cast<std::uint16_t>(next + 1);
  } while (switch_.listeners_.contains({host_, port}));
  return port;
}

Result<Listener> SimNetwork::listen(const Address& address, std::uint64_t token) {
  const auto refuse = [&address](int error) {
    return fail(native_error("bind", error, "cannot listen on " + address.to_string()));
  };
  if (const int error = planted_error(SimCall::listen); error != 0) {
    return refuse(error);
  }
  const bool wildcard = address.host == "0.0.0.0" || address.host == "::";
  if (!wildcard && own_host(address.host) != host_) {
    return refuse(EADDRNOTAVAIL);
  }
  const std::uint16_t port = address.port != 0 ? address.port : free_port();
  if (switch_.listeners_.contains({host_, port})) {
    return refuse(EADDRINUSE);
  }
  const auto [id, socket] = sockets_.emplace();
  WHERRY_ASSERT(socket != nullptr);
  socket->token = token;
  socket->bound = {address.host, port};
  switch_.listeners_[{host_, port}] = {this, id};
  return Listener{id, socket->bound};
}

Result<SocketId> SimNetwork::accept(SocketId listener) {
  if (sockets_.find(listener) == nullptr) {
    return fail(native_error("accept4", EBADF, "a closed listener"));
  }
  if (const int error = planted_error(SimCall::accept); error != 0) {
    switch_.set_timer(switch_.clock_.now_ns() + listener_retry_ns,
                      SimSwitch::Happening::listener_is_told_again, listener, id_);
    return fail(native_error("accept4", error, "cannot take a connection"));
  }
  auto& waiting = sockets_.find(listener)->waiting;
  if (waiting.empty()) {
    return SocketId{0};
  }
  const SimConnectionId connection = waiting.front();
  waiting.pop_front();
  const auto [id, socket] = sockets_.emplace();
  WHERRY_ASSERT(socket != nullptr);
  socket->connection = connection;
  socket->end = 1;
  switch_.find(connection)->ends[1].socket = id;
  make_ready(id); // it can be written to, and more may have happened already
  return id;
}

Result<SocketId> SimNetwork::connect(const Address& address, std::uint64_t token) {
  if (const int error = planted_error(SimCall::connect); error != 0) {
    return fail(native_error("connect", error, "cannot connect to " + address.to_string()));
  }
  auto connection = std::make_unique<SimSwitch::Connection>();
  connection->id = ++switch_.last_connection_;
  connection->ends[0].network = this;
  connection->ends[0].open = true;
  connection->ends[0].address = {host_, free_port()};
  connection->ends[1].address = {own_host(address.host), address.port};
  const auto [id, socket] = sockets_.emplace();
  WHERRY_ASSERT(socket != nullptr);
  socket->token = token;
  socket->connection = connection->id;
  socket->end = 0;
  connection->ends[0].socket = id;
  const std::uint64_t at_ns = add_ns(switch_.clock_.now_ns(), switch_.latency_ns(*connection));
  switch_.set_timer(at_ns, SimSwitch::Happening::syn_arrives, connection->id);
  switch_.connections_.emplace(connection->id, std::move(connection));
  return id;
}

int SimNetwork::connect_error(SocketId id) {
  const Socket* socket = sockets_.find(id);
  if (socket == nullptr || socket->connection == 0) {
    return EBADF;
  }
  return switch_.find(socket->connection)->ends[socket->end].connect_state;
}

void SimNetwork::set_token(SocketId id, std::uint64_t token) {
  if (Socket* socket = sockets_.find(id)) {
    socket->token = token;
  }
}

std::string SimNetwork::peer_name(SocketId id) {
  const Socket* socket = sockets_.find(id);
  if (socket == nullptr || socket->connection == 0) {
    return "a closed socket";
  }
  return switch_.find(socket->connection)->ends[1 - socket->end].address.to_string();
}

IoResult SimNetwork::readv(SocketId id, std::span<const iovec> into) {
  const Socket* socket = sockets_.find(id);
  if (socket == nullptr || socket->connection == 0) {
    return {0, EBADF};
  }
  WHERRY_ASSERT(total_bytes(into) > 0);
  ++calls_.readv;
  if (const int error = planted_error(SimCall::readv); error != 0) {
    return {0, error};
  }
  SimSwitch::Connection& connection = *switch_.find(socket->connection);
  SimSwitch::Endpoint& self = connection.ends[socket->end];
  SimSwitch::Direction& way = connection.ways[1 - socket->end];
  if (self.error != 0) {
    return {0, std::exchange(self.error, 0)};
  }
  if (way.arrived_bytes == 0) {
    if (way.fin_arrived || self.dead) {
      return {0, 0};
    }
    self.read_armed = true;
    return {0, EAGAIN};
  }
  const std::size_t wanted = total_bytes(into);
  std::size_t count = std::min(wanted, way.arrived_bytes);
  if (switch_.one_in(switch_.options_.short_read_one_in)) {
    count = static_cast<std::size_t>(1 + switch_.random_.below(count));
  }
  way.take(into, count);
  switch_.acknowledge(connection, 1 - socket->end, count);
  self.read_armed = count < wanted;
  if (self.read_armed && way.arrived_bytes > 0) {
    make_ready(id); // fewer than it could have given: the event that is promised comes at once
  }
  return {count, 0};
}

IoResult SimNetwork::writev(SocketId id, std::span<const iovec> from) {
  const Socket* socket = sockets_.find(id);
  if (socket == nullptr || socket->connection == 0) {
    return {0, EBADF};
  }
  WHERRY_ASSERT(total_bytes(from) > 0);
  ++calls_.writev;
  if (const int error = planted_error(SimCall::writev); error != 0) {
    return {0, error};
  }
  SimSwitch::Connection& connection = *switch_.find(socket->connection);
  SimSwitch::Endpoint& self = connection.ends[socket->end];
  const SimSwitch::Direction& way = connection.ways[socket->end];
  if (self.error != 0) {
    return {0, std::exchange(self.error, 0)};
  }
  if (self.dead || self.write_shut) {
    return {0, EPIPE};
  }
  const std::size_t room_max = switch_.options_.in_flight_bytes_max;
  if (self.connect_state != 0 || way.in_flight_bytes >= room_max) {
    self.write_armed = true;
    return {0, EAGAIN};
  }
  const std::size_t wanted = total_bytes(from);
  std::size_t count = std::min(wanted, room_max - way.in_flight_bytes);
  if (switch_.one_in(switch_.options_.short_write_one_in)) {
    count = static_cast<std::size_t>(1 + switch_.random_.below(count));
  }
  std::vector<std::byte> bytes;
  bytes.reserve(count);
  for (const iovec& piece : from) {
    const auto* begin = static_cast<const std::byte*>(piece.iov_base);
    const std::size_t step = std::min(piece.iov_len, count - bytes.size());
    bytes.insert(bytes.end(), begin, begin + step);
  }
  switch_.send(connection, socket->end, std::move(bytes));
  if (count < wanted) {
    self.write_armed = true;
    if (switch_.is_writable(connection, socket->end)) {
      make_ready(id);
    }
  }
  return {count, 0};
}

void SimNetwork::shutdown_write(SocketId id) {
  const Socket* socket = sockets_.find(id);
  if (socket == nullptr || socket->connection == 0) {
    return;
  }
  SimSwitch::Connection& connection = *switch_.find(socket->connection);
  SimSwitch::Endpoint& self = connection.ends[socket->end];
  if (self.dead || self.write_shut) {
    return;
  }
  if (self.connect_state != 0) {
    // As Linux: an attempt that is not yet decided ends.
    self.dead = true;
    self.connect_state = ENOTCONN;
    make_ready(id);
    return;
  }
  switch_.send_fin(connection, socket->end);
}

void SimNetwork::close_listener(Socket& listener) {
  switch_.listeners_.erase({host_, listener.bound.port});
  for (const SimConnectionId waiting : listener.waiting) {
    SimSwitch::Connection& connection = *switch_.find(waiting);
    switch_.send_reset(connection, 1);
    connection.ends[1].open = false;
    switch_.erase_if_closed(waiting);
  }
}

void SimNetwork::close(SocketId id) {
  Socket* socket = sockets_.find(id);
  if (socket == nullptr) {
    return;
  }
  if (socket->connection == 0) {
    close_listener(*socket);
  } else {
    switch_.close_end(*switch_.find(socket->connection), socket->end);
  }
  if (socket->ready) {
    std::erase(ready_, id);
  }
  sockets_.erase(id);
}

/// False: by now there is nothing to tell.
bool SimNetwork::describe(SocketId id, NetworkEvent& out) {
  const Socket& socket = *sockets_.find(id);
  out = NetworkEvent{.token = socket.token};
  if (socket.connection == 0) {
    out.readable = !socket.waiting.empty();
    return out.readable;
  }
  const SimSwitch::Connection& connection = *switch_.find(socket.connection);
  SimSwitch::Endpoint& self = switch_.find(socket.connection)->ends[socket.end];
  out.readable = switch_.read_shows_something(connection, socket.end);
  out.writable = switch_.is_writable(connection, socket.end);
  out.hangup = self.dead || connection.ways[1 - socket.end].fin_arrived;
  self.read_armed = self.read_armed && !out.readable;
  self.write_armed = self.write_armed && !out.writable;
  return out.readable || out.writable;
}

std::size_t SimNetwork::wait(std::span<NetworkEvent> out, std::int64_t /*timeout_ns*/) {
  WHERRY_ASSERT(!out.empty());
  ++calls_.wait;
  woken_ = false;
  std::size_t count = 0;
  while (count < out.size() && !ready_.empty()) {
    const auto index = static_cast<std::size_t>(switch_.random_.below(ready_.size()));
    const SocketId id = ready_[index];
    ready_[index] = ready_.back();
    ready_.pop_back();
    sockets_.find(id)->ready = false;
    if (describe(id, out[count])) {
      ++count;
    }
  }
  return count;
}

Result<std::vector<Address>> SimNetwork::resolve(const std::string& host, std::uint16_t port) {
  const auto named = switch_.names_.find(host);
  if (named != switch_.names_.end()) {
    std::vector<Address> addresses;
    for (const std::string& numeric : named->second) {
      addresses.push_back({numeric, port});
    }
    return addresses;
  }
  if (host.find_first_not_of("0123456789.:") == std::string::npos) {
    return std::vector<Address>{{host, port}};
  }
  return fail(ErrorCode::not_found,
              "no address of the host " + host + ": Name or service not known");
}

} // namespace wherry

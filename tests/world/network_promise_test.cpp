// Goal: what network.h promises is enough to move every byte, over the kernel and over the
// simulation. Method: two peers that act on promised events only. A peer reads (or writes) until
// EAGAIN or fewer bytes than it offered, and then not again until an event says so; after `hangup`
// it reads to the end. Both send a stream, end it, and compare what they got. A promise that is not
// kept hangs the exchange, which shows as "nothing left to happen".
#include "base/random.h"
#include "os/network.h"
#include "world/sim_network.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

namespace wherry {
namespace {

/// One end of the exchange.
class Peer {
public:
  Peer(Network& network, std::uint64_t seed, std::size_t bytes) : network_(network), random_(seed) {
    to_send_.resize(bytes);
    random_.fill(std::as_writable_bytes(std::span(to_send_)));
  }

  void attach(SocketId socket) { socket_ = socket; }
  void on_event(const NetworkEvent& event) {
    hangup_ = hangup_ || event.hangup;
    if (event.readable) {
      read_all();
    }
    if (event.writable) {
      write_all();
    }
  }
  bool done() const { return ended_ && sent_ == to_send_.size(); }
  const std::string& sent() const { return to_send_; }
  const std::string& received() const { return received_; }

private:
  void read_all() {
    std::vector<char> buffer(1 + random_.below(9000));
    while (!ended_) {
      const iovec piece{buffer.data(), buffer.size()};
      const IoResult result = network_.readv(socket_, std::span(&piece, 1));
      if (result.error != 0) {
        ASSERT_EQ(result.error, EAGAIN);
        return;
      }
      received_.append(buffer.data(), result.bytes);
      ended_ = result.bytes == 0;
      if (result.bytes < buffer.size() && !hangup_) {
        return;
      }
    }
  }
  void write_all() {
    while (sent_ < to_send_.size()) {
      const std::size_t offered =
          std::min<std::size_t>(1 + random_.below(20'000), to_send_.size() - sent_);
      const iovec piece{to_send_.data() + sent_, offered};
      const IoResult result = network_.writev(socket_, std::span(&piece, 1));
      if (result.error != 0) {
        ASSERT_EQ(result.error, EAGAIN);
        return;
      }
      sent_ += result.bytes;
      if (result.bytes < offered) {
        return;
      }
    }
    if (!shut_) {
      shut_ = true;
      network_.shutdown_write(socket_);
    }
  }

  Network& network_;
  SeededRandom random_;
  SocketId socket_ = 0;
  std::string to_send_;
  std::string received_;
  std::size_t sent_ = 0;
  bool shut_ = false;
  bool ended_ = false;
  bool hangup_ = false;
};

constexpr std::uint64_t client_token = 1;
constexpr std::uint64_t server_token = 2;
constexpr std::uint64_t listener_token = 3;

/// Gives the events of one network to the peers; false if there were none.
bool serve(Network& network, const Listener& listener, Peer& client, Peer& server,
           std::int64_t timeout_ns) {
  std::array<NetworkEvent, 3> events;
  const std::size_t count = network.wait(events, timeout_ns);
  for (const NetworkEvent& event : std::span(events).first(count)) {
    if (event.token == listener_token) {
      const SocketId accepted = network.accept(listener.socket).value_or(0);
      if (accepted != 0) {
        network.set_token(accepted, server_token);
        server.attach(accepted);
      }
    } else if (event.token == client_token) {
      client.on_event(event);
    } else if (event.token == server_token) {
      server.on_event(event);
    }
  }
  return count > 0;
}

void expect_exchanged(const Peer& client, const Peer& server) {
  ASSERT_TRUE(client.done());
  ASSERT_TRUE(server.done());
  EXPECT_TRUE(client.received() == server.sent());
  EXPECT_TRUE(server.received() == client.sent());
}

TEST(NetworkPromise, the_kernels_events_move_every_byte) {
  const auto network = *make_kernel_network();
  const auto listener = network->listen({"127.0.0.1", 0}, listener_token);
  ASSERT_TRUE(listener);
  Peer client(*network, 1, 8U << 20);
  Peer server(*network, 2, 5U << 20);
  client.attach(network->connect(listener->bound, client_token).value_or(0));
  while (!client.done() || !server.done()) {
    ASSERT_TRUE(serve(*network, *listener, client, server, 20'000'000'000)) << "no event for 20 s";
  }
  expect_exchanged(client, server);
}

/// One exchange in a simulated world. The history says what happened, byte counts and times
/// included.
std::string exchange(std::uint64_t seed) {
  SeededRandom random(seed);
  SimNetworkOptions options;
  options.in_flight_bytes_max = 1 + random.below(20'000);
  options.short_read_one_in = static_cast<std::uint32_t>(random.below(4));
  options.short_write_one_in = static_cast<std::uint32_t>(random.below(4));
  options.unpromised_event_lost_one_in = static_cast<std::uint32_t>(random.below(3));
  SimClock clock;
  SimSwitch net(clock, random.next(), options);
  const auto owner = net.attach("10.0.0.1");
  const auto consumer = net.attach("10.0.0.2");
  const auto listener = owner->listen({"10.0.0.1", 7000}, listener_token);
  Peer client(*consumer, random.next(), random.below(60'000));
  Peer server(*owner, random.next(), random.below(60'000));
  client.attach(consumer->connect(listener->bound, client_token).value_or(0));

  std::string history;
  bool partitioned = random.one_in(2);
  while (net.next_event_ns() != never_ns) {
    net.advance_to(net.next_event_ns());
    bool moved = true;
    while (moved) {
      moved = serve(*owner, *listener, client, server, 0);
      moved = serve(*consumer, *listener, client, server, 0) || moved;
      history += std::to_string(clock.now_ns()) + ":" + std::to_string(client.received().size()) +
                 "," + std::to_string(server.received().size()) + " ";
    }
    if (partitioned && random.one_in(20)) {
      partitioned = false;
      net.partition("10.0.0.1", "10.0.0.2");
      net.advance_to(clock.now_ns() + 1'000'000);
      net.heal();
    }
  }
  expect_exchanged(client, server);
  return history;
}

TEST(NetworkPromise, the_simulations_events_move_every_byte_whatever_the_seed) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    exchange(seed);
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
}

TEST(NetworkPromise, a_seed_gives_the_same_history_again_and_another_seed_another_one) {
  EXPECT_EQ(exchange(11), exchange(11));
  EXPECT_NE(exchange(11), exchange(12));
}

} // namespace
} // namespace wherry

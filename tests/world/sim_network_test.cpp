// The simulated network keeps network.h's promises, breaks none that it does not make, repeats
// itself from a seed, and does the faults that are ordered. What the world proves rests on this.
#include "world/sim_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace wherry {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t second_ns = 1'000'000'000;

/// No surprises but those that a test orders.
SimNetworkOptions gentle() {
  SimNetworkOptions options;
  options.short_read_one_in = 0;
  options.short_write_one_in = 0;
  options.chunks_per_write_max = 1;
  options.unpromised_event_lost_one_in = 0;
  return options;
}

class SimNetworkTest : public ::testing::Test {
protected:
  /// Lets time pass until nothing more happens; networks keep their events.
  void settle() {
    while (switch_.next_timer_ns() != never_ns) {
      switch_.advance_to(switch_.next_timer_ns());
    }
  }
  std::vector<NetworkEvent> events(SimNetwork& network) {
    std::vector<NetworkEvent> all(64);
    all.resize(network.wait(all, 0));
    return all;
  }
  /// The events of one token together; token 0 with nothing set if there were none.
  NetworkEvent event_of(SimNetwork& network, std::uint64_t token) {
    NetworkEvent sum;
    for (const NetworkEvent& event : events(network)) {
      if (event.token == token) {
        sum.token = token;
        sum.readable |= event.readable;
        sum.writable |= event.writable;
        sum.hangup |= event.hangup;
      }
    }
    return sum;
  }

  /// client_ has token 1, server_ token 2, the listener token 3.
  void connect_pair() {
    listener_ = *owner_->listen({"10.0.0.1", 7000}, 3);
    client_ = *consumer_->connect(listener_.bound, 1);
    settle();
    server_ = *owner_->accept(listener_.socket);
    ASSERT_NE(server_, 0U);
    owner_->set_token(server_, 2);
    ASSERT_EQ(consumer_->connect_error(client_), 0);
    events(*owner_);
    events(*consumer_);
    connection_ = consumer_->connection_of(client_);
  }

  static IoResult read(SimNetwork& network, SocketId socket, std::span<char> into) {
    const iovec piece{into.data(), into.size()};
    return network.readv(socket, std::span(&piece, 1));
  }
  static IoResult write(SimNetwork& network, SocketId socket, std::string_view text) {
    const iovec piece{const_cast<char*>(text.data()), text.size()};
    return network.writev(socket, std::span(&piece, 1));
  }
  /// Reads until something else than bytes comes, which `last` gives.
  static std::string read_all(SimNetwork& network, SocketId socket, IoResult* last = nullptr) {
    std::string all;
    std::vector<char> buffer(4096);
    while (true) {
      const IoResult result = read(network, socket, buffer);
      if (result.error != 0 || result.bytes == 0) {
        if (last != nullptr) {
          *last = result;
        }
        return all;
      }
      all.append(buffer.data(), result.bytes);
    }
  }

  SimClock clock_;
  SimSwitch switch_{clock_, 1, gentle()};
  std::unique_ptr<SimNetwork> owner_ = switch_.attach("10.0.0.1");
  std::unique_ptr<SimNetwork> consumer_ = switch_.attach("10.0.0.2");
  Listener listener_;
  SocketId client_ = 0;
  SocketId server_ = 0;
  SimConnectionId connection_ = 0;
};

// --- Connecting ---

TEST_F(SimNetworkTest, connecting_takes_time_and_is_told_by_a_first_writable_event) {
  listener_ = *owner_->listen({"10.0.0.1", 0}, 3);
  EXPECT_NE(listener_.bound.port, 0);
  client_ = *consumer_->connect(listener_.bound, 1);
  EXPECT_EQ(consumer_->connect_error(client_), EINPROGRESS);
  EXPECT_EQ(write(*consumer_, client_, "x").error, EAGAIN);
  EXPECT_TRUE(events(*consumer_).empty());
  EXPECT_EQ(*owner_->accept(listener_.socket), 0U);

  const std::uint64_t before_ns = clock_.now_ns();
  settle();
  EXPECT_GE(clock_.now_ns() - before_ns, 2 * switch_.options().latency_min_ns);
  EXPECT_TRUE(event_of(*consumer_, 1).writable);
  EXPECT_EQ(consumer_->connect_error(client_), 0);
  EXPECT_TRUE(event_of(*owner_, 3).readable);
  server_ = *owner_->accept(listener_.socket);
  ASSERT_NE(server_, 0U);
  EXPECT_EQ(*owner_->accept(listener_.socket), 0U);
  owner_->set_token(server_, 2);
  EXPECT_TRUE(event_of(*owner_, 2).writable);
  EXPECT_EQ(consumer_->peer_name(client_), listener_.bound.to_string());
  EXPECT_THAT(owner_->peer_name(server_), HasSubstr("10.0.0.2:"));
}

TEST_F(SimNetworkTest,
       a_port_without_listener_refuses_and_a_host_that_is_not_there_is_unreachable) {
  const SocketId refused = *consumer_->connect({"10.0.0.1", 1}, 1);
  const SocketId nowhere = *consumer_->connect({"10.0.0.9", 1}, 2);
  settle();
  const std::vector<NetworkEvent> told = events(*consumer_);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_TRUE(told[0].writable && told[0].hangup);
  EXPECT_EQ(consumer_->connect_error(refused), ECONNREFUSED);
  EXPECT_EQ(consumer_->connect_error(refused), ECONNREFUSED);
  EXPECT_EQ(consumer_->connect_error(nowhere), EHOSTUNREACH);
  EXPECT_EQ(write(*consumer_, refused, "x").error, EPIPE);
  consumer_->close(refused);
  consumer_->close(nowhere);
  EXPECT_TRUE(switch_.connections().empty());
}

TEST_F(SimNetworkTest, ports_belong_to_hosts_and_come_back_with_close) {
  const auto first = owner_->listen({"0.0.0.0", 7}, 1);
  ASSERT_TRUE(first);
  const auto neighbour = switch_.attach("10.0.0.1");
  const auto taken = neighbour->listen({"10.0.0.1", 7}, 1);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().native_call, "bind");
  EXPECT_EQ(taken.error().native_number, EADDRINUSE);
  EXPECT_TRUE(consumer_->listen({"10.0.0.2", 7}, 1));
  EXPECT_EQ(owner_->listen({"10.0.0.2", 8}, 1).error().native_number, EADDRNOTAVAIL);
  owner_->close(first->socket);
  EXPECT_TRUE(neighbour->listen({"10.0.0.1", 7}, 1));
}

TEST_F(SimNetworkTest, a_full_backlog_makes_the_client_wait_until_there_is_room) {
  SimNetworkOptions options = gentle();
  options.backlog_max = 1;
  switch_.set_options(options);
  listener_ = *owner_->listen({"10.0.0.1", 7000}, 3);
  const SocketId first = *consumer_->connect(listener_.bound, 1);
  switch_.advance_to(clock_.now_ns() + second_ns / 2);
  const SocketId second = *consumer_->connect(listener_.bound, 2);
  switch_.advance_to(clock_.now_ns() + second_ns / 2);
  EXPECT_EQ(consumer_->connect_error(first), 0);
  EXPECT_EQ(consumer_->connect_error(second), EINPROGRESS);
  ASSERT_NE(*owner_->accept(listener_.socket), 0U);
  settle();
  EXPECT_EQ(consumer_->connect_error(second), 0);
}

TEST_F(SimNetworkTest, a_client_that_gives_up_before_the_answer_resets_the_server_end) {
  listener_ = *owner_->listen({"10.0.0.1", 7000}, 3);
  client_ = *consumer_->connect(listener_.bound, 1);
  consumer_->close(client_);
  settle();
  server_ = *owner_->accept(listener_.socket);
  ASSERT_NE(server_, 0U);
  std::vector<char> buffer(1);
  EXPECT_EQ(read(*owner_, server_, buffer).error, ECONNRESET);
  owner_->close(server_);
  EXPECT_TRUE(switch_.connections().empty());
}

TEST_F(SimNetworkTest, a_listener_that_closes_resets_who_waits_there) {
  listener_ = *owner_->listen({"10.0.0.1", 7000}, 3);
  client_ = *consumer_->connect(listener_.bound, 1);
  settle();
  owner_->close(listener_.socket);
  settle();
  std::vector<char> buffer(1);
  EXPECT_EQ(read(*consumer_, client_, buffer).error, ECONNRESET);
}

// --- Bytes and events ---

TEST_F(SimNetworkTest, bytes_take_time_and_arrive_in_order) {
  connect_pair();
  ASSERT_EQ(write(*consumer_, client_, "one").bytes, 3U);
  ASSERT_EQ(write(*consumer_, client_, "two").bytes, 3U);
  EXPECT_EQ(read_all(*owner_, server_), "");
  settle();
  EXPECT_TRUE(event_of(*owner_, 2).readable);
  EXPECT_EQ(read_all(*owner_, server_), "onetwo");
}

TEST_F(SimNetworkTest, an_event_is_told_once_and_again_after_eagain_or_a_short_read) {
  connect_pair();
  std::vector<char> two(2);
  ASSERT_EQ(write(*consumer_, client_, "abc").bytes, 3U);
  settle();
  EXPECT_TRUE(event_of(*owner_, 2).readable);
  EXPECT_EQ(event_of(*owner_, 2).token, 0U); // told

  ASSERT_EQ(read(*owner_, server_, two).bytes, 2U); // all that was offered: nothing is promised
  EXPECT_EQ(event_of(*owner_, 2).token, 0U);
  ASSERT_EQ(read(*owner_, server_, two).bytes, 1U); // short: promised
  ASSERT_EQ(write(*consumer_, client_, "d").bytes, 1U);
  settle();
  EXPECT_TRUE(event_of(*owner_, 2).readable);
}

TEST_F(SimNetworkTest, an_event_that_is_not_promised_may_stay_away) {
  SimNetworkOptions options = gentle();
  options.unpromised_event_lost_one_in = 1;
  switch_.set_options(options);
  connect_pair();
  std::vector<char> one(1);
  ASSERT_EQ(write(*consumer_, client_, "a").bytes, 1U);
  settle();
  EXPECT_TRUE(event_of(*owner_, 2).readable);
  ASSERT_EQ(read(*owner_, server_, one).bytes, 1U); // not short: the reader should go on
  ASSERT_EQ(write(*consumer_, client_, "b").bytes, 1U);
  settle();
  EXPECT_EQ(event_of(*owner_, 2).token, 0U);
  EXPECT_EQ(read_all(*owner_, server_), "b");
}

TEST_F(SimNetworkTest, a_read_that_was_cut_short_here_is_told_again_at_once) {
  SimNetworkOptions options = gentle();
  options.short_read_one_in = 1;
  switch_.set_options(options);
  connect_pair();
  ASSERT_EQ(write(*consumer_, client_, std::string(1000, 'x')).bytes, 1000U);
  settle();
  std::vector<char> buffer(1000);
  std::size_t got = 0;
  while (got < 1000) {
    ASSERT_TRUE(event_of(*owner_, 2).readable) << got;
    got += read(*owner_, server_, buffer).bytes;
  }
}

TEST_F(SimNetworkTest, a_full_direction_answers_eagain_and_tells_when_there_is_room) {
  SimNetworkOptions options = gentle();
  options.in_flight_bytes_max = 100;
  switch_.set_options(options);
  connect_pair();
  ASSERT_EQ(write(*consumer_, client_, std::string(150, 'x')).bytes, 100U);
  EXPECT_EQ(write(*consumer_, client_, "x").error, EAGAIN);
  settle();
  EXPECT_EQ(event_of(*consumer_, 1).token, 0U); // arrived, but nobody has read it
  EXPECT_EQ(switch_.connections().front().to_server_bytes, 100U);
  EXPECT_EQ(read_all(*owner_, server_).size(), 100U);
  EXPECT_EQ(write(*consumer_, client_, "x").error, EAGAIN); // the acknowledgement is on its way
  settle();
  EXPECT_TRUE(event_of(*consumer_, 1).writable);
  EXPECT_EQ(write(*consumer_, client_, "x").bytes, 1U);
}

TEST_F(SimNetworkTest, pieces_are_gathered_and_scattered_over_chunk_borders) {
  SimNetworkOptions options = gentle();
  options.chunks_per_write_max = 8;
  switch_.set_options(options);
  connect_pair();
  std::string text = "abcdefghij";
  std::array<iovec, 3> from = {iovec{text.data(), 3}, iovec{text.data(), 0},
                               iovec{text.data() + 3, 7}};
  ASSERT_EQ(consumer_->writev(client_, from).bytes, 10U);
  settle();
  std::string first(4, ' ');
  std::string second(9, ' ');
  std::array<iovec, 3> into = {iovec{first.data(), 4}, iovec{nullptr, 0}, iovec{second.data(), 9}};
  ASSERT_EQ(owner_->readv(server_, into).bytes, 10U);
  EXPECT_EQ(first + second, "abcdefghij   ");
}

// --- Ends ---

TEST_F(SimNetworkTest, a_half_close_arrives_after_the_last_byte_and_the_other_direction_goes_on) {
  connect_pair();
  ASSERT_EQ(write(*consumer_, client_, "last").bytes, 4U);
  consumer_->shutdown_write(client_);
  EXPECT_EQ(write(*consumer_, client_, "x").error, EPIPE);
  settle();
  EXPECT_TRUE(event_of(*owner_, 2).hangup);
  IoResult end;
  EXPECT_EQ(read_all(*owner_, server_, &end), "last");
  EXPECT_EQ(end.error, 0);
  ASSERT_EQ(write(*owner_, server_, "answer").bytes, 6U);
  settle();
  EXPECT_EQ(read_all(*consumer_, client_), "answer");
}

TEST_F(SimNetworkTest,
       closing_with_unread_input_resets_the_peer_and_discards_what_it_has_not_read) {
  connect_pair();
  ASSERT_EQ(write(*owner_, server_, "never read").bytes, 10U);
  ASSERT_EQ(write(*consumer_, client_, "unread").bytes, 6U);
  settle();
  owner_->close(server_);
  settle();
  const NetworkEvent told = event_of(*consumer_, 1);
  EXPECT_TRUE(told.hangup && told.readable);
  IoResult end;
  EXPECT_EQ(read_all(*consumer_, client_, &end), "");
  EXPECT_EQ(end.error, ECONNRESET);
  // As Linux: the error is told once, and what follows looks like a clean end.
  EXPECT_EQ(read_all(*consumer_, client_, &end), "");
  EXPECT_EQ(end.error, 0);
  EXPECT_EQ(write(*consumer_, client_, "x").error, EPIPE);
}

TEST_F(SimNetworkTest, bytes_that_reach_a_closed_socket_reset_the_sender) {
  connect_pair();
  ASSERT_EQ(write(*consumer_, client_, "late").bytes, 4U);
  owner_->close(server_); // nothing unread yet: a clean end goes out first
  settle();
  IoResult end;
  read_all(*consumer_, client_, &end);
  EXPECT_NE(end.error, 0);
  consumer_->close(client_);
  EXPECT_TRUE(switch_.connections().empty());
}

TEST_F(SimNetworkTest, a_dropped_network_is_a_process_that_ended) {
  connect_pair();
  owner_.reset();
  settle();
  EXPECT_TRUE(event_of(*consumer_, 1).hangup);
  const SocketId again = *consumer_->connect({"10.0.0.1", 7000}, 5);
  settle();
  EXPECT_EQ(consumer_->connect_error(again), EHOSTUNREACH);
  owner_ = switch_.attach("10.0.0.1"); // restarted, with the same port
  EXPECT_TRUE(owner_->listen({"10.0.0.1", 7000}, 3));
}

TEST_F(SimNetworkTest, closed_sockets_have_no_events_and_their_ids_find_nothing) {
  connect_pair();
  ASSERT_EQ(write(*consumer_, client_, "x").bytes, 1U);
  settle();
  owner_->close(server_);
  EXPECT_TRUE(events(*owner_).empty());
  EXPECT_EQ(write(*owner_, server_, "x").error, EBADF);
  EXPECT_EQ(owner_->connect_error(server_), EBADF);
  EXPECT_NE(*owner_->connect(listener_.bound, 9), server_);
}

// --- Waiting ---

TEST_F(SimNetworkTest, next_event_is_now_while_something_is_untold_and_never_when_all_is_still) {
  EXPECT_EQ(switch_.next_event_ns(), never_ns);
  owner_->wake();
  EXPECT_EQ(switch_.next_event_ns(), clock_.now_ns());
  EXPECT_TRUE(events(*owner_).empty());
  EXPECT_EQ(switch_.next_event_ns(), never_ns);
  connect_pair();
  ASSERT_EQ(write(*consumer_, client_, "x").bytes, 1U);
  EXPECT_GT(switch_.next_event_ns(), clock_.now_ns());
  settle();
  EXPECT_EQ(switch_.next_event_ns(), clock_.now_ns());
}

TEST_F(SimNetworkTest, events_that_do_not_fit_come_with_the_next_wait) {
  for (std::uint64_t token = 1; token <= 5; ++token) {
    ASSERT_TRUE(consumer_->connect({"10.0.0.1", 1}, token));
  }
  settle();
  std::set<std::uint64_t> told;
  std::array<NetworkEvent, 2> window;
  for (const std::size_t expected : {2U, 2U, 1U, 0U}) {
    ASSERT_EQ(consumer_->wait(window, 0), expected);
    for (std::size_t i = 0; i < expected; ++i) {
      EXPECT_TRUE(told.insert(window[i].token).second);
    }
  }
}

// --- Faults ---

TEST_F(SimNetworkTest, a_cut_connection_is_reset_on_both_sides) {
  connect_pair();
  switch_.cut(connection_);
  settle();
  IoResult end;
  EXPECT_TRUE(event_of(*owner_, 2).hangup);
  read_all(*owner_, server_, &end);
  EXPECT_EQ(end.error, ECONNRESET);
  EXPECT_EQ(write(*consumer_, client_, "x").error, ECONNRESET);
  EXPECT_EQ(write(*consumer_, client_, "x").error, EPIPE);
}

TEST_F(SimNetworkTest, cutting_a_host_spares_the_others) {
  connect_pair();
  const auto bystander = switch_.attach("10.0.0.3");
  const SocketId other = *bystander->connect(listener_.bound, 1);
  settle();
  switch_.cut_host("10.0.0.2");
  settle();
  EXPECT_EQ(write(*consumer_, client_, "x").error, ECONNRESET);
  EXPECT_EQ(write(*bystander, other, "x").bytes, 1U);
}

TEST_F(SimNetworkTest, a_black_hole_takes_bytes_and_says_nothing_until_it_heals) {
  connect_pair();
  ASSERT_EQ(write(*consumer_, client_, "before").bytes, 6U);
  switch_.black_hole(connection_);
  ASSERT_EQ(write(*consumer_, client_, "+after").bytes, 6U);
  consumer_->shutdown_write(client_);
  settle();
  EXPECT_TRUE(events(*owner_).empty());
  EXPECT_TRUE(events(*consumer_).empty());
  EXPECT_TRUE(switch_.connections().front().black_holed);
  switch_.advance_to(clock_.now_ns() + 3600 * second_ns);
  switch_.heal();
  settle();
  EXPECT_EQ(read_all(*owner_, server_), "before+after");
}

TEST_F(SimNetworkTest, a_partition_holds_everything_between_two_hosts_connecting_included) {
  connect_pair();
  switch_.partition("10.0.0.2", "10.0.0.1");
  const SocketId late = *consumer_->connect(listener_.bound, 5);
  ASSERT_EQ(write(*owner_, server_, "held").bytes, 4U);
  settle();
  EXPECT_EQ(consumer_->connect_error(late), EINPROGRESS);
  EXPECT_EQ(read_all(*consumer_, client_), "");
  switch_.heal();
  settle();
  EXPECT_EQ(consumer_->connect_error(late), 0);
  EXPECT_EQ(read_all(*consumer_, client_), "held");
}

// The answer to connecting is held and healing mixes the timers: the client must never read bytes
// of a connection that it is told is undecided.
TEST_F(SimNetworkTest, after_healing_no_byte_overtakes_the_answer_to_connecting) {
  listener_ = *owner_->listen({"10.0.0.1", 7000}, 3);
  for (int round = 0; round < 50; ++round) {
    client_ = *consumer_->connect(listener_.bound, 1);
    while ((server_ = *owner_->accept(listener_.socket)) == 0) {
      switch_.advance_to(switch_.next_timer_ns());
    }
    switch_.partition("10.0.0.1", "10.0.0.2");
    ASSERT_EQ(write(*owner_, server_, "hello").bytes, 5U);
    settle();
    switch_.heal();
    std::vector<char> buffer(8);
    while (read(*consumer_, client_, buffer).bytes == 0) {
      ASSERT_NE(switch_.next_timer_ns(), never_ns);
      switch_.advance_to(switch_.next_timer_ns());
    }
    EXPECT_EQ(consumer_->connect_error(client_), 0);
    consumer_->close(client_);
    owner_->close(server_);
  }
}

TEST_F(SimNetworkTest, delays_add_to_the_latency_of_a_connection_or_of_two_hosts) {
  connect_pair();
  switch_.delay(connection_, 5 * second_ns);
  ASSERT_EQ(write(*consumer_, client_, "x").bytes, 1U);
  switch_.advance_to(clock_.now_ns() + 5 * second_ns);
  EXPECT_EQ(read_all(*owner_, server_), "");
  settle();
  EXPECT_EQ(read_all(*owner_, server_), "x");
  switch_.delay_hosts("10.0.0.2", "10.0.0.1", 7 * second_ns);
  ASSERT_EQ(write(*owner_, server_, "y").bytes, 1U);
  const std::uint64_t before_ns = clock_.now_ns();
  settle();
  EXPECT_GE(clock_.now_ns() - before_ns, 12 * second_ns);
  EXPECT_EQ(read_all(*consumer_, client_), "y");
}

TEST_F(SimNetworkTest, healing_lets_delayed_bytes_arrive_soon) {
  connect_pair();
  switch_.delay(connection_, 3600 * second_ns);
  ASSERT_EQ(write(*consumer_, client_, "x").bytes, 1U);
  switch_.heal();
  switch_.advance_to(clock_.now_ns() + switch_.options().latency_max_ns);
  EXPECT_EQ(read_all(*owner_, server_), "x");
}

TEST_F(SimNetworkTest, corruption_flips_exactly_one_bit_of_the_next_bytes_in_that_direction) {
  connect_pair();
  switch_.corrupt(connection_, true);
  const std::string text(100, '\0');
  ASSERT_EQ(write(*consumer_, client_, text).bytes, 100U);
  ASSERT_EQ(write(*owner_, server_, text).bytes, 100U);
  settle();
  int flipped = 0;
  for (const char c : read_all(*owner_, server_)) {
    flipped += __builtin_popcount(static_cast<unsigned char>(c));
  }
  EXPECT_EQ(flipped, 1);
  EXPECT_EQ(read_all(*consumer_, client_), text);
}

TEST_F(SimNetworkTest, planted_errors_come_once_after_the_calls_that_are_skipped) {
  connect_pair();
  consumer_->fail_next(SimCall::writev, ENOBUFS, 1);
  EXPECT_EQ(write(*consumer_, client_, "a").bytes, 1U);
  EXPECT_EQ(write(*consumer_, client_, "b").error, ENOBUFS);
  EXPECT_EQ(write(*consumer_, client_, "c").bytes, 1U);
  consumer_->fail_next(SimCall::connect, ENETUNREACH);
  EXPECT_EQ(consumer_->connect(listener_.bound, 1).error().native_number, ENETUNREACH);
  owner_->fail_next(SimCall::listen, EACCES);
  EXPECT_EQ(owner_->listen({"10.0.0.1", 1}, 1).error().native_number, EACCES);
}

TEST_F(SimNetworkTest, R42_a_connection_that_found_no_descriptor_is_told_again) {
  listener_ = *owner_->listen({"10.0.0.1", 7000}, 3);
  ASSERT_TRUE(consumer_->connect(listener_.bound, 1));
  settle();
  EXPECT_TRUE(event_of(*owner_, 3).readable);
  owner_->fail_next(SimCall::accept, EMFILE);
  EXPECT_EQ(owner_->accept(listener_.socket).error().native_number, EMFILE);
  EXPECT_EQ(event_of(*owner_, 3).token, 0U);
  settle();
  EXPECT_TRUE(event_of(*owner_, 3).readable);
  EXPECT_NE(*owner_->accept(listener_.socket), 0U);
}

TEST_F(SimNetworkTest, names_resolve_to_what_the_world_says) {
  switch_.add_name("owner.example", {"10.0.0.1", "10.0.0.5"});
  const auto known = consumer_->resolve("owner.example", 7);
  ASSERT_TRUE(known);
  ASSERT_EQ(known->size(), 2U);
  EXPECT_EQ(known->front().to_string(), "10.0.0.1:7");
  EXPECT_EQ(consumer_->resolve("other.example", 7).error().code, ErrorCode::not_found);
  EXPECT_EQ(consumer_->resolve("10.0.0.9", 7)->front().host, "10.0.0.9");
}

} // namespace
} // namespace wherry

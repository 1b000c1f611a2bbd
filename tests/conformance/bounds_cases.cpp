// R42 and R43: every limit that a peer can push against holds and shows, and no input of a caller
// or a stranger crashes, hangs or is left behind.
#include "conformance/conformance.h"
#include "conformance/raw_peer.h"

#include <array>
#include <functional>
#include <limits>

namespace wherry::conformance {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

class Bounds : public Conformance {};

// --- R43: limits --------------------------------------------------------------------------------

TEST_P(Bounds, R43_sessions_are_bounded_and_refused_by_number) {
  PairOptions options;
  options.owner.limits.sessions = 2;
  Pair pair(on(), options);
  std::optional<RemoteSource> second = must(pair.consumer.open(pair.source->reference()));
  EXPECT_EQ(counter(pair.owner, "sessions"), 2U);
  EXPECT_TRUE(refused(pair.consumer.open(pair.source->reference()), ErrorCode::resource_exhausted,
                      {"2", "sessions"}));
  EXPECT_EQ(counter(pair.owner, "sessions"), 2U);
  EXPECT_EQ(counter(pair.owner, "sessions_refused_total"), 1U);
  EXPECT_TRUE(pair.works());
  second.reset();
  EXPECT_TRUE(run_until([&] { return counter(pair.owner, "sessions") == 1; }));
  const RemoteSource third = must(pair.consumer.open(pair.source->reference()));
  EXPECT_EQ(third.state(), SourceState::open);
}

TEST_P(Bounds, R43_lanes_are_the_smaller_of_what_is_wanted_and_allowed) {
  PairOptions options;
  options.owner.limits.lanes_per_session = 3;
  options.lanes = 8;
  Pair pair(on(), options);
  EXPECT_EQ(pair.remote->routes().front().lanes, 3U);
  EXPECT_TRUE(pair.works());
  OpenOptions one;
  one.lanes = 1;
  EXPECT_EQ(must(pair.consumer.open(pair.source->reference(), one)).routes().front().lanes, 1U);
}

TEST_P(Bounds, R43_connections_that_say_nothing_are_bounded_and_end) {
  WHERRY_NEEDS(raw);
  PairOptions options;
  options.owner.limits.handshakes = 4;
  options.owner.tcp.connect_timeout = milliseconds(300);
  Pair pair(on(), options);
  const std::uint16_t port = pair.source->reference().port;
  std::vector<RawConnection> silent;
  for (int i = 0; i < 8; ++i) {
    silent.emplace_back("127.0.0.1", port);
  }
  EXPECT_TRUE(run_until([&] { return counter(pair.owner, "connections_refused_total") == 4; }));
  EXPECT_LE(counter(pair.owner, "handshakes"), 4U);
  EXPECT_TRUE(pair.works()) << "who is in is not hurt";
  EXPECT_TRUE(run_until([&] { return counter(pair.owner, "handshakes") == 0; }));
  for (RawConnection& connection : silent) {
    EXPECT_TRUE(connection.is_closed());
  }
  EXPECT_EQ(must(pair.consumer.open(pair.source->reference())).state(), SourceState::open);
}

TEST_P(Bounds, R42_a_hostile_peer_ends_its_own_session_and_no_other) {
  WHERRY_NEEDS(raw);
  Pair pair(on());
  const std::uint16_t port = pair.source->reference().port;
  const Bytes theirs = *pair.their_bytes;
  const Bytes noise = pattern(300, 5);
  struct Row {
    const char* name;
    std::function<void(RawConsumer&)> act;
    bool ends_session;
  };
  const Row rows[] = {
      {"noise on a lane", [&](RawConsumer& peer) { peer.lane().send(noise); }, false},
      {"noise on the control connection", [&](RawConsumer& peer) { peer.control().send(noise); },
       true},
      {"an owner's message",
       [](RawConsumer& peer) { peer.control().send(wire::ControlMessage(wire::Recall{1})); }, true},
      {"a second greeting",
       [](RawConsumer& peer) {
         wire::Hello hello;
         hello.name = "s";
         peer.control().send(wire::ControlMessage(hello));
       },
       true},
      {"a fence for a lane that is not",
       [](RawConsumer& peer) {
         peer.control().send(wire::ControlMessage(wire::FenceRequest{1, 63, 1}));
       },
       true},
      {"half a frame, and gone",
       [&](RawConsumer& peer) {
         peer.send_write({1, 2, 3, 4096, true}, std::span(noise).first(100));
       },
       false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const std::uint64_t sessions = counter(pair.owner, "sessions_opened_total");
    {
      RawConsumer peer("127.0.0.1", port, "s");
      peer.join_lane();
      EXPECT_EQ(counter(pair.owner, "sessions_opened_total"), sessions + 1);
      row.act(peer);
      if (row.ends_session) {
        EXPECT_TRUE(run_until([&] { return counter(pair.owner, "sessions") == 1; }));
      }
    }
    EXPECT_TRUE(run_until([&] { return counter(pair.owner, "sessions") == 1; }));
    EXPECT_EQ(counter(pair.owner, "leases"), 0U);
    EXPECT_TRUE(same(*pair.their_bytes, theirs));
    EXPECT_TRUE(pair.works());
  }
}

TEST_P(Bounds, R43_slices_and_checksums_of_a_peer_are_bounded) {
  WHERRY_NEEDS(raw);
  Pair pair(on());
  RawConsumer peer("127.0.0.1", pair.source->reference().port, "s");
  peer.join_lane();
  // More READs than were granted, from a peer that takes no answer.
  for (std::uint64_t i = 0; i < peer.welcome().slices_max + 100; ++i) {
    peer.send_read({i + 1, pair.range.id, 0, 1 << 20});
  }
  EXPECT_TRUE(run_until([&] { return counter(pair.owner, "tcp_lanes_cut_total") == 1; }));
  EXPECT_TRUE(run_until([&] { return counter(pair.owner, "leases") == 0; }));
  for (std::uint64_t i = 0; i < 200; ++i) {
    peer.control().send(
        wire::ControlMessage(wire::ChecksumRequest{i + 1, pair.range.id, 0, 1 << 20}));
  }
  int answers = 0;
  int refusals = 0;
  while (answers + refusals < 200) {
    const auto message = peer.control().receive_control();
    ASSERT_TRUE(message);
    if (const auto* error = std::get_if<wire::ErrorReply>(&*message)) {
      EXPECT_EQ(error->code, ErrorCode::resource_exhausted);
      ++refusals;
    } else {
      ASSERT_TRUE(std::holds_alternative<wire::ChecksumReply>(*message));
      ++answers;
    }
  }
  EXPECT_GT(answers, 0);
  EXPECT_TRUE(pair.works());
}

// --- R42: callers -------------------------------------------------------------------------------

TEST_P(Bounds, R42_options_without_sense_are_refused_by_name) {
  struct Row {
    const char* named;
    std::function<void(EngineOptions&)> spoil;
  };
  const Row rows[] = {
      {"threads", [](EngineOptions& o) { o.threads = 2; }},
      {"tcp.lanes", [](EngineOptions& o) { o.tcp.lanes = 0; }},
      {"tcp.lanes", [](EngineOptions& o) { o.tcp.lanes = 65; }},
      {"native_workers", [](EngineOptions& o) { o.native_workers = 0; }},
      {"tcp.cancel_grace", [](EngineOptions& o) { o.tcp.cancel_grace = milliseconds(0); }},
      {"tcp.peer_stall_timeout",
       [](EngineOptions& o) { o.tcp.peer_stall_timeout = milliseconds(-1); }},
      {"tcp.connect_timeout", [](EngineOptions& o) { o.tcp.connect_timeout = milliseconds(0); }},
      {"tcp.spin", [](EngineOptions& o) { o.tcp.spin = std::chrono::microseconds(-1); }},
      {"close_timeout", [](EngineOptions& o) { o.close_timeout = milliseconds(-1); }},
      {"limits.registrations", [](EngineOptions& o) { o.limits.registrations = 0; }},
      {"limits.registered_bytes", [](EngineOptions& o) { o.limits.registered_bytes = 0; }},
      {"limits.requests", [](EngineOptions& o) { o.limits.requests = 0; }},
      {"limits.operations", [](EngineOptions& o) { o.limits.operations = 0; }},
      {"limits.staging_bytes", [](EngineOptions& o) { o.limits.staging_bytes = 1; }},
      {"limits.open_files", [](EngineOptions& o) { o.limits.open_files = 0; }},
      {"limits.sessions", [](EngineOptions& o) { o.limits.sessions = 0; }},
      {"limits.handshakes", [](EngineOptions& o) { o.limits.handshakes = 0; }},
      {"limits.lanes_per_session", [](EngineOptions& o) { o.limits.lanes_per_session = 0; }},
  };
  for (const Row& row : rows) {
    EngineOptions options;
    row.spoil(options);
    EXPECT_TRUE(refused(TransferEngine::create(options), ErrorCode::invalid_argument, {row.named}));
  }
}

TEST_P(Bounds, R42_times_at_the_edges_neither_hang_nor_overflow) {
  Pair pair(on());
  Request request = pair.submit({pair.read(0, 4096)});
  const Deadline past[] = {Deadline::now(), Deadline::after(nanoseconds::min()),
                           Deadline::after(seconds(-1)),
                           Deadline::at(Deadline::Clock::time_point::min() + nanoseconds(1)),
                           Deadline::at(Deadline::Clock::time_point(nanoseconds(-1)))};
  for (const Deadline& deadline : past) {
    static_cast<void>(request.wait(deadline));
  }
  const Deadline future[] = {Deadline::never(), Deadline::after(nanoseconds::max()),
                             Deadline::at(Deadline::Clock::time_point::max() - nanoseconds(1))};
  for (const Deadline& deadline : future) {
    EXPECT_TRUE(request.wait_drained(deadline).completed());
  }
  for (const nanoseconds timeout : {nanoseconds::min(), nanoseconds(0), nanoseconds::max()}) {
    SubmitOptions options;
    options.timeout = timeout;
    const Report report = pair.run({pair.read(0, 4096)}, options);
    EXPECT_TRUE(report.outcome.has_value());
    EXPECT_TRUE(report.completed() || timeout.count() <= 0) << describe(report);
    OpenOptions opening;
    opening.timeout = timeout;
    const auto opened = pair.consumer.open(pair.source->reference(), opening);
    EXPECT_TRUE(opened.has_value() || timeout.count() <= 0);
  }
  EXPECT_TRUE(pair.works());
}

TEST_P(Bounds, R42_arguments_without_sense_are_refused) {
  Pair pair(on());
  OpenOptions open;
  for (const std::uint32_t lanes : {0U, 65U, UINT32_MAX}) {
    open.lanes = lanes;
    EXPECT_TRUE(refused(pair.consumer.open(pair.source->reference(), open),
                        ErrorCode::invalid_argument, {"lanes"}));
  }
  CompletionQueueOptions capacity;
  for (const std::uint32_t entries : {0U, 1U, UINT32_MAX}) {
    capacity.capacity = entries;
    EXPECT_TRUE(refused(pair.consumer.completion_queue(capacity), ErrorCode::invalid_argument,
                        {"capacity"}));
  }
  CompletionQueue queue = must(pair.consumer.completion_queue());
  EXPECT_EQ(queue.poll({}), 0U);
  EXPECT_EQ(queue.wait({}, soon()), 0U) << "no room: nothing to wait for";
  SourceReference reference;
  const auto expect_refused = [&](std::string_view named) {
    EXPECT_TRUE(refused(pair.consumer.open(reference), ErrorCode::invalid_argument, {named}));
    reference = pair.source->reference();
  };
  expect_refused("name");
  for (const std::string& name : {std::string(), std::string(5000, 'n'), std::string("a\0b", 3)}) {
    reference.name = name;
    expect_refused("name");
  }
  for (const std::string& host : {std::string(), std::string("a\0b", 3), std::string("[::1]")}) {
    reference.host = host;
    expect_refused("host");
  }
  reference.port = 0;
  expect_refused("port");
  SubmitOptions odd;
  odd.on_error = static_cast<OnError>(77);
  const auto request = pair.remote->submit({pair.read(0, 100)}, odd);
  EXPECT_TRUE(request.has_value() || refused(request, ErrorCode::invalid_argument));
  EXPECT_TRUE(refused(pair.owner.set_registration_budget(0, 0), ErrorCode::resource_exhausted) ||
              refused(pair.owner.set_registration_budget(0, 0), ErrorCode::invalid_argument));
  EXPECT_TRUE(pair.works());
}

TEST_P(Bounds, R31_R42_handles_may_be_moved_and_outlive_their_engine) {
  auto pair = std::make_unique<Pair>(on());
  Request first = pair->submit({pair->read(0, 100)});
  Request second = pair->submit({pair->read(0, 100)});
  first = std::move(second);
  EXPECT_TRUE(first.wait_drained(soon()).completed());
  RemoteSource remote = std::move(*pair->remote);
  Registration local = std::move(*pair->my_range);
  Source source = std::move(*pair->source);
  TransferEngine& consumer = pair->consumer;
  TransferEngine& owner = pair->owner;
  const RemoteRange range = pair->range;
  CompletionQueue queue = must(consumer.completion_queue());
  pair.reset();
  on().drop(consumer);
  on().drop(owner);
  EXPECT_EQ(remote.state(), SourceState::closed);
  EXPECT_EQ(remote.routes().front().ready.answer, Answer::no);
  EXPECT_TRUE(
      refused(remote.submit({Operation::read(local, 0, range, 0, 1)}), ErrorCode::unavailable));
  EXPECT_TRUE(refused(remote.range("r", soon()), ErrorCode::unavailable));
  EXPECT_FALSE(source.add({}));
  std::array<CompletionEntry, 1> entry;
  EXPECT_EQ(queue.poll(entry), 0U);
  must(local.retire(soon()));
  EXPECT_TRUE(first.report().completed());
}

INSTANTIATE_TEST_SUITE_P(all, Bounds, moving(), provider_name);

} // namespace
} // namespace wherry::conformance

// R20 to R25: sources, epochs, what is told of ranges, how they are added and taken back, and the
// access check of every operation.
#include "conformance/conformance.h"
#include "conformance/raw_peer.h"
#include "path/scripted/script.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <set>

namespace wherry::conformance {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

class Sources : public Conformance {
protected:
  static Registration share(TransferEngine& engine, const SharedBytes& bytes,
                            Visibility visibility = Visibility::remote_read_write) {
    RegisterOptions options;
    options.visibility = visibility;
    options.keep_alive = bytes;
    return must(engine.register_memory(*bytes, std::move(options)));
  }
  SourceOptions at(const TransferEngine& engine, std::uint16_t port = 0) {
    SourceOptions options;
    options.listen = on().listen_address(engine, port);
    return options;
  }
  static Digest xxh3(std::span<const std::byte> bytes) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
    Digest digest;
    std::copy(std::begin(canonical.digest), std::end(canonical.digest), digest.bytes.begin());
    return digest;
  }
  /// Publishes under a name that an earlier source may still be leaving.
  Source publish(TransferEngine& engine, const std::string& name, const SourceOptions& options,
                 std::span<const NamedRange> ranges) {
    std::optional<Source> source;
    EXPECT_TRUE(run_until([&] {
      auto made = engine.publish(name, options, ranges);
      if (made) {
        source.emplace(std::move(*made));
      }
      return made.has_value();
    }));
    return std::move(*source);
  }
};

// --- R20, R21: epochs ---------------------------------------------------------------------------

TEST_P(Sources, R20_epochs_are_random_and_travel_in_references) {
  TransferEngine& engine = this->engine();
  std::set<std::uint64_t> epochs;
  std::vector<Source> sources;
  for (int i = 0; i < 8; ++i) {
    sources.push_back(must(engine.publish("s" + std::to_string(i), at(engine), {})));
    const SourceReference& reference = sources.back().reference();
    ASSERT_TRUE(reference.epoch);
    EXPECT_NE(*reference.epoch, 0U);
    EXPECT_NE(reference.port, 0U);
    epochs.insert(*reference.epoch);
    const std::string text = reference.to_string();
    EXPECT_TRUE(text.starts_with("wherry://")) << text;
    const SourceReference again = must(SourceReference::parse(text));
    EXPECT_EQ(again.epoch, reference.epoch);
    EXPECT_EQ(again.port, reference.port);
    EXPECT_EQ(again.name, reference.name);
  }
  EXPECT_EQ(epochs.size(), 8U);
  EXPECT_GT(*epochs.rbegin(), 1ULL << 40) << "48 random bits";
}

TEST_P(Sources, R20_epochs_of_an_epoch_file_increase_and_survive) {
  SourceOptions options;
  options.epoch_file = on().file_path("epoch");
  std::uint64_t last = 0;
  for (int i = 0; i < 4; ++i) {
    TransferEngine& engine = this->engine();
    options.listen = on().listen_address(engine);
    const Source source = must(engine.publish("s", options, {}));
    EXPECT_GT(*source.reference().epoch, last);
    last = *source.reference().epoch;
  }
}

TEST_P(Sources, R20_an_epoch_file_that_is_not_ours_is_refused_and_left_alone) {
  WHERRY_NEEDS(files);
  TransferEngine& engine = this->engine();
  const Bytes content = pattern(100, 1);
  SourceOptions options = at(engine);
  options.epoch_file = on().make_file("epoch", content);
  EXPECT_TRUE(refused(engine.publish("s", options, {}), ErrorCode::invalid_argument, {"epoch"}));
  EXPECT_TRUE(same(on().file_content(options.epoch_file), content));
  EXPECT_EQ(counter(engine, "sources"), 0U);
}

TEST_P(Sources, R21_another_epoch_is_stale_and_the_refusal_names_the_current_one) {
  Pair pair(on());
  SourceReference wrong = pair.source->reference();
  wrong.epoch = *wrong.epoch + 1;
  const auto opened = pair.consumer.open(wrong);
  ASSERT_TRUE(refused(opened, ErrorCode::stale_epoch));
  EXPECT_EQ(opened.error().current_epoch, pair.source->reference().epoch);
  SourceReference any = pair.source->reference();
  any.epoch.reset();
  const RemoteSource bound = must(pair.consumer.open(any));
  EXPECT_EQ(bound.reference().epoch, pair.source->reference().epoch);
  EXPECT_EQ(bound.state(), SourceState::open);
}

TEST_P(Sources, R21_a_name_that_is_not_published_is_not_found) {
  Pair pair(on());
  SourceReference other = pair.source->reference();
  other.name = "other";
  EXPECT_TRUE(refused(pair.consumer.open(other), ErrorCode::not_found, {"other"}));
  EXPECT_TRUE(refused(pair.consumer.open("not a reference"), ErrorCode::invalid_argument));
  EXPECT_TRUE(pair.works());
}

TEST_P(Sources, R21_reconnecting_never_adopts_a_replacement) {
  WHERRY_NEEDS(cut);
  Pair pair(on());
  const SourceReference reference = pair.source->reference();
  const std::string host = on().node(pair.owner).host;
  pair.source.reset();
  pair.their_range.reset();
  on().drop(pair.owner);
  TransferEngine& second = on().engine({}, host);
  const SharedBytes bytes = shared_pattern(mib, 44);
  const Registration range = share(second, bytes);
  const Source replacement =
      publish(second, "s", at(second, reference.port), std::array{NamedRange("r", range)});
  ASSERT_EQ(replacement.reference().port, reference.port);
  EXPECT_TRUE(run_until([&] { return pair.remote->state() != SourceState::open; }));
  const Bytes mine = *pair.my_bytes;
  for (int i = 0; i < 3; ++i) {
    auto request = pair.remote->submit({pair.read(0, 4096)});
    if (request) {
      const Report report = request->wait_drained(soon());
      ASSERT_EQ(report.outcome, Outcome::failed) << describe(report);
      EXPECT_EQ(report.failure->error.code, ErrorCode::stale_epoch) << describe(report);
      EXPECT_EQ(report.failure->error.current_epoch, replacement.reference().epoch);
    } else {
      EXPECT_TRUE(refused(request, ErrorCode::stale_epoch));
      EXPECT_EQ(request.error().current_epoch, replacement.reference().epoch);
    }
  }
  EXPECT_EQ(pair.remote->state(), SourceState::stale);
  EXPECT_TRUE(refused(pair.remote->submit({pair.read(0, 1)}), ErrorCode::stale_epoch));
  EXPECT_TRUE(refused(pair.remote->range("r", soon()), ErrorCode::stale_epoch));
  EXPECT_TRUE(refused(pair.remote->checksum(pair.range, 0, 1, soon()), ErrorCode::stale_epoch));
  EXPECT_EQ(pair.remote->routes().front().ready.answer, Answer::no);
  EXPECT_TRUE(same(*pair.my_bytes, mine)) << "bytes of another incarnation";
  // Who asks for the new one gets it.
  SourceReference current = reference;
  current.epoch.reset();
  RemoteSource fresh = must(pair.consumer.open(current));
  const RemoteRange fresh_range = must(fresh.range("r", soon()));
  auto request = must(fresh.submit({Operation::read(*pair.my_range, 0, fresh_range, 0, mib)}));
  EXPECT_TRUE(request.wait_drained(soon()).completed());
  EXPECT_TRUE(same(*pair.my_bytes, *bytes));
}

TEST_P(Sources, R21_the_same_epoch_of_another_engine_is_stale_too) {
  WHERRY_NEEDS(cut);
  // A copied epoch file, or a directory that gives the same number twice.
  SourceOptions options;
  options.epoch_file = on().file_path("epoch");
  TransferEngine& first = this->engine();
  const std::string host = on().node(first).host;
  options.listen = on().listen_address(first);
  std::optional<Source> source = must(first.publish("s", options, {}));
  const SourceReference reference = source->reference();
  TransferEngine& consumer = this->engine();
  RemoteSource remote = must(consumer.open(reference));
  source.reset();
  on().drop(first);
  TransferEngine& second = on().engine({}, host);
  const Source replacement = publish(second, "s", at(second, reference.port), {});
  EXPECT_TRUE(run_until([&] { return remote.state() != SourceState::open; }));
  EXPECT_TRUE(run_until([&] {
    auto request = remote.submit(std::span<const Operation>{});
    if (request) {
      static_cast<void>(request->wait_drained(soon()));
    }
    return remote.state() == SourceState::stale;
  }));
}

TEST_P(Sources, R21_a_lost_session_is_opened_again_by_the_next_submit) {
  WHERRY_NEEDS(cut);
  Pair pair(on());
  const std::uint64_t epoch = *pair.remote->reference().epoch;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    on().cut_session(pair.consumer);
    EXPECT_TRUE(run_until([&] { return pair.remote->state() == SourceState::lost; }));
    EXPECT_EQ(pair.remote->routes().front().ready.answer, Answer::no);
    EXPECT_FALSE(pair.remote->routes().front().ready.reason.empty());
    EXPECT_TRUE(pair.works());
    EXPECT_EQ(pair.remote->state(), SourceState::open);
    EXPECT_EQ(pair.remote->reference().epoch, epoch);
    EXPECT_EQ(counter(pair.owner, "sessions_opened_total"), 1 + i);
    EXPECT_TRUE(run_until([&] { return counter(pair.owner, "sessions") == 1; }))
        << "the lost one stays";
  }
}

TEST_P(Sources, R21_R28_requests_of_a_lost_session_end_and_say_why) {
  WHERRY_NEEDS(cut);
  Pair pair(on());
  on().hold(pair.consumer, pair.owner, Where::unanswered);
  Request reading = pair.submit({pair.read(0, 4096)});
  Request writing = pair.submit({pair.write(4096, 4096)});
  on().run_a_while();
  on().cut_session(pair.consumer);
  for (Request* request : {&reading, &writing}) {
    const Report report = request->wait_drained(soon());
    ASSERT_EQ(report.outcome, Outcome::failed) << describe(report);
    EXPECT_EQ(report.failure->error.code, ErrorCode::connection_lost);
    EXPECT_FALSE(report.failure->error.message.empty());
  }
  on().release(pair.consumer, pair.owner);
  EXPECT_TRUE(pair.works());
}

TEST_P(Sources, R21_a_source_that_was_closed_is_lost_and_not_found) {
  Pair pair(on());
  const SourceReference reference = pair.source->reference();
  const Source other = must(pair.owner.publish("other", at(pair.owner, reference.port), {}));
  pair.source.reset();
  EXPECT_TRUE(run_until([&] { return pair.remote->state() == SourceState::lost; }));
  auto request = pair.remote->submit({pair.read(0, 1)});
  ASSERT_TRUE(request) << request.error().message;
  const Report report = request->wait_drained(soon());
  ASSERT_EQ(report.outcome, Outcome::failed) << describe(report);
  EXPECT_EQ(report.failure->error.code, ErrorCode::not_found) << describe(report);
  EXPECT_EQ(counter(pair.owner, "sources"), 1U);
}

TEST_P(Sources, R21_an_owner_that_is_not_there_is_said_so) {
  TransferEngine& owner = this->engine();
  TransferEngine& consumer = this->engine();
  std::optional<Source> source = must(owner.publish("s", at(owner), {}));
  const SourceReference reference = source->reference();
  source.reset();
  on().drop(owner);
  OpenOptions options;
  options.timeout = std::chrono::seconds(2);
  const auto opened = consumer.open(reference, options);
  ASSERT_FALSE(opened);
  EXPECT_TRUE(opened.error().code == ErrorCode::connection_lost ||
              opened.error().code == ErrorCode::timed_out)
      << to_string(opened.error().code) << opened.error().message;
  EXPECT_NE(opened.error().message.find(std::to_string(reference.port)), std::string::npos)
      << opened.error().message;
  EXPECT_EQ(counter(consumer, "leases"), 0U);
  EXPECT_TRUE(run_until([&] { return counter(consumer, "remotes") == 0; }));
}

TEST_P(Sources, R21_opening_gives_up_at_its_timeout) {
  WHERRY_NEEDS(cut);
  Pair pair(on());
  on().node(pair.owner).network->freeze(true);
  OpenOptions options;
  options.timeout = std::chrono::milliseconds(50);
  EXPECT_TRUE(refused(pair.consumer.open(pair.source->reference(), options), ErrorCode::timed_out,
                      {"no answer"}));
  on().node(pair.owner).network->freeze(false);
  EXPECT_TRUE(pair.works());
}

// --- R23: describe and checksum
// -------------------------------------------------------------------

TEST_P(Sources, R23_describe_pages_through_every_range_once) {
  TransferEngine& owner = this->engine();
  TransferEngine& consumer = this->engine();
  constexpr std::size_t count = 1200;
  const SharedBytes bytes = shared_pattern(count, 1);
  std::vector<Registration> registrations;
  std::vector<NamedRange> ranges;
  for (std::size_t i = 0; i < count; ++i) {
    RegisterOptions options;
    options.keep_alive = bytes;
    options.visibility = i % 2 == 0 ? Visibility::remote_read : Visibility::remote_read_write;
    registrations.push_back(
        must(owner.register_memory(std::span(*bytes).subspan(0, i + 1), std::move(options))));
    ranges.emplace_back("range " + std::to_string(i), registrations.back());
  }
  const Source source = must(owner.publish("s", at(owner), ranges));
  RemoteSource remote = must(consumer.open(source.reference()));
  std::set<std::string> names;
  std::optional<std::uint64_t> page;
  int pages = 0;
  do {
    Description description = must(remote.describe(page, soon()));
    ASSERT_FALSE(description.ranges.empty());
    for (const RangeDescription& range : description.ranges) {
      ASSERT_TRUE(names.insert(range.name).second) << range.name << " was told twice";
      const std::size_t i = std::stoul(range.name.substr(6));
      EXPECT_EQ(range.range.length_bytes, i + 1);
      EXPECT_EQ(range.range.kind, RangeKind::host_memory);
      EXPECT_EQ(range.range.visibility,
                i % 2 == 0 ? Visibility::remote_read : Visibility::remote_read_write);
      EXPECT_FALSE(range.version);
      EXPECT_EQ(range.routes, std::vector{PathKind::tcp});
      EXPECT_EQ(range.evidence, "direct host memory") << "no address, no key";
    }
    page = description.next;
    ++pages;
  } while (page);
  EXPECT_EQ(names.size(), count);
  EXPECT_GT(pages, 1);
  // A page that never was is empty or refused, nothing worse.
  const auto beyond = remote.describe(UINT64_MAX, soon());
  EXPECT_TRUE(!beyond || beyond->ranges.empty());
}

TEST_P(Sources, R23_a_range_is_found_by_its_raw_name) {
  Pair pair(on());
  const std::string names[] = {std::string("\xff\x01 /\\%\n"), std::string(4095, 'n'), "é"};
  for (const std::string& name : names) {
    must(pair.source->add(std::array{NamedRange(name, *pair.their_range)}));
    const RemoteRange range = must(pair.remote->range(name, soon()));
    EXPECT_EQ(range.length_bytes, mib);
  }
  EXPECT_TRUE(refused(pair.remote->range("none", soon()), ErrorCode::not_found, {"none"}));
  for (const std::string& name : {std::string(), std::string("a\0b", 3), std::string(4096, 'n')}) {
    EXPECT_TRUE(refused(pair.remote->range(name, soon()), ErrorCode::invalid_argument));
    EXPECT_TRUE(refused(pair.source->add(std::array{NamedRange(name, *pair.their_range)}),
                        ErrorCode::invalid_argument));
    EXPECT_TRUE(refused(pair.owner.publish(name, at(pair.owner), {}), ErrorCode::invalid_argument));
  }
}

TEST_P(Sources, R23_the_owner_computes_checksums_under_the_check_of_a_read) {
  PairOptions options;
  options.their_bytes = 9 * mib + 5; // More than one step of the worker.
  Pair pair(on(), options);
  const std::pair<std::size_t, std::size_t> rows[] = {
      {0, 9 * mib + 5}, {0, 0}, {7, 1}, {mib - 1, 5 * mib}, {9 * mib + 5, 0}};
  for (const auto& [offset, bytes] : rows) {
    EXPECT_EQ(must(pair.remote->checksum(pair.range, offset, bytes, soon())),
              xxh3(pair.theirs(offset, bytes)))
        << offset << " " << bytes;
  }
  EXPECT_TRUE(
      refused(pair.remote->checksum(pair.range, 1, 9 * mib + 5, soon()), ErrorCode::out_of_range));
  EXPECT_TRUE(
      refused(pair.remote->checksum(pair.range, UINT64_MAX, 2, soon()), ErrorCode::out_of_range));
  RemoteRange unknown = pair.range;
  unknown.id = 12345;
  EXPECT_TRUE(refused(pair.remote->checksum(unknown, 0, 1, soon()), ErrorCode::not_found));
  EXPECT_EQ(counter(pair.owner, "leases"), 0U);
  EXPECT_EQ(on().served().here, 0U);
  EXPECT_TRUE(pair.works());
}

// --- R24: publishing, adding, withdrawing
// -----------------------------------------------------------

TEST_P(Sources, R24_a_batch_of_ranges_is_published_whole_or_not_at_all) {
  Pair pair(on());
  const Registration secret = share(pair.owner, pair.their_bytes, Visibility::local_only);
  const auto refuse = [&](std::span<const NamedRange> ranges, ErrorCode code) {
    EXPECT_TRUE(refused(pair.source->add(ranges), code));
    EXPECT_TRUE(refused(pair.owner.publish("other", at(pair.owner), ranges), code));
    EXPECT_TRUE(refused(pair.remote->range("good", soon()), ErrorCode::not_found));
    EXPECT_EQ(must(pair.remote->describe({}, soon())).ranges.size(), 1U);
    EXPECT_EQ(counter(pair.owner, "sources"), 1U);
  };
  const NamedRange good("good", *pair.their_range);
  refuse(std::array{good, NamedRange("bad", secret)}, ErrorCode::access_denied);
  refuse(std::array{good, good}, ErrorCode::invalid_argument);
  NamedRange nothing("nothing", *pair.their_range);
  nothing.registration = 987654321;
  refuse(std::array{good, nothing}, ErrorCode::invalid_argument);
  EXPECT_TRUE(refused(pair.source->add(std::array{good, NamedRange("r", *pair.their_range)}),
                      ErrorCode::invalid_argument))
      << "a name that is taken";
  must(pair.source->add(std::array{good, NamedRange("better", *pair.their_range)}));
  EXPECT_EQ(must(pair.remote->describe({}, soon())).ranges.size(), 3U);
  const RemoteRange added = must(pair.remote->range("better", soon()));
  EXPECT_TRUE(pair.run({Operation::read(*pair.my_range, 0, added, 0, 100)}).completed());
  EXPECT_TRUE(refused(pair.owner.publish("s", at(pair.owner), {}), ErrorCode::invalid_argument))
      << "one engine publishes a name once";
}

TEST_P(Sources, R24_a_withdrawn_range_is_refused_and_stays_usable_locally) {
  Pair pair(on());
  const SharedBytes other = shared_pattern(mib, 9);
  const Registration other_range = share(pair.owner, other);
  must(pair.source->add(std::array{NamedRange("other", other_range)}));
  const RemoteRange range = must(pair.remote->range("other", soon()));
  EXPECT_TRUE(pair.run({Operation::read(*pair.my_range, 0, range, 0, 100)}).completed());
  EXPECT_EQ(must(pair.source->withdraw("other", soon())).sessions_cut, 0U);
  const Bytes before = *other;
  EXPECT_TRUE(refused(pair.remote->submit({Operation::write(*pair.my_range, 0, range, 0, 1)}),
                      ErrorCode::range_withdrawn));
  EXPECT_TRUE(refused(pair.remote->checksum(range, 0, 1, soon()), ErrorCode::range_withdrawn));
  EXPECT_TRUE(refused(pair.remote->range("other", soon()), ErrorCode::not_found));
  EXPECT_TRUE(refused(pair.source->withdraw("other", soon()), ErrorCode::not_found));
  EXPECT_TRUE(refused(pair.source->withdraw("never", soon()), ErrorCode::not_found, {"never"}));
  EXPECT_TRUE(pair.works());
  EXPECT_TRUE(same(*other, before));
  // Locally, and under another id, it goes on.
  RemoteSource itself = must(pair.owner.open(pair.source->reference()));
  const RemoteRange theirs = must(itself.range("r", soon()));
  auto local = must(itself.submit({Operation::read(other_range, 0, theirs, 0, 4096)}));
  EXPECT_TRUE(local.wait_drained(soon()).completed());
  must(pair.source->add(std::array{NamedRange("other", other_range)}));
  const RemoteRange again = must(pair.remote->range("other", soon()));
  EXPECT_NE(again.id, range.id);
  EXPECT_TRUE(pair.run({Operation::read(*pair.my_range, 0, again, 0, 4096)}).completed());
  EXPECT_TRUE(same(pair.mine(0, 4096), pair.theirs(0, 4096)));
  EXPECT_TRUE(refused(pair.remote->submit({Operation::read(*pair.my_range, 0, range, 0, 1)}),
                      ErrorCode::range_withdrawn))
      << "the old id does not come back";
}

TEST_P(Sources, R24_withdrawing_from_one_source_leaves_another_alone) {
  WHERRY_NEEDS(hold);
  Pair pair(on());
  const Source second =
      must(pair.owner.publish("second", at(pair.owner), {{"x", *pair.their_range}}));
  RemoteSource remote = must(pair.consumer.open(second.reference()));
  const RemoteRange range = must(remote.range("x", soon()));
  // An operation of the other source that takes its time.
  on().hold(pair.consumer, pair.owner, Where::unsent);
  auto request = must(remote.submit({Operation::read(*pair.my_range, 0, range, 0, mib)}));
  EXPECT_EQ(must(pair.source->withdraw("r", soon())).sessions_cut, 0U);
  on().release(pair.consumer, pair.owner);
  EXPECT_TRUE(request.wait_drained(soon()).completed());
  EXPECT_TRUE(same(*pair.my_bytes, *pair.their_bytes));
  EXPECT_TRUE(refused(pair.remote->submit({pair.read(0, 1)}), ErrorCode::range_withdrawn));
}

TEST_P(Sources, R24_a_withdrawal_waits_for_operations_of_its_own_source_only) {
  WHERRY_NEEDS(segments);
  PairOptions options;
  options.their_bytes = options.my_bytes = 32 * mib;
  options.lanes = 1;
  Pair pair(on(), options);
  const Source second =
      must(pair.owner.publish("second", at(pair.owner), {{"x", *pair.their_range}}));
  TransferEngine& other = this->engine();
  OpenOptions one_lane;
  one_lane.lanes = 1;
  RemoteSource remote = must(other.open(second.reference(), one_lane));
  const RemoteRange range = must(remote.range("x", soon()));
  const SharedBytes bytes = shared_pattern(32 * mib, 4);
  const Registration local = share(other, bytes, Visibility::local_only);
  // A READ of the other consumer is stuck half-way: the owner's lease stays out.
  FaultNetwork& network = *on().node(pair.owner).network;
  network.pass_lane_writes(3 * mib);
  auto request = must(remote.submit({Operation::read(local, 0, range, 0, 32 * mib)}));
  EXPECT_TRUE(run_until([&] { return request.report().completed_bytes > 0; }));
  EXPECT_GT(counter(pair.owner, "leases"), 0U);
  EXPECT_EQ(must(pair.source->withdraw("r", a_moment())).sessions_cut, 0U);
  network.pass_lane_writes(FaultNetwork::unlimited);
  EXPECT_TRUE(request.wait_drained(soon()).completed());
  EXPECT_TRUE(same(*bytes, *pair.their_bytes));
}

TEST_P(Sources, R24_a_peer_that_does_not_acknowledge_a_withdrawal_is_cut) {
  WHERRY_NEEDS(cut);
  Pair pair(on());
  const SharedBytes other = shared_pattern(4096, 9);
  const Registration other_range = share(pair.owner, other);
  must(pair.source->add(std::array{NamedRange("other", other_range)}));
  on().node(pair.consumer).network->freeze(true);
  EXPECT_EQ(must(pair.source->withdraw("other", a_moment())).sessions_cut, 1U);
  on().node(pair.consumer).network->freeze(false);
  EXPECT_TRUE(run_until([&] {
    auto request = pair.remote->submit({pair.read(0, 100)});
    return request && request->wait_drained(soon()).completed();
  }));
}

TEST_P(Sources, R24_dropping_a_source_takes_its_ranges_back_and_frees_its_name) {
  Pair pair(on());
  const SourceReference reference = pair.source->reference();
  pair.source.reset();
  EXPECT_TRUE(run_until([&] { return counter(pair.owner, "sources") == 0; }));
  EXPECT_TRUE(run_until([&] { return counter(pair.owner, "sessions") == 0; }));
  EXPECT_EQ(must(pair.their_range->retire(soon())).sessions_cut, 0U);
  const Source again = must(pair.owner.publish("s", at(pair.owner, reference.port), {}));
  EXPECT_NE(again.reference().epoch, reference.epoch);
}

TEST_P(Sources, R20_sources_of_one_engine_share_an_address) {
  Pair pair(on());
  const std::uint16_t port = pair.source->reference().port;
  const Source second =
      must(pair.owner.publish("second", at(pair.owner, port), {{"x", *pair.their_range}}));
  EXPECT_EQ(second.reference().port, port);
  RemoteSource remote = must(pair.consumer.open(second.reference()));
  EXPECT_TRUE(must(remote.range("x", soon())).length_bytes == mib);
  EXPECT_TRUE(refused(remote.range("r", soon()), ErrorCode::not_found));
  EXPECT_TRUE(pair.works());
}

TEST_P(Sources, R20_addresses_that_cannot_be_used_are_refused_by_name) {
  TransferEngine& engine = this->engine();
  const struct {
    const char* listen;
    const char* advertise;
    ErrorCode code;
    const char* named;
  } rows[] = {{"nonsense", "", ErrorCode::invalid_argument, "listen"},
              {"127.0.0.1:99999", "", ErrorCode::invalid_argument, "listen"},
              {"0.0.0.0:0", "", ErrorCode::invalid_argument, "advertise"},
              {"[::]:0", "", ErrorCode::invalid_argument, "advertise"},
              {"0.0.0.0:0", "nonsense", ErrorCode::invalid_argument, "advertise"},
              {"192.0.2.1:0", "", ErrorCode::io_error, ""}};
  for (const auto& row : rows) {
    SourceOptions options;
    options.listen = row.listen;
    options.advertise = row.advertise;
    EXPECT_TRUE(refused(engine.publish("s", options, {}), row.code, {row.named})) << row.listen;
    EXPECT_EQ(counter(engine, "sources"), 0U);
  }
}

// --- R25: access, checked by the owner whatever the consumer believes
// -------------------------------

struct Forbidden {
  const char* name;
  OperationKind kind;
  bool read_only;        ///< The range that allows READs alone.
  std::uint64_t unknown; ///< Or an id that never was.
  std::uint64_t offset;
  ErrorCode code;
};

constexpr Forbidden forbidden[] = {
    {"READ beyond the end", OperationKind::read, false, 0, mib - 10, ErrorCode::out_of_range},
    {"WRITE beyond the end", OperationKind::write, false, 0, mib - 10, ErrorCode::out_of_range},
    {"READ far beyond", OperationKind::read, false, 0, 1ULL << 60, ErrorCode::out_of_range},
    {"WRITE far beyond", OperationKind::write, false, 0, 1ULL << 60, ErrorCode::out_of_range},
    {"WRITE to a read-only range", OperationKind::write, true, 0, 0, ErrorCode::access_denied},
    {"READ of nothing", OperationKind::read, false, 0x1234, 0, ErrorCode::not_found},
    {"WRITE to nothing", OperationKind::write, false, 0x1234, 0, ErrorCode::not_found},
};

TEST_P(Sources, R25_what_a_peer_may_not_do_touches_no_byte_and_costs_it_nothing_else) {
  WHERRY_NEEDS(script);
  Pair pair(on());
  const SharedBytes shown = shared_pattern(mib, 12);
  const Registration shown_range = share(pair.owner, shown, Visibility::remote_read);
  must(pair.source->add(std::array{NamedRange("shown", shown_range)}));
  const RemoteRange read_only = must(pair.remote->range("shown", soon()));
  Script& script = *on().script();
  for (const Forbidden& row : forbidden) {
    SCOPED_TRACE(row.name);
    const Bytes theirs = *pair.their_bytes;
    const Bytes theirs_shown = *shown;
    const Bytes mine = *pair.my_bytes;
    script.forge = [&](Slice& slice) {
      slice.remote_range = row.unknown != 0 ? row.unknown
                           : row.read_only  ? read_only.id
                                            : pair.range.id;
      slice.remote_offset = row.offset;
    };
    const Report report =
        pair.run({row.kind == OperationKind::read ? pair.read(0, 4096) : pair.write(0, 4096)});
    script.forge = {};
    ASSERT_EQ(report.outcome, Outcome::failed) << describe(report);
    EXPECT_EQ(report.failure->error.code, row.code);
    EXPECT_EQ(report.remote_effect, RemoteEffect::none);
    EXPECT_TRUE(report.remote_settled);
    EXPECT_TRUE(same(*pair.their_bytes, theirs));
    EXPECT_TRUE(same(*shown, theirs_shown));
    EXPECT_TRUE(same(*pair.my_bytes, mine));
    EXPECT_TRUE(pair.works());
  }
}

TEST_P(Sources, R25_a_hostile_peers_operations_are_checked_one_by_one) {
  WHERRY_NEEDS(raw);
  Pair pair(on());
  const SharedBytes shown = shared_pattern(mib, 12);
  const Registration shown_range = share(pair.owner, shown, Visibility::remote_read);
  must(pair.source->add(std::array{NamedRange("shown", shown_range)}));
  const std::uint64_t read_only = must(pair.remote->range("shown", soon())).id;
  RawConsumer peer("127.0.0.1", pair.source->reference().port, "s");
  peer.join_lane();
  const Bytes theirs = *pair.their_bytes;
  const Bytes theirs_shown = *shown;
  std::uint64_t slice = 100;
  const auto id_of = [&](const Forbidden& row) {
    return row.unknown != 0 ? row.unknown : row.read_only ? read_only : pair.range.id;
  };
  for (const Forbidden& row : forbidden) {
    SCOPED_TRACE(row.name);
    ++slice;
    if (row.kind == OperationKind::read) {
      peer.send_read({slice, id_of(row), row.offset, 4096});
    } else {
      peer.send_write({slice, id_of(row), row.offset, 4096, true}, pattern(4096, slice));
    }
    auto frame = peer.receive_frame();
    ASSERT_TRUE(frame) << "the lane was ended";
    ASSERT_EQ(frame->header.type, wire::FrameType::result);
    const wire::ResultDescriptor result = wire::result_at(frame->descriptors, 0);
    EXPECT_EQ(result.slice, slice);
    EXPECT_EQ(static_cast<ErrorCode>(result.code), row.code);
    EXPECT_EQ(result.bytes, row.kind == OperationKind::read ? 0U : 4096U);
    EXPECT_TRUE(same(*pair.their_bytes, theirs));
    EXPECT_TRUE(same(*shown, theirs_shown));
    // The next good operation on the same lane is served.
    ++slice;
    peer.send_read({slice, pair.range.id, 5, 100});
    frame = peer.receive_frame();
    ASSERT_TRUE(frame);
    ASSERT_EQ(frame->header.type, wire::FrameType::payload);
    EXPECT_TRUE(same(frame->payload, pair.theirs(5, 100)));
  }
  EXPECT_EQ(counter(pair.owner, "tcp_operations_refused_total"), std::size(forbidden));
  // A range that was withdrawn under the peer's feet. (It does not acknowledge: its lane ends.)
  must(pair.source->withdraw("shown", a_moment()));
  EXPECT_FALSE(peer.receive_frame());
  EXPECT_EQ(peer.try_join(peer.join(0, 2)), 0);
  EXPECT_TRUE(pair.works());
}

// --- R22: who joins
// -----------------------------------------------------------------------------------

TEST_P(Sources, R22_a_join_must_match_its_session_and_is_used_once) {
  WHERRY_NEEDS(raw);
  Pair pair(on());
  RawConsumer peer("127.0.0.1", pair.source->reference().port, "s");
  struct Row {
    const char* name;
    std::function<void(wire::LaneJoin&)> spoil;
  };
  const Row rows[] = {
      {"session", [](wire::LaneJoin& join) { ++join.session; }},
      {"epoch", [](wire::LaneJoin& join) { ++join.epoch; }},
      {"consumer", [](wire::LaneJoin& join) { ++join.consumer.bytes[0]; }},
      {"owner", [](wire::LaneJoin& join) { ++join.owner.bytes[0]; }},
      {"key", [](wire::LaneJoin& join) { ++join.key[0]; }},
      {"lane", [](wire::LaneJoin& join) { join.lane = 63; }},
      {"generation", [](wire::LaneJoin& join) { join.generation = 0; }},
  };
  for (const Row& row : rows) {
    wire::LaneJoin join = peer.join(0, 1);
    row.spoil(join);
    EXPECT_NE(peer.try_join(join), 0) << row.name;
  }
  EXPECT_EQ(counter(pair.owner, "connections_refused_total"), std::size(rows));
  EXPECT_EQ(peer.try_join(peer.join(0, 1)), 0);
  EXPECT_NE(peer.try_join(peer.join(0, 1)), 0) << "the same join again";
  EXPECT_NE(peer.try_join(peer.join(0, 2)), 0) << "the lane is there";
  EXPECT_TRUE(pair.works());
}

TEST_P(Sources, R22_strangers_learn_versions_and_nothing_else) {
  WHERRY_NEEDS(raw);
  Pair pair(on());
  const std::uint16_t port = pair.source->reference().port;
  const std::string_view texts[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "SSH-2.0-x\r\n",
                                    "\x16\x03\x01", "WHERRY\r\nXXXXXXXXXXXX", "\x01"};
  for (const std::string_view text : texts) {
    RawConnection stranger("127.0.0.1", port);
    stranger.send(std::as_bytes(std::span(text)));
    const auto got = stranger.receive(wire::preamble_bytes);
    ASSERT_EQ(got.size(), wire::preamble_bytes);
    const auto preamble = wire::decode_preamble(std::span(got).first<wire::preamble_bytes>());
    ASSERT_TRUE(preamble);
    EXPECT_EQ(preamble->version, wire::protocol_version);
    EXPECT_TRUE(stranger.is_closed());
  }
  EXPECT_EQ(counter(pair.owner, "strangers_total"), std::size(texts));
  // Another version of ours is told which one is spoken here.
  RawConnection other("127.0.0.1", port);
  other.send(wire::encode(wire::Preamble{77, wire::Role::control_consumer, wire::Security::none}));
  EXPECT_EQ(other.receive(wire::preamble_bytes).size(), wire::preamble_bytes);
  EXPECT_TRUE(other.is_closed());
  EXPECT_EQ(counter(pair.owner, "sessions"), 1U);
  EXPECT_TRUE(pair.works());
}

INSTANTIATE_TEST_SUITE_P(all, Sources, moving(), provider_name);

} // namespace
} // namespace wherry::conformance

// R13, R14, R17 and R18 for host memory: what may be registered, what it is charged, and how it
// ends: nothing is freed that anybody may still touch, and nobody is waited for without bound.
#include "conformance/conformance.h"

#include <sys/mman.h>

#include <array>
#include <memory>

namespace wherry::conformance {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

class Registrations : public Conformance {
protected:
  Registration add(TransferEngine& engine, const SharedBytes& bytes,
                   Visibility visibility = Visibility::local_only) {
    RegisterOptions options;
    options.visibility = visibility;
    options.keep_alive = bytes;
    return must(engine.register_memory(*bytes, std::move(options)));
  }
  static std::array<std::uint64_t, 3> held(const TransferEngine& engine) {
    return {counter(engine, "registrations"), counter(engine, "registered_bytes"),
            counter(engine, "leases")};
  }
};

/// Mapped memory of a protection.
class Mapping {
public:
  Mapping(std::size_t bytes, int protection)
      : bytes_(bytes),
        at_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    ::mprotect(at_, bytes, protection);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { ::munmap(at_, bytes_); }
  std::span<std::byte> span() const { return {static_cast<std::byte*>(at_), bytes_}; }

private:
  std::size_t bytes_;
  void* at_;
};

// --- R17: what may be registered ----------------------------------------------------------------

TEST_P(Registrations, R17_memory_that_cannot_be_used_is_refused_and_leaves_nothing) {
  TransferEngine& engine = this->engine();
  std::array<std::byte, 64> bytes{};
  const Mapping unreadable(64 * kib, PROT_NONE);
  // Below what a process may map.
  const std::span<std::byte> unmapped(reinterpret_cast<std::byte*>(4096), 4096);
  auto* const top = reinterpret_cast<std::byte*>(UINTPTR_MAX - 99);
  const struct Row {
    const char* name;
    std::span<std::byte> bytes;
    const char* named;
  } rows[] = {
      {"zero length", std::span(bytes).first(0), "zero"},
      {"null", std::span<std::byte>(static_cast<std::byte*>(nullptr), 64), "null"},
      {"wrap-around", std::span<std::byte>(top, 1000), "wraps"},
      {"to the very top", std::span<std::byte>(top, 99), ""},
      {"longer than any address", std::span<std::byte>(bytes.data(), SIZE_MAX), "wraps"},
      {"unreadable", unreadable.span(), "not readable"},
      {"unmapped", unmapped, "not mapped"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(
        refused(engine.register_memory(row.bytes), ErrorCode::invalid_argument, {row.named}));
    EXPECT_EQ(held(engine), (std::array<std::uint64_t, 3>{}));
  }
  RegisterOptions odd;
  odd.visibility = static_cast<Visibility>(7);
  EXPECT_TRUE(
      refused(engine.register_memory(bytes, odd), ErrorCode::invalid_argument, {"visibility"}));
  EXPECT_EQ(held(engine), (std::array<std::uint64_t, 3>{}));
}

TEST_P(Registrations, R17_a_refusal_lets_keep_alive_go) {
  TransferEngine& engine = this->engine();
  auto owner = std::make_shared<int>(1);
  const std::weak_ptr<int> alive = owner;
  RegisterOptions options;
  options.keep_alive = std::move(owner);
  EXPECT_TRUE(refused(engine.register_memory({}, std::move(options)), ErrorCode::invalid_argument));
  EXPECT_TRUE(alive.expired());
}

TEST_P(Registrations, R17_overlapping_registrations_are_independent_and_charged_each) {
  Pair pair(on());
  const auto before = held(pair.consumer);
  std::optional<Registration> again = add(pair.consumer, pair.my_bytes);
  RegisterOptions part_options;
  part_options.keep_alive = pair.my_bytes;
  std::optional<Registration> part =
      must(pair.consumer.register_memory(pair.mine(100, 1000), part_options));
  EXPECT_NE(again->id(), pair.my_range->id());
  EXPECT_EQ(held(pair.consumer)[0], before[0] + 2);
  EXPECT_EQ(held(pair.consumer)[1], before[1] + mib + 1000);
  must(again->retire(soon()));
  EXPECT_EQ(held(pair.consumer)[1], before[1] + 1000);
  EXPECT_TRUE(pair.works());
  EXPECT_TRUE(pair.run({Operation::read(*part, 0, pair.range, 0, 1000)}).completed());
  EXPECT_TRUE(same(pair.mine(100, 1000), pair.theirs(0, 1000)));
  must(part->retire(soon()));
  EXPECT_EQ(held(pair.consumer), before);
}

TEST_P(Registrations, R17_memory_that_cannot_be_written_is_no_target) {
  Pair pair(on());
  const Mapping constant(64 * kib, PROT_READ);
  RegisterOptions options;
  options.visibility = Visibility::remote_read_write;
  EXPECT_TRUE(refused(pair.owner.register_memory(constant.span(), options),
                      ErrorCode::invalid_argument, {"not writable"}));
  Registration local = must(pair.consumer.register_memory(constant.span()));
  EXPECT_TRUE(refused(pair.remote->submit({Operation::read(local, 0, pair.range, 0, 10)}),
                      ErrorCode::invalid_argument, {"not writable"}));
  // But it can be sent from, and shown.
  EXPECT_TRUE(pair.run({Operation::write(local, 0, pair.range, 0, 64 * kib)}).completed());
  EXPECT_TRUE(same(pair.theirs(0, 64 * kib), constant.span()));
  options.visibility = Visibility::remote_read;
  Registration shown = must(pair.owner.register_memory(constant.span(), options));
  must(pair.source->add(std::array{NamedRange("constant", shown)}));
  const RemoteRange range = must(pair.remote->range("constant", soon()));
  EXPECT_TRUE(pair.run({Operation::read(*pair.my_range, 0, range, 0, 64 * kib)}).completed());
  EXPECT_TRUE(same(pair.mine(0, 64 * kib), constant.span()));
  EXPECT_TRUE(refused(pair.remote->submit({Operation::write(*pair.my_range, 0, range, 0, 1)}),
                      ErrorCode::access_denied));
  must(local.retire(soon()));
  must(shown.retire(soon()));
}

// --- R13, R14: budgets --------------------------------------------------------------------------

TEST_P(Registrations, R13_R14_a_refused_charge_names_all_numbers_and_evicts_nothing) {
  EngineOptions options;
  options.limits.registrations = 3;
  options.limits.registered_bytes = 10'000;
  TransferEngine& engine = this->engine(options);
  const SharedBytes bytes = shared_pattern(4000, 1);
  std::vector<Registration> kept;
  kept.push_back(add(engine, bytes));
  kept.push_back(add(engine, bytes));
  const auto before = held(engine);
  EXPECT_EQ(before[1], 8000U);
  const std::uint64_t refusals = counter(engine, "registrations_refused_total");
  EXPECT_TRUE(refused(engine.register_memory(*bytes), ErrorCode::resource_exhausted,
                      {"registered bytes", "10000", "8000", "4000"}));
  EXPECT_EQ(held(engine), before);
  kept.push_back(must(engine.register_memory(std::span(*bytes).first(1000))));
  EXPECT_TRUE(refused(engine.register_memory(std::span(*bytes).first(1)),
                      ErrorCode::resource_exhausted, {"registrations", "3"}));
  EXPECT_EQ(counter(engine, "registrations_refused_total"), refusals + 2);

  // Adjustable, never below what is in use.
  EXPECT_TRUE(refused(engine.set_registration_budget(2, 10'000), ErrorCode::invalid_argument) ||
              refused(engine.set_registration_budget(2, 10'000), ErrorCode::resource_exhausted) ||
              refused(engine.set_registration_budget(2, 10'000), ErrorCode::busy));
  EXPECT_FALSE(engine.set_registration_budget(3, 8999));
  EXPECT_TRUE(refused(engine.register_memory(std::span(*bytes).first(1)),
                      ErrorCode::resource_exhausted, {"registrations", "3"}))
      << "a refused change left the old limits";
  must(engine.set_registration_budget(4, 13'000));
  kept.push_back(add(engine, bytes));
  EXPECT_EQ(held(engine)[1], 13'000U);
  for (Registration& one : kept) {
    must(one.retire(soon()));
  }
  EXPECT_EQ(held(engine), (std::array<std::uint64_t, 3>{}));
}

TEST_P(Registrations, R13_every_number_of_a_budget_may_be_used_again) {
  EngineOptions options;
  options.limits.registrations = 1;
  TransferEngine& engine = this->engine(options);
  const SharedBytes bytes = shared_pattern(64, 1);
  std::uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    Registration one = add(engine, bytes);
    EXPECT_NE(one.id(), last) << "an id came back";
    last = one.id();
    must(one.retire(soon()));
  }
}

// --- R18: retirement ----------------------------------------------------------------------------

TEST_P(Registrations, R18_keep_alive_is_released_when_retire_says_ok_and_not_before) {
  TransferEngine& engine = this->engine();
  SharedBytes bytes = shared_pattern(4096, 1);
  const std::weak_ptr<Bytes> alive = bytes;
  Registration one = add(engine, bytes);
  bytes.reset();
  EXPECT_FALSE(alive.expired());
  must(one.retire(soon()));
  EXPECT_TRUE(alive.expired());
  must(one.retire(soon())); // Again is fine.
}

TEST_P(Registrations, R18_a_lease_that_outlives_the_deadline_is_busy_and_then_ok) {
  WHERRY_NEEDS(hold);
  Pair pair(on());
  SharedBytes bytes = shared_pattern(4096, 1);
  const std::weak_ptr<Bytes> alive = bytes;
  Registration local = add(pair.consumer, bytes);
  bytes.reset();
  on().hold(pair.consumer, pair.owner, Where::unsent);
  Request request = pair.submit({Operation::read(local, 0, pair.range, 0, 4096)});
  EXPECT_TRUE(refused(local.retire(a_moment()), ErrorCode::busy, {"1", "lease"}));
  EXPECT_TRUE(refused(local.retire(Deadline::now()), ErrorCode::busy));
  EXPECT_FALSE(alive.expired());
  // No new request may use it, while the old one goes on.
  EXPECT_TRUE(refused(pair.remote->submit({Operation::read(local, 0, pair.range, 0, 1)}),
                      ErrorCode::invalid_argument, {"retiring"}));
  on().release(pair.consumer, pair.owner);
  EXPECT_TRUE(request.wait_drained(soon()).completed());
  EXPECT_EQ(must(local.retire(soon())).sessions_cut, 0U);
  EXPECT_TRUE(alive.expired());
}

TEST_P(Registrations, R18_dropping_a_handle_starts_the_end_and_frees_nothing_that_is_used) {
  WHERRY_NEEDS(hold);
  Pair pair(on());
  SharedBytes bytes = shared_pattern(4096, 1);
  const std::weak_ptr<Bytes> alive = bytes;
  std::optional<Registration> local = add(pair.consumer, bytes);
  bytes.reset();
  on().hold(pair.consumer, pair.owner, Where::unsent);
  Request request = pair.submit({Operation::write(*local, 0, pair.range, 0, 4096)});
  local.reset();
  on().run_a_while();
  EXPECT_FALSE(alive.expired());
  on().release(pair.consumer, pair.owner);
  EXPECT_TRUE(request.wait_drained(soon()).completed());
  EXPECT_TRUE(same(pair.theirs(0, 4096), pattern(4096, 1)));
  EXPECT_TRUE(run_until([&] { return alive.expired(); }));
}

TEST_P(Registrations, R18_recalling_a_range_costs_a_live_peer_nothing_on_another) {
  Pair pair(on());
  SharedBytes other = shared_pattern(mib, 3);
  std::optional<Registration> other_range = add(pair.owner, other, Visibility::remote_read_write);
  must(pair.source->add(std::array{NamedRange("other", *other_range)}));
  const RemoteRange range = must(pair.remote->range("other", soon()));
  EXPECT_TRUE(pair.run({Operation::read(*pair.my_range, 0, range, 0, 100)}).completed());
  std::vector<Request> requests;
  for (std::size_t i = 0; i < 16; ++i) {
    requests.push_back(pair.submit({pair.read(i * 64 * kib, 64 * kib)}));
  }
  const Retired retired = must(other_range->retire(soon()));
  EXPECT_EQ(retired.sessions_cut, 0U);
  for (Request& request : requests) {
    const Report report = request.wait_drained(soon());
    EXPECT_TRUE(report.completed()) << describe(report);
  }
  EXPECT_TRUE(same(*pair.my_bytes, *pair.their_bytes));
  EXPECT_TRUE(refused(pair.remote->submit({Operation::read(*pair.my_range, 0, range, 0, 1)}),
                      ErrorCode::range_withdrawn));
  EXPECT_TRUE(refused(pair.remote->range("other", soon()), ErrorCode::not_found));
  EXPECT_EQ(counter(pair.owner, "tcp_lanes_cut_total"), 0U);
  EXPECT_TRUE(pair.works());
}

TEST_P(Registrations, R18_requests_on_a_recalled_range_end_with_the_truth) {
  Pair pair(on());
  // Long batches, so that the recall meets them in the middle.
  std::vector<Operation> operations;
  for (std::size_t i = 0; i < 2000; ++i) {
    operations.push_back(pair.write((i % 256) * 4096, 4096));
  }
  fill(*pair.my_bytes, 5);
  Request request = pair.submit(operations);
  const Retired retired = must(pair.their_range->retire(soon()));
  EXPECT_EQ(retired.sessions_cut, 0U);
  const Bytes theirs = *pair.their_bytes;
  const Report report = request.wait_drained(soon());
  if (!report.completed()) {
    EXPECT_EQ(report.outcome, Outcome::failed) << describe(report);
    EXPECT_EQ(report.failure->error.code, ErrorCode::range_withdrawn);
    EXPECT_TRUE(report.remote_settled);
    EXPECT_NE(report.remote_effect, RemoteEffect::applied);
  }
  // Retired is retired: the application may use its memory.
  on().run_a_while();
  EXPECT_TRUE(same(*pair.their_bytes, theirs));
  EXPECT_EQ(counter(pair.owner, "registrations"), 0U);
}

TEST_P(Registrations, R18_a_peer_that_does_not_acknowledge_is_cut_and_the_result_says_so) {
  WHERRY_NEEDS(cut);
  Pair pair(on());
  SharedBytes other = shared_pattern(4096, 3);
  const std::weak_ptr<Bytes> alive = other;
  Registration other_range = add(pair.owner, other, Visibility::remote_read);
  other.reset();
  must(pair.source->add(std::array{NamedRange("other", other_range)}));
  const RemoteRange range = must(pair.remote->range("other", soon()));
  on().node(pair.consumer).network->freeze(true);
  const Retired retired = must(other_range.retire(a_moment()));
  EXPECT_EQ(retired.sessions_cut, 1U);
  EXPECT_TRUE(alive.expired());
  on().node(pair.consumer).network->freeze(false);
  // The peer comes back, finds its lanes ended, and goes on without the range.
  EXPECT_TRUE(run_until([&] {
    auto request = pair.remote->submit({pair.read(0, 100)});
    return request && request->wait_drained(soon()).completed();
  }));
  // At admission, where the peer has heard of it, or by the owner.
  auto request = pair.remote->submit({Operation::read(*pair.my_range, 0, range, 0, 1)});
  if (request) {
    const Report report = request->wait_drained(soon());
    ASSERT_EQ(report.outcome, Outcome::failed) << describe(report);
    EXPECT_EQ(report.failure->error.code, ErrorCode::range_withdrawn);
  } else {
    EXPECT_TRUE(refused(request, ErrorCode::range_withdrawn));
  }
  EXPECT_TRUE(pair.works());
}

TEST_P(Registrations, R18_R24_one_range_in_two_sources_leaves_both) {
  Pair pair(on());
  SourceOptions options;
  options.listen = on().listen_address(pair.owner);
  Source second = must(pair.owner.publish("second", options, {{"x", *pair.their_range}}));
  RemoteSource remote = must(pair.consumer.open(second.reference()));
  const RemoteRange range = must(remote.range("x", soon()));
  EXPECT_EQ(must(pair.their_range->retire(soon())).sessions_cut, 0U);
  EXPECT_TRUE(refused(remote.submit({Operation::read(*pair.my_range, 0, range, 0, 1)}),
                      ErrorCode::range_withdrawn));
  EXPECT_TRUE(refused(pair.remote->submit({pair.read(0, 1)}), ErrorCode::range_withdrawn));
  EXPECT_TRUE(must(remote.describe({}, soon())).ranges.empty());
}

// The kernel notices; where the engine copies itself nobody can (small pieces of READs).
TEST_P(Registrations, R42_a_write_from_memory_that_was_taken_away_is_invalidated) {
  WHERRY_NEEDS(raw);
  Pair pair(on());
  const Bytes theirs = *pair.their_bytes;
  const Mapping mapping(mib, PROT_READ | PROT_WRITE);
  Registration local = must(pair.consumer.register_memory(mapping.span()));
  ::mprotect(mapping.span().data(), mib, PROT_NONE);
  const Report report = pair.run({Operation::write(local, 0, pair.range, 0, mib)});
  EXPECT_EQ(report.outcome, Outcome::failed) << describe(report);
  EXPECT_EQ(report.failure->error.code, ErrorCode::invalidated) << describe(report);
  EXPECT_EQ(report.completed_bytes, 0U);
  EXPECT_TRUE(run_until([&] {
    auto request = pair.remote->submit({pair.read(0, 100)});
    return request && request->wait_drained(soon()).completed();
  }));
  EXPECT_TRUE(same(*pair.their_bytes, theirs));
  must(local.retire(soon()));
}

INSTANTIATE_TEST_SUITE_P(all, Registrations, moving(), provider_name);

} // namespace
} // namespace wherry::conformance

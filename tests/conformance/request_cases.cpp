// R27, R30, R31: a request is admitted whole or not at all, has one outcome and one drain, and
// holds what it holds until the second.
#include "conformance/conformance.h"
#include "path/scripted/script.h"

#include <poll.h>

#include <array>
#include <map>

namespace wherry::conformance {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Requests : public Conformance {
protected:
  /// What admission may take, by counter.
  static std::map<std::string, std::uint64_t> held(const TransferEngine& engine) {
    std::map<std::string, std::uint64_t> values;
    for (const char* name :
         {"leases", "requests_outstanding", "operations_outstanding", "requests_submitted_total"}) {
      values[name] = counter(engine, name);
    }
    return values;
  }
};

// --- R27: admission -----------------------------------------------------------------------------

TEST_P(Requests, R27_a_batch_with_one_bad_operation_has_no_effect) {
  Pair pair(on());
  RegisterOptions read_only;
  read_only.visibility = Visibility::remote_read;
  read_only.keep_alive = pair.their_bytes;
  const Registration shown = must(pair.owner.register_memory(*pair.their_bytes, read_only));
  must(pair.source->add(std::array{NamedRange("read-only", shown)}));
  const RemoteRange read_only_range = must(pair.remote->range("read-only", soon()));

  const std::uint64_t huge = UINT64_MAX;
  RemoteRange unknown = pair.range;
  unknown.id = 0x7777'0000'0001;
  Operation no_local = pair.read(0, 10);
  no_local.local_range = 0x7777'0000'0001;
  Operation no_kind = pair.read(0, 10);
  no_kind.kind = static_cast<OperationKind>(9);
  const struct Row {
    const char* name;
    Operation bad;
    ErrorCode code;
    const char* field;
  } rows[] = {
      {"beyond the local end", pair.read(1, 0, 1 << 20), ErrorCode::invalid_argument, "local"},
      {"far beyond", pair.read(huge, 0, 1), ErrorCode::invalid_argument, "local"},
      {"local overflow", pair.read(2, 0, huge), ErrorCode::invalid_argument, "local"},
      {"no local range", no_local, ErrorCode::invalid_argument, "local_range"},
      {"no kind", no_kind, ErrorCode::invalid_argument, "kind"},
      {"beyond the remote end", pair.read(0, 1, 1 << 20), ErrorCode::out_of_range, "remote"},
      {"remote overflow", pair.write(0, huge, 2), ErrorCode::out_of_range, "remote"},
      {"unknown remote range", Operation::read(*pair.my_range, 0, unknown, 0, 1),
       ErrorCode::not_found, "remote_range"},
      {"WRITE to a read-only range", Operation::write(*pair.my_range, 0, read_only_range, 0, 1),
       ErrorCode::access_denied, "remote_range"},
  };
  const Bytes mine = *pair.my_bytes;
  const Bytes theirs = *pair.their_bytes;
  std::uint64_t refusals = counter(pair.consumer, "requests_refused_total");
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const auto before = held(pair.consumer);
    const auto result = pair.remote->submit({pair.write(0, 4096), pair.read(8192, 4096), row.bad});
    EXPECT_TRUE(refused(result, row.code, {"operation 2", row.field}));
    EXPECT_EQ(held(pair.consumer), before);
    EXPECT_EQ(counter(pair.consumer, "requests_refused_total"), ++refusals);
  }
  on().run_a_while();
  EXPECT_TRUE(same(*pair.my_bytes, mine));
  EXPECT_TRUE(same(*pair.their_bytes, theirs));
  EXPECT_EQ(on().served().here, 0U);
  EXPECT_TRUE(pair.works());
}

TEST_P(Requests, R27_budgets_of_requests_and_operations_refuse_at_once_and_are_given_back) {
  WHERRY_NEEDS(hold);
  PairOptions options;
  options.consumer.limits.requests = 2;
  options.consumer.limits.operations = 5;
  Pair pair(on(), options);
  on().hold(pair.consumer, pair.owner, Where::unsent);
  Request first = pair.submit({pair.read(0, 1), pair.read(1, 1), pair.read(2, 1), pair.read(3, 1)});
  const auto before = held(pair.consumer);
  EXPECT_EQ(before.at("operations_outstanding"), 4U);
  const auto too_many = pair.remote->submit({pair.read(4, 1), pair.read(5, 1)});
  EXPECT_TRUE(refused(too_many, ErrorCode::resource_exhausted, {"operations", "5", "4", "2"}));
  EXPECT_EQ(held(pair.consumer), before);
  Request second = pair.submit({pair.read(4, 1)});
  const auto third = pair.remote->submit(std::span<const Operation>{});
  EXPECT_TRUE(refused(third, ErrorCode::resource_exhausted, {"requests", "2"}));
  // A batch that is wrong is told so all the same.
  EXPECT_TRUE(refused(pair.remote->submit({pair.read(0, 1 << 20, 1)}), ErrorCode::out_of_range));
  on().release(pair.consumer, pair.owner);
  EXPECT_TRUE(first.wait_drained(soon()).completed());
  EXPECT_TRUE(second.wait_drained(soon()).completed());
  EXPECT_EQ(counter(pair.consumer, "operations_outstanding"), 0U);
  EXPECT_EQ(counter(pair.consumer, "leases"), 0U);
  EXPECT_TRUE(pair.works());
}

TEST_P(Requests, R27_leases_are_taken_once_a_range_and_until_the_drain) {
  WHERRY_NEEDS(hold);
  Pair pair(on());
  on().hold(pair.consumer, pair.owner, Where::unsent);
  Request request = pair.submit({pair.read(0, 10), pair.read(10, 10), pair.read(20, 10)});
  EXPECT_EQ(counter(pair.consumer, "leases"), 1U);
  EXPECT_EQ(counter(pair.consumer, "requests_outstanding"), 1U);
  on().release(pair.consumer, pair.owner);
  EXPECT_TRUE(request.wait_drained(soon()).completed());
  EXPECT_EQ(counter(pair.consumer, "leases"), 0U);
}

// --- R31: outcomes ------------------------------------------------------------------------------

TEST_P(Requests, R31_a_wait_that_elapses_is_no_outcome) {
  WHERRY_NEEDS(hold);
  Pair pair(on());
  const Bytes theirs = *pair.their_bytes;
  on().hold(pair.consumer, pair.owner, Where::unsent);
  Request request = pair.submit({pair.write(0, 4096)});
  for (int i = 0; i < 3; ++i) {
    for (const Report& report : {request.wait(a_moment()), request.wait_drained(Deadline::now())}) {
      EXPECT_FALSE(report.outcome) << describe(report);
      EXPECT_EQ(report.local_drain, LocalDrain::in_flight);
      EXPECT_EQ(report.completed_bytes, 0U);
      EXPECT_FALSE(report.failure);
    }
  }
  EXPECT_TRUE(same(*pair.their_bytes, theirs));
  on().release(pair.consumer, pair.owner);
  const Report report = request.wait_drained(soon());
  EXPECT_TRUE(report.completed()) << describe(report);
  EXPECT_TRUE(same(pair.theirs(0, 4096), pair.mine(0, 4096)));
}

TEST_P(Requests, R31_a_timeout_is_an_outcome_and_the_prefix_stays) {
  WHERRY_NEEDS(hold);
  Pair pair(on());
  const Bytes mine = *pair.my_bytes;
  on().hold(pair.consumer, pair.owner, Where::unsent);
  SubmitOptions options;
  options.timeout = milliseconds(5);
  Request request = pair.submit({pair.read(0, 4096)}, options);
  const Report report = request.wait(soon());
  EXPECT_EQ(report.outcome, Outcome::timed_out) << describe(report);
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->error.code, ErrorCode::timed_out);
  EXPECT_EQ(report.failure->operation, 0U);
  EXPECT_EQ(report.completed_bytes, 0U);
  EXPECT_EQ(request.wait_drained(soon()).local_drain, LocalDrain::drained);
  // Once drained, what comes late does not come.
  const Bytes after = *pair.my_bytes;
  on().release(pair.consumer, pair.owner);
  on().run_a_while();
  EXPECT_TRUE(same(*pair.my_bytes, after));
  EXPECT_TRUE(same(std::span(*pair.my_bytes).subspan(4096), std::span(mine).subspan(4096)));
  EXPECT_EQ(counter(pair.consumer, "requests_timed_out_total"), 1U);
  EXPECT_TRUE(pair.works());
}

TEST_P(Requests, R31_a_timeout_that_has_passed_already_times_out) {
  Pair pair(on());
  SubmitOptions options;
  options.timeout = std::chrono::nanoseconds(-5);
  const Report report = pair.run({pair.read(0, 1 << 20)}, options);
  EXPECT_TRUE(report.outcome == Outcome::timed_out || report.completed()) << describe(report);
  EXPECT_EQ(report.local_drain, LocalDrain::drained);
  EXPECT_TRUE(pair.works());
}

TEST_P(Requests, R31_cancel_is_an_outcome_and_changes_nothing_once_there_is_one) {
  WHERRY_NEEDS(hold);
  Pair pair(on());
  on().hold(pair.consumer, pair.owner, Where::unsent);
  Request request = pair.submit({pair.read(0, 4096)});
  request.cancel();
  request.cancel();
  const Report report = request.wait_drained(soon());
  EXPECT_EQ(report.outcome, Outcome::cancelled) << describe(report);
  EXPECT_FALSE(report.failure);
  EXPECT_EQ(report.local_drain, LocalDrain::drained);
  on().release(pair.consumer, pair.owner);
  Request done = pair.submit({pair.read(0, 4096)});
  EXPECT_TRUE(done.wait_drained(soon()).completed());
  done.cancel();
  on().run_a_while();
  EXPECT_TRUE(done.report().completed());
  EXPECT_EQ(counter(pair.consumer, "requests_cancelled_total"), 1U);
}

TEST_P(Requests, R36_cancelling_one_request_leaves_the_others_on_its_lane_alone) {
  WHERRY_NEEDS(hold);
  PairOptions options;
  options.their_bytes = options.my_bytes = 8 << 20;
  options.lanes = 1;
  Pair pair(on(), options);
  on().hold(pair.consumer, pair.owner, Where::unanswered);
  Request first = pair.submit({pair.read(0, 1 << 20)});
  Request second = pair.submit({pair.read(1 << 20, 1 << 20)});
  Request third = pair.submit({pair.read(2 << 20, 6 << 20)});
  second.cancel();
  EXPECT_EQ(second.wait_drained(soon()).outcome, Outcome::cancelled);
  on().release(pair.consumer, pair.owner);
  EXPECT_TRUE(first.wait_drained(soon()).completed());
  EXPECT_TRUE(third.wait_drained(soon()).completed());
  EXPECT_TRUE(same(pair.mine(0, 1 << 20), pair.theirs(0, 1 << 20)));
  EXPECT_TRUE(same(pair.mine(2 << 20, 6 << 20), pair.theirs(2 << 20, 6 << 20)));
  EXPECT_EQ(counter(pair.consumer, "tcp_lanes_cut_total"), 0U);
  EXPECT_TRUE(pair.works());
}

// --- R30: drains --------------------------------------------------------------------------------

TEST_P(Requests, R30_cancelling_a_write_under_way_ends_the_outcome_and_not_the_drain) {
  WHERRY_NEEDS(hold);
  PairOptions options;
  options.lanes = 1;
  options.consumer.tcp.cancel_grace = seconds(60); // Not what is tested.
  Pair pair(on(), options);
  on().hold(pair.consumer, pair.owner, Where::unanswered);
  Request request = pair.submit({pair.write(0, 64 << 10)});
  on().run_a_while();
  request.cancel();
  Report report = request.wait(soon());
  EXPECT_EQ(report.outcome, Outcome::cancelled) << describe(report);
  report = request.wait_drained(a_moment());
  EXPECT_EQ(report.local_drain, LocalDrain::in_flight) << "it was sent and not answered";
  EXPECT_EQ(report.remote_effect, RemoteEffect::uncertain);
  EXPECT_FALSE(report.remote_settled);
  EXPECT_EQ(counter(pair.consumer, "leases"), 1U);
  EXPECT_EQ(counter(pair.consumer, "requests_outstanding"), 1U);
  on().release(pair.consumer, pair.owner);
  report = request.wait_drained(soon());
  EXPECT_EQ(report.outcome, Outcome::cancelled) << "a second outcome: " << describe(report);
  EXPECT_EQ(report.local_drain, LocalDrain::drained);
  EXPECT_TRUE(report.remote_settled);
  EXPECT_EQ(report.remote_effect, RemoteEffect::applied);
  EXPECT_TRUE(same(pair.theirs(0, 64 << 10), pair.mine(0, 64 << 10)));
  EXPECT_EQ(counter(pair.consumer, "leases"), 0U);
}

TEST_P(Requests, R30_R31_dropping_a_handle_frees_no_memory_in_flight) {
  WHERRY_NEEDS(script);
  Pair pair(on());
  Script& script = *on().script();
  script.ignore_cancel = true; // A device that goes on.
  SharedBytes bytes = shared_pattern(4096, 8);
  const std::weak_ptr<Bytes> alive = bytes;
  RegisterOptions options;
  options.keep_alive = bytes;
  std::optional<Registration> local =
      must(pair.consumer.register_memory(*bytes, std::move(options)));
  bytes.reset();
  on().hold(pair.consumer, pair.owner, Where::unanswered);
  {
    const Request request =
        must(pair.remote->submit({Operation::read(*local, 0, pair.range, 0, 4096)}));
  }
  local.reset();
  on().run_a_while();
  EXPECT_EQ(counter(pair.consumer, "requests_outstanding"), 1U);
  EXPECT_FALSE(alive.expired()) << "freed while a device may write to it";
  on().release(pair.consumer, pair.owner);
  EXPECT_TRUE(run_until([&] { return alive.expired(); }));
  EXPECT_EQ(counter(pair.consumer, "requests_cancelled_total"), 1U);
}

TEST_P(Requests, R30_bytes_may_come_until_the_drain_and_not_after) {
  WHERRY_NEEDS(script);
  Pair pair(on());
  Script& script = *on().script();
  script.ignore_cancel = true;
  on().hold(pair.consumer, pair.owner, Where::unanswered);
  SubmitOptions options;
  options.timeout = milliseconds(5);
  Request request = pair.submit({pair.read(0, 4096)}, options);
  Report report = request.wait(soon());
  EXPECT_EQ(report.outcome, Outcome::timed_out);
  EXPECT_EQ(report.local_drain, LocalDrain::in_flight);
  EXPECT_FALSE(same(pair.mine(0, 4096), pair.theirs(0, 4096)));
  on().release(pair.consumer, pair.owner);
  report = request.wait_drained(soon());
  EXPECT_EQ(report.outcome, Outcome::timed_out);
  EXPECT_EQ(report.local_drain, LocalDrain::drained);
  EXPECT_TRUE(same(pair.mine(0, 4096), pair.theirs(0, 4096))) << "the device went on";
}

TEST_P(Requests, R31_a_detached_request_runs_on) {
  WHERRY_NEEDS(hold);
  Pair pair(on());
  CompletionQueue queue = must(pair.consumer.completion_queue());
  on().hold(pair.consumer, pair.owner, Where::unsent);
  SubmitOptions options;
  options.queue = &queue;
  options.user_data = 77;
  pair.submit({pair.read(0, 4096)}, options).detach();
  on().release(pair.consumer, pair.owner);
  std::array<CompletionEntry, 2> entries;
  std::size_t count = 0;
  while (count < 2) {
    const std::size_t more = queue.wait(std::span(entries).subspan(count), soon());
    ASSERT_GT(more, 0U);
    count += more;
  }
  EXPECT_EQ(entries[0].outcome, Outcome::completed);
  EXPECT_EQ(entries[1].user_data, 77U);
  EXPECT_TRUE(same(pair.mine(0, 4096), pair.theirs(0, 4096)));
}

TEST_P(Requests, R31_reports_outlive_the_engine_and_the_source) {
  auto pair = std::make_unique<Pair>(on());
  Request request = pair->submit({pair->read(0, 4096)});
  EXPECT_TRUE(request.wait_drained(soon()).completed());
  TransferEngine& consumer = pair->consumer;
  pair.reset();
  on().drop(consumer);
  EXPECT_TRUE(request.report().completed());
  EXPECT_TRUE(request.wait_drained(Deadline::now()).completed());
  request.cancel();
  EXPECT_TRUE(request.report().completed());
}

// --- Completion queues --------------------------------------------------------------------------

bool readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST_P(Requests, R31_a_completion_queue_gets_one_outcome_and_one_drain) {
  Pair pair(on());
  CompletionQueue queue = must(pair.consumer.completion_queue());
  std::vector<Request> requests;
  for (std::uint64_t i = 0; i < 10; ++i) {
    SubmitOptions options;
    options.queue = &queue;
    options.user_data = 1000 + i;
    requests.push_back(pair.submit({pair.read(i * 100, 100)}, options));
  }
  std::map<std::uint64_t, std::vector<CompletionEntry::Kind>> seen;
  std::array<CompletionEntry, 3> entries;
  for (std::size_t total = 0; total < 20;) {
    const std::size_t count = queue.wait(entries, soon());
    ASSERT_GT(count, 0U);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(entries[i].outcome, Outcome::completed);
      seen[entries[i].user_data].push_back(entries[i].kind);
      if (entries[i].kind == CompletionEntry::Kind::drain) {
        EXPECT_EQ(entries[i].local_drain, LocalDrain::drained);
      }
    }
    total += count;
  }
  ASSERT_EQ(seen.size(), 10U);
  for (const auto& [id, kinds] : seen) {
    EXPECT_EQ(kinds, (std::vector{CompletionEntry::Kind::outcome, CompletionEntry::Kind::drain}))
        << id;
  }
  EXPECT_EQ(queue.poll(entries), 0U);
  EXPECT_EQ(queue.wait(entries, a_moment()), 0U) << "nothing is to come";
}

TEST_P(Requests, R31_a_queues_descriptor_is_readable_while_entries_are_there) {
  Pair pair(on());
  CompletionQueue queue = must(pair.consumer.completion_queue());
  const int fd = queue.fd();
  EXPECT_FALSE(readable(fd));
  SubmitOptions options;
  options.queue = &queue;
  Request request = pair.submit({pair.read(0, 100)}, options);
  EXPECT_TRUE(run_until([&] { return readable(fd); }));
  EXPECT_TRUE(request.wait_drained(soon()).completed());
  std::array<CompletionEntry, 1> entry;
  EXPECT_EQ(queue.poll(entry), 1U);
  EXPECT_TRUE(readable(fd)) << "one is left";
  EXPECT_TRUE(readable(fd)) << "looking at it takes nothing";
  EXPECT_EQ(queue.poll(entry), 1U);
  EXPECT_FALSE(readable(fd));
  // Asked for only when entries are there already.
  CompletionQueue late = must(pair.consumer.completion_queue());
  options.queue = &late;
  EXPECT_TRUE(pair.run({pair.read(0, 100)}, options).completed());
  EXPECT_TRUE(readable(late.fd()));
}

TEST_P(Requests, R27_a_queues_entries_are_reserved_at_admission) {
  Pair pair(on());
  CompletionQueueOptions small;
  small.capacity = 3;
  CompletionQueue queue = must(pair.consumer.completion_queue(small));
  SubmitOptions options;
  options.queue = &queue;
  EXPECT_TRUE(pair.run({pair.read(0, 100)}, options).completed());
  const auto before = held(pair.consumer);
  const auto full = pair.remote->submit({pair.read(0, 100)}, options);
  EXPECT_TRUE(refused(full, ErrorCode::resource_exhausted, {"queue", "3"}));
  EXPECT_EQ(held(pair.consumer), before);
  std::array<CompletionEntry, 4> entries;
  EXPECT_EQ(queue.poll(entries), 2U);
  // A refusal gives the reservation back.
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(refused(pair.remote->submit({pair.read(0, 2 << 20)}, options),
                        ErrorCode::invalid_argument));
  }
  EXPECT_TRUE(pair.run({pair.read(0, 100)}, options).completed());
  EXPECT_EQ(queue.poll(entries), 2U);
}

TEST_P(Requests, R42_a_queue_of_another_engine_is_refused) {
  Pair pair(on());
  CompletionQueue foreign = must(pair.owner.completion_queue());
  SubmitOptions options;
  options.queue = &foreign;
  EXPECT_TRUE(refused(pair.remote->submit({pair.read(0, 100)}, options),
                      ErrorCode::invalid_argument, {"queue"}));
}

TEST_P(Requests, R31_cancelled_and_failed_requests_reach_their_queue) {
  WHERRY_NEEDS(hold);
  Pair pair(on());
  CompletionQueue queue = must(pair.consumer.completion_queue());
  SubmitOptions options;
  options.queue = &queue;
  on().hold(pair.consumer, pair.owner, Where::unsent);
  Request cancelled = pair.submit({pair.read(0, 100)}, options);
  options.timeout = milliseconds(5);
  Request late = pair.submit({pair.read(0, 100)}, options);
  cancelled.cancel();
  EXPECT_EQ(late.wait_drained(soon()).outcome, Outcome::timed_out);
  EXPECT_EQ(cancelled.wait_drained(soon()).outcome, Outcome::cancelled);
  std::array<CompletionEntry, 8> entries;
  EXPECT_EQ(queue.poll(entries), 4U);
  on().release(pair.consumer, pair.owner);
  EXPECT_TRUE(pair.works());
}

INSTANTIATE_TEST_SUITE_P(all, Requests, moving(), provider_name);

// --- Accounting, over null links too ------------------------------------------------------------

class Accounting : public Conformance {};

TEST_P(Accounting, R27_R31_many_requests_leave_nothing_behind) {
  PairOptions options;
  options.consumer.limits.requests = 64;
  Pair pair(on(), options);
  CompletionQueueOptions capacity;
  capacity.capacity = 128;
  CompletionQueue queue = must(pair.consumer.completion_queue(capacity));
  std::array<CompletionEntry, 128> entries;
  constexpr std::uint64_t total = 500;
  std::uint64_t submitted = 0;
  std::uint64_t outcomes = 0;
  std::uint64_t drains = 0;
  while (drains < total) {
    while (submitted < total) {
      SubmitOptions with;
      with.queue = &queue;
      with.user_data = submitted;
      const std::array operations{pair.read(submitted * 7, 777), pair.write(submitted, 5)};
      auto request = pair.remote->submit(operations, with);
      if (!request) {
        ASSERT_TRUE(refused(request, ErrorCode::resource_exhausted));
        break;
      }
      request->detach();
      ++submitted;
    }
    const std::size_t count = queue.wait(entries, soon());
    ASSERT_GT(count, 0U);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(entries[i].outcome, Outcome::completed);
      (entries[i].kind == CompletionEntry::Kind::outcome ? outcomes : drains) += 1;
    }
  }
  EXPECT_EQ(outcomes, total);
  EXPECT_EQ(counter(pair.consumer, "requests_completed_total"), total);
  EXPECT_EQ(counter(pair.consumer, "requests_submitted_total"), total);
  EXPECT_EQ(counter(pair.consumer, "operations_outstanding"), 0U);
  EXPECT_EQ(counter(pair.consumer, "leases"), 0U);
  EXPECT_EQ(on().served().here, 2 * total);
}

TEST_P(Accounting, R28_large_batches_are_counted_to_the_last_byte) {
  PairOptions options;
  options.their_bytes = options.my_bytes = 5 << 20;
  Pair pair(on(), options);
  std::vector<Operation> operations;
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    operations.push_back(pair.read(i * 1000, i % 1001));
    bytes += i % 1001;
  }
  operations.push_back(pair.read(0, 5 << 20));
  bytes += 5 << 20;
  const Report report = pair.run(operations);
  EXPECT_TRUE(report.completed()) << describe(report);
  EXPECT_EQ(report.completed_ops, operations.size());
  EXPECT_EQ(report.completed_bytes, bytes);
}

TEST_P(Accounting, R31_an_engine_that_closes_ends_what_runs) {
  Pair pair(on());
  std::vector<Request> requests;
  for (int i = 0; i < 20; ++i) {
    requests.push_back(pair.submit({pair.read(0, 1 << 20)}));
  }
  must(pair.consumer.close(soon()));
  for (Request& request : requests) {
    const Report report = request.report();
    EXPECT_EQ(report.local_drain, LocalDrain::drained) << describe(report);
    EXPECT_TRUE(report.outcome == Outcome::completed || report.outcome == Outcome::cancelled);
  }
  EXPECT_TRUE(refused(pair.remote->submit({pair.read(0, 1)}), ErrorCode::unavailable, {"closed"}));
  EXPECT_TRUE(refused(pair.consumer.open(pair.source->reference()), ErrorCode::unavailable));
  EXPECT_EQ(pair.remote->state(), SourceState::closed);
}

INSTANTIATE_TEST_SUITE_P(all, Accounting, all(), provider_name);

} // namespace
} // namespace wherry::conformance

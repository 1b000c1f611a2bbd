// One engine in several hands: threads that submit and wait at once, engines that own and consume,
// and an engine that is its own peer. (The hand-over of the lead itself is walked in tests/unit.)
#include "conformance/conformance.h"

#include <array>
#include <atomic>
#include <thread>

namespace wherry::conformance {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

class Threads : public Conformance {};

/// Joins, whatever happens.
class Crew {
public:
  template <class Work>
  void start(Work work) {
    threads_.emplace_back(std::move(work));
  }
  void join() {
    for (std::thread& thread : threads_) {
      if (thread.joinable()) {
        thread.join();
      }
    }
  }
  ~Crew() {
    over_ = true;
    join();
  }
  /// Asked by threads that go on until told: also where a case ends early.
  bool over() const { return over_; }
  void stop() { over_ = true; }

private:
  std::atomic<bool> over_ = false;
  std::vector<std::thread> threads_;
};

TEST_P(Threads, R31_two_threads_submit_and_wait_on_one_engine) {
  WHERRY_NEEDS(threads);
  Pair pair(on());
  std::atomic<int> completed = 0;
  Crew crew;
  for (std::size_t t = 0; t < 3; ++t) {
    crew.start([&, t] {
      for (std::size_t i = 0; i < 100; ++i) {
        const std::size_t at = (t * 100 + i) * 3000;
        if (pair.run({pair.read(at, 2999)}).completed() &&
            same(pair.mine(at, 2999), pair.theirs(at, 2999))) {
          ++completed;
        }
      }
    });
  }
  crew.join();
  EXPECT_EQ(completed, 300);
  EXPECT_EQ(counter(pair.consumer, "requests_completed_total"), 300U);
  EXPECT_EQ(on().served().here, 300U);
}

TEST_P(Threads, R31_a_request_is_waited_for_by_several_threads) {
  WHERRY_NEEDS(threads);
  Pair pair(on());
  on().hold(pair.consumer, pair.owner, Where::unsent);
  Request request = pair.submit({pair.read(0, mib)});
  std::atomic<int> outcomes = 0;
  std::atomic<int> waiting = 0;
  Crew crew;
  for (int t = 0; t < 3; ++t) {
    crew.start([&] {
      ++waiting;
      outcomes += request.wait_drained(soon()).completed() ? 1 : 0;
    });
  }
  EXPECT_TRUE(run_until([&] { return waiting == 3; }));
  on().release(pair.consumer, pair.owner);
  crew.join();
  EXPECT_EQ(outcomes, 3);
}

TEST_P(Threads, R31_cancelling_from_another_thread_wakes_who_waits) {
  WHERRY_NEEDS(threads);
  Pair pair(on());
  on().hold(pair.consumer, pair.owner, Where::unsent);
  Request request = pair.submit({pair.read(0, mib)});
  std::atomic<bool> waiting = false;
  Report report;
  Crew crew;
  crew.start([&] {
    waiting = true;
    report = request.wait_drained(soon());
  });
  EXPECT_TRUE(run_until([&] { return waiting.load(); }));
  request.cancel();
  crew.join();
  EXPECT_EQ(report.outcome, Outcome::cancelled) << describe(report);
  on().release(pair.consumer, pair.owner);
  EXPECT_TRUE(pair.works());
}

TEST_P(Threads, R31_one_thread_submits_and_another_takes_completions) {
  WHERRY_NEEDS(threads);
  Pair pair(on());
  CompletionQueueOptions capacity;
  capacity.capacity = 64;
  CompletionQueue queue = must(pair.consumer.completion_queue(capacity));
  constexpr std::uint64_t total = 500;
  std::atomic<std::uint64_t> drains = 0;
  Crew crew;
  crew.start([&] {
    std::array<CompletionEntry, 16> entries;
    while (drains < total) {
      const std::size_t count = queue.wait(entries, soon());
      if (count == 0) {
        return;
      }
      for (std::size_t i = 0; i < count; ++i) {
        drains += entries[i].kind == CompletionEntry::Kind::drain ? 1 : 0;
      }
    }
  });
  SubmitOptions options;
  options.queue = &queue;
  for (std::uint64_t submitted = 0; submitted < total;) {
    auto request = pair.remote->submit({pair.read(submitted * 1000, 999)}, options);
    if (request) {
      request->detach();
      ++submitted;
    } else {
      ASSERT_TRUE(refused(request, ErrorCode::resource_exhausted));
      std::this_thread::yield();
    }
  }
  crew.join();
  EXPECT_EQ(drains, total);
}

TEST_P(Threads, R30_who_has_waited_finds_entries_and_leases_given_back) {
  WHERRY_NEEDS(threads);
  Pair pair(on());
  CompletionQueue queue = must(pair.consumer.completion_queue());
  SubmitOptions options;
  options.queue = &queue;
  Crew crew;
  crew.start([&] {
    while (!crew.over()) { // Leads now and then.
      static_cast<void>(pair.consumer.progress());
    }
  });
  std::array<CompletionEntry, 2> entries;
  for (int i = 0; i < 300; ++i) {
    RegisterOptions registering;
    registering.keep_alive = pair.my_bytes;
    Registration local = must(pair.consumer.register_memory(pair.mine(0, 64), registering));
    Request request = pair.submit({Operation::read(local, 0, pair.range, 0, 64)}, options);
    if (i % 2 == 0) {
      request.wait_drained(soon());
    } else {
      while (request.report().local_drain != LocalDrain::drained) {
        std::this_thread::yield();
      }
    }
    ASSERT_EQ(queue.poll(entries), 2U);
    ASSERT_TRUE(local.retire(Deadline::now()));
  }
}

TEST_P(Threads, R31_submitting_without_end_does_not_starve_what_runs) {
  WHERRY_NEEDS(threads);
  PairOptions options;
  options.consumer.limits.requests = 1U << 20;
  Pair pair(on(), options);
  Request first = pair.submit({pair.read(0, 4096)});
  // Nobody waits, and nobody polls: report() does no work.
  const auto begin = std::chrono::steady_clock::now();
  while (!first.report().outcome) {
    pair.submit({pair.read(4096, 1)}).detach();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_TRUE(run_until([&] { return counter(pair.consumer, "requests_outstanding") == 0; }));
}

TEST_P(Threads, R18_registrations_come_and_go_while_others_work) {
  WHERRY_NEEDS(threads);
  Pair pair(on());
  std::atomic<bool> over = false;
  std::atomic<int> retired = 0;
  Crew crew;
  crew.start([&] {
    for (int i = 0; i < 60; ++i) {
      RegisterOptions options;
      options.visibility = Visibility::remote_read;
      options.keep_alive = pair.their_bytes;
      Registration one = must(pair.owner.register_memory(*pair.their_bytes, options));
      const std::string name = "n" + std::to_string(i);
      must(pair.source->add(std::array{NamedRange(name, one)}));
      const auto range = pair.remote->range(name, soon());
      if (range) {
        auto request =
            pair.remote->submit({Operation::read(*pair.my_range, 512 * kib, *range, 0, 64 * kib)});
        if (request) {
          static_cast<void>(request->wait_drained(soon()));
        }
      }
      const auto result = one.retire(soon());
      retired += result && result->sessions_cut == 0 ? 1 : 0;
    }
    over = true;
  });
  int completed = 0;
  int submitted = 0;
  while (!over) {
    ++submitted;
    completed += pair.run({pair.read(0, 64 * kib)}).completed() ? 1 : 0;
  }
  crew.join();
  EXPECT_EQ(completed, submitted) << "a recall of another range cost a request";
  EXPECT_EQ(retired, 60);
}

TEST_P(Threads, R31_closing_wakes_who_waits) {
  WHERRY_NEEDS(threads);
  Pair pair(on());
  on().hold(pair.consumer, pair.owner, Where::unsent);
  Request request = pair.submit({pair.read(0, mib)});
  CompletionQueue queue = must(pair.consumer.completion_queue());
  std::atomic<bool> waiting = false;
  Report report;
  Crew crew;
  crew.start([&] {
    waiting = true;
    report = request.wait_drained(soon());
  });
  EXPECT_TRUE(run_until([&] { return waiting.load(); }));
  must(pair.consumer.close(soon()));
  crew.join();
  EXPECT_EQ(report.outcome, Outcome::cancelled) << describe(report);
  EXPECT_EQ(report.local_drain, LocalDrain::drained);
}

TEST_P(Threads, R42_every_call_may_come_from_any_thread_at_once) {
  WHERRY_NEEDS(threads);
  Pair pair(on());
  std::atomic<int> rounds = 0;
  Crew crew;
  crew.start([&] {
    while (!crew.over()) {
      static_cast<void>(pair.consumer.counters());
      static_cast<void>(pair.consumer.capabilities());
      static_cast<void>(pair.remote->routes());
      static_cast<void>(pair.remote->state());
      static_cast<void>(pair.consumer.progress());
      ++rounds;
    }
  });
  crew.start([&] {
    while (!crew.over()) {
      static_cast<void>(pair.remote->describe({}, soon()));
      static_cast<void>(pair.remote->checksum(pair.range, 0, 1000, soon()));
      ++rounds;
    }
  });
  crew.start([&] {
    while (!crew.over()) {
      auto opened = pair.consumer.open(pair.source->reference());
      ++rounds;
    }
  });
  int completed = 0;
  for (int i = 0; i < 100; ++i) {
    completed += pair.run({pair.read(0, 64 * kib), pair.write(64 * kib, 64 * kib)}).completed();
  }
  EXPECT_TRUE(run_until([&] { return rounds >= 30; }));
  crew.stop();
  crew.join();
  EXPECT_EQ(completed, 100);
}

// --- Roles
// ----------------------------------------------------------------------------------------

TEST_P(Threads, R21_two_engines_own_and_consume_from_each_other) {
  Pair pair(on());
  RegisterOptions shared;
  shared.visibility = Visibility::remote_read_write;
  shared.keep_alive = pair.my_bytes;
  const Registration mine = must(pair.consumer.register_memory(*pair.my_bytes, shared));
  SourceOptions options;
  options.listen = on().listen_address(pair.consumer);
  const Source back = must(pair.consumer.publish("back", options, {{"m", mine}}));
  RemoteSource remote = must(pair.owner.open(back.reference()));
  const RemoteRange range = must(remote.range("m", soon()));
  std::vector<Request> requests;
  for (std::size_t i = 0; i < 8; ++i) {
    requests.push_back(pair.submit({pair.read(i * 64 * kib, 64 * kib)}));
    const std::size_t at = 512 * kib + i * 64 * kib;
    requests.push_back(
        must(remote.submit({Operation::write(*pair.their_range, at, range, at, 64 * kib)})));
  }
  for (Request& request : requests) {
    const Report report = request.wait_drained(soon());
    EXPECT_TRUE(report.completed()) << describe(report);
  }
  EXPECT_TRUE(same(*pair.my_bytes, *pair.their_bytes));
}

TEST_P(Threads, R21_an_engine_may_be_its_own_peer) {
  TransferEngine& engine = this->engine();
  const SharedBytes here = shared_pattern(2 * mib, 1);
  const SharedBytes there = shared_pattern(2 * mib, 2);
  RegisterOptions shared;
  shared.visibility = Visibility::remote_read_write;
  shared.keep_alive = there;
  const Registration theirs = must(engine.register_memory(*there, shared));
  RegisterOptions local;
  local.keep_alive = here;
  const Registration mine = must(engine.register_memory(*here, local));
  SourceOptions options;
  options.listen = on().listen_address(engine);
  const Source source = must(engine.publish("self", options, {{"r", theirs}}));
  RemoteSource remote = must(engine.open(source.reference()));
  const RemoteRange range = must(remote.range("r", soon()));
  auto reading = must(remote.submit({Operation::read(mine, 0, range, 0, mib)}));
  auto writing = must(remote.submit({Operation::write(mine, mib, range, mib, mib)}));
  EXPECT_TRUE(reading.wait_drained(soon()).completed());
  EXPECT_TRUE(writing.wait_drained(soon()).completed());
  EXPECT_TRUE(same(*here, *there));
  must(remote.checksum(range, 0, mib, soon()));
  EXPECT_EQ(must(remote.describe({}, soon())).ranges.size(), 1U);
}

TEST_P(Threads, R42_an_engine_without_a_thread_serves_when_it_is_driven) {
  PairOptions options;
  options.consumer.threads = 0;
  Pair pair(on(), options);
  EXPECT_TRUE(pair.run({pair.read(0, mib)}).completed());
  EXPECT_TRUE(same(*pair.my_bytes, *pair.their_bytes));
  Request request = pair.submit({pair.write(0, mib)});
  EXPECT_TRUE(run_until([&] {
    pair.consumer.progress();
    return request.report().local_drain == LocalDrain::drained;
  }));
  EXPECT_TRUE(request.report().completed());
}

TEST_P(Threads, R21_many_consumers_share_one_owner) {
  Pair pair(on());
  struct Consumer {
    SharedBytes bytes;
    std::optional<Registration> range;
    std::optional<RemoteSource> remote;
    std::optional<Request> request;
  };
  std::vector<Consumer> consumers(6);
  for (Consumer& one : consumers) {
    TransferEngine& engine = this->engine();
    one.bytes = shared_pattern(mib, 7);
    RegisterOptions options;
    options.keep_alive = one.bytes;
    one.range = must(engine.register_memory(*one.bytes, options));
    one.remote = must(engine.open(pair.source->reference()));
    const RemoteRange range = must(one.remote->range("r", soon()));
    one.request = must(one.remote->submit({Operation::read(*one.range, 0, range, 0, mib)}));
  }
  for (Consumer& one : consumers) {
    EXPECT_TRUE(one.request->wait_drained(soon()).completed());
    EXPECT_TRUE(same(*one.bytes, *pair.their_bytes));
  }
  EXPECT_EQ(counter(pair.owner, "sessions"), 7U);
}

INSTANTIATE_TEST_SUITE_P(all, Threads, moving(), provider_name);

} // namespace
} // namespace wherry::conformance

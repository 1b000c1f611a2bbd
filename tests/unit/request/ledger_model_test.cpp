// The ledger against its model (ledger_model.h), which works every claim out from single bytes.
//
// Goal: no claim of a report ever exceeds what is known (R28 to R31), whatever the order in which
// slices end and however they end. Method: small spaces are walked whole, branching at every step
// over everything that can happen next; larger ones at random, a seed a batch. After each step all
// claims are compared, and the outcome, the prefix and a final effect must never be taken back.
// The last tests plant lies and must be noticed.
#include "base/random.h"
#include "unit/request/ledger_model.h"

#include <gtest/gtest.h>

#include <bit>

namespace wherry::test {
namespace {

Error error_of(int number) {
  Error error;
  error.code = ErrorCode::connection_lost;
  error.native_number = number;
  return error;
}

Operation operation_of(OperationKind kind, std::uint64_t length_bytes, std::uint64_t at) {
  return {kind, 10 + at, 1000 * at, 20 + at, 500 * at, length_bytes};
}

// --- The whole of small spaces ----------------------------------------------------------------

/// The ways in which a slice of two bytes or more can end.
struct Ending {
  std::uint32_t missing_bytes = 0; ///< Of its length; all if larger.
  bool uncertain = false;
  bool cancelled = false;
};

class Explorer {
public:
  std::vector<Ending> endings;
  std::vector<Outcome> outcomes = {Outcome::cancelled};
  bool with_settle = false;
  std::uint64_t steps = 0;
  std::string fault;

  void explore(const Twin& twin, const std::vector<SlicePlan>& out) {
    ++steps;
    if (!fault.empty() || !twin.fault().empty()) {
      fault = fault.empty() ? twin.fault() : fault;
      return;
    }
    explore_next(twin, out);
    explore_ends(twin, out);
    explore_outcomes(twin, out);
    explore_settle(twin, out);
  }

private:
  void explore_next(const Twin& twin, const std::vector<SlicePlan>& out) {
    if (twin.ledger().has_next()) {
      Twin branch = twin;
      std::vector<SlicePlan> more = out;
      more.push_back(branch.next());
      explore(branch, more);
    }
  }

  void explore_ends(const Twin& twin, const std::vector<SlicePlan>& out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (const Ending& ending : endings) {
        if (ending.uncertain && out[i].kind == OperationKind::read) {
          continue;
        }
        const Error error = error_of(static_cast<int>(out[i].index));
        SliceEnd end;
        end.confirmed_bytes =
            out[i].length_bytes - std::min(out[i].length_bytes, ending.missing_bytes);
        end.uncertain = ending.uncertain;
        end.cancelled = ending.cancelled;
        end.error = ending.missing_bytes > 0 && !ending.cancelled ? &error : nullptr;
        Twin branch = twin;
        branch.complete(out[i].index, end);
        std::vector<SlicePlan> left = out;
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
        explore(branch, left);
      }
    }
  }

  void explore_outcomes(const Twin& twin, const std::vector<SlicePlan>& out) {
    if (twin.ledger().outcome()) {
      return;
    }
    const Error error = error_of(99);
    for (const Outcome outcome : outcomes) {
      Twin branch = twin;
      branch.end(outcome, outcome == Outcome::failed ? &error : nullptr);
      explore(branch, out);
    }
  }

  void explore_settle(const Twin& twin, const std::vector<SlicePlan>& out) {
    if (with_settle && twin.ledger().has_unsettled()) {
      Twin branch = twin;
      branch.settle();
      explore(branch, out);
    }
  }
};

/// Every mix of READ and WRITE over these lengths, both ways after an error, with and without
/// states.
void explore_all(Explorer& explorer, const std::vector<std::uint64_t>& lengths) {
  for (unsigned kinds = 0; kinds < 1U << lengths.size(); ++kinds) {
    std::vector<Operation> batch;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const bool write = ((kinds >> i) & 1) != 0;
      batch.push_back(
          operation_of(write ? OperationKind::write : OperationKind::read, lengths[i], i));
    }
    for (const OnError on_error : {OnError::stop, OnError::carry_on}) {
      for (const bool per_operation : {false, true}) {
        const LedgerOptions options = {on_error, per_operation, 2, 4};
        explorer.explore(Twin(batch, options), {});
        ASSERT_EQ(explorer.fault, "") << "kinds " << kinds << ", on_error " << int(on_error)
                                      << ", per_operation " << per_operation;
      }
    }
  }
}

const std::vector<Ending> every_ending = {
    {.missing_bytes = 0},
    {.missing_bytes = 1},
    {.missing_bytes = 9},
    {.missing_bytes = 1, .cancelled = true},
    {.missing_bytes = 9, .cancelled = true},
    {.missing_bytes = 1, .uncertain = true},
    {.missing_bytes = 9, .uncertain = true},
    {.missing_bytes = 9, .uncertain = true, .cancelled = true},
};

TEST(LedgerModel, R28_R29_every_walk_of_one_operation_of_two_slices) {
  Explorer explorer;
  explorer.endings = every_ending;
  explorer.outcomes = {Outcome::cancelled, Outcome::timed_out, Outcome::failed};
  explorer.with_settle = true;
  explore_all(explorer, {4});
  EXPECT_GT(explorer.steps, 1'000U);
}

TEST(LedgerModel, R28_R29_every_walk_of_two_operations) {
  Explorer explorer;
  explorer.endings = every_ending;
  explorer.outcomes = {Outcome::cancelled, Outcome::timed_out, Outcome::failed};
  explorer.with_settle = true;
  explore_all(explorer, {2, 2});
  EXPECT_GT(explorer.steps, 5'000U);
}

TEST(LedgerModel, R28_R29_every_walk_of_a_slice_between_operations_of_zero_bytes) {
  Explorer explorer;
  explorer.endings = every_ending;
  explorer.outcomes = {Outcome::cancelled, Outcome::timed_out, Outcome::failed};
  explorer.with_settle = true;
  explore_all(explorer, {0, 2, 0});
  EXPECT_GT(explorer.steps, 1'000U);
}

TEST(LedgerModel, R28_R29_every_walk_of_three_slices) {
  Explorer explorer;
  explorer.endings = {
      {.missing_bytes = 0}, {.missing_bytes = 1}, {.missing_bytes = 1, .uncertain = true}};
  explore_all(explorer, {2, 4});
  explore_all(explorer, {4, 2});
  EXPECT_GT(explorer.steps, 20'000U);
}

// --- Larger batches, at random ----------------------------------------------------------------

struct RandomRun {
  explicit RandomRun(std::uint64_t seed) : random(seed) {}

  std::vector<Operation> batch() {
    std::vector<Operation> operations(random.below(7));
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const auto kind = random.one_in(2) ? OperationKind::read : OperationKind::write;
      operations[i] = operation_of(kind, random.one_in(5) ? 0 : random.below(24), i);
    }
    return operations;
  }

  LedgerOptions options() {
    return {random.one_in(2) ? OnError::stop : OnError::carry_on, random.one_in(2),
            1 + static_cast<std::uint32_t>(random.below(8)), 1U << random.below(5)};
  }

  SliceEnd ending(const SlicePlan& plan, const Error& error) {
    SliceEnd end;
    if (!random.one_in(faults_one_in)) {
      end.confirmed_bytes = plan.length_bytes;
      return end;
    }
    end.confirmed_bytes = static_cast<std::uint32_t>(random.below(plan.length_bytes));
    end.uncertain = plan.kind == OperationKind::write && random.one_in(4);
    end.cancelled = cancelling || random.one_in(20);
    end.error = end.cancelled ? nullptr : &error;
    return end;
  }

  void end_outcome(Twin& twin) {
    const Error error = error_of(1000);
    const std::uint64_t which = random.below(3);
    cancelling = true;
    twin.end(which == 0   ? Outcome::cancelled
             : which == 1 ? Outcome::timed_out
                          : Outcome::failed,
             which == 2 ? &error : nullptr);
  }

  void step(Twin& twin) {
    if (random.one_in(ends_one_in)) {
      end_outcome(twin);
    } else if (random.one_in(6) && twin.ledger().has_unsettled()) {
      twin.settle();
    } else if (twin.ledger().has_next() && (out.empty() || random.one_in(2))) {
      out.push_back(twin.next());
    } else if (!out.empty()) {
      const auto at = static_cast<std::ptrdiff_t>(random.below(out.size()));
      const SlicePlan plan = out[static_cast<std::size_t>(at)];
      out.erase(out.begin() + at);
      const Error error = error_of(static_cast<int>(plan.index));
      twin.complete(plan.index, ending(plan, error));
    }
  }

  SeededRandom random;
  std::vector<SlicePlan> out;
  std::uint64_t faults_one_in = 2 + random.below(20);
  std::uint64_t ends_one_in = 10 + random.below(200);
  bool cancelling = false;
};

TEST(LedgerModel, R28_R29_R30_R31_ten_thousand_random_batches) {
  std::uint64_t completed = 0, failed = 0, partial = 0, uncertain = 0;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    RandomRun run(seed);
    const std::vector<Operation> batch = run.batch();
    Twin twin(batch, run.options());
    for (int steps = 0; !twin.ledger().drained(); ++steps) {
      ASSERT_LT(steps, 10'000) << "seed " << seed << " does not end";
      run.step(twin);
      ASSERT_EQ(twin.fault(), "") << "seed " << seed;
    }
    Report report;
    twin.ledger().report(report);
    completed += report.completed() ? 1 : 0;
    failed += report.outcome == Outcome::failed ? 1 : 0;
    partial += report.remote_effect == RemoteEffect::partial ? 1 : 0;
    uncertain += report.remote_effect == RemoteEffect::uncertain ? 1 : 0;
  }
  // The search reaches the ends that it is about.
  EXPECT_GT(completed, 500U);
  EXPECT_GT(failed, 500U);
  EXPECT_GT(partial, 500U);
  EXPECT_GT(uncertain, 500U);
}

TEST(LedgerModel, R28_one_ledger_used_for_batch_after_batch_remembers_nothing) {
  Ledger reused;
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    // The same steps for a new ledger and for the used one.
    RandomRun run(seed), again(seed);
    const std::vector<Operation> batch = run.batch();
    const LedgerOptions options = run.options();
    ASSERT_EQ(again.batch().size(), batch.size());
    Twin fresh(batch, options);
    reused.start(batch, again.options());
    Twin used = fresh;
    used.ledger() = reused;
    while (!fresh.ledger().drained()) {
      run.step(fresh);
      again.step(used);
      ASSERT_EQ(used.fault(), "") << "seed " << seed;
    }
    ASSERT_TRUE(used.ledger().drained());
    reused = used.ledger();
  }
}

// --- The search sees --------------------------------------------------------------------------

TEST(LedgerModel, R28_notices_a_link_that_confirms_one_byte_too_many) {
  Twin twin({operation_of(OperationKind::read, 8, 0)}, {OnError::stop, false, 8, 4});
  const Error error = error_of(1);
  const SlicePlan plan = twin.next();
  twin.complete(plan.index, {5, false, false, &error}, {4, false, false, &error});
  EXPECT_EQ(twin.fault(), "completed_bytes 5");
}

TEST(LedgerModel, R29_notices_a_link_that_hides_that_bytes_may_have_changed) {
  Twin twin({operation_of(OperationKind::write, 8, 0)}, {OnError::stop, false, 8, 4});
  const Error error = error_of(1);
  const SlicePlan plan = twin.next();
  twin.complete(plan.index, {0, false, false, &error}, {0, true, false, &error});
  EXPECT_EQ(twin.fault(), "remote_effect none");
}

TEST(LedgerModel, R31_notices_an_end_that_the_ledger_does_not_know_of) {
  Twin twin({operation_of(OperationKind::read, 8, 0)}, {OnError::stop, false, 8, 4});
  const SlicePlan plan = twin.next();
  Twin other = twin;
  other.complete(plan.index, {8, false, false, nullptr});
  twin.ledger() = other.ledger(); // Ended there, still out here.
  twin.settle();
  EXPECT_EQ(twin.fault(), "outcome");
}

} // namespace
} // namespace wherry::test

// Admission: all or nothing (R27). A table of named refusals, each with the counters before and
// after; then every n-th thing fails, allocations included; then what a batch over many ranges
// costs.
#include "base/random.h"
#include "request/admission.h"
#include "support/allocations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <map>
#include <new>
#include <set>
#include <tuple>

namespace wherry {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto rd = OperationKind::read;
constexpr auto wr = OperationKind::write;

std::array<std::byte, 4096> memory;

class FakeRemote final : public RemoteRanges {
public:
  std::map<std::uint64_t, RemoteFacts> ranges;
  mutable std::uint64_t lookups = 0;

  const RemoteFacts* find(std::uint64_t id) const override {
    ++lookups;
    const auto found = ranges.find(id);
    return found == ranges.end() ? nullptr : &found->second;
  }
};

/// All that admission may change.
struct State {
  std::uint64_t leases = 0, requests = 0, operations = 0;
  bool operator==(const State&) const = default;
};

class AdmissionTest : public ::testing::Test {
protected:
  static constexpr std::uint64_t readable = 1, writable = 2, withdrawn = 3, unknown = 4;

  AdmissionTest() {
    remote_.ranges[readable] = {1000, Visibility::remote_read, false};
    remote_.ranges[writable] = {1000, Visibility::remote_read_write, false};
    remote_.ranges[withdrawn] = {1000, Visibility::remote_read_write, true};
    local_ = add(100, true);
    read_only_ = add(100, false);
    retiring_ = add(100, true);
    EXPECT_TRUE(table_.begin_retire(retiring_));
  }

  std::uint64_t add(std::uint64_t length_bytes, bool can_write) {
    RangeSpec spec;
    spec.base = memory.data();
    spec.length_bytes = length_bytes;
    spec.writable = can_write;
    return table_.add(std::move(spec)).value();
  }

  /// A READ of one byte into each of `count` ranges that are made for it.
  std::vector<Operation> batch_over_new_ranges(std::size_t count) {
    std::vector<Operation> batch(count);
    for (std::size_t i = 0; i < count; ++i) {
      batch[i] = {rd, add(100, true), 0, readable, i % 1000, 1};
    }
    return batch;
  }

  static Limits limits() {
    Limits limits;
    limits.requests = 2;
    limits.operations = 1'000'000;
    return limits;
  }

  State state() const {
    return {table_.counters().leases, budgets_.requests.used(), budgets_.operations.used()};
  }
  Result<void> admit_batch(std::span<const Operation> batch) {
    return admit(batch, table_, remote_, budgets_, admitted_);
  }
  void release_batch() { release(admitted_, table_, budgets_); }

  RangeTable table_{limits()};
  RequestBudgets budgets_{limits()};
  FakeRemote remote_;
  Admitted admitted_;
  std::uint64_t local_ = 0, read_only_ = 0, retiring_ = 0;
};

using AdmissionDeathTest = AdmissionTest;

// --- Refusals ---------------------------------------------------------------------------------

TEST_F(AdmissionTest, R27_every_refusal_names_operation_and_field_and_changes_nothing) {
  constexpr std::uint64_t max = UINT64_MAX;
  constexpr auto bad = ErrorCode::invalid_argument;
  constexpr auto neither =
      std::bit_cast<OperationKind>(std::uint8_t{7}); // As from another language.
  const struct {
    const char* name = "";
    Operation operation;
    ErrorCode code{};
    const char* field = "";
  } rows[] = {
      {"no such local range", {rd, 0, 0, readable, 0, 1}, bad, "local_range"},
      {"a retiring range", {rd, retiring_, 0, readable, 0, 1}, bad, "local_range"},
      {"READ into a read-only range", {rd, read_only_, 0, readable, 0, 1}, bad, "not writable"},
      {"one byte too far", {rd, local_, 100, readable, 0, 1}, bad, "local_offset"},
      {"one byte too long", {rd, local_, 0, readable, 0, 101}, bad, "local_offset"},
      {"zero bytes beyond the end", {rd, local_, 101, readable, 0, 0}, bad, "local_offset"},
      {"a local sum that wraps", {rd, local_, 50, readable, 0, max}, bad, "local_offset"},
      {"a local offset that wraps", {rd, local_, max, readable, 0, 2}, bad, "local_offset"},
      {"no such remote range",
       {rd, local_, 0, unknown, 0, 1},
       ErrorCode::not_found,
       "remote_range"},
      {"a withdrawn remote range",
       {wr, local_, 0, withdrawn, 0, 1},
       ErrorCode::range_withdrawn,
       "remote_range"},
      {"WRITE to what may be read",
       {wr, local_, 0, readable, 0, 1},
       ErrorCode::access_denied,
       "remote_read, which allows no WRITE"},
      {"one remote byte too far",
       {rd, local_, 0, readable, 1000, 1},
       ErrorCode::out_of_range,
       "remote_offset"},
      {"a remote offset that wraps",
       {rd, local_, 0, readable, max, 2},
       ErrorCode::out_of_range,
       "remote_offset"},
      {"neither READ nor WRITE", {neither, local_, 0, readable, 0, 1}, bad, "kind"},
  };
  const State before = state();
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const Operation good = {wr, read_only_, 0, writable, 0, 100};
    const std::vector<Operation> batch = {good, good, row.operation, good};
    const auto refused = admit_batch(batch);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, row.code);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("operation 2: "), HasSubstr(row.field)));
    EXPECT_EQ(state(), before);
    EXPECT_TRUE(admitted_.leases.empty());
    EXPECT_FALSE(admitted_.held);
  }
}

TEST_F(AdmissionTest, R27_edges_that_are_admitted) {
  const struct {
    const char* name = "";
    Operation operation;
  } rows[] = {
      {"the whole local range", {rd, local_, 0, readable, 0, 100}},
      {"the last byte of both", {rd, local_, 99, readable, 999, 1}},
      {"zero bytes at both ends", {rd, local_, 100, readable, 1000, 0}},
      {"READ of what may be written", {rd, local_, 0, writable, 0, 1}},
      {"WRITE from a read-only range", {wr, read_only_, 0, writable, 0, 1}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ASSERT_TRUE(admit_batch({&row.operation, 1}));
    EXPECT_EQ(state(), (State{1, 1, 1}));
    release_batch();
    EXPECT_EQ(state(), State{});
  }
}

TEST_F(AdmissionTest,
       R27_a_range_used_first_for_writing_out_and_then_for_reading_in_is_asked_again) {
  const std::vector<Operation> batch = {{wr, read_only_, 0, writable, 0, 1},
                                        {rd, read_only_, 0, readable, 0, 1}};
  const auto refused = admit_batch(batch);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("operation 1: local_range"));
  EXPECT_EQ(state(), State{});
}

TEST_F(AdmissionTest, R27_the_bytes_of_a_batch_do_not_wrap_around) {
  const std::uint64_t huge = 1ULL << 63;
  RangeSpec spec;
  spec.kind = RangeKind::file;
  spec.length_bytes = huge;
  Limits wide = limits();
  wide.registered_bytes = UINT64_MAX;
  RangeTable table(wide);
  const std::uint64_t range = table.add(std::move(spec)).value();
  remote_.ranges[9] = {huge, Visibility::remote_read, false};
  const std::vector<Operation> batch(2, {rd, range, 0, 9, 0, huge});
  ASSERT_TRUE(admit({batch.data(), 1}, table, remote_, budgets_, admitted_));
  release(admitted_, table, budgets_);
  const auto refused = admit(batch, table, remote_, budgets_, admitted_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(refused.error().message, HasSubstr("operation 1: length_bytes"));
  EXPECT_EQ(table.counters().leases, 0U);
}

TEST_F(AdmissionTest, R27_a_batch_of_more_operations_than_can_be_numbered_is_refused_unread) {
  const Operation one = {rd, local_, 0, readable, 0, 1};
  const auto refused = admit_batch({&one, std::size_t{UINT32_MAX} + 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(state(), State{});
}

// --- Budgets ----------------------------------------------------------------------------------

TEST_F(AdmissionTest, R27_a_request_over_budget_is_refused_at_once_and_names_the_budget) {
  const Operation one = {rd, local_, 0, readable, 0, 1};
  Admitted others[2];
  for (Admitted& other : others) {
    ASSERT_TRUE(admit({&one, 1}, table_, remote_, budgets_, other));
  }
  const State before = state();
  const auto refused = admit_batch({&one, 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("requests"), HasSubstr("2 of 2")));
  EXPECT_EQ(state(), before);
  release(others[0], table_, budgets_);
  EXPECT_TRUE(admit_batch({&one, 1}));
  release(others[1], table_, budgets_);
  release_batch();
  EXPECT_EQ(state(), State{});
}

TEST_F(AdmissionTest, R27_operations_over_budget_give_the_request_back_too) {
  ASSERT_TRUE(budgets_.operations.set_limit(3));
  const std::vector<Operation> batch(4, {rd, local_, 0, readable, 0, 1});
  const auto refused = admit_batch(batch);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_THAT(refused.error().message, HasSubstr("operations"));
  EXPECT_EQ(state(), State{});
  EXPECT_EQ(budgets_.operations.refusals(), 1U);
  EXPECT_TRUE(admit_batch({batch.data(), 3}));
  release_batch();
}

TEST_F(AdmissionTest, R27_a_wrong_batch_is_told_so_even_when_it_is_over_budget) {
  ASSERT_TRUE(budgets_.operations.set_limit(0));
  const Operation wrong = {rd, local_, 101, readable, 0, 0};
  EXPECT_EQ(admit_batch({&wrong, 1}).error().code, ErrorCode::invalid_argument);
}

TEST_F(AdmissionTest, R35_an_empty_batch_is_a_request) {
  ASSERT_TRUE(admit_batch({}));
  EXPECT_EQ(state(), (State{0, 1, 0}));
  release_batch();
  EXPECT_EQ(state(), State{});
}

// --- The n-th thing fails ---------------------------------------------------------------------

TEST_F(AdmissionTest, R27_whichever_operation_is_wrong_nothing_is_held) {
  std::vector<Operation> batch = batch_over_new_ranges(40);
  for (Operation& operation : batch) {
    const Operation good = operation;
    operation.remote_offset = 1000;
    ASSERT_FALSE(admit_batch(batch));
    ASSERT_EQ(state(), State{});
    operation = good;
  }
  EXPECT_TRUE(admit_batch(batch));
  EXPECT_EQ(admitted_.leases.size(), 40U);
  release_batch();
}

TEST_F(AdmissionTest, R27_whichever_allocation_fails_nothing_is_held) {
  WHERRY_SKIP_WITHOUT_ALLOCATIONS();
  std::vector<Operation> batch = batch_over_new_ranges(40);
  std::uint64_t failures = 0;
  for (bool admitted = false; !admitted; ++failures) {
    ASSERT_LT(failures, 1000U);
    Admitted fresh;
    try {
      const test::FailingAllocations failing(failures);
      admitted = admit(batch, table_, remote_, budgets_, fresh).has_value();
    } catch (const std::bad_alloc&) {
      EXPECT_TRUE(fresh.leases.empty());
    }
    if (admitted) {
      release(fresh, table_, budgets_);
    }
    ASSERT_EQ(state(), State{});
  }
  EXPECT_GT(failures, 3U);
}

// --- Leases -----------------------------------------------------------------------------------

TEST_F(AdmissionTest, R27_one_lease_a_distinct_range_in_order_of_first_use) {
  const std::uint64_t a = add(100, true), b = add(100, true), c = add(100, true);
  const std::uint64_t order[] = {b, a, c};
  std::vector<Operation> batch(1000);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    batch[i] = {rd, order[i % 3], 0, readable, 0, 1};
  }
  ASSERT_TRUE(admit_batch(batch));
  ASSERT_EQ(admitted_.leases.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(admitted_.leases[i].range, order[i]);
    EXPECT_EQ(table_.leases(order[i]), 1U);
    EXPECT_EQ(admitted_.find(order[i]), &admitted_.leases[i]);
  }
  EXPECT_EQ(admitted_.find(local_), nullptr);
  EXPECT_EQ(admitted_.operations, 1000U);
  EXPECT_EQ(remote_.lookups, 1U); // Neighbours share it.
  release_batch();
  EXPECT_EQ(table_.leases(b), 0U);
}

TEST_F(AdmissionTest, R27_a_range_that_a_batch_holds_retires_only_after_it) {
  const Operation one = {rd, local_, 0, readable, 0, 1};
  ASSERT_TRUE(admit_batch({&one, 1}));
  ASSERT_TRUE(table_.begin_retire(local_));
  table_.revoke(local_);
  EXPECT_FALSE(table_.try_erase(local_));
  release_batch();
  EXPECT_TRUE(table_.try_erase(local_));
}

TEST_F(AdmissionTest, R27_leases_are_found_among_few_and_among_many) {
  std::vector<std::uint64_t> ranges;
  std::vector<Operation> batch;
  for (std::size_t count = 1; count <= 300; ++count) {
    ranges.push_back(add(100, true));
    batch.push_back({rd, ranges.back(), 0, readable, 0, 1});
    ASSERT_TRUE(admit_batch(batch));
    ASSERT_EQ(admitted_.leases.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(admitted_.find(ranges[i]), &admitted_.leases[i]);
    }
    ASSERT_EQ(admitted_.find(read_only_), nullptr);
    release_batch();
  }
}

TEST_F(AdmissionTest, R27_random_batches_hold_exactly_the_ranges_they_name) {
  std::vector<std::uint64_t> ranges(64);
  for (std::uint64_t& range : ranges) {
    range = add(100, true);
  }
  SeededRandom random(1);
  for (int round = 0; round < 500; ++round) {
    const std::uint64_t among = 1 + random.below(ranges.size());
    std::vector<Operation> batch(random.below(200));
    std::set<std::uint64_t> named;
    for (Operation& operation : batch) {
      operation = {rd, ranges[random.below(among)], 0, readable, 0, 1};
      named.insert(operation.local_range);
    }
    ASSERT_TRUE(admit_batch(batch));
    for (const std::uint64_t range : ranges) {
      ASSERT_EQ(table_.leases(range), named.count(range));
      ASSERT_EQ(admitted_.find(range) != nullptr, named.contains(range));
    }
    release_batch();
    ASSERT_EQ(state(), State{});
  }
}

// --- Cost -------------------------------------------------------------------------------------

TEST_F(AdmissionTest, R43_the_steady_state_allocates_nothing) {
  WHERRY_SKIP_WITHOUT_ALLOCATIONS();
  std::vector<Operation> many = batch_over_new_ranges(1000);
  std::vector<Operation> few = many;
  for (std::size_t i = 0; i < few.size(); ++i) {
    few[i].local_range = many[i % 3].local_range;
  }
  for (int warm = 0; warm < 2; ++warm) {
    const std::uint64_t before = test::allocation_count();
    for (const auto* batch : {&few, &many, &few}) {
      ASSERT_TRUE(admit_batch(*batch));
      release_batch();
    }
    if (warm == 1) {
      EXPECT_EQ(test::allocation_count(), before);
    }
  }
}

// Three hundred thousand ranges searched one by one would be 45 thousand million comparisons: this
// test would not come to its end.
TEST_F(AdmissionTest, R27_a_batch_over_many_distinct_ranges_is_not_quadratic) {
  const std::vector<Operation> batch = batch_over_new_ranges(300'000);
  ASSERT_TRUE(admit_batch(batch));
  EXPECT_EQ(admitted_.leases.size(), batch.size());
  release_batch();
}

// --- Our own mistakes -------------------------------------------------------------------------

TEST_F(AdmissionDeathTest, what_is_held_is_neither_overwritten_nor_given_back_twice) {
  const Operation one = {rd, local_, 0, readable, 0, 1};
  ASSERT_TRUE(admit_batch({&one, 1}));
  EXPECT_DEATH(std::ignore = admit_batch({&one, 1}), "broken invariant");
  release_batch();
  EXPECT_DEATH(release_batch(), "broken invariant");
}

} // namespace
} // namespace wherry

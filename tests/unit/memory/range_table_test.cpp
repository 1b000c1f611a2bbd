// Ranges: every state against every call, exact charges, and the moment at which what a range holds
// is released: once, outside the mutex, and only when nothing can touch it (R13, R14, R17, R18,
// R27).
#include "memory/range_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace wherry {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::array<std::byte, 4096> memory;

RangeSpec host(std::uint64_t length_bytes = 100) {
  RangeSpec spec;
  spec.base = memory.data();
  spec.length_bytes = length_bytes;
  return spec;
}

Limits limits(std::uint32_t registrations, std::uint64_t registered_bytes) {
  Limits limits;
  limits.registrations = registrations;
  limits.registered_bytes = registered_bytes;
  return limits;
}

/// Calls something when it is destroyed: for natives and, as a shared_ptr's target, for keep_alive.
class Released final : public NativeOwner {
public:
  explicit Released(std::function<void()> then) : then_(std::move(then)) {}
  ~Released() override { then_(); }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

private:
  std::function<void()> then_;
};

class RangeTableTest : public ::testing::Test {
protected:
  std::uint64_t add(RangeSpec spec = host()) { return table_.add(std::move(spec)).value(); }
  std::uint64_t retired() {
    const std::uint64_t id = add();
    EXPECT_TRUE(table_.begin_retire(id));
    return id;
  }
  std::uint64_t revoked() {
    const std::uint64_t id = retired();
    table_.revoke(id);
    return id;
  }
  std::uint64_t erased() {
    const std::uint64_t id = revoked();
    EXPECT_TRUE(table_.try_erase(id));
    return id;
  }

  RangeTable table_{limits(10, 1000)};
};

using RangeTableDeathTest = RangeTableTest;

// --- Registering ------------------------------------------------------------------------------

TEST_F(RangeTableTest, R17_a_registered_range_says_what_it_is) {
  RangeSpec spec = host(64);
  spec.visibility = Visibility::remote_read;
  spec.native = std::make_unique<Released>([] {});
  NativeOwner* const native = spec.native.get();
  const std::uint64_t id = add(std::move(spec));
  EXPECT_NE(id, 0U);
  const auto facts = table_.facts(id);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->kind, RangeKind::host_memory);
  EXPECT_EQ(facts->length_bytes, 64U);
  EXPECT_EQ(facts->visibility, Visibility::remote_read);
  EXPECT_EQ(facts->native, native);
}

TEST_F(RangeTableTest, R17_what_cannot_be_a_range_is_refused_and_leaves_nothing) {
  const auto spec_of = [](std::byte* base, std::uint64_t length_bytes) {
    RangeSpec spec = host(length_bytes);
    spec.base = base;
    return spec;
  };
  RangeSpec not_writable = host();
  not_writable.writable = false;
  not_writable.visibility = Visibility::remote_read_write;
  RangeSpec no_such_visibility = host();
  no_such_visibility.visibility = std::bit_cast<Visibility>(std::uint8_t{3});
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  struct {
    const char* name;
    RangeSpec spec;
  } rows[] = {
      {"zero bytes", host(0)},
      {"null", spec_of(nullptr, 1)},
      {"the end wraps", spec_of(memory.data(), UINT64_MAX)},
      {"the end is one past the last address", spec_of(memory.data(), 0 - address)},
      {"read-only memory for WRITEs of peers", std::move(not_writable)},
      {"no such visibility", std::move(no_such_visibility)},
  };
  for (auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto refused = table_.add(std::move(row.spec));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(table_.counters().registrations, 0U);
    EXPECT_EQ(table_.counters().registered_bytes, 0U);
  }
}

TEST_F(RangeTableTest, R17_a_file_range_has_a_length_and_no_address) {
  RangeSpec spec;
  spec.kind = RangeKind::file;
  spec.length_bytes = 7;
  const std::uint64_t id = add(std::move(spec));
  EXPECT_EQ(table_.facts(id)->kind, RangeKind::file);
  EXPECT_EQ(table_.lease(id, Access::read)->base, nullptr);
  table_.release(id);
}

TEST_F(RangeTableTest, R17_an_empty_file_is_a_range_of_zero_bytes) {
  RangeSpec spec;
  spec.kind = RangeKind::file;
  const std::uint64_t id = add(std::move(spec));
  EXPECT_EQ(table_.facts(id)->length_bytes, 0U);
  EXPECT_EQ(table_.counters().registrations, 1U);
  EXPECT_EQ(table_.counters().registered_bytes, 0U);
}

TEST_F(RangeTableTest, R17_the_same_memory_can_be_registered_twice_and_is_charged_twice) {
  const std::uint64_t a = add(host(60)), b = add(host(60));
  EXPECT_NE(a, b);
  EXPECT_EQ(table_.counters().registrations, 2U);
  EXPECT_EQ(table_.counters().registered_bytes, 120U);
}

// --- Budgets ----------------------------------------------------------------------------------

TEST_F(RangeTableTest, R13_the_count_budget_is_named_with_limit_use_and_request) {
  for (int i = 0; i < 10; ++i) {
    add(host(1));
  }
  const auto refused = table_.add(host(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("registrations"), HasSubstr("10 of 10")));
  EXPECT_EQ(table_.counters().registered_bytes, 10U);
  EXPECT_EQ(table_.counters().refusals, 1U);
}

TEST_F(RangeTableTest, R13_the_byte_budget_is_named_and_the_count_given_back) {
  add(host(990));
  const auto refused = table_.add(host(11));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("registered bytes"), HasSubstr("11"), HasSubstr("990 of 1000")));
  EXPECT_EQ(table_.counters().registrations, 1U);
  EXPECT_EQ(table_.counters().registered_bytes, 990U);
  EXPECT_TRUE(table_.add(host(10))); // To the last byte.
}

TEST_F(RangeTableTest, R13_a_refused_registration_releases_what_it_was_given_outside_the_mutex) {
  add(host(1000));
  RangeSpec spec = host(1);
  std::uint64_t seen = 0;
  spec.native = std::make_unique<Released>([&] { seen = table_.counters().registrations; });
  EXPECT_FALSE(table_.add(std::move(spec)));
  spec = {};
  EXPECT_EQ(seen, 1U);
}

TEST_F(RangeTableTest, R13_budgets_move_at_run_time_but_not_below_use_and_both_or_neither) {
  add(host(100));
  add(host(100));
  const auto below_count = table_.set_budget(1, 5000);
  ASSERT_FALSE(below_count);
  EXPECT_EQ(below_count.error().code, ErrorCode::invalid_argument);
  const auto below_bytes = table_.set_budget(2, 199);
  ASSERT_FALSE(below_bytes);
  EXPECT_THAT(below_bytes.error().message, HasSubstr("registered bytes"));
  EXPECT_TRUE(table_.add(host(1))); // The count of 10 is still the old one.

  ASSERT_TRUE(table_.set_budget(3, 201));
  EXPECT_THAT(table_.add(host(1)).error().message, HasSubstr("3 of 3"));
  ASSERT_TRUE(table_.set_budget(4, 202));
  EXPECT_TRUE(table_.add(host(1)));
}

TEST_F(RangeTableTest, R14_a_full_table_evicts_nothing) {
  const std::uint64_t first = add(host(1000));
  EXPECT_FALSE(table_.add(host(1)));
  EXPECT_TRUE(table_.facts(first));
  EXPECT_TRUE(table_.lease(first, Access::read));
  table_.release(first);
}

// --- Every state, every call ------------------------------------------------------------------

TEST_F(RangeTableTest, R18_each_call_in_each_state) {
  const struct {
    const char* name;
    std::uint64_t id;
    bool facts, lease, lease_for_peer, begin_retire;
  } rows[] = {
      {"live", add(), true, true, true, true},
      {"retiring", retired(), false, false, true, true},
      {"revoked", revoked(), false, false, false, true},
      {"erased", erased(), false, false, false, false},
      {"never was", 0, false, false, false, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto facts = table_.facts(row.id);
    EXPECT_EQ(facts.has_value(), row.facts);
    EXPECT_TRUE(facts || facts.error().code == ErrorCode::invalid_argument);

    const auto lease = table_.lease(row.id, Access::write);
    EXPECT_EQ(lease.has_value(), row.lease);
    EXPECT_TRUE(lease || lease.error().code == ErrorCode::invalid_argument);

    const auto peer = table_.lease_for_peer(row.id);
    EXPECT_EQ(peer.has_value(), row.lease_for_peer);
    EXPECT_TRUE(peer || peer.error().code == ErrorCode::range_withdrawn);

    EXPECT_EQ(table_.leases(row.id), (lease ? 1U : 0U) + (peer ? 1U : 0U));
    EXPECT_EQ(table_.peer_leases(row.id), peer ? 1U : 0U);
    if (lease) {
      table_.release(row.id);
    }
    if (peer) {
      table_.release_for_peer(row.id);
    }
    EXPECT_EQ(table_.leases(row.id), 0U);
    const auto retire = table_.begin_retire(row.id);
    EXPECT_EQ(retire.has_value(), row.begin_retire);
    EXPECT_TRUE(retire || retire.error().code == ErrorCode::invalid_argument);
    table_.revoke(row.id);
    table_.revoke(row.id);
    EXPECT_TRUE(table_.try_erase(row.id));
    EXPECT_TRUE(table_.try_erase(row.id));
  }
  EXPECT_EQ(table_.counters().registrations, 0U);
  EXPECT_EQ(table_.counters().registered_bytes, 0U);
  EXPECT_EQ(table_.counters().leases, 0U);
}

TEST_F(RangeTableTest, R27_a_lease_says_where_the_bytes_are) {
  RangeSpec spec = host(64);
  spec.native = std::make_unique<Released>([] {});
  NativeOwner* const native = spec.native.get();
  const std::uint64_t id = add(std::move(spec));
  for (const auto& lease : {table_.lease(id, Access::write), table_.lease_for_peer(id)}) {
    ASSERT_TRUE(lease);
    EXPECT_EQ(lease->range, id);
    EXPECT_EQ(lease->base, memory.data());
    EXPECT_EQ(lease->length_bytes, 64U);
    EXPECT_EQ(lease->native, native);
    EXPECT_TRUE(lease->writable);
  }
  EXPECT_EQ(table_.counters().leases, 2U);
  table_.release(id);
  table_.release_for_peer(id);
  EXPECT_EQ(table_.counters().leases, 0U);
}

TEST_F(RangeTableTest, R27_what_is_not_writable_is_leased_for_reading_only) {
  RangeSpec spec = host();
  spec.writable = false;
  const std::uint64_t id = add(std::move(spec));
  const auto refused = table_.lease(id, Access::write);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(refused.error().message, HasSubstr("not writable"));
  const auto lease = table_.lease(id, Access::read);
  ASSERT_TRUE(lease);
  EXPECT_FALSE(lease->writable);
  table_.release(id);
}

TEST_F(RangeTableTest, R18_a_range_is_erased_only_after_its_last_lease) {
  const std::uint64_t id = add();
  ASSERT_TRUE(table_.lease(id, Access::read));
  ASSERT_TRUE(table_.lease_for_peer(id));
  ASSERT_TRUE(table_.begin_retire(id));
  table_.revoke(id);
  EXPECT_FALSE(table_.try_erase(id));
  table_.release(id);
  EXPECT_FALSE(table_.try_erase(id));
  EXPECT_EQ(table_.counters().registrations, 1U);
  table_.release_for_peer(id);
  EXPECT_EQ(table_.counters().registrations, 1U); // The last lease ends nothing by itself.
  EXPECT_TRUE(table_.try_erase(id));
  EXPECT_EQ(table_.counters().registrations, 0U);
}

TEST_F(RangeTableTest, R18_an_old_id_does_not_find_the_range_in_its_place) {
  const std::uint64_t old = erased();
  const std::uint64_t id = add();
  EXPECT_EQ(id_slot(old), id_slot(id));
  EXPECT_FALSE(table_.facts(old));
  EXPECT_FALSE(table_.lease(old, Access::read));
  EXPECT_FALSE(table_.lease_for_peer(old));
  table_.revoke(old);
  EXPECT_TRUE(table_.try_erase(old));
  EXPECT_TRUE(table_.facts(id));
}

// --- What a range holds -----------------------------------------------------------------------

TEST_F(RangeTableTest, R18_natives_then_keep_alive_then_charges_are_released_once) {
  std::vector<std::string> order;
  const auto note = [&](const char* what) {
    order.push_back(what + std::to_string(table_.counters().registered_bytes));
  };
  RangeSpec spec = host(100);
  spec.native = std::make_unique<Released>([&] { note("native "); });
  spec.keep_alive = std::make_shared<Released>([&] { note("keep_alive "); });
  const std::uint64_t id = add(std::move(spec));
  ASSERT_TRUE(table_.lease(id, Access::read));
  ASSERT_TRUE(table_.begin_retire(id));
  table_.revoke(id);
  EXPECT_FALSE(table_.try_erase(id));
  EXPECT_THAT(order, ElementsAre());
  table_.release(id);
  EXPECT_TRUE(table_.try_erase(id));
  EXPECT_TRUE(table_.try_erase(id));
  EXPECT_THAT(order, ElementsAre("native 100", "keep_alive 100"));
  EXPECT_EQ(table_.counters().registered_bytes, 0U);
}

TEST_F(RangeTableTest, R18_a_keep_alive_that_calls_back_neither_deadlocks_nor_sees_the_range) {
  std::uint64_t id = 0;
  std::uint64_t other = 0;
  bool saw_range = false, said_gone = true;
  RangeSpec spec = host(100);
  spec.keep_alive = std::make_shared<Released>([&] {
    saw_range = table_.facts(id) || table_.lease(id, Access::read) || table_.lease_for_peer(id);
    // Not yet: the release that runs here belongs to the end of the range.
    said_gone = table_.try_erase(id);
    other = table_.add(host(1)).value();
  });
  id = add(std::move(spec));
  ASSERT_TRUE(table_.begin_retire(id));
  table_.revoke(id);
  EXPECT_TRUE(table_.try_erase(id));
  EXPECT_FALSE(saw_range);
  EXPECT_FALSE(said_gone);
  EXPECT_TRUE(table_.facts(other));
  EXPECT_EQ(table_.counters().registrations, 1U);
}

TEST(RangeTableEnd, R18_what_is_left_is_released_once_with_the_table) {
  std::vector<std::string> order;
  {
    RangeTable table(limits(10, 1000));
    for (const char* name : {"a", "b"}) {
      RangeSpec spec = host();
      spec.native = std::make_unique<Released>(
          [&order, name] { order.push_back(name + std::string(" native")); });
      spec.keep_alive = std::make_shared<Released>([&order, &table, name] {
        order.push_back(name + std::string(" keep_alive"));
        EXPECT_GT(table.counters().registrations, 0U); // A late call back finds a table.
      });
      ASSERT_TRUE(table.add(std::move(spec)));
    }
  }
  EXPECT_THAT(order, ElementsAre("a native", "a keep_alive", "b native", "b keep_alive"));
}

// --- Threads ----------------------------------------------------------------------------------

TEST(RangeTableThreads, R18_leases_of_many_threads_and_one_retirement) {
  for (int round = 0; round < 50; ++round) {
    RangeTable table(limits(10, 1000));
    std::atomic<int> released = 0;
    std::atomic<bool> held_after_release = false;
    RangeSpec spec = host();
    spec.keep_alive = std::make_shared<Released>([&] { ++released; });
    const std::uint64_t id = table.add(std::move(spec)).value();

    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        while (true) {
          const auto lease = i == 0 ? table.lease(id, Access::read) : table.lease_for_peer(id);
          if (!lease) {
            return;
          }
          held_after_release = held_after_release || released > 0;
          i == 0 ? table.release(id) : table.release_for_peer(id);
        }
      });
    }
    // Two threads retire the same range: both are told only after all is gone.
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] {
        std::ignore = table.begin_retire(id);
        table.revoke(id);
        while (!table.try_erase(id)) {
          std::this_thread::yield();
        }
        EXPECT_EQ(released, 1);
      });
    }
    threads.clear();
    EXPECT_EQ(released, 1);
    EXPECT_FALSE(held_after_release);
    EXPECT_EQ(table.counters().registrations, 0U);
    EXPECT_EQ(table.counters().leases, 0U);
  }
}

TEST(RangeTableThreads, R13_charges_of_many_threads_are_exact) {
  RangeTable table(limits(4, 400));
  std::atomic<std::uint64_t> granted = 0, refused = 0;
  std::vector<std::jthread> threads;
  threads.reserve(3);
  for (std::uint64_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t k = 0; k < 500; ++k) {
        const auto id = table.add(host(100 + i));
        if (!id) {
          ++refused;
          continue;
        }
        ++granted;
        EXPECT_TRUE(table.set_budget(4, 400 + k % 2));
        EXPECT_TRUE(table.begin_retire(*id));
        table.revoke(*id);
        EXPECT_TRUE(table.try_erase(*id));
      }
    });
  }
  threads.clear();
  EXPECT_EQ(granted + refused, 1500U);
  EXPECT_EQ(table.counters().refusals, refused);
  EXPECT_EQ(table.counters().registrations, 0U);
  EXPECT_EQ(table.counters().registered_bytes, 0U);
}

// --- Our own mistakes -------------------------------------------------------------------------

TEST_F(RangeTableDeathTest, a_lease_is_given_back_once_and_to_a_range_that_is_there) {
  const std::uint64_t id = add();
  EXPECT_DEATH(table_.release(id), "broken invariant");
  EXPECT_DEATH(table_.release(0), "broken invariant");
}

TEST_F(RangeTableDeathTest, a_lease_is_given_back_as_what_it_was_taken) {
  const std::uint64_t id = add();
  ASSERT_TRUE(table_.lease(id, Access::read));
  EXPECT_DEATH(table_.release_for_peer(id), "broken invariant");
  table_.release(id);
  ASSERT_TRUE(table_.lease_for_peer(id));
  EXPECT_DEATH(table_.release(id), "broken invariant");
  table_.release_for_peer(id);
}

TEST_F(RangeTableDeathTest, the_steps_of_a_retirement_are_taken_in_order) {
  const std::uint64_t id = add();
  EXPECT_DEATH(table_.revoke(id), "broken invariant");
  EXPECT_DEATH(table_.try_erase(id), "broken invariant");
  ASSERT_TRUE(table_.begin_retire(id));
  EXPECT_DEATH(table_.try_erase(id), "broken invariant");
}

TEST_F(RangeTableDeathTest, bytes_that_are_leased_are_not_freed_with_the_table) {
  const auto drop_with_lease = [] {
    RangeTable table(limits(10, 1000));
    std::ignore = table.lease(table.add(host()).value(), Access::read);
  };
  EXPECT_DEATH(drop_with_lease(), "broken invariant");
}

} // namespace
} // namespace wherry

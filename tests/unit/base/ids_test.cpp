// Slot and generation: an id finds its value or nothing, never another value.
#include "base/ids.h"
#include "base/random.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <vector>

namespace wherry {
namespace {

TEST(EngineId, is_32_hexadecimal_digits) {
  EngineId id;
  EXPECT_EQ(id.to_string(), std::string(32, '0'));
  id.bytes[0] = 0xab;
  id.bytes[15] = 0x0f;
  EXPECT_EQ(id.to_string(), "ab00000000000000000000000000000f");
}

TEST(SlotMap, zero_is_never_an_id_and_finds_nothing) {
  SlotMap<int> map;
  EXPECT_EQ(map.find(0), nullptr);
  const auto [id, value] = map.emplace(7);
  EXPECT_NE(id, 0U);
  EXPECT_EQ(map.find(0), nullptr);
}

TEST(SlotMap, a_stale_id_does_not_find_the_next_value_of_its_slot) {
  SlotMap<int> map;
  const auto first = map.emplace(1).first;
  ASSERT_TRUE(map.erase(first));
  const auto second = map.emplace(2).first;
  EXPECT_EQ(id_slot(first), id_slot(second));
  EXPECT_EQ(map.find(first), nullptr);
  EXPECT_FALSE(map.erase(first));
  ASSERT_NE(map.find(second), nullptr);
  EXPECT_EQ(*map.find(second), 2);
}

TEST(SlotMap, ids_out_of_a_peers_head_find_nothing) {
  SlotMap<int> map;
  const auto id = map.emplace(1).first;
  EXPECT_EQ(map.find(make_id(id_slot(id) + 1, id_generation(id))), nullptr);
  EXPECT_EQ(map.find(make_id(id_slot(id), id_generation(id) + 1)), nullptr);
  EXPECT_EQ(map.find(make_id(UINT32_MAX, 1)), nullptr);
  EXPECT_EQ(map.find(UINT64_MAX), nullptr);
}

TEST(SlotMap, R43_a_full_map_gives_no_id_until_something_is_erased) {
  SlotMap<int> map(2);
  const auto first = map.emplace(1).first;
  map.emplace(2);
  EXPECT_EQ(map.emplace(3), (std::pair<std::uint64_t, int*>{0, nullptr}));
  EXPECT_EQ(map.size(), 2U);
  map.erase(first);
  EXPECT_NE(map.emplace(3).first, 0U);
}

TEST(SlotMap, values_keep_their_address_while_it_grows) {
  SlotMap<int> map;
  int* const first = map.emplace(1).second;
  for (int i = 0; i < 1000; ++i) {
    map.emplace(i);
  }
  EXPECT_EQ(*first, 1);
}

TEST(SlotMap, takes_values_that_do_not_move_and_destroys_them_when_erased) {
  struct Pinned {
    explicit Pinned(std::shared_ptr<int> value) : kept(std::move(value)) {}
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;
    std::shared_ptr<int> kept;
  };
  auto shared = std::make_shared<int>(1);
  SlotMap<Pinned> map;
  const auto id = map.emplace(shared).first;
  EXPECT_EQ(shared.use_count(), 2);
  map.erase(id);
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(SlotMap, for_each_visits_live_values_in_slot_order_and_lets_them_be_erased) {
  SlotMap<int> map;
  std::vector<std::uint64_t> ids;
  ids.reserve(200);
  for (int i = 0; i < 200; ++i) {
    ids.push_back(map.emplace(i).first);
  }
  map.erase(ids[50]);
  std::uint32_t expected = 0;
  map.for_each([&](std::uint64_t id, int& value) {
    expected += expected == 50 ? 1 : 0;
    EXPECT_EQ(id_slot(id), expected++);
    if (value % 2 == 0) {
      map.erase(id);
    }
  });
  EXPECT_EQ(expected, 200U);
  EXPECT_EQ(map.size(), 100U);
}

TEST(SlotMap, first_from_pages_over_holes_and_ends_with_zero) {
  SlotMap<int> map;
  EXPECT_EQ(map.first_from(0), 0U);
  std::vector<std::uint64_t> ids;
  ids.reserve(200);
  for (int i = 0; i < 100; ++i) {
    ids.push_back(map.emplace(i).first);
  }
  for (std::size_t i = 0; i < 99; ++i) {
    map.erase(ids[i]);
  }
  EXPECT_EQ(map.first_from(0), ids[99]);
  EXPECT_EQ(map.first_from(99), ids[99]);
  EXPECT_EQ(map.first_from(100), 0U);
  EXPECT_EQ(map.first_from(UINT32_MAX), 0U);
}

// A long random history against a model: live ids find their value, dead ones nothing, none
// repeats, and the map knows which it gave.
TEST(SlotMap, agrees_with_a_map_over_a_random_history) {
  SeededRandom random(3);
  SlotMap<std::uint64_t> map(100);
  std::map<std::uint64_t, std::uint64_t> model;
  std::set<std::uint64_t> ever;
  for (int step = 0; step < 20'000; ++step) {
    if (random.one_in(2) && !model.empty()) {
      auto victim = model.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random.below(model.size())));
      ASSERT_TRUE(map.erase(victim->first));
      ASSERT_EQ(map.find(victim->first), nullptr);
      model.erase(victim);
    } else {
      const std::uint64_t value = random.next();
      const auto id = map.emplace(value).first;
      ASSERT_EQ(id == 0, model.size() == 100);
      if (id != 0) {
        ASSERT_TRUE(ever.insert(id).second);
        model[id] = value;
      }
    }
    ASSERT_EQ(map.size(), model.size());
  }
  for (const auto& [id, value] : model) {
    ASSERT_NE(map.find(id), nullptr);
    EXPECT_EQ(*map.find(id), value);
  }
  for (std::uint32_t slot = 0; slot < 200; ++slot) {
    for (std::uint32_t generation = 0; generation < 300; ++generation) {
      const std::uint64_t id = make_id(slot, generation);
      ASSERT_EQ(map.was_issued(id), ever.contains(id)) << slot << ' ' << generation;
    }
    EXPECT_FALSE(map.was_issued(make_id(slot, UINT32_MAX)));
  }
}

} // namespace
} // namespace wherry

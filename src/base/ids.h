// Ids are slot and generation in 64 bits: a late completion, a stale handle or a peer's old
// reference finds nothing, instead of the wrong thing. Engines are named by 128 random bits.
#pragma once

#include "base/assert.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wherry {

/// Random 128 bits.
struct EngineId {
  std::array<std::uint8_t, 16> bytes{};
  bool operator==(const EngineId&) const = default;
  std::string to_string() const; ///< 32 hexadecimal digits.
};

constexpr std::uint64_t make_id(std::uint32_t slot, std::uint32_t generation) {
  return (std::uint64_t{generation} << 32) | slot;
}
constexpr std::uint32_t id_slot(std::uint64_t id) {
  return static_cast<std::uint32_t>(id);
}
constexpr std::uint32_t id_generation(std::uint64_t id) {
  return static_cast<std::uint32_t>(id >> 32);
}

/// Values at stable addresses, found by id. 0 is never an id. Erased slots are used again with the
/// next generation; a slot whose generations are used up is not used again. Not thread-safe.
/// Allocates in chunks, only when it grows.
template <class T>
class SlotMap {
public:
  explicit SlotMap(std::uint32_t slots_max = UINT32_MAX) : slots_max_(slots_max) {}

  /// Null and id 0 when full.
  template <class... Args>
  std::pair<std::uint64_t, T*> emplace(Args&&... args) {
    std::uint32_t index = 0;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else {
      if (slots_used_ == slots_max_) {
        return {0, nullptr};
      }
      if (slots_used_ == chunks_.size() * chunk_slots) {
        chunks_.push_back(std::make_unique<Slot[]>(chunk_slots));
      }
      index = slots_used_++;
    }
    Slot& slot = at(index);
    slot.value.emplace(std::forward<Args>(args)...);
    ++size_;
    return {make_id(index, slot.generation), &*slot.value};
  }

  T* find(std::uint64_t id) {
    const std::uint32_t index = id_slot(id);
    if (index >= slots_used_) {
      return nullptr;
    }
    Slot& slot = at(index);
    return slot.generation == id_generation(id) && slot.value ? &*slot.value : nullptr;
  }
  const T* find(std::uint64_t id) const { return const_cast<SlotMap*>(this)->find(id); }

  /// Whether emplace() ever gave this id, erased since or not.
  bool was_issued(std::uint64_t id) const {
    const std::uint32_t generation = id_generation(id);
    if (id_slot(id) >= slots_used_ || generation == 0) {
      return false;
    }
    // Generation 0: the slot is used up, all others were given.
    const Slot& slot = at(id_slot(id));
    return slot.generation == 0 || generation < slot.generation ||
           (generation == slot.generation && slot.value);
  }

  bool erase(std::uint64_t id) {
    if (find(id) == nullptr) {
      return false;
    }
    Slot& slot = at(id_slot(id));
    slot.value.reset();
    --size_;
    if (++slot.generation != 0) {
      free_.push_back(id_slot(id));
    }
    return true;
  }

  /// Calls f(id, value) in slot order; f may erase the value it is given, and insert none.
  template <class F>
  void for_each(F&& f) {
    for (std::uint32_t i = 0; i < slots_used_; ++i) {
      Slot& slot = at(i);
      if (slot.value) {
        f(make_id(i, slot.generation), *slot.value);
      }
    }
  }

  /// The first live id whose slot is at or after `slot`; 0 when there is none. For paging.
  std::uint64_t first_from(std::uint32_t slot) const {
    for (std::uint32_t i = slot; i < slots_used_; ++i) {
      const Slot& s = at(i);
      if (s.value) {
        return make_id(i, s.generation);
      }
    }
    return 0;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

private:
  struct Slot {
    std::uint32_t generation = 1;
    std::optional<T> value;
  };
  static constexpr std::size_t chunk_slots = 64;

  Slot& at(std::uint32_t index) { return chunks_[index / chunk_slots][index % chunk_slots]; }
  const Slot& at(std::uint32_t index) const {
    return chunks_[index / chunk_slots][index % chunk_slots];
  }

  std::vector<std::unique_ptr<Slot[]>> chunks_;
  std::vector<std::uint32_t> free_;
  std::uint32_t slots_used_ = 0;
  std::uint32_t slots_max_;
  std::size_t size_ = 0;
};

} // namespace wherry

// A fixed ring: first in, first out, with indexed access. Allocates once.
#pragma once

#include "base/assert.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace wherry {

template <class T>
class Ring {
public:
  /// `capacity` is a power of two.
  explicit Ring(std::size_t capacity) : slots_(capacity) {
    WHERRY_ASSERT((capacity & (capacity - 1)) == 0);
  }

  std::size_t size() const { return tail_ - head_; }
  bool empty() const { return head_ == tail_; }
  std::size_t room() const { return slots_.size() - size(); }

  /// A slot at the end, holding what was last in it.
  T& push() {
    WHERRY_ASSERT(room() > 0);
    return slots_[tail_++ & (slots_.size() - 1)];
  }
  T& push(T value) {
    T& slot = push();
    slot = std::move(value);
    return slot;
  }
  void pop() {
    WHERRY_ASSERT(!empty());
    ++head_;
  }
  T& front() { return (*this)[0]; }
  /// The `index`th from the front.
  T& operator[](std::size_t index) {
    WHERRY_ASSERT(index < size());
    return slots_[(head_ + index) & (slots_.size() - 1)];
  }
  const T& operator[](std::size_t index) const { return const_cast<Ring&>(*this)[index]; }

private:
  std::vector<T> slots_;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

} // namespace wherry

// The randomness seam. Ids, epochs and session keys come from here; nothing else may ask the
// kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry {

/// Fills bytes. Thread-safe. Cannot fail: the real one asserts that the kernel answers.
class Random {
public:
  virtual ~Random() = default;
  virtual void fill(std::span<std::byte> out) = 0;

  std::uint64_t u64() {
    std::uint64_t value = 0;
    fill(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
};

/// xoshiro256** seeded by splitmix64 (public domain algorithms by Blackman and Vigna): the same
/// seed gives the same bytes everywhere. For simulations and tests; not thread-safe.
class SeededRandom final : public Random {
public:
  explicit SeededRandom(std::uint64_t seed);
  void fill(std::span<std::byte> out) override;
  /// Uniform in [0, bound); bound > 0. Without floating point.
  std::uint64_t below(std::uint64_t bound);
  /// True once in `n` on average.
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  std::uint64_t next();

private:
  std::uint64_t state_[4];
};

} // namespace wherry

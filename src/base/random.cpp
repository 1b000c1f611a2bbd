// The seeded generator. Owns its state; one thread at a time. Bytes are produced in little-endian
// order, so that a seed means the same on every machine.
#include "base/random.h"

#include "base/assert.h"

#include <algorithm>
#include <bit>

namespace wherry {
namespace {

std::uint64_t splitmix64(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

} // namespace

SeededRandom::SeededRandom(std::uint64_t seed) : state_{} {
  for (std::uint64_t& word : state_) {
    word = splitmix64(seed);
  }
}

std::uint64_t SeededRandom::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

void SeededRandom::fill(std::span<std::byte> out) {
  while (!out.empty()) {
    std::uint64_t word = next();
    const std::size_t count = std::min<std::size_t>(out.size(), sizeof word);
    for (std::size_t i = 0; i < count; ++i, word >>= 8) {
      out[i] = static_cast<std::byte>(word & 0xff);
    }
    out = out.subspan(count);
  }
}

std::uint64_t SeededRandom::below(std::uint64_t bound) {
  WHERRY_ASSERT(bound > 0);
  // 2^64 mod bound values at the bottom would make small results likelier; they are drawn again.
  const std::uint64_t refused = (0 - bound) % bound;
  std::uint64_t value = next();
  while (value < refused) {
    value = next();
  }
  return value % bound;
}

} // namespace wherry

#include "world/pattern.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace wherry::world {
namespace {

constexpr std::size_t word_bytes = 8;
using Word = std::array<std::byte, word_bytes>;

std::uint64_t mixed(WriterId writer, std::uint64_t index) {
  std::uint64_t z = (index + (std::uint64_t{writer} << 32)) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 32)) * 0xbf58476d1ce4e5b9ULL;
  return z ^ (z >> 29);
}

Word pattern_word(WriterId writer, std::uint64_t index) {
  // In the machine's order: a pattern is only ever compared with itself.
  return std::bit_cast<Word>(mixed(writer, index));
}

} // namespace

std::byte pattern_byte(WriterId writer, std::uint64_t position) {
  return pattern_word(writer, position / word_bytes)[position % word_bytes];
}

void fill_pattern(WriterId writer, std::uint64_t position, std::span<std::byte> out) {
  while (!out.empty()) {
    if (position % word_bytes == 0) {
      const std::size_t words = out.size() / word_bytes;
      for (std::size_t i = 0; i < words; ++i) {
        const std::uint64_t word = mixed(writer, position / word_bytes + i);
        std::memcpy(out.data() + i * word_bytes, &word, word_bytes);
      }
      position += words * word_bytes;
      out = out.subspan(words * word_bytes);
      if (out.empty()) {
        return;
      }
    }
    const Word word = pattern_word(writer, position / word_bytes);
    const std::size_t skip = position % word_bytes;
    const std::size_t count = std::min(word_bytes - skip, out.size());
    std::memcpy(out.data(), word.data() + skip, count);
    position += count;
    out = out.subspan(count);
  }
}

std::size_t match_pattern(WriterId writer, std::uint64_t position,
                          std::span<const std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const Word word = pattern_word(writer, (position + done) / word_bytes);
    const std::size_t skip = (position + done) % word_bytes;
    const std::size_t count = std::min(word_bytes - skip, bytes.size() - done);
    if (std::memcmp(bytes.data() + done, word.data() + skip, count) != 0) {
      const auto pair =
          std::mismatch(word.begin() + skip, word.begin() + skip + count, bytes.data() + done);
      return done + static_cast<std::size_t>(pair.first - (word.begin() + skip));
    }
    done += count;
  }
  return done;
}

} // namespace wherry::world

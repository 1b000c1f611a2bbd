// CRC-32C: the published check values, and both forms against each other at every seam of the fast
// one.
#include "base/crc32c.h"
#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string_view>
#include <vector>

namespace wherry {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

struct Row {
  const char* name;
  std::vector<std::uint8_t> bytes;
  std::uint32_t checksum;
};

std::vector<std::uint8_t> counting(std::uint8_t first, int step) {
  std::vector<std::uint8_t> bytes(32);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(first + step * static_cast<int>(i));
  }
  return bytes;
}

TEST(Crc32c, gives_the_check_values_of_rfc_3720) {
  const std::array rows = {
      Row{"zeros", std::vector<std::uint8_t>(32, 0), 0x8a9136aa},
      Row{"ones", std::vector<std::uint8_t>(32, 0xff), 0x62a8ab43},
      Row{"up", counting(0, 1), 0x46dd794e},
      Row{"down", counting(31, -1), 0x113fdb5c},
  };
  for (const Row& row : rows) {
    const auto bytes = std::as_bytes(std::span(row.bytes));
    EXPECT_EQ(crc32c(bytes), row.checksum) << row.name;
    EXPECT_EQ(crc32c_portable(bytes), row.checksum) << row.name;
  }
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283);
}

TEST(Crc32c, of_nothing_is_its_seed) {
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(crc32c({}, 0x1234), 0x1234U);
  EXPECT_EQ(crc32c_portable({}, 0x1234), 0x1234U);
}

// Lengths around each loop's border: 8, 3 * 256, 3 * 8192 bytes; every alignment of the start.
TEST(Crc32c, both_forms_agree_at_every_length_border_and_alignment) {
  SeededRandom random(7);
  std::vector<std::byte> bytes(3 * 8192 + 3 * 256 + 64);
  random.fill(bytes);
  for (const std::size_t border : {std::size_t{8}, std::size_t{768}, std::size_t{1536},
                                   std::size_t{24576}, std::size_t{24576 + 768}}) {
    for (std::size_t length = border - 8; length <= border + 9; ++length) {
      for (std::size_t start = 0; start < 8; ++start) {
        const auto part = std::span(bytes).subspan(start, length);
        ASSERT_EQ(crc32c(part, 99), crc32c_portable(part, 99)) << length << " from " << start;
      }
    }
  }
}

TEST(Crc32c, goes_on_from_an_earlier_result_at_any_cut) {
  std::vector<std::byte> bytes(1000);
  SeededRandom(11).fill(bytes);
  const std::uint32_t whole = crc32c(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    const auto all = std::span<const std::byte>(bytes);
    ASSERT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), whole) << cut;
  }
}

TEST(Crc32c, any_single_flipped_bit_changes_it) {
  std::vector<std::byte> bytes(64, std::byte{0x5a});
  const std::uint32_t whole = crc32c(bytes);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_NE(crc32c(bytes), whole) << bit;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
}

} // namespace
} // namespace wherry

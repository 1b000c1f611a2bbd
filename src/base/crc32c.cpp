// CRC-32C. Owns constant tables; pure functions; any thread.
//
// The instruction has a latency of three cycles and a throughput of one: three independent streams
// keep it busy. Their results are joined with tables that say what a run of zero bytes does to a
// checksum (the method is Mark Adler's).
#include "base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace wherry {
namespace {

constexpr std::uint32_t polynomial = 0x82f63b78; // 0x1edc6f41 reflected

using ByteTables = std::array<std::array<std::uint32_t, 256>, 8>;

/// tables[k][b]: what byte b does to the checksum when k more bytes follow it.
constexpr ByteTables make_byte_tables() {
  ByteTables tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1) != 0 ? (crc >> 1) ^ polynomial : crc >> 1;
    }
    tables[0][b] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t before = tables[k - 1][b];
      tables[k][b] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr ByteTables byte_tables = make_byte_tables();

std::uint64_t load_little_endian(const std::byte* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  if constexpr (std::endian::native == std::endian::big) {
    word = __builtin_bswap64(word);
  }
  return word;
}

} // namespace

std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t seed) {
  std::uint32_t crc = ~seed;
  const auto& t = byte_tables;
  while (bytes.size() >= 8) {
    const std::uint64_t word = load_little_endian(bytes.data()) ^ crc;
    crc = t[7][word & 0xff] ^ t[6][(word >> 8) & 0xff] ^ t[5][(word >> 16) & 0xff] ^
          t[4][(word >> 24) & 0xff] ^ t[3][(word >> 32) & 0xff] ^ t[2][(word >> 40) & 0xff] ^
          t[1][(word >> 48) & 0xff] ^ t[0][word >> 56];
    bytes = bytes.subspan(8);
  }
  for (const std::byte byte : bytes) {
    crc = (crc >> 8) ^ t[0][(crc ^ static_cast<std::uint32_t>(byte)) & 0xff];
  }
  return ~crc;
}

#if defined(__x86_64__)

namespace {

using ZerosTable = std::array<std::array<std::uint32_t, 256>, 4>;
using Matrix = std::array<std::uint32_t, 32>; // over GF(2), one column a word

constexpr std::uint32_t times(const Matrix& matrix, std::uint32_t vector) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; vector != 0; ++i, vector >>= 1) {
    if ((vector & 1) != 0) {
      sum ^= matrix[i];
    }
  }
  return sum;
}

/// What `length_bytes` (a power of two) zero bytes do to a checksum, as four tables by byte.
constexpr ZerosTable make_zeros_table(std::size_t length_bytes) {
  Matrix step{}; // one zero bit
  step[0] = polynomial;
  for (std::size_t i = 1; i < 32; ++i) {
    step[i] = 1U << (i - 1);
  }
  for (std::size_t bits = 1; bits < length_bytes * 8; bits *= 2) {
    Matrix squared{};
    for (std::size_t i = 0; i < 32; ++i) {
      squared[i] = times(step, step[i]);
    }
    step = squared;
  }
  ZerosTable table{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    for (std::uint32_t k = 0; k < 4; ++k) {
      table[k][b] = times(step, b << (8 * k));
    }
  }
  return table;
}

constexpr std::size_t long_stream_bytes = 8192;
constexpr std::size_t short_stream_bytes = 256;
constexpr ZerosTable long_zeros = make_zeros_table(long_stream_bytes);
constexpr ZerosTable short_zeros = make_zeros_table(short_stream_bytes);

std::uint64_t append_zeros(const ZerosTable& table, std::uint64_t crc) {
  return table[0][crc & 0xff] ^ table[1][(crc >> 8) & 0xff] ^ table[2][(crc >> 16) & 0xff] ^
         table[3][(crc >> 24) & 0xff];
}

__attribute__((target("sse4.2"))) std::uint64_t three_streams(const std::byte* from,
                                                              std::size_t stream_bytes,
                                                              const ZerosTable& zeros,
                                                              std::uint64_t crc) {
  std::uint64_t second = 0;
  std::uint64_t third = 0;
  for (std::size_t i = 0; i < stream_bytes; i += 8) {
    crc = _mm_crc32_u64(crc, load_little_endian(from + i));
    second = _mm_crc32_u64(second, load_little_endian(from + i + stream_bytes));
    third = _mm_crc32_u64(third, load_little_endian(from + i + 2 * stream_bytes));
  }
  crc = append_zeros(zeros, crc) ^ second;
  return append_zeros(zeros, crc) ^ third;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(std::span<const std::byte> bytes,
                                                             std::uint32_t seed) {
  std::uint64_t crc = ~seed;
  for (; bytes.size() >= 3 * long_stream_bytes; bytes = bytes.subspan(3 * long_stream_bytes)) {
    crc = three_streams(bytes.data(), long_stream_bytes, long_zeros, crc);
  }
  for (; bytes.size() >= 3 * short_stream_bytes; bytes = bytes.subspan(3 * short_stream_bytes)) {
    crc = three_streams(bytes.data(), short_stream_bytes, short_zeros, crc);
  }
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    crc = _mm_crc32_u64(crc, load_little_endian(bytes.data()));
  }
  auto tail = static_cast<std::uint32_t>(crc);
  for (const std::byte byte : bytes) {
    tail = _mm_crc32_u8(tail, static_cast<unsigned char>(byte));
  }
  return ~tail;
}

} // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) {
  // One load and one branch: the processor was asked once, by the C run-time, at start.
  if (__builtin_cpu_supports("sse4.2")) {
    return crc32c_sse42(bytes, seed);
  }
  return crc32c_portable(bytes, seed);
}

#else

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) {
  return crc32c_portable(bytes, seed);
}

#endif

} // namespace wherry

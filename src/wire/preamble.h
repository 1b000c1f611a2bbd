// The first bytes of every connection, in clear, in both directions (R22). Pure functions.
//
// 16 bytes, little-endian; their layout never changes, so that any two versions can refuse each
// other by name:  0 magic "WHERRY\r\n"   8 version u16   10 role u8   11 security u8   12 crc32c
// u32 of 0..11
#pragma once

#include "base/error.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry::wire {

inline constexpr std::uint16_t protocol_version = 1;
inline constexpr std::size_t preamble_bytes = 16;

/// Who sends this preamble, on what kind of connection.
enum class Role : std::uint8_t {
  control_consumer = 1,
  control_owner = 2,
  lane_consumer = 3,
  lane_owner = 4
};

enum class Security : std::uint8_t { none = 0 };

struct Preamble {
  std::uint16_t version = protocol_version;
  Role role{};
  Security security = Security::none;
};

std::array<std::byte, preamble_bytes> encode(const Preamble& preamble);

/// The magic may be judged as soon as any of it is there: whether `prefix` (1 to 16 bytes) can
/// still become a preamble. A stranger is refused at its first wrong byte.
bool may_be_preamble(std::span<const std::byte> prefix);

/// The refusal of bytes that may_be_preamble turned down: says what they look like (HTTP, TLS, SSH,
/// or their hex digits). protocol_mismatch.
Error not_a_preamble(std::span<const std::byte> prefix);

/// Errors: protocol_mismatch. Not Wherry: says what the bytes look like (HTTP, TLS, SSH, other).
/// Another version: names both. Role and security are left to the caller: the codes are returned as
/// they are.
Result<Preamble> decode_preamble(std::span<const std::byte, preamble_bytes> bytes);

} // namespace wherry::wire

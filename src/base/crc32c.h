// CRC-32C (Castagnoli), as iSCSI and ext4 use it: initial value and final xor all ones, reflected.
// Uses the SSE 4.2 instruction where the processor has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry {

/// Of `bytes`; give an earlier result as `seed` to go on.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);

/// The table version, for machines without the instruction; the same values.
std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t seed = 0);

} // namespace wherry

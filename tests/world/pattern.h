// Bytes that tell who wrote them: each WRITE of a run has a number and, for every position of the
// owner's range, a byte of its own. Two writers agree at a position once in 256 by chance, so that
// a lie about a few bytes may pass once, and one about many does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry::world {

/// A WRITE operation of the run; 0 is nobody: the bytes that were there before.
using WriterId = std::uint32_t;

std::byte pattern_byte(WriterId writer, std::uint64_t position);
/// The bytes that `writer` puts at `position` and after it.
void fill_pattern(WriterId writer, std::uint64_t position, std::span<std::byte> out);
/// How many leading bytes are those of `writer`.
std::size_t match_pattern(WriterId writer, std::uint64_t position,
                          std::span<const std::byte> bytes);

} // namespace wherry::world

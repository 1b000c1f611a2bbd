// Epoch files (R20, R42): whatever a file holds, it leads to a larger epoch or is refused.
//
// An input that starts with '+' is given the checksum that a search would not find.
#include "base/assert.h"
#include "base/crc32c.h"
#include "source/source_table.h"

#include <string>

using namespace wherry;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string content(reinterpret_cast<const char*>(data), size);
  if (content.starts_with('+')) {
    content.erase(0, 1);
    content += " crc " + std::to_string(crc32c(std::as_bytes(std::span(content)))) + "\n";
  }
  SeededRandom random(1);
  const auto next = next_epoch(content, random);
  if (!next) {
    WHERRY_ASSERT(next.error().code == ErrorCode::invalid_argument);
    WHERRY_ASSERT(!content.empty());
    return 0;
  }
  WHERRY_ASSERT(next->epoch != 0 && next->epoch < std::uint64_t{1} << 53);
  if (!content.empty()) {
    // Only what we write is accepted: the number is at its fixed place.
    constexpr std::size_t head = sizeof("wherry epoch ") - 1;
    WHERRY_ASSERT(next->epoch > std::stoull(content.substr(head)));
  }
  const auto after = next_epoch(next->content, random);
  WHERRY_ASSERT(!after || after->epoch > next->epoch);
  return 0;
}

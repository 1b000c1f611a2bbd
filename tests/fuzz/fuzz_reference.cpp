// Source references from users and files (R20, R42): what parses obeys the bounds and is, written
// and parsed again, the same.
#include "base/assert.h"

#include <wherry/source.hpp>

using namespace wherry;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed = SourceReference::parse({reinterpret_cast<const char*>(data), size});
  if (!parsed) {
    WHERRY_ASSERT(parsed.error().code == ErrorCode::invalid_argument);
    WHERRY_ASSERT(!parsed.error().message.empty());
    return 0;
  }
  WHERRY_ASSERT(!parsed->name.empty() && parsed->name.size() <= 4095);
  WHERRY_ASSERT(parsed->name.find('\0') == std::string::npos);
  WHERRY_ASSERT(!parsed->host.empty() && parsed->port != 0);
  WHERRY_ASSERT(!parsed->epoch || *parsed->epoch != 0);

  const std::string text = parsed->to_string();
  const auto again = SourceReference::parse(text);
  WHERRY_ASSERT(again.has_value());
  WHERRY_ASSERT(again->host == parsed->host && again->port == parsed->port);
  WHERRY_ASSERT(again->name == parsed->name && again->epoch == parsed->epoch);
  WHERRY_ASSERT(again->to_string() == text);
  return 0;
}

// The text of an EngineId. Pure; any thread.
#include "base/ids.h"

#include "base/hex.h"

namespace wherry {

std::string EngineId::to_string() const {
  return hex_text(bytes);
}

} // namespace wherry

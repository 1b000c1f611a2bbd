// The only file that knows the commit: it alone is compiled again for a new one.
#include "version_config.h"
#include "wire/preamble.h"

#include <wherry/engine.hpp>

namespace wherry::inline v0 {

Version version() {
  return {WHERRY_VERSION, WHERRY_COMMIT, wire::protocol_version};
}

} // namespace wherry::inline v0

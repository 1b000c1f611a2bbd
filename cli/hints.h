// The way out of each kind of error, in one sentence that ends in its troubleshooting entry. Pure.
#pragma once

#include <wherry/error.hpp>

#include <string>

namespace wherry::cli {

/// "look at …; see docs/TROUBLESHOOTING.md#stale_epoch"
std::string hint_for(ErrorCode code);

} // namespace wherry::cli

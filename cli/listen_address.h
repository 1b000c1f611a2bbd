// What can be said of a listen address from its text alone. Pure.
#pragma once

#include <string_view>

namespace wherry::cli {

/// Whether HOST:PORT names this machine's loopback, which strangers cannot reach.
bool is_loopback(std::string_view listen);

} // namespace wherry::cli

// The real clock and randomness.
#pragma once

#include "base/clock.h"
#include "base/random.h"

#include <memory>

namespace wherry {

std::unique_ptr<Clock> make_system_clock();   // CLOCK_MONOTONIC
std::unique_ptr<Random> make_system_random(); // getrandom

} // namespace wherry

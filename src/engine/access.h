// Engines on other seams than the real ones, for tests and benchmarks of this repository. Not
// installed.
#pragma once

#include "engine/seams.h"

#include <wherry/engine.hpp>

#include <cstdint>

namespace wherry::inline v0 {

class EngineAccess {
public:
  static Result<TransferEngine> create(EngineOptions options, Seams seams);
  /// When progress() must be called even if nothing happens; never_ns if it need not.
  static std::uint64_t earliest_deadline_ns(TransferEngine& engine);
};

} // namespace wherry::inline v0

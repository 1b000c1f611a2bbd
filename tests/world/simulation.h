// One run of the world from one seed: a safety phase in which faults come, a liveness phase in
// which they have stopped and everything must end, and the end, at which nothing may be left.
#pragma once

#include "world/oracle.h"
#include "world/plan.h"

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace wherry::world {

struct RunOptions {
  Lie lie = Lie::none;
  std::FILE* trace = nullptr;
};

struct Verdict {
  std::optional<std::string> wrong;
  std::uint64_t trace_hash = 0;
  std::uint64_t steps = 0;
  std::uint64_t requests = 0;
  std::uint64_t simulated_ns = 0;
};

Verdict run_seed(std::uint64_t seed, const RunOptions& options = {});
/// The same with a plan of one's own.
Verdict run_plan(std::uint64_t seed, const Plan& plan, const RunOptions& options = {});

} // namespace wherry::world

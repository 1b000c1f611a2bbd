// What a seed decides before anything runs: who there is, how large things are, and which faults
// come. Each fault is left out of many runs, so that others are not drowned.
#pragma once

#include "base/random.h"
#include "world/sim_network.h"
#include "world/sim_worker.h"

#include <wherry/options.hpp>

#include <cstdint>

namespace wherry::world {

struct Plan {
  SimNetworkOptions network;
  EngineOptions publisher;
  EngineOptions consumer;
  SimWorkerOptions worker;
  std::uint32_t consumers = 1;
  std::uint32_t lanes = 2;
  std::uint64_t range_bytes = 64U << 10; ///< Of the largest range.
  bool publisher_files = false;
  bool consumer_files = false;
  std::uint32_t queue_capacity = 0; ///< 0: no completion queue.
  bool epoch_file = false;

  std::uint32_t actions = 30;
  std::uint64_t gap_max_ns = 2'000'000; ///< Between two actions of the users.

  // Faults of the network and of processes: how many of each.
  std::uint32_t cuts = 0;
  std::uint32_t delays = 0;
  std::uint32_t black_holes = 0;
  std::uint32_t partitions = 0;
  std::uint32_t stops = 0;   ///< A process gets no processor for a while.
  std::uint32_t crashes = 0; ///< Of the publisher.
  std::uint32_t consumer_crashes = 0;
  std::uint32_t bit_flips = 0; ///< Where both sides have checksums.
  std::uint32_t file_errors = 0;
  std::uint32_t file_changes = 0;
  std::uint32_t native_errors = 0; ///< Of calls on sockets.
  std::uint64_t delay_max_ns = 0;
  std::uint64_t stop_max_ns = 0;

  bool short_grace = false; ///< Cancelling may cut a lane.

  // What users do besides submitting and waiting.
  bool cancels = false;
  bool drops = false;   ///< Handles of requests.
  bool recalls = false; ///< withdraw() and retire().
  bool leaves = false;  ///< The publisher closes its engine and comes back.
  bool timeouts = false;
  bool wrong_batches = false;
  bool handles_come_and_go = false;
};

Plan draw_plan(SeededRandom& random);

} // namespace wherry::world

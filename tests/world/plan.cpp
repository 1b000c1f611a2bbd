#include "world/plan.h"

#include <chrono>

namespace wherry::world {
namespace {

using std::chrono::milliseconds;

milliseconds draw_ms(SeededRandom& random, std::uint64_t from, std::uint64_t to) {
  return milliseconds(static_cast<std::int64_t>(from + random.below(to - from + 1)));
}

EngineOptions draw_engine(SeededRandom& random) {
  EngineOptions options;
  options.tcp.payload_checksums = random.one_in(2);
  options.tcp.cancel_grace = draw_ms(random, 150, 300);
  options.tcp.peer_stall_timeout = draw_ms(random, 100, 400);
  options.tcp.connect_timeout = draw_ms(random, 50, 300);
  return options;
}

void draw_sizes(SeededRandom& random, Plan& plan) {
  // Large ranges cost time: most runs have small ones and many operations.
  switch (random.below(8)) {
  case 0:
    plan.range_bytes = (2U << 20) + 4096;
    plan.actions = 8 + static_cast<std::uint32_t>(random.below(8));
    break;
  case 1:
  case 2:
    plan.range_bytes = 600U << 10;
    plan.actions = 12 + static_cast<std::uint32_t>(random.below(20));
    break;
  default:
    plan.range_bytes = 24U << 10;
    plan.actions = 20 + static_cast<std::uint32_t>(random.below(40));
    break;
  }
}

void draw_faults(SeededRandom& random, Plan& plan) {
  const auto some = [&](std::uint64_t one_in, std::uint64_t max) {
    return random.one_in(one_in) ? static_cast<std::uint32_t>(1 + random.below(max)) : 0;
  };
  plan.cuts = some(3, 4);
  plan.delays = some(3, 3);
  plan.black_holes = some(6, 2);
  plan.partitions = some(8, 2);
  plan.stops = some(6, 3);
  plan.crashes = some(3, 2);
  plan.consumer_crashes = some(6, 2);
  plan.file_errors = some(4, 6);
  plan.file_changes = some(4, 2);
  plan.native_errors = some(6, 4);
  plan.bit_flips = some(6, 4);
  if (plan.bit_flips > 0) {
    // Without, a flipped bit of payload is nobody's to see.
    plan.publisher.tcp.payload_checksums = plan.consumer.tcp.payload_checksums = true;
  }
  plan.delay_max_ns = random.one_in(2) ? 20'000'000 : 800'000'000;
  plan.stop_max_ns = random.one_in(2) ? 10'000'000 : 600'000'000;
  if (random.one_in(3)) {
    plan.short_grace = true;
    plan.consumer.tcp.cancel_grace = draw_ms(random, 1, 60);
  }
  plan.cancels = random.one_in(2);
  plan.drops = random.one_in(4);
  plan.recalls = random.one_in(4);
  plan.leaves = random.one_in(10);
  plan.timeouts = random.one_in(3);
  plan.wrong_batches = random.one_in(3);
  plan.handles_come_and_go = random.one_in(3);
}

void draw_budgets(SeededRandom& random, Plan& plan) {
  if (random.one_in(3)) {
    plan.consumer.limits.requests = static_cast<std::uint32_t>(1 + random.below(5));
  }
  if (random.one_in(3)) {
    plan.consumer.limits.operations = 4 + random.below(30);
  }
  if (random.one_in(4)) {
    plan.consumer.limits.unsettled_writes = static_cast<std::uint32_t>(1 + random.below(3));
  }
  for (EngineOptions* engine : {&plan.publisher, &plan.consumer}) {
    if (random.one_in(3)) {
      engine->limits.open_files = static_cast<std::uint32_t>(1 + random.below(2));
    }
    if (random.one_in(3)) {
      engine->limits.staging_bytes = 8U << 20;
    }
  }
  if (random.one_in(3)) {
    plan.worker.queue_max = 1 + random.below(4);
  }
  if (random.one_in(2)) {
    plan.queue_capacity = static_cast<std::uint32_t>(random.one_in(2) ? 2 + random.below(8) : 256);
  }
}

} // namespace

Plan draw_plan(SeededRandom& random) {
  Plan plan;
  plan.network.in_flight_bytes_max = random.one_in(3) ? 32U << 10 : 256U << 10;
  plan.network.latency_max_ns = random.one_in(2) ? 300'000 : 2'000'000;
  plan.network.short_write_one_in = random.one_in(2) ? 4 : 0;
  plan.publisher = draw_engine(random);
  plan.consumer = draw_engine(random);
  plan.consumers = random.one_in(3) ? 2 : 1;
  plan.lanes = static_cast<std::uint32_t>(1 + random.below(3));
  draw_sizes(random, plan);
  plan.gap_max_ns = random.one_in(2) ? 1'000'000 : 20'000'000;
  plan.publisher_files = random.one_in(3);
  plan.consumer_files = random.one_in(4);
  plan.epoch_file = random.one_in(3);
  draw_faults(random, plan);
  draw_budgets(random, plan);
  return plan;
}

} // namespace wherry::world

#include "world/simulation.h"

#include "world/faults.h"
#include "world/parties.h"
#include "world/workload.h"

#include <fmt/format.h>

namespace wherry::world {
namespace {

constexpr std::uint64_t patient_ns = 60 * second;

class Simulation {
public:
  Simulation(std::uint64_t seed, const Plan& plan, const RunOptions& options)
      : plan_(plan), trace_(options.trace), world_(seed, plan.network, trace_),
        oracle_(world_, options.lie) {}

  Verdict run() {
    set_up();
    safety();
    liveness();
    end();
    return {world_.wrong(), trace_.hash(), world_.steps(), oracle_.requests().size(),
            world_.now_ns()};
  }

  bool all_closed() const { return all_closed_; }

private:
  void set_up();
  void set_up_consumer(std::uint32_t index);
  void safety();
  void liveness();
  void finish_retiring(Consumer& consumer, Consumer::Local& local);
  void at_rest();
  void end();
  void close(Process& process);

  const Plan plan_;
  Trace trace_;
  World world_;
  Oracle oracle_;
  std::unique_ptr<Publisher> publisher_;
  std::vector<std::unique_ptr<Consumer>> consumers_;
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<Faults> faults_;
  bool all_closed_ = true;
};

std::string text_of(const EngineOptions& options) {
  return fmt::format("stall {} ms, grace {} ms, connect {} ms, checksums {}, requests {}, "
                     "operations {}, unsettled {}",
                     options.tcp.peer_stall_timeout.count(), options.tcp.cancel_grace.count(),
                     options.tcp.connect_timeout.count(), options.tcp.payload_checksums,
                     options.limits.requests, options.limits.operations,
                     options.limits.unsettled_writes);
}

void Simulation::set_up() {
  trace_.tell("owner: " + text_of(plan_.publisher));
  trace_.tell("consumer: " + text_of(plan_.consumer));
  publisher_ = std::make_unique<Publisher>(world_, oracle_,
                                           world_.add_process("10.0.0.1", plan_.publisher), 7000);
  publisher_->process().worker_options = plan_.worker;
  publisher_->add_memory(plan_.range_bytes, Visibility::remote_read_write);
  publisher_->add_memory(1 + world_.random().below(200), Visibility::remote_read_write);
  publisher_->add_memory(1 + world_.random().below(plan_.range_bytes), Visibility::remote_read);
  if (plan_.publisher_files) {
    publisher_->add_file(plan_.range_bytes / 2, Visibility::remote_read_write);
    publisher_->add_file(1 + world_.random().below(9'000), Visibility::remote_read);
  }
  if (plan_.bit_flips > 0) {
    oracle_.let_bits_flip();
  }
  if (plan_.epoch_file) {
    publisher_->use_epoch_file();
  }
  publisher_->start();
  world_.on_step = [this] { oracle_.look(); };
  for (std::uint32_t i = 0; i < plan_.consumers; ++i) {
    set_up_consumer(i);
  }
  workload_ = std::make_unique<Workload>(world_, oracle_, plan_, *publisher_, consumers_);
  faults_ = std::make_unique<Faults>(world_, oracle_, plan_, *publisher_, consumers_);
}

void Simulation::set_up_consumer(std::uint32_t index) {
  Process& process = world_.add_process(fmt::format("10.0.1.{}", index + 1), plan_.consumer);
  consumers_.push_back(std::make_unique<Consumer>(world_, oracle_, process, index));
  Consumer& consumer = *consumers_.back();
  process.worker_options = plan_.worker;
  consumer.patience_ns = plan_.stops * plan_.stop_max_ns + 1 * ms;
  consumer.furnish = [this](Consumer& made) {
    made.add_memory(2 * plan_.range_bytes + 4096);
    made.add_memory(4096);
    if (plan_.consumer_files) {
      made.add_file(plan_.range_bytes + 4096);
    }
    if (plan_.queue_capacity > 0) {
      made.add_queue(plan_.queue_capacity);
    }
  };
  consumer.start();
  Consumer::Handle* handle =
      consumer.open(*publisher_, publisher_->reference(), plan_.lanes, second);
  if (handle == nullptr || !consumer.look_up(*handle, second)) {
    world_.blame("a source cannot be opened, and nothing is broken");
  }
}

void Simulation::safety() {
  oracle_.set_calm(!plan_.short_grace);
  // Faults may come a little later than the last action.
  faults_->schedule(plan_.actions * plan_.gap_max_ns / 2 + 2 * ms);
  for (std::uint32_t i = 0; i < plan_.actions && !world_.wrong(); ++i) {
    workload_->act();
    world_.run_until(world_.now_ns() + world_.random().below(plan_.gap_max_ns));
  }
}

void Simulation::liveness() {
  faults_->stop();
  const bool ended = world_.run_until(patient_ns, [this] {
    for (const RequestModel* request : oracle_.open_requests()) {
      if (!request->dropped && request->last.local_drain != LocalDrain::drained) {
        return false;
      }
    }
    for (const auto& consumer : consumers_) {
      if (counter(consumer->process(), "requests_outstanding") > 0) {
        return false;
      }
    }
    return true;
  });
  if (!ended && !world_.wrong()) {
    std::string left;
    for (const auto& process : world_.processes()) {
      left +=
          fmt::format("; {} has{}", process->host,
                      nonzero_gauges(*process, {"requests_outstanding", "operations_outstanding",
                                                "leases", "sessions", "staging_buffers"}));
    }
    for (const RequestModel* request : oracle_.open_requests()) {
      left += fmt::format("; request {}: {}", request->number, describe(request->last));
    }
    world_.blame("faults have stopped, and requests do not end" + left);
  }
  for (const auto& consumer : consumers_) {
    for (const auto& local : consumer->locals()) {
      if (local->retiring && !world_.wrong()) {
        finish_retiring(*consumer, *local);
      }
    }
  }
  for (const auto& range : publisher_->ranges()) {
    if (range->spoiled && range->published && !world_.wrong()) {
      publisher_->retire(*range, patient_ns);
    }
    if (!range->published && !world_.wrong()) {
      publisher_->republish(*range);
    }
  }
  for (const auto& consumer : consumers_) {
    for (const auto& handle : consumer->handles()) {
      if (handle->remote && !world_.wrong()) {
        workload_->probe(*consumer, *handle);
      }
    }
  }
  at_rest();
}

void Simulation::finish_retiring(Consumer& consumer, Consumer::Local& local) {
  if (!consumer.retire(local, patient_ns)) {
    return world_.blame("no request is under way, and a local range cannot retire");
  }
  consumer.renew(local);
}

void Simulation::at_rest() {
  for (const auto& consumer : consumers_) {
    for (int i = 0; i < 64; ++i) {
      consumer->poll_queues();
    }
    const std::string left =
        nonzero_gauges(consumer->process(), {"leases", "requests_outstanding",
                                             "operations_outstanding", "staging_buffers"});
    if (!left.empty()) {
      world_.blame("nothing is under way, and the consumer still holds" + left);
    }
  }
  // A peer's lease ends when its operation does; the owner may hear of that a little later.
  world_.run_until(patient_ns, [this] {
    return nonzero_gauges(publisher_->process(), {"leases", "staging_buffers"}).empty();
  });
  const std::string left = nonzero_gauges(publisher_->process(), {"leases", "staging_buffers"});
  if (!left.empty()) {
    world_.blame("nothing is under way, and the owner still holds" + left);
  }
  oracle_.expect_all_ended();
  oracle_.look_at_all_bytes();
}

void Simulation::close(Process& process) {
  auto closed = world_.block(process, patient_ns,
                             [&](Deadline deadline) { return process.engine->close(deadline); });
  if (!closed) {
    world_.blame("an engine cannot close: " + closed.error().message);
    all_closed_ = false;
    return;
  }
  const std::string left =
      nonzero_gauges(process, {"leases", "requests_outstanding", "operations_outstanding",
                               "remotes", "sources", "sessions", "handshakes", "staging_buffers"});
  if (!left.empty()) {
    world_.blame("an engine is closed, and still holds" + left);
  }
}

void Simulation::end() {
  for (const auto& consumer : consumers_) {
    for (const auto& local : consumer->locals()) {
      if (!consumer->retire(*local, patient_ns)) {
        world_.blame("no request is under way, and a local range cannot retire");
      }
    }
  }
  // The owner retires what it can while its peers are there to answer.
  for (const auto& range : publisher_->ranges()) {
    if (!world_.wrong() && world_.random().one_in(2)) {
      publisher_->retire(*range, patient_ns);
    }
  }
  const bool owner_first = world_.random().one_in(3);
  if (owner_first) {
    close(publisher_->process());
  }
  for (const auto& consumer : consumers_) {
    consumer->close_handles();
    close(consumer->process());
  }
  if (!owner_first) {
    close(publisher_->process());
  }
  oracle_.everything_is_over();
}

} // namespace

Verdict run_plan(std::uint64_t seed, const Plan& plan, const RunOptions& options) {
  auto simulation = std::make_unique<Simulation>(seed, plan, options);
  Verdict verdict = simulation->run();
  if (!simulation->all_closed()) {
    // An engine that cannot close cannot be destroyed either; the verdict matters more.
    static_cast<void>(simulation.release());
  }
  return verdict;
}

Verdict run_seed(std::uint64_t seed, const RunOptions& options) {
  SeededRandom random(seed);
  const Plan plan = draw_plan(random);
  return run_plan(random.next(), plan, options);
}

} // namespace wherry::world

// The smallest world: one publisher, one consumer, one opened source, and whatever a test does to
// them. For the tests of single faults; the seeds draw larger ones.
#pragma once

#include "world/parties.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wherry::world {

struct StageOptions {
  EngineOptions publisher{};
  EngineOptions consumer{};
  SimNetworkOptions network{.short_write_one_in = 0};
  SimWorkerOptions worker{};
  std::uint64_t file_bytes = 0; ///< Of a third range; 0: none.
  std::uint32_t lanes = 1;
  std::uint64_t range_bytes = 3U << 20;
  std::uint64_t seed = 1;
  std::FILE* trace = nullptr; ///< stdout, to see what happens in a test.
};

class Stage {
public:
  explicit Stage(const StageOptions& options = {})
      : trace(options.trace), world(options.seed, options.network, trace), oracle(world, Lie::none),
        publisher(world, oracle, world.add_process("10.0.0.1", options.publisher), 7000),
        consumer(world, oracle, world.add_process("10.0.0.2", options.consumer), 0) {
    publisher.add_memory(options.range_bytes, Visibility::remote_read_write);
    publisher.add_memory(4096, Visibility::remote_read_write);
    if (options.file_bytes > 0) {
      publisher.add_file(options.file_bytes, Visibility::remote_read);
    }
    publisher.process().worker_options = options.worker;
    publisher.start();
    world.start(consumer.process());
    world.on_step = [this] { oracle.look(); };
    consumer.add_memory(4 * options.range_bytes);
    handle = consumer.open(publisher, publisher.reference(), options.lanes, second);
    if (handle != nullptr) {
      static_cast<void>(consumer.look_up(*handle, second));
    }
  }

  OperationModel read(std::size_t range, std::uint64_t offset, std::uint64_t length) {
    return operation(OperationKind::read, range, offset, length);
  }
  OperationModel write(std::size_t range, std::uint64_t offset, std::uint64_t length) {
    OperationModel part = operation(OperationKind::write, range, offset, length);
    part.writer = oracle.new_writer();
    std::vector<std::byte> bytes(length);
    fill_pattern(part.writer, offset, bytes);
    part.local->put(part.operation.local_offset, bytes);
    return part;
  }
  template <class... Parts>
  RequestModel* submit(const SubmitOptions& options, Parts... parts) {
    std::vector<OperationModel> batch;
    (batch.push_back(std::move(parts)), ...);
    refused.reset();
    return consumer.submit(*handle, std::move(batch), options, &refused);
  }
  /// Until the request has drained; false if it does not within a minute.
  bool finish(const RequestModel& request) {
    return world.run_until(60 * second, [&] {
      return request.last.local_drain == LocalDrain::drained && request.last.outcome;
    });
  }
  /// The connections of the consumer: the control connection first, then lanes.
  std::vector<SimConnectionId> connections() {
    std::vector<SimConnectionId> ids;
    for (const SimConnectionInfo& info : world.net().connections()) {
      if (info.client_open && info.server_open) {
        ids.push_back(info.id);
      }
    }
    return ids;
  }
  /// Something broke: requests may fail.
  void break_something() { oracle.set_calm(false); }
  /// Everything closes in good order, and nothing is left. What was wrong, if anything.
  std::string end() {
    oracle.look_at_all_bytes();
    consumer.close_handles();
    for (Process* process : {&consumer.process(), &publisher.process()}) {
      auto closed = world.block(*process, 60 * second, [&](Deadline deadline) {
        return process->engine->close(deadline);
      });
      if (!closed) {
        world.blame("close: " + closed.error().message);
      }
      const std::string left =
          nonzero_gauges(*process, {"leases", "requests_outstanding", "operations_outstanding",
                                    "remotes", "sources", "sessions", "handshakes"});
      if (!left.empty()) {
        world.blame("left after close:" + left);
      }
    }
    oracle.everything_is_over();
    return world.wrong().value_or("");
  }

  Trace trace;
  World world;
  Oracle oracle;
  Publisher publisher;
  Consumer consumer;
  Consumer::Handle* handle = nullptr;
  std::optional<Error> refused;

private:
  OperationModel operation(OperationKind kind, std::size_t range, std::uint64_t offset,
                           std::uint64_t length) {
    const Consumer::Known& known = handle->known[range];
    OperationModel part;
    part.local = consumer.locals()[0]->model;
    part.range = known.model;
    part.operation = {kind,
                      consumer.locals()[0]->registration->id(),
                      *part.local->lend(length, world.random()),
                      known.range.id,
                      offset,
                      length};
    return part;
  }
};

} // namespace wherry::world

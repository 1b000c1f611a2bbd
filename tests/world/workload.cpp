#include "world/workload.h"

#include "base/assert.h"

#include <fmt/format.h>

#include <algorithm>

namespace wherry::world {
namespace {

constexpr std::uint64_t segment_bytes = 256U << 10;
constexpr std::uint64_t slice_bytes = 1U << 20;
constexpr std::uint64_t patient_ns = 60 * second;

/// Makes the operation wrong; returns why it is to be refused.
ErrorCode spoil(Operation& operation, const OperationModel& part, SeededRandom& random) {
  switch (random.below(5)) {
  case 0:
    operation.remote_offset = UINT64_MAX - random.below(operation.length_bytes + 1);
    return ErrorCode::out_of_range;
  case 1:
    operation.remote_offset = part.range->length() - operation.length_bytes + 1;
    return ErrorCode::out_of_range;
  case 2:
    operation.local_range ^= std::uint64_t{1} << 40;
    return ErrorCode::invalid_argument;
  case 3:
    operation.local_offset = part.local->length() - operation.length_bytes + 1;
    return ErrorCode::invalid_argument;
  default:
    operation.remote_range ^= std::uint64_t{1} << 40;
    return ErrorCode::not_found;
  }
}

bool contains(const std::vector<ErrorCode>& codes, ErrorCode code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

} // namespace

// --- Choices
// --------------------------------------------------------------------------------------

Consumer* Workload::any_consumer() {
  Consumer& consumer = *consumers_[world_.random().below(consumers_.size())];
  return consumer.up() ? &consumer : nullptr;
}

Consumer::Handle* Workload::any_handle(Consumer& consumer) {
  SeededRandom& random = world_.random();
  std::vector<Consumer::Handle*> usable;
  for (const auto& handle : consumer.handles()) {
    if (handle->remote && !handle->known.empty() && (!handle->was_stale || random.one_in(8))) {
      usable.push_back(handle.get());
    }
  }
  return usable.empty() ? nullptr : usable[world_.random().below(usable.size())];
}

RequestModel* Workload::any_open_request() {
  std::vector<RequestModel*> usable;
  for (RequestModel* request : oracle_.open_requests()) {
    if (request->request) {
      usable.push_back(request);
    }
  }
  return usable.empty() ? nullptr : usable[world_.random().below(usable.size())];
}

void Workload::act() {
  SeededRandom& random = world_.random();
  for (const auto& consumer : consumers_) {
    if (!random.one_in(3)) {
      consumer->poll_queues();
    }
  }
  Consumer* consumer = any_consumer();
  const std::uint64_t choice = random.below(100);
  if (choice < 8 && plan_.cancels) {
    cancel_something();
  } else if (choice >= 8 && choice < 12 && plan_.drops) {
    drop_something();
  } else if (choice >= 12 && choice < 18) {
    wait_for_something();
  } else if (choice >= 22 && choice < 28 && plan_.recalls) {
    recall_something();
  } else if (choice == 33 && plan_.leaves && publisher_.up()) {
    publisher_.leave();
    publisher_.start();
  } else if (consumer == nullptr) {
    // Its user is dead for the moment.
  } else if (choice >= 18 && choice < 22) {
    ask_something(*consumer);
  } else if (choice >= 28 && choice < 33 && plan_.handles_come_and_go) {
    open_or_close(*consumer);
  } else if (choice == 34) {
    consumer->use_up_registrations();
  } else if (choice >= 35 && choice < 37) {
    retire_local(*consumer);
  } else {
    submit_something(*consumer);
  }
}

// --- Batches
// --------------------------------------------------------------------------------------

std::uint64_t Workload::draw_length(std::uint64_t max) {
  SeededRandom& random = world_.random();
  std::uint64_t length = 0;
  switch (random.below(10)) {
  case 0:
    length = random.below(3);
    break;
  case 1:
  case 2:
    length = 1 + random.below(64);
    break;
  case 3:
    length = 16'000 + random.below(800); // about the read-ahead buffer
    break;
  case 4:
    length = segment_bytes - 2 + random.below(5);
    break;
  case 5:
    length = slice_bytes - 2 + random.below(5);
    break;
  case 6:
    length = 1 + random.below(max);
    break;
  default:
    length = 1 + random.below(6'000);
    break;
  }
  return length <= max ? length : random.below(max + 1);
}

std::optional<OperationModel> Workload::draw_operation(Consumer& consumer,
                                                       Consumer::Handle& handle) {
  SeededRandom& random = world_.random();
  const Consumer::Known& known = handle.known[random.below(handle.known.size())];
  const auto& local = consumer.locals()[random.below(consumer.locals().size())];
  const std::uint64_t max = std::min(known.range.length_bytes, local->model->length() / 2);
  const std::uint64_t length = draw_length(max);
  const auto place = local->model->lend(length, random);
  if (!place || local->retiring) {
    if (place) {
      local->model->give_back(*place);
    }
    return std::nullopt;
  }
  OperationModel part;
  part.local = local->model;
  part.range = known.model;
  const bool may_write = known.range.visibility == Visibility::remote_read_write;
  Operation& operation = part.operation;
  operation.kind = may_write && random.one_in(2) ? OperationKind::write : OperationKind::read;
  operation.local_range = local->registration->id();
  operation.local_offset = *place;
  operation.remote_range = known.range.id;
  operation.length_bytes = length;
  // Mostly near the beginning, so that WRITEs meet.
  const std::uint64_t room = known.range.length_bytes - length;
  operation.remote_offset = random.below((random.one_in(2) ? room : std::min(room, length)) + 1);
  if (operation.kind == OperationKind::write && length > 0) {
    part.writer = oracle_.new_writer();
    std::vector<std::byte> bytes(length);
    fill_pattern(part.writer, operation.remote_offset, bytes);
    local->model->put(*place, bytes);
  }
  return part;
}

std::vector<OperationModel> Workload::draw_batch(Consumer& consumer, Consumer::Handle& handle) {
  SeededRandom& random = world_.random();
  std::uint64_t count = 1 + random.below(4);
  if (random.one_in(16)) {
    count = 0;
  } else if (random.one_in(8)) {
    count = 5 + random.below(30);
  }
  std::vector<OperationModel> parts;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (auto part = draw_operation(consumer, handle)) {
      parts.push_back(std::move(*part));
    }
  }
  return parts;
}

SubmitOptions Workload::draw_options(Consumer& consumer) {
  SeededRandom& random = world_.random();
  SubmitOptions options;
  options.on_error = random.one_in(3) ? OnError::carry_on : OnError::stop;
  options.per_operation = random.one_in(2);
  options.allow_unsettled = random.one_in(4);
  if (plan_.timeouts && random.one_in(3)) {
    options.timeout = std::chrono::nanoseconds(random.below(5 * ms));
  }
  if (!consumer.queues().empty() && !random.one_in(3)) {
    options.queue = &*consumer.queues()[0]->queue;
  }
  return options;
}

Workload::Answers Workload::expect(Consumer& consumer, Consumer::Handle& handle,
                                   const std::vector<OperationModel>& parts,
                                   const SubmitOptions& options) {
  Answers answers;
  std::vector<Operation> operations;
  for (const OperationModel& part : parts) {
    operations.push_back(part.operation);
    if (part.range->frozen()) {
      answers.possible.push_back(ErrorCode::range_withdrawn);
    }
  }
  const Limits& limits = consumer.process().options.limits;
  const Oracle::Outstanding out = oracle_.outstanding(consumer.number());
  const auto budget = [&](std::uint64_t min, std::uint64_t max, std::uint64_t limit) {
    if (min > limit) {
      answers.due.push_back(ErrorCode::resource_exhausted);
    } else if (max > limit) {
      answers.possible.push_back(ErrorCode::resource_exhausted);
    }
  };
  budget(out.requests_min + 1, out.requests_max + 1, limits.requests);
  budget(out.operations_min + parts.size(), out.operations_max + parts.size(), limits.operations);
  if (options.queue != nullptr) {
    std::uint64_t entries = 2;
    for (const auto& request : oracle_.requests()) {
      if (request->admitted && request->consumer == consumer.number() &&
          request->options.queue != nullptr) {
        entries += !request->outcome_entry + !request->drain_entry;
      }
    }
    budget(entries, entries, consumer.queues()[0]->capacity);
  }
  if (!options.allow_unsettled) {
    if (oracle_.overlaps_unsettled(handle.number, operations)) {
      answers.due.push_back(ErrorCode::unsettled);
    } else if (oracle_.may_be_unsettled(handle.number)) {
      answers.possible.push_back(ErrorCode::unsettled);
    }
  }
  if (handle.was_stale) {
    answers.due.push_back(ErrorCode::stale_epoch);
  } else if (handle.remote->state() == SourceState::stale) {
    answers.due.push_back(ErrorCode::stale_epoch);
    handle.was_stale = true;
    if (handle.epoch == publisher_.epoch() && publisher_.up()) {
      world_.blame("a handle is stale, and its owner has its epoch");
    }
  }
  return answers;
}

void Workload::submit_something(Consumer& consumer) {
  Consumer::Handle* handle = any_handle(consumer);
  if (handle == nullptr) {
    return open_something(consumer);
  }
  std::vector<OperationModel> parts = draw_batch(consumer, *handle);
  const SubmitOptions options = draw_options(consumer);
  oracle_.look();
  Answers answers = expect(consumer, *handle, parts, options);
  if (plan_.wrong_batches && !parts.empty() && world_.random().one_in(6)) {
    return submit_wrong(consumer, *handle, parts, options, std::move(answers));
  }
  std::optional<Error> refused;
  consumer.submit(*handle, std::move(parts), options, &refused);
  judge(refused, answers);
}

void Workload::judge(const std::optional<Error>& refused, const Answers& answers) {
  const bool explained = refused && (contains(answers.due, refused->code) ||
                                     contains(answers.possible, refused->code));
  if (refused && !explained) {
    world_.blame(fmt::format("submit was refused without reason: {}: {}", to_string(refused->code),
                             refused->message));
  }
  if (!refused && !answers.due.empty()) {
    world_.blame(fmt::format("a batch was admitted that was to be refused as {}",
                             to_string(answers.due[0])));
  }
}

// The same with one operation made wrong: the whole batch is to be refused, and nothing stays.
void Workload::submit_wrong(Consumer& consumer, Consumer::Handle& handle,
                            const std::vector<OperationModel>& parts, const SubmitOptions& options,
                            Answers answers) {
  const auto held = {std::string_view("leases"), std::string_view("requests_outstanding"),
                     std::string_view("operations_outstanding")};
  std::vector<Operation> operations;
  operations.reserve(parts.size());
  for (const OperationModel& part : parts) {
    operations.push_back(part.operation);
  }
  const std::size_t index = world_.random().below(parts.size());
  answers.due.push_back(spoil(operations[index], parts[index], world_.random()));
  const std::string before = nonzero_gauges(consumer.process(), held);
  auto answer = handle.remote->submit(operations, options);
  judge(answer ? std::nullopt : std::optional(answer.error()), answers);
  if (before != nonzero_gauges(consumer.process(), held)) {
    world_.blame("a refused batch left something behind (R27)");
  }
  for (const OperationModel& part : parts) {
    if (part.operation.length_bytes > 0) {
      part.local->give_back(part.operation.local_offset);
    }
  }
}

// --- Other things
// ---------------------------------------------------------------------------------

void Workload::cancel_something() {
  if (RequestModel* request = any_open_request()) {
    world_.trace().note("cancel", {{"request", request->number}});
    oracle_.cancel(*request);
  }
}

void Workload::drop_something() {
  if (RequestModel* request = any_open_request()) {
    const bool run_on = world_.random().one_in(2);
    world_.trace().note("drop", {{"request", request->number}, {"run_on", run_on}});
    if (run_on) {
      request->request->detach();
    }
    oracle_.drop(*request);
  }
}

void Workload::wait_for_something() {
  RequestModel* request = any_open_request();
  if (request == nullptr) {
    return;
  }
  Process& process = consumers_[request->consumer]->process();
  const bool for_drain = world_.random().one_in(2);
  const std::uint64_t limit_ns = world_.random().below(10 * ms);
  world_.trace().note("wait", {{"request", request->number}, {"drain", for_drain}});
  const std::uint64_t begin_ns = world_.now_ns();
  request->pinned = true;
  const Report report = world_.block(process, limit_ns, [&](Deadline deadline) {
    return for_drain ? request->request->wait_drained(deadline) : request->request->wait(deadline);
  });
  request->pinned = false;
  if (world_.now_ns() > begin_ns + limit_ns) {
    world_.blame("a wait took longer than its deadline");
  }
  const bool came =
      for_drain ? report.local_drain == LocalDrain::drained : report.outcome.has_value();
  world_.trace().note("waited", {{"came", came}});
  oracle_.look();
}

void Workload::ask_something(Consumer& consumer) {
  Consumer::Handle* handle = any_handle(consumer);
  if (handle == nullptr) {
    return;
  }
  if (world_.random().one_in(2)) {
    return ask_checksum(consumer, *handle);
  }
  const auto known = consumer.look_up(*handle, patient_ns);
  if (!known && oracle_.calm()) {
    world_.blame("describe failed, and nothing happened that could be why: " +
                 known.error().message);
  }
}

void Workload::ask_checksum(Consumer& consumer, Consumer::Handle& handle) {
  SeededRandom& random = world_.random();
  const Consumer::Known known = handle.known[random.below(handle.known.size())];
  const std::uint64_t offset = random.below(known.range.length_bytes + 1);
  const std::uint64_t length = random.below(known.range.length_bytes - offset + 1);
  const auto answer = consumer.ask_checksum(handle, known, offset, length, patient_ns);
  if (!answer && oracle_.calm()) {
    world_.blame("checksum failed, and nothing happened that could be why: " +
                 answer.error().message);
  }
}

void Workload::recall_something() {
  if (!publisher_.up()) {
    return;
  }
  Publisher::Range& range = *publisher_.ranges()[world_.random().below(publisher_.ranges().size())];
  const std::uint64_t limit_ns = world_.random().one_in(2) ? 0 : world_.random().below(20 * ms);
  if (!range.published) {
    return publisher_.republish(range);
  }
  if (world_.random().one_in(2)) {
    publisher_.withdraw(range, limit_ns);
  } else {
    publisher_.retire(range, limit_ns);
  }
}

void Workload::retire_local(Consumer& consumer) {
  Consumer::Local& local = *consumer.locals()[world_.random().below(consumer.locals().size())];
  const std::uint64_t limit_ns = world_.random().one_in(2) ? 0 : world_.random().below(10 * ms);
  const bool done = consumer.retire(local, limit_ns);
  oracle_.look();
  if (!done && !oracle_.is_used(*local.model, true)) {
    world_.blame("a local range is busy, and no request uses it");
  }
  if (done && oracle_.is_used(*local.model, false)) {
    world_.blame("a local range has retired, and a request uses it");
  }
  if (done) {
    consumer.renew(local);
  }
}

void Workload::open_or_close(Consumer& consumer) {
  SeededRandom& random = world_.random();
  if (random.one_in(3)) {
    Consumer::Handle* handle = any_handle(consumer);
    if (handle != nullptr) {
      world_.trace().note("close handle", {{"handle", handle->number}});
      handle->remote.reset();
    }
    return;
  }
  open_something(consumer);
}

void Workload::open_something(Consumer& consumer) {
  SeededRandom& random = world_.random();
  SourceReference reference = publisher_.reference();
  if (random.one_in(2)) {
    reference.epoch.reset();
  }
  const auto lanes = static_cast<std::uint32_t>(1 + random.below(3));
  std::optional<Error> refused;
  const std::uint64_t limit_ns = random.one_in(3) ? random.below(10 * ms) : 200 * ms;
  const std::uint64_t begin_ns = world_.now_ns();
  Consumer::Handle* handle = consumer.open(publisher_, reference, lanes, limit_ns, &refused);
  if (world_.now_ns() > begin_ns + limit_ns) {
    world_.blame("opening a source took longer than its timeout");
  }
  if (handle == nullptr) {
    const bool hasty = refused->code == ErrorCode::timed_out && limit_ns <= 10 * ms;
    if (oracle_.calm() && !hasty) {
      world_.blame("open failed, and nothing happened that could be why: " + refused->message);
    }
    return;
  }
  static_cast<void>(consumer.look_up(*handle, patient_ns));
}

// The smallest question to the owner; nothing if no range is known.
std::vector<OperationModel> Workload::draw_probe(Consumer& consumer, Consumer::Handle& handle) {
  std::vector<OperationModel> parts;
  const bool is_current = handle.epoch == publisher_.epoch();
  for (const Consumer::Known& known : handle.known) {
    const bool usable = known.range.length_bytes > 0 && (!is_current || !known.model->frozen());
    const auto place = usable ? consumer.locals()[0]->model->lend(1, world_.random())
                              : std::optional<std::uint64_t>();
    if (!place) {
      continue;
    }
    OperationModel part;
    part.local = consumer.locals()[0]->model;
    part.range = known.model;
    part.operation.local_range = consumer.locals()[0]->registration->id();
    part.operation.local_offset = *place;
    part.operation.remote_range = known.range.id;
    part.operation.length_bytes = 1;
    parts.push_back(std::move(part));
    break;
  }
  return parts;
}

void Workload::probe(Consumer& consumer, Consumer::Handle& handle) {
  const bool is_current = handle.epoch == publisher_.epoch();
  bool completed = false;
  for (int attempt = 0; attempt < 5 && !completed; ++attempt) {
    if (handle.remote->state() == SourceState::stale) {
      break;
    }
    // It may be that a session is lost and its consumer does not know it yet; and ranges that are
    // published again have new names for the engine.
    static_cast<void>(consumer.look_up(handle, second));
    RequestModel* request = consumer.submit(handle, draw_probe(consumer, handle), {});
    if (request == nullptr) {
      request = consumer.submit(handle, {}, {}); // all that it knows was withdrawn
    }
    if (request == nullptr) {
      continue;
    }
    if (request->operations.empty()) {
      // It opens a lost session again, too, and does not wait for it.
      world_.run_until(world_.now_ns() + 500 * ms);
    }
    if (!world_.run_until(patient_ns, [&] { return request->closed; })) {
      return world_.blame("a probe after all faults does not end");
    }
    completed = request->last.completed() && !request->operations.empty();
  }
  const SourceState state = handle.remote->state();
  if (is_current && (state != SourceState::open || !completed)) {
    world_.blame(
        fmt::format("a handle of the current epoch is {} after all faults", to_string(state)));
  }
  if (!is_current && state != SourceState::stale) {
    world_.blame(
        fmt::format("a handle of an epoch that is gone is {}, not stale", to_string(state)));
  }
}

} // namespace wherry::world

// The public handles: thin, movable, each a reference to the engine's core and an id.
#include "engine/access.h"
#include "engine/core.h"
#include "os/system.h"

#include <wherry/wherry.hpp>

#include <fmt/format.h>

#include <utility>

namespace wherry::inline v0 {

// -- Operation
// -----------------------------------------------------------------------------------------

Operation Operation::read(const Registration& local, std::uint64_t local_offset,
                          const RemoteRange& remote, std::uint64_t remote_offset,
                          std::uint64_t length_bytes) {
  return {OperationKind::read, local.id(), local_offset, remote.id, remote_offset, length_bytes};
}

Operation Operation::write(const Registration& local, std::uint64_t local_offset,
                           const RemoteRange& remote, std::uint64_t remote_offset,
                           std::uint64_t length_bytes) {
  return {OperationKind::write, local.id(), local_offset, remote.id, remote_offset, length_bytes};
}

// -- Registration
// --------------------------------------------------------------------------------------

Registration::Registration(std::shared_ptr<EngineCore> core, std::uint64_t id, std::uint64_t length,
                           RangeKind kind, Visibility visibility)
    : core_(std::move(core)), id_(id), length_(length), kind_(kind), visibility_(visibility) {}
Registration::Registration(Registration&& other) noexcept = default;
Registration& Registration::operator=(Registration&& other) noexcept {
  std::swap(core_, other.core_);
  std::swap(id_, other.id_);
  std::swap(length_, other.length_);
  std::swap(kind_, other.kind_);
  std::swap(visibility_, other.visibility_);
  return *this;
}
Registration::~Registration() {
  if (core_) {
    core_->drop_registration(id_);
  }
}
Result<Retired> Registration::retire(Deadline deadline) {
  return core_->retire(id_, deadline);
}

// -- Source
// --------------------------------------------------------------------------------------------

Source::Source(std::shared_ptr<EngineCore> core, std::uint64_t id, SourceReference reference)
    : core_(std::move(core)), id_(id), reference_(std::move(reference)) {}
Source::Source(Source&& other) noexcept = default;
Source& Source::operator=(Source&& other) noexcept {
  std::swap(core_, other.core_);
  std::swap(id_, other.id_);
  std::swap(reference_, other.reference_);
  return *this;
}
Source::~Source() {
  if (core_) {
    core_->drop_source(id_);
  }
}
Result<void> Source::add(std::span<const NamedRange> ranges) {
  return core_->add_ranges(id_, ranges);
}
Result<Retired> Source::withdraw(std::string_view name, Deadline deadline) {
  return core_->withdraw(id_, name, deadline);
}

struct CompletionQueue::State : QueueState {
  State(std::shared_ptr<EngineCore> engine, std::uint32_t capacity, EventFd event)
      : QueueState(capacity, std::move(event)), core(std::move(engine)) {}
  // Requests hold the queue, and the core holds requests: the queue must not hold the core.
  std::weak_ptr<EngineCore> core;
};

// -- RemoteSource
// --------------------------------------------------------------------------------------

RemoteSource::RemoteSource(std::shared_ptr<EngineCore> core, std::uint64_t id,
                           SourceReference reference)
    : core_(std::move(core)), id_(id), reference_(std::move(reference)) {}
RemoteSource::RemoteSource(RemoteSource&& other) noexcept = default;
RemoteSource& RemoteSource::operator=(RemoteSource&& other) noexcept {
  std::swap(core_, other.core_);
  std::swap(id_, other.id_);
  std::swap(reference_, other.reference_);
  return *this;
}
RemoteSource::~RemoteSource() {
  if (core_) {
    core_->drop_remote(id_);
  }
}
SourceState RemoteSource::state() const {
  return core_->remote_state(id_);
}
std::vector<Route> RemoteSource::routes() const {
  return core_->routes(id_);
}
Result<Description> RemoteSource::describe(std::optional<std::uint64_t> page, Deadline deadline) {
  return core_->describe(id_, page, deadline);
}
Result<RemoteRange> RemoteSource::range(std::string_view name, Deadline deadline) {
  return core_->lookup(id_, name, deadline);
}
Result<Digest> RemoteSource::checksum(const RemoteRange& range, std::uint64_t offset,
                                      std::uint64_t length_bytes, Deadline deadline) {
  return core_->checksum(id_, range, offset, length_bytes, deadline);
}
Result<Request> RemoteSource::submit(std::span<const Operation> operations,
                                     const SubmitOptions& options) {
  std::shared_ptr<QueueState> queue;
  if (options.queue != nullptr) {
    queue = options.queue->state_;
    // Who waits on a queue leads the engine that made it: nobody would wake him from here.
    const auto& maker = options.queue->state_->core;
    if (maker.owner_before(core_) || core_.owner_before(maker)) {
      return fail(ErrorCode::invalid_argument,
                  "queue: the completion queue was made by another engine");
    }
  }
  auto id = core_->submit(id_, operations, options, std::move(queue));
  if (!id) {
    return tl::unexpected(std::move(id.error()));
  }
  return Request(core_, *id);
}

// -- Request
// -------------------------------------------------------------------------------------------

Request::Request(std::shared_ptr<EngineCore> core, std::uint64_t id)
    : core_(std::move(core)), id_(id) {}
Request::Request(Request&& other) noexcept = default;
Request& Request::operator=(Request&& other) noexcept {
  std::swap(core_, other.core_);
  std::swap(id_, other.id_);
  return *this;
}
Request::~Request() {
  if (core_) {
    core_->drop_request(id_, false);
  }
}
Report Request::report() const {
  return core_->report(id_);
}
Report Request::wait(Deadline deadline) {
  return core_->wait(id_, false, deadline);
}
Report Request::wait_drained(Deadline deadline) {
  return core_->wait(id_, true, deadline);
}
void Request::cancel() {
  core_->cancel(id_);
}
void Request::detach() {
  if (core_) {
    core_->drop_request(id_, true);
  }
  core_.reset();
}

// -- CompletionQueue
// -----------------------------------------------------------------------------------

CompletionQueue::CompletionQueue(std::shared_ptr<State> state) : state_(std::move(state)) {}
std::size_t CompletionQueue::poll(std::span<CompletionEntry> out) {
  const std::size_t count = state_->poll(out);
  if (count > 0 || out.empty()) {
    return count;
  }
  if (const auto core = state_->core.lock()) {
    core->help();
  }
  return state_->poll(out);
}
std::size_t CompletionQueue::wait(std::span<CompletionEntry> out, Deadline deadline) {
  if (out.empty()) {
    return 0;
  }
  const auto core = state_->core.lock();
  return core != nullptr ? core->wait_queue(*state_, out, deadline) : state_->poll(out);
}
int CompletionQueue::fd() const {
  return state_->fd();
}

// -- TransferEngine
// ------------------------------------------------------------------------------------

namespace {

tl::unexpected<Error> bad_option(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

Result<void> check(const EngineOptions& options) {
  if (options.threads > 1) {
    return bad_option("threads: 0 or 1");
  }
  if (options.tcp.lanes < 1 || options.tcp.lanes > 64) {
    return bad_option("tcp.lanes: 1 to 64");
  }
  if (options.native_workers < 1 || options.native_workers > 64) {
    return bad_option("native_workers: 1 to 64");
  }
  const auto positive = {std::pair{"tcp.cancel_grace", options.tcp.cancel_grace},
                         std::pair{"tcp.peer_stall_timeout", options.tcp.peer_stall_timeout},
                         std::pair{"tcp.connect_timeout", options.tcp.connect_timeout}};
  for (const auto& [name, value] : positive) {
    if (value.count() <= 0) {
      return bad_option(fmt::format("{}: must be more than 0 ms", name));
    }
  }
  if (options.tcp.spin.count() < 0) {
    return bad_option("tcp.spin: must not be negative");
  }
  if (options.close_timeout.count() < 0) {
    return bad_option("close_timeout: must not be negative");
  }
  const Limits& limits = options.limits;
  const auto nonzero = {std::pair{"registrations", std::uint64_t{limits.registrations}},
                        std::pair{"registered_bytes", limits.registered_bytes},
                        std::pair{"requests", std::uint64_t{limits.requests}},
                        std::pair{"operations", limits.operations},
                        std::pair{"open_files", std::uint64_t{limits.open_files}},
                        std::pair{"sessions", std::uint64_t{limits.sessions}},
                        std::pair{"handshakes", std::uint64_t{limits.handshakes}},
                        std::pair{"lanes_per_session", std::uint64_t{limits.lanes_per_session}}};
  for (const auto& [name, value] : nonzero) {
    if (value == 0) {
      return bad_option(fmt::format("limits.{}: must be at least 1", name));
    }
  }
  // A lane that loads from files needs buffers to do so while another stores into files.
  if (limits.staging_bytes < (8U << 20)) {
    return bad_option("limits.staging_bytes: at least 8 MiB");
  }
  return {};
}

Result<Seams> real_seams(const EngineOptions& options) {
  Seams seams;
  seams.clock = make_system_clock();
  seams.random = make_system_random();
  auto network = make_kernel_network();
  if (!network) {
    return fail(network.error());
  }
  seams.network = std::move(*network);
  seams.files = make_kernel_files();
  if (options.threads == 0) {
    seams.worker = make_inline_worker(4096);
  } else {
    auto worker = make_threaded_worker(options.native_workers, 4096);
    if (!worker) {
      return fail(worker.error());
    }
    seams.worker = std::move(*worker);
  }
  seams.libraries = make_system_libraries();
  return seams;
}

} // namespace

TransferEngine::TransferEngine(std::shared_ptr<EngineCore> core) : core_(std::move(core)) {}
TransferEngine::TransferEngine(TransferEngine&& other) noexcept = default;
TransferEngine& TransferEngine::operator=(TransferEngine&& other) noexcept {
  std::swap(core_, other.core_);
  return *this;
}
TransferEngine::~TransferEngine() {
  if (!core_ || core_->close_for_good()) {
    return;
  }
  // What could not be drained must not be freed: it stays until the process ends.
  static_cast<void>(new std::shared_ptr<EngineCore>(std::move(core_)));
}

Result<TransferEngine> TransferEngine::create(EngineOptions options) {
  if (auto checked = check(options); !checked) {
    return fail(checked.error());
  }
  auto seams = real_seams(options);
  if (!seams) {
    return fail(seams.error());
  }
  return EngineAccess::create(std::move(options), std::move(*seams));
}

Result<TransferEngine> EngineAccess::create(EngineOptions options, Seams seams) {
  if (auto checked = check(options); !checked) {
    return fail(checked.error());
  }
  auto core = std::make_shared<EngineCore>(std::move(options), std::move(seams));
  core->start();
  return TransferEngine(std::move(core));
}

std::uint64_t EngineAccess::earliest_deadline_ns(TransferEngine& engine) {
  return engine.core_->earliest_deadline_ns();
}

std::string TransferEngine::id() const {
  return core_->id();
}

Result<Registration> TransferEngine::register_memory(std::span<std::byte> bytes,
                                                     RegisterOptions options) {
  const Visibility visibility = options.visibility;
  auto made = core_->register_memory(bytes, std::move(options));
  if (!made) {
    return fail(made.error());
  }
  return Registration(core_, made->id, made->length_bytes, RangeKind::host_memory, visibility);
}

Result<Registration> TransferEngine::register_file(const std::string& path, FileOptions options) {
  auto made = core_->register_file(path, options);
  if (!made) {
    return fail(made.error());
  }
  return Registration(core_, made->id, made->length_bytes, RangeKind::file, options.visibility);
}

Result<Source> TransferEngine::publish(std::string_view name, const SourceOptions& options,
                                       std::span<const NamedRange> ranges) {
  auto published = core_->publish(name, options, ranges);
  if (!published) {
    return fail(published.error());
  }
  return Source(core_, published->id, std::move(published->reference));
}

Result<RemoteSource> TransferEngine::open(const SourceReference& reference,
                                          const OpenOptions& options) {
  auto opened = core_->open(reference, options);
  if (!opened) {
    return fail(opened.error());
  }
  return RemoteSource(core_, opened->id, std::move(opened->reference));
}

Result<RemoteSource> TransferEngine::open(std::string_view reference, const OpenOptions& options) {
  auto parsed = SourceReference::parse(reference);
  if (!parsed) {
    return fail(parsed.error());
  }
  return open(*parsed, options);
}

Result<CompletionQueue> TransferEngine::completion_queue(CompletionQueueOptions options) {
  if (options.capacity < 2 || options.capacity > (1U << 24)) {
    return fail(ErrorCode::invalid_argument, "capacity: 2 to 16777216 entries; a request takes 2");
  }
  auto event = EventFd::make();
  if (!event) {
    return fail(event.error());
  }
  return CompletionQueue(
      std::make_shared<CompletionQueue::State>(core_, options.capacity, std::move(*event)));
}

std::vector<PathCapability> TransferEngine::capabilities() const {
  return core_->capabilities();
}
std::vector<Counter> TransferEngine::counters() const {
  return core_->counters();
}
Result<void> TransferEngine::set_registration_budget(std::uint32_t registrations,
                                                     std::uint64_t registered_bytes) {
  return core_->set_registration_budget(registrations, registered_bytes);
}
bool TransferEngine::progress() {
  return core_->progress();
}
Result<void> TransferEngine::close(Deadline deadline) {
  return core_->close(deadline);
}

} // namespace wherry::inline v0

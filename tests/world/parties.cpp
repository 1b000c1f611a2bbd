#include "world/parties.h"

#include "base/assert.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>

namespace wherry::world {
namespace {

/// Some planted errors may come first.
Registration register_file(Process& process, const std::string& path, const FileOptions& options) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    if (auto made = process.engine->register_file(path, options)) {
      return std::move(*made);
    }
  }
  WHERRY_ASSERT(false);
}

/// Busy is an answer to somebody in a hurry: operations that are under way still use the bytes. Who
/// has time gets an end, whatever the network does.
template <class Call>
Result<Retired> call_again_if_busy(World& world, Process& process, std::uint64_t limit_ns,
                                   const Call& call) {
  auto done = world.block(process, limit_ns, call);
  if (!done && done.error().code == ErrorCode::busy) {
    world.trace().note("busy");
    return world.block(process, 60 * second, call);
  }
  return done;
}

} // namespace

// --- Publisher
// ------------------------------------------------------------------------------------

Publisher::Publisher(World& world, Oracle& oracle, Process& process, std::uint16_t port)
    : world_(world), oracle_(oracle), process_(process),
      reference_{process.host, port, "things", std::nullopt} {}

std::string Publisher::next_name() const {
  return fmt::format("r{}", ranges_.size());
}

Publisher::Range& Publisher::add_memory(std::uint64_t length, Visibility visibility) {
  auto range = std::make_unique<Range>();
  range->name = next_name();
  range->visibility = visibility;
  range->length = length;
  range->memory = std::make_shared<std::vector<std::byte>>(length);
  ranges_.push_back(std::move(range));
  return *ranges_.back();
}

Publisher::Range& Publisher::add_file(std::uint64_t length, Visibility visibility) {
  auto range = std::make_unique<Range>();
  range->name = next_name();
  range->visibility = visibility;
  range->path = fmt::format("/{}/{}", process_.host, range->name);
  range->length = length;
  ranges_.push_back(std::move(range));
  return *ranges_.back();
}

// The bytes are new to everybody: what an earlier publication held must not come back.
void Publisher::begin_model(Range& range) {
  if (range.memory != nullptr) {
    fill_pattern(oracle_.new_writer(), 0, *range.memory);
    auto memory = range.memory;
    range.model = &oracle_.new_range(process_.host + "/" + range.name,
                                     [memory] { return std::span<const std::byte>(*memory); });
    return;
  }
  if (!range.registration) {
    // A registered file is to stay as it was registered (R23).
    std::vector<std::byte> content(range.length);
    fill_pattern(oracle_.new_writer(), 0, content);
    world_.files().create(range.path, std::move(content));
  }
  SimFiles* files = &world_.files();
  range.model = &oracle_.new_range(process_.host + range.path, [files, path = range.path] {
    return std::span<const std::byte>(files->content(path));
  });
}

void Publisher::register_range(Range& range) {
  if (range.memory != nullptr) {
    RegisterOptions options;
    options.visibility = range.visibility;
    // Not the memory itself: the world looks at it longer than anybody may keep it.
    const auto kept = std::make_shared<int>(0);
    options.keep_alive = kept;
    range.kept_alive = kept;
    auto made = process_.engine->register_memory(*range.memory, options);
    WHERRY_ASSERT(made.has_value());
    range.registration.emplace(std::move(*made));
    return;
  }
  range.spoiled = false;
  FileOptions options;
  options.visibility = range.visibility;
  range.registration.emplace(register_file(process_, range.path, options));
}

void Publisher::start() {
  world_.start(process_);
  std::vector<NamedRange> named;
  for (const auto& range : ranges_) {
    begin_model(*range);
    register_range(*range);
    named.emplace_back(range->name, *range->registration);
    range->published = true;
  }
  SourceOptions options;
  options.listen = fmt::format("{}:{}", process_.host, reference_.port);
  options.epoch_file = epoch_file_;
  auto source = process_.engine->publish(reference_.name, options, named);
  if (!source) {
    return world_.blame("cannot publish: " + source.error().message);
  }
  const std::optional<std::uint64_t> before = reference_.epoch;
  reference_ = source->reference();
  if (reference_.epoch == before) {
    world_.blame("two incarnations of a source have one epoch");
  }
  if (before && !epoch_file_.empty() && reference_.epoch < before) {
    world_.blame("an epoch from a file is not larger than the last one");
  }
  for (const auto& range : ranges_) {
    models_[{epoch(), range->name}] = range->model;
  }
  source_.emplace(std::move(*source));
  world_.trace().note("publish", {{"epoch", epoch()}});
}

// The handles of an engine that has ended.
void Publisher::forget_everything() {
  for (const auto& range : ranges_) {
    if (range->model != nullptr) {
      oracle_.end_range(*range->model);
    }
    range->registration.reset();
    range->published = false;
  }
  source_.reset();
}

void Publisher::crash() {
  world_.trace().note("owner dies");
  oracle_.set_calm(false);
  world_.kill(process_);
  forget_everything();
  world_.bury(process_);
}

void Publisher::leave() {
  world_.trace().note("owner leaves");
  oracle_.set_calm(false);
  auto closed = world_.block(process_, 60 * second,
                             [&](Deadline deadline) { return process_.engine->close(deadline); });
  if (!closed) {
    world_.blame("an owner cannot close: " + closed.error().message);
  }
  forget_everything();
  world_.bury(process_);
}

void Publisher::withdraw(Range& range, std::uint64_t limit_ns) {
  ++recalls_;
  oracle_.set_calm(false); // who uses it may fail
  auto done = call_again_if_busy(world_, process_, limit_ns, [&](Deadline deadline) {
    return source_->withdraw(range.name, deadline);
  });
  world_.trace().note("withdraw", {{"ok", done.has_value()}});
  if (!done) {
    return world_.blame("withdraw: " + done.error().message);
  }
  oracle_.end_range(*range.model);
  range.published = false;
}

void Publisher::retire(Range& range, std::uint64_t limit_ns) {
  ++recalls_;
  oracle_.set_calm(false);
  if (range.memory != nullptr && range.kept_alive.expired()) {
    world_.blame("keep_alive was released before the range retired");
  }
  auto done = call_again_if_busy(world_, process_, limit_ns, [&](Deadline deadline) {
    return range.registration->retire(deadline);
  });
  world_.trace().note("retire", {{"ok", done.has_value()}});
  if (!done) {
    return world_.blame("retire: " + done.error().message);
  }
  if (!range.kept_alive.expired()) {
    world_.blame("the range has retired, and keep_alive is still held");
  }
  oracle_.end_range(*range.model);
  range.published = false;
  range.registration.reset();
}

void Publisher::republish(Range& range) {
  if (range.spoiled) {
    range.registration.reset();
  }
  begin_model(range);
  if (!range.registration) {
    register_range(range);
  }
  const NamedRange named(range.name, *range.registration);
  if (auto added = source_->add(std::span(&named, 1)); !added) {
    return world_.blame("a range cannot be published again: " + added.error().message);
  }
  range.published = true;
  models_[{epoch(), range.name}] = range.model;
  world_.trace().note("republish");
}

void Publisher::spoil(Range& range) {
  SeededRandom& random = world_.random();
  const std::uint64_t length = world_.files().content(range.path).size();
  const bool read_only = range.visibility == Visibility::remote_read;
  world_.trace().note("file changes", {{"read_only", read_only}});
  oracle_.set_calm(false);
  oracle_.end_range(*range.model);
  range.spoiled = true;
  // Of a file that peers may write to only its being too short is a change.
  if (read_only && random.one_in(2)) {
    const std::byte other{static_cast<unsigned char>(random.next())};
    world_.files().overwrite(range.path, random.below(length), std::span(&other, 1));
  } else if (read_only && random.one_in(2)) {
    world_.files().resize(range.path, length + 1);
  } else {
    world_.files().resize(range.path, random.below(length));
  }
}

RangeModel* Publisher::model(std::uint64_t epoch, const std::string& name) const {
  const auto found = models_.find({epoch, name});
  return found != models_.end() ? found->second : nullptr;
}

// --- Consumer
// -------------------------------------------------------------------------------------

Consumer::Consumer(World& world, Oracle& oracle, Process& process, std::uint32_t number)
    : world_(world), oracle_(oracle), process_(process), number_(number) {}

std::uint64_t Consumer::drain_limit_ns() const {
  const TcpConfig& tcp = process_.options.tcp;
  const auto bound =
      std::chrono::nanoseconds(tcp.cancel_grace) + std::chrono::nanoseconds(tcp.peer_stall_timeout);
  // A kernel takes fewer bytes than it is offered when its peer has not read: a sign that the peer
  // is there when more can be written. Where writes are short for no reason, it shows nothing.
  const bool signs_are_false = world_.net().options().short_write_one_in > 0;
  // And what calls into files may take.
  return static_cast<std::uint64_t>(bound.count()) + 100 * ms + (signs_are_false ? second : 0);
}

void Consumer::start() {
  world_.start(process_);
  if (furnish) {
    furnish(*this);
  }
}

void Consumer::crash() {
  world_.trace().note("consumer dies", {{"consumer", number_}});
  world_.kill(process_);
  oracle_.orphan(number_);
  handles_.clear();
  queues_.clear();
  for (auto& local : locals_) {
    local->registration.reset();
    former_locals_.push_back(std::move(local));
  }
  locals_.clear();
  world_.bury(process_);
}

void Consumer::make_memory(Local& local, std::uint64_t length) {
  local.memory = std::make_shared<std::vector<std::byte>>(length);
  fill_pattern(oracle_.new_writer(), 0, *local.memory);
  auto made = process_.engine->register_memory(*local.memory);
  WHERRY_ASSERT(made.has_value());
  local.registration.emplace(std::move(*made));
  oracle_.locals().push_back(std::make_unique<LocalModel>(
      fmt::format("local memory {} of {}", oracle_.locals().size(), process_.host), *local.memory));
  local.model = oracle_.locals().back().get();
}

void Consumer::make_file(Local& local, std::uint64_t length) {
  const std::string path = fmt::format("/{}/local{}", process_.host, oracle_.locals().size());
  std::vector<std::byte> content(length);
  fill_pattern(oracle_.new_writer(), 0, content);
  world_.files().create(path, std::move(content));
  FileOptions options;
  options.writable = true;
  local.registration.emplace(register_file(process_, path, options));
  oracle_.locals().push_back(std::make_unique<LocalModel>(path, world_.files(), path));
  local.model = oracle_.locals().back().get();
}

Consumer::Local& Consumer::add_memory(std::uint64_t length) {
  locals_.push_back(std::make_unique<Local>());
  make_memory(*locals_.back(), length);
  return *locals_.back();
}

Consumer::Local& Consumer::add_file(std::uint64_t length) {
  locals_.push_back(std::make_unique<Local>());
  make_file(*locals_.back(), length);
  return *locals_.back();
}

void Consumer::renew(Local& local) {
  // The user does with the old one what he likes; it must stay that way.
  const std::uint64_t length = local.model->length();
  if (!oracle_.is_used(*local.model, true)) {
    local.model->put(0, std::vector<std::byte>(length, std::byte{0xa5}));
  }
  auto former = std::make_unique<Local>(std::move(local));
  local = Local{};
  if (former->memory != nullptr) {
    make_memory(local, length);
  } else {
    make_file(local, length);
  }
  former->registration.reset();
  former_locals_.push_back(std::move(former));
}

Consumer::Queue& Consumer::add_queue(std::uint32_t capacity) {
  auto made = process_.engine->completion_queue({.capacity = capacity});
  WHERRY_ASSERT(made.has_value());
  auto queue = std::make_unique<Queue>();
  queue->queue.emplace(std::move(*made));
  queue->capacity = capacity;
  queues_.push_back(std::move(queue));
  return *queues_.back();
}

Consumer::Handle* Consumer::open(Publisher& publisher, const SourceReference& reference,
                                 std::uint32_t lanes, std::uint64_t limit_ns,
                                 std::optional<Error>* refused) {
  OpenOptions options;
  options.timeout = std::chrono::nanoseconds(limit_ns);
  options.lanes = lanes;
  auto remote = world_.block(process_, 2 * limit_ns,
                             [&](Deadline) { return process_.engine->open(reference, options); });
  world_.trace().note("open", {{"consumer", number_}, {"ok", remote.has_value()}});
  if (!remote) {
    world_.trace().tell("open: " + remote.error().message);
    if (refused != nullptr) {
      *refused = remote.error();
    }
    return nullptr;
  }
  if (reference.epoch && remote->reference().epoch != reference.epoch) {
    world_.blame("a source was opened under another epoch than was asked for");
  }
  auto handle = std::make_unique<Handle>();
  handle->number = (number_ << 16) + handles_made_++;
  handle->publisher = &publisher;
  handle->epoch = *remote->reference().epoch;
  handle->remote.emplace(std::move(*remote));
  handles_.push_back(std::move(handle));
  return handles_.back().get();
}

Result<void> Consumer::look_up(Handle& handle, std::uint64_t limit_ns) {
  std::optional<std::uint64_t> page;
  do {
    auto description = world_.block(process_, limit_ns, [&](Deadline deadline) {
      return handle.remote->describe(page, deadline);
    });
    world_.trace().note("describe", {{"ok", description.has_value()}});
    if (!description) {
      return tl::unexpected(description.error());
    }
    for (const RangeDescription& range : description->ranges) {
      RangeModel* model = handle.publisher->model(handle.epoch, range.name);
      if (model == nullptr || model->length() != range.range.length_bytes) {
        world_.blame("a source describes a range that it does not have under this epoch");
        continue;
      }
      std::erase_if(handle.known, [&](const Known& known) { return known.name == range.name; });
      handle.known.push_back({range.name, range.range, model});
    }
    page = description->next;
  } while (page);
  return {};
}

RequestModel* Consumer::submit(Handle& handle, std::vector<OperationModel> parts,
                               SubmitOptions options, std::optional<Error>* refused) {
  RequestModel request;
  request.consumer = number_;
  request.handle = handle.number;
  for (const OperationModel& part : parts) {
    request.operations.push_back(part.operation);
  }
  request.parts = std::move(parts);
  request.drain_limit_ns = drain_limit_ns();
  request.patience_ns = patience_ns;
  request.options = options;
  RequestModel& model = oracle_.about_to_submit(std::move(request));
  options.user_data = model.number;
  auto submitted = handle.remote->submit(model.operations, options);
  world_.trace().note("submit", {{"request", model.number},
                                 {"handle", handle.number},
                                 {"operations", model.operations.size()},
                                 {"ok", submitted.has_value()}});
  if (world_.trace().verbose()) {
    for (const OperationModel& part : model.parts) {
      const Operation& o = part.operation;
      world_.trace().tell(fmt::format("  {} {} bytes {} at {}, {} at {}, writer {}",
                                      o.kind == OperationKind::read ? "READ" : "WRITE",
                                      o.length_bytes, part.range->name(), o.remote_offset,
                                      part.local->name(), o.local_offset, part.writer));
    }
  }
  if (!submitted) {
    world_.trace().tell("refused: " + submitted.error().message);
    if (refused != nullptr) {
      *refused = submitted.error();
    }
    oracle_.is_refused(model);
    return nullptr;
  }
  oracle_.is_admitted(model, std::move(*submitted));
  return &model;
}

Result<void> Consumer::ask_checksum(Handle& handle, const Known& known, std::uint64_t offset,
                                    std::uint64_t length, std::uint64_t limit_ns) {
  const bool was_frozen = known.model->frozen();
  const Moment before = known.model->last_change();
  const bool still = !known.model->is_changing(offset, length);
  auto digest = world_.block(process_, limit_ns, [&](Deadline deadline) {
    return handle.remote->checksum(known.range, offset, length, deadline);
  });
  world_.trace().note("checksum", {{"ok", digest.has_value()}});
  if (!digest) {
    return tl::unexpected(digest.error());
  }
  if (was_frozen) {
    world_.blame("an owner computes a checksum of what nobody can reach any more");
  }
  if (still && before == known.model->last_change()) {
    const auto bytes = known.model->bytes().subspan(offset, length);
    XXH128_canonical_t due;
    XXH128_canonicalFromHash(&due, XXH3_128bits(bytes.data(), bytes.size()));
    if (!std::equal(digest->bytes.begin(), digest->bytes.end(), std::begin(due.digest))) {
      world_.blame("a checksum is not that of the bytes");
    }
  }
  return {};
}

void Consumer::use_up_registrations() {
  const auto used = static_cast<std::uint32_t>(counter(process_, "registrations"));
  const auto more = static_cast<std::uint32_t>(world_.random().below(4));
  const Limits& limits = process_.options.limits;
  if (!process_.engine->set_registration_budget(used + more, limits.registered_bytes)) {
    return world_.blame("the budget of registrations cannot be set to what is in use");
  }
  if (used > 0 && process_.engine->set_registration_budget(used - 1, limits.registered_bytes)) {
    world_.blame("the budget of registrations went below what is in use");
  }
  std::vector<std::byte> memory(64);
  std::vector<Registration> made;
  for (std::uint32_t i = 0; i <= more; ++i) {
    auto registration = process_.engine->register_memory(memory);
    if (registration.has_value() != (i < more)) {
      world_.blame("the budget of registrations is not kept");
    }
    if (registration) {
      made.push_back(std::move(*registration));
    }
  }
  world_.trace().note("registrations", {{"used", used}, {"more", more}});
  made.clear();
  static_cast<void>(
      process_.engine->set_registration_budget(limits.registrations, limits.registered_bytes));
  if (counter(process_, "registrations") > used) {
    world_.blame("registrations that were dropped are still charged");
  }
}

void Consumer::poll_queues() {
  std::array<CompletionEntry, 16> entries;
  for (const auto& queue : queues_) {
    const std::size_t count = queue->queue->poll(entries);
    for (std::size_t i = 0; i < count; ++i) {
      oracle_.entry(entries[i]);
    }
  }
}

void Consumer::close_handles() {
  for (const auto& handle : handles_) {
    handle->remote.reset();
  }
}

bool Consumer::retire(Local& local, std::uint64_t limit_ns) {
  local.retiring = true;
  auto done = world_.block(process_, limit_ns,
                           [&](Deadline deadline) { return local.registration->retire(deadline); });
  world_.trace().note("retire local", {{"ok", done.has_value()}});
  if (!done && done.error().code != ErrorCode::busy) {
    world_.blame("retire: " + done.error().message);
  }
  return done.has_value();
}

// --- Counters
// -------------------------------------------------------------------------------------

std::uint64_t counter(Process& process, std::string_view name) {
  for (const Counter& counter : process.engine->counters()) {
    if (counter.name == name) {
      return counter.value;
    }
  }
  WHERRY_ASSERT(false);
}

std::string nonzero_gauges(Process& process, std::initializer_list<std::string_view> names) {
  std::string text;
  for (const Counter& counter : process.engine->counters()) {
    if (counter.value != 0 && std::find(names.begin(), names.end(), counter.name) != names.end()) {
      text += fmt::format(" {}={}", counter.name, counter.value);
    }
  }
  return text;
}

} // namespace wherry::world

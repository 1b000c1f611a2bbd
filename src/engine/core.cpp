#include "engine/core.h"

#include "base/assert.h"
#include "base/syntax.h"
#include "os/memory_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace wherry::inline v0 {

namespace {

// After a deadline has forced a recall, its lanes end within a few turns.
constexpr std::uint64_t force_grace_ns = 100'000'000;

EngineId random_engine_id(Random& random) {
  EngineId id;
  random.fill(std::as_writable_bytes(std::span(id.bytes)));
  return id;
}

std::uint64_t ns(std::chrono::nanoseconds duration) {
  return duration.count() > 0 ? static_cast<std::uint64_t>(duration.count()) : 0;
}

// Why a path cannot be had where only `able` can serve: what is built elsewhere is not called
// unbuilt.
std::string cannot_serve(PathKind path, std::string_view what, PathKind able) {
  const bool built = path == PathKind::tcp || path == PathKind::posix;
  return fmt::format("the path {} {}; {} can be reached by: {}", to_string(path),
                     built ? fmt::format("does not reach {}", what) : "is not built", what,
                     to_string(able));
}

std::uint64_t clock_now(void* clock) {
  return static_cast<Clock*>(clock)->now_ns();
}

} // namespace

EngineCore::EngineCore(EngineOptions options, Seams seams)
    : options_(std::move(options)), seams_(std::move(seams)), log_(options_.log),
      self_(random_engine_id(*seams_.random)),
      file_cache_(*seams_.files, options_.limits.open_files), ranges_(options_.limits),
      request_budgets_(options_.limits),
      shard_(seams_, options_.limits.staging_bytes,
             static_cast<std::uint64_t>(std::chrono::nanoseconds(options_.tcp.spin).count())),
      owner_(shard_, ranges_, self_, options_.tcp, options_.limits, lane_counters_, log_),
      leader_([this] { shard_.interrupt(); }) {
  shard_.on_turn = [this](std::uint64_t now_ns) { return on_turn(now_ns); };
  shard_.next_deadline_ns = [this] {
    std::uint64_t earliest = never_ns;
    for (const auto& remote : running_remotes_) {
      earliest = std::min(earliest, remote->next_deadline_ns());
    }
    return earliest;
  };
  shard_.has_inbox = [this] { return has_inbox() || leader_.wanted() || leader_.stopping(); };
}

EngineCore::~EngineCore() {
  leader_.stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void EngineCore::start() {
  if (options_.threads > 0) {
    thread_ = std::thread([this] { run_thread(); });
  }
}

Error EngineCore::closed_error() {
  Error error;
  error.code = ErrorCode::unavailable;
  error.message = "the engine has been closed";
  return error;
}

// The clock seam counts as Deadline::Clock does; a time before its origin is long past.
std::uint64_t EngineCore::to_ns(Deadline deadline) {
  return deadline.is_never() ? never_ns : ns(deadline.when().time_since_epoch());
}

// -- leading
// -----------------------------------------------------------------------------------------

void EngineCore::run_thread() {
  while (leader_.lead_as_engine()) {
    while (!leader_.wanted() && !leader_.stopping()) {
      turn(never_ns);
    }
    leader_.give_up_as_engine();
  }
}

// One turn of the shard; whatever moved may be what a follower waits for.
bool EngineCore::turn(std::uint64_t block_until_ns) {
  const bool moved = shard_.turn(block_until_ns);
  if (moved) {
    leader_.tell_followers();
  }
  return moved;
}

void EngineCore::give_up_lead(bool attention) {
  leader_.give_up(attention && options_.threads > 0);
}

template <class F>
auto EngineCore::lead(F&& f) {
  leader_.lead_now();
  struct GiveUp {
    EngineCore& core;
    ~GiveUp() { core.give_up_lead(true); }
  } give_up{*this};
  return f();
}

void EngineCore::turn_once(std::uint64_t deadline_ns) {
  if (options_.threads == 0 && options_.on_idle) {
    // The clock may stand still until on_idle moves it: nothing here sleeps.
    if (!turn(0)) {
      options_.on_idle();
    }
    return;
  }
  turn(deadline_ns);
}

template <class Done>
bool EngineCore::wait_until(std::uint64_t deadline_ns, Done&& done) {
  for (;;) {
    if (done()) {
      return true;
    }
    if (!leader_.lead(done, deadline_ns, clock_now, seams_.clock.get())) {
      return done();
    }
    bool over = done();
    while (!over && !leader_.wanted()) {
      if (seams_.clock->now_ns() >= deadline_ns) {
        give_up_lead(true);
        return false;
      }
      turn_once(deadline_ns);
      over = done();
    }
    give_up_lead(over && (owner_.serves() || outstanding_.load(std::memory_order_relaxed) > 0));
    if (over) {
      return true;
    }
  }
}

// As wait_until, for what only the leader may look at: it is asked each time round.
template <class Done>
bool EngineCore::drive_until(std::uint64_t deadline_ns, Done&& done) {
  while (!lead(done)) {
    const std::uint64_t now_ns = seams_.clock->now_ns();
    if (now_ns >= deadline_ns) {
      return false;
    }
    lead([&] { turn_once(std::min(deadline_ns, add_ns(now_ns, 1'000'000))); });
  }
  return true;
}

bool EngineCore::progress() {
  if (!leader_.try_lead()) {
    return false;
  }
  const bool moved = turn(0);
  give_up_lead(false);
  return moved;
}

void EngineCore::help() {
  if (!leader_.try_lead()) {
    return;
  }
  turn(0);
  give_up_lead(false);
}

std::uint64_t EngineCore::earliest_deadline_ns() {
  return shard_.earliest_deadline();
}

bool EngineCore::has_inbox() {
  return inbox_.load(std::memory_order_seq_cst);
}

void EngineCore::command(UniqueFunction<void()> command) {
  {
    const std::lock_guard lock(inbox_mutex_);
    commands_.push_back(std::move(command));
    inbox_.store(true, std::memory_order_seq_cst);
  }
  shard_.notify();
}

bool EngineCore::take_inbox() {
  if (!has_inbox()) {
    return false;
  }
  std::vector<UniqueFunction<void()>> commands;
  {
    const std::lock_guard lock(inbox_mutex_);
    taking_.swap(submitted_);
    commands.swap(commands_);
    inbox_.store(false, std::memory_order_seq_cst);
  }
  for (RequestState* request : taking_) {
    const auto found = std::find_if(running_remotes_.begin(), running_remotes_.end(),
                                    [&](const auto& r) { return r->id() == request->remote; });
    if (found == running_remotes_.end()) {
      end_orphan(*request); // Submitted while the engine, or the handle, was being closed.
      continue;
    }
    (*found)->add(*request);
    if (request->cancel_asked) {
      (*found)->cancel(*request);
    }
  }
  taking_.clear();
  for (auto& command : commands) {
    command();
  }
  return true;
}

void EngineCore::end_orphan(RequestState& request) {
  const Error error = closed_error();
  {
    const std::lock_guard lock(request.mutex);
    request.ledger.end(Outcome::failed, &error);
  }
  on_request_changed(request);
}

bool EngineCore::on_turn(std::uint64_t now_ns) {
  bool moved = take_inbox();
  for (std::size_t i = 0; i < running_remotes_.size(); ++i) {
    moved |= running_remotes_[i]->turn(now_ns);
  }
  std::erase_if(running_remotes_, [&](const std::shared_ptr<Remote>& remote) {
    if (!remote->gone()) {
      return false;
    }
    const std::lock_guard lock(remotes_mutex_);
    remotes_.erase(remote->id());
    return true;
  });
  moved |= owner_.turn(now_ns);
  if (!retirements_.empty()) {
    moved |= progress_retirements();
  }
  return moved;
}

// -- registrations
// -----------------------------------------------------------------------------------

Result<EngineCore::Registered> EngineCore::register_memory(std::span<std::byte> bytes,
                                                           RegisterOptions options) {
  if (closed_) {
    return fail(closed_error());
  }
  RangeSpec spec;
  spec.base = bytes.data();
  spec.length_bytes = bytes.size();
  spec.visibility = options.visibility;
  spec.keep_alive = std::move(options.keep_alive);
  if (!bytes.empty() && bytes.data() != nullptr &&
      reinterpret_cast<std::uintptr_t>(bytes.data()) <= UINTPTR_MAX - bytes.size()) {
    // Where the kernel does not tell, a bad range shows at its first use.
    if (auto facts = probe_memory(bytes)) {
      if (!facts->readable) {
        return fail(ErrorCode::invalid_argument,
                    fmt::format("the memory at {}, {} bytes, is {}", fmt::ptr(bytes.data()),
                                bytes.size(), facts->mapped ? "not readable" : "not mapped"));
      }
      spec.writable = facts->writable;
    }
  }
  auto id = ranges_.add(std::move(spec));
  if (!id) {
    return fail(id.error());
  }
  return Registered{*id, bytes.size()};
}

Result<EngineCore::Registered> EngineCore::register_file(const std::string& path,
                                                         const FileOptions& options) {
  if (closed_) {
    return fail(closed_error());
  }
  if (options.engine != PathKind::automatic && options.engine != PathKind::posix) {
    return fail(
        ErrorCode::unavailable,
        fmt::format("{}: {}", path, cannot_serve(options.engine, "files", PathKind::posix)));
  }
  PosixFileSpec file;
  file.path = path;
  file.writable = options.writable || options.visibility == Visibility::remote_read_write;
  file.offset = options.offset;
  file.length_bytes = options.length;
  auto opened = open_posix_file(file_cache_, file);
  if (!opened) {
    return fail(opened.error());
  }
  RangeSpec spec;
  spec.kind = RangeKind::file;
  spec.length_bytes = opened->length_bytes;
  spec.visibility = options.visibility;
  spec.writable = file.writable;
  spec.native = std::move(opened->file);
  auto id = ranges_.add(std::move(spec));
  if (!id) {
    return fail(id.error());
  }
  return Registered{*id, opened->length_bytes};
}

Result<void> EngineCore::set_registration_budget(std::uint32_t registrations,
                                                 std::uint64_t registered_bytes) {
  return ranges_.set_budget(registrations, registered_bytes);
}

// R18, steps 1 and 2. The leader's.
std::shared_ptr<EngineCore::Retirement> EngineCore::begin_retirement(std::uint64_t registration) {
  for (const auto& under_way : retirements_) {
    if (under_way->registration == registration) {
      return under_way;
    }
  }
  auto retirement = std::make_shared<Retirement>();
  retirement->registration = registration;
  if (!ranges_.begin_retire(registration)) {
    retirement->over = true; // Gone already.
    return retirement;
  }
  retirement->recalls = owner_.recall_registration(registration);
  retirements_.push_back(retirement);
  return retirement;
}

bool EngineCore::progress_retirements() {
  return std::erase_if(retirements_, [&](const std::shared_ptr<Retirement>& retirement) {
           const bool revoked = std::all_of(retirement->recalls.begin(), retirement->recalls.end(),
                                            [](const auto& recall) { return recall->revoked; });
           if (!revoked) {
             return false;
           }
           ranges_.revoke(retirement->registration);
           if (!ranges_.try_erase(retirement->registration)) {
             return false;
           }
           retirement->over.store(true, std::memory_order_release);
           return true;
         }) > 0;
}

Result<Retired> EngineCore::retire(std::uint64_t registration, Deadline deadline) {
  const std::uint64_t deadline_ns = to_ns(deadline);
  const auto retirement = lead([&] {
    auto begun = begin_retirement(registration);
    progress_retirements();
    return begun;
  });
  const auto over = [&] { return retirement->over.load(std::memory_order_acquire); };
  if (!wait_until(deadline_ns, over)) {
    // Nothing to force means that only leases are waited for: the deadline is the caller's.
    const bool forced = lead([&] {
      bool any = false;
      for (const auto& recall : retirement->recalls) {
        any |= !recall->revoked;
        owner_.force(*recall);
      }
      return any;
    });
    if (forced) {
      wait_until(add_ns(seams_.clock->now_ns(), force_grace_ns), over);
    }
  }
  if (!over()) {
    return fail(ErrorCode::busy,
                fmt::format("{} leases still hold the range; its retirement goes on: call again",
                            ranges_.leases(registration)));
  }
  Retired retired;
  for (const auto& recall : retirement->recalls) {
    retired.sessions_cut += recall->cut;
  }
  return retired;
}

void EngineCore::drop_registration(std::uint64_t registration) {
  command([this, registration] {
    begin_retirement(registration);
    progress_retirements();
  });
  help();
}

// -- sources
// -----------------------------------------------------------------------------------------

Result<std::vector<RangeToPublish>>
EngineCore::ranges_to_publish(std::span<const NamedRange> ranges) const {
  std::vector<RangeToPublish> out;
  out.reserve(ranges.size());
  for (const NamedRange& range : ranges) {
    auto facts = ranges_.facts(range.registration);
    if (!facts) {
      return fail(facts.error());
    }
    RangeToPublish publish;
    publish.name = range.name;
    publish.registration = range.registration;
    publish.routes = {PathKind::tcp};
    if (facts->kind == RangeKind::file) {
      publish.version = static_cast<const PosixFile*>(facts->native)->version();
      publish.evidence = "staged posix file";
    } else {
      publish.evidence = "direct host memory";
    }
    out.push_back(std::move(publish));
  }
  return out;
}

// R20: from the file where there is one, and larger than what it held; else random.
Result<std::uint64_t> EngineCore::new_epoch(const std::string& epoch_file) {
  if (epoch_file.empty()) {
    return random_epoch(*seams_.random);
  }
  auto content = seams_.files->read_small(epoch_file, 4096);
  if (!content && content.error().code != ErrorCode::not_found) {
    return fail(content.error());
  }
  auto next = next_epoch(content ? *content : std::string(), *seams_.random);
  if (!next) {
    Error error = next.error();
    error.message = fmt::format("{}: {}", epoch_file, error.message);
    return fail(std::move(error));
  }
  if (auto replaced = seams_.files->replace_small(epoch_file, next->content); !replaced) {
    return fail(replaced.error());
  }
  return next->epoch;
}

namespace {

bool is_wildcard(const Address& address) {
  return address.host == "0.0.0.0" || address.host == "::";
}

// HOST:PORT of SourceOptions, or the error with the option's name in front.
Result<Address> option_address(std::string_view option, const std::string& text) {
  auto address = parse_address(text);
  if (address) {
    return address;
  }
  Error error = address.error();
  error.message = fmt::format("{} \"{}\": {}", option, text, error.message);
  return fail(std::move(error));
}

} // namespace

Result<EngineCore::PublishedAs> EngineCore::publish(std::string_view name,
                                                    const SourceOptions& options,
                                                    std::span<const NamedRange> ranges) {
  if (closed_) {
    return fail(closed_error());
  }
  if (name.empty() || name.size() > wire::name_bytes_max ||
      name.find('\0') != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "a source's name has 1 to 4095 bytes and no NUL");
  }
  auto listen = option_address("listen", options.listen);
  if (!listen) {
    return fail(listen.error());
  }
  std::optional<Address> advertise;
  if (!options.advertise.empty()) {
    auto parsed = option_address("advertise", options.advertise);
    if (!parsed) {
      return fail(parsed.error());
    }
    advertise = *parsed;
  } else if (is_wildcard(*listen)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("listen \"{}\" is a wildcard: say what peers shall connect to, with "
                            "advertise HOST:PORT",
                            options.listen));
  }
  auto to_publish = ranges_to_publish(ranges);
  if (!to_publish) {
    return fail(to_publish.error());
  }
  auto epoch = new_epoch(options.epoch_file);
  if (!epoch) {
    return fail(epoch.error());
  }
  auto published =
      lead([&] { return owner_.publish(std::string(name), *epoch, *listen, *to_publish); });
  if (!published) {
    return fail(published.error());
  }
  PublishedAs result;
  result.id = published->id;
  const Address at = advertise.value_or(published->bound);
  result.reference = {at.host, at.port == 0 ? published->bound.port : at.port, std::string(name),
                      *epoch};
  return result;
}

Result<void> EngineCore::add_ranges(std::uint64_t source, std::span<const NamedRange> ranges) {
  if (closed_) {
    return fail(closed_error());
  }
  auto to_publish = ranges_to_publish(ranges);
  if (!to_publish) {
    return fail(to_publish.error());
  }
  return lead([&] { return owner_.add(source, *to_publish); });
}

Result<Retired> EngineCore::withdraw(std::uint64_t source, std::string_view name,
                                     Deadline deadline) {
  const std::uint64_t deadline_ns = to_ns(deadline);
  auto begun = lead([&] { return owner_.recall_named(source, name); });
  if (!begun) {
    return fail(begun.error());
  }
  const std::shared_ptr<RecallState> recall = *begun;
  const auto over = [&] { return owner_.over(*recall); };
  if (!drive_until(deadline_ns, over)) {
    lead([&] { owner_.force(*recall); });
    if (!drive_until(add_ns(seams_.clock->now_ns(), force_grace_ns), over)) {
      return fail(ErrorCode::busy, "an operation of a peer still uses the range; call again");
    }
  }
  return Retired{recall->cut};
}

void EngineCore::drop_source(std::uint64_t source) {
  command([this, source] { owner_.close_source(source); });
  help();
}

// -- remotes
// -----------------------------------------------------------------------------------------

std::shared_ptr<Remote> EngineCore::remote(std::uint64_t id) const {
  const std::lock_guard lock(remotes_mutex_);
  const auto found = remotes_.find(id);
  return found == remotes_.end() ? nullptr : found->second;
}

Result<std::shared_ptr<Remote>> EngineCore::usable_remote(std::uint64_t id) const {
  if (closed_) {
    return fail(closed_error());
  }
  auto found = remote(id);
  if (found == nullptr) {
    return fail(ErrorCode::invalid_argument, "the source handle has been closed");
  }
  if (found->state() == SourceState::stale) {
    Error error = found->why();
    error.code = ErrorCode::stale_epoch;
    return fail(std::move(error));
  }
  return found;
}

namespace {

// A reference need not come from parse(): what it would refuse is refused here.
Result<void> check(const SourceReference& reference) {
  if (!wire::is_name(reference.name)) {
    return fail(ErrorCode::invalid_argument, "a source's name has 1 to 4095 bytes and no NUL");
  }
  const bool ipv6 = reference.host.find(':') != std::string::npos;
  if (const std::string problem = host_problem(reference.host, ipv6); !problem.empty()) {
    return fail(ErrorCode::invalid_argument, fmt::format("host: {}", problem));
  }
  if (reference.port == 0) {
    return fail(ErrorCode::invalid_argument, "port: 0 names no listener");
  }
  return {};
}

} // namespace

Result<EngineCore::Opened> EngineCore::open(const SourceReference& reference,
                                            const OpenOptions& options) {
  if (closed_) {
    return fail(closed_error());
  }
  if (options.path != PathKind::automatic && options.path != PathKind::tcp) {
    return fail(ErrorCode::unavailable, cannot_serve(options.path, "sources", PathKind::tcp));
  }
  if (auto usable = check(reference); !usable) {
    return fail(usable.error());
  }
  const std::uint32_t lanes = options.lanes.value_or(options_.tcp.lanes);
  if (lanes < 1 || lanes > 64) {
    return fail(ErrorCode::invalid_argument, "lanes: 1 to 64");
  }
  const std::uint64_t deadline_ns = add_ns(seams_.clock->now_ns(), ns(options.timeout));
  std::shared_ptr<Remote> made;
  {
    const std::lock_guard lock(remotes_mutex_);
    const std::uint64_t id = next_remote_++;
    made = std::make_shared<Remote>(shard_, *this, id, reference, lanes);
    remotes_[id] = made;
  }
  lead([&] {
    running_remotes_.push_back(made);
    made->open(deadline_ns);
  });
  wait_until(never_ns, [&] { return made->opening_over(); });
  if (made->state() == SourceState::open) {
    return Opened{made->id(), made->reference()};
  }
  Error error = made->why();
  drop_remote(made->id());
  return fail(std::move(error));
}

SourceState EngineCore::remote_state(std::uint64_t id) const {
  const auto found = remote(id);
  return found == nullptr || closed_ ? SourceState::closed : found->state();
}

std::vector<Route> EngineCore::routes(std::uint64_t id) const {
  Route route;
  route.path = PathKind::tcp;
  const auto found = remote(id);
  if (found == nullptr || closed_) {
    route.ready = {Answer::no, "the source handle has been closed"};
  } else if (found->state() != SourceState::open) {
    route.ready = {Answer::no, found->why().message};
  } else {
    route.lanes = found->ready_lanes();
    route.ready = route.lanes > 0 ? Fact{Answer::yes, {}} : Fact{Answer::no, "no lane has joined"};
  }
  return {route};
}

Result<wire::ControlMessage> EngineCore::ask(std::uint64_t id, wire::ControlMessage message,
                                             Deadline deadline) {
  auto found = usable_remote(id);
  if (!found) {
    return fail(found.error());
  }
  const std::uint64_t deadline_ns = to_ns(deadline);
  const auto answer = std::make_shared<PendingAnswer>();
  lead([&] { (*found)->ask(std::move(message), answer); });
  if (!wait_until(deadline_ns, [&] { return answer->done.load(std::memory_order_acquire); })) {
    lead([&] { (*found)->forget(answer); });
    if (!answer->done) {
      return fail(ErrorCode::timed_out, "the owner did not answer in time");
    }
  }
  if (answer->error) {
    return fail(*answer->error);
  }
  return std::move(answer->message);
}

Result<Description> EngineCore::describe(std::uint64_t id, std::optional<std::uint64_t> page,
                                         Deadline deadline) {
  auto message = ask(id, wire::DescribeRequest{0, page.value_or(0)}, deadline);
  if (!message) {
    return fail(message.error());
  }
  auto* reply = std::get_if<wire::DescribeReply>(&*message);
  if (reply == nullptr) {
    return fail(ErrorCode::protocol_mismatch, "the owner answered another question");
  }
  Description description;
  description.ranges = std::move(reply->ranges);
  if (reply->next != 0) {
    description.next = reply->next;
  }
  if (const auto found = remote(id)) {
    for (const RangeDescription& range : description.ranges) {
      found->know(range.range);
    }
  }
  return description;
}

Result<RemoteRange> EngineCore::lookup(std::uint64_t id, std::string_view name, Deadline deadline) {
  if (name.empty() || name.size() > wire::name_bytes_max ||
      name.find('\0') != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "a range's name has 1 to 4095 bytes and no NUL");
  }
  auto message = ask(id, wire::LookupRequest{0, std::string(name)}, deadline);
  if (!message) {
    Error error = message.error();
    if (error.code == ErrorCode::not_found) {
      error.message = fmt::format("the source has no range \"{}\"", name);
    }
    return fail(std::move(error));
  }
  auto* reply = std::get_if<wire::LookupReply>(&*message);
  if (reply == nullptr) {
    return fail(ErrorCode::protocol_mismatch, "the owner answered another question");
  }
  if (const auto found = remote(id)) {
    found->know(reply->range.range);
  }
  return reply->range.range;
}

Result<Digest> EngineCore::checksum(std::uint64_t id, const RemoteRange& range,
                                    std::uint64_t offset, std::uint64_t length_bytes,
                                    Deadline deadline) {
  auto message = ask(id, wire::ChecksumRequest{0, range.id, offset, length_bytes}, deadline);
  if (!message) {
    return fail(message.error());
  }
  auto* reply = std::get_if<wire::ChecksumReply>(&*message);
  if (reply == nullptr) {
    return fail(ErrorCode::protocol_mismatch, "the owner answered another question");
  }
  return reply->digest;
}

void EngineCore::drop_remote(std::uint64_t id) {
  command([this, id] {
    for (const auto& remote : running_remotes_) {
      if (remote->id() == id) {
        remote->close_when_idle();
      }
    }
  });
  help();
}

// -- requests
// ----------------------------------------------------------------------------------------

RequestState* EngineCore::new_request() {
  const std::lock_guard lock(requests_mutex_);
  if (free_requests_.empty()) {
    all_requests_.push_back(std::make_unique<RequestState>());
    free_requests_.reserve(all_requests_.size());
    free_requests_.push_back(all_requests_.back().get());
  }
  RequestState* request = free_requests_.back();
  free_requests_.pop_back();
  request->recycle();
  return request;
}

RequestState* EngineCore::find_request(std::uint64_t id) const {
  RequestState** found = requests_.find(id);
  return found == nullptr ? nullptr : *found;
}

Result<std::uint64_t> EngineCore::submit(std::uint64_t remote_id,
                                         std::span<const Operation> operations,
                                         const SubmitOptions& options,
                                         std::shared_ptr<QueueState> queue) {
  auto refused = [&](Error error) {
    request_counters_.refused.fetch_add(1, std::memory_order_relaxed);
    return fail(std::move(error));
  };
  auto found = usable_remote(remote_id);
  if (!found) {
    return refused(found.error());
  }
  if (options.path != PathKind::automatic && options.path != PathKind::tcp) {
    return refused(
        fail(ErrorCode::unavailable, cannot_serve(options.path, "this source", PathKind::tcp))
            .value());
  }
  if (queue != nullptr) {
    if (auto reserved = queue->reserve(); !reserved) {
      return refused(reserved.error());
    }
  }
  RequestState* request = new_request();
  const auto take_back = [&](Error error) {
    if (queue != nullptr) {
      queue->unreserve();
    }
    const std::lock_guard lock(requests_mutex_);
    free_requests_.push_back(request);
    return refused(std::move(error));
  };
  {
    const std::lock_guard lock((*found)->mutex());
    if (!options.allow_unsettled && (*found)->overlaps_unsettled(operations)) {
      return take_back(fail(ErrorCode::unsettled, "an earlier WRITE to these bytes ended uncertain "
                                                  "and may still change them; wait until its "
                                                  "report says remote_settled, or allow it")
                           .value());
    }
    if (auto admitted = admit(operations, ranges_, **found, request_budgets_, request->admitted);
        !admitted) {
      return take_back(admitted.error());
    }
  }
  {
    const std::lock_guard lock(requests_mutex_);
    request->id = requests_.emplace(request).first;
  }
  const std::uint64_t id = request->id;
  request->remote = remote_id;
  request->deadline_ns =
      options.timeout ? add_ns(seams_.clock->now_ns(), ns(*options.timeout)) : never_ns;
  request->user_data = options.user_data;
  request->queue = std::move(queue);
  const bool watched = request->queue != nullptr && request->queue->watched();
  LedgerOptions ledger;
  ledger.on_error = options.on_error;
  ledger.per_operation = options.per_operation;
  ledger.slice_bytes_max = wire::slice_bytes_max;
  {
    const std::lock_guard lock(request->mutex);
    request->ledger.start(operations, ledger);
  }
  outstanding_.fetch_add(1, std::memory_order_relaxed);
  request_counters_.submitted.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(inbox_mutex_);
    submitted_.push_back(request);
    inbox_.store(true, std::memory_order_seq_cst);
  }
  // Whoever can sends at once, without a hand-over to the engine's thread.
  if (leader_.try_lead()) {
    shard_.kick();
    give_up_lead(watched);
  } else {
    shard_.notify();
  }
  return id;
}

void EngineCore::on_request_changed(RequestState& request) {
  CompletionEntry entry;
  entry.user_data = request.user_data;
  bool outcome_news = false;
  bool drain_news = false;
  {
    const std::lock_guard lock(request.mutex);
    entry.outcome = *request.ledger.outcome();
    entry.local_drain = request.ledger.drained() ? LocalDrain::drained : LocalDrain::in_flight;
    outcome_news = !request.outcome_told;
    drain_news = request.ledger.drained() && !request.drain_told;
    request.outcome_told = true;
    request.drain_told = request.drain_told || drain_news;
  }
  if (outcome_news) {
    auto& counters = request_counters_;
    auto& counter = entry.outcome == Outcome::completed   ? counters.completed
                    : entry.outcome == Outcome::failed    ? counters.failed
                    : entry.outcome == Outcome::cancelled ? counters.cancelled
                                                          : counters.timed_out;
    counter.fetch_add(1, std::memory_order_relaxed);
    entry.kind = CompletionEntry::Kind::outcome;
    if (request.queue != nullptr) {
      request.queue->push(entry);
    }
    // After it: whoever has waited finds the entry, and below what was leased, given back.
    request.has_outcome.store(true, std::memory_order_release);
  }
  if (!drain_news) {
    return;
  }
  release(request.admitted, ranges_, request_budgets_);
  outstanding_.fetch_sub(1, std::memory_order_relaxed);
  entry.kind = CompletionEntry::Kind::drain;
  if (request.queue != nullptr) {
    request.queue->push(entry);
  }
  request.is_drained.store(true, std::memory_order_release);
  const std::lock_guard lock(requests_mutex_);
  request.finished = true;
  recycle_if_over(request);
}

// Under the requests mutex.
void EngineCore::recycle_if_over(RequestState& request) {
  if (!request.finished || !request.handle_gone) {
    return;
  }
  requests_.erase(request.id);
  request.queue.reset();
  free_requests_.push_back(&request);
}

void EngineCore::settle_request(std::uint64_t id) {
  const std::lock_guard lock(requests_mutex_);
  RequestState* request = find_request(id);
  if (request == nullptr) {
    return;
  }
  const std::lock_guard request_lock(request->mutex);
  if (request->ledger.drained()) {
    request->ledger.settle();
  }
}

Report EngineCore::report(std::uint64_t id) const {
  Report report;
  const std::lock_guard lock(requests_mutex_);
  const RequestState* request = find_request(id);
  WHERRY_ASSERT(request != nullptr);
  const std::lock_guard request_lock(request->mutex);
  request->ledger.report(report);
  if (!request->is_drained.load(std::memory_order_acquire)) {
    report.local_drain = LocalDrain::in_flight; // Its leases are about to be given back.
  }
  report.path = request->path;
  return report;
}

Report EngineCore::wait(std::uint64_t id, bool for_drain, Deadline deadline) {
  RequestState* request = nullptr;
  {
    const std::lock_guard lock(requests_mutex_);
    request = find_request(id);
  }
  WHERRY_ASSERT(request != nullptr);
  const auto& flag = for_drain ? request->is_drained : request->has_outcome;
  wait_until(to_ns(deadline), [&] { return flag.load(std::memory_order_acquire); });
  return report(id);
}

void EngineCore::cancel(std::uint64_t id) {
  {
    const std::lock_guard lock(requests_mutex_);
    RequestState* request = find_request(id);
    if (request == nullptr || request->is_drained || request->cancel_asked.exchange(true)) {
      return;
    }
  }
  command([this, id] {
    RequestState* request = nullptr;
    {
      const std::lock_guard lock(requests_mutex_);
      request = find_request(id);
    }
    if (request == nullptr) {
      return;
    }
    for (const auto& remote : running_remotes_) {
      if (remote->id() == request->remote) {
        remote->cancel(*request);
      }
    }
  });
  help();
}

void EngineCore::drop_request(std::uint64_t id, bool run_on) {
  if (!run_on) {
    cancel(id);
  }
  const std::lock_guard lock(requests_mutex_);
  RequestState* request = find_request(id);
  if (request == nullptr) {
    return;
  }
  request->handle_gone = true;
  recycle_if_over(*request);
}

std::size_t EngineCore::wait_queue(QueueState& queue, std::span<CompletionEntry> out,
                                   Deadline deadline) {
  const std::uint64_t deadline_ns = to_ns(deadline);
  std::size_t count = 0;
  wait_until(deadline_ns, [&] {
    if (count == 0) {
      count = queue.poll(out);
    }
    return count > 0;
  });
  return count;
}

// -- closing
// -----------------------------------------------------------------------------------------

Result<void> EngineCore::close(Deadline deadline) {
  closed_ = true;
  const std::uint64_t deadline_ns = to_ns(deadline);
  lead([&] {
    take_inbox();
    for (const auto& remote : running_remotes_) {
      remote->cancel_all();
      remote->close_when_idle();
    }
    owner_.close();
  });
  const auto ended = [&] {
    return running_remotes_.empty() && owner_.idle() && shard_.blocking() == 0 &&
           outstanding_.load(std::memory_order_relaxed) == 0;
  };
  bool over = drive_until(deadline_ns, ended);
  if (!over) {
    // Peers that do not answer are not waited for any longer.
    lead([&] {
      for (const auto& remote : running_remotes_) {
        remote->close_now(closed_error());
      }
      owner_.abandon();
    });
    over = drive_until(add_ns(seams_.clock->now_ns(), force_grace_ns), ended);
  }
  if (!over) {
    return fail(ErrorCode::busy,
                fmt::format("{} requests are not drained, {} sessions have not ended; call again",
                            outstanding_.load(), owner_.sessions() + running_remotes_.size()));
  }
  leader_.stop();
  if (thread_.joinable()) {
    thread_.join();
  }
  return {};
}

bool EngineCore::close_for_good() {
  const auto now = Deadline::Clock::time_point(std::chrono::nanoseconds(seams_.clock->now_ns()));
  auto closed = close(Deadline::at(now + options_.close_timeout));
  if (closed) {
    return true;
  }
  log_(LogLevel::error, fmt::format("the engine did not close in time and is left behind: {}",
                                    closed.error().message));
  return false;
}

// -- what it says about itself
// -----------------------------------------------------------------------

std::vector<PathCapability> EngineCore::capabilities() const {
  std::vector<PathCapability> all;
  for (const PathKind path : {PathKind::tcp, PathKind::posix}) {
    PathCapability capability;
    capability.path = path;
    capability.built = {Answer::yes, {}};
    capability.loadable = {Answer::yes, "needs no library but the kernel"};
    capability.discovered = {Answer::yes, "needs no device"};
    capability.ready = {Answer::not_asked, {}};
    all.push_back(std::move(capability));
  }
  for (const PathKind path : {PathKind::io_uring, PathKind::rdma, PathKind::cuda, PathKind::gds}) {
    PathCapability capability;
    capability.path = path;
    capability.built = {Answer::no,
                        fmt::format("this version of Wherry has no {} path", to_string(path))};
    capability.loadable = capability.discovered = capability.ready = {Answer::no, "not built"};
    all.push_back(std::move(capability));
  }
  return all;
}

std::vector<Counter> EngineCore::counters() {
  return lead([&] {
    const auto ranges = ranges_.counters();
    const auto calls = shard_.network().calls();
    const auto& files = shard_.files().counters();
    const LaneCounters& lanes = lane_counters_;
    const auto& owner = owner_.counters();
    const auto& requests = request_counters_;
    return std::vector<Counter>{
        {"registrations", ranges.registrations, true},
        {"registered_bytes", ranges.registered_bytes, true},
        {"leases", ranges.leases, true},
        {"registrations_refused_total", ranges.refusals, false},
        {"requests_submitted_total", requests.submitted, false},
        {"requests_refused_total", requests.refused, false},
        {"requests_completed_total", requests.completed, false},
        {"requests_failed_total", requests.failed, false},
        {"requests_cancelled_total", requests.cancelled, false},
        {"requests_timed_out_total", requests.timed_out, false},
        {"requests_outstanding", outstanding_, true},
        {"operations_outstanding", request_budgets_.operations.used(), true},
        {"remotes", running_remotes_.size(), true},
        {"sources", owner_.sources(), true},
        {"sessions", owner_.sessions(), true},
        {"handshakes", owner_.handshakes(), true},
        {"sessions_opened_total", owner.sessions_opened, false},
        {"sessions_refused_total", owner.sessions_refused, false},
        {"connections_refused_total", owner.connections_refused, false},
        {"strangers_total", owner.strangers, false},
        {"recalls_total", owner.recalls, false},
        {"checksums_total", owner.checksums, false},
        {"tcp_lanes_opened_total", lanes.lanes_opened, false},
        {"tcp_lanes_cut_total", lanes.lanes_cut, false},
        {"tcp_received_bytes_total", lanes.bytes_received, false},
        {"tcp_sent_bytes_total", lanes.bytes_sent, false},
        {"tcp_frames_received_total", lanes.frames_received, false},
        {"tcp_frames_sent_total", lanes.frames_sent, false},
        {"tcp_read_slices_total", lanes.read_slices, false},
        {"tcp_write_slices_total", lanes.write_slices, false},
        {"tcp_reads_served_total", lanes.reads_served, false},
        {"tcp_writes_served_total", lanes.writes_served, false},
        {"tcp_operations_refused_total", lanes.operations_refused, false},
        {"tcp_checksum_errors_total", lanes.checksum_errors, false},
        {"tcp_stalls_total", lanes.stalls, false},
        {"tcp_cancels_total", lanes.cancels, false},
        {"posix_reads_total", files.reads, false},
        {"posix_writes_total", files.writes, false},
        {"posix_read_bytes_total", files.bytes_read, false},
        {"posix_written_bytes_total", files.bytes_written, false},
        {"posix_errors_total", files.errors, false},
        {"open_files", file_cache_.open(), true},
        {"staging_buffers", shard_.staging().in_use(), true},
        {"staging_waits_total", shard_.staging().waits(), false},
        {"network_reads_total", calls.readv, false},
        {"network_writes_total", calls.writev, false},
        {"network_waits_total", calls.wait, false},
        {"shard_turns_total", shard_.counters().turns, false},
        {"shard_sleeps_total", shard_.counters().sleeps, false},
    };
  });
}

} // namespace wherry::inline v0

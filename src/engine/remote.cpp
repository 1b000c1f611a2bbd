#include "engine/remote.h"

#include "base/assert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace wherry {

namespace {

// Slices that a request may be dealt before it is another one's turn.
constexpr int burst_slices = 16;

std::uint64_t ns(std::chrono::milliseconds duration) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(duration).count());
}

Error error_of(ErrorCode code, std::string message) {
  Error error;
  error.code = code;
  error.message = std::move(message);
  return error;
}

bool overlap(std::uint64_t a, std::uint64_t a_length, std::uint64_t b, std::uint64_t b_length) {
  return a < b + b_length && b < a + a_length;
}

} // namespace

// -- Dialer: connects a socket and, for lanes, joins
// -------------------------------------------------

class Remote::Dialer final : public Endpoint {
public:
  enum class State : std::uint8_t { connecting, joining, done, failed };

  /// A plain connection.
  Dialer(Shard& shard, SocketId socket, std::string what) : shard_(shard), what_(std::move(what)) {
    start(socket);
  }
  /// A lane.
  Dialer(Shard& shard, SocketId socket, std::string what, const wire::LaneJoin& join)
      : shard_(shard), what_(std::move(what)), join_(join) {
    start(socket);
  }
  ~Dialer() override { shard_.remove(token_); }

  void on_event(const NetworkEvent& event) override { buffer_->on_event(event); }
  std::uint64_t next_deadline_ns() const override { return never_ns; }

  bool progress(std::uint64_t) override {
    if (state_ == State::connecting) {
      check_connected();
    }
    if (state_ == State::joining) {
      progress_join();
    }
    return false;
  }

  State state() const { return state_; }
  const Error& error() const { return error_; }
  SocketId release() { return buffer_->release(); }
  std::span<const std::byte> leftover() const { return buffer_->in(); }

private:
  void start(SocketId socket) {
    buffer_ = std::make_unique<SocketBuffer>(shard_.network(), socket,
                                             wire::preamble_bytes + wire::lane_accept_bytes);
    token_ = shard_.add(this);
    shard_.network().set_token(socket, token_);
  }

  void check_connected() {
    const int number = shard_.network().connect_error(buffer_->socket());
    if (number == EINPROGRESS) {
      return;
    }
    if (number != 0) {
      Error error = native_error("connect", number, what_);
      error.code = number == ETIMEDOUT ? ErrorCode::timed_out : ErrorCode::connection_lost;
      return fail_with(std::move(error));
    }
    if (!join_) {
      state_ = State::done;
      return;
    }
    state_ = State::joining;
    std::array<std::byte, wire::lane_join_bytes> join;
    wire::encode(*join_, join);
    buffer_->send(wire::encode(
        wire::Preamble{wire::protocol_version, wire::Role::lane_consumer, wire::Security::none}));
    buffer_->send(join);
  }

  void progress_join() {
    const bool alive = buffer_->fill();
    if (!buffer_->flush()) {
      return fail_with(buffer_->error());
    }
    const auto prefix = buffer_->in().first(std::min(buffer_->in().size(), wire::preamble_bytes));
    if (!prefix.empty() && !wire::may_be_preamble(prefix)) {
      return fail_with(wire::not_a_preamble(prefix));
    }
    if (buffer_->in().size() < wire::preamble_bytes + wire::lane_accept_bytes) {
      if (!alive) {
        fail_with(buffer_->error());
      }
      return;
    }
    auto preamble = wire::decode_preamble(buffer_->in().first<wire::preamble_bytes>());
    if (!preamble) {
      return fail_with(preamble.error());
    }
    auto accept = wire::decode_lane_accept(
        buffer_->in().subspan<wire::preamble_bytes, wire::lane_accept_bytes>());
    if (!accept) {
      return fail_with(accept.error());
    }
    if (preamble->role != wire::Role::lane_owner || accept->nonce != join_->nonce) {
      return fail_with(error_of(ErrorCode::protocol_mismatch,
                                "the peer answered something else than this join"));
    }
    if (accept->code != 0) {
      const auto code = static_cast<ErrorCode>(accept->code);
      return fail_with(
          error_of(code, fmt::format("the owner refused the lane: {}", to_string(code))));
    }
    buffer_->consume(wire::preamble_bytes + wire::lane_accept_bytes);
    state_ = State::done;
  }

  void fail_with(Error error) {
    error_ = std::move(error);
    state_ = State::failed;
  }

  Shard& shard_;
  const std::string what_;
  std::optional<wire::LaneJoin> join_;
  std::unique_ptr<SocketBuffer> buffer_;
  std::uint64_t token_ = 0;
  State state_ = State::connecting;
  Error error_;
};

// -- LaneEndpoint: a ready lane on its socket
// --------------------------------------------------------

class Remote::LaneEndpoint final : public Endpoint {
public:
  LaneEndpoint(Remote& remote, SocketId socket, const LaneConfig& config,
               std::span<const std::byte> leftover)
      : remote_(remote), socket_(socket), stream_(remote.shard_.network(), socket) {
    const LaneServices services{remote.shard_.files(), remote.shard_.staging(),
                                remote.host_.lane_counters()};
    auto lane = std::make_unique<ConsumerLane>(stream_, config, services, remote.shard_.now_ns());
    lane->prepend(leftover);
    lane_ = lane.get();
    link_ = std::move(lane);
    token_ = remote.shard_.add(this);
    remote.shard_.network().set_token(socket, token_);
  }
  /// Over a link of a test's or benchmark's own, without a socket.
  LaneEndpoint(Remote& remote, std::unique_ptr<Link> link)
      : remote_(remote), socket_(0), stream_(remote.shard_.network(), 0), link_(std::move(link)) {
    token_ = remote.shard_.add(this);
  }
  ~LaneEndpoint() override {
    remote_.shard_.remove(token_);
    link_.reset();
    if (socket_ != 0) {
      remote_.shard_.network().close(socket_);
    }
  }

  Link& link() { return *link_; }
  void activate() { remote_.shard_.activate(token_); }
  void on_event(const NetworkEvent& event) override {
    if (lane_ != nullptr) {
      lane_->on_event(event.readable, event.writable, event.hangup);
    }
  }
  bool progress(std::uint64_t now_ns) override {
    bool moved = link_->progress(now_ns);
    moved |= remote_.collect(*link_);
    return moved;
  }
  std::uint64_t next_deadline_ns() const override { return link_->next_deadline_ns(); }
  bool waits_for_files() const override { return lane_ != nullptr && lane_->waits_for_files(); }

private:
  Remote& remote_;
  SocketId socket_;
  SocketStream stream_;
  ConsumerLane* lane_ = nullptr;
  std::unique_ptr<Link> link_;
  std::uint64_t token_ = 0;
};

bool Remote::LaneSlot::ready() const {
  return endpoint != nullptr && endpoint->link().state() == LinkState::ready;
}

// -- Remote
// ------------------------------------------------------------------------------------------

Remote::Remote(Shard& shard, RemoteHost& host, std::uint64_t id, SourceReference reference,
               std::uint32_t lanes)
    : shard_(shard), host_(host), id_(id), lanes_wanted_(lanes), reference_(std::move(reference)),
      completions_(256) {}

Remote::~Remote() {
  WHERRY_ASSERT(requests_.empty());
}

Error Remote::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

SourceReference Remote::reference() const {
  const std::lock_guard lock(mutex_);
  return reference_;
}

const RemoteFacts* Remote::find(std::uint64_t id) const {
  const auto found = known_.find(id);
  return found == known_.end() ? nullptr : &found->second;
}

void Remote::know(const RemoteRange& range) {
  const std::lock_guard lock(mutex_);
  known_[range.id] = {range.length_bytes, range.visibility, false};
}

bool Remote::overlaps_unsettled(std::span<const Operation> operations) const {
  if (unsettled_.empty() && !everything_unsettled_) {
    return false;
  }
  for (const Operation& op : operations) {
    if (op.kind != OperationKind::write) {
      continue;
    }
    if (everything_unsettled_) {
      return true;
    }
    for (const Unsettled& u : unsettled_) {
      if (u.range == op.remote_range &&
          overlap(op.remote_offset, op.length_bytes, u.offset, u.length)) {
        return true;
      }
    }
  }
  return false;
}

// -- opening
// -------------------------------------------------------------------------------------------

void Remote::open(std::uint64_t deadline_ns) {
  WHERRY_ASSERT(phase_ == Phase::idle);
  opening_over_ = false;
  opening_deadline_ns_ = deadline_ns;
  address_ = 0;
  if (addresses_.empty()) {
    resolve();
  } else {
    connect_next();
  }
}

void Remote::resolve() {
  phase_ = Phase::resolving;
  resolving_ = true;
  auto result = std::make_shared<Result<std::vector<Address>>>(std::vector<Address>{});
  const SourceReference to = reference();
  Network* network = &shard_.network();
  shard_.run_blocking([=] { *result = network->resolve(to.host, to.port); },
                      [this, result] {
                        resolving_ = false;
                        if (phase_ != Phase::resolving) {
                          return;
                        }
                        if (!*result) {
                          return fail_opening(result->error());
                        }
                        addresses_ = **result;
                        connect_next();
                      });
}

void Remote::connect_next() {
  phase_ = Phase::connecting;
  if (address_ == addresses_.size()) {
    return fail_opening(why().message.empty()
                            ? error_of(ErrorCode::not_found, "the host name has no address")
                            : why());
  }
  const Address& to = addresses_[address_++];
  auto socket = shard_.network().connect(to, 0);
  if (!socket) {
    {
      const std::lock_guard lock(mutex_);
      why_ = socket.error();
    }
    return connect_next();
  }
  dialer_ = std::make_unique<Dialer>(shard_, *socket,
                                     fmt::format("cannot connect to {}", to.to_string()));
}

bool Remote::progress_connecting(std::uint64_t now_ns) {
  if (now_ns >= opening_deadline_ns_) {
    static constexpr const char* doing[] = {"", "looking up the host name", "connecting",
                                            "waiting for its greeting", "joining the lanes"};
    const SourceReference to = reference();
    fail_opening(error_of(ErrorCode::timed_out, fmt::format("no answer from {} in time, while {}",
                                                            Address{to.host, to.port}.to_string(),
                                                            doing[static_cast<int>(phase_)])));
    return true;
  }
  if (phase_ == Phase::connecting && dialer_ != nullptr) {
    if (dialer_->state() == Dialer::State::failed) {
      {
        const std::lock_guard lock(mutex_);
        why_ = dialer_->error();
      }
      dialer_.reset();
      connect_next();
      return true;
    }
    if (dialer_->state() == Dialer::State::done) {
      const SocketId socket = dialer_->release();
      dialer_.reset();
      say_hello(socket);
      return true;
    }
  }
  if (phase_ == Phase::joining) {
    for (const LaneSlot& lane : lanes_) {
      if (lane.dialer != nullptr && lane.dialer->state() == Dialer::State::failed) {
        Error error = lane.dialer->error();
        error.message = fmt::format("a lane could not join: {}", error.message);
        fail_opening(std::move(error));
        return true;
      }
    }
    if (std::all_of(lanes_.begin(), lanes_.end(),
                    [](const LaneSlot& lane) { return lane.ready(); })) {
      phase_ = Phase::open;
      set_state(SourceState::open);
      opening_over_ = true;
      reopens_to_settle_ = true;
      settle_all();
      return true;
    }
  }
  return false;
}

void Remote::say_hello(SocketId socket) {
  phase_ = Phase::greeting;
  control_ = std::make_unique<ControlChannel>(shard_, socket, *this, std::span<const std::byte>{},
                                              ns(host_.tcp().peer_stall_timeout));
  control_->greet_owner();
  wire::Hello hello;
  {
    const std::lock_guard lock(mutex_);
    hello.name = reference_.name;
    hello.expected_epoch = reference_.epoch.value_or(0);
  }
  hello.consumer = host_.engine_id();
  hello.expected_owner = owner_;
  hello.lanes = lanes_wanted_;
  hello.previous_session = previous_session_;
  control_->send(hello);
}

void Remote::on_welcome(const wire::Welcome& welcome) {
  if (phase_ != Phase::greeting) {
    return lose_session(error_of(ErrorCode::protocol_mismatch, "the owner welcomed us twice"));
  }
  {
    const std::lock_guard lock(mutex_);
    // The owner checks this too; a binding is not left to the other side (R21).
    if ((reference_.epoch && *reference_.epoch != welcome.epoch) ||
        (owner_ && !(*owner_ == welcome.owner))) {
      Error error = error_of(ErrorCode::stale_epoch, "the owner is another one now");
      error.current_epoch = welcome.epoch;
      why_ = error;
    } else {
      reference_.epoch = welcome.epoch;
      owner_ = welcome.owner;
      why_ = Error{};
    }
  }
  if (why().code == ErrorCode::stale_epoch) {
    return fail_opening(why());
  }
  welcome_ = welcome;
  previous_session_ = welcome.session;
  phase_ = Phase::joining;
  const std::uint32_t count = std::min(welcome.lanes, lanes_wanted_);
  lanes_.clear();
  lanes_.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    dial_lane(i);
  }
}

void Remote::dial_lane(std::uint32_t index) {
  LaneSlot& slot = lanes_[index];
  ++slot.generation;
  if (shard_.seams().links != nullptr) {
    slot.endpoint = std::make_unique<LaneEndpoint>(
        *this, shard_.seams().links->connect({welcome_.session, index, welcome_.owner}));
    ++ready_lanes_;
    return;
  }
  wire::LaneJoin join;
  join.session = welcome_.session;
  join.epoch = welcome_.epoch;
  join.consumer = host_.engine_id();
  join.owner = welcome_.owner;
  join.key = welcome_.key;
  shard_.random().fill(std::as_writable_bytes(std::span(join.nonce)));
  join.lane = index;
  join.generation = slot.generation;
  const Address& to = addresses_[address_ - 1];
  auto socket = shard_.network().connect(to, 0);
  if (!socket) {
    return lose_session(socket.error());
  }
  slot.dialer = std::make_unique<Dialer>(
      shard_, *socket, fmt::format("lane {}: cannot connect to {}", index, to.to_string()), join);
  slot.deadline_ns = add_ns(shard_.now_ns(), ns(host_.tcp().connect_timeout));
}

void Remote::on_refusal(const wire::Refusal& refusal) {
  Error error = error_of(refusal.code, refusal.message);
  if (refusal.code == ErrorCode::stale_epoch && refusal.current_epoch != 0) {
    error.current_epoch = refusal.current_epoch;
  }
  if (phase_ == Phase::greeting) {
    fail_opening(std::move(error));
  } else {
    lose_session(std::move(error));
  }
}

// Opening has failed for good: the handle is lost, or stale for ever.
void Remote::fail_opening(Error why) {
  const bool stale = why.code == ErrorCode::stale_epoch && owner_.has_value();
  addresses_.clear();
  lose_session(std::move(why));
  if (stale) {
    set_state(SourceState::stale);
  }
}

// -- the end of a session
// -----------------------------------------------------------------------------

void Remote::lose_session(Error why) {
  if (phase_ == Phase::idle || phase_ == Phase::ending) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    why_ = why;
  }
  if (state() == SourceState::open) {
    set_state(SourceState::lost);
  }
  if (why.code == ErrorCode::stale_epoch) {
    set_state(SourceState::stale);
  }
  // An opening that fails takes everybody with it who waits for it.
  for (RequestState* request : requests_) {
    request->of_lost_session = true;
  }
  phase_ = Phase::ending;
  dialer_.reset();
  if (control_ != nullptr) {
    if (!control_->closed()) {
      control_->close_after_flush();
    }
    dead_controls_.push_back(std::move(control_));
  }
  for (LaneSlot& lane : lanes_) {
    lane.dialer.reset();
    if (lane.endpoint == nullptr) {
      continue;
    }
    lane.endpoint->link().begin_close(why);
    lane.endpoint->activate();
  }
  for (auto& [id, answer] : pending_) {
    answer->error = why;
    answer->done = true;
  }
  pending_.clear();
  fences_.clear();
  recalls_.clear();
}

// True when the last lane has drained and everything has been told.
bool Remote::finish_ending() {
  for (const LaneSlot& lane : lanes_) {
    if (lane.endpoint != nullptr && lane.endpoint->link().state() != LinkState::drained) {
      return false;
    }
  }
  for (LaneSlot& lane : lanes_) {
    if (lane.endpoint != nullptr) {
      collect(lane.endpoint->link());
    }
  }
  lanes_.clear();
  ready_lanes_ = 0;
  phase_ = Phase::idle;
  const bool again = state() == SourceState::lost && !closing_;
  end_requests(why(), !again);
  opening_over_ = true;
  // Opened again for requests that came meanwhile; and, once, to have the owner end what is
  // unsettled.
  if (again && (!requests_.empty() || (reopens_to_settle_ && !unsettled_requests_.empty()))) {
    reopens_to_settle_ = false;
    open(add_ns(shard_.now_ns(), ns(host_.tcp().connect_timeout)));
  }
  return true;
}

// The session is gone: what has not ended ends now, with the reason (R21, R28).
void Remote::end_requests(const Error& why, bool all) {
  const std::vector<RequestState*> requests = requests_;
  for (RequestState* request : requests) {
    if (!all && !request->of_lost_session) {
      continue;
    }
    {
      const std::lock_guard lock(request->mutex);
      request->ledger.end(Outcome::failed, &why);
    }
    after_change(*request);
  }
}

void Remote::cancel_all() {
  const std::vector<RequestState*> requests = requests_;
  for (RequestState* request : requests) {
    cancel(*request);
  }
}

void Remote::close_now(const Error& why) {
  closing_ = true;
  if (phase_ == Phase::open) {
    control_->send(wire::Goodbye{});
  }
  lose_session(why);
  dead_controls_.clear(); // Their last words are not waited for.
  if (phase_ == Phase::idle) {
    end_requests(why, true);
  }
}

void Remote::on_control_closed(const Error& why) {
  Error error = why;
  if (phase_ == Phase::greeting && error.code == ErrorCode::connection_lost) {
    error.message =
        fmt::format("the peer ended the connection before it greeted us: {}", error.message);
  }
  lose_session(std::move(error));
}

// -- control messages
// -----------------------------------------------------------------------------------

void Remote::on_message(wire::ControlMessage& message) {
  if (phase_ == Phase::ending || phase_ == Phase::idle) {
    return;
  }
  if (auto* welcome = std::get_if<wire::Welcome>(&message)) {
    return on_welcome(*welcome);
  }
  if (auto* refusal = std::get_if<wire::Refusal>(&message)) {
    return on_refusal(*refusal);
  }
  if (phase_ == Phase::greeting) {
    return lose_session(
        error_of(ErrorCode::protocol_mismatch, "the owner's first message is no greeting"));
  }
  if (auto* recall = std::get_if<wire::Recall>(&message)) {
    return on_recall(recall->range);
  }
  if (std::holds_alternative<wire::Goodbye>(message)) {
    return lose_session(error_of(ErrorCode::connection_lost, "the owner has closed the source"));
  }
  if (auto* reply = std::get_if<wire::DescribeReply>(&message)) {
    return answer_pending(reply->id, std::move(message));
  }
  if (auto* reply = std::get_if<wire::LookupReply>(&message)) {
    return answer_pending(reply->id, std::move(message));
  }
  if (auto* reply = std::get_if<wire::ChecksumReply>(&message)) {
    return answer_pending(reply->id, std::move(message));
  }
  if (auto* reply = std::get_if<wire::ErrorReply>(&message)) {
    return answer_pending(reply->id, std::move(message));
  }
  if (auto* reply = std::get_if<wire::FenceReply>(&message)) {
    const auto fence = fences_.find(reply->id);
    if (fence == fences_.end()) {
      return;
    }
    const std::uint32_t lane = fence->second;
    fences_.erase(fence);
    if (fences_.empty()) {
      settle_all();
    }
    if (!closing_) {
      dial_lane(lane);
    }
    return;
  }
  lose_session(error_of(ErrorCode::protocol_mismatch, "the owner sent a consumer's message"));
}

void Remote::ask(wire::ControlMessage message, const std::shared_ptr<PendingAnswer>& answer) {
  if (phase_ != Phase::open) {
    answer->error = why();
    if (answer->error->message.empty()) {
      answer->error = error_of(ErrorCode::connection_lost, "the session is not open");
    }
    answer->done = true;
    return;
  }
  const std::uint64_t id = next_answer_++;
  std::visit(
      [id](auto& m) {
        if constexpr (requires { m.id; }) {
          m.id = id;
        }
      },
      message);
  pending_[id] = answer;
  control_->send(message);
}

void Remote::forget(const std::shared_ptr<PendingAnswer>& answer) {
  std::erase_if(pending_, [&](const auto& entry) { return entry.second == answer; });
}

void Remote::answer_pending(std::uint64_t id, wire::ControlMessage&& message) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) {
    return; // Whoever asked has given up.
  }
  const auto answer = found->second;
  pending_.erase(found);
  if (auto* error = std::get_if<wire::ErrorReply>(&message)) {
    answer->error = error_of(error->code, error->message);
    answer->error->native_number = error->native_number;
  } else {
    answer->message = std::move(message);
  }
  answer->done = true;
}

// The owner takes a range back: no new slice goes to it, and the owner hears when the last has
// ended.
void Remote::on_recall(std::uint64_t range) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(range);
    if (found != known_.end()) {
      found->second.withdrawn = true;
    }
  }
  recalls_.push_back(range);
  finish_recalls();
}

void Remote::finish_recalls() {
  std::erase_if(recalls_, [&](std::uint64_t range) {
    for (const LaneSlot& lane : lanes_) {
      if (lane.endpoint != nullptr && lane.endpoint->link().using_range(range) > 0) {
        return false;
      }
    }
    if (control_ != nullptr) {
      control_->send(wire::RecallDone{range});
    }
    return true;
  });
}

// -- requests
// -------------------------------------------------------------------------------------------

void Remote::list(RequestState& request) {
  request.listed = true;
  request.list_index = requests_.size();
  requests_.push_back(&request);
  const std::size_t slot = id_slot(request.id);
  if (by_slot_.size() <= slot) {
    by_slot_.resize(slot + 1);
  }
  by_slot_[slot] = &request;
  request_deadline_ns_ = std::min(request_deadline_ns_, request.deadline_ns);
}

void Remote::unlist(RequestState& request) {
  WHERRY_ASSERT(requests_[request.list_index] == &request);
  requests_.back()->list_index = request.list_index;
  requests_[request.list_index] = requests_.back();
  requests_.pop_back();
  by_slot_[id_slot(request.id)] = nullptr;
  request.listed = false;
  if (request.dealing) {
    stop_dealing(request);
  }
}

void Remote::start_dealing(RequestState& request) {
  if (request.dealing) {
    return;
  }
  request.dealing = true;
  dealing_.push_back(&request);
}

void Remote::stop_dealing(RequestState& request) {
  request.dealing = false;
  std::erase(dealing_, &request);
}

// Requests stay listed until they have drained: who has slices out is here.
RequestState& Remote::listed_request(std::uint64_t id) {
  RequestState* request = by_slot_[id_slot(id)];
  WHERRY_ASSERT(request != nullptr && request->id == id);
  return *request;
}

void Remote::add(RequestState& request) {
  list(request);
  start_dealing(request);
  if (phase_ == Phase::idle && state() == SourceState::lost && !closing_) {
    open(add_ns(shard_.now_ns(), ns(host_.tcp().connect_timeout)));
  }
  if (phase_ != Phase::idle) {
    return after_change(request); // An empty batch is over already.
  }
  const Error error = why();
  {
    const std::lock_guard lock(request.mutex);
    request.ledger.end(Outcome::failed, &error);
  }
  after_change(request);
}

void Remote::cancel(RequestState& request) {
  if (!request.listed || request.cancel_passed_on) {
    return;
  }
  request.cancel_passed_on = true;
  end_early(request, Outcome::cancelled);
  for (LaneSlot& lane : lanes_) {
    if (lane.endpoint == nullptr) {
      continue;
    }
    lane.endpoint->link().request_cancel(request.id, shard_.now_ns());
    lane.endpoint->activate();
  }
  after_change(request);
}

// Its WRITEs that are out are uncertain from now on (R29), for reports and for admission at once.
void Remote::end_early(RequestState& request, Outcome outcome) {
  const std::lock_guard lock(mutex_);
  const std::lock_guard request_lock(request.mutex);
  if (request.ledger.end(outcome) && !request.ledger.is_settled()) {
    remember_unsettled(request);
  }
}

bool Remote::check_request_deadlines(std::uint64_t now_ns) {
  if (now_ns < request_deadline_ns_) {
    return false;
  }
  const auto due = [&] {
    const auto found =
        std::find_if(requests_.begin(), requests_.end(), [&](const RequestState* request) {
          return request->deadline_ns <= now_ns && !request->cancel_passed_on;
        });
    return found == requests_.end() ? nullptr : *found;
  };
  bool moved = false;
  while (RequestState* request = due()) {
    end_early(*request, Outcome::timed_out);
    cancel(*request);
    moved = true;
  }
  request_deadline_ns_ = never_ns;
  for (const RequestState* request : requests_) {
    if (!request->cancel_passed_on) {
      request_deadline_ns_ = std::min(request_deadline_ns_, request->deadline_ns);
    }
  }
  return moved;
}

Link* Remote::next_lane(std::uint32_t& lane) {
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    LaneSlot& slot = lanes_[lane];
    lane = (lane + 1) % static_cast<std::uint32_t>(lanes_.size());
    if (!slot.ready() || !slot.endpoint->link().has_room()) {
      continue;
    }
    slot.endpoint->activate();
    return &slot.endpoint->link();
  }
  return nullptr;
}

bool Remote::any_lane_has_room() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const LaneSlot& lane) {
    return lane.ready() && lane.endpoint->link().has_room();
  });
}

// Deals slices to lanes; requests take turns.
bool Remote::deal() {
  bool moved = false;
  while (!dealing_.empty() && any_lane_has_room()) {
    turn_of_ %= dealing_.size();
    RequestState& request = *dealing_[turn_of_];
    moved |= deal_request(request, next_lane_);
    bool more = false;
    {
      const std::lock_guard lock(request.mutex);
      more = request.dealing && request.ledger.has_next();
    }
    if (more) {
      ++turn_of_;
    } else if (request.dealing) {
      stop_dealing(request);
    }
  }
  // Not before: it may end a request, and hand its memory to the next one.
  std::vector<RequestState*> refused;
  refused.swap(refused_);
  std::sort(refused.begin(), refused.end());
  refused.erase(std::unique(refused.begin(), refused.end()), refused.end());
  for (RequestState* request : refused) {
    after_change(*request);
  }
  return moved;
}

// Deals one burst of the request. False: it has no slice to give, or no lane has room.
bool Remote::deal_request(RequestState& request, std::uint32_t& lane) {
  bool moved = false;
  bool refused = false;
  {
    const std::lock_guard lock(request.mutex);
    for (int i = 0; i < burst_slices && request.ledger.has_next(); ++i) {
      Link* link = next_lane(lane);
      if (link == nullptr) {
        break;
      }
      const SlicePlan plan = request.ledger.next();
      moved = true;
      if (!recalls_.empty() &&
          std::find(recalls_.begin(), recalls_.end(), plan.remote_range) != recalls_.end()) {
        refuse_slice(request, plan, ErrorCode::range_withdrawn);
        refused = true;
        continue;
      }
      Slice slice;
      slice.request = request.id;
      slice.index = plan.index;
      slice.kind = plan.kind;
      slice.local = local_bytes(request.lease_of(plan.local_range), plan.local_offset);
      slice.remote_range = plan.remote_range;
      slice.remote_offset = plan.remote_offset;
      slice.length_bytes = plan.length_bytes;
      link->submit(slice);
    }
  }
  if (refused) {
    refused_.push_back(&request);
  }
  return moved;
}

void Remote::refuse_slice(RequestState& request, const SlicePlan& plan, ErrorCode code) {
  const Error error = error_of(code, "the owner has withdrawn the range");
  SliceEnd end;
  end.error = &error;
  request.ledger.complete(plan.index, end);
}

bool Remote::collect(Link& link) {
  bool moved = false;
  for (;;) {
    const std::size_t count = link.poll(completions_);
    if (count == 0) {
      break;
    }
    moved = true;
    RequestState* last = nullptr;
    for (std::size_t i = 0; i < count; ++i) {
      Completion& completion = completions_[i];
      if (last == nullptr || last->id != completion.request) {
        if (last != nullptr) {
          after_change(*last);
        }
        last = &listed_request(completion.request);
      }
      SliceEnd end;
      end.confirmed_bytes = completion.confirmed_bytes;
      end.uncertain = completion.uncertain;
      end.cancelled = completion.cancelled;
      end.error = completion.error.get();
      {
        const std::lock_guard lock(last->mutex);
        if (completion.unsettled) {
          ++last->unsettled_slices;
        }
        last->ledger.complete(completion.index, end);
        if (last->ledger.has_next()) {
          start_dealing(*last);
        }
      }
      if (completion.unsettled) {
        const std::lock_guard lock(mutex_);
        remember_unsettled(*last);
      }
      completion.error.reset();
    }
    if (last != nullptr) {
      after_change(*last);
    }
  }
  if (moved && !recalls_.empty()) {
    finish_recalls();
  }
  return moved;
}

// Publishes what the ledger says now; a drained request leaves.
void Remote::after_change(RequestState& request) {
  bool changed = false;
  bool settled = false;
  bool drained = false;
  {
    const std::lock_guard lock(request.mutex);
    drained = request.ledger.drained();
    if (drained && request.unsettled_slices == 0 && request.ledger.has_unsettled()) {
      request.ledger.settle();
    }
    settled = request.remembered_unsettled && request.unsettled_slices == 0 &&
              request.ledger.outcome() && request.ledger.is_settled();
    changed =
        (request.ledger.outcome() && !request.outcome_told) || (drained && !request.drain_told);
  }
  if (settled) {
    forget_unsettled(request);
  }
  if (!changed) {
    return;
  }
  if (drained) {
    unlist(request);
  }
  host_.on_request_changed(request);
}

// -- unsettled WRITEs (R29)
// -----------------------------------------------------------------------------

// With the mutex held.
void Remote::remember_unsettled(RequestState& request) {
  if (request.remembered_unsettled) {
    return;
  }
  request.remembered_unsettled = true;
  unsettled_requests_.push_back(request.id);
  for (const Operation& op : request.ledger.operations()) {
    if (op.kind != OperationKind::write) {
      continue;
    }
    if (unsettled_.size() == host_.limits().unsettled_writes) {
      everything_unsettled_ = true; // Bounded: beyond that, every WRITE counts as overlapping.
      return;
    }
    unsettled_.push_back({request.id, op.remote_range, op.remote_offset, op.length_bytes});
  }
}

// All of its WRITEs were answered after all.
void Remote::forget_unsettled(RequestState& request) {
  request.remembered_unsettled = false;
  std::erase(unsettled_requests_, request.id);
  const std::lock_guard lock(mutex_);
  std::erase_if(unsettled_, [&](const Unsettled& u) { return u.request == request.id; });
  everything_unsettled_ = everything_unsettled_ && !unsettled_requests_.empty();
}

// Every lane that may have carried an unanswered WRITE has been ended by the owner.
void Remote::settle_all() {
  std::vector<std::uint64_t> settled;
  settled.swap(unsettled_requests_);
  {
    const std::lock_guard lock(mutex_);
    unsettled_.clear();
    everything_unsettled_ = false;
    for (RequestState* request : requests_) {
      const std::lock_guard request_lock(request->mutex);
      request->unsettled_slices = 0;
      request->remembered_unsettled = false;
      // Ended early, and still out on a lane that has not been ended.
      if (request->ledger.outcome() && !request->ledger.is_settled()) {
        remember_unsettled(*request);
      }
    }
  }
  for (const std::uint64_t id : settled) {
    host_.settle_request(id);
  }
}

// -- turns
// ------------------------------------------------------------------------------------------------

bool Remote::progress_lanes(std::uint64_t now_ns) {
  bool moved = false;
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
    LaneSlot& slot = lanes_[i];
    if (slot.dialer != nullptr && slot.dialer->state() == Dialer::State::done) {
      LaneConfig config;
      config.name = fmt::format("tcp lane {}", i);
      config.slices_max = 1024;
      while (config.slices_max > welcome_.slices_max && config.slices_max > 1) {
        config.slices_max /= 2;
      }
      config.payload_checksums = host_.tcp().payload_checksums;
      config.cancel_grace_ns = ns(host_.tcp().cancel_grace);
      config.peer_stall_timeout_ns = ns(host_.tcp().peer_stall_timeout);
      const std::vector<std::byte> leftover(slot.dialer->leftover().begin(),
                                            slot.dialer->leftover().end());
      const SocketId socket = slot.dialer->release();
      slot.dialer.reset();
      slot.deadline_ns = never_ns;
      slot.endpoint = std::make_unique<LaneEndpoint>(*this, socket, config, leftover);
      ++ready_lanes_;
      moved = true;
    } else if (slot.dialer != nullptr && slot.dialer->state() == Dialer::State::failed &&
               phase_ == Phase::open) {
      Error error = slot.dialer->error();
      error.message = fmt::format("a lane could not join again: {}", error.message);
      lose_session(std::move(error));
      return true;
    }
    if (phase_ == Phase::open && slot.deadline_ns <= now_ns) {
      lose_session(error_of(ErrorCode::timed_out,
                            fmt::format("lane {} could not be ended and joined again in time", i)));
      return true;
    }
    if (phase_ == Phase::open && slot.endpoint != nullptr &&
        slot.endpoint->link().state() == LinkState::drained) {
      on_lane_drained(i);
      moved = true;
    }
  }
  return moved;
}

// A lane has been cut while the session goes on: the owner is asked to end it too, then it joins
// again.
void Remote::on_lane_drained(std::uint32_t index) {
  LaneSlot& slot = lanes_[index];
  collect(slot.endpoint->link());
  host_.log()(LogLevel::warning, fmt::format("{} was cut: {}", slot.endpoint->link().why().path,
                                             slot.endpoint->link().why().message));
  slot.endpoint.reset();
  --ready_lanes_;
  slot.deadline_ns = add_ns(shard_.now_ns(), ns(host_.tcp().connect_timeout));
  fences_[next_answer_] = index;
  control_->send(wire::FenceRequest{next_answer_++, index, slot.generation});
}

bool Remote::turn(std::uint64_t now_ns) {
  bool moved = false;
  for (auto& control : dead_controls_) {
    if (control->closed()) {
      control.reset();
    }
  }
  std::erase(dead_controls_, nullptr);
  moved |= progress_lanes(now_ns);
  switch (phase_) {
  case Phase::idle:
    break;
  case Phase::resolving:
  case Phase::connecting:
  case Phase::greeting:
  case Phase::joining:
    moved |= progress_connecting(now_ns);
    break;
  case Phase::open:
    moved |= deal();
    break;
  case Phase::ending:
    moved |= finish_ending();
    break;
  }
  // Also when no request is left: a deadline that has passed would keep the shard from sleeping.
  moved |= check_request_deadlines(now_ns);
  if (closing_ && requests_.empty() && phase_ == Phase::open) {
    control_->send(wire::Goodbye{});
    lose_session(error_of(ErrorCode::cancelled, "the source handle was closed"));
    moved = true;
  } else if (closing_ && requests_.empty() && phase_ != Phase::idle && phase_ != Phase::ending) {
    lose_session(error_of(ErrorCode::cancelled, "the source handle was closed"));
    moved = true;
  }
  if (closing_ && phase_ == Phase::idle && dead_controls_.empty() && !resolving_) {
    set_state(SourceState::closed);
    gone_ = true;
  }
  return moved;
}

std::uint64_t Remote::next_deadline_ns() const {
  std::uint64_t earliest = never_ns;
  const bool opening = phase_ == Phase::resolving || phase_ == Phase::connecting ||
                       phase_ == Phase::greeting || phase_ == Phase::joining;
  if (opening) {
    earliest = opening_deadline_ns_;
  }
  if (phase_ == Phase::open) {
    for (const LaneSlot& lane : lanes_) {
      earliest = std::min(earliest, lane.deadline_ns);
    }
  }
  return std::min(earliest, request_deadline_ns_);
}

} // namespace wherry

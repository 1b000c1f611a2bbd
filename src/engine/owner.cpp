#include "engine/owner.h"

#include "base/assert.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>

namespace wherry {

namespace {

constexpr std::uint32_t slices_per_lane_max = 1024;
constexpr std::uint64_t farewell_ns = 1'000'000'000;
constexpr std::size_t checksums_per_session_max = 8;
constexpr std::uint64_t checksum_step_bytes = 4 << 20;

std::uint64_t ns(std::chrono::milliseconds duration) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(duration).count());
}

Error error_of(ErrorCode code, std::string message) {
  Error error;
  error.code = code;
  error.message = std::move(message);
  return error;
}

std::array<std::byte, wire::preamble_bytes> preamble_of(wire::Role role) {
  return wire::encode(wire::Preamble{wire::protocol_version, role, wire::Security::none});
}

} // namespace

// -- Listening
// ---------------------------------------------------------------------------------------

class Owner::Listening final : public Endpoint {
public:
  Listening(Owner& owner, Listener listener, std::uint64_t token)
      : owner_(owner), listener_(std::move(listener)), token_(token) {}
  ~Listening() override {
    owner_.shard_.remove(token_);
    owner_.shard_.network().close(listener_.socket);
  }
  void on_event(const NetworkEvent&) override { pending_ = true; }
  bool progress(std::uint64_t) override {
    for (int i = 0; pending_ && i < 16; ++i) {
      auto accepted = owner_.shard_.network().accept(listener_.socket);
      if (!accepted) {
        owner_.log_(LogLevel::error,
                    fmt::format("cannot accept a connection: {}", accepted.error().message));
        retry_at_ns_ = add_ns(owner_.shard_.now_ns(), 100'000'000); // Descriptors may come free.
        pending_ = false;
        return false;
      }
      if (*accepted == 0) {
        pending_ = false;
      } else {
        owner_.on_connection(*accepted);
      }
    }
    if (retry_at_ns_ <= owner_.shard_.now_ns()) {
      retry_at_ns_ = never_ns;
      pending_ = true;
    }
    return pending_;
  }
  std::uint64_t next_deadline_ns() const override { return retry_at_ns_; }
  const Listener& listener() const { return listener_; }
  void set_token(std::uint64_t token) { token_ = token; }

  std::size_t users = 0;

private:
  Owner& owner_;
  const Listener listener_;
  std::uint64_t token_;
  bool pending_ = true;
  std::uint64_t retry_at_ns_ = never_ns;
};

// -- Greeter: a connection that has not said who it is
// -------------------------------------------------

class Owner::Greeter final : public Endpoint {
public:
  Greeter(Owner& owner, SocketId socket)
      : owner_(owner),
        buffer_(owner.shard_.network(), socket, wire::preamble_bytes + wire::control_header_bytes),
        deadline_ns_(add_ns(owner.shard_.now_ns(), ns(owner.tcp_.connect_timeout))) {
    token_ = owner.shard_.add(this);
    owner.shard_.network().set_token(socket, token_);
  }
  ~Greeter() override { owner_.shard_.remove(token_); }

  void on_event(const NetworkEvent& event) override { buffer_.on_event(event); }
  std::uint64_t next_deadline_ns() const override { return deadline_ns_; }
  bool over() const { return over_; }
  SocketBuffer& buffer() { return buffer_; }

  bool progress(std::uint64_t now_ns) override {
    if (over_) {
      return false;
    }
    if (now_ns >= deadline_ns_) {
      return give_up();
    }
    if (leaving_) {
      return leave();
    }
    const bool alive = buffer_.fill();
    if (!preamble_ && !take_preamble()) {
      return !alive && !leaving_ ? give_up() : leaving_;
    }
    if (!over_ && !leaving_) {
      take_greeting();
    }
    if (!alive && !over_ && !leaving_) {
      return give_up();
    }
    return !over_ && buffer_.may_have_more();
  }

  /// Sends the last bytes and waits a little for the peer to read them: closing with unread input
  /// would make the kernel throw them away.
  void say_and_leave(std::span<const std::byte> last_words) {
    buffer_.send(last_words);
    leaving_ = true;
    deadline_ns_ = add_ns(owner_.shard_.now_ns(), farewell_ns);
    owner_.shard_.activate(token_);
  }
  void hand_over() { over_ = true; }
  void refuse(const wire::Refusal& refusal) {
    ++owner_.counters_.sessions_refused;
    const auto preamble = preamble_of(wire::Role::control_owner);
    std::vector<std::byte> words(preamble.begin(), preamble.end());
    const auto frame = wire::encode(wire::ControlMessage(refusal));
    words.insert(words.end(), frame.begin(), frame.end());
    say_and_leave(words);
  }

private:
  bool give_up() {
    over_ = true;
    return false;
  }

  bool leave() {
    if (!buffer_.flush()) {
      return give_up();
    }
    if (buffer_.out_pending() > 0) {
      return false;
    }
    if (!said_) {
      buffer_.finish_writing();
    }
    said_ = true;
    // What the peer still sends is dropped, until it closes or the time is over.
    buffer_.consume(buffer_.in().size());
    if (!buffer_.fill()) {
      return give_up();
    }
    return buffer_.may_have_more();
  }

  bool take_preamble() {
    const auto prefix = buffer_.in().first(std::min(buffer_.in().size(), wire::preamble_bytes));
    if (prefix.empty()) {
      return false;
    }
    const bool stranger = !wire::may_be_preamble(prefix);
    if (!stranger && prefix.size() < wire::preamble_bytes) {
      return false;
    }
    const auto preamble = stranger ? Result<wire::Preamble>(fail(wire::not_a_preamble(prefix)))
                                   : wire::decode_preamble(prefix.first<wire::preamble_bytes>());
    const bool ours = preamble && preamble->security == wire::Security::none &&
                      (preamble->role == wire::Role::control_consumer ||
                       preamble->role == wire::Role::lane_consumer);
    if (!ours) {
      ++owner_.counters_.strangers;
      owner_.log_(
          LogLevel::warning,
          fmt::format("{}: refused: {}", owner_.shard_.network().peer_name(buffer_.socket()),
                      preamble ? "unknown role or security mode" : preamble.error().message));
      // Versions and security mode are all that a stranger learns (R22, R26).
      say_and_leave(preamble_of(wire::Role::control_owner));
      return false;
    }
    buffer_.consume(wire::preamble_bytes);
    preamble_ = *preamble;
    return true;
  }

  void take_greeting() {
    if (preamble_->role == wire::Role::lane_consumer) {
      return take_join();
    }
    const auto in = buffer_.in();
    buffer_.set_in_max(wire::control_header_bytes);
    if (in.size() < wire::control_header_bytes) {
      return;
    }
    auto header = wire::decode_control_header(in.first<wire::control_header_bytes>());
    // A greeting is small: no more is buffered for somebody unknown.
    if (header && header->body_bytes > hello_bytes_max) {
      header = fail(ErrorCode::protocol_mismatch, "the greeting is too long");
    }
    if (!header) {
      return refuse({header.error().code, header.error().message, 0});
    }
    const std::size_t frame = wire::control_header_bytes + header->body_bytes;
    buffer_.set_in_max(frame);
    if (!buffer_.fill() && buffer_.in().size() < frame) {
      return;
    }
    if (buffer_.in().size() < frame) {
      return;
    }
    auto message = wire::decode_control(
        *header, buffer_.in().subspan(wire::control_header_bytes, header->body_bytes));
    if (!message) {
      return refuse({message.error().code, message.error().message, 0});
    }
    const auto* hello = std::get_if<wire::Hello>(&*message);
    if (hello == nullptr) {
      return refuse({ErrorCode::protocol_mismatch, "the first message is no greeting", 0});
    }
    const wire::Hello copy = *hello;
    buffer_.consume(frame);
    owner_.on_hello(*this, copy);
  }

  void take_join();

  static constexpr std::size_t hello_bytes_max = 8192;

  Owner& owner_;
  SocketBuffer buffer_;
  std::uint64_t token_ = 0;
  std::uint64_t deadline_ns_;
  std::optional<wire::Preamble> preamble_;
  bool leaving_ = false;
  bool said_ = false;
  bool over_ = false;
};

// -- Session
// -------------------------------------------------------------------------------------------

class Owner::Session final : public ControlHandler, public OwnerAccess {
public:
  Session(Owner& owner, std::uint64_t source, const wire::Hello& hello, std::uint32_t lanes)
      : owner_(owner), source_(source), consumer_(hello.consumer), lanes_(lanes),
        previous_(hello.previous_session) {
    owner.shard_.random().fill(std::as_writable_bytes(std::span(key_)));
  }
  ~Session() override { WHERRY_ASSERT(lanes_.empty() || drained()); }

  void start(std::uint64_t id, SocketId socket, std::span<const std::byte> leftover) {
    id_ = id;
    control_ = std::make_unique<ControlChannel>(owner_.shard_, socket, *this, leftover,
                                                ns(owner_.tcp_.peer_stall_timeout));
    control_->send_raw(preamble_of(wire::Role::control_owner));
    if (owner_.shard_.seams().links != nullptr) {
      owner_.shard_.seams().links->serve(owner_.self_, id_, this);
    }
  }

  std::uint64_t source() const { return source_; }
  const EngineId& consumer() const { return consumer_; }
  bool ending() const { return ending_; }
  bool welcomed() const { return welcomed_; }
  bool gone() const { return ending_ && drained() && checksums_ == 0 && control_->closed(); }

  void end(const std::optional<wire::ControlMessage>& last_words) {
    if (ending_) {
      return;
    }
    ending_ = true;
    if (last_words) {
      control_->send(*last_words);
    }
    control_->close_after_flush();
    cut_lanes(error_of(ErrorCode::connection_lost, "the session has ended"));
    if (owner_.shard_.seams().links != nullptr) {
      owner_.shard_.seams().links->serve(owner_.self_, id_, nullptr);
    }
  }
  void cut_lanes(const Error& why) {
    for (LaneSlot& lane : lanes_) {
      if (lane.endpoint != nullptr) {
        lane.endpoint->begin_close(why);
      }
    }
  }
  bool drained() const {
    return std::all_of(lanes_.begin(), lanes_.end(), [](const LaneSlot& lane) {
      return lane.endpoint == nullptr || lane.endpoint->lane().state() == LinkState::drained;
    });
  }
  /// Whether an operation of this peer holds the published range.
  bool uses(std::uint64_t range) const {
    return std::any_of(uses_.begin(), uses_.end(),
                       [&](const Use& use) { return use.range == range; });
  }
  void abandon() { control_->abandon(); }
  void recall(std::uint64_t range) { control_->send(wire::Recall{range}); }

  /// R22: whether a join may come in; takes its generation.
  ErrorCode admit(const wire::LaneJoin& join) {
    if (ending_ || !welcomed_ || !(join.consumer == consumer_) || !(join.owner == owner_.self_)) {
      return ErrorCode::not_found;
    }
    const SourceEntry* entry = owner_.sources_.find(source_);
    if (entry == nullptr || entry->source.epoch() != join.epoch) {
      return ErrorCode::stale_epoch;
    }
    if (join.key != key_) {
      return ErrorCode::access_denied;
    }
    if (join.lane >= lanes_.size()) {
      return ErrorCode::invalid_argument;
    }
    LaneSlot& slot = lanes_[join.lane];
    if (join.generation <= slot.generation) {
      return ErrorCode::access_denied; // Used once.
    }
    if (slot.endpoint != nullptr) {
      return ErrorCode::busy; // To be fenced first.
    }
    slot.generation = join.generation;
    return ErrorCode{};
  }
  void start_lane(const wire::LaneJoin& join, SocketId socket,
                  std::span<const std::byte> leftover) {
    lanes_[join.lane].endpoint = std::make_unique<LaneEndpoint>(*this, socket, join.lane, leftover);
  }

  bool turn() {
    bool moved = false;
    if (!welcomed_ && !ending_) {
      moved |= welcome_when_alone();
    }
    for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
      LaneSlot& lane = lanes_[i];
      if (lane.endpoint == nullptr || lane.endpoint->lane().state() != LinkState::drained) {
        continue;
      }
      if (!ending_ && lane.endpoint->lane().why().code != ErrorCode::connection_lost) {
        owner_.log_(LogLevel::warning,
                    fmt::format("{} of a peer was cut: {}", lane.endpoint->lane().why().path,
                                lane.endpoint->lane().why().message));
      }
      lane.endpoint.reset();
      moved = true;
    }
    std::erase_if(fences_, [&](const wire::FenceRequest& fence) {
      if (lanes_[fence.lane].endpoint != nullptr) {
        return false;
      }
      control_->send(wire::FenceReply{fence.id});
      moved = true;
      return true;
    });
    return moved;
  }

private:
  class LaneEndpoint final : public Endpoint {
  public:
    LaneEndpoint(Session& session, SocketId socket, std::uint32_t index,
                 std::span<const std::byte> leftover)
        : session_(session), socket_(socket), stream_(session.owner_.shard_.network(), socket),
          lane_(stream_, config(session, index),
                LaneServices{session.owner_.shard_.files(), session.owner_.shard_.staging(),
                             session.owner_.lane_counters_},
                session, session.owner_.shard_.now_ns()) {
      lane_.prepend(leftover);
      token_ = session.owner_.shard_.add(this);
      session.owner_.shard_.network().set_token(socket, token_);
    }
    ~LaneEndpoint() override {
      session_.owner_.shard_.remove(token_);
      session_.owner_.shard_.network().close(socket_);
    }
    OwnerLane& lane() { return lane_; }
    void begin_close(const Error& why) {
      lane_.begin_close(why);
      session_.owner_.shard_.activate(token_);
    }
    void on_event(const NetworkEvent& event) override {
      lane_.on_event(event.readable, event.writable, event.hangup);
    }
    bool progress(std::uint64_t now_ns) override { return lane_.progress(now_ns); }
    std::uint64_t next_deadline_ns() const override { return lane_.next_deadline_ns(); }
    bool waits_for_files() const override { return lane_.waits_for_files(); }

  private:
    static LaneConfig config(Session& session, std::uint32_t index) {
      LaneConfig config;
      config.name = fmt::format("tcp lane {}", index);
      config.slices_max = slices_per_lane_max;
      config.payload_checksums = session.owner_.tcp_.payload_checksums;
      config.cancel_grace_ns = ns(session.owner_.tcp_.cancel_grace);
      config.peer_stall_timeout_ns = ns(session.owner_.tcp_.peer_stall_timeout);
      return config;
    }

    Session& session_;
    const SocketId socket_;
    SocketStream stream_;
    OwnerLane lane_;
    std::uint64_t token_ = 0;
  };
  struct LaneSlot {
    std::unique_ptr<LaneEndpoint> endpoint;
    std::uint32_t generation = 0;
  };
  struct Checksum;
  struct Use {
    std::uint64_t range = 0; // Published.
    std::uint64_t registration = 0;
    std::uint64_t count = 0;
  };

  // The consumer's former session is over before this one begins (R29).
  bool welcome_when_alone() {
    if (previous_ != 0) {
      auto* previous = owner_.sessions_.find(previous_);
      if (previous != nullptr && (*previous)->consumer() == consumer_ && previous_ != id_) {
        (*previous)->end({});
        if (!(*previous)->drained()) {
          return false;
        }
      }
      previous_ = 0;
    }
    welcomed_ = true;
    wire::Welcome welcome;
    welcome.owner = owner_.self_;
    welcome.epoch = owner_.sources_.find(source_)->source.epoch();
    welcome.session = id_;
    welcome.key = key_;
    welcome.lanes = static_cast<std::uint32_t>(lanes_.size());
    welcome.slices_max = slices_per_lane_max;
    control_->send(welcome);
    ++owner_.counters_.sessions_opened;
    return true;
  }

  // OwnerAccess
  Grant acquire(std::uint64_t range, std::uint64_t offset, std::uint64_t length_bytes,
                Access access) override {
    const SourceEntry* entry = owner_.sources_.find(source_);
    if (entry == nullptr || ending_) {
      return {ErrorCode::range_withdrawn, {}, 0};
    }
    const auto check = entry->source.check(range, offset, length_bytes, access);
    if (check.range == nullptr) {
      return {check.code, {}, 0};
    }
    auto lease = owner_.ranges_.lease_for_peer(check.range->registration);
    if (!lease) {
      return {lease.error().code, {}, 0};
    }
    use_of(range, lease->range).count += 1;
    return {{}, local_bytes(*lease, offset), range};
  }
  void release(std::uint64_t lease) override {
    Use& use = use_of(lease, 0);
    owner_.ranges_.release_for_peer(use.registration);
    if (--use.count == 0) {
      use = uses_.back();
      uses_.pop_back();
    }
  }
  // Leases are named by the published range: another one may stand on the same registration.
  Use& use_of(std::uint64_t range, std::uint64_t registration) {
    // Few at a time, and mostly the last.
    for (auto use = uses_.rbegin(); use != uses_.rend(); ++use) {
      if (use->range == range) {
        return *use;
      }
    }
    WHERRY_ASSERT(registration != 0);
    return uses_.emplace_back(Use{range, registration, 0});
  }

  // ControlHandler
  void on_control_closed(const Error&) override { end({}); }
  void on_message(wire::ControlMessage& message) override {
    if (ending_) {
      return;
    }
    if (auto* describe = std::get_if<wire::DescribeRequest>(&message)) {
      return on_describe(*describe);
    }
    if (auto* lookup = std::get_if<wire::LookupRequest>(&message)) {
      return on_lookup(*lookup);
    }
    if (auto* checksum = std::get_if<wire::ChecksumRequest>(&message)) {
      return on_checksum(*checksum);
    }
    if (auto* fence = std::get_if<wire::FenceRequest>(&message)) {
      return on_fence(*fence);
    }
    if (auto* done = std::get_if<wire::RecallDone>(&message)) {
      return owner_.on_acknowledged(id_, done->range);
    }
    if (std::holds_alternative<wire::Goodbye>(message)) {
      return end({});
    }
    end(wire::Refusal{ErrorCode::protocol_mismatch, "this message is not a consumer's to send", 0});
  }

  void on_describe(const wire::DescribeRequest& request) {
    wire::DescribeReply reply = owner_.sources_.find(source_)->source.describe(request.page);
    reply.id = request.id;
    control_->send(reply);
  }

  void on_lookup(const wire::LookupRequest& request) {
    const PublishedRange* range = owner_.sources_.find(source_)->source.find(request.name);
    if (range == nullptr) {
      control_->send(wire::ErrorReply{request.id, ErrorCode::not_found, 0,
                                      "the source has no range of that name"});
      return;
    }
    control_->send(wire::LookupReply{request.id, PublishedSource::describe(*range)});
  }

  void on_fence(const wire::FenceRequest& fence) {
    if (fence.lane >= lanes_.size()) {
      return end(
          wire::Refusal{ErrorCode::protocol_mismatch, "a fence for a lane that does not exist", 0});
    }
    LaneSlot& lane = lanes_[fence.lane];
    if (lane.endpoint != nullptr && lane.generation <= fence.generation) {
      lane.endpoint->begin_close(
          error_of(ErrorCode::connection_lost, "the peer had the lane ended"));
    }
    // A join of that incarnation that is still under way comes too late.
    lane.generation = std::max(lane.generation, fence.generation);
    if (fences_.size() >= lanes_.size() * 4) {
      return end(wire::Refusal{ErrorCode::resource_exhausted, "too many fences at once", 0});
    }
    fences_.push_back(fence);
  }

  void on_checksum(const wire::ChecksumRequest& request);
  void step_checksum(std::shared_ptr<Checksum> checksum);

  Owner& owner_;
  const std::uint64_t source_;
  const EngineId consumer_;
  std::uint64_t id_ = 0;
  std::array<std::uint8_t, 16> key_{};
  std::vector<LaneSlot> lanes_;
  std::unique_ptr<ControlChannel> control_;
  std::vector<wire::FenceRequest> fences_;
  std::uint64_t previous_;
  std::vector<Use> uses_; // By operations of this peer.
  std::size_t checksums_ = 0;
  bool welcomed_ = false;
  bool ending_ = false;
};

// -- checksums (R23): on the native worker, a few MiB a step
// -------------------------------------------

struct Owner::Session::Checksum {
  std::uint64_t request = 0;
  LocalBytes local;
  std::uint64_t lease = 0;
  std::uint64_t left = 0;
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state{XXH3_createState(),
                                                                        XXH3_freeState};
  std::vector<std::byte> buffer;
  std::optional<Error> error;

  // On the worker.
  void step() {
    const std::uint64_t bytes = std::min(left, checksum_step_bytes);
    if (local.file != nullptr) {
      buffer.resize(static_cast<std::size_t>(bytes));
      auto read = static_cast<PosixFile*>(local.file)->read(local.offset, buffer);
      if (!read) {
        error = read.error();
        return;
      }
      XXH3_128bits_update(state.get(), buffer.data(), buffer.size());
      local.offset += bytes;
    } else {
      XXH3_128bits_update(state.get(), local.memory, static_cast<std::size_t>(bytes));
      local.memory += bytes;
    }
    left -= bytes;
  }
};

void Owner::Session::on_checksum(const wire::ChecksumRequest& request) {
  if (checksums_ == checksums_per_session_max) {
    control_->send(
        wire::ErrorReply{request.id, ErrorCode::resource_exhausted, 0,
                         fmt::format("{} checksums are under way in this session", checksums_)});
    return;
  }
  const Grant grant = acquire(request.range, request.offset, request.length_bytes, Access::read);
  if (grant.lease == 0) {
    control_->send(wire::ErrorReply{
        request.id, grant.refused, 0,
        fmt::format("the owner refused the checksum: {}", to_string(grant.refused))});
    return;
  }
  auto checksum = std::make_shared<Checksum>();
  checksum->request = request.id;
  checksum->local = grant.local;
  checksum->lease = grant.lease;
  checksum->left = request.length_bytes;
  XXH3_128bits_reset(checksum->state.get());
  ++checksums_;
  ++owner_.counters_.checksums;
  step_checksum(std::move(checksum));
}

void Owner::Session::step_checksum(std::shared_ptr<Checksum> checksum) {
  Checksum* work = checksum.get();
  owner_.shard_.run_blocking(
      [work] { work->step(); },
      [this, checksum] {
        if (!ending_ && !checksum->error && checksum->left > 0) {
          return step_checksum(checksum);
        }
        release(checksum->lease);
        --checksums_;
        if (ending_) {
          return;
        }
        if (checksum->error) {
          control_->send(wire::ErrorReply{
              checksum->request, checksum->error->code, checksum->error->native_number,
              checksum->error->message.substr(0, wire::message_bytes_max)});
          return;
        }
        XXH128_canonical_t canonical;
        XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(checksum->state.get()));
        wire::ChecksumReply reply;
        reply.id = checksum->request;
        std::copy(std::begin(canonical.digest), std::end(canonical.digest),
                  reply.digest.bytes.begin());
        control_->send(reply);
      });
}

// -- joining lanes
// -------------------------------------------------------------------------------------

void Owner::Greeter::take_join() {
  buffer_.set_in_max(wire::lane_join_bytes);
  if (buffer_.in().size() < wire::lane_join_bytes) {
    if (!buffer_.fill() || buffer_.in().size() < wire::lane_join_bytes) {
      return;
    }
  }
  auto join = wire::decode_lane_join(buffer_.in().first<wire::lane_join_bytes>());
  wire::LaneAccept accept;
  auto refused = ErrorCode::protocol_mismatch;
  Session* session = nullptr;
  if (join) {
    accept.nonce = join->nonce;
    session = owner_.admit_lane(*join, refused);
  }
  accept.code = session != nullptr ? std::uint16_t{0} : static_cast<std::uint16_t>(refused);
  std::array<std::byte, wire::preamble_bytes + wire::lane_accept_bytes> words;
  const auto preamble = preamble_of(wire::Role::lane_owner);
  std::copy(preamble.begin(), preamble.end(), words.begin());
  wire::encode(accept, std::span(words).last<wire::lane_accept_bytes>());
  if (session == nullptr) {
    ++owner_.counters_.connections_refused;
    return say_and_leave(words);
  }
  buffer_.consume(wire::lane_join_bytes);
  const std::vector<std::byte> leftover(buffer_.in().begin(), buffer_.in().end());
  // The lane's writer starts behind these bytes: a fresh socket takes them whole, or the peer is
  // refused.
  buffer_.send(words);
  if (!buffer_.flush() || buffer_.out_pending() > 0) {
    over_ = true;
    return;
  }
  session->start_lane(*join, buffer_.release(), leftover);
  over_ = true;
}

// -- Owner
// ---------------------------------------------------------------------------------------------

Owner::Owner(Shard& shard, RangeTable& ranges, const EngineId& self, const TcpConfig& tcp,
             const Limits& limits, LaneCounters& lane_counters, Log& log)
    : shard_(shard), ranges_(ranges), self_(self), tcp_(tcp), limits_(limits),
      lane_counters_(lane_counters), log_(log), sessions_(limits.sessions) {}

Owner::~Owner() = default;

Result<Owner::Published> Owner::publish(const std::string& name, std::uint64_t epoch,
                                        const Address& listen,
                                        std::span<const RangeToPublish> ranges) {
  if (sources_by_name_.contains(name)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("this engine publishes a source \"{}\" already", name));
  }
  SourceEntry entry(name, epoch);
  if (auto added = entry.source.add(ranges, ranges_); !added) {
    return fail(added.error());
  }
  std::uint64_t listener = 0;
  // Sources of one engine may share an address.
  listeners_.for_each([&](std::uint64_t id, std::unique_ptr<Listening>& other) {
    const Address& bound = other->listener().bound;
    if (listen.port != 0 && bound.port == listen.port && bound.host == listen.host) {
      listener = id;
    }
  });
  if (listener == 0) {
    auto made = shard_.network().listen(listen, 0);
    if (!made) {
      return fail(made.error());
    }
    const SocketId socket = made->socket;
    auto [id, slot] = listeners_.emplace(std::make_unique<Listening>(*this, std::move(*made), 0));
    const std::uint64_t token = shard_.add(slot->get());
    (*slot)->set_token(token);
    shard_.network().set_token(socket, token);
    listener = id;
  }
  Listening& listening = **listeners_.find(listener);
  ++listening.users;
  entry.listener = listener;
  const std::uint64_t id = sources_.emplace(std::move(entry)).first;
  sources_by_name_[name] = id;
  return Published{id, listening.listener().bound};
}

Result<void> Owner::add(std::uint64_t source, std::span<const RangeToPublish> ranges) {
  SourceEntry* entry = sources_.find(source);
  if (entry == nullptr) {
    return fail(ErrorCode::invalid_argument, "the source has been closed");
  }
  return entry->source.add(ranges, ranges_);
}

Owner::SourceEntry* Owner::find_source(std::string_view name) {
  const auto found = sources_by_name_.find(std::string(name));
  return found == sources_by_name_.end() ? nullptr : sources_.find(found->second);
}

void Owner::close_source(std::uint64_t source) {
  SourceEntry* entry = sources_.find(source);
  if (entry == nullptr) {
    return;
  }
  sources_by_name_.erase(entry->source.name());
  std::unique_ptr<Listening>* listening = listeners_.find(entry->listener);
  if (--(*listening)->users == 0) {
    listeners_.erase(entry->listener);
  }
  sessions_.for_each([&](std::uint64_t, std::unique_ptr<Session>& session) {
    if (session->source() == source) {
      session->end(wire::Goodbye{});
    }
  });
  for (const auto& recall : recalls_) {
    if (recall->source == source) {
      recall->sessions.clear();
    }
  }
  sources_.erase(source);
}

bool Owner::published(std::uint64_t registration) const {
  bool any = false;
  const_cast<SlotMap<SourceEntry>&>(sources_).for_each([&](std::uint64_t, SourceEntry& entry) {
    any |= !entry.source.publishing(registration).empty();
  });
  return any;
}

// -- connections
// ---------------------------------------------------------------------------------------

void Owner::on_connection(SocketId socket) {
  if (greeters_.size() >= limits_.handshakes) {
    ++counters_.connections_refused;
    shard_.network().close(socket);
    return;
  }
  greeters_.push_back(std::make_unique<Greeter>(*this, socket));
}

void Owner::on_hello(Greeter& greeter, const wire::Hello& hello) {
  SourceEntry* entry = find_source(hello.name);
  auto refusal = refuse(hello, entry == nullptr ? nullptr : &entry->source, self_);
  if (!refusal && sessions_.size() >= limits_.sessions) {
    refusal =
        wire::Refusal{ErrorCode::resource_exhausted,
                      fmt::format("the owner has {} sessions, its limit", sessions_.size()), 0};
  }
  if (refusal) {
    return greeter.refuse(*refusal);
  }
  const std::uint32_t lanes = std::min(hello.lanes, limits_.lanes_per_session);
  auto [id, slot] = sessions_.emplace(
      std::make_unique<Session>(*this, sources_by_name_.at(entry->source.name()), hello, lanes));
  const auto in = greeter.buffer().in();
  const std::vector<std::byte> leftover(in.begin(), in.end());
  (*slot)->start(id, greeter.buffer().release(), leftover);
  greeter.hand_over();
}

Owner::Session* Owner::admit_lane(const wire::LaneJoin& join, ErrorCode& refused) {
  auto* session = sessions_.find(join.session);
  if (session == nullptr) {
    refused = ErrorCode::not_found;
    return nullptr;
  }
  refused = (*session)->admit(join);
  return refused == ErrorCode{} ? session->get() : nullptr;
}

// -- recalls (R18)
// -------------------------------------------------------------------------------------

std::shared_ptr<RecallState> Owner::recall(std::uint64_t source, std::uint64_t range) {
  SourceEntry* entry = sources_.find(source);
  WHERRY_ASSERT(entry != nullptr);
  for (const auto& under_way : recalls_) {
    if (under_way->source == source && under_way->range == range) {
      return under_way;
    }
  }
  auto recall = std::make_shared<RecallState>();
  recall->source = source;
  recall->range = range;
  recall->registration = entry->source.find(range)->registration;
  recall->name = entry->source.find(range)->name;
  entry->source.recall(range);
  sessions_.for_each([&](std::uint64_t id, std::unique_ptr<Session>& session) {
    // Who has not been welcomed has been told of nothing.
    if (session->source() != source || session->ending() || !session->welcomed()) {
      return;
    }
    session->recall(range);
    recall->sessions.push_back(id);
  });
  ++counters_.recalls;
  recalls_.push_back(recall);
  revoke_if_acknowledged(*recall);
  return recall;
}

Result<std::shared_ptr<RecallState>> Owner::recall_named(std::uint64_t source,
                                                         std::string_view name) {
  const SourceEntry* entry = sources_.find(source);
  if (entry != nullptr) {
    if (const PublishedRange* range = entry->source.find(name)) {
      return recall(source, range->id);
    }
  }
  for (const auto& under_way : recalls_) {
    if (under_way->source == source && under_way->name == name) {
      return under_way;
    }
  }
  return fail(ErrorCode::not_found, fmt::format("the source has no range \"{}\"", name));
}

std::vector<std::shared_ptr<RecallState>> Owner::recall_registration(std::uint64_t registration) {
  std::vector<std::shared_ptr<RecallState>> recalls;
  sources_.for_each([&](std::uint64_t source, SourceEntry& entry) {
    for (const std::uint64_t range : entry.source.publishing(registration)) {
      recalls.push_back(recall(source, range));
    }
  });
  return recalls;
}

void Owner::revoke_if_acknowledged(RecallState& recall) {
  if (recall.revoked || !recall.sessions.empty()) {
    return;
  }
  recall.revoked = true;
  if (SourceEntry* entry = sources_.find(recall.source)) {
    entry->source.remove(recall.range);
  }
}

void Owner::force(RecallState& recall) {
  if (recall.revoked) {
    return;
  }
  for (const std::uint64_t id : recall.sessions) {
    auto* session = sessions_.find(id);
    if (session == nullptr) {
      continue;
    }
    (*session)->cut_lanes(error_of(ErrorCode::range_withdrawn,
                                   "a range was recalled and the peer did not acknowledge"));
    ++recall.cut;
  }
  recall.sessions.clear();
  revoke_if_acknowledged(recall);
}

bool Owner::over(const RecallState& recall) {
  bool used = false;
  sessions_.for_each([&](std::uint64_t, std::unique_ptr<Session>& session) {
    used |= session->source() == recall.source && session->uses(recall.range);
  });
  return recall.revoked && !used;
}

void Owner::on_acknowledged(std::uint64_t session, std::uint64_t range) {
  for (const auto& recall : recalls_) {
    if (recall->range == range) {
      std::erase(recall->sessions, session);
    }
  }
}

void Owner::session_gone(std::uint64_t session) {
  for (const auto& recall : recalls_) {
    std::erase(recall->sessions, session);
  }
}

// -- turns
// ---------------------------------------------------------------------------------------------

bool Owner::turn(std::uint64_t) {
  bool moved = std::erase_if(greeters_, [](const auto& greeter) { return greeter->over(); }) > 0;
  std::vector<std::uint64_t> gone;
  sessions_.for_each([&](std::uint64_t id, std::unique_ptr<Session>& session) {
    moved |= session->turn();
    if (session->ending()) {
      session_gone(id);
    }
    if (session->gone()) {
      gone.push_back(id);
    }
  });
  for (const std::uint64_t id : gone) {
    sessions_.erase(id);
  }
  for (const auto& recall : recalls_) {
    revoke_if_acknowledged(*recall);
  }
  std::erase_if(recalls_, [this](const auto& recall) { return over(*recall); });
  return moved || !gone.empty();
}

void Owner::close() {
  std::vector<std::uint64_t> all;
  sources_.for_each([&](std::uint64_t id, SourceEntry&) { all.push_back(id); });
  for (const std::uint64_t id : all) {
    close_source(id);
  }
  greeters_.clear();
}

void Owner::abandon() {
  sessions_.for_each([](std::uint64_t, std::unique_ptr<Session>& session) { session->abandon(); });
}

} // namespace wherry

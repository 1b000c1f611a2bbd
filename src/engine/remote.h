// A source as its consumer sees it: one session after another with the same owner, under one
// binding (R21). Runs the control connection and the lanes, deals slices to lanes, and tells
// ledgers what became of them. The shard's leader runs everything, except what is marked "any
// thread".
#pragma once

#include "base/log.h"
#include "engine/control_channel.h"
#include "engine/request_state.h"
#include "engine/shard.h"
#include "path/tcp/consumer_lane.h"
#include "request/admission.h"
#include "wire/frames.h"

#include <wherry/source.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace wherry {

/// What a remote needs of its engine.
class RemoteHost {
public:
  virtual ~RemoteHost() = default;
  virtual const EngineId& engine_id() const = 0;
  virtual const TcpConfig& tcp() const = 0;
  virtual const Limits& limits() const = 0;
  virtual LaneCounters& lane_counters() = 0;
  /// A request that had drained before is settled now (R29).
  virtual void settle_request(std::uint64_t request) = 0;
  /// The request's facts changed: outcome, drain, or both.
  virtual void on_request_changed(RequestState& request) = 0;
  virtual Log& log() = 0;
};

/// An answer on the control connection that somebody waits for. Shared by the waiting thread and
/// the leader; `done` is set last.
struct PendingAnswer {
  std::atomic<bool> done = false;
  std::optional<Error> error;
  wire::ControlMessage message;
};

class Remote final : public ControlHandler, public RemoteRanges {
public:
  Remote(Shard& shard, RemoteHost& host, std::uint64_t id, SourceReference reference,
         std::uint32_t lanes);
  ~Remote() override;

  std::uint64_t id() const { return id_; }

  // -- any thread
  // ------------------------------------------------------------------------------------
  SourceState state() const { return state_.load(std::memory_order_acquire); }
  bool is_open() const {
    return state() == SourceState::open && opening_over_.load(std::memory_order_acquire);
  }
  bool opening_over() const { return opening_over_.load(std::memory_order_acquire); }
  /// Why it is not open; under the mutex.
  Error why() const;
  SourceReference reference() const;
  std::uint32_t ready_lanes() const { return ready_lanes_.load(std::memory_order_relaxed); }
  std::mutex& mutex() const { return mutex_; }
  /// For admission; with the mutex held.
  const RemoteFacts* find(std::uint64_t id) const override;
  void know(const RemoteRange& range);
  /// With the mutex held: whether a WRITE of these operations overlaps bytes that are not settled.
  bool overlaps_unsettled(std::span<const Operation> operations) const;

  // -- the leader
  // ------------------------------------------------------------------------------------
  void open(std::uint64_t deadline_ns);
  void add(RequestState& request);
  /// Passes on a cancellation that was asked for.
  void cancel(RequestState& request);
  /// Sends a control request; the id is filled in. The answer may be there already (with an error).
  void ask(wire::ControlMessage message, const std::shared_ptr<PendingAnswer>& answer);
  void forget(const std::shared_ptr<PendingAnswer>& answer);
  /// No further request comes; ends when those that are here have ended.
  void close_when_idle() { closing_ = true; }
  void cancel_all();
  /// Ends everything now.
  void close_now(const Error& why);
  bool gone() const { return gone_; }
  bool turn(std::uint64_t now_ns);
  std::uint64_t next_deadline_ns() const;

private:
  enum class Phase : std::uint8_t {
    idle,       ///< No session; `state_` says why.
    resolving,  ///< The native worker looks the host name up.
    connecting, ///< To one address after another.
    greeting,   ///< Hello is sent, Welcome is due.
    joining,    ///< The first lanes join.
    open,
    ending, ///< The session is over; its lanes drain.
  };
  class Dialer;
  class LaneEndpoint;
  struct LaneSlot {
    std::unique_ptr<Dialer> dialer;
    std::unique_ptr<LaneEndpoint> endpoint;
    std::uint32_t generation = 0;
    std::uint64_t deadline_ns = never_ns; ///< For the fence or the join that is under way.
    bool ready() const;
  };
  struct Unsettled {
    std::uint64_t request = 0, range = 0, offset = 0, length = 0;
  };

  void on_message(wire::ControlMessage& message) override;
  void on_control_closed(const Error& why) override;
  void on_welcome(const wire::Welcome& welcome);
  void on_refusal(const wire::Refusal& refusal);
  void on_recall(std::uint64_t range);
  void answer_pending(std::uint64_t id, wire::ControlMessage&& message);

  void resolve();
  void connect_next();
  bool progress_connecting(std::uint64_t now_ns);
  void say_hello(SocketId socket);
  void dial_lane(std::uint32_t index);
  bool progress_lanes(std::uint64_t now_ns);
  void on_lane_drained(std::uint32_t index);
  void fail_opening(Error why);
  void lose_session(Error why);
  bool finish_ending();
  void set_state(SourceState state) { state_.store(state, std::memory_order_release); }

  bool deal();
  void list(RequestState& request);
  void unlist(RequestState& request);
  void start_dealing(RequestState& request);
  void stop_dealing(RequestState& request);
  bool any_lane_has_room() const;
  RequestState& listed_request(std::uint64_t id);
  bool deal_request(RequestState& request, std::uint32_t& lane);
  Link* next_lane(std::uint32_t& lane);
  bool collect(Link& link);
  void refuse_slice(RequestState& request, const SlicePlan& plan, ErrorCode code);
  void after_change(RequestState& request);
  void end_early(RequestState& request, Outcome outcome);
  void remember_unsettled(RequestState& request);
  void forget_unsettled(RequestState& request);
  void settle_all();
  bool check_request_deadlines(std::uint64_t now_ns);
  void end_requests(const Error& why, bool all);
  void finish_recalls();

  Shard& shard_;
  RemoteHost& host_;
  const std::uint64_t id_;
  const std::uint32_t lanes_wanted_;

  mutable std::mutex mutex_; // Guards the next five.
  SourceReference reference_;
  Error why_;
  std::unordered_map<std::uint64_t, RemoteFacts> known_;
  std::vector<Unsettled> unsettled_;
  bool everything_unsettled_ = false;

  std::atomic<SourceState> state_ = SourceState::lost;
  std::atomic<bool> opening_over_ = false;
  std::atomic<std::uint32_t> ready_lanes_ = 0;

  Phase phase_ = Phase::idle;
  std::uint64_t opening_deadline_ns_ = 0;
  std::vector<Address> addresses_;
  std::size_t address_ = 0;
  bool resolving_ = false;
  std::unique_ptr<Dialer> dialer_;
  std::unique_ptr<ControlChannel> control_;
  std::vector<std::unique_ptr<ControlChannel>> dead_controls_;
  std::optional<EngineId> owner_;
  wire::Welcome welcome_;
  std::uint64_t previous_session_ = 0;
  std::vector<LaneSlot> lanes_;
  std::uint64_t next_answer_ = 1;
  std::unordered_map<std::uint64_t, std::shared_ptr<PendingAnswer>> pending_;
  std::unordered_map<std::uint64_t, std::uint32_t> fences_; // By the id of the request: the lane.
  std::vector<RequestState*> requests_;                     // Until they have drained, in no order.
  std::vector<RequestState*> by_slot_;                      // The same, by the slot of their id.
  std::vector<RequestState*> dealing_;                      // Those that have slices to give.
  std::vector<RequestState*> refused_;           // That were refused slices in this deal.
  std::uint64_t request_deadline_ns_ = never_ns; // No request's comes before it.
  std::size_t turn_of_ = 0;                      // Whose turn it is among dealing_,
  std::uint32_t next_lane_ = 0;                  // and among lanes.
  std::vector<std::uint64_t> recalls_;
  std::vector<Completion> completions_;
  bool closing_ = false;
  bool gone_ = false;
  std::vector<std::uint64_t> unsettled_requests_;
  bool reopens_to_settle_ = true;
};

} // namespace wherry

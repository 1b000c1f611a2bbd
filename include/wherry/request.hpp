// Batches of operations, their reports, and completion queues.
#pragma once

#include <wherry/capability.hpp>
#include <wherry/error.hpp>
#include <wherry/export.hpp>
#include <wherry/options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::inline v0 {

class EngineCore;
class Registration;
class RemoteSource;
class TransferEngine;
struct RemoteRange;

enum class OperationKind : std::uint8_t { read = 0, write = 1 };

/// One contiguous copy between a local and a remote range. Copied before submit() returns.
struct WHERRY_API Operation {
  OperationKind kind = OperationKind::read;
  std::uint64_t local_range = 0; ///< Registration::id()
  std::uint64_t local_offset = 0;
  std::uint64_t remote_range = 0; ///< RemoteRange::id
  std::uint64_t remote_offset = 0;
  std::uint64_t length_bytes = 0;

  /// READ: remote to local.
  static Operation read(const Registration& local, std::uint64_t local_offset,
                        const RemoteRange& remote, std::uint64_t remote_offset,
                        std::uint64_t length_bytes);
  /// WRITE: local to remote.
  static Operation write(const Registration& local, std::uint64_t local_offset,
                         const RemoteRange& remote, std::uint64_t remote_offset,
                         std::uint64_t length_bytes);
};

/// The logical end of a request.
enum class Outcome : std::uint8_t { completed, failed, cancelled, timed_out };
WHERRY_API std::string_view to_string(Outcome outcome);

/// What the request's WRITEs did to remote bytes (R29).
enum class RemoteEffect : std::uint8_t {
  none,         ///< No byte changed.
  applied,      ///< All bytes are confirmed in place.
  partial,      ///< Exactly the confirmed bytes are in place; nothing else changed.
  acknowledged, ///< The responder's NIC took them (rdma with confirm = ack).
  uncertain,    ///< Other bytes may have changed, and may go on changing until remote_settled.
};
WHERRY_API std::string_view to_string(RemoteEffect effect);

/// The physical end of a request: whether anything may still touch its local bytes (R30).
enum class LocalDrain : std::uint8_t { in_flight, drained, unquiesced };
WHERRY_API std::string_view to_string(LocalDrain drain);

enum class OperationState : std::uint8_t { not_started, confirmed, failed, uncertain };
WHERRY_API std::string_view to_string(OperationState state);

struct Failure {
  Error error;
  std::uint64_t operation = 0; ///< Index in the batch.
};

/// The facts about a request at one moment, consistent with each other (R28).
struct Report {
  std::optional<Outcome> outcome{};  ///< Empty while pending.
  std::uint64_t completed_ops = 0;   ///< Leading operations wholly confirmed.
  std::uint64_t completed_bytes = 0; ///< Theirs, and the confirmed leading bytes of the next one.
  std::optional<Failure> failure{};
  RemoteEffect remote_effect = RemoteEffect::none;
  bool remote_settled = true; ///< Whether remote_effect is final.
  LocalDrain local_drain = LocalDrain::in_flight;
  PathKind path = PathKind::tcp;            ///< Chosen before the request started (R4).
  std::vector<OperationState> operations{}; ///< With SubmitOptions::per_operation, one each.

  bool completed() const { return outcome == Outcome::completed; }
};

enum class OnError : std::uint8_t {
  stop,     ///< What has not started is not sent.
  carry_on, ///< The other operations are still tried (`continue` in the contract).
};

/// What happened to a request: one entry at its outcome, one at its drain.
struct CompletionEntry {
  enum class Kind : std::uint8_t { outcome, drain };
  std::uint64_t user_data = 0;
  Kind kind = Kind::outcome;
  Outcome outcome = Outcome::completed;
  LocalDrain local_drain = LocalDrain::in_flight;
};

/// Where many requests end. Bounded: both entries of a request are reserved at admission. Copies
/// share one queue. Any thread may use it.
class WHERRY_API CompletionQueue {
public:
  /// Takes what is there, at most `out.size()`; never blocks.
  std::size_t poll(std::span<CompletionEntry> out);
  /// As poll, but waits until there is at least one entry or the deadline has come (then 0).
  std::size_t wait(std::span<CompletionEntry> out, Deadline deadline);
  /// A level-triggered eventfd, readable while entries are there. Owned by the queue.
  int fd() const;

private:
  friend class TransferEngine;
  friend class RemoteSource;
  friend class EngineCore;
  struct State;
  explicit CompletionQueue(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

struct CompletionQueueOptions {
  std::uint32_t capacity = 1024; ///< Entries; two a request.
};

struct SubmitOptions {
  /// Ends the outcome as timed_out; never the drain (R30).
  std::optional<std::chrono::nanoseconds> timeout{};
  OnError on_error = OnError::stop;
  bool per_operation = false;
  const CompletionQueue* queue = nullptr;
  std::uint64_t user_data = 0;
  /// Admit WRITEs over bytes that an earlier uncertain WRITE may still change (R29).
  bool allow_unsettled = false;
  PathKind path = PathKind::automatic;
};

/// A submitted batch. Movable; dropping it cancels the request (it never frees memory in flight).
/// Any thread may use it.
class [[nodiscard]] WHERRY_API Request {
public:
  Request(Request&& other) noexcept;
  Request& operator=(Request&& other) noexcept;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request();

  /// The facts now. Never blocks, does no work.
  Report report() const;
  /// Waits for the outcome. If the deadline comes first the report's outcome is empty, and nothing
  /// changed (R31).
  Report wait(Deadline deadline);
  /// Waits for the drain, which implies an outcome.
  Report wait_drained(Deadline deadline);
  /// Asks for the outcome `cancelled`. Bytes already moved stay (R30).
  void cancel();
  /// Lets the request run on without this handle.
  void detach();

private:
  friend class RemoteSource;
  Request(std::shared_ptr<EngineCore> core, std::uint64_t id);
  std::shared_ptr<EngineCore> core_;
  std::uint64_t id_ = 0;
};

} // namespace wherry::inline v0

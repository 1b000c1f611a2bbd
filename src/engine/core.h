// The engine: composition of the rooms. Public handles (engine.cpp) call it; it owns one shard,
// whose leader runs sessions, and the tables that any thread may use.
//
// Threads: "any thread" members lock what they touch. What the leader owns is touched inside
// lead().
#pragma once

#include "base/log.h"
#include "engine/leader.h"
#include "engine/owner.h"
#include "engine/remote.h"
#include "engine/request_state.h"
#include "engine/seams.h"
#include "engine/shard.h"
#include "memory/range_table.h"
#include "path/file/posix_file.h"

#include <wherry/engine.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

namespace wherry::inline v0 {

class EngineCore final : public std::enable_shared_from_this<EngineCore>, public RemoteHost {
public:
  EngineCore(EngineOptions options, Seams seams);
  ~EngineCore() override;
  void start();

  std::string id() const { return self_.to_string(); }

  // -- registrations (any thread)
  // --------------------------------------------------------------------
  struct Registered {
    std::uint64_t id = 0;
    std::uint64_t length_bytes = 0;
  };
  Result<Registered> register_memory(std::span<std::byte> bytes, RegisterOptions options);
  Result<Registered> register_file(const std::string& path, const FileOptions& options);
  Result<Retired> retire(std::uint64_t registration, Deadline deadline);
  void drop_registration(std::uint64_t registration);
  Result<void> set_registration_budget(std::uint32_t registrations, std::uint64_t registered_bytes);

  // -- sources
  // ----------------------------------------------------------------------------------------
  struct PublishedAs {
    std::uint64_t id = 0;
    SourceReference reference;
  };
  Result<PublishedAs> publish(std::string_view name, const SourceOptions& options,
                              std::span<const NamedRange> ranges);
  Result<void> add_ranges(std::uint64_t source, std::span<const NamedRange> ranges);
  Result<Retired> withdraw(std::uint64_t source, std::string_view name, Deadline deadline);
  void drop_source(std::uint64_t source);

  // -- remotes
  // ----------------------------------------------------------------------------------------
  struct Opened {
    std::uint64_t id = 0;
    SourceReference reference;
  };
  Result<Opened> open(const SourceReference& reference, const OpenOptions& options);
  SourceState remote_state(std::uint64_t remote) const;
  std::vector<Route> routes(std::uint64_t remote) const;
  Result<Description> describe(std::uint64_t remote, std::optional<std::uint64_t> page,
                               Deadline deadline);
  Result<RemoteRange> lookup(std::uint64_t remote, std::string_view name, Deadline deadline);
  Result<Digest> checksum(std::uint64_t remote, const RemoteRange& range, std::uint64_t offset,
                          std::uint64_t length_bytes, Deadline deadline);
  void drop_remote(std::uint64_t remote);

  // -- requests
  // ---------------------------------------------------------------------------------------
  Result<std::uint64_t> submit(std::uint64_t remote, std::span<const Operation> operations,
                               const SubmitOptions& options, std::shared_ptr<QueueState> queue);
  Report report(std::uint64_t request) const;
  Report wait(std::uint64_t request, bool for_drain, Deadline deadline);
  void cancel(std::uint64_t request);
  /// The handle is gone: the request is cancelled unless it may run on.
  void drop_request(std::uint64_t request, bool run_on);
  std::size_t wait_queue(QueueState& queue, std::span<CompletionEntry> out, Deadline deadline);
  /// Does what can be done without blocking, if nobody else is at it.
  void help();

  // -- the engine
  // -------------------------------------------------------------------------------------
  std::vector<PathCapability> capabilities() const;
  std::vector<Counter> counters();
  bool progress();
  Result<void> close(Deadline deadline);
  /// For the last handle: closes within close_timeout; false if something had to be left behind.
  bool close_for_good();
  std::uint64_t earliest_deadline_ns();

  // RemoteHost
  const EngineId& engine_id() const override { return self_; }
  const TcpConfig& tcp() const override { return options_.tcp; }
  const Limits& limits() const override { return options_.limits; }
  LaneCounters& lane_counters() override { return lane_counters_; }
  void on_request_changed(RequestState& request) override;
  void settle_request(std::uint64_t request) override;
  Log& log() override { return log_; }

private:
  struct Retirement {
    std::uint64_t registration = 0;
    std::vector<std::shared_ptr<RecallState>> recalls;
    std::atomic<bool> over = false;
  };

  /// Runs `f` while leading.
  template <class F>
  auto lead(F&& f);
  /// Waits for `done` (thread-safe), leading meanwhile where this thread may. False: the time has
  /// come.
  template <class Done>
  bool wait_until(std::uint64_t deadline_ns, Done&& done);
  template <class Done>
  bool drive_until(std::uint64_t deadline_ns, Done&& done);
  bool turn(std::uint64_t block_until_ns);
  void turn_once(std::uint64_t deadline_ns);
  void give_up_lead(bool attention);
  void run_thread();
  bool on_turn(std::uint64_t now_ns);
  bool has_inbox();
  bool take_inbox();
  void end_orphan(RequestState& request);
  void command(UniqueFunction<void()> command);
  bool progress_retirements();
  std::shared_ptr<Retirement> begin_retirement(std::uint64_t registration);
  static std::uint64_t to_ns(Deadline deadline);

  Result<std::vector<RangeToPublish>> ranges_to_publish(std::span<const NamedRange> ranges) const;
  Result<std::uint64_t> new_epoch(const std::string& epoch_file);
  std::shared_ptr<Remote> remote(std::uint64_t id) const;
  Result<std::shared_ptr<Remote>> usable_remote(std::uint64_t id) const;
  Result<wire::ControlMessage> ask(std::uint64_t remote, wire::ControlMessage message,
                                   Deadline deadline);
  RequestState* find_request(std::uint64_t id) const;
  RequestState* new_request();
  void recycle_if_over(RequestState& request);
  static Error closed_error();

  const EngineOptions options_;
  Seams seams_;
  Log log_;
  const EngineId self_;
  FileCache file_cache_;
  RangeTable ranges_;
  RequestBudgets request_budgets_;
  LaneCounters lane_counters_;
  Shard shard_;
  Owner owner_;
  Leader leader_;
  std::thread thread_;
  std::atomic<bool> closed_ = false;

  std::mutex inbox_mutex_;
  std::vector<RequestState*> submitted_;
  std::vector<RequestState*> taking_;
  std::vector<UniqueFunction<void()>> commands_;
  std::atomic<bool> inbox_ = false;

  mutable std::mutex remotes_mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Remote>> remotes_;
  std::uint64_t next_remote_ = 1;
  std::vector<std::shared_ptr<Remote>> running_remotes_; // The leader's.

  mutable std::mutex requests_mutex_;
  mutable SlotMap<RequestState*> requests_;
  std::vector<std::unique_ptr<RequestState>> all_requests_;
  std::vector<RequestState*> free_requests_;
  std::atomic<std::uint64_t> outstanding_ = 0;

  std::vector<std::shared_ptr<Retirement>> retirements_; // The leader's.

  struct RequestCounters {
    std::atomic<std::uint64_t> submitted = 0, refused = 0, completed = 0, failed = 0, cancelled = 0,
                               timed_out = 0;
  };
  RequestCounters request_counters_;
};

} // namespace wherry::inline v0

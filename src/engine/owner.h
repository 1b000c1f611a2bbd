// The owner's side of sessions: listeners, connections that have not said who they are, sessions
// with their lanes, and recalls (R18, R24). The shard's leader runs all of it.
#pragma once

#include "base/log.h"
#include "engine/control_channel.h"
#include "engine/shard.h"
#include "memory/range_table.h"
#include "path/tcp/owner_lane.h"
#include "source/source_table.h"
#include "wire/frames.h"

#include <wherry/options.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace wherry {

class Owner;

/// A recall of one published range, until its peers have acknowledged it, are lost, or are cut, and
/// nothing that they had begun uses it any more.
struct RecallState {
  std::uint64_t source = 0;
  std::uint64_t range = 0;
  std::uint64_t registration = 0;
  std::string name;                    ///< The range's, which another may have by now.
  std::vector<std::uint64_t> sessions; ///< That have not acknowledged.
  std::uint32_t cut = 0;               ///< Sessions whose lanes were ended for it.
  bool revoked = false;                ///< Nobody can start on the range any more.
};

class Owner {
public:
  Owner(Shard& shard, RangeTable& ranges, const EngineId& self, const TcpConfig& tcp,
        const Limits& limits, LaneCounters& lane_counters, Log& log);
  ~Owner();

  /// Listens (or shares the listener of that address) and publishes, under `epoch`. Returns the id
  /// and the address that was bound. Errors: io_error (bind), invalid_argument (name taken,
  /// ranges).
  struct Published {
    std::uint64_t id = 0;
    Address bound;
  };
  Result<Published> publish(const std::string& name, std::uint64_t epoch, const Address& listen,
                            std::span<const RangeToPublish> ranges);
  Result<void> add(std::uint64_t source, std::span<const RangeToPublish> ranges);

  void close_source(std::uint64_t source);
  bool published(std::uint64_t registration) const;

  /// Starts taking a range back from one source, or from all.
  std::shared_ptr<RecallState> recall(std::uint64_t source, std::uint64_t range);
  std::vector<std::shared_ptr<RecallState>> recall_registration(std::uint64_t registration);
  /// Of the range of that name; or the recall of one that had it and is not over.
  /// Error: not_found.
  Result<std::shared_ptr<RecallState>> recall_named(std::uint64_t source, std::string_view name);
  /// The deadline has come: sessions that have not acknowledged lose their lanes.
  void force(RecallState& recall);
  /// Whether lanes that were cut for it may still touch the range.
  bool over(const RecallState& recall);

  /// Ends everything; over when idle().
  void close();
  /// After close(): peers that do not take their last words are not waited for.
  void abandon();
  bool idle() const { return sessions_.empty() && greeters_.empty(); }
  bool serves() const { return !listeners_.empty(); }
  bool turn(std::uint64_t now_ns);

  struct Counters {
    std::uint64_t sessions_opened = 0, sessions_refused = 0, connections_refused = 0, strangers = 0,
                  recalls = 0, checksums = 0;
  };
  const Counters& counters() const { return counters_; }
  std::size_t sessions() const { return sessions_.size(); }
  std::size_t handshakes() const { return greeters_.size(); }
  std::size_t sources() const { return sources_.size(); }

private:
  class Listening;
  class Greeter;
  class Session;
  struct SourceEntry {
    SourceEntry(std::string name, std::uint64_t epoch) : source(std::move(name), epoch) {}
    PublishedSource source;
    std::uint64_t listener = 0;
    bool closing = false;
  };

  void on_connection(SocketId socket);
  /// A greeter has read a Hello, or a LaneJoin.
  void on_hello(Greeter& greeter, const wire::Hello& hello);
  Session* admit_lane(const wire::LaneJoin& join, ErrorCode& refused);
  SourceEntry* find_source(std::string_view name);
  void on_acknowledged(std::uint64_t session, std::uint64_t range);
  void revoke_if_acknowledged(RecallState& recall);
  void session_gone(std::uint64_t session);

  Shard& shard_;
  RangeTable& ranges_;
  const EngineId self_;
  const TcpConfig& tcp_;
  const Limits& limits_;
  LaneCounters& lane_counters_;
  Log& log_;
  SlotMap<SourceEntry> sources_;
  std::unordered_map<std::string, std::uint64_t> sources_by_name_;
  SlotMap<std::unique_ptr<Listening>> listeners_;
  std::vector<std::unique_ptr<Greeter>> greeters_;
  SlotMap<std::unique_ptr<Session>> sessions_;
  std::vector<std::shared_ptr<RecallState>> recalls_;
  Counters counters_;
};

} // namespace wherry

// The users of the world: who publishes ranges, and who opens sources and moves bytes. They keep
// what a user keeps (handles, memory, files, queues) and tell the oracle what they do.
#pragma once

#include "world/oracle.h"
#include "world/world.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wherry::world {

/// Publishes one source, always at the same address and name; its epoch changes with its engine.
class Publisher {
public:
  struct Range {
    std::string name;
    Visibility visibility{};
    std::shared_ptr<std::vector<std::byte>> memory; ///< Null: a file.
    std::string path;
    std::uint64_t length = 0;
    std::optional<Registration> registration;
    std::weak_ptr<void> kept_alive;
    RangeModel* model = nullptr;
    bool published = false;
    bool spoiled = false; ///< Its file is not what was registered.
  };

  Publisher(World& world, Oracle& oracle, Process& process, std::uint16_t port);
  /// From now on its epochs come from a file, and increase (R20).
  void use_epoch_file() { epoch_file_ = "/" + process_.host + "/epoch"; }

  Range& add_memory(std::uint64_t length, Visibility visibility);
  Range& add_file(std::uint64_t length, Visibility visibility);

  /// A new engine, a new epoch; what stood in the ranges is gone.
  void start();
  /// The process is killed.
  void crash();
  /// It closes its engine in good order. Requests of peers may fail, but nobody hangs.
  void leave();
  bool up() const { return source_.has_value(); }

  /// Ok means that nobody reaches the bytes any more (R24, R18). Retired ranges get other memory
  /// and are registered and published again by republish().
  void withdraw(Range& range, std::uint64_t limit_ns);
  void retire(Range& range, std::uint64_t limit_ns);
  void republish(Range& range);
  /// Somebody else changes the file of the range: nobody may get bytes of it any more (R23).
  void spoil(Range& range);

  Process& process() { return process_; }
  const SourceReference& reference() const { return reference_; }
  std::uint64_t epoch() const { return *reference_.epoch; }
  std::vector<std::unique_ptr<Range>>& ranges() { return ranges_; }
  /// The bytes behind a name under an epoch; null if it was not published then.
  RangeModel* model(std::uint64_t epoch, const std::string& name) const;
  std::uint32_t recalls() const { return recalls_; }

private:
  void begin_model(Range& range);
  void register_range(Range& range);
  void forget_everything();
  std::string next_name() const;

  World& world_;
  Oracle& oracle_;
  Process& process_;
  SourceReference reference_;
  std::optional<Source> source_;
  std::string epoch_file_;
  std::vector<std::unique_ptr<Range>> ranges_;
  std::map<std::pair<std::uint64_t, std::string>, RangeModel*> models_;
  std::uint32_t recalls_ = 0;
};

/// Opens sources and submits batches.
class Consumer {
public:
  struct Known {
    std::string name;
    RemoteRange range;
    RangeModel* model = nullptr;
  };
  struct Handle {
    std::uint32_t number = 0;
    Publisher* publisher = nullptr;
    std::uint64_t epoch = 0;
    std::optional<RemoteSource> remote;
    std::vector<Known> known;
    bool was_stale = false;
  };
  struct Local {
    LocalModel* model = nullptr;
    std::shared_ptr<std::vector<std::byte>> memory;
    std::optional<Registration> registration;
    bool retiring = false;
  };
  struct Queue {
    std::optional<CompletionQueue> queue;
    std::uint32_t capacity = 0;
  };

  Consumer(World& world, Oracle& oracle, Process& process, std::uint32_t number);

  /// What it has whenever its process begins: filled in by whoever makes it.
  std::function<void(Consumer&)> furnish;
  void start();
  /// The process is killed: no report and no entry comes any more.
  void crash();
  bool up() const { return process_.engine.has_value(); }

  Local& add_memory(std::uint64_t length);
  Local& add_file(std::uint64_t length);
  Queue& add_queue(std::uint32_t capacity);

  /// Null if it could not be opened; `refused` says why.
  Handle* open(Publisher& publisher, const SourceReference& reference, std::uint32_t lanes,
               std::uint64_t limit_ns, std::optional<Error>* refused = nullptr);
  /// Asks the owner for what it publishes; what is known already is known anew.
  Result<void> look_up(Handle& handle, std::uint64_t limit_ns);
  /// Null if the batch was refused; `refused` says why. Looks at all reports before.
  RequestModel* submit(Handle& handle, std::vector<OperationModel> parts, SubmitOptions options,
                       std::optional<Error>* refused = nullptr);
  /// Has the owner compute a checksum (R23), and compares where nothing moves.
  Result<void> ask_checksum(Handle& handle, const Known& known, std::uint64_t offset,
                            std::uint64_t length, std::uint64_t limit_ns);
  /// Registers small ranges until the budget is used up (R13), and gives them back.
  void use_up_registrations();
  void poll_queues();
  /// All handles of sources; requests go on.
  void close_handles();
  /// Retires a local range; false if requests still hold it.
  bool retire(Local& local, std::uint64_t limit_ns);
  /// Other memory in the place of a range that has retired.
  void renew(Local& local);

  Process& process() { return process_; }
  std::uint32_t number() const { return number_; }
  std::vector<std::unique_ptr<Handle>>& handles() { return handles_; }
  std::vector<std::unique_ptr<Local>>& locals() { return locals_; }
  std::vector<std::unique_ptr<Queue>>& queues() { return queues_; }
  /// How long a drain may take after the outcome (R36).
  std::uint64_t drain_limit_ns() const;
  std::uint64_t patience_ns = 1 * ms;

private:
  void make_memory(Local& local, std::uint64_t length);
  void make_file(Local& local, std::uint64_t length);

  World& world_;
  Oracle& oracle_;
  Process& process_;
  const std::uint32_t number_;
  std::vector<std::unique_ptr<Handle>> handles_;
  std::vector<std::unique_ptr<Local>> locals_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<std::unique_ptr<Local>> former_locals_; ///< Looked at to the end.
  std::uint32_t handles_made_ = 0;
};

/// The value of one counter of the process's engine.
std::uint64_t counter(Process& process, std::string_view name);
/// The named gauges that are not zero, as text; empty if all are.
std::string nonzero_gauges(Process& process, std::initializer_list<std::string_view> names);

} // namespace wherry::world

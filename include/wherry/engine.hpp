// The transfer engine: registrations, sources, requests. Start reading here.
//
//   auto engine = wherry::TransferEngine::create({});
//   auto range  = engine->register_memory(bytes, {.visibility = wherry::Visibility::remote_read});
//   auto source = engine->publish("weights", {}, {{"layer0", *range}});
#pragma once

#include <wherry/capability.hpp>
#include <wherry/error.hpp>
#include <wherry/export.hpp>
#include <wherry/options.hpp>
#include <wherry/registration.hpp>
#include <wherry/request.hpp>
#include <wherry/source.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::inline v0 {

class EngineCore;

/// One number of a snapshot. Names follow the Prometheus conventions, without the `wherry_` prefix.
struct Counter {
  std::string_view name; ///< Static.
  std::uint64_t value = 0;
  bool gauge = false; ///< May fall again.
};

/// One engine. Movable; any thread may call it. Dropping it closes within
/// EngineOptions::close_timeout; what remains after that is retained and logged, never freed.
class [[nodiscard]] WHERRY_API TransferEngine {
public:
  /// Errors: invalid_argument (an option, named), unavailable, resource_exhausted.
  static Result<TransferEngine> create(EngineOptions options = {});

  TransferEngine(TransferEngine&& other) noexcept;
  TransferEngine& operator=(TransferEngine&& other) noexcept;
  TransferEngine(const TransferEngine&) = delete;
  TransferEngine& operator=(const TransferEngine&) = delete;
  ~TransferEngine();

  /// 32 hexadecimal digits; another one for every engine.
  std::string id() const;

  /// Registers host memory. Errors: invalid_argument (empty, wraps around, not mapped),
  /// resource_exhausted (names the budget).
  Result<Registration> register_memory(std::span<std::byte> bytes, RegisterOptions options = {});
  /// Registers a range of a regular file. Blocks for one stat. Errors: invalid_argument, io_error,
  /// not_found, unavailable (the file engine), resource_exhausted.
  Result<Registration> register_file(const std::string& path, FileOptions options = {});

  /// Publishes ranges under a new epoch. Errors: invalid_argument, io_error (the address),
  /// access_denied (a local_only range).
  Result<Source> publish(std::string_view name, const SourceOptions& options,
                         std::span<const NamedRange> ranges);
  Result<Source> publish(std::string_view name, const SourceOptions& options,
                         std::initializer_list<NamedRange> ranges) {
    return publish(name, options, std::span<const NamedRange>(ranges.begin(), ranges.size()));
  }

  /// Opens a source: connects, greets, is bound to what answers (R21), joins its lanes. Blocks.
  /// Errors: not_found, stale_epoch, protocol_mismatch, connection_lost, timed_out, unavailable.
  Result<RemoteSource> open(const SourceReference& reference, const OpenOptions& options = {});
  /// As above, from the text of a reference.
  Result<RemoteSource> open(std::string_view reference, const OpenOptions& options = {});

  Result<CompletionQueue> completion_queue(CompletionQueueOptions options = {});

  /// What each path answers (R1); `ready` is not_asked.
  std::vector<PathCapability> capabilities() const;
  /// All counters, at one moment.
  std::vector<Counter> counters() const;

  /// Moves the budgets of registrations; never below what is in use (R13).
  Result<void> set_registration_budget(std::uint32_t registrations, std::uint64_t registered_bytes);

  /// With threads = 0: does what there is to do, without blocking. Returns whether there was any.
  bool progress();

  /// Stops admission, cancels what runs, waits for drains, ends sessions and threads.
  /// Errors: busy (requests were not drained by the deadline; call again).
  Result<void> close(Deadline deadline);

private:
  friend class EngineAccess; // src/engine: creates engines on other seams, for tests
  explicit TransferEngine(std::shared_ptr<EngineCore> core);
  std::shared_ptr<EngineCore> core_;
};

/// "0.1.0", the commit it was built from, and the protocol it speaks.
struct Version {
  std::string_view version;
  std::string_view commit;
  std::uint16_t protocol = 0;
};
WHERRY_API Version version();

} // namespace wherry::inline v0

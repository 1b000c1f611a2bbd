// Requests in flight on one source, and what ends them before their time: a signal, a stall, the
// time limit. One thread. When told to stop it cancels, and still hands over every request's last
// report.
#pragma once

#include "interrupt.h"
#include "options.h"
#include "progress.h"
#include "session.h"

#include <wherry/request.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace wherry::cli {

/// The length of the operations into which `length_bytes` are cut: small enough that none is long
/// in flight, large enough that there are few thousand of them.
std::uint64_t operation_bytes(std::uint64_t length_bytes);

class TransferWindow {
public:
  static constexpr std::uint32_t requests_max = 256;

  struct Ended {
    std::uint64_t tag = 0;
    Report report;
  };

  static Result<TransferWindow> create(Session& session, const TransferOptions& options,
                                       PathKind path, Interrupt& interrupt, Progress& progress);

  /// As RemoteSource::submit. At most requests_max at a time.
  Result<void> submit(std::uint64_t tag, std::span<const Operation> operations, bool per_operation);
  std::size_t in_flight() const { return in_flight_; }
  /// Waits until one of the requests has drained, or was given up after a stop. Needs one in
  /// flight.
  Ended next();

  /// Cancels everything. The first reason stays.
  void stop(Error reason);
  const std::optional<Error>& stopped() const { return stopped_; }
  /// Looks for a reason to stop: for those who do other work between requests.
  void check();
  /// Tells that time was spent on work here, which is no stall of the owner's.
  void worked() { last_change_ = Clock::now(); }

private:
  using Clock = std::chrono::steady_clock;

  struct Slot {
    Request request;
    std::uint64_t tag;
  };

  TransferWindow(Session& session, const TransferOptions& options, PathKind path,
                 Interrupt& interrupt, Progress& progress, CompletionQueue queue);
  void collect();
  void tick();
  Ended take(std::size_t index);

  RemoteSource& remote_;
  const TransferOptions& options_;
  const PathKind path_;
  Interrupt& interrupt_;
  Progress& progress_;
  CompletionQueue queue_;
  std::vector<std::optional<Slot>> slots_;
  std::deque<std::size_t> drained_; // slots
  std::size_t in_flight_ = 0;
  std::uint64_t ended_bytes_ = 0;
  std::uint64_t seen_bytes_ = 0;
  Clock::time_point started_ = Clock::now();
  Clock::time_point last_change_ = started_;
  Clock::time_point given_up_at_ = Clock::time_point::max();
  std::optional<Error> stopped_;
};

} // namespace wherry::cli

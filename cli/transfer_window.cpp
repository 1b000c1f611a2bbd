#include "transfer_window.h"

#include "errors.h"
#include "units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

namespace wherry::cli {
namespace {

constexpr std::uint64_t operation_bytes_least = std::uint64_t{64} << 20;
constexpr std::uint64_t operations_max = 4096; // of one request
constexpr std::chrono::milliseconds tick_interval{50};
// Longer than a cancelled write may take to finish its segment (TcpConfig::cancel_grace).
constexpr std::chrono::milliseconds drain_grace{1500};

} // namespace

std::uint64_t operation_bytes(std::uint64_t length_bytes) {
  return std::max(operation_bytes_least, length_bytes / operations_max + 1);
}

Result<TransferWindow> TransferWindow::create(Session& session, const TransferOptions& options,
                                              PathKind path, Interrupt& interrupt,
                                              Progress& progress) {
  auto queue = session.engine.completion_queue({.capacity = 2 * requests_max});
  if (!queue) {
    return fail(queue.error());
  }
  return TransferWindow(session, options, path, interrupt, progress, std::move(*queue));
}

TransferWindow::TransferWindow(Session& session, const TransferOptions& options, PathKind path,
                               Interrupt& interrupt, Progress& progress, CompletionQueue queue)
    : remote_(session.remote), options_(options), path_(path), interrupt_(interrupt),
      progress_(progress), queue_(std::move(queue)), slots_(requests_max) {}

Result<void> TransferWindow::submit(std::uint64_t tag, std::span<const Operation> operations,
                                    bool per_operation) {
  const auto free = std::find(slots_.begin(), slots_.end(), std::nullopt);
  if (free == slots_.end()) {
    return fail(ErrorCode::resource_exhausted,
                fmt::format("{} requests are in flight, which is the most", requests_max));
  }
  SubmitOptions submit_options;
  submit_options.queue = &queue_;
  submit_options.user_data = static_cast<std::uint64_t>(free - slots_.begin());
  submit_options.per_operation = per_operation;
  submit_options.on_error = per_operation ? OnError::carry_on : OnError::stop;
  submit_options.path = path_;
  auto request = remote_.submit(operations, submit_options);
  if (!request) {
    return fail(request.error());
  }
  if (in_flight_ == 0) {
    worked(); // until now there was nothing that could have moved
  }
  free->emplace(Slot{std::move(*request), tag});
  ++in_flight_;
  return {};
}

TransferWindow::Ended TransferWindow::next() {
  for (;;) {
    collect();
    tick();
    check();
    if (!drained_.empty()) {
      const std::size_t slot = drained_.front();
      drained_.pop_front();
      return take(slot);
    }
    if (Clock::now() >= given_up_at_) {
      // What has not drained by now stays with the engine; its report says so.
      const auto left = std::find_if(slots_.begin(), slots_.end(),
                                     [](const auto& slot) { return slot.has_value(); });
      return take(static_cast<std::size_t>(left - slots_.begin()));
    }
  }
}

// Waits a tick at most for requests that drained.
void TransferWindow::collect() {
  std::array<CompletionEntry, 64> entries;
  const Deadline deadline = drained_.empty() ? Deadline::after(tick_interval) : Deadline::now();
  const std::size_t count = queue_.wait(entries, deadline);
  for (std::size_t i = 0; i < count; ++i) {
    const auto slot = static_cast<std::size_t>(entries[i].user_data);
    if (entries[i].kind == CompletionEntry::Kind::drain && slots_[slot]) {
      drained_.push_back(slot);
    }
  }
}

void TransferWindow::check() {
  if (stopped_) {
    return;
  }
  const auto now = Clock::now();
  if (const int signal = interrupt_.signal(); signal != 0) {
    stop(make_error(ErrorCode::cancelled,
                    fmt::format("ended by {}", signal == SIGINT ? "SIGINT" : "SIGTERM")));
  } else if (options_.timeout && now - started_ >= *options_.timeout) {
    stop(make_error(ErrorCode::timed_out,
                    fmt::format("not done after {}", format_seconds(*options_.timeout))));
  } else if (in_flight_ > 0 && drained_.empty() && now - last_change_ >= options_.stall_timeout) {
    stop(make_error(ErrorCode::stalled,
                    fmt::format("no byte moved for {}", format_seconds(options_.stall_timeout))));
  }
}

void TransferWindow::stop(Error reason) {
  if (stopped_) {
    return;
  }
  stopped_ = std::move(reason);
  given_up_at_ = Clock::now() + drain_grace;
  for (auto& slot : slots_) {
    if (slot) {
      slot->request.cancel();
    }
  }
}

// Sums up what has moved, for the progress line and for the stall clock.
void TransferWindow::tick() {
  std::uint64_t bytes = ended_bytes_;
  for (const auto& slot : slots_) {
    if (slot) {
      bytes += slot->request.report().completed_bytes;
    }
  }
  if (bytes != seen_bytes_ || !drained_.empty()) {
    seen_bytes_ = bytes;
    last_change_ = Clock::now();
  }
  progress_.update(bytes);
}

TransferWindow::Ended TransferWindow::take(std::size_t index) {
  Ended result;
  if (std::optional<Slot>& slot = slots_[index]) {
    result = {slot->tag, slot->request.report()};
    ended_bytes_ += result.report.completed_bytes;
    slot.reset();
    --in_flight_;
  }
  return result;
}

} // namespace wherry::cli

#include "world/oracle.h"

#include <fmt/format.h>

#include <algorithm>

namespace wherry::world {
namespace {

constexpr std::uint32_t slice_bytes = 1 << 20;

bool is_drained(const Report& report) {
  return report.local_drain == LocalDrain::drained;
}

bool is_unsettled(const Report& report) {
  return report.outcome && report.remote_effect == RemoteEffect::uncertain &&
         !report.remote_settled;
}

std::uint64_t write_slices(const RequestModel& request) {
  std::uint64_t slices = 0;
  for (const Operation& operation : request.operations) {
    if (operation.kind == OperationKind::write) {
      slices += (operation.length_bytes + slice_bytes - 1) / slice_bytes;
    }
  }
  return slices;
}

bool overlap(const Operation& a, const Operation& b) {
  return a.remote_range == b.remote_range && a.length_bytes > 0 && b.length_bytes > 0 &&
         a.remote_offset < b.remote_offset + b.length_bytes &&
         b.remote_offset < a.remote_offset + a.length_bytes;
}

bool reads_contended_bytes(const RequestModel& request) {
  return std::any_of(request.parts.begin(), request.parts.end(), [](const OperationModel& part) {
    return part.read && part.read->is_contended();
  });
}

/// What the engine would say if it lied in that way.
Report lie_about(Lie lie, const Asked& asked, Report report) {
  const bool uncertain = report.remote_effect == RemoteEffect::uncertain;
  switch (lie) {
  case Lie::none:
    break;
  case Lie::one_byte_more:
    if (report.completed_ops < asked.operations.size() &&
        confirmed_bytes(asked, report, report.completed_ops) + 1 <
            asked.operations[report.completed_ops].length_bytes) {
      ++report.completed_bytes;
    }
    break;
  case Lie::drained_early:
    if (report.outcome) {
      report.local_drain = LocalDrain::drained;
    }
    break;
  case Lie::certain_early:
    if (uncertain && is_drained(report) && report.completed_bytes == 0) {
      report.remote_effect = RemoteEffect::none;
      report.remote_settled = true;
    }
    break;
  case Lie::settled_early:
    if (uncertain && is_drained(report)) {
      report.remote_settled = true;
    }
    break;
  case Lie::changed_outcome:
    if (report.outcome == Outcome::failed && is_drained(report) && report.remote_settled) {
      report.outcome = Outcome::cancelled;
    }
    break;
  }
  return report;
}

} // namespace

// --- What the world tells ---------------------------------------------------------------------

RangeModel& Oracle::new_range(std::string name, RangeModel::Bytes live) {
  ranges_.push_back(std::make_unique<RangeModel>(std::move(name), std::move(live)));
  if (bits_flip_) {
    ranges_.back()->let_bits_flip();
  }
  return *ranges_.back();
}

void Oracle::end_range(RangeModel& range) {
  if (auto wrong = range.check(0, range.length())) {
    world_.blame(*wrong);
  }
  range.freeze(now());
}

RequestModel& Oracle::about_to_submit(RequestModel request) {
  requests_.push_back(std::make_unique<RequestModel>(std::move(request)));
  RequestModel& made = *requests_.back();
  made.number = static_cast<std::uint32_t>(requests_.size());
  made.submitted_ns = world_.now_ns();
  made.disturbed = !calm_;
  const Moment moment = now();
  for (OperationModel& part : made.parts) {
    const Operation& operation = part.operation;
    if (operation.length_bytes == 0) {
      continue;
    }
    if (operation.kind == OperationKind::read) {
      part.read =
          std::make_unique<ReadModel>(*part.range, operation.remote_offset, operation.length_bytes);
    } else {
      part.range->write_begins(part.writer, operation.remote_offset, operation.length_bytes,
                               moment);
    }
  }
  return made;
}

void Oracle::is_admitted(RequestModel& request, Request handle) {
  request.admitted = true;
  request.request.emplace(std::move(handle));
  open_.push_back(&request);
}

void Oracle::is_refused(RequestModel& request) {
  for (OperationModel& part : request.parts) {
    if (part.writer != 0) {
      part.range->write_never_happened(part.writer, part.operation.remote_offset,
                                       part.operation.length_bytes);
    }
  }
  give_locals_back(request);
  request.closed = true;
  request.parts.clear();
}

void Oracle::cancel(RequestModel& request) {
  request.cancel_asked = true;
  request.request->cancel();
}

void Oracle::drop(RequestModel& request) {
  request.cancel_asked = true;
  request.dropped = true;
  request.request.reset();
}

void Oracle::set_calm(bool calm) {
  calm_ = calm;
  if (calm) {
    return;
  }
  for (RequestModel* request : open_) {
    request->disturbed = true;
  }
}

// --- Reports
// --------------------------------------------------------------------------------------

void Oracle::blame(const RequestModel& request, std::string_view what) {
  world_.blame(fmt::format("request {}: {} ({})", request.number, what, describe(request.last)));
}

Asked Oracle::asked(const RequestModel& request) {
  const bool time_is_up =
      request.options.timeout &&
      world_.now_ns() >= add_ns(request.submitted_ns,
                                static_cast<std::uint64_t>(request.options.timeout->count()));
  return {request.operations, request.options.per_operation, request.cancel_asked, time_is_up};
}

Report Oracle::report_of(RequestModel& request) {
  Report report = request.request->report();
  return lie_ == Lie::none ? report : lie_about(lie_, asked(request), std::move(report));
}

void Oracle::look() {
  // Walked by index: judging closes requests, which leave at the end.
  for (std::size_t i = 0; i < open_.size(); ++i) {
    if (!open_[i]->dropped) {
      look_at(*open_[i]);
    }
  }
  std::erase_if(open_, [](const RequestModel* request) { return request->closed; });
}

void Oracle::look_at(RequestModel& request) {
  const Report report = report_of(request);
  const Asked known = asked(request);
  if (auto wrong = check_report(known, report)) {
    request.last = report;
    return blame(request, *wrong);
  }
  if (request.looked) {
    if (auto wrong = check_change(known, request.last, report)) {
      return blame(request, fmt::format("{}; now {}", *wrong, describe(report)));
    }
  }
  request.looked = true;
  judge(request, report);
}

void Oracle::note_news(const RequestModel& request, const Report& report) {
  const Report& last = request.last;
  const bool news = report.outcome != last.outcome ||
                    report.completed_bytes != last.completed_bytes ||
                    report.local_drain != last.local_drain ||
                    (last.outcome && report.remote_settled != last.remote_settled);
  if (!news) {
    return;
  }
  world_.trace().note(
      "report", {{"request", request.number},
                 {"outcome", report.outcome ? 1U + static_cast<unsigned>(*report.outcome) : 0},
                 {"bytes", report.completed_bytes},
                 {"effect", static_cast<unsigned>(report.remote_effect)},
                 {"settled", report.remote_settled},
                 {"drain", static_cast<unsigned>(report.local_drain)}});
  if (world_.trace().verbose()) {
    world_.trace().tell(fmt::format("request {}: {}", request.number, describe(report)));
  }
}

void Oracle::judge(RequestModel& request, const Report& report) {
  note_news(request, report);
  if (report.outcome && !request.last.outcome) {
    request.outcome_ns = world_.now_ns();
  }
  const bool drains_now = is_drained(report) && !request.local_over;
  request.last = report;
  take_confirmed(request, report);
  judge_times(request, report);
  if (drains_now) {
    judge_cause(request, report);
    take_drained(request, report);
  }
  if (is_drained(report) && report.remote_settled && !request.closed) {
    take_settled(request, report);
  }
}

// What is confirmed is in place: remote bytes of WRITEs, local bytes of READs.
void Oracle::take_confirmed(RequestModel& request, const Report& report) {
  const Asked known = asked(request);
  for (std::size_t i = 0; i < request.parts.size(); ++i) {
    OperationModel& part = request.parts[i];
    const std::uint64_t confirmed = confirmed_bytes(known, report, i);
    if (confirmed <= part.confirmed) {
      continue;
    }
    const std::uint64_t from = part.confirmed;
    const std::uint64_t count = confirmed - from;
    part.confirmed = confirmed;
    std::optional<std::string> wrong;
    if (part.operation.kind == OperationKind::write) {
      const std::uint64_t at = part.operation.remote_offset + from;
      part.range->write_is_confirmed(part.writer, at, count, now());
      wrong = part.range->check(at, count);
    } else {
      const std::uint64_t at = part.operation.local_offset + from;
      wrong = part.read->check(from, part.local->bytes(at, count));
      part.local->note(at, count);
    }
    if (wrong) {
      return blame(request, fmt::format("operation {}, bytes {} to {} are confirmed: {}", i, from,
                                        confirmed, *wrong));
    }
  }
}

// The engine does not touch the local bytes any more: the user takes them at its word.
void Oracle::take_drained(RequestModel& request, const Report&) {
  for (const OperationModel& part : request.parts) {
    const Operation& operation = part.operation;
    if (operation.kind == OperationKind::read) {
      // Confirmed bytes stayed what they were; what lies behind them is whatever it is now.
      if (auto wrong = part.local->check(operation.local_offset, part.confirmed)) {
        blame(request, *wrong);
      }
      part.local->note(operation.local_offset + part.confirmed,
                       operation.length_bytes - part.confirmed);
    } else if (auto wrong = part.local->check(operation.local_offset, operation.length_bytes)) {
      blame(request, *wrong);
    }
  }
  give_locals_back(request);
}

void Oracle::give_locals_back(RequestModel& request) {
  request.local_over = true;
  std::vector<std::byte> scrawl;
  for (const OperationModel& part : request.parts) {
    const Operation& operation = part.operation;
    if (operation.length_bytes == 0) {
      continue;
    }
    if (operation.kind == OperationKind::write) {
      // Whoever still sent from here would send this.
      scrawl.assign(operation.length_bytes, static_cast<std::byte>(world_.random().next()));
      part.local->put(operation.local_offset, scrawl);
    }
    part.local->give_back(operation.local_offset);
  }
}

// Final: what the WRITEs did not do for certain they did maybe (uncertain), or never.
void Oracle::take_settled(RequestModel& request, const Report& report) {
  for (std::size_t i = 0; i < request.parts.size(); ++i) {
    const OperationModel& part = request.parts[i];
    if (part.writer == 0) {
      continue;
    }
    const std::uint64_t at = part.operation.remote_offset + part.confirmed;
    const std::uint64_t count = part.operation.length_bytes - part.confirmed;
    const bool not_started =
        i < report.operations.size() && report.operations[i] == OperationState::not_started;
    if (report.remote_effect == RemoteEffect::uncertain && !not_started) {
      part.range->write_is_over(part.writer, at, count, now());
    } else {
      part.range->write_never_happened(part.writer, at, count);
    }
  }
  for (const OperationModel& part : request.parts) {
    if (part.writer == 0) {
      continue;
    }
    const Operation& operation = part.operation;
    if (auto wrong = part.range->check(operation.remote_offset, operation.length_bytes)) {
      return blame(request, "its effect is settled: " + *wrong);
    }
    part.range->settle(operation.remote_offset, operation.length_bytes, now());
  }
  close(request);
}

void Oracle::close(RequestModel& request) {
  request.closed = true;
  request.contended = reads_contended_bytes(request);
  for (OperationModel& part : request.parts) {
    part.read.reset();
  }
  // Half of the handles go at once, so that the engine takes their requests again; half stay, so
  // that final reports can be seen to stay.
  if (!request.pinned && world_.random().one_in(2)) {
    request.request.reset();
  }
}

void Oracle::judge_times(RequestModel& request, const Report& report) {
  const std::uint64_t now_ns = world_.now_ns();
  if (!report.outcome) {
    if (request.options.timeout) {
      const auto timeout_ns = static_cast<std::uint64_t>(request.options.timeout->count());
      const std::uint64_t due_ns =
          add_ns(add_ns(request.submitted_ns, timeout_ns), request.patience_ns);
      if (now_ns > due_ns) {
        blame(request, "its timeout has passed, and it has no outcome");
      }
    }
    return;
  }
  const std::uint64_t due_ns = add_ns(request.outcome_ns, request.drain_limit_ns);
  if (!is_drained(report) && now_ns > add_ns(due_ns, request.patience_ns)) {
    blame(request, "it does not drain");
  }
}

// A checksum over bytes that change while they are sent does not match. It is one for a segment,
// in which READs of several requests may travel.
bool Oracle::is_torn(const RequestModel& request, const Failure& failure) const {
  return failure.error.code == ErrorCode::io_error &&
         request.operations[failure.operation].kind == OperationKind::read &&
         std::any_of(requests_.begin(), requests_.end(), [&](const auto& other) {
           return other->handle == request.handle &&
                  (other->contended || reads_contended_bytes(*other));
         });
}

// Nothing fails by itself.
void Oracle::judge_cause(RequestModel& request, const Report& report) {
  if (request.disturbed) {
    return;
  }
  if (report.outcome == Outcome::failed && !is_torn(request, *report.failure)) {
    blame(request, "it failed, and nothing happened that could be why");
  }
  // With one slice of one operation the confirmed prefix says all.
  const bool wordless = report.outcome != Outcome::completed &&
                        (write_slices(request) > 1 || request.operations.size() > 1);
  if (report.remote_effect == RemoteEffect::uncertain && (!report.remote_settled || !wordless)) {
    blame(request, "its effect is uncertain, and nothing happened that could be why");
  }
}

void Oracle::entry(const CompletionEntry& entry) {
  if (entry.user_data == 0 || entry.user_data > requests_.size()) {
    return world_.blame("a completion entry of no request");
  }
  RequestModel& request = *requests_[entry.user_data - 1];
  const bool is_outcome = entry.kind == CompletionEntry::Kind::outcome;
  auto& place = is_outcome ? request.outcome_entry : request.drain_entry;
  if (place) {
    return blame(request, "a second completion entry of the same kind");
  }
  place = entry;
  world_.trace().note("entry", {{"request", request.number}, {"drain", !is_outcome}});
  if (!is_outcome && !request.outcome_entry) {
    return blame(request, "its drain entry comes before that of its outcome");
  }
  if (!is_outcome && entry.local_drain != LocalDrain::drained) {
    return blame(request, "a drain entry that says it is not drained");
  }
  if (entry.outcome != request.outcome_entry->outcome) {
    return blame(request, "its two completion entries name different outcomes");
  }
  if (request.request) {
    const Report report = request.request->report();
    if (report.outcome != entry.outcome || (!is_outcome && !is_drained(report))) {
      return blame(request, "its report does not know what its completion entry says");
    }
  } else if (request.dropped && !is_outcome && !request.local_over) {
    for (const OperationModel& part : request.parts) {
      if (part.operation.kind == OperationKind::read) {
        part.local->note(part.operation.local_offset, part.operation.length_bytes);
      }
    }
    give_locals_back(request);
  }
}

void Oracle::orphan(std::uint32_t consumer) {
  for (const auto& request : requests_) {
    if (request->consumer != consumer) {
      continue;
    }
    request->options.queue = nullptr;
    request->request.reset();
    if (!request->admitted || request->closed) {
      continue;
    }
    request->dropped = true;
    if (request->local_over) {
      continue;
    }
    for (const OperationModel& part : request->parts) {
      if (part.operation.kind == OperationKind::read) {
        part.local->note(part.operation.local_offset, part.operation.length_bytes);
      }
    }
    give_locals_back(*request);
  }
}

// --- Bytes and ends
// -------------------------------------------------------------------------------

void Oracle::look_at_all_bytes() {
  for (const auto& range : ranges_) {
    if (range->frozen()) {
      continue; // its bytes are a copy by now
    }
    if (auto wrong = range->check(0, range->length())) {
      world_.blame(*wrong);
    }
  }
  for (const auto& local : locals_) {
    if (auto wrong = local->check_free()) {
      world_.blame(*wrong);
    }
  }
  for (const auto& request : requests_) {
    if (request->closed && request->request) {
      look_at(*request);
    }
  }
}

void Oracle::everything_is_over() {
  for (RequestModel* request : open_) {
    for (OperationModel& part : request->parts) {
      if (part.writer != 0) {
        const std::uint64_t at = part.operation.remote_offset + part.confirmed;
        part.range->write_is_over(part.writer, at, part.operation.length_bytes - part.confirmed,
                                  now());
      } else if (!request->local_over) {
        part.local->note(part.operation.local_offset, part.operation.length_bytes);
      }
    }
    if (!request->local_over) {
      give_locals_back(*request);
    }
    request->closed = true;
  }
  open_.clear();
  look_at_all_bytes();
}

void Oracle::expect_all_ended() {
  for (const auto& request : requests_) {
    if (!request->closed && !request->dropped && !is_drained(request->last)) {
      blame(*request, "it never ended");
    }
    if (!request->admitted || request->options.queue == nullptr) {
      continue;
    }
    if (!request->outcome_entry || !request->drain_entry) {
      blame(*request, "a completion entry of it is missing");
    }
  }
}

bool Oracle::overlaps_unsettled(std::uint32_t handle,
                                const std::vector<Operation>& operations) const {
  for (const RequestModel* request : open_) {
    if (request->handle != handle || request->dropped || !is_unsettled(request->last)) {
      continue;
    }
    for (const Operation& before : request->operations) {
      for (const Operation& after : operations) {
        if (before.kind == OperationKind::write && after.kind == OperationKind::write &&
            overlap(before, after)) {
          return true;
        }
      }
    }
  }
  return false;
}

bool Oracle::may_be_unsettled(std::uint32_t handle) const {
  return std::any_of(open_.begin(), open_.end(), [&](const RequestModel* request) {
    return request->handle == handle && (request->dropped || is_unsettled(request->last) ||
                                         request->last.remote_effect == RemoteEffect::uncertain);
  });
}

bool Oracle::is_used(const LocalModel& local, bool maybe) const {
  return std::any_of(open_.begin(), open_.end(), [&](const RequestModel* request) {
    return !request->local_over && (maybe || !request->dropped) &&
           std::any_of(request->parts.begin(), request->parts.end(),
                       [&](const OperationModel& part) { return part.local == &local; });
  });
}

Oracle::Outstanding Oracle::outstanding(std::uint32_t consumer) const {
  Outstanding sum;
  for (const RequestModel* request : open_) {
    if (request->consumer != consumer || request->drain_entry ||
        (!request->dropped && is_drained(request->last))) {
      continue;
    }
    ++sum.requests_max;
    sum.operations_max += request->operations.size();
    if (!request->dropped) {
      ++sum.requests_min;
      sum.operations_min += request->operations.size();
    }
  }
  return sum;
}

} // namespace wherry::world

// The judge of the world: knows what was asked, reads only what a user could (reports, completion
// entries, memory and files), and says what no legal history explains.
#pragma once

#include "world/local_model.h"
#include "world/range_model.h"
#include "world/report_check.h"
#include "world/world.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace wherry::world {

/// One operation of a submitted batch.
struct OperationModel {
  Operation operation;
  LocalModel* local = nullptr;
  RangeModel* range = nullptr;
  WriterId writer = 0;             ///< Of a WRITE with bytes.
  std::unique_ptr<ReadModel> read; ///< Of a READ with bytes.
  std::uint64_t confirmed = 0;     ///< Leading bytes that a report has confirmed.
};

/// A request as its user sees it.
struct RequestModel {
  std::uint32_t number = 0;
  std::uint32_t consumer = 0;
  std::uint32_t handle = 0; ///< The opened source it goes through.
  std::optional<Request> request;
  std::vector<Operation> operations; ///< As submitted; those of `parts`.
  std::vector<OperationModel> parts;
  SubmitOptions options;
  std::uint64_t submitted_ns = 0;
  std::uint64_t patience_ns = 0;    ///< How late its timeout may be seen.
  std::uint64_t drain_limit_ns = 0; ///< How long the drain may take after the outcome.
  std::uint64_t outcome_ns = 0;
  bool admitted = false;
  bool pinned = false; ///< Somebody waits with its handle.
  bool cancel_asked = false;
  bool dropped = false;    ///< No report comes any more.
  bool disturbed = false;  ///< Something happened that may explain a failure.
  bool contended = false;  ///< WRITEs may have changed what it read while it did.
  bool local_over = false; ///< Local bytes are the user's again.
  bool closed = false;     ///< Final and settled, or beyond knowing: nothing more to come.
  std::optional<CompletionEntry> outcome_entry;
  std::optional<CompletionEntry> drain_entry;
  bool looked = false;
  Report last; ///< What a look showed; before the first, what is always true.
};

/// A lie that is put between the engine and the oracle, to see whether the oracle is awake.
enum class Lie : std::uint8_t {
  none,
  one_byte_more,   ///< A report confirms a byte that is not.
  drained_early,   ///< A report says drained while the request is in flight.
  certain_early,   ///< An uncertain effect is called none.
  settled_early,   ///< An uncertain effect is called settled.
  changed_outcome, ///< The outcome of a request changes.
};

class Oracle {
public:
  Oracle(World& world, Lie lie) : world_(world), lie_(lie) {}

  Moment now() { return ++moment_; }
  WriterId new_writer() { return ++writers_; }
  /// From now on: see RangeModel.
  void let_bits_flip() { bits_flip_ = true; }
  RangeModel& new_range(std::string name, RangeModel::Bytes live);
  /// Nobody can reach the bytes under this publication any more; a successor may begin.
  void end_range(RangeModel& range);

  /// To be called before submit(): the batch is about to be admitted, with its models made.
  RequestModel& about_to_submit(RequestModel request);
  void is_admitted(RequestModel& request, Request handle);
  /// A refused batch has no effect.
  void is_refused(RequestModel& request);
  void cancel(RequestModel& request);
  void drop(RequestModel& request);
  void entry(const CompletionEntry& entry);
  /// The consumer's process died: nothing is heard of its requests any more.
  void orphan(std::uint32_t consumer);

  /// Looks at all reports.
  void look();
  /// Looks at all bytes that should be known.
  void look_at_all_bytes();
  /// All sessions have ended: nobody can reach anything. What was dropped is over, too.
  void everything_is_over();
  /// Every request was over by then: outcome, drain, entries.
  void expect_all_ended();
  /// From now on, or no longer, a request may fail for reasons that lie outside of it.
  void set_calm(bool calm);
  bool calm() const { return calm_; }

  std::vector<std::unique_ptr<RequestModel>>& requests() { return requests_; }
  const std::vector<RequestModel*>& open_requests() const { return open_; }
  std::vector<std::unique_ptr<LocalModel>>& locals() { return locals_; }

  /// Whether a WRITE of these operations overlaps one of the same handle that has ended and whose
  /// report calls it uncertain and not settled (R29).
  bool overlaps_unsettled(std::uint32_t handle, const std::vector<Operation>& operations) const;
  /// Whether the handle has WRITEs that ended uncertain for all that is known.
  bool may_be_unsettled(std::uint32_t handle) const;
  /// Requests and operations of the consumer that may not have drained, or surely have not.
  struct Outstanding {
    std::uint64_t requests_min = 0, requests_max = 0, operations_min = 0, operations_max = 0;
  };
  Outstanding outstanding(std::uint32_t consumer) const;
  /// Whether a request that has not drained uses the local range; `maybe`: or may use it.
  bool is_used(const LocalModel& local, bool maybe) const;

private:
  void look_at(RequestModel& request);
  Report report_of(RequestModel& request);
  void judge(RequestModel& request, const Report& report);
  void take_confirmed(RequestModel& request, const Report& report);
  void take_drained(RequestModel& request, const Report& report);
  void take_settled(RequestModel& request, const Report& report);
  void judge_times(RequestModel& request, const Report& report);
  void judge_cause(RequestModel& request, const Report& report);
  bool is_torn(const RequestModel& request, const Failure& failure) const;
  void give_locals_back(RequestModel& request);
  void close(RequestModel& request);
  void blame(const RequestModel& request, std::string_view what);
  void note_news(const RequestModel& request, const Report& report);
  Asked asked(const RequestModel& request);

  World& world_;
  const Lie lie_;
  Moment moment_ = 0;
  WriterId writers_ = 0;
  bool calm_ = true;
  bool bits_flip_ = false;
  std::vector<std::unique_ptr<RangeModel>> ranges_;
  std::vector<std::unique_ptr<LocalModel>> locals_;
  std::vector<std::unique_ptr<RequestModel>> requests_;
  std::vector<RequestModel*> open_; ///< Not closed.
};

} // namespace wherry::world

#include "world/report_check.h"

#include <fmt/format.h>

namespace wherry::world {
namespace {

std::uint64_t total_bytes(std::span<const Operation> operations, bool writes_only) {
  std::uint64_t bytes = 0;
  for (const Operation& operation : operations) {
    if (!writes_only || operation.kind == OperationKind::write) {
      bytes += operation.length_bytes;
    }
  }
  return bytes;
}

std::optional<std::string> check_prefix(const Asked& asked, const Report& report) {
  if (report.completed_ops > asked.operations.size()) {
    return "more operations are completed than there are";
  }
  const std::uint64_t whole = total_bytes(asked.operations.first(report.completed_ops), false);
  if (report.completed_bytes < whole) {
    return "completed_bytes is less than the completed operations have";
  }
  const std::uint64_t beyond = report.completed_bytes - whole;
  if (report.completed_ops == asked.operations.size()) {
    return beyond == 0 ? std::nullopt
                       : std::optional<std::string>("completed_bytes is more than the batch has");
  }
  if (beyond >= asked.operations[report.completed_ops].length_bytes) {
    return "completed_bytes reaches beyond the operation that is not completed";
  }
  return std::nullopt;
}

std::optional<std::string> check_outcome(const Asked& asked, const Report& report) {
  if (!report.outcome) {
    if (report.local_drain == LocalDrain::drained) {
      return "drained without an outcome";
    }
    return std::nullopt;
  }
  switch (*report.outcome) {
  case Outcome::completed:
    if (report.completed_ops != asked.operations.size()) {
      return "completed, but not every operation is";
    }
    if (report.failure) {
      return "completed with a failure";
    }
    break;
  case Outcome::failed:
    if (!report.failure) {
      return "failed without a failure";
    }
    break;
  case Outcome::cancelled:
    if (!asked.cancel_asked) {
      return "cancelled, and nobody asked for it";
    }
    break;
  case Outcome::timed_out:
    if (!asked.time_is_up) {
      return "timed out before its time";
    }
    if (!report.failure) {
      return "timed out without a failure that says so";
    }
    break;
  }
  return std::nullopt;
}

std::optional<std::string> check_effect(const Asked& asked, const Report& report) {
  const std::uint64_t write_bytes = total_bytes(asked.operations, true);
  const bool drained = report.local_drain == LocalDrain::drained;
  const bool uncertain = report.remote_effect == RemoteEffect::uncertain;
  if (write_bytes == 0 && report.remote_effect != RemoteEffect::none) {
    return "an effect of a request without WRITEs";
  }
  if (report.remote_effect == RemoteEffect::acknowledged) {
    return "acknowledged is a word of the rdma path";
  }
  if (drained && !uncertain && !report.remote_settled) {
    return "drained, the effect is certain, and still it is not settled";
  }
  if (report.outcome == Outcome::completed) {
    const RemoteEffect due = write_bytes > 0 ? RemoteEffect::applied : RemoteEffect::none;
    if (report.remote_effect != due || !report.remote_settled) {
      return "completed, but the WRITEs are not applied and settled";
    }
  }
  if (report.remote_effect == RemoteEffect::none) {
    std::uint64_t confirmed = 0;
    for (std::size_t i = 0; i < asked.operations.size(); ++i) {
      if (asked.operations[i].kind == OperationKind::write) {
        confirmed += confirmed_bytes(asked, report, i);
      }
    }
    if (confirmed > 0) {
      return "no effect, and yet bytes of WRITEs are confirmed";
    }
  }
  return std::nullopt;
}

std::optional<std::string> check_operations(const Asked& asked, const Report& report) {
  const std::size_t due = asked.per_operation ? asked.operations.size() : 0;
  if (report.operations.size() != due) {
    return fmt::format("{} operation states where {} are due", report.operations.size(), due);
  }
  for (std::size_t i = 0; i < report.operations.size(); ++i) {
    const OperationState state = report.operations[i];
    if (i < report.completed_ops && state != OperationState::confirmed) {
      return fmt::format("operation {} is completed, and its state is {}", i, to_string(state));
    }
    if (i == report.completed_ops && state == OperationState::confirmed &&
        asked.operations[i].length_bytes > 0) {
      return fmt::format("operation {} is confirmed, and the prefix ends within it", i);
    }
    if (state == OperationState::uncertain && report.local_drain == LocalDrain::drained &&
        (asked.operations[i].kind == OperationKind::read ||
         report.remote_effect != RemoteEffect::uncertain)) {
      return fmt::format("operation {} is uncertain after the drain, and the effect is {}", i,
                         to_string(report.remote_effect));
    }
  }
  return std::nullopt;
}

bool same_failure(const Report& a, const Report& b) {
  if (a.failure.has_value() != b.failure.has_value()) {
    return false;
  }
  return !a.failure || (a.failure->operation == b.failure->operation &&
                        a.failure->error.code == b.failure->error.code &&
                        a.failure->error.message == b.failure->error.message);
}

std::optional<std::string> check_final(const Report& before, const Report& now) {
  if (now.local_drain != LocalDrain::drained) {
    return "drained before, and not any more";
  }
  if (now.completed_ops != before.completed_ops || now.completed_bytes != before.completed_bytes ||
      now.remote_effect != before.remote_effect || now.operations != before.operations ||
      !same_failure(before, now)) {
    return "the final report changed";
  }
  return std::nullopt;
}

} // namespace

std::uint64_t confirmed_bytes(const Asked& asked, const Report& report, std::size_t index) {
  const Operation& operation = asked.operations[index];
  const bool state_says_so =
      index < report.operations.size() && report.operations[index] == OperationState::confirmed;
  // Also where a READ before it bounds the prefix.
  const bool effect_says_so =
      operation.kind == OperationKind::write && report.remote_effect == RemoteEffect::applied;
  if (index < report.completed_ops || state_says_so || effect_says_so) {
    return operation.length_bytes;
  }
  if (index > report.completed_ops) {
    return 0;
  }
  return report.completed_bytes - total_bytes(asked.operations.first(index), false);
}

std::optional<std::string> check_report(const Asked& asked, const Report& report) {
  for (const auto& check : {check_prefix, check_outcome, check_effect, check_operations}) {
    if (auto wrong = check(asked, report)) {
      return wrong;
    }
  }
  if (report.failure && report.failure->operation >= asked.operations.size()) {
    return "the failure names an operation that does not exist";
  }
  return std::nullopt;
}

std::optional<std::string> check_change(const Asked& asked, const Report& before,
                                        const Report& now) {
  if (before.outcome && before.outcome != now.outcome) {
    return fmt::format("the outcome was {} and is {}", to_string(*before.outcome),
                       now.outcome ? to_string(*now.outcome) : "pending");
  }
  if (now.completed_ops < before.completed_ops || now.completed_bytes < before.completed_bytes) {
    return "the prefix became shorter";
  }
  for (std::size_t i = 0; i < asked.operations.size(); ++i) {
    if (confirmed_bytes(asked, now, i) < confirmed_bytes(asked, before, i)) {
      return fmt::format("operation {} was confirmed and is not any more", i);
    }
  }
  if (before.local_drain == LocalDrain::drained) {
    if (auto wrong = check_final(before, now)) {
      return wrong;
    }
  }
  if (before.remote_settled && before.local_drain == LocalDrain::drained && !now.remote_settled) {
    return "settled before, and not any more";
  }
  if (before.remote_settled && before.remote_effect != now.remote_effect) {
    return fmt::format("the effect was settled as {} and is {}", to_string(before.remote_effect),
                       to_string(now.remote_effect));
  }
  return std::nullopt;
}

std::string describe(const Report& report) {
  std::string text =
      fmt::format("outcome {} ops {} bytes {} effect {}{} drain {}",
                  report.outcome ? to_string(*report.outcome) : "pending", report.completed_ops,
                  report.completed_bytes, to_string(report.remote_effect),
                  report.remote_settled ? " settled" : "", to_string(report.local_drain));
  if (report.failure) {
    text += fmt::format(" failure {} at operation {}: {}", to_string(report.failure->error.code),
                        report.failure->operation, report.failure->error.message);
  }
  for (std::size_t i = 0; i < report.operations.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? " states " : ",", to_string(report.operations[i]));
  }
  return text;
}

} // namespace wherry::world

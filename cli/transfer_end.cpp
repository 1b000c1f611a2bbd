#include "transfer_end.h"

#include "exit_status.h"
#include "text.h"
#include "units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace wherry::cli {
namespace {

using Json = nlohmann::json;

constexpr std::size_t listed_max = 20;

int status_of(const FailedFile& failed) {
  return exit_status(failed.error.code, failed.effect, failed.drain);
}

Error named(const FailedFile& failed) {
  Error error = failed.error;
  error.message = fmt::format("'{}': {}", printable(failed.name), error.message);
  return error;
}

void list(Console& console, const TransferEnd& end) {
  for (std::size_t i = 0; i < std::min(end.failed.size(), listed_max); ++i) {
    console.failure(named(end.failed[i]));
  }
  if (end.failed.size() > listed_max) {
    console.note(fmt::format("and {} more files failed", end.failed.size() - listed_max));
  }
}

const FailedFile& gravest(const std::vector<FailedFile>& failed) {
  return *std::min_element(
      failed.begin(), failed.end(), [](const FailedFile& left, const FailedFile& right) {
        const int left_status = status_of(left);
        const int right_status = status_of(right);
        return left_status != right_status && graver(left_status, right_status) == left_status;
      });
}

} // namespace

int end_with(Console& console, const Error& error) {
  console.error(error);
  return exit_status(error.code);
}

bool ends_session(ErrorCode code) {
  switch (code) {
  case ErrorCode::connection_lost:
  case ErrorCode::timed_out:
  case ErrorCode::stalled:
  case ErrorCode::stale_epoch:
  case ErrorCode::protocol_mismatch:
  case ErrorCode::unauthenticated:
  case ErrorCode::unavailable:
  case ErrorCode::fenced:
  case ErrorCode::unquiesced:
  case ErrorCode::cancelled:
    return true;
  default:
    return false;
  }
}

int report_end(Console& console, const TransferEnd& end, int signal) {
  if (end.failed.empty() && !end.stopped) {
    return exit_ok;
  }
  const std::string completed =
      fmt::format("{} of {} files are complete", end.completed, end.files);
  const bool alone = end.failed.size() == 1 && (end.files == 1 || !end.stopped);
  if (!alone) {
    list(console, end);
  }
  Error last;
  if (alone) {
    last = named(end.failed.front());
  } else if (end.stopped) {
    last = *end.stopped;
    last.message += "; " + completed;
  } else {
    last = named(gravest(end.failed));
    last.message = fmt::format("{} files failed, {}; the gravest: {}", end.failed.size(), completed,
                               last.message);
  }
  console.error(last);
  int status = end.stopped ? exit_status(end.stopped->code) : static_cast<int>(exit_ok);
  for (const FailedFile& failed : end.failed) {
    status = graver(status, status_of(failed));
  }
  return signal != 0 ? exit_signal_base + signal : status;
}

std::string done_text(std::string_view verb, std::size_t files, std::uint64_t bytes, double seconds,
                      bool verified) {
  const double rate = static_cast<double>(bytes) / std::max(seconds, 1e-6);
  return fmt::format("{} {} {}, {} in {:.2f} s ({}){}", verb, files, files == 1 ? "file" : "files",
                     format_size(bytes), seconds, format_rate(rate), verified ? ", verified" : "");
}

Json failed_json(const TransferEnd& end) {
  Json list = Json::array();
  for (const FailedFile& failed : end.failed) {
    Json object{{"error", error_json(failed.error)}};
    add_name(object, "name", failed.name);
    if (failed.effect != RemoteEffect::none) {
      object["remote_effect"] = to_string(failed.effect);
    }
    list.push_back(std::move(object));
  }
  return list;
}

} // namespace wherry::cli

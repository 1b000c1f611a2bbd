#include "hints.h"

#include <fmt/format.h>

#include <string_view>

namespace wherry::cli {
namespace {

std::string_view advice(ErrorCode code) {
  switch (code) {
  case ErrorCode::io_error:
    return "look at the file, disk or socket that the message names";
  case ErrorCode::invalidated:
    return "the file behind the range was replaced: name it again";
  case ErrorCode::cancelled:
    return "run the command again if the end was not wanted";
  case ErrorCode::invalid_argument:
    return "mend the command line; --help shows what it takes";
  case ErrorCode::wrong_process:
    return "use the handle in the process that made it";
  case ErrorCode::unavailable:
    return "'wherry doctor' says which paths are ready, and why others are not";
  case ErrorCode::fenced:
    return "restart this process: something it started may still touch its memory";
  case ErrorCode::stale_epoch:
    return "the owner was restarted: take its new reference, or leave ?epoch= out to accept what "
           "it "
           "serves now";
  case ErrorCode::protocol_mismatch:
    return "check that host and port are those of a Wherry owner of a version that fits";
  case ErrorCode::unauthenticated:
    return "ask the owner which security it expects";
  case ErrorCode::access_denied:
    return "ask the owner to publish the range with access=write, or read it only";
  case ErrorCode::out_of_range:
    return "'wherry describe' shows how long the owner's ranges are";
  case ErrorCode::not_found:
    return "'wherry describe' shows what the owner publishes";
  case ErrorCode::range_withdrawn:
    return "the owner took the range back: ask it, or describe the source again";
  case ErrorCode::range_changed:
    return "the owner's file is not what it published: let the owner publish it again";
  case ErrorCode::resource_exhausted:
    return "wait for what runs to end, or raise the budget that the message names";
  case ErrorCode::busy:
    return "wait for what runs to end, then try again";
  case ErrorCode::unsettled:
    return "an earlier write may still change these bytes: wait, or restart the owner";
  case ErrorCode::unquiesced:
    return "keep the evidence, and restart this process before its memory is used again";
  case ErrorCode::connection_lost:
    return "check that the owner runs and can be reached, then try again";
  case ErrorCode::timed_out:
    return "check host and port, try again, or allow more time";
  case ErrorCode::stalled:
    return "the owner or the network stood still: try again, or raise --stall-timeout";
  }
  return "look at the cause that the message names";
}

} // namespace

std::string hint_for(ErrorCode code) {
  return fmt::format("{}; see docs/TROUBLESHOOTING.md#{}", advice(code), to_string(code));
}

} // namespace wherry::cli

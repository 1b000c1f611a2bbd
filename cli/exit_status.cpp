#include "exit_status.h"

#include <algorithm>
#include <array>

namespace wherry::cli {
namespace {

int status_of(ErrorCode code) {
  switch (code) {
  case ErrorCode::io_error:
  case ErrorCode::invalidated:
  case ErrorCode::cancelled:
    return exit_look_at_cause;
  case ErrorCode::invalid_argument:
  case ErrorCode::wrong_process:
    return exit_mend_call;
  case ErrorCode::unavailable:
  case ErrorCode::fenced:
    return exit_install;
  case ErrorCode::stale_epoch:
  case ErrorCode::protocol_mismatch:
  case ErrorCode::unauthenticated:
  case ErrorCode::access_denied:
  case ErrorCode::out_of_range:
  case ErrorCode::not_found:
  case ErrorCode::range_withdrawn:
  case ErrorCode::range_changed:
    return exit_ask_owner;
  case ErrorCode::resource_exhausted:
  case ErrorCode::busy:
  case ErrorCode::unsettled:
    return exit_wait;
  case ErrorCode::unquiesced:
    return exit_unquiesced;
  case ErrorCode::connection_lost:
  case ErrorCode::timed_out:
  case ErrorCode::stalled:
    return exit_try_again;
  }
  return exit_look_at_cause; // a code of a newer library
}

constexpr std::array gravest_first{
    exit_unquiesced, exit_uncertain, exit_partly_applied, exit_look_at_cause, exit_ask_owner,
    exit_install,    exit_wait,      exit_mend_call,      exit_try_again,     exit_ok};

} // namespace

int exit_status(ErrorCode code, RemoteEffect effect, LocalDrain drain) {
  if (drain == LocalDrain::unquiesced || code == ErrorCode::unquiesced) {
    return exit_unquiesced;
  }
  switch (effect) {
  case RemoteEffect::uncertain:
  case RemoteEffect::acknowledged: // in the responder's NIC; nothing says that it is in place
    return exit_uncertain;
  case RemoteEffect::partial:
  case RemoteEffect::applied:
    return exit_partly_applied;
  case RemoteEffect::none:
    break;
  }
  return status_of(code);
}

int graver(int left, int right) {
  const auto rank = [](int status) {
    return std::find(gravest_first.begin(), gravest_first.end(), status);
  };
  return rank(left) <= rank(right) ? left : right;
}

} // namespace wherry::cli

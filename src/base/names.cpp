// The words of the public enumerations, as users see them in messages, reports and JSON. Pure; any
// thread. A value that is none of them (a newer peer's, say) is "unknown", never an error here.
#include "base/hex.h"

#include <wherry/capability.hpp>
#include <wherry/error.hpp>
#include <wherry/registration.hpp>
#include <wherry/request.hpp>
#include <wherry/source.hpp>

namespace wherry::inline v0 {

std::string_view to_string(ErrorCode code) {
  switch (code) {
  case ErrorCode::io_error:
    return "io_error";
  case ErrorCode::invalidated:
    return "invalidated";
  case ErrorCode::cancelled:
    return "cancelled";
  case ErrorCode::invalid_argument:
    return "invalid_argument";
  case ErrorCode::wrong_process:
    return "wrong_process";
  case ErrorCode::unavailable:
    return "unavailable";
  case ErrorCode::fenced:
    return "fenced";
  case ErrorCode::stale_epoch:
    return "stale_epoch";
  case ErrorCode::protocol_mismatch:
    return "protocol_mismatch";
  case ErrorCode::unauthenticated:
    return "unauthenticated";
  case ErrorCode::access_denied:
    return "access_denied";
  case ErrorCode::out_of_range:
    return "out_of_range";
  case ErrorCode::not_found:
    return "not_found";
  case ErrorCode::range_withdrawn:
    return "range_withdrawn";
  case ErrorCode::range_changed:
    return "range_changed";
  case ErrorCode::resource_exhausted:
    return "resource_exhausted";
  case ErrorCode::busy:
    return "busy";
  case ErrorCode::unsettled:
    return "unsettled";
  case ErrorCode::unquiesced:
    return "unquiesced";
  case ErrorCode::connection_lost:
    return "connection_lost";
  case ErrorCode::timed_out:
    return "timed_out";
  case ErrorCode::stalled:
    return "stalled";
  }
  return "unknown";
}

std::string_view to_string(PathKind path) {
  switch (path) {
  case PathKind::automatic:
    return "auto";
  case PathKind::tcp:
    return "tcp";
  case PathKind::io_uring:
    return "io_uring";
  case PathKind::posix:
    return "posix";
  case PathKind::rdma:
    return "rdma";
  case PathKind::cuda:
    return "cuda";
  case PathKind::gds:
    return "gds";
  }
  return "unknown";
}

std::string_view to_string(Answer answer) {
  switch (answer) {
  case Answer::no:
    return "no";
  case Answer::yes:
    return "yes";
  case Answer::not_asked:
    return "not asked";
  }
  return "unknown";
}

std::string_view to_string(Visibility visibility) {
  switch (visibility) {
  case Visibility::local_only:
    return "local_only";
  case Visibility::remote_read:
    return "remote_read";
  case Visibility::remote_read_write:
    return "remote_read_write";
  }
  return "unknown";
}

std::string_view to_string(RangeKind kind) {
  switch (kind) {
  case RangeKind::host_memory:
    return "host_memory";
  case RangeKind::file:
    return "file";
  }
  return "unknown";
}

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
  case Outcome::completed:
    return "completed";
  case Outcome::failed:
    return "failed";
  case Outcome::cancelled:
    return "cancelled";
  case Outcome::timed_out:
    return "timed_out";
  }
  return "unknown";
}

std::string_view to_string(RemoteEffect effect) {
  switch (effect) {
  case RemoteEffect::none:
    return "none";
  case RemoteEffect::applied:
    return "applied";
  case RemoteEffect::partial:
    return "partial";
  case RemoteEffect::acknowledged:
    return "acknowledged";
  case RemoteEffect::uncertain:
    return "uncertain";
  }
  return "unknown";
}

std::string_view to_string(LocalDrain drain) {
  switch (drain) {
  case LocalDrain::in_flight:
    return "in_flight";
  case LocalDrain::drained:
    return "drained";
  case LocalDrain::unquiesced:
    return "unquiesced";
  }
  return "unknown";
}

std::string_view to_string(OperationState state) {
  switch (state) {
  case OperationState::not_started:
    return "not_started";
  case OperationState::confirmed:
    return "confirmed";
  case OperationState::failed:
    return "failed";
  case OperationState::uncertain:
    return "uncertain";
  }
  return "unknown";
}

std::string_view to_string(SourceState state) {
  switch (state) {
  case SourceState::open:
    return "open";
  case SourceState::lost:
    return "lost";
  case SourceState::stale:
    return "stale";
  case SourceState::closed:
    return "closed";
  }
  return "unknown";
}

std::string Digest::to_string() const {
  return hex_text(bytes);
}

} // namespace wherry::inline v0

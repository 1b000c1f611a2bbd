// The exit statuses: one table from what is known at the end to a number. Pure.
#pragma once

#include <wherry/error.hpp>
#include <wherry/request.hpp>

#include <initializer_list>

namespace wherry::cli {

enum ExitStatus : int {
  exit_ok = 0,
  exit_look_at_cause = 1,
  exit_mend_call = 2,
  exit_install = 3,
  exit_ask_owner = 4,
  exit_wait = 5,
  exit_uncertain = 6,
  exit_unquiesced = 7,
  exit_partly_applied = 8,
  exit_try_again = 9,
  exit_signal_base = 128, ///< Plus the signal's number.
};

/// Of an error, with what its request did. What is known of remote bytes and of memory weighs more
/// than the code: a caller who only sees the status must not write again, or free, too early.
int exit_status(ErrorCode code, RemoteEffect effect = RemoteEffect::none,
                LocalDrain drain = LocalDrain::drained);

/// The graver of two: 7, 6, 8 (memory, remote bytes), then 1, 4, 3, 5, 2, then 9, where trying
/// again is enough, then 0.
int graver(int left, int right);

} // namespace wherry::cli

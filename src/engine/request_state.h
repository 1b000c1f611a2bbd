// A submitted request as the engine keeps it. Pooled: the steady state allocates nothing.
#pragma once

#include "engine/queue_state.h"
#include "request/admission.h"
#include "request/ledger.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace wherry {

struct RequestState {
  // Set at submit, constant until the request is recycled.
  std::uint64_t id = 0;
  std::uint64_t remote = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t user_data = 0;
  PathKind path = PathKind::tcp;
  std::shared_ptr<QueueState> queue;
  Admitted admitted;

  // Guards the ledger and unsettled_slices: the leader changes them, any thread reports them.
  mutable std::mutex mutex;
  Ledger ledger;

  // What waiting threads look at, without the mutex.
  std::atomic<bool> has_outcome = false;
  std::atomic<bool> is_drained = false;
  std::atomic<bool> cancel_asked = false;

  // The leader's.
  bool listed = false;
  std::size_t list_index = 0; ///< In its remote's list, while listed.
  bool dealing = false;       ///< In its remote's list of those with slices to give.
  bool outcome_told = false;
  bool drain_told = false;
  bool cancel_passed_on = false;
  bool remembered_unsettled = false;
  bool of_lost_session = false;       ///< Was here when the session ended: ends with it.
  std::uint32_t unsettled_slices = 0; ///< That no fence has covered yet.
  std::size_t last_lease = 0;

  // Under the engine's request mutex.
  bool handle_gone = false;
  bool finished = false;

  void recycle() {
    id = remote = deadline_ns = user_data = 0;
    queue.reset();
    has_outcome = is_drained = cancel_asked = false;
    listed = dealing = outcome_told = drain_told = cancel_passed_on = remembered_unsettled =
        of_lost_session = handle_gone = finished = false;
    unsettled_slices = 0;
    last_lease = 0;
  }

  /// The lease of that local range: leases are few, and used in runs.
  const LeasedBytes& lease_of(std::uint64_t range) {
    if (admitted.leases[last_lease].range == range) {
      return admitted.leases[last_lease];
    }
    for (std::size_t i = 1; i <= admitted.leases.size(); ++i) {
      const std::size_t at = (last_lease + i) % admitted.leases.size();
      if (admitted.leases[at].range != range) {
        continue;
      }
      last_lease = at;
      break;
    }
    return admitted.leases[last_lease];
  }
};

} // namespace wherry

// Admission: all or nothing and synchronous (R27). Checks every operation, leases every distinct
// local range once, charges the budgets; or changes nothing. Pure state; thread-safe by its parts.
#pragma once

#include "base/budget.h"
#include "base/error.h"
#include "memory/range_table.h"

#include <wherry/options.hpp>
#include <wherry/request.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wherry {

/// What admission must know of a remote range.
struct RemoteFacts {
  std::uint64_t length_bytes = 0;
  Visibility visibility{};
  bool withdrawn = false;
};

/// The consumer's view of a source's ranges.
class RemoteRanges {
public:
  virtual ~RemoteRanges() = default;
  /// Null when the id is unknown here.
  virtual const RemoteFacts* find(std::uint64_t id) const = 0;
};

/// The budgets of requests. One an engine.
struct RequestBudgets {
  explicit RequestBudgets(const Limits& limits)
      : requests("requests", limits.requests), operations("operations", limits.operations) {}
  Budget requests;
  Budget operations;
};

/// What an admitted batch holds until it has drained: leases and charges.
struct Admitted {
  std::vector<LeasedBytes> leases; ///< One a distinct local range, in order of first use.
  std::uint64_t operations = 0;    ///< Charged.
  bool held = false;               ///< From admit() to release().

  /// The lease of a local range; null when there is none. Fast also among many.
  const LeasedBytes* find(std::uint64_t range) const;

  /// For admit(): enters a lease.
  void enter(const LeasedBytes& lease);
  /// Forgets all and keeps the memory.
  void clear();

private:
  static constexpr std::size_t searched_leases_max = 8;
  std::size_t place(std::uint64_t range) const;
  void rebuild_index(std::size_t places);

  /// Beyond searched_leases_max leases: an open hash table of positions in `leases` plus one; 0 is
  /// free. Its size is a power of two, at least twice the number of leases.
  std::vector<std::uint32_t> index_;
};

/// Fills `out`, which must hold nothing (its capacity is kept), or refuses and leaves it so. A
/// message names the operation's index and the field. Errors: invalid_argument (local range,
/// bounds, a range that is not writable, overflow), not_found, range_withdrawn, access_denied,
/// out_of_range (remote), resource_exhausted. A batch that is wrong is told so even when budgets
/// are used up.
Result<void> admit(std::span<const Operation> operations, RangeTable& ranges,
                   const RemoteRanges& remote, RequestBudgets& budgets, Admitted& out);

/// Gives leases and charges back.
void release(Admitted& admitted, RangeTable& ranges, RequestBudgets& budgets);

} // namespace wherry

// Ranges, their leases, charges and retirement. Owns the table and two budgets; any thread. What a
// range holds (native owner, keep_alive) is foreign code and is only ever destroyed outside the
// mutex, so that a destructor may call back into the table. Serves R13, R14, R17, R18, R27.
#include "memory/range_table.h"

#include "base/assert.h"

#include <string>
#include <utility>

namespace wherry {
namespace {

Result<void> check(const RangeSpec& spec) {
  if (spec.visibility > Visibility::remote_read_write) {
    return fail(ErrorCode::invalid_argument, "visibility: the value has no meaning");
  }
  // A file may be empty, and is served as such; memory of no bytes is a caller's mistake.
  if (spec.length_bytes == 0 && spec.kind == RangeKind::host_memory) {
    return fail(ErrorCode::invalid_argument, "memory of zero bytes cannot be registered");
  }
  if (spec.visibility == Visibility::remote_read_write && !spec.writable) {
    return fail(ErrorCode::invalid_argument,
                "a range that is not writable cannot be remote_read_write");
  }
  if (spec.kind == RangeKind::file) {
    WHERRY_ASSERT(spec.base == nullptr);
    return {};
  }
  if (spec.base == nullptr) {
    return fail(ErrorCode::invalid_argument, "a range of host memory begins at a null address");
  }
  if (reinterpret_cast<std::uintptr_t>(spec.base) > UINTPTR_MAX - spec.length_bytes) {
    return fail(ErrorCode::invalid_argument, "a range of " + std::to_string(spec.length_bytes) +
                                                 " bytes wraps around the address space");
  }
  return {};
}

/// Gives a charge back unless it is kept: also when an allocation throws.
class ChargeGuard {
public:
  ChargeGuard(Budget& budget, std::uint64_t amount) : budget_(&budget), amount_(amount) {}
  ~ChargeGuard() {
    if (budget_ != nullptr) {
      budget_->release(amount_);
    }
  }
  ChargeGuard(const ChargeGuard&) = delete;
  ChargeGuard& operator=(const ChargeGuard&) = delete;
  void keep() { budget_ = nullptr; }

private:
  Budget* budget_;
  std::uint64_t amount_;
};

LeasedBytes leased_bytes(std::uint64_t id, const RangeSpec& spec) {
  return {id, spec.kind, spec.base, spec.native.get(), spec.length_bytes, spec.writable};
}

tl::unexpected<Error> no_such_range(std::uint64_t id) {
  return fail(ErrorCode::invalid_argument, "no range is registered as " + std::to_string(id));
}

tl::unexpected<Error> retiring_range(std::uint64_t id) {
  return fail(ErrorCode::invalid_argument, "range " + std::to_string(id) + " is retiring");
}

} // namespace

RangeTable::RangeTable(const Limits& limits)
    : registrations_("registrations", limits.registrations),
      bytes_("registered bytes", limits.registered_bytes) {}

RangeTable::~RangeTable() {
  // Freeing bytes that something may still touch is never right: who cannot drain leaks the table.
  WHERRY_ASSERT(leases_ == 0);
  // Again while not empty: a foreign destructor may have registered a range.
  while (!ranges_.empty()) {
    for (std::uint64_t id = ranges_.first_from(0); id != 0;
         id = ranges_.first_from(id_slot(id) + 1)) {
      Range& range = *ranges_.find(id);
      range.retiring = range.revoked = range.erasing = true;
      erase(id, range);
    }
  }
}

Result<std::uint64_t> RangeTable::add(RangeSpec spec) {
  if (auto checked = check(spec); !checked) {
    return tl::unexpected(std::move(checked.error()));
  }
  const std::uint64_t length_bytes = spec.length_bytes;
  const std::lock_guard lock(mutex_);
  if (auto charged = registrations_.charge(1); !charged) {
    return tl::unexpected(std::move(charged.error()));
  }
  ChargeGuard registration_charge(registrations_, 1);
  if (auto charged = bytes_.charge(length_bytes); !charged) {
    return tl::unexpected(std::move(charged.error()));
  }
  ChargeGuard bytes_charge(bytes_, length_bytes);
  const auto [id, range] = ranges_.emplace();
  if (range == nullptr) {
    return fail(ErrorCode::resource_exhausted, "every id of a range has been used");
  }
  // Moved only now: a refusal must not destroy foreign objects under the mutex.
  range->spec = std::move(spec);
  registration_charge.keep();
  bytes_charge.keep();
  return id;
}

Result<RangeTable::Facts> RangeTable::facts(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const Range* range = ranges_.find(id);
  if (range == nullptr) {
    return no_such_range(id);
  }
  if (range->retiring) {
    return retiring_range(id);
  }
  const RangeSpec& spec = range->spec;
  return Facts{spec.kind, spec.length_bytes, spec.visibility, spec.native.get()};
}

Result<LeasedBytes> RangeTable::lease(std::uint64_t id, Access access) {
  const std::lock_guard lock(mutex_);
  Range* range = ranges_.find(id);
  if (range == nullptr) {
    return no_such_range(id);
  }
  if (range->retiring) {
    return retiring_range(id);
  }
  if (access == Access::write && !range->spec.writable) {
    return fail(ErrorCode::invalid_argument, "range " + std::to_string(id) + " is not writable");
  }
  ++range->leases;
  ++leases_;
  return leased_bytes(id, range->spec);
}

Result<LeasedBytes> RangeTable::lease_for_peer(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  Range* range = ranges_.find(id);
  if (range == nullptr || range->revoked) {
    return fail(ErrorCode::range_withdrawn, "the range was withdrawn by its owner");
  }
  ++range->leases;
  ++range->peer_leases;
  ++leases_;
  return leased_bytes(id, range->spec);
}

void RangeTable::release(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  Range* range = ranges_.find(id);
  WHERRY_ASSERT(range != nullptr && range->leases > range->peer_leases);
  --range->leases;
  --leases_;
}

void RangeTable::release_for_peer(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  Range* range = ranges_.find(id);
  WHERRY_ASSERT(range != nullptr && range->peer_leases > 0);
  --range->peer_leases;
  --range->leases;
  --leases_;
}

std::uint64_t RangeTable::peer_leases(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const Range* range = ranges_.find(id);
  return range == nullptr ? 0 : range->peer_leases;
}

Result<void> RangeTable::begin_retire(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  Range* range = ranges_.find(id);
  if (range == nullptr) {
    return no_such_range(id);
  }
  range->retiring = true;
  return {};
}

void RangeTable::revoke(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  // Gone is fine: of two threads that retire one range, the other may have ended it.
  if (Range* range = ranges_.find(id)) {
    WHERRY_ASSERT(range->retiring);
    range->revoked = true;
  }
}

bool RangeTable::try_erase(std::uint64_t id) {
  Range* range = nullptr;
  {
    const std::lock_guard lock(mutex_);
    range = ranges_.find(id);
    if (range == nullptr) {
      return true;
    }
    WHERRY_ASSERT(range->retiring && range->revoked);
    if (range->leases > 0 || range->erasing) {
      return false;
    }
    range->erasing = true;
  }
  erase(id, *range);
  return true;
}

// The range stays in the table, without leases to be had, until all it held is gone: only then may
// try_erase tell anybody so. Nobody else touches the specification meanwhile.
void RangeTable::erase(std::uint64_t id, Range& range) {
  const std::uint64_t length_bytes = range.spec.length_bytes;
  range.spec.native.reset();
  range.spec.keep_alive.reset();
  const std::lock_guard lock(mutex_);
  registrations_.release(1);
  bytes_.release(length_bytes);
  WHERRY_ASSERT(ranges_.erase(id));
}

std::uint64_t RangeTable::leases(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const Range* range = ranges_.find(id);
  return range == nullptr ? 0 : range->leases;
}

Result<void> RangeTable::set_budget(std::uint32_t registrations, std::uint64_t registered_bytes) {
  // Charges are made under this mutex, so that the old limit can always be put back.
  const std::lock_guard lock(mutex_);
  const std::uint64_t registrations_before = registrations_.limit();
  if (auto set = registrations_.set_limit(registrations); !set) {
    return set;
  }
  auto set = bytes_.set_limit(registered_bytes);
  if (!set) {
    WHERRY_ASSERT(registrations_.set_limit(registrations_before));
  }
  return set;
}

RangeTable::Counters RangeTable::counters() const {
  const std::lock_guard lock(mutex_);
  return {registrations_.used(), bytes_.used(), leases_,
          registrations_.refusals() + bytes_.refusals()};
}

} // namespace wherry

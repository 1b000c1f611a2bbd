// Admission (R27). Owns nothing: leases live in the range table, charges in the budgets, and what a
// batch holds of both in its Admitted. Any thread. A batch is walked once; everything taken on the
// way is given back by one guard, whichever way the walk ends.
#include "request/admission.h"

#include "base/assert.h"

#include <bit>
#include <string>
#include <utility>

namespace wherry {
namespace {

bool within(std::uint64_t offset, std::uint64_t length_bytes, std::uint64_t range_bytes) {
  return offset <= range_bytes && length_bytes <= range_bytes - offset;
}

tl::unexpected<Error> refuse(std::size_t index, ErrorCode code, std::string_view field,
                             const std::string& what) {
  return fail(code, "operation " + std::to_string(index) + ": " + std::string(field) + ": " + what);
}

std::string beyond(std::uint64_t offset, std::uint64_t length_bytes, std::uint64_t range_bytes) {
  return std::to_string(length_bytes) + " bytes at " + std::to_string(offset) +
         " do not lie within the range's " + std::to_string(range_bytes);
}

Result<void> check_remote(std::size_t index, const Operation& operation, const RemoteFacts* facts) {
  if (facts == nullptr) {
    return refuse(index, ErrorCode::not_found, "remote_range",
                  "the source has no range " + std::to_string(operation.remote_range));
  }
  if (facts->withdrawn) {
    return refuse(index, ErrorCode::range_withdrawn, "remote_range",
                  "the owner has withdrawn range " + std::to_string(operation.remote_range));
  }
  const bool read = operation.kind == OperationKind::read;
  if (facts->visibility < (read ? Visibility::remote_read : Visibility::remote_read_write)) {
    return refuse(index, ErrorCode::access_denied, "remote_range",
                  "range " + std::to_string(operation.remote_range) + " is " +
                      std::string(to_string(facts->visibility)) + ", which allows no " +
                      (read ? "READ" : "WRITE"));
  }
  if (!within(operation.remote_offset, operation.length_bytes, facts->length_bytes)) {
    return refuse(index, ErrorCode::out_of_range, "remote_offset",
                  beyond(operation.remote_offset, operation.length_bytes, facts->length_bytes));
  }
  return {};
}

/// One walk over a batch. Gives back what it took unless it was kept.
class Attempt {
public:
  Attempt(RangeTable& ranges, const RemoteRanges& remote, RequestBudgets& budgets, Admitted& out)
      : ranges_(ranges), remote_(remote), budgets_(budgets), out_(out) {}
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  Result<void> check(std::size_t index, const Operation& operation);
  Result<void> charge(std::size_t operations);
  void keep() { kept_ = true; }

private:
  Result<const LeasedBytes*> local_lease(std::size_t index, std::uint64_t range);
  Result<void> check_local(std::size_t index, const Operation& operation);
  const RemoteFacts* remote_facts(std::uint64_t range);

  RangeTable& ranges_;
  const RemoteRanges& remote_;
  RequestBudgets& budgets_;
  Admitted& out_;
  std::uint64_t bytes_ = 0;
  std::uint64_t remote_range_ = 0; ///< Neighbours mostly name the same range: one look-up.
  const RemoteFacts* remote_facts_ = nullptr;
  bool request_charged_ = false;
  bool kept_ = false;
};

Attempt::~Attempt() {
  if (kept_) {
    return;
  }
  for (const LeasedBytes& lease : out_.leases) {
    ranges_.release(lease.range);
  }
  budgets_.operations.release(out_.operations);
  budgets_.requests.release(request_charged_ ? 1 : 0);
  out_.clear();
}

Result<void> Attempt::check(std::size_t index, const Operation& operation) {
  if (operation.kind != OperationKind::read && operation.kind != OperationKind::write) {
    return refuse(index, ErrorCode::invalid_argument, "kind", "it is neither READ nor WRITE");
  }
  if (auto local = check_local(index, operation); !local) {
    return local;
  }
  if (auto checked = check_remote(index, operation, remote_facts(operation.remote_range));
      !checked) {
    return checked;
  }
  if (__builtin_add_overflow(bytes_, operation.length_bytes, &bytes_)) {
    return refuse(index, ErrorCode::invalid_argument, "length_bytes",
                  "the batch's bytes do not fit into 64 bits");
  }
  return {};
}

Result<void> Attempt::check_local(std::size_t index, const Operation& operation) {
  const auto lease = local_lease(index, operation.local_range);
  if (!lease) {
    return tl::unexpected(lease.error());
  }
  const LeasedBytes& local = **lease;
  if (operation.kind == OperationKind::read && !local.writable) {
    return refuse(index, ErrorCode::invalid_argument, "local_range",
                  "range " + std::to_string(local.range) +
                      " is not writable: a READ cannot put bytes into it");
  }
  if (!within(operation.local_offset, operation.length_bytes, local.length_bytes)) {
    return refuse(index, ErrorCode::invalid_argument, "local_offset",
                  beyond(operation.local_offset, operation.length_bytes, local.length_bytes));
  }
  return {};
}

// Leased for reading whatever the operation: a later one may want more of the same lease, so that
// whether the range is writable is asked an operation, not a lease.
Result<const LeasedBytes*> Attempt::local_lease(std::size_t index, std::uint64_t range) {
  if (const LeasedBytes* known = out_.find(range)) {
    return known;
  }
  auto lease = ranges_.lease(range, Access::read);
  if (!lease) {
    return refuse(index, lease.error().code, "local_range", lease.error().message);
  }
  try {
    out_.enter(*lease);
  } catch (...) {
    ranges_.release(range);
    throw;
  }
  return &out_.leases.back();
}

const RemoteFacts* Attempt::remote_facts(std::uint64_t range) {
  if (remote_facts_ == nullptr || range != remote_range_) {
    remote_range_ = range;
    remote_facts_ = remote_.find(range);
  }
  return remote_facts_;
}

Result<void> Attempt::charge(std::size_t operations) {
  if (auto charged = budgets_.requests.charge(1); !charged) {
    return charged;
  }
  request_charged_ = true;
  if (auto charged = budgets_.operations.charge(operations); !charged) {
    return charged;
  }
  out_.operations = operations;
  return {};
}

} // namespace

const LeasedBytes* Admitted::find(std::uint64_t range) const {
  if (!index_.empty()) {
    const std::uint32_t entry = index_[place(range)];
    return entry == 0 ? nullptr : &leases[entry - 1];
  }
  for (const LeasedBytes& lease : leases) {
    if (lease.range == range) {
      return &lease;
    }
  }
  return nullptr;
}

// Where a range stands in the index, or would. Ids are slot and generation: the multiplication
// spreads neighbouring slots, whose upper bits are what is taken.
std::size_t Admitted::place(std::uint64_t range) const {
  const std::size_t mask = index_.size() - 1;
  std::size_t at = ((range * 0x9e3779b97f4a7c15ULL) >> 32) & mask;
  while (index_[at] != 0 && leases[index_[at] - 1].range != range) {
    at = (at + 1) & mask;
  }
  return at;
}

void Admitted::enter(const LeasedBytes& lease) {
  // Grown before the lease is in: when memory runs out, nothing has changed.
  const std::size_t count = leases.size() + 1;
  if (count > searched_leases_max && index_.size() < 2 * count) {
    rebuild_index(std::bit_ceil(4 * count));
  }
  leases.push_back(lease);
  if (!index_.empty()) {
    index_[place(lease.range)] = static_cast<std::uint32_t>(count);
  }
}

void Admitted::rebuild_index(std::size_t places) {
  index_.assign(places, 0);
  for (std::size_t i = 0; i < leases.size(); ++i) {
    index_[place(leases[i].range)] = static_cast<std::uint32_t>(i + 1);
  }
}

void Admitted::clear() {
  leases.clear();
  index_.clear();
  operations = 0;
  held = false;
}

Result<void> admit(std::span<const Operation> operations, RangeTable& ranges,
                   const RemoteRanges& remote, RequestBudgets& budgets, Admitted& out) {
  WHERRY_ASSERT(!out.held && out.leases.empty() && out.operations == 0);
  if (operations.size() > UINT32_MAX) {
    return fail(ErrorCode::invalid_argument,
                "a batch has at most " + std::to_string(UINT32_MAX) + " operations");
  }
  Attempt attempt(ranges, remote, budgets, out);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (auto checked = attempt.check(i, operations[i]); !checked) {
      return checked;
    }
  }
  if (auto charged = attempt.charge(operations.size()); !charged) {
    return charged;
  }
  attempt.keep();
  out.held = true;
  return {};
}

void release(Admitted& admitted, RangeTable& ranges, RequestBudgets& budgets) {
  WHERRY_ASSERT(admitted.held);
  for (const LeasedBytes& lease : admitted.leases) {
    ranges.release(lease.range);
  }
  budgets.operations.release(admitted.operations);
  budgets.requests.release(1);
  admitted.clear();
}

} // namespace wherry

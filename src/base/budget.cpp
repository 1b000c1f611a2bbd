// Budgets. Owns two numbers under one lock; any thread. `used_ <= limit_` holds always, which is
// what lets every comparison below subtract without overflow (R13, R43).
#include "base/budget.h"

#include "base/assert.h"

namespace wherry {

Result<void> Budget::charge(std::uint64_t amount) {
  const std::lock_guard lock(mutex_);
  if (amount > limit_ - used_) {
    ++refusals_;
    return fail(ErrorCode::resource_exhausted, "the budget of " + std::string(name_) +
                                                   " is used up: " + std::to_string(amount) +
                                                   " asked for, " + std::to_string(used_) + " of " +
                                                   std::to_string(limit_) + " in use");
  }
  used_ += amount;
  return {};
}

void Budget::release(std::uint64_t amount) {
  const std::lock_guard lock(mutex_);
  WHERRY_ASSERT(amount <= used_);
  used_ -= amount;
}

Result<void> Budget::set_limit(std::uint64_t limit) {
  const std::lock_guard lock(mutex_);
  if (limit < used_) {
    return fail(ErrorCode::invalid_argument, "the budget of " + std::string(name_) +
                                                 " cannot be set to " + std::to_string(limit) +
                                                 ": " + std::to_string(used_) + " are in use");
  }
  limit_ = limit;
  return {};
}

std::uint64_t Budget::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

std::uint64_t Budget::limit() const {
  const std::lock_guard lock(mutex_);
  return limit_;
}

std::uint64_t Budget::refusals() const {
  const std::lock_guard lock(mutex_);
  return refusals_;
}

} // namespace wherry

// Budgets: bounded quantities that callers and peers can use up. Thread-safe.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <mutex>
#include <string_view>

namespace wherry {

/// A limit, what is in use, and the refusal that names both. Arithmetic cannot overflow.
class Budget {
public:
  /// `name` is static and stands in refusals: "registrations", "registered bytes".
  Budget(std::string_view name, std::uint64_t limit) : name_(name), limit_(limit) {}

  /// All of `amount` or nothing. Error: resource_exhausted, naming budget, limit, use and request.
  Result<void> charge(std::uint64_t amount);
  void release(std::uint64_t amount);
  /// Refused (invalid_argument) below what is in use.
  Result<void> set_limit(std::uint64_t limit);

  std::uint64_t used() const;
  std::uint64_t limit() const;
  std::uint64_t refusals() const;

private:
  const std::string_view name_;
  mutable std::mutex mutex_;
  std::uint64_t limit_;
  std::uint64_t used_ = 0;
  std::uint64_t refusals_ = 0;
};

} // namespace wherry

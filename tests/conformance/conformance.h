// The fixture of all conformance cases, and the pair of engines that most of them use.
//
// At the end of each case the fixture checks what must hold whatever the case did: all leases,
// charges and requests have been given back, every engine closes, and if bytes moved, the path
// under test moved them and no other (R4).
#pragma once

#include "conformance/variant.h"

#include <wherry/wherry.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wherry::conformance {

// --- Bytes --------------------------------------------------------------------------------------

using Bytes = std::vector<std::byte>;
/// Held by registrations too (keep_alive), so that no case frees what an engine may still touch.
using SharedBytes = std::shared_ptr<Bytes>;

/// The bytes that a seed gives at an offset: no two places look alike.
Bytes pattern(std::size_t bytes, std::uint64_t seed);
/// The same into bytes that are there: those behind a registration.
void fill(std::span<std::byte> bytes, std::uint64_t seed);
SharedBytes shared_pattern(std::size_t bytes, std::uint64_t seed);
/// With the first difference.
testing::AssertionResult same(std::span<const std::byte> left, std::span<const std::byte> right);

// --- Results ------------------------------------------------------------------------------------

/// Fails the case where `what` failed.
template <class T>
T must(Result<T> what) {
  if (!what) {
    throw std::runtime_error(std::string(to_string(what.error().code)) + ": " +
                             what.error().message);
  }
  if constexpr (!std::is_void_v<T>) {
    return std::move(*what);
  }
}

/// Whether it was refused with this code, and a message that names these things.
testing::AssertionResult refused(const Error* error, ErrorCode code,
                                 std::initializer_list<std::string_view> named);
template <class T>
testing::AssertionResult refused(const Result<T>& result, ErrorCode code,
                                 std::initializer_list<std::string_view> named = {}) {
  return refused(result ? nullptr : &result.error(), code, named);
}

/// Everything that a report says, for messages.
std::string describe(const Report& report);

// --- The fixture --------------------------------------------------------------------------------

class Conformance : public testing::TestWithParam<Provider> {
protected:
  void SetUp() override;
  void TearDown() override;

  Variant& on() { return *variant_; }
  bool can(Ability ability) const { return variant_->can(ability); }
  /// For what must happen: a bound, not a time.
  Deadline soon() { return variant_->after(std::chrono::seconds(60)); }
  /// For waits that are to elapse.
  Deadline a_moment() { return variant_->after(std::chrono::milliseconds(20)); }
  TransferEngine& engine(EngineOptions options = {}) {
    return variant_->engine(std::move(options));
  }
  bool run_until(const std::function<bool()>& done) { return variant_->run_until(done); }

private:
  void expect_nothing_held(const TransferEngine& engine);

  std::unique_ptr<Variant> variant_;
};

struct PairOptions {
  std::size_t their_bytes = 1 << 20;
  std::size_t my_bytes = 1 << 20;
  Visibility visibility = Visibility::remote_read_write;
  EngineOptions owner{};
  EngineOptions consumer{};
  std::optional<std::uint32_t> lanes{};
};

/// An owner that publishes the range "r" of the source "s", and a consumer that has opened it.
class Pair {
public:
  explicit Pair(Variant& on, const PairOptions& options = {});

  Operation read(std::uint64_t at, std::uint64_t bytes) const { return read(at, at, bytes); }
  Operation read(std::uint64_t my_offset, std::uint64_t their_offset, std::uint64_t bytes) const {
    return Operation::read(*my_range, my_offset, range, their_offset, bytes);
  }
  Operation write(std::uint64_t at, std::uint64_t bytes) const { return write(at, at, bytes); }
  Operation write(std::uint64_t my_offset, std::uint64_t their_offset, std::uint64_t bytes) const {
    return Operation::write(*my_range, my_offset, range, their_offset, bytes);
  }

  Request submit(std::span<const Operation> operations, const SubmitOptions& options = {}) {
    return must(remote->submit(operations, options));
  }
  Request submit(std::initializer_list<Operation> operations, const SubmitOptions& options = {}) {
    return must(remote->submit(operations, options));
  }
  /// Submits and waits for the drain.
  Report run(std::span<const Operation> operations, const SubmitOptions& options = {});
  Report run(std::initializer_list<Operation> operations, const SubmitOptions& options = {}) {
    return run(std::span(operations.begin(), operations.size()), options);
  }
  /// A READ of the first bytes arrives: the connection is of use.
  testing::AssertionResult works();

  std::span<std::byte> mine(std::size_t from, std::size_t bytes) {
    return std::span(*my_bytes).subspan(from, bytes);
  }
  std::span<std::byte> theirs(std::size_t from, std::size_t bytes) {
    return std::span(*their_bytes).subspan(from, bytes);
  }

  Deadline soon() { return on.after(std::chrono::seconds(60)); }

  Variant& on;
  TransferEngine& owner;
  TransferEngine& consumer;
  SharedBytes their_bytes;
  SharedBytes my_bytes;
  std::optional<Registration> their_range;
  std::optional<Registration> my_range;
  std::optional<Source> source;
  std::optional<RemoteSource> remote;
  RemoteRange range;
};

#define WHERRY_NEEDS(ability)                                                                      \
  if (!can(Ability::ability))                                                                      \
  GTEST_SKIP() << on().name() << " " << to_string(Ability::ability)

/// For INSTANTIATE_TEST_SUITE_P(all, Suite, ...): the variants, and their names.
inline auto all() {
  return testing::ValuesIn(all_providers().begin(), all_providers().end());
}
inline auto moving() {
  return testing::ValuesIn(moving_providers().begin(), moving_providers().end());
}
std::string provider_name(const testing::TestParamInfo<Provider>& info);

} // namespace wherry::conformance

#include "conformance/conformance.h"

#include "base/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace wherry::conformance {

// --- Bytes --------------------------------------------------------------------------------------

Bytes pattern(std::size_t bytes, std::uint64_t seed) {
  Bytes out(bytes);
  fill(out, seed);
  return out;
}

void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  SeededRandom(seed).fill(bytes);
}

SharedBytes shared_pattern(std::size_t bytes, std::uint64_t seed) {
  return std::make_shared<Bytes>(pattern(bytes, seed));
}

testing::AssertionResult same(std::span<const std::byte> left, std::span<const std::byte> right) {
  if (left.size() != right.size()) {
    return testing::AssertionFailure() << left.size() << " and " << right.size() << " bytes";
  }
  if (left.empty() || std::memcmp(left.data(), right.data(), left.size()) == 0) {
    return testing::AssertionSuccess() << "the bytes are the same";
  }
  const auto at = std::mismatch(left.begin(), left.end(), right.begin()).first - left.begin();
  return testing::AssertionFailure() << "byte " << at << " of " << left.size() << " differs";
}

// --- Results ------------------------------------------------------------------------------------

testing::AssertionResult refused(const Error* error, ErrorCode code,
                                 std::initializer_list<std::string_view> named) {
  if (error == nullptr) {
    return testing::AssertionFailure() << "it was not refused";
  }
  if (error->code != code) {
    return testing::AssertionFailure()
           << to_string(error->code) << " instead of " << to_string(code) << ": " << error->message;
  }
  for (const std::string_view thing : named) {
    if (error->message.find(thing) == std::string::npos) {
      return testing::AssertionFailure() << "\"" << error->message << "\" does not name " << thing;
    }
  }
  return testing::AssertionSuccess();
}

std::string describe(const Report& report) {
  std::string text =
      fmt::format("{}, {} ops, {} bytes, effect {}{}, {}",
                  report.outcome ? to_string(*report.outcome) : "pending", report.completed_ops,
                  report.completed_bytes, to_string(report.remote_effect),
                  report.remote_settled ? "" : " (unsettled)", to_string(report.local_drain));
  if (report.failure) {
    text += fmt::format("; operation {}: {}: {}", report.failure->operation,
                        to_string(report.failure->error.code), report.failure->error.message);
  }
  return text;
}

// --- The fixture --------------------------------------------------------------------------------

void Conformance::SetUp() {
  variant_ = GetParam().make();
}

void Conformance::TearDown() {
  if (variant_ == nullptr) {
    return;
  }
  if (!IsSkipped()) {
    for (const auto& node : variant_->nodes()) {
      expect_nothing_held(*node->engine);
    }
    const Variant::Served served = variant_->served();
    EXPECT_EQ(served.elsewhere, 0U) << "another path than " << variant_->name() << " served";
    EXPECT_TRUE(served.here > 0 || variant_->bytes_claimed == 0) << "no path served";
  }
  while (!variant_->nodes().empty()) {
    TransferEngine& last = *variant_->nodes().back()->engine;
    const auto closed = last.close(soon());
    EXPECT_TRUE(closed) << closed.error().message;
    variant_->drop(last);
  }
  if (HasFailure()) {
    for (const std::string& line : variant_->log()) {
      std::printf("  log %s\n", line.c_str());
    }
  }
}

// Handles end in the background.
void Conformance::expect_nothing_held(const TransferEngine& engine) {
  for (const char* name : {"registrations", "registered_bytes", "leases", "requests_outstanding",
                           "operations_outstanding", "staging_buffers", "remotes", "sources"}) {
    EXPECT_TRUE(run_until([&] { return counter(engine, name) == 0; }))
        << name << " is " << counter(engine, name);
  }
}

std::string provider_name(const testing::TestParamInfo<Provider>& info) {
  return info.param.name;
}

// --- A pair of engines --------------------------------------------------------------------------

Pair::Pair(Variant& variant, const PairOptions& options)
    : on(variant), owner(variant.engine(options.owner)), consumer(variant.engine(options.consumer)),
      their_bytes(shared_pattern(options.their_bytes, 1)),
      my_bytes(shared_pattern(options.my_bytes, 2)) {
  RegisterOptions theirs_options;
  theirs_options.visibility = options.visibility;
  theirs_options.keep_alive = their_bytes;
  their_range = must(owner.register_memory(*their_bytes, std::move(theirs_options)));
  RegisterOptions mine_options;
  mine_options.keep_alive = my_bytes;
  my_range = must(consumer.register_memory(*my_bytes, std::move(mine_options)));
  SourceOptions published;
  published.listen = on.listen_address(owner);
  source = must(owner.publish("s", published, {{"r", *their_range}}));
  OpenOptions opened;
  opened.timeout = std::chrono::seconds(30);
  opened.lanes = options.lanes;
  remote = must(consumer.open(source->reference(), opened));
  range = must(remote->range("r", soon()));
}

Report Pair::run(std::span<const Operation> operations, const SubmitOptions& options) {
  Request request = submit(operations, options);
  Report report = request.wait_drained(soon());
  on.bytes_claimed += report.completed_bytes;
  return report;
}

testing::AssertionResult Pair::works() {
  const std::size_t bytes = std::min<std::size_t>({4096, my_bytes->size(), their_bytes->size()});
  const Bytes wanted(their_bytes->begin(),
                     their_bytes->begin() + static_cast<std::ptrdiff_t>(bytes));
  std::fill_n(my_bytes->begin(), bytes, std::byte{0xee});
  const auto request = remote->submit({read(0, bytes)});
  if (!request) {
    return testing::AssertionFailure() << request.error().message;
  }
  const Report report = const_cast<Request&>(*request).wait_drained(soon());
  on.bytes_claimed += report.completed_bytes;
  if (!report.completed()) {
    return testing::AssertionFailure() << describe(report);
  }
  return same(mine(0, bytes), wanted);
}

} // namespace wherry::conformance

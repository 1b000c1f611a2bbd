// R36 and R28 where all goes well: bytes arrive, all of them, where they belong, and nowhere else.
#include "conformance/conformance.h"

#include <algorithm>
#include <array>

namespace wherry::conformance {
namespace {

class Transfer : public Conformance {};

TEST_P(Transfer, R28_read_brings_the_owners_bytes_and_reports_them) {
  Pair pair(on());
  const Report report = pair.run({pair.read(0, 1 << 20)});
  EXPECT_TRUE(report.completed()) << describe(report);
  EXPECT_EQ(report.completed_ops, 1U);
  EXPECT_EQ(report.completed_bytes, 1U << 20);
  EXPECT_EQ(report.remote_effect, RemoteEffect::none);
  EXPECT_TRUE(report.remote_settled);
  EXPECT_EQ(report.local_drain, LocalDrain::drained);
  EXPECT_EQ(report.path, PathKind::tcp);
  EXPECT_FALSE(report.failure);
  EXPECT_TRUE(same(*pair.my_bytes, *pair.their_bytes));
  EXPECT_GT(on().served().here, 0U);
}

TEST_P(Transfer, R28_R29_write_is_in_place_when_it_completes) {
  Pair pair(on());
  const Report report = pair.run({pair.write(0, 1 << 20)});
  EXPECT_TRUE(report.completed()) << describe(report);
  EXPECT_EQ(report.completed_bytes, 1U << 20);
  EXPECT_EQ(report.remote_effect, RemoteEffect::applied);
  EXPECT_TRUE(report.remote_settled);
  EXPECT_TRUE(same(*pair.my_bytes, *pair.their_bytes));
  EXPECT_GT(on().served().here, 0U);
}

INSTANTIATE_TEST_SUITE_P(all, Transfer, testing::ValuesIn(moving_providers().begin(), moving_providers().end()),
                         provider_name);

} // namespace
} // namespace wherry::conformance

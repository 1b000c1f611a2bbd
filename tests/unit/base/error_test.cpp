// Errors carry first-hand evidence.
#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace wherry {
namespace {

TEST(Error, native_error_keeps_the_call_and_number_and_ends_in_the_kernels_text) {
  const Error error = native_error("connect", ECONNREFUSED, "cannot connect to 10.0.0.1:7000");
  EXPECT_EQ(error.code, ErrorCode::io_error);
  EXPECT_EQ(error.message, "cannot connect to 10.0.0.1:7000: Connection refused");
  EXPECT_EQ(error.native_call, "connect");
  EXPECT_EQ(error.native_number, ECONNREFUSED);
}

TEST(Error, an_errno_that_nobody_knows_still_has_a_text) {
  EXPECT_NE(errno_text(99999).find("99999"), std::string::npos);
}

TEST(Error, fail_claims_no_evidence_that_it_does_not_have) {
  const Result<int> result = fail(ErrorCode::busy, "two requests still use the range");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::busy);
  EXPECT_TRUE(result.error().native_call.empty());
  EXPECT_EQ(result.error().native_number, 0);
  EXPECT_FALSE(result.error().current_epoch);
}

} // namespace
} // namespace wherry

#include "errors.h"
#include "hints.h"
#include "transfer_end.h"

#include <gtest/gtest.h>

#include <string>

namespace wherry::cli {
namespace {

// What report_end says on standard error, and its status.
struct Told {
  int status;
  std::string text;
};

Told told(const TransferEnd& end, int signal = 0) {
  testing::internal::CaptureStderr();
  Console console(false, LogLevel::warning);
  const int status = report_end(console, end, signal);
  return {status, testing::internal::GetCapturedStderr()};
}

FailedFile failed(std::string name, ErrorCode code, RemoteEffect effect = RemoteEffect::none) {
  return {std::move(name), make_error(code, "words"), effect};
}

TEST(TransferEnd, nothing_failed_says_nothing) {
  const Told end = told({.files = 3, .completed = 3});
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.text, "");
}

TEST(TransferEnd, one_failure_is_the_error) {
  const Told end = told({.files = 1, .failed = {failed("a\nb", ErrorCode::range_changed)}});
  EXPECT_EQ(end.status, 4);
  EXPECT_EQ(end.text, "wherry: range_changed: 'a\\nb': words\nhint: " +
                          hint_for(ErrorCode::range_changed) + "\n");
}

TEST(TransferEnd, the_gravest_of_several_decides) {
  const Told end = told({.files = 4,
                         .completed = 2,
                         .failed = {failed("a", ErrorCode::connection_lost),
                                    failed("b", ErrorCode::io_error, RemoteEffect::uncertain)}});
  EXPECT_EQ(end.status, 6);
  EXPECT_NE(end.text.find("wherry: connection_lost: 'a': words\n"), std::string::npos) << end.text;
  EXPECT_NE(end.text.find(
                "wherry: io_error: 2 files failed, 2 of 4 files are complete; the gravest: 'b'"),
            std::string::npos)
      << end.text;
}

TEST(TransferEnd, a_long_list_is_cut) {
  TransferEnd end{.files = 50};
  for (int i = 0; i < 50; ++i) {
    end.failed.push_back(failed(std::to_string(i), ErrorCode::io_error));
  }
  const Told said = told(end);
  EXPECT_NE(said.text.find("'19'"), std::string::npos);
  EXPECT_EQ(said.text.find("'20'"), std::string::npos);
  EXPECT_NE(said.text.find("and 30 more files failed"), std::string::npos);
}

TEST(TransferEnd, what_stopped_the_command_is_its_error) {
  const Told end =
      told({.files = 9, .completed = 4, .stopped = make_error(ErrorCode::stalled, "no byte")});
  EXPECT_EQ(end.status, 9);
  EXPECT_NE(end.text.find("wherry: stalled: no byte; 4 of 9 files are complete\n"),
            std::string::npos)
      << end.text;
}

TEST(TransferEnd, a_signal_decides_the_status_and_the_effect_is_still_told) {
  FailedFile file = failed("a", ErrorCode::cancelled, RemoteEffect::uncertain);
  const Told end = told({.files = 1, .failed = {file}, .stopped = file.error}, 15);
  EXPECT_EQ(end.status, 143);
  EXPECT_NE(end.text.find("wherry: cancelled: 'a'"), std::string::npos) << end.text;
}

TEST(Hints, every_code_has_one_that_ends_in_its_anchor) {
  for (int number = 1; number <= 22; ++number) {
    const auto code = static_cast<ErrorCode>(number);
    const std::string anchor = "docs/TROUBLESHOOTING.md#" + std::string(to_string(code));
    EXPECT_TRUE(hint_for(code).ends_with(anchor)) << hint_for(code);
  }
}

} // namespace
} // namespace wherry::cli

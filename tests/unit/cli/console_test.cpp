#include "console.h"
#include "errors.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace wherry::cli {
namespace {

using Json = nlohmann::json;

TEST(AddName, bytes_that_are_no_text_come_in_base64_too) {
  Json object;
  add_name(object, "name", "plain");
  EXPECT_EQ(object, (Json{{"name", "plain"}}));
  add_name(object, "name", "a\xff");
  EXPECT_EQ(object, (Json{{"name", "a\xef\xbf\xbd"}, {"name_base64", "Yf8="}}));
}

TEST(Console, errors_are_one_line_and_a_hint) {
  testing::internal::CaptureStderr();
  Console(false, LogLevel::warning).error(make_error(ErrorCode::busy, "two\nlines\x1b[0m"), "wait");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "wherry: busy: two\\nlines\\x1b[0m\nhint: wait\n");
}

TEST(Console, errors_are_one_object_with_json) {
  Error error = make_error(ErrorCode::stale_epoch, "gone \xff");
  error.native_call = "connect";
  error.native_number = 111;
  error.current_epoch = 7;
  testing::internal::CaptureStderr();
  Console(true, LogLevel::warning).error(error, "ask");
  const Json object = Json::parse(testing::internal::GetCapturedStderr());
  EXPECT_EQ(object, (Json{{"error",
                           {{"code", "stale_epoch"},
                            {"message", "gone \xef\xbf\xbd"},
                            {"native_call", "connect"},
                            {"native_number", 111},
                            {"current_epoch", 7},
                            {"hint", "ask"}}}}));
}

TEST(Console, the_log_level_is_a_threshold) {
  testing::internal::CaptureStderr();
  Console console(false, LogLevel::warning);
  console.log(LogLevel::info, "quiet");
  console.log(LogLevel::warning, "loud");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "wherry: warning: loud\n");
}

TEST(Console, a_message_wipes_the_drawn_line) {
  testing::internal::CaptureStderr();
  Console console(false, LogLevel::warning);
  console.draw("12345");
  console.draw("123");
  console.note("hello");
  console.finish_drawing();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "\r12345\r123  \r123\r   \rwherry: hello\n");
}

} // namespace
} // namespace wherry::cli

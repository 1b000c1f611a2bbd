#include "arguments.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace wherry::cli {
namespace {

using Parsed = std::variant<Arguments, HelpText, UsageError>;

Parsed parse(std::vector<const char*> words) {
  words.insert(words.begin(), "wherry");
  return parse_arguments(static_cast<int>(words.size()), words.data());
}

std::string refusal_of(const Parsed& parsed) {
  const auto* usage = std::get_if<UsageError>(&parsed);
  return usage == nullptr ? "" : usage->error.message;
}

template <class T>
T options(const std::vector<const char*>& words) {
  const Parsed parsed = parse(words);
  const auto* arguments = std::get_if<Arguments>(&parsed);
  EXPECT_NE(arguments, nullptr) << refusal_of(parsed);
  if (arguments == nullptr || !std::holds_alternative<T>(arguments->command)) {
    ADD_FAILURE() << words.front();
    return {};
  }
  return std::get<T>(arguments->command);
}

std::string refusal(const std::vector<const char*>& words) {
  const Parsed parsed = parse(words);
  EXPECT_TRUE(std::holds_alternative<UsageError>(parsed));
  return refusal_of(parsed);
}

TEST(Arguments, serve_takes_ranges_whatever_they_look_like) {
  const auto serve =
      options<ServeOptions>({"serve", "--name", "[n]", "[a,b]", "--listen", "[::1]:0", "a b\n",
                             "\xff", "pull", "--", "-x", "--json"});
  EXPECT_EQ(serve.name, "[n]");
  EXPECT_EQ(serve.listen, "[::1]:0");
  EXPECT_EQ(serve.ranges,
            (std::vector<std::string>{"[a,b]", "a b\n", "\xff", "pull", "-x", "--json"}));
}

TEST(Arguments, pull_takes_one_value_a_range_option) {
  const auto pull =
      options<PullOptions>({"pull", "--range", "[ab]*", "ref", "--range", "x,y", "-", "--offset",
                            "4KiB", "--length", "0", "--stall-timeout", "500ms"});
  EXPECT_EQ(pull.ranges, (std::vector<std::string>{"[ab]*", "x,y"}));
  EXPECT_EQ(pull.peer.reference, "ref");
  EXPECT_EQ(pull.dest, "-");
  EXPECT_EQ(pull.offset, 4096U);
  EXPECT_EQ(pull.length, 0U);
  EXPECT_EQ(pull.transfer.stall_timeout, std::chrono::milliseconds(500));
  EXPECT_TRUE(pull.transfer.checksum);
  EXPECT_TRUE(pull.sync);
}

TEST(Arguments, the_last_word_of_push_is_the_reference) {
  const auto push = options<PushOptions>({"push", "a", "[b]", "ref", "--verify"});
  EXPECT_EQ(push.sources, (std::vector<std::string>{"a", "[b]"}));
  EXPECT_EQ(push.peer.reference, "ref");
  EXPECT_TRUE(push.transfer.verify);
}

TEST(Arguments, doctor_needs_nothing) {
  EXPECT_EQ(options<DoctorOptions>({"doctor"}).peer.reference, "");
  EXPECT_EQ(options<DoctorOptions>({"doctor", "--require", "tcp"}).require, PathKind::tcp);
}

TEST(Arguments, refusals_name_what_is_wrong) {
  struct Row {
    std::vector<const char*> words;
    const char* part;
  };
  const Row rows[] = {
      {{}, "a command is required"},
      {{"fly"}, "unknown command 'fly'"},
      {{"--frobnicate"}, "unknown option '--frobnicate'"},
      {{"pull", "--frobnicate", "ref"}, "unknown option '--frobnicate'"},
      {{"pull", "--resume", "ref"}, "unknown option '--resume'"},
      {{"bench"}, "'bench'"},
      {{"pull"}, "REF"},
      {{"pull", "ref", "dest", "more"}, "unexpected argument 'more'"},
      {{"describe"}, "REF"},
      {{"serve"}, "RANGE"},
      {{"push", "ref"}, "SRC"},
      {{"pull", "ref", "--offset", "-1"}, "'-1'"},
      {{"pull", "ref", "--jobs", "0"}, "'0'"},
      {{"pull", "ref", "--lanes", "many"}, "'many'"},
      {{"pull", "ref", "--stall-timeout", "soon"}, "'soon'"},
      {{"pull", "ref", "--path", "pigeon"}, "'pigeon'"},
      {{"pull", "ref", "--log-level", "loud"}, "'loud'"},
      {{"doctor", "--require", "auto"}, "'auto'"},
  };
  for (const Row& row : rows) {
    const std::string message = refusal(row.words);
    EXPECT_NE(message.find(row.part), std::string::npos) << message;
  }
}

TEST(Arguments, json_is_known_though_the_rest_is_wrong) {
  const Parsed parsed = parse({"pull", "--json", "--frobnicate"});
  ASSERT_TRUE(std::holds_alternative<UsageError>(parsed));
  EXPECT_TRUE(std::get<UsageError>(parsed).json);
}

TEST(Arguments, every_command_has_help_with_an_example) {
  for (const char* command : {"serve", "describe", "pull", "push", "doctor", "version"}) {
    const Parsed parsed = parse({command, "--help"});
    ASSERT_TRUE(std::holds_alternative<HelpText>(parsed)) << command;
    const std::string& text = std::get<HelpText>(parsed).text;
    EXPECT_NE(text.find("Example:\n  wherry " + std::string(command)), std::string::npos) << text;
    EXPECT_NE(text.find("--json"), std::string::npos);
    EXPECT_NE(text.find("--log-level"), std::string::npos);
  }
}

} // namespace
} // namespace wherry::cli

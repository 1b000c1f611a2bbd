// The public words. They stand in reports, JSON, logs and the other faces: a change here is seen.
#include <wherry/capability.hpp>
#include <wherry/error.hpp>
#include <wherry/registration.hpp>
#include <wherry/request.hpp>
#include <wherry/source.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string_view>
#include <utility>

namespace wherry {
namespace {

template <class Enum>
using Row = std::pair<Enum, std::string_view>;

template <class Enum, std::size_t n>
void expect_names(const std::array<Row<Enum>, n>& rows) {
  for (const auto& [value, name] : rows) {
    EXPECT_EQ(to_string(value), name);
  }
  EXPECT_EQ(to_string(static_cast<Enum>(200)), "unknown");
}

// Code, number on the wire and in the C ABI, name.
TEST(Names, error_codes_keep_their_numbers_and_names) {
  constexpr std::array<std::string_view, 23> names = {"",
                                                      "io_error",
                                                      "invalidated",
                                                      "cancelled",
                                                      "invalid_argument",
                                                      "wrong_process",
                                                      "unavailable",
                                                      "fenced",
                                                      "stale_epoch",
                                                      "protocol_mismatch",
                                                      "unauthenticated",
                                                      "access_denied",
                                                      "out_of_range",
                                                      "not_found",
                                                      "range_withdrawn",
                                                      "range_changed",
                                                      "resource_exhausted",
                                                      "busy",
                                                      "unsettled",
                                                      "unquiesced",
                                                      "connection_lost",
                                                      "timed_out",
                                                      "stalled"};
  for (std::size_t number = 1; number < names.size(); ++number) {
    EXPECT_EQ(to_string(static_cast<ErrorCode>(number)), names[number]);
  }
  EXPECT_EQ(to_string(static_cast<ErrorCode>(0)), "unknown");
  EXPECT_EQ(to_string(static_cast<ErrorCode>(names.size())), "unknown");
}

TEST(Names, paths_and_answers) {
  expect_names(std::to_array<Row<PathKind>>({{PathKind::automatic, "auto"},
                                             {PathKind::tcp, "tcp"},
                                             {PathKind::io_uring, "io_uring"},
                                             {PathKind::posix, "posix"},
                                             {PathKind::rdma, "rdma"},
                                             {PathKind::cuda, "cuda"},
                                             {PathKind::gds, "gds"}}));
  expect_names(std::to_array<Row<Answer>>(
      {{Answer::no, "no"}, {Answer::yes, "yes"}, {Answer::not_asked, "not asked"}}));
}

TEST(Names, ranges) {
  expect_names(
      std::to_array<Row<Visibility>>({{Visibility::local_only, "local_only"},
                                      {Visibility::remote_read, "remote_read"},
                                      {Visibility::remote_read_write, "remote_read_write"}}));
  expect_names(std::to_array<Row<RangeKind>>(
      {{RangeKind::host_memory, "host_memory"}, {RangeKind::file, "file"}}));
}

TEST(Names, R28_the_facts_of_a_report) {
  expect_names(std::to_array<Row<Outcome>>({{Outcome::completed, "completed"},
                                            {Outcome::failed, "failed"},
                                            {Outcome::cancelled, "cancelled"},
                                            {Outcome::timed_out, "timed_out"}}));
  expect_names(std::to_array<Row<RemoteEffect>>({{RemoteEffect::none, "none"},
                                                 {RemoteEffect::applied, "applied"},
                                                 {RemoteEffect::partial, "partial"},
                                                 {RemoteEffect::acknowledged, "acknowledged"},
                                                 {RemoteEffect::uncertain, "uncertain"}}));
  expect_names(std::to_array<Row<LocalDrain>>({{LocalDrain::in_flight, "in_flight"},
                                               {LocalDrain::drained, "drained"},
                                               {LocalDrain::unquiesced, "unquiesced"}}));
  expect_names(std::to_array<Row<OperationState>>({{OperationState::not_started, "not_started"},
                                                   {OperationState::confirmed, "confirmed"},
                                                   {OperationState::failed, "failed"},
                                                   {OperationState::uncertain, "uncertain"}}));
}

TEST(Names, sources) {
  expect_names(std::to_array<Row<SourceState>>({{SourceState::open, "open"},
                                                {SourceState::lost, "lost"},
                                                {SourceState::stale, "stale"},
                                                {SourceState::closed, "closed"}}));
  Digest digest;
  digest.bytes[1] = 0xc5;
  EXPECT_EQ(digest.to_string(), "00c50000000000000000000000000000");
}

} // namespace
} // namespace wherry

#include "exit_status.h"

#include <gtest/gtest.h>

namespace wherry::cli {
namespace {

constexpr RemoteEffect effects[] = {RemoteEffect::none, RemoteEffect::applied,
                                    RemoteEffect::partial, RemoteEffect::acknowledged,
                                    RemoteEffect::uncertain};

struct Row {
  ErrorCode code;
  int status;
};

// The table of the command line's description, in its order.
constexpr Row rows[] = {
    {ErrorCode::io_error, 1},
    {ErrorCode::invalidated, 1},
    {ErrorCode::cancelled, 1},
    {ErrorCode::invalid_argument, 2},
    {ErrorCode::wrong_process, 2},
    {ErrorCode::unavailable, 3},
    {ErrorCode::fenced, 3},
    {ErrorCode::stale_epoch, 4},
    {ErrorCode::protocol_mismatch, 4},
    {ErrorCode::unauthenticated, 4},
    {ErrorCode::access_denied, 4},
    {ErrorCode::out_of_range, 4},
    {ErrorCode::not_found, 4},
    {ErrorCode::range_withdrawn, 4},
    {ErrorCode::range_changed, 4},
    {ErrorCode::resource_exhausted, 5},
    {ErrorCode::busy, 5},
    {ErrorCode::unsettled, 5},
    {ErrorCode::unquiesced, 7},
    {ErrorCode::connection_lost, 9},
    {ErrorCode::timed_out, 9},
    {ErrorCode::stalled, 9},
};

TEST(ExitStatus, follows_the_code_where_nothing_changed) {
  for (const Row& row : rows) {
    EXPECT_EQ(exit_status(row.code), row.status) << to_string(row.code);
  }
}

TEST(ExitStatus, R29_an_effect_weighs_more_than_the_code) {
  for (const Row& row : rows) {
    if (row.code == ErrorCode::unquiesced) {
      continue;
    }
    EXPECT_EQ(exit_status(row.code, RemoteEffect::uncertain), 6) << to_string(row.code);
    EXPECT_EQ(exit_status(row.code, RemoteEffect::acknowledged), 6) << to_string(row.code);
    EXPECT_EQ(exit_status(row.code, RemoteEffect::partial), 8) << to_string(row.code);
    EXPECT_EQ(exit_status(row.code, RemoteEffect::applied), 8) << to_string(row.code);
  }
}

TEST(ExitStatus, R33_unquiesced_weighs_most) {
  for (const Row& row : rows) {
    for (const RemoteEffect effect : effects) {
      EXPECT_EQ(exit_status(row.code, effect, LocalDrain::unquiesced), 7) << to_string(row.code);
    }
  }
  for (const RemoteEffect effect : effects) {
    EXPECT_EQ(exit_status(ErrorCode::unquiesced, effect), 7);
  }
}

TEST(Graver, is_a_total_order) {
  constexpr int gravest_first[] = {7, 6, 8, 1, 4, 3, 5, 2, 9, 0};
  for (std::size_t i = 0; i < std::size(gravest_first); ++i) {
    for (std::size_t j = i; j < std::size(gravest_first); ++j) {
      EXPECT_EQ(graver(gravest_first[i], gravest_first[j]), gravest_first[i]);
      EXPECT_EQ(graver(gravest_first[j], gravest_first[i]), gravest_first[i]);
    }
  }
}

} // namespace
} // namespace wherry::cli

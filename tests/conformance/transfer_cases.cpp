// R28, R29 and R36 where all goes well: bytes arrive, all of them, where they belong and nowhere
// else, whatever their number, place and alignment.
#include "base/random.h"
#include "conformance/conformance.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace wherry::conformance {
namespace {

class Transfer : public Conformance {
protected:
  void expect_completed(const Report& report, std::uint64_t operations, std::uint64_t bytes) {
    EXPECT_TRUE(report.completed()) << describe(report);
    EXPECT_EQ(report.completed_ops, operations);
    EXPECT_EQ(report.completed_bytes, bytes);
    EXPECT_EQ(report.local_drain, LocalDrain::drained);
    EXPECT_EQ(report.path, PathKind::tcp);
    EXPECT_FALSE(report.failure);
    EXPECT_TRUE(report.remote_settled);
  }
};

TEST_P(Transfer, R28_read_brings_the_owners_bytes_and_reports_them) {
  Pair pair(on());
  const Report report = pair.run({pair.read(0, 1 << 20)});
  expect_completed(report, 1, 1 << 20);
  EXPECT_EQ(report.remote_effect, RemoteEffect::none);
  EXPECT_TRUE(same(*pair.my_bytes, *pair.their_bytes));
  EXPECT_EQ(on().served().here, 1U);
}

TEST_P(Transfer, R28_R29_write_is_in_place_when_it_completes) {
  Pair pair(on());
  Request request = pair.submit({pair.write(0, 1 << 20)});
  const Report report = request.wait(soon());
  // Not a turn later: at the moment of the outcome.
  EXPECT_TRUE(same(*pair.my_bytes, *pair.their_bytes));
  EXPECT_EQ(report.remote_effect, RemoteEffect::applied);
  expect_completed(request.wait_drained(soon()), 1, 1 << 20);
  EXPECT_EQ(on().served().here, 1U);
}

TEST_P(Transfer, R36_any_length_and_alignment_moves_exactly_its_bytes) {
  struct Row {
    std::size_t my_offset, their_offset, bytes;
  };
  constexpr Row rows[] = {
      {0, 0, 1},         {1, 0, 1},           {0, 1, 1},        {4095, 4097, 1}, {3, 5, 31},
      {17, 4096, 4096},  {4096, 17, 4095},    {1, 1, 16'384},   {7, 0, 16'385},  {0, 7, 65'537},
      {11, 13, 262'143}, {0, 0, 262'144},     {5, 3, 262'145},  {9, 2, 524'289}, {1, 0, 1'048'575},
      {0, 0, 1'048'576}, {13, 17, 1'048'577}, {1, 2, 3'000'001}};
  PairOptions options;
  options.their_bytes = options.my_bytes = 4 << 20;
  Pair pair(on(), options);
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::Message()
                 << row.bytes << " bytes at " << row.my_offset << " and " << row.their_offset);
    Bytes wanted = *pair.my_bytes;
    std::copy_n(pair.their_bytes->begin() + static_cast<std::ptrdiff_t>(row.their_offset),
                row.bytes, wanted.begin() + static_cast<std::ptrdiff_t>(row.my_offset));
    expect_completed(pair.run({pair.read(row.my_offset, row.their_offset, row.bytes)}), 1,
                     row.bytes);
    ASSERT_TRUE(same(*pair.my_bytes, wanted));

    fill(*pair.my_bytes, row.bytes);
    wanted = *pair.their_bytes;
    std::copy_n(pair.my_bytes->begin() + static_cast<std::ptrdiff_t>(row.my_offset), row.bytes,
                wanted.begin() + static_cast<std::ptrdiff_t>(row.their_offset));
    expect_completed(pair.run({pair.write(row.my_offset, row.their_offset, row.bytes)}), 1,
                     row.bytes);
    ASSERT_TRUE(same(*pair.their_bytes, wanted));
  }
}

TEST_P(Transfer, R28_operations_without_bytes_complete_in_their_turn) {
  Pair pair(on());
  expect_completed(pair.run(std::span<const Operation>{}), 0, 0);
  expect_completed(pair.run({pair.read(0, 0)}), 1, 0);
  expect_completed(pair.run({pair.write(1 << 20, 0)}), 1, 0); // At the very end.
  EXPECT_EQ(on().served().here, 0U);
  const Bytes before = *pair.their_bytes;
  expect_completed(
      pair.run({pair.write(0, 0), pair.read(0, 10), pair.read(5, 0), pair.read(10, 10)}), 4, 20);
  EXPECT_TRUE(same(pair.mine(0, 20), pair.theirs(0, 20)));
  EXPECT_TRUE(same(before, *pair.their_bytes));
  const Report effect = pair.run({pair.write(0, 0)});
  EXPECT_EQ(effect.remote_effect, RemoteEffect::none) << "no byte changed";
}

TEST_P(Transfer, R36_a_large_range_arrives_whole_over_several_lanes) {
  constexpr std::size_t bytes = (64 << 20) + 1;
  PairOptions options;
  options.their_bytes = options.my_bytes = bytes;
  options.lanes = 4;
  Pair pair(on(), options);
  ASSERT_EQ(pair.remote->routes().size(), 1U);
  EXPECT_EQ(pair.remote->routes().front().lanes, 4U);
  expect_completed(pair.run({pair.read(0, bytes)}), 1, bytes);
  EXPECT_TRUE(same(*pair.my_bytes, *pair.their_bytes));
  fill(*pair.my_bytes, 77);
  expect_completed(pair.run({pair.write(0, bytes)}), 1, bytes);
  EXPECT_TRUE(same(*pair.my_bytes, *pair.their_bytes));
}

TEST_P(Transfer, R36_a_thousand_scattered_pages_move_in_one_batch) {
  constexpr std::size_t pages = 1000;
  constexpr std::size_t page = 4096;
  PairOptions options;
  options.their_bytes = options.my_bytes = pages * page;
  Pair pair(on(), options);
  std::vector<std::size_t> order(pages);
  std::iota(order.begin(), order.end(), std::size_t{0});
  SeededRandom random(3);
  for (std::size_t i = pages; i-- > 1;) {
    std::swap(order[i], order[random.below(i + 1)]);
  }
  std::vector<Operation> operations;
  for (std::size_t i = 0; i < pages; ++i) {
    operations.push_back(pair.read(i * page, order[i] * page, page));
  }
  expect_completed(pair.run(operations), pages, pages * page);
  for (std::size_t i = 0; i < pages; ++i) {
    ASSERT_TRUE(same(pair.mine(i * page, page), pair.theirs(order[i] * page, page))) << i;
  }
  // And back, the other way round: what was theirs[order[i]] comes to theirs[i].
  operations.clear();
  for (std::size_t i = 0; i < pages; ++i) {
    operations.push_back(pair.write(i * page, page));
  }
  expect_completed(pair.run(operations), pages, pages * page);
  EXPECT_TRUE(same(*pair.my_bytes, *pair.their_bytes));
}

TEST_P(Transfer, R28_reads_and_writes_mix_in_one_batch) {
  Pair pair(on());
  const Bytes mine = *pair.my_bytes;
  const Bytes theirs = *pair.their_bytes;
  constexpr std::size_t piece = 64 << 10;
  std::vector<Operation> operations;
  for (std::size_t i = 0; i < 16; ++i) {
    operations.push_back(i % 2 == 0 ? pair.read(i * piece, piece) : pair.write(i * piece, piece));
  }
  const Report report = pair.run(operations);
  expect_completed(report, 16, 1 << 20);
  EXPECT_EQ(report.remote_effect, RemoteEffect::applied);
  for (std::size_t i = 0; i < 16; ++i) {
    const Bytes& from = i % 2 == 0 ? theirs : mine;
    EXPECT_TRUE(same(pair.mine(i * piece, piece), std::span(from).subspan(i * piece, piece)));
    EXPECT_TRUE(same(pair.theirs(i * piece, piece), std::span(from).subspan(i * piece, piece)));
  }
}

TEST_P(Transfer, R27_R36_many_ranges_on_both_sides_serve_one_batch) {
  constexpr std::size_t count = 300;
  constexpr std::size_t bytes = 1000;
  Pair pair(on());
  const SharedBytes theirs = shared_pattern(count * bytes, 5);
  const SharedBytes mine = shared_pattern(count * bytes, 6);
  std::vector<Registration> registrations;
  std::vector<NamedRange> named;
  const auto add = [&](TransferEngine& at, const SharedBytes& of, std::size_t i, Visibility seen) {
    RegisterOptions options;
    options.visibility = seen;
    options.keep_alive = of;
    registrations.push_back(
        must(at.register_memory(std::span(*of).subspan(i * bytes, bytes), std::move(options))));
  };
  for (std::size_t i = 0; i < count; ++i) {
    add(pair.owner, theirs, i, Visibility::remote_read);
    named.emplace_back("n" + std::to_string(i), registrations.back());
  }
  must(pair.source->add(named));
  std::vector<Operation> operations;
  for (std::size_t i = 0; i < count; ++i) {
    add(pair.consumer, mine, i, Visibility::local_only);
    const RemoteRange range = must(pair.remote->range("n" + std::to_string(count - 1 - i), soon()));
    operations.push_back(Operation::read(registrations.back(), 0, range, 0, bytes));
  }
  expect_completed(pair.run(operations), count, count * bytes);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(same(std::span(*mine).subspan(i * bytes, bytes),
                     std::span(*theirs).subspan((count - 1 - i) * bytes, bytes)));
  }
}

TEST_P(Transfer, R36_requests_share_lanes_and_all_end) {
  PairOptions options;
  options.their_bytes = options.my_bytes = 8 << 20;
  options.lanes = 2;
  Pair pair(on(), options);
  std::vector<Request> requests;
  constexpr std::size_t piece = 128 << 10;
  for (std::size_t i = 0; i < 64; ++i) {
    requests.push_back(pair.submit({pair.read(i * piece, piece)}));
  }
  for (Request& request : requests) {
    expect_completed(request.wait_drained(soon()), 1, piece);
  }
  EXPECT_TRUE(same(*pair.my_bytes, *pair.their_bytes));
}

// --- Checksums over payload ---------------------------------------------------------------------

PairOptions with_checksums() {
  PairOptions options;
  options.their_bytes = options.my_bytes = 4 << 20;
  options.owner.tcp.payload_checksums = true;
  options.consumer.tcp.payload_checksums = true;
  options.lanes = 1;
  return options;
}

TEST_P(Transfer, R36_payload_checksums_change_nothing_where_nothing_is_wrong) {
  Pair pair(on(), with_checksums());
  expect_completed(pair.run({pair.read(0, 4 << 20)}), 1, 4 << 20);
  EXPECT_TRUE(same(*pair.my_bytes, *pair.their_bytes));
  fill(*pair.my_bytes, 9);
  expect_completed(pair.run({pair.write(1, 2, 4'000'000)}), 1, 4'000'000);
  EXPECT_TRUE(same(pair.mine(1, 4'000'000), pair.theirs(2, 4'000'000)));
}

TEST_P(Transfer, R36_a_segment_corrupted_on_its_way_never_enters_a_reads_prefix) {
  WHERRY_NEEDS(segments);
  Pair pair(on(), with_checksums());
  on().node(pair.consumer).network->corrupt_next_payload();
  const Report report = pair.run({pair.read(0, 4 << 20)});
  ASSERT_EQ(on().node(pair.consumer).network->corrupted(), 1U);
  ASSERT_EQ(report.outcome, Outcome::failed) << describe(report);
  EXPECT_EQ(report.failure->error.code, ErrorCode::io_error);
  EXPECT_NE(report.failure->error.message.find("checksum"), std::string::npos);
  EXPECT_LT(report.completed_bytes, 4U << 20);
  EXPECT_TRUE(same(pair.mine(0, report.completed_bytes), pair.theirs(0, report.completed_bytes)));
  EXPECT_EQ(counter(pair.consumer, "tcp_checksum_errors_total"), 1U);
  EXPECT_EQ(counter(pair.consumer, "tcp_lanes_cut_total"), 0U);
  EXPECT_TRUE(pair.works());
}

TEST_P(Transfer, R29_R36_a_write_corrupted_on_its_way_is_uncertain_and_settled) {
  WHERRY_NEEDS(segments);
  Pair pair(on(), with_checksums());
  on().node(pair.owner).network->corrupt_next_payload();
  const Report report = pair.run({pair.write(0, 4 << 20)});
  ASSERT_EQ(on().node(pair.owner).network->corrupted(), 1U);
  ASSERT_EQ(report.outcome, Outcome::failed) << describe(report);
  EXPECT_EQ(report.failure->error.code, ErrorCode::io_error);
  EXPECT_EQ(report.remote_effect, RemoteEffect::uncertain);
  EXPECT_TRUE(report.remote_settled) << "the owner answered for all that was sent";
  EXPECT_TRUE(same(pair.mine(0, report.completed_bytes), pair.theirs(0, report.completed_bytes)));
  EXPECT_EQ(counter(pair.owner, "tcp_checksum_errors_total"), 1U);
  EXPECT_TRUE(pair.works());
}

INSTANTIATE_TEST_SUITE_P(all, Transfer, moving(), provider_name);

} // namespace
} // namespace wherry::conformance

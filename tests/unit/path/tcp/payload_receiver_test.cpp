// Extents to where they belong: memory in place, files through staging buffers, ends in the order
// of coming (R30, R36, R43).
#include "unit/path/tcp/lane_fixture.h"

namespace wherry::testing {
namespace {

struct Receiving {
  explicit Receiving(std::uint64_t seed = 1, std::size_t buffers = 8, std::size_t file_room = 64)
      : random(seed), files(random, file_room), staging(wire::segment_bytes_max, buffers),
        receiver(files, staging, 1024) {
    file.content.resize(1 << 20);
  }
  ~Receiving() {
    receiver.abandon();
    while (files.finish_one()) {
    }
    fronts();
    EXPECT_TRUE(receiver.empty());
    EXPECT_EQ(staging.in_use(), 0U);
  }

  /// Lands an extent and fills its target as a reader would.
  PayloadReceiver::Arrival& land(std::uint64_t slice, const LocalBytes* local, const Bytes& bytes) {
    PayloadTarget target;
    auto& arrival = receiver.land({slice, 0, 0, static_cast<std::uint32_t>(bytes.size()), false},
                                  local, target);
    EXPECT_EQ(target.length_bytes, bytes.size());
    if (target.at != nullptr) {
      std::copy(bytes.begin(), bytes.end(), target.at);
    }
    return arrival;
  }
  void land_in_file(std::uint64_t slice, std::uint64_t offset, const Bytes& bytes) {
    const LocalBytes local{nullptr, &file, offset};
    land(slice, &local, bytes);
  }
  /// A whole segment of one extent for the file.
  void segment_for_file(std::uint64_t slice, std::uint64_t offset, const Bytes& bytes,
                        bool checksum_ok = true) {
    ASSERT_TRUE(receiver.prepare(1, true));
    land_in_file(slice, offset, bytes);
    receiver.on_payload_end(checksum_ok);
  }
  /// Takes what has ended: the slices, in order.
  std::vector<std::uint64_t> fronts() {
    std::vector<std::uint64_t> slices;
    while (const auto* arrival = receiver.front()) {
      slices.push_back(arrival->slice);
      receiver.pop();
    }
    return slices;
  }
  bool in_file(std::uint64_t offset, const Bytes& bytes) {
    return std::equal(bytes.begin(), bytes.end(),
                      file.content.begin() + static_cast<std::ptrdiff_t>(offset));
  }

  SeededRandom random;
  LateFiles files;
  StagingPool staging;
  PayloadReceiver receiver;
  FrameReader reader;
  TestFile file;
};

TEST(PayloadReceiver, R36_memory_is_written_in_place) {
  Receiving r;
  Bytes memory(100);
  const LocalBytes local{memory.data(), nullptr, 0};
  ASSERT_TRUE(r.receiver.prepare(1, false));
  r.land(4, &local, pattern(100, 1));
  EXPECT_EQ(r.receiver.front(), nullptr) << "its segment is not complete";
  r.receiver.on_payload_end(true);
  EXPECT_EQ(memory, pattern(100, 1));
  EXPECT_EQ(r.fronts(), (std::vector<std::uint64_t>{4}));
  EXPECT_EQ(r.staging.in_use(), 0U);
}

TEST(PayloadReceiver, ends_come_in_the_order_of_coming_though_files_are_late) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Receiving r(seed);
    std::vector<std::uint64_t> expected;
    for (std::uint64_t i = 0; i < 6; ++i) {
      r.segment_for_file(i, 1000 * i, pattern(900, i));
      expected.push_back(i);
    }
    std::vector<std::uint64_t> seen;
    while (r.files.finish_one()) {
      for (const std::uint64_t slice : r.fronts()) {
        seen.push_back(slice);
        EXPECT_TRUE(r.in_file(1000 * slice, pattern(900, slice)));
      }
    }
    EXPECT_EQ(seen, expected);
  }
}

TEST(PayloadReceiver, R43_segments_for_files_are_bounded_by_staging_buffers) {
  Receiving r(1, 3);
  for (std::uint64_t i = 0; i < 3; ++i) {
    r.segment_for_file(i, 0, pattern(10, 1));
  }
  EXPECT_FALSE(r.receiver.prepare(1, true));
  EXPECT_TRUE(r.receiver.prepare(1, false)) << "memory needs none";
  r.receiver.on_payload_end(true);
  while (r.files.finish_one()) {
  }
  EXPECT_TRUE(r.receiver.prepare(1, true));
}

TEST(PayloadReceiver, R43_extents_that_wait_are_bounded) {
  Receiving r(1, 8, 0); // No file transfer starts.
  std::size_t extents = 0;
  while (r.receiver.prepare(256, true)) {
    for (int i = 0; i < 256; ++i) {
      r.land_in_file(1, 0, Bytes(1));
    }
    r.receiver.on_payload_end(true);
    extents += 256;
    ASSERT_LT(extents, 5000U);
  }
  EXPECT_LE(extents, 1024U);
  EXPECT_TRUE(r.receiver.waiting_for_files());
}

TEST(PayloadReceiver, a_full_file_engine_is_asked_again) {
  Receiving r(1, 8, 1);
  r.segment_for_file(1, 0, pattern(10, 1));
  r.segment_for_file(2, 10, pattern(10, 2));
  EXPECT_EQ(r.files.pending(), 1U);
  r.files.finish_one();
  r.receiver.pump();
  EXPECT_EQ(r.files.pending(), 1U);
  r.files.finish_one();
  EXPECT_EQ(r.fronts().size(), 2U);
  EXPECT_TRUE(r.in_file(10, pattern(10, 2)));
}

TEST(PayloadReceiver, R36_a_corrupt_segment_is_marked_and_stored_nowhere) {
  Receiving r;
  Bytes memory(10);
  const LocalBytes local{memory.data(), nullptr, 0};
  ASSERT_TRUE(r.receiver.prepare(2, true));
  r.land(1, &local, pattern(10, 1));
  r.land_in_file(2, 0, pattern(10, 2));
  r.receiver.on_payload_end(false);
  EXPECT_EQ(r.files.pending(), 0U);
  for (int i = 0; i < 2; ++i) {
    ASSERT_NE(r.receiver.front(), nullptr);
    EXPECT_TRUE(r.receiver.front()->corrupt);
    r.receiver.pop();
  }
  EXPECT_TRUE(r.in_file(0, Bytes(10)));
}

TEST(PayloadReceiver, R28_a_file_that_cannot_be_written_gives_its_error) {
  Receiving r;
  r.file.fail_after = 0;
  r.segment_for_file(1, 0, pattern(10, 1));
  r.files.finish_one();
  ASSERT_NE(r.receiver.front(), nullptr);
  ASSERT_NE(r.receiver.front()->error, nullptr);
  EXPECT_EQ(r.receiver.front()->error->native_number, EIO);
}

TEST(PayloadReceiver, what_nobody_wants_is_dropped_and_still_told_in_order) {
  Receiving r;
  ASSERT_TRUE(r.receiver.prepare(2, true));
  r.land(1, nullptr, Bytes{});
  r.land_in_file(2, 0, pattern(10, 2));
  r.receiver.on_payload_end(true);
  ASSERT_NE(r.receiver.front(), nullptr);
  EXPECT_TRUE(r.receiver.front()->dropped);
  r.receiver.pop();
  EXPECT_EQ(r.receiver.front(), nullptr);
  r.files.finish_one();
  EXPECT_EQ(r.fronts(), (std::vector<std::uint64_t>{2}));
}

TEST(PayloadReceiver, R36_a_dropped_slice_is_stored_no_further_than_it_is_already_being_stored) {
  Receiving r(1, 8, 1);
  r.segment_for_file(1, 0, pattern(10, 1));  // Being stored.
  r.segment_for_file(1, 10, pattern(10, 2)); // Waiting.
  r.segment_for_file(2, 20, pattern(10, 3)); // Somebody else's.
  EXPECT_TRUE(r.receiver.storing(1));
  r.receiver.drop(1, r.reader);
  EXPECT_TRUE(r.receiver.storing(1)) << "the kernel has it";
  EXPECT_TRUE(r.receiver.has(1, 1));
  while (r.files.finish_one()) {
    r.receiver.pump();
  }
  EXPECT_TRUE(r.in_file(0, pattern(10, 1)));
  EXPECT_TRUE(r.in_file(10, Bytes(10)));
  EXPECT_TRUE(r.in_file(20, pattern(10, 3)));
  EXPECT_EQ(r.fronts().size(), 3U);
  EXPECT_FALSE(r.receiver.has(1, 0));
}

TEST(PayloadReceiver, R30_the_end_of_the_stream_drops_what_has_not_begun_and_waits_for_the_rest) {
  Receiving r(1, 8, 1);
  r.segment_for_file(1, 0, pattern(10, 1));  // Being stored.
  r.segment_for_file(2, 10, pattern(10, 2)); // Waiting.
  ASSERT_TRUE(r.receiver.prepare(1, true));  // Coming in.
  r.land_in_file(3, 20, pattern(10, 3));
  r.receiver.abandon();
  EXPECT_EQ(r.receiver.storing(), 1U);
  EXPECT_EQ(r.receiver.front(), nullptr);
  r.files.finish_one();
  EXPECT_FALSE(r.receiver.front()->dropped);
  r.receiver.pop();
  EXPECT_TRUE(r.receiver.front()->dropped);
  EXPECT_EQ(r.fronts(), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_TRUE(r.in_file(10, Bytes(20)));
}

} // namespace
} // namespace wherry::testing

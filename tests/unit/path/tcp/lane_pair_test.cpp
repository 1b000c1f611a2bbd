// Both ends of a lane against each other, over streams that are short and late at random and files
// that end late and out of order.
//
// Method: a transfer runs in small steps, each from the seed. At every one of them something is
// done to it (it is cancelled, the lane is cut, the stream breaks, a byte is flipped); then all
// runs until nothing happens any more, and the bytes are compared with what the completions claim.
#include "unit/path/tcp/lane_fixture.h"

namespace wherry::testing {
namespace {

constexpr std::byte poison{0xee};

/// Where the bytes of a transfer are, at both ends.
struct Place {
  bool local_file = false;
  bool remote_file = false;
};
constexpr Place places[] = {{false, false}, {true, false}, {false, true}, {true, true}};

/// One slice over a lane, and all that may be said about it afterwards.
struct Transfer {
  static constexpr std::uint64_t range = 3;
  static constexpr std::uint64_t request = 77;

  Transfer(std::uint64_t seed, OperationKind of_kind, Place at, std::uint32_t length_bytes,
           const WorldOptions& options = {})
      : pair(seed, options), kind(of_kind), place(at), length(length_bytes),
        local_before(pattern(length, seed + 1)), remote_before(pattern(length + 64, seed + 2)) {
    local.content = local_before;
    if (place.remote_file) {
      remote.content = remote_before;
      pair.access.add(range, remote);
    } else {
      pair.access.add(range, remote_before);
    }
    pair.on_completion = [this](Completion& completion) { on_completion(completion); };
    submit();
  }

  void submit() {
    Slice slice;
    slice.request = request;
    slice.index = 5;
    slice.kind = kind;
    slice.local = place.local_file ? LocalBytes{nullptr, &local, 0}
                                   : LocalBytes{local.content.data(), nullptr, 0};
    slice.remote_range = range;
    slice.remote_offset = 32;
    slice.length_bytes = length;
    ASSERT_TRUE(pair.consumer->has_room());
    pair.consumer->submit(slice);
  }

  void on_completion(Completion& completion) {
    EXPECT_EQ(completion.request, request);
    EXPECT_EQ(completion.index, 5U);
    EXPECT_LE(completion.confirmed_bytes, length);
    end = completion;
    ++ends;
    local_at_end = local.content;
    // From now on nothing may touch the local bytes, neither read nor write them (R30).
    std::fill(local.content.begin(), local.content.end(), poison);
  }

  void cancel() const { pair.consumer->request_cancel(request, pair.world.now_ns); }
  /// The connection ends for both.
  void hang_up() {
    Error why;
    why.code = ErrorCode::connection_lost;
    why.message = "cut by the test";
    pair.consumer->begin_close(why);
    pair.world.to_owner.ended = true;
    pair.world.to_consumer.broken = EPIPE;
  }

  Bytes remote_bytes() {
    const Bytes& all = pair.access.bytes(range);
    return {all.begin() + 32, all.begin() + 32 + static_cast<std::ptrdiff_t>(length)};
  }

  /// What the completion claims is true; whatever it leaves open is legal.
  void check() {
    ASSERT_EQ(ends, 1) << "exactly one completion a slice";
    EXPECT_EQ(local.content, Bytes(length, poison)) << "local bytes were touched after the end";
    const auto n = static_cast<std::ptrdiff_t>(end.confirmed_bytes);
    const Bytes& all = pair.access.bytes(range);
    EXPECT_TRUE(std::equal(all.begin(), all.begin() + 32, remote_before.begin()));
    EXPECT_TRUE(std::equal(all.end() - 32, all.end(), remote_before.end() - 32));
    const Bytes remote_now = remote_bytes();
    if (kind == OperationKind::read) {
      EXPECT_TRUE(
          std::equal(local_at_end.begin(), local_at_end.begin() + n, remote_before.begin() + 32));
      EXPECT_EQ(remote_now, Bytes(remote_before.begin() + 32, remote_before.end() - 32));
      EXPECT_FALSE(end.uncertain || end.unsettled);
    } else {
      EXPECT_EQ(local_at_end, local_before);
      EXPECT_TRUE(std::equal(remote_now.begin(), remote_now.begin() + n, local_before.begin()));
      if (!end.uncertain) {
        EXPECT_TRUE(
            std::equal(remote_now.begin() + n, remote_now.end(), remote_before.begin() + 32 + n))
            << "bytes beyond the confirmed ones changed, and nobody said so";
      } else {
        for (std::size_t i = end.confirmed_bytes; i < length; ++i) {
          ASSERT_TRUE(remote_now[i] == remote_before[32 + i] || remote_now[i] == local_before[i] ||
                      corrupting)
              << i;
        }
      }
    }
    if (end.confirmed_bytes == length) {
      EXPECT_EQ(end.error, nullptr);
      EXPECT_FALSE(end.cancelled);
    } else {
      EXPECT_NE(end.cancelled, end.error != nullptr) << "one reason, and one only";
    }
    EXPECT_EQ(pair.access.leases(), 0U);
    EXPECT_EQ(pair.world.staging.in_use(), 0U);
    EXPECT_EQ(pair.consumer->outstanding(), 0U);
  }
  bool both_ready() const {
    return pair.consumer->state() == LinkState::ready && pair.owner->state() == LinkState::ready;
  }
  /// The lane serves another slice, whole.
  void check_usable() {
    ASSERT_TRUE(both_ready()) << pair.consumer->why().message << " / " << pair.owner->why().message;
    ends = 0;
    local.content = local_before;
    if (place.remote_file) {
      remote.content = remote_before;
    } else {
      pair.access.range(range).memory = remote_before;
    }
    submit();
    pair.run();
    check();
    EXPECT_EQ(end.confirmed_bytes, length) << (end.error ? end.error->message : "");
  }

  TestFile local;
  TestFile remote;
  LanePair pair;
  OperationKind kind;
  Place place;
  std::uint32_t length;
  Bytes local_before;
  Bytes remote_before;
  Bytes local_at_end;
  Completion end;
  int ends = 0;
  bool corrupting = false;
};

std::string row_name(OperationKind kind, Place place, std::size_t step) {
  return std::string(kind == OperationKind::read ? "READ" : "WRITE") +
         (place.local_file ? " file" : " memory") +
         (place.remote_file ? " and remote file" : " and remote memory") + ", step " +
         std::to_string(step);
}

/// Runs `act` at step 0, 1, 2, ... of a transfer, in a world of its own each time, until the
/// transfer is over before the step comes.
template <class Act>
void at_every_step(std::uint32_t length, const WorldOptions& options, Act&& act) {
  for (const OperationKind kind : {OperationKind::read, OperationKind::write}) {
    for (const Place place : places) {
      for (std::size_t at = 0;; ++at) {
        SCOPED_TRACE(row_name(kind, place, at));
        Transfer transfer(at % 7, kind, place, length, options);
        std::size_t steps = 0;
        for (; steps < at && transfer.ends == 0; ++steps) {
          transfer.pair.step();
        }
        act(transfer);
        if (::testing::Test::HasFailure() || steps < at) {
          break;
        }
      }
      if (::testing::Test::HasFailure()) {
        return;
      }
    }
  }
}

constexpr std::uint32_t three_segments = 530'000;

WorldOptions coarse() {
  WorldOptions options;
  options.unkind = 2;
  options.channel_bytes = 300'000;
  options.staging_buffers = 4;
  return options;
}

TEST(LanePair, R28_a_transfer_is_whole_whatever_the_streams_do) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    for (const OperationKind kind : {OperationKind::read, OperationKind::write}) {
      for (const Place place : places) {
        SCOPED_TRACE(row_name(kind, place, seed));
        WorldOptions options;
        options.checksums = seed % 2 == 0;
        options.unkind = seed % 3;
        options.channel_bytes = 1000 + 97 * seed * seed;
        const std::uint32_t lengths[] = {1, 4096, 262'144, 262'145, 1'048'576};
        Transfer transfer(seed, kind, place, lengths[seed % 5], options);
        transfer.pair.run();
        transfer.check();
        EXPECT_EQ(transfer.end.confirmed_bytes, transfer.length);
        EXPECT_TRUE(transfer.both_ready());
      }
    }
  }
}

TEST(LanePair,
     R36_cancel_at_every_step_ends_a_slice_at_a_segment_border_and_leaves_the_lane_usable) {
  at_every_step(three_segments, coarse(), [](Transfer& transfer) {
    transfer.cancel();
    transfer.pair.run();
    transfer.check();
    if (transfer.kind == OperationKind::write) {
      EXPECT_TRUE(transfer.end.confirmed_bytes % wire::segment_bytes_max == 0 ||
                  transfer.end.confirmed_bytes == transfer.length);
      EXPECT_FALSE(transfer.end.uncertain) << "the owner has answered for all that was sent";
    }
    transfer.check_usable();
  });
}

TEST(LanePair, R36_a_cancelled_read_from_memory_ends_at_once) {
  for (std::size_t at = 0; at < 30; ++at) {
    Transfer transfer(1, OperationKind::read, {}, three_segments, coarse());
    for (std::size_t i = 0; i < at && transfer.ends == 0; ++i) {
      transfer.pair.step();
    }
    transfer.cancel();
    transfer.pair.collect();
    EXPECT_EQ(transfer.ends, 1) << at;
    transfer.pair.run();
    transfer.check();
  }
}

TEST(LanePair, R29_R30_a_cut_by_the_consumer_at_every_step_claims_nothing_that_is_not_known) {
  at_every_step(three_segments, coarse(), [](Transfer& transfer) {
    transfer.hang_up();
    transfer.pair.run();
    EXPECT_EQ(transfer.pair.consumer->state(), LinkState::drained);
    EXPECT_EQ(transfer.pair.owner->state(), LinkState::drained);
    transfer.check();
    if (transfer.end.error) {
      EXPECT_EQ(transfer.end.error->code, ErrorCode::connection_lost);
      EXPECT_EQ(transfer.end.error->path, "tcp lane 0");
    }
  });
}

TEST(LanePair, R29_R30_a_cut_by_the_owner_at_every_step_claims_nothing_that_is_not_known) {
  at_every_step(three_segments, coarse(), [](Transfer& transfer) {
    Error why;
    why.code = ErrorCode::range_withdrawn;
    transfer.pair.owner->begin_close(why);
    transfer.pair.world.to_owner.broken = EPIPE;
    transfer.pair.world.to_consumer.ended = true;
    transfer.pair.run();
    EXPECT_EQ(transfer.pair.owner->state(), LinkState::drained);
    EXPECT_EQ(transfer.pair.consumer->state(), LinkState::drained);
    transfer.check();
  });
}

TEST(LanePair, R30_cancel_and_then_a_cut_end_a_slice_once) {
  at_every_step(three_segments, coarse(), [](Transfer& transfer) {
    transfer.cancel();
    for (int i = 0; i < 3; ++i) {
      transfer.pair.step();
    }
    transfer.pair.world.to_owner.broken = transfer.pair.world.to_consumer.broken = ECONNRESET;
    Error why;
    why.code = ErrorCode::connection_lost;
    transfer.pair.consumer->begin_close(why);
    transfer.pair.owner->begin_close(why);
    transfer.pair.run();
    transfer.check();
  });
}

// A byte is changed on its way, in either direction: in a header that ends the lane, in a payload
// its segment does not count. Where no file is, all bytes of headers are tried; those of payload by
// stride.
TEST(LanePair, R36_a_corrupted_segment_never_enters_the_prefix) {
  for (const OperationKind kind : {OperationKind::read, OperationKind::write}) {
    for (const Place place : places) {
      for (const bool towards_owner : {false, true}) {
        std::uint64_t in_all = UINT64_MAX;
        const std::uint64_t header_step = place.local_file || place.remote_file ? 11 : 1;
        for (std::uint64_t at = 0; at < in_all; at += at % 262'208 < 136 ? header_step : 39'973) {
          SCOPED_TRACE(row_name(kind, place, at) +
                       (towards_owner ? " to the owner" : " to the consumer"));
          WorldOptions options;
          options.unkind = 0;
          Transfer transfer(9, kind, place, three_segments, options);
          transfer.corrupting = true;
          Channel& channel =
              towards_owner ? transfer.pair.world.to_owner : transfer.pair.world.to_consumer;
          channel.flip_at = at;
          transfer.pair.run();
          in_all = std::min(in_all, channel.written);
          if (!transfer.both_ready() || transfer.ends == 0) {
            // One end has gone, or (a count was changed) waits for bytes that never come.
            transfer.hang_up();
            transfer.pair.run();
          }
          transfer.check();
          if (::testing::Test::HasFailure()) {
            return;
          }
        }
      }
    }
  }
}

TEST(LanePair, R28_a_file_that_fails_at_every_transfer_gives_its_prefix_and_its_errno) {
  for (const OperationKind kind : {OperationKind::read, OperationKind::write}) {
    for (const Place place : places) {
      for (const bool at_owner : {false, true}) {
        if (!(at_owner ? place.remote_file : place.local_file)) {
          continue;
        }
        for (int good = 0; good < 3; ++good) {
          SCOPED_TRACE(row_name(kind, place, static_cast<std::size_t>(good)) +
                       (at_owner ? " owner" : " consumer"));
          Transfer transfer(4, kind, place, three_segments);
          (at_owner ? transfer.remote : transfer.local).fail_after = good;
          transfer.pair.run();
          transfer.check();
          ASSERT_NE(transfer.end.error, nullptr);
          EXPECT_EQ(transfer.end.error->code, ErrorCode::io_error);
          EXPECT_EQ(transfer.end.error->native_number, EIO);
          EXPECT_LT(transfer.end.confirmed_bytes, transfer.length);
          (at_owner ? transfer.remote : transfer.local).fail_after = -1;
          transfer.check_usable();
        }
      }
    }
  }
}

// -- many slices at once
// -----------------------------------------------------------------------------

/// Slices of several requests, each with a piece of its own at both ends.
struct Crowd {
  static constexpr std::uint32_t piece_bytes = 280'000;
  static constexpr std::size_t pieces = 16;

  Crowd(std::uint64_t seed, const WorldOptions& options)
      : pair(seed, options), draws(seed * 31 + 7) {
    local_file.content = local_memory = pattern(piece_bytes * pieces, seed + 1);
    remote_file.content = pattern(piece_bytes * pieces, seed + 2);
    pair.access.add(memory_range, remote_file.content);
    pair.access.add(file_range, remote_file);
    pair.access.add(read_only_range, Bytes(piece_bytes)).writable = false;
    local_before = local_memory;
    remote_before = remote_file.content;
    pair.on_completion = [this](Completion& completion) { on_completion(completion); };
  }

  void submit_one() {
    if (next == pieces || !pair.consumer->has_room()) {
      return;
    }
    Piece& piece = piece_of[next];
    piece.kind = draws.one_in(2) ? OperationKind::read : OperationKind::write;
    piece.local_file = draws.one_in(2);
    piece.remote_file = draws.one_in(2);
    piece.length = draws.one_in(3) ? 1 + static_cast<std::uint32_t>(draws.below(5000))
                                   : 1 + static_cast<std::uint32_t>(draws.below(piece_bytes));
    piece.refused = draws.one_in(6) && piece.kind == OperationKind::write;
    piece.request = 1 + draws.below(5);
    Slice slice;
    slice.request = piece.request;
    slice.index = static_cast<std::uint32_t>(next);
    slice.kind = piece.kind;
    slice.local = piece.local_file ? LocalBytes{nullptr, &local_file, offset_of(next)}
                                   : LocalBytes{local_memory.data() + offset_of(next), nullptr, 0};
    slice.remote_range = piece.refused       ? read_only_range
                         : piece.remote_file ? file_range
                                             : memory_range;
    slice.remote_offset = piece.refused ? 0 : offset_of(next);
    slice.length_bytes = piece.length;
    pair.consumer->submit(slice);
    ++next;
  }

  void on_completion(Completion& completion) {
    Piece& piece = piece_of[completion.index];
    ++piece.ends;
    piece.end = completion;
    ++ended;
    if (piece.kind == OperationKind::read) {
      const Bytes& local = piece.local_file ? local_file.content : local_memory;
      const auto at = static_cast<std::ptrdiff_t>(offset_of(completion.index));
      EXPECT_TRUE(std::equal(local.begin() + at, local.begin() + at + completion.confirmed_bytes,
                             remote_before.begin() + at));
    }
  }

  void check() {
    for (std::size_t i = 0; i < next; ++i) {
      SCOPED_TRACE("slice " + std::to_string(i));
      const Piece& piece = piece_of[i];
      ASSERT_EQ(piece.ends, 1);
      const auto at = static_cast<std::ptrdiff_t>(offset_of(i));
      const auto n = static_cast<std::ptrdiff_t>(piece.end.confirmed_bytes);
      if (piece.refused) {
        EXPECT_EQ(n, 0);
        EXPECT_TRUE(piece.end.cancelled || piece.end.error != nullptr);
        EXPECT_FALSE(piece.end.uncertain && both_ready());
      } else if (piece.kind == OperationKind::write) {
        for (const bool file : {false, true}) {
          const Bytes& remote = pair.access.bytes(file ? file_range : memory_range);
          const bool mine = file == piece.remote_file;
          EXPECT_TRUE(std::equal(remote.begin() + at, remote.begin() + at + (mine ? n : 0),
                                 local_before.begin() + at));
          if (!mine || !piece.end.uncertain) {
            const std::ptrdiff_t from = at + (mine ? n : 0);
            EXPECT_TRUE(std::equal(remote.begin() + from, remote.begin() + at + piece_bytes,
                                   remote_before.begin() + from));
          }
        }
      }
    }
    EXPECT_EQ(ended, next);
    EXPECT_EQ(pair.access.leases(), 0U);
    EXPECT_EQ(pair.world.staging.in_use(), 0U);
    EXPECT_EQ(pair.consumer->outstanding(), 0U);
  }
  bool both_ready() const {
    return pair.consumer->state() == LinkState::ready && pair.owner->state() == LinkState::ready;
  }

  static constexpr std::uint64_t memory_range = 1, file_range = 2, read_only_range = 3;
  static std::uint64_t offset_of(std::size_t index) { return index * std::uint64_t{piece_bytes}; }

  struct Piece {
    OperationKind kind{};
    bool local_file = false, remote_file = false, refused = false;
    std::uint32_t length = 0;
    std::uint64_t request = 0;
    int ends = 0;
    Completion end;
  };
  TestFile local_file;
  TestFile remote_file;
  Bytes local_memory;
  LanePair pair;
  SeededRandom draws;
  Bytes local_before;
  Bytes remote_before;
  std::array<Piece, pieces> piece_of;
  std::size_t next = 0;
  std::size_t ended = 0;
};

WorldOptions crowded(std::uint64_t seed) {
  WorldOptions options;
  options.unkind = seed % 4;
  options.checksums = seed % 3 == 0;
  options.channel_bytes = 20'000 + 10'000 * (seed % 30);
  options.slices_max = seed % 2 == 0 ? 64 : 8;
  options.staging_buffers = 2 + seed % 5;
  options.file_room = 1 + seed % 4;
  return options;
}

TEST(LanePair, R28_a_crowd_of_slices_ends_whole) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Crowd crowd(seed, crowded(seed));
    for (int i = 0; i < 2000 && crowd.next < Crowd::pieces; ++i) {
      crowd.submit_one();
      crowd.pair.step();
    }
    crowd.pair.run();
    crowd.check();
    ASSERT_TRUE(crowd.both_ready())
        << crowd.pair.consumer->why().message << crowd.pair.owner->why().message;
    for (std::size_t i = 0; i < crowd.next; ++i) {
      const auto& piece = crowd.piece_of[i];
      EXPECT_EQ(piece.end.confirmed_bytes, piece.refused ? 0 : piece.length) << i;
      EXPECT_EQ(piece.end.error != nullptr, piece.refused);
    }
    if (HasFailure()) {
      return;
    }
  }
}

TEST(LanePair,
     R30_R36_a_crowd_with_cancels_cuts_and_failing_files_claims_nothing_that_is_not_true) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Crowd crowd(seed, crowded(seed));
    const bool cut = seed % 3 == 0;
    const std::uint64_t cut_at = crowd.draws.below(400);
    for (std::uint64_t i = 0; i < 600; ++i) {
      crowd.submit_one();
      crowd.pair.step();
      if (crowd.draws.one_in(30)) {
        crowd.pair.consumer->request_cancel(1 + crowd.draws.below(5), crowd.pair.world.now_ns);
      }
      if (crowd.draws.one_in(200)) {
        crowd.local_file.fail_after = static_cast<int>(crowd.draws.below(3));
      }
      if (crowd.draws.one_in(200)) {
        crowd.remote_file.fail_after = static_cast<int>(crowd.draws.below(3));
      }
      if (crowd.draws.one_in(10)) {
        crowd.local_file.fail_after = crowd.remote_file.fail_after = -1;
      }
      if (cut && i == cut_at) {
        crowd.pair.world.to_owner.broken = ECONNRESET;
        crowd.pair.world.to_consumer.broken = ECONNRESET;
      }
    }
    crowd.pair.run();
    crowd.check();
    if (!cut) {
      EXPECT_TRUE(crowd.both_ready())
          << crowd.pair.consumer->why().message << " / " << crowd.pair.owner->why().message;
      for (std::size_t i = 0; i < crowd.next; ++i) {
        EXPECT_FALSE(crowd.piece_of[i].end.unsettled) << i;
      }
    }
    if (HasFailure()) {
      return;
    }
  }
}

} // namespace
} // namespace wherry::testing

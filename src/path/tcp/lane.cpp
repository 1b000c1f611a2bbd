#include "path/tcp/lane.h"

#include "base/clock.h"

#include <fmt/format.h>

#include <algorithm>

namespace wherry {

namespace {
constexpr std::size_t read_budget_bytes = 1 << 20;
constexpr int batches_a_turn = 2;
} // namespace

Lane::Lane(ByteStream& stream, const LaneConfig& config, const LaneServices& services,
           std::uint64_t now_ns)
    : config_(config), counters_(services.counters),
      sender_(services.files, services.staging, config.slices_max),
      receiver_(services.files, services.staging, 1024), stream_(stream), last_moved_ns_(now_ns),
      batch_deadline_ns_(never_ns) {
  ++counters_.lanes_opened;
}

void Lane::on_event(bool readable, bool writable, bool hangup) {
  readable_ |= readable || hangup;
  writable_ |= writable || hangup;
  if (hangup) {
    reader_.expect_end();
  }
}

bool Lane::progress_lane(std::uint64_t now_ns) {
  if (state_ == LinkState::drained) {
    return false;
  }
  const LinkState before = state_;
  bool moved = false;
  if (state_ == LinkState::ready && read_some()) {
    moved = true;
    last_moved_ns_ = now_ns;
  }
  receiver_.pump();
  hand_out();
  if (state_ == LinkState::ready) {
    sender_.load_ahead();
    const bool was_full = socket_full_;
    if (write_some()) {
      moved = true;
      socket_full_ = !writable_;
      if (was_full) {
        last_moved_ns_ = now_ns;
      }
    }
    hand_out();
  }
  if (state_ == LinkState::ready) {
    check_deadlines(now_ns);
  }
  if (state_ == LinkState::closing) {
    settle_close();
  }
  // Whoever owns the lane has something to do, also when no byte has moved.
  return moved || state_ != before;
}

bool Lane::read_some() {
  if (!(readable_ || reader_waits_) || !may_read()) {
    return false;
  }
  const std::uint64_t bytes = reader_.bytes();
  const std::uint64_t frames = reader_.frames();
  const FrameReader::Status status = reader_.progress(stream_, *this, read_budget_bytes);
  counters_.bytes_received += reader_.bytes() - bytes;
  counters_.frames_received += reader_.frames() - frames;
  reader_waits_ = status == FrameReader::Status::waiting;
  if (status == FrameReader::Status::would_block) {
    readable_ = false;
  }
  if (status == FrameReader::Status::end) {
    close_lane(reader_.error());
  }
  return reader_.bytes() != bytes || reader_.frames() != frames;
}

bool Lane::write_some() {
  const std::uint64_t bytes = writer_.bytes();
  for (int i = 0; i < batches_a_turn && writable_; ++i) {
    if (writer_.idle()) {
      if (!control_due() && sender_.empty()) {
        break;
      }
      writer_.begin();
      build_control(writer_);
      sender_.build(writer_, config_.payload_checksums);
      if (writer_.idle()) {
        break;
      }
    }
    const FrameWriter::Status status = writer_.progress(stream_);
    if (status == FrameWriter::Status::end) {
      counters_.bytes_sent += writer_.bytes() - bytes;
      close_lane(writer_.error());
      return true;
    }
    sender_.on_sent(writer_);
    if (status == FrameWriter::Status::would_block) {
      writable_ = false;
      socket_full_ = true;
    }
  }
  counters_.bytes_sent += writer_.bytes() - bytes;
  // Frames that were taken back since the last time are counted when they go out.
  counters_.frames_sent += writer_.frames() - frames_counted_;
  frames_counted_ = writer_.frames();
  return writer_.bytes() != bytes;
}

// Passes on what ended in the receiver and the sender.
void Lane::hand_out() {
  while (PayloadReceiver::Arrival* arrival = receiver_.front()) {
    on_arrival(*arrival);
    receiver_.pop();
  }
  // on_item_ended may push new items, but ends none.
  auto& ended = sender_.ended();
  for (std::size_t i = 0; i < ended.size(); ++i) {
    on_item_ended(ended[i]);
  }
  ended.clear();
}

void Lane::on_payload_end(bool checksum_ok) {
  if (!checksum_ok) {
    ++counters_.checksum_errors;
  }
  receiver_.on_payload_end(checksum_ok);
}

// Whether time without movement is the peer's doing: it does not take what we send, or stopped
// inside a frame, or owes an answer. Waiting for our own files is not; but while some slices do,
// the peer may owe what others wait for.
bool Lane::peer_must_move() const {
  if (!writer_.idle() && !writable_) {
    return true;
  }
  if (reader_waits_) {
    return false;
  }
  const bool files_work = receiver_.storing() > 0 || sender_.waiting_for_files();
  return reader_.mid_frame() || peer_owes(files_work);
}

void Lane::check_deadlines(std::uint64_t now_ns) {
  if (batch_deadline_ns_ <= now_ns) {
    batch_deadline_ns_ = never_ns;
    if (!writer_.idle() && writer_.batches() == deadline_batch_) {
      Error error;
      error.code = ErrorCode::stalled;
      error.message = fmt::format(
          "cancel_grace of {} ms passed, and the peer had not taken the segment in transit",
          config_.cancel_grace_ns / 1'000'000);
      close_lane(std::move(error));
      return;
    }
  }
  const bool waited = waiting_;
  waiting_ = peer_must_move();
  if (!waiting_ || !waited) {
    last_moved_ns_ = now_ns;
  }
  if (!waiting_ || now_ns - last_moved_ns_ < config_.peer_stall_timeout_ns) {
    return;
  }
  ++counters_.stalls;
  Error error;
  error.code = ErrorCode::stalled;
  error.message = fmt::format("the peer neither read nor wrote for peer_stall_timeout, {} ms",
                              config_.peer_stall_timeout_ns / 1'000'000);
  close_lane(std::move(error));
}

std::uint64_t Lane::lane_deadline_ns() const {
  if (state_ != LinkState::ready) {
    return never_ns;
  }
  const std::uint64_t stall =
      waiting_ ? add_ns(last_moved_ns_, config_.peer_stall_timeout_ns) : never_ns;
  return std::min(stall, batch_deadline_ns_);
}

void Lane::expect_batch_by(std::uint64_t deadline_ns) {
  if (writer_.idle() || (batch_deadline_ns_ != never_ns && deadline_batch_ == writer_.batches())) {
    return;
  }
  batch_deadline_ns_ = deadline_ns;
  deadline_batch_ = writer_.batches();
}

void Lane::close_lane(Error why) {
  if (state_ != LinkState::ready) {
    return;
  }
  state_ = LinkState::closing;
  why_ = std::move(why);
  why_.path = config_.name;
  ++counters_.lanes_cut;
  sender_.stop_all(writer_);
  receiver_.abandon();
}

void Lane::settle_close() {
  hand_out();
  if (sender_.loading() > 0 || receiver_.storing() > 0 || !receiver_.empty()) {
    return;
  }
  state_ = LinkState::drained;
  on_drained();
}

} // namespace wherry

#include "path/tcp/owner_lane.h"

#include "base/assert.h"

#include <fmt/format.h>

#include <algorithm>

namespace wherry {

namespace {

// Answers that may wait for the peer to read them. A frame can add two a descriptor, a turn of the
// sender and of the receiver all that they hold.
constexpr std::size_t results_max = 8192;
constexpr std::size_t results_reserve = 4096;
constexpr std::size_t results_wait_max = 256;

Error misbehaved(std::string message) {
  Error error;
  error.code = ErrorCode::protocol_mismatch;
  error.message = std::move(message);
  return error;
}

} // namespace

OwnerLane::OwnerLane(ByteStream& stream, const LaneConfig& config, const LaneServices& services,
                     OwnerAccess& access, std::uint64_t now_ns)
    : Lane(stream, config, services, now_ns), access_(access), served_(config.slices_max),
      results_(results_max), grants_(wire::frame_descriptors_max) {
  free_.reserve(config.slices_max);
  for (std::uint32_t i = config.slices_max; i-- > 0;) {
    free_.push_back(i);
  }
}

// A peer that does not read its answers is not read from.
bool OwnerLane::may_read() const {
  return results_.room() >= results_reserve;
}

Result<FrameSink::Verdict> OwnerLane::on_frame(const wire::FrameHeader& header,
                                               std::span<const std::byte> descriptors,
                                               std::span<PayloadTarget> targets) {
  switch (header.type) {
  case wire::FrameType::read:
    if (header.count > free_.size()) {
      return fail(misbehaved(
          fmt::format("the consumer has more than {} READ slices out", config_.slices_max)));
    }
    // What has ended holds its place until all before it have.
    if (!may_read() || sender_.room() < header.count) {
      return Verdict::wait;
    }
    for (std::size_t i = 0; i < header.count; ++i) {
      on_read(wire::read_at(descriptors, i));
    }
    return Verdict::taken;
  case wire::FrameType::payload:
    return on_write(descriptors, header.count, targets);
  case wire::FrameType::cancel:
    if (!may_read()) {
      return Verdict::wait;
    }
    for (std::size_t i = 0; i < header.count; ++i) {
      on_cancel(wire::cancel_at(descriptors, i).slice);
    }
    return Verdict::taken;
  case wire::FrameType::result:
    break;
  }
  return fail(misbehaved("the consumer sent a result"));
}

void OwnerLane::on_read(const wire::ReadDescriptor& read) {
  const OwnerAccess::Grant grant =
      access_.acquire(read.range, read.offset, read.length_bytes, Access::read);
  if (grant.lease == 0) {
    ++counters_.operations_refused;
    answer(read.slice, 0, grant.refused, 0);
    return;
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  served_[index] = {true, false, read.slice, grant.lease};
  sender_.push({read.slice, 0, 0, grant.local, read.length_bytes, index});
}

Result<FrameSink::Verdict> OwnerLane::on_write(std::span<const std::byte> descriptors,
                                               std::size_t count,
                                               std::span<PayloadTarget> targets) {
  if (!may_read()) {
    return Verdict::wait;
  }
  bool any_file = false;
  for (std::size_t i = 0; i < count; ++i) {
    const wire::PayloadExtent extent = wire::extent_at(descriptors, i);
    grants_[i] = access_.acquire(extent.range, extent.offset, extent.length_bytes, Access::write);
    any_file |= grants_[i].lease != 0 && grants_[i].local.file != nullptr;
  }
  if (!receiver_.prepare(count, any_file)) {
    for (std::size_t i = 0; i < count; ++i) {
      if (grants_[i].lease != 0) {
        access_.release(grants_[i].lease);
      }
    }
    return Verdict::wait;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const OwnerAccess::Grant& grant = grants_[i];
    const bool granted = grant.lease != 0;
    auto& arrival = receiver_.land(wire::extent_at(descriptors, i),
                                   granted ? &grant.local : nullptr, targets[i]);
    arrival.lease = grant.lease;
    if (!granted) {
      arrival.refused = grant.refused;
    }
  }
  return Verdict::taken;
}

void OwnerLane::on_cancel(std::uint64_t slice) {
  for (std::uint32_t i = 0; i < served_.size(); ++i) {
    Served& served = served_[i];
    if (!served.used || served.cancelled || served.slice != slice) {
      continue;
    }
    served.cancelled = true;
    ++counters_.cancels;
    sender_.stop(i, writer_);
    return;
  }
}

void OwnerLane::on_item_ended(const PayloadSender::Ended& ended) {
  Served& served = served_[ended.tag];
  WHERRY_ASSERT(served.used);
  access_.release(served.lease);
  if (!ended.stopped) {
    ++counters_.reads_served;
  } else if (ended.error) {
    answer(served.slice, 0, ended.error->code, ended.error->native_number);
  } else if (lane_state() == LinkState::ready) {
    answer(served.slice, 0, ErrorCode::cancelled, 0);
  }
  served.used = false;
  free_.push_back(ended.tag);
}

void OwnerLane::on_arrival(PayloadReceiver::Arrival& arrival) {
  if (arrival.lease != 0) {
    access_.release(arrival.lease);
  }
  arrival.lease = 0;
  if (lane_state() != LinkState::ready) {
    return;
  }
  if (arrival.refused != ErrorCode{}) {
    ++counters_.operations_refused;
    answer(arrival.slice, arrival.length_bytes, arrival.refused, 0);
  } else if (arrival.corrupt) {
    answer(arrival.slice, arrival.length_bytes, ErrorCode::io_error, 0);
  } else if (arrival.error) {
    answer(arrival.slice, arrival.length_bytes, arrival.error->code, arrival.error->native_number);
  } else {
    ++counters_.writes_served;
    answer(arrival.slice, arrival.length_bytes, ErrorCode{}, 0);
    answer_now_ |= arrival.last;
  }
}

// Confirmations in the middle of a slice may wait for its end while more of it is coming in: they
// would cost a packet a segment. When nothing comes in they go out, so that a consumer that stopped
// is answered.
bool OwnerLane::control_due() const {
  return !results_.empty() && (answer_now_ || !reader_.mid_frame());
}

// Confirmations of one slice that wait together become one.
void OwnerLane::answer(std::uint64_t slice, std::uint32_t bytes, ErrorCode code,
                       int native_number) {
  if (lane_state() != LinkState::ready) {
    return;
  }
  answer_now_ |= code != ErrorCode{} || results_.size() > results_wait_max;
  if (code == ErrorCode{} && !results_.empty()) {
    wire::ResultDescriptor& last = results_[results_.size() - 1];
    if (last.slice == slice && last.code == 0 && bytes <= wire::slice_bytes_max - last.bytes) {
      last.bytes += bytes;
      return;
    }
  }
  results_.push(
      wire::ResultDescriptor{slice, bytes, static_cast<std::uint16_t>(code), native_number});
}

void OwnerLane::build_control(FrameWriter& writer) {
  answer_now_ = false;
  while (!results_.empty()) {
    const std::size_t count = std::min<std::size_t>(results_.size(), wire::frame_descriptors_max);
    if (!writer.has_control_room(wire::FrameType::result, count)) {
      answer_now_ = true;
      return;
    }
    writer.control<24>(wire::FrameType::result, count,
                       [&](std::size_t, std::span<std::byte, 24> out) {
                         wire::encode(results_.front(), out);
                         results_.pop();
                       });
  }
}

void OwnerLane::on_drained() {
  WHERRY_ASSERT(free_.size() == served_.size());
  while (!results_.empty()) {
    results_.pop();
  }
}

} // namespace wherry

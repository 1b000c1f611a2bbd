#include "path/tcp/consumer_lane.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/ids.h"

#include <fmt/format.h>

#include <algorithm>

namespace wherry {

namespace {

// Bytes that a lane may have out: enough to keep it busy, little enough that lanes share evenly.
constexpr std::uint64_t out_bytes_max = 8ULL << 20;

Error bad_frame(std::string message) {
  Error error;
  error.code = ErrorCode::protocol_mismatch;
  error.message = std::move(message);
  return error;
}

// Refusals that leave the bytes alone, as opposed to failures on the way into them.
bool may_have_touched(ErrorCode code) {
  return code == ErrorCode::io_error || code == ErrorCode::range_changed;
}

std::shared_ptr<const Error> owner_error(const wire::ResultDescriptor& result,
                                         const std::string& lane) {
  auto error = std::make_shared<Error>();
  error->code = static_cast<ErrorCode>(result.code);
  error->path = lane;
  error->native_number = result.native_number;
  switch (error->code) {
  case ErrorCode::range_withdrawn:
    error->message = "the owner has withdrawn the range";
    break;
  case ErrorCode::not_found:
    error->message = "the owner has no such range";
    break;
  case ErrorCode::out_of_range:
    error->message = "the operation is not within the owner's range";
    break;
  case ErrorCode::access_denied:
    error->message = "the owner's range does not allow the operation";
    break;
  case ErrorCode::range_changed:
    error->message = "the file behind the owner's range is not the one that was published";
    break;
  case ErrorCode::io_error:
    error->message = result.native_number != 0
                         ? fmt::format("the owner could not reach the bytes: {}",
                                       errno_text(result.native_number))
                         : "a segment was corrupted on its way: its checksum did not match";
    break;
  default:
    error->message = fmt::format("the owner refused: {}", to_string(error->code));
    break;
  }
  return error;
}

} // namespace

ConsumerLane::ConsumerLane(ByteStream& stream, const LaneConfig& config,
                           const LaneServices& services, std::uint64_t now_ns)
    : Lane(stream, config, services, now_ns), slots_(config.slices_max), asks_(config.slices_max),
      cancels_(config.slices_max), completions_(config.slices_max) {
  free_.reserve(config.slices_max);
  for (std::uint32_t i = config.slices_max; i-- > 0;) {
    free_.push_back(i);
  }
}

bool ConsumerLane::has_room() const {
  return lane_state() == LinkState::ready && !free_.empty() && completions_.room() > live_ &&
         (live_bytes_ < out_bytes_max) && sender_.has_room();
}

void ConsumerLane::submit(const Slice& slice) {
  WHERRY_ASSERT(has_room() && slice.length_bytes > 0 &&
                slice.length_bytes <= wire::slice_bytes_max);
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  const std::uint32_t generation = slot.generation;
  slot = Slot{};
  slot.generation = generation;
  slot.used = true;
  slot.slice = slice;
  ++live_;
  live_bytes_ += slice.length_bytes;
  if (slice.kind == OperationKind::read) {
    asks_.push(index);
  } else {
    sender_.push({wire_id(index), slice.remote_range, slice.remote_offset, slice.local,
                  slice.length_bytes, index});
  }
}

std::size_t ConsumerLane::poll(std::span<Completion> out) {
  std::size_t count = 0;
  while (count < out.size() && !completions_.empty()) {
    out[count++] = std::move(completions_.front());
    completions_.pop();
  }
  return count;
}

std::size_t ConsumerLane::using_range(std::uint64_t remote_range) const {
  return static_cast<std::size_t>(
      std::count_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
        return slot.used && !slot.detached && slot.slice.remote_range == remote_range;
      }));
}

// -- sending
// ---------------------------------------------------------------------------------------

void ConsumerLane::build_control(FrameWriter& writer) {
  while (!cancels_.empty()) {
    const std::size_t count = std::min<std::size_t>(cancels_.size(), wire::frame_descriptors_max);
    if (!writer.has_control_room(wire::FrameType::cancel, count)) {
      return;
    }
    writer.control<8>(wire::FrameType::cancel, count,
                      [&](std::size_t, std::span<std::byte, 8> out) {
                        wire::encode(wire::CancelDescriptor{cancels_.front()}, out);
                        cancels_.pop();
                      });
  }
  while (!asks_.empty()) {
    const std::size_t count = std::min<std::size_t>(asks_.size(), wire::frame_descriptors_max);
    if (!writer.has_control_room(wire::FrameType::read, count)) {
      return;
    }
    writer.control<32>(
        wire::FrameType::read, count, [&](std::size_t, std::span<std::byte, 32> out) {
          const std::uint32_t index = asks_.front();
          asks_.pop();
          Slot& slot = slots_[index];
          slot.asked = true;
          wire::encode(wire::ReadDescriptor{wire_id(index), slot.slice.remote_range,
                                            slot.slice.remote_offset, slot.slice.length_bytes},
                       out);
        });
  }
}

void ConsumerLane::on_item_ended(const PayloadSender::Ended& ended) {
  Slot& slot = slots_[ended.tag];
  WHERRY_ASSERT(slot.used && slot.slice.kind == OperationKind::write);
  slot.sending_over = true;
  slot.sent_bytes = ended.sent_bytes;
  if (ended.error) {
    fail_slot(slot, ended.error);
  }
  // A lane that closes ends its slices in on_drained, with its reason.
  if (lane_state() == LinkState::ready) {
    end_write_if_answered(ended.tag);
  }
}

// -- receiving
// -------------------------------------------------------------------------------------

ConsumerLane::Slot* ConsumerLane::find(std::uint64_t slice) {
  const std::uint32_t index = id_slot(slice);
  if (index >= slots_.size()) {
    return nullptr;
  }
  Slot& slot = slots_[index];
  return slot.used && slot.generation == id_generation(slice) ? &slot : nullptr;
}

Result<FrameSink::Verdict> ConsumerLane::on_frame(const wire::FrameHeader& header,
                                                  std::span<const std::byte> descriptors,
                                                  std::span<PayloadTarget> targets) {
  switch (header.type) {
  case wire::FrameType::payload:
    return on_payload(descriptors, header.count, targets);
  case wire::FrameType::result:
    for (std::size_t i = 0; i < header.count; ++i) {
      if (auto taken = on_result(wire::result_at(descriptors, i)); !taken) {
        return fail(taken.error());
      }
    }
    return Verdict::taken;
  case wire::FrameType::read:
  case wire::FrameType::cancel:
    break;
  }
  return fail(
      bad_frame(fmt::format("the owner sent a frame of type {}", static_cast<int>(header.type))));
}

Result<FrameSink::Verdict> ConsumerLane::on_payload(std::span<const std::byte> descriptors,
                                                    std::size_t count,
                                                    std::span<PayloadTarget> targets) {
  bool any_file = false;
  for (std::size_t i = 0; i < count; ++i) {
    const Slot* slot = find(wire::extent_at(descriptors, i).slice);
    any_file |= slot != nullptr && !slot->detached && slot->slice.local.file != nullptr;
  }
  if (!receiver_.prepare(count, any_file)) {
    return Verdict::wait;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const wire::PayloadExtent extent = wire::extent_at(descriptors, i);
    Slot* slot = find(extent.slice);
    if (slot == nullptr || slot->slice.kind != OperationKind::read || !slot->asked) {
      return fail(bad_frame("the owner sent payload for a READ that is not out"));
    }
    // In order, without gaps: the next byte of the slice.
    if (extent.offset != slot->answered_bytes ||
        extent.length_bytes > slot->slice.length_bytes - slot->answered_bytes ||
        extent.last != (slot->answered_bytes + extent.length_bytes == slot->slice.length_bytes)) {
      return fail(bad_frame(fmt::format(
          "the owner sent bytes {} to {} of a READ where byte {} of {} was due", extent.offset,
          extent.offset + extent.length_bytes, slot->answered_bytes, slot->slice.length_bytes)));
    }
    LocalBytes local = slot->slice.local;
    if (local.file != nullptr) {
      local.offset += slot->answered_bytes;
    } else {
      local.memory += slot->answered_bytes;
    }
    slot->answered_bytes += extent.length_bytes;
    const bool wanted = !slot->detached && !slot->cancelled;
    receiver_.land(extent, wanted ? &local : nullptr, targets[i]).tag = id_slot(extent.slice);
  }
  return Verdict::taken;
}

void ConsumerLane::on_arrival(PayloadReceiver::Arrival& arrival) {
  Slot* slot = find(arrival.slice);
  if (slot == nullptr) {
    return;
  }
  if (arrival.dropped && lane_state() != LinkState::ready) {
    return; // on_drained ends the slice.
  }
  const auto index = id_slot(arrival.slice);
  if (!slot->detached) {
    if (arrival.corrupt) {
      auto error = std::make_shared<Error>();
      error->code = ErrorCode::io_error;
      // Bytes that an overlapping WRITE changed while they were sent look the same.
      error->message = "a segment's checksum does not match: it was corrupted on its way, or the "
                       "owner's bytes changed while they were sent";
      error->path = config_.name;
      fail_slot(*slot, std::move(error));
    } else if (arrival.error) {
      fail_slot(*slot, arrival.error);
    } else if (arrival.dropped) {
      slot->prefix_over = true;
    } else if (!slot->prefix_over) {
      slot->confirmed_bytes += arrival.length_bytes;
    }
  }
  if (arrival.last || (slot->last_word && !receiver_.has(arrival.slice, 1))) {
    finish_read(index);
  } else if (slot->cancelled && !slot->detached && !receiver_.storing(arrival.slice)) {
    complete(index);
  }
}

// The owner has said its last word about a READ.
void ConsumerLane::finish_read(std::uint32_t index) {
  if (!slots_[index].detached) {
    complete(index);
  }
  free_slot(index);
}

Result<void> ConsumerLane::on_result(const wire::ResultDescriptor& result) {
  Slot* slot = find(result.slice);
  const std::uint32_t index = id_slot(result.slice);
  if (slot == nullptr) {
    return fail(bad_frame("the owner answered an operation that is not out"));
  }
  if (slot->slice.kind == OperationKind::read) {
    if (result.code == 0 || !slot->asked) {
      return fail(bad_frame("the owner sent a result for a READ without a reason"));
    }
    if (!slot->detached && !slot->cancelled && !slot->error) {
      slot->error = owner_error(result, config_.name);
    }
    // Extents may still be on their way into a file; the slot ends behind them.
    slot->last_word = true;
    if (!receiver_.has(result.slice, 0)) {
      finish_read(index);
    }
    return {};
  }
  // Never more than was sent, or is being sent.
  if (result.bytes == 0 || result.bytes > slot->slice.length_bytes - slot->answered_bytes) {
    return fail(bad_frame("the owner answered more bytes of a WRITE than there are"));
  }
  slot->answered_bytes += result.bytes;
  if (result.code != 0) {
    if (may_have_touched(static_cast<ErrorCode>(result.code))) {
      slot->touched_beyond = true;
    }
    fail_slot(*slot, owner_error(result, config_.name));
    sender_.stop(index, writer_);
  } else if (slot->prefix_over) {
    slot->touched_beyond = true;
  } else {
    slot->confirmed_bytes += result.bytes;
  }
  end_write_if_answered(index);
  return {};
}

void ConsumerLane::fail_slot(Slot& slot, std::shared_ptr<const Error> error) {
  slot.prefix_over = true;
  if (!slot.error) {
    slot.error = std::move(error);
  }
}

void ConsumerLane::end_write_if_answered(std::uint32_t index) {
  Slot& slot = slots_[index];
  if (!slot.sending_over || slot.answered_bytes < slot.sent_bytes) {
    return;
  }
  complete(index);
  free_slot(index);
}

void ConsumerLane::complete(std::uint32_t index) {
  Slot& slot = slots_[index];
  WHERRY_ASSERT(slot.used && !slot.detached);
  slot.detached = true;
  --live_;
  live_bytes_ -= slot.slice.length_bytes;
  Completion& completion = completions_.push();
  const bool whole = slot.confirmed_bytes == slot.slice.length_bytes;
  completion.request = slot.slice.request;
  completion.index = slot.slice.index;
  completion.confirmed_bytes = slot.confirmed_bytes;
  completion.uncertain = slot.touched_beyond || slot.unanswered;
  completion.unsettled = slot.unanswered;
  completion.cancelled = !whole && slot.error == nullptr;
  completion.error = whole ? nullptr : slot.error;
  (slot.slice.kind == OperationKind::read ? counters_.read_slices : counters_.write_slices) += 1;
}

void ConsumerLane::free_slot(std::uint32_t index) {
  Slot& slot = slots_[index];
  slot.used = false;
  slot.error.reset();
  // A slot whose generations are used up is not used again; the lane then has one slot less.
  if (++slot.generation != 0) {
    free_.push_back(index);
  }
}

// -- ending
// ----------------------------------------------------------------------------------------

void ConsumerLane::request_cancel(std::uint64_t request, std::uint64_t now_ns) {
  ++counters_.cancels;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (slot.used && !slot.detached && !slot.cancelled && slot.slice.request == request) {
      cancel_slot(i, now_ns);
    }
  }
}

void ConsumerLane::cancel_slot(std::uint32_t index, std::uint64_t now_ns) {
  Slot& slot = slots_[index];
  slot.cancelled = true;
  if (slot.slice.kind == OperationKind::write) {
    if (sender_.stop(index, writer_)) {
      expect_batch_by(add_ns(now_ns, config_.cancel_grace_ns));
    }
    return;
  }
  if (!slot.asked) {
    // Not sent yet: take it out of the ring.
    const std::size_t size = asks_.size();
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint32_t other = asks_.front();
      asks_.pop();
      if (other != index) {
        asks_.push(other);
      }
    }
    complete(index);
    free_slot(index);
    return;
  }
  const std::uint64_t name = wire_id(index);
  receiver_.drop(name, reader_);
  cancels_.push(name);
  if (!receiver_.storing(name)) {
    complete(index);
  }
}

bool ConsumerLane::peer_owes(bool files_work) const {
  if (!files_work) {
    return free_.size() < slots_.size();
  }
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) {
    if (slot.slice.kind == OperationKind::read) {
      return slot.used && slot.asked && !slot.last_word &&
             slot.answered_bytes < slot.slice.length_bytes;
    }
    return slot.used && slot.sending_over && slot.answered_bytes < slot.sent_bytes;
  });
}

void ConsumerLane::on_drained() {
  auto why = std::make_shared<Error>(lane_why());
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (!slot.used) {
      continue;
    }
    if (!slot.detached) {
      if (slot.slice.kind == OperationKind::write && slot.answered_bytes < slot.sent_bytes) {
        slot.unanswered = true;
      }
      if (!slot.cancelled || slot.unanswered) {
        fail_slot(slot, why);
      }
      complete(i);
    }
    free_slot(i);
  }
}

} // namespace wherry

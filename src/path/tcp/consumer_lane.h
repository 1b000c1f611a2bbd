// The consumer's end of a tcp lane: a Link.
//
// A slice lives in a slot, whose index and generation are its name on the wire: an answer that
// comes too late finds nothing. A READ that was cancelled ends at once, and its slot waits,
// detached, for the owner's last word; a WRITE ends when the owner has answered what was sent of
// it.
#pragma once

#include "path/tcp/lane.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace wherry {

class ConsumerLane final : public Lane, public Link {
public:
  ConsumerLane(ByteStream& stream, const LaneConfig& config, const LaneServices& services,
               std::uint64_t now_ns);

  bool has_room() const override;
  void submit(const Slice& slice) override;
  bool progress(std::uint64_t now_ns) override { return progress_lane(now_ns); }
  std::size_t poll(std::span<Completion> out) override;
  void request_cancel(std::uint64_t request, std::uint64_t now_ns) override;
  std::size_t using_range(std::uint64_t remote_range) const override;
  void begin_close(Error why) override { close_lane(std::move(why)); }
  LinkState state() const override { return lane_state(); }
  const Error& why() const override { return lane_why(); }
  std::uint64_t next_deadline_ns() const override { return lane_deadline_ns(); }

  /// Whether progress() is to be called when a file transfer ends or a staging buffer comes free.
  bool waits_for_files() const { return lane_waits_for_files(); }
  std::size_t outstanding() const { return live_; }

private:
  struct Slot {
    std::uint32_t generation = 1;
    bool used = false;
    bool detached = false; ///< Its completion was given; the owner may still speak of it.
    bool asked = false;    ///< READ: the owner was asked.
    bool cancelled = false;
    bool sending_over = false;        ///< WRITE: nothing more of it goes out.
    bool last_word = false;           ///< READ: the owner sends nothing more of it.
    bool prefix_over = false;         ///< Confirmations no longer extend the prefix.
    bool touched_beyond = false;      ///< WRITE: bytes beyond the prefix may have changed,
    bool unanswered = false;          ///< or the lane ended before the owner had answered for all.
    std::uint32_t sent_bytes = 0;     // WRITE
    std::uint32_t answered_bytes = 0; // WRITE: by the owner. READ: arrived.
    std::uint32_t confirmed_bytes = 0;
    std::shared_ptr<const Error> error;
    Slice slice;
  };

  Result<Verdict> on_frame(const wire::FrameHeader& header, std::span<const std::byte> descriptors,
                           std::span<PayloadTarget> targets) override;
  Result<Verdict> on_payload(std::span<const std::byte> descriptors, std::size_t count,
                             std::span<PayloadTarget> targets);
  Result<void> on_result(const wire::ResultDescriptor& result);
  void build_control(FrameWriter& writer) override;
  bool control_due() const override { return !asks_.empty() || !cancels_.empty(); }
  void on_arrival(PayloadReceiver::Arrival& arrival) override;
  void on_item_ended(const PayloadSender::Ended& ended) override;
  bool peer_owes(bool files_work) const override;
  void on_drained() override;

  std::uint64_t wire_id(std::uint32_t index) const {
    return make_id(index, slots_[index].generation);
  }
  Slot* find(std::uint64_t slice);
  void cancel_slot(std::uint32_t index, std::uint64_t now_ns);
  void finish_read(std::uint32_t index);
  void end_write_if_answered(std::uint32_t index);
  void complete(std::uint32_t index);
  void free_slot(std::uint32_t index);
  void fail_slot(Slot& slot, std::shared_ptr<const Error> error);

  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t live_ = 0; // Slots whose completion is to come.
  std::uint64_t live_bytes_ = 0;
  Ring<std::uint32_t> asks_;    // READs to ask the owner for.
  Ring<std::uint64_t> cancels_; // READs to cancel, by wire id.
  Ring<Completion> completions_;
};

} // namespace wherry

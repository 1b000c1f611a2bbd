// The owner's end of a tcp lane: serves READs and WRITEs of one consumer, checking each one's
// access.
#pragma once

#include "path/tcp/lane.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wherry {

class OwnerLane final : public Lane {
public:
  OwnerLane(ByteStream& stream, const LaneConfig& config, const LaneServices& services,
            OwnerAccess& access, std::uint64_t now_ns);

  bool progress(std::uint64_t now_ns) { return progress_lane(now_ns); }
  void begin_close(Error why) { close_lane(std::move(why)); }
  LinkState state() const { return lane_state(); }
  const Error& why() const { return lane_why(); }
  std::uint64_t next_deadline_ns() const { return lane_deadline_ns(); }
  /// Whether progress() is to be called when a file transfer ends or a staging buffer comes free.
  bool waits_for_files() const { return lane_waits_for_files(); }

private:
  // A READ that is being answered.
  struct Served {
    bool used = false;
    bool cancelled = false;
    std::uint64_t slice = 0;
    std::uint64_t lease = 0;
  };

  Result<Verdict> on_frame(const wire::FrameHeader& header, std::span<const std::byte> descriptors,
                           std::span<PayloadTarget> targets) override;
  void on_read(const wire::ReadDescriptor& read);
  Result<Verdict> on_write(std::span<const std::byte> descriptors, std::size_t count,
                           std::span<PayloadTarget> targets);
  void on_cancel(std::uint64_t slice);
  void build_control(FrameWriter& writer) override;
  bool control_due() const override;
  void on_arrival(PayloadReceiver::Arrival& arrival) override;
  void on_item_ended(const PayloadSender::Ended& ended) override;
  bool peer_owes(bool /*files_work*/) const override { return false; }
  bool may_read() const override;
  void on_drained() override;
  void answer(std::uint64_t slice, std::uint32_t bytes, ErrorCode code, int native_number);

  OwnerAccess& access_;
  std::vector<Served> served_;
  std::vector<std::uint32_t> free_;
  Ring<wire::ResultDescriptor> results_;
  bool answer_now_ = false; ///< Some result ends a slice.
  std::vector<OwnerAccess::Grant> grants_;
};

} // namespace wherry

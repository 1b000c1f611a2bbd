// A tcp lane: what both ends of a data connection have in common. One reader, one writer, and the
// machinery for payload between them; over any byte stream. The shard's leader runs it.
#pragma once

#include "path/path.h"
#include "path/tcp/frame_reader.h"
#include "path/tcp/frame_writer.h"
#include "path/tcp/payload_receiver.h"
#include "path/tcp/payload_sender.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace wherry {

/// Plain numbers of all lanes of a shard; a snapshot of the engine reads them.
struct LaneCounters {
  std::uint64_t lanes_opened = 0, lanes_cut = 0;
  std::uint64_t bytes_received = 0, bytes_sent = 0, frames_received = 0, frames_sent = 0;
  std::uint64_t read_slices = 0, write_slices = 0;   // Ended at a consumer's lane.
  std::uint64_t reads_served = 0, writes_served = 0; // Slices and extents at an owner's lane.
  std::uint64_t operations_refused = 0;              // By the owner's access check.
  std::uint64_t checksum_errors = 0, stalls = 0, cancels = 0;
};

struct LaneConfig {
  std::string name;                ///< "tcp lane 1": stands in errors.
  std::uint32_t slices_max = 1024; ///< A power of two.
  bool payload_checksums = false;
  std::uint64_t cancel_grace_ns = 100'000'000;
  std::uint64_t peer_stall_timeout_ns = 30'000'000'000;
};

/// What the shard's lanes share.
struct LaneServices {
  FileIo& files;
  StagingPool& staging;
  LaneCounters& counters;
};

class Lane : public FrameSink {
public:
  Lane(ByteStream& stream, const LaneConfig& config, const LaneServices& services,
       std::uint64_t now_ns);
  ~Lane() override = default;

  /// The stream may have become readable or writable; `hangup`: it ends behind what it holds.
  void on_event(bool readable, bool writable, bool hangup = false);
  /// Bytes that came behind the handshake.
  void prepend(std::span<const std::byte> bytes) { reader_.prepend(bytes); }

protected:
  bool progress_lane(std::uint64_t now_ns);
  void close_lane(Error why);
  LinkState lane_state() const { return state_; }
  const Error& lane_why() const { return why_; }
  std::uint64_t lane_deadline_ns() const;
  bool lane_waits_for_files() const {
    return state_ != LinkState::drained &&
           (reader_waits_ || receiver_.waiting_for_files() || sender_.waiting_for_files());
  }

  /// Appends the control frames that are due.
  virtual void build_control(FrameWriter& writer) = 0;
  virtual bool control_due() const = 0;
  /// An extent has arrived, or an item has been sent; in order.
  virtual void on_arrival(PayloadReceiver::Arrival& arrival) = 0;
  virtual void on_item_ended(const PayloadSender::Ended& ended) = 0;
  /// Whether the peer owes us something, so that its silence is a stall. `files_work`: some of what
  /// is out may wait for our own files instead.
  virtual bool peer_owes(bool files_work) const = 0;
  /// The stream is gone and nothing touches local bytes any more.
  virtual void on_drained() = 0;
  /// Room to take more from the peer (an owner whose answers are not read takes no more).
  virtual bool may_read() const { return true; }

  const LaneConfig config_;
  LaneCounters& counters_;
  FrameReader reader_;
  FrameWriter writer_;
  PayloadSender sender_;
  PayloadReceiver receiver_;
  /// The batch in transit must be written by then, because something in it was cancelled.
  void expect_batch_by(std::uint64_t deadline_ns);

private:
  void on_payload_end(bool checksum_ok) override;
  bool read_some();
  bool write_some();
  void hand_out();
  void settle_close();
  void check_deadlines(std::uint64_t now_ns);
  bool peer_must_move() const;

  ByteStream& stream_;
  LinkState state_ = LinkState::ready;
  Error why_;
  bool readable_ = true;
  bool writable_ = true;
  bool reader_waits_ = false;
  bool waiting_ = false;     // For the peer, since last_moved_ns_ at least.
  bool socket_full_ = false; // It took no more: when it takes more, the peer has moved.
  /// When the peer last showed that it is there. Bytes that a socket takes show nothing: it would
  /// take some for a peer that is gone.
  std::uint64_t last_moved_ns_;
  std::uint64_t batch_deadline_ns_; // For the batch of that number; never_ns: none.
  std::uint64_t deadline_batch_ = 0;
  std::uint64_t frames_counted_ = 0; // Of the writer's, in counters_.
};

} // namespace wherry

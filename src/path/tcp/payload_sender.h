// Turns slices into payload segments: for a consumer its WRITEs, for an owner the answers to READs.
// Bytes of memory are sent from where they are; bytes of files are loaded ahead into staging
// buffers.
#pragma once

#include "path/file_io.h"
#include "path/path.h"
#include "path/ring.h"
#include "path/staging_pool.h"
#include "path/tcp/frame_writer.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace wherry {

class PayloadSender final : public FileTransferOwner {
public:
  struct Item {
    std::uint64_t slice = 0;  ///< Its name on the wire.
    std::uint64_t range = 0;  ///< As the extents say it.
    std::uint64_t offset = 0; ///< Of its first byte, as the extents say it.
    LocalBytes local;
    std::uint32_t length_bytes = 0;
    std::uint32_t tag = 0; ///< The lane's own name for it.
  };
  /// An item that is over: all sent, or stopped; its local bytes are not touched any more.
  struct Ended {
    std::uint32_t tag = 0;
    std::uint32_t sent_bytes = 0;
    bool stopped = false;
    std::shared_ptr<const Error> error; ///< Loading failed.
  };

  PayloadSender(FileIo& files, StagingPool& staging, std::size_t items_max);
  ~PayloadSender() override;

  bool has_room() const { return room() > 0; }
  std::size_t room() const { return items_.room(); }
  void push(const Item& item);
  /// No further byte of the item goes out, but for the segment in transit. Ended follows. Returns
  /// whether that segment has some of it.
  bool stop(std::uint32_t tag, FrameWriter& writer);
  /// The stream is gone. What was begun counts as sent, what was not does not.
  void stop_all(FrameWriter& writer);

  /// Appends what can go out now.
  void build(FrameWriter& writer, bool checksum);
  /// Accounts for segments that the writer has sent.
  void on_sent(const FrameWriter& writer);
  /// Starts loading what comes next.
  void load_ahead();
  void on_transfer(FileTransfer& transfer) override;

  std::vector<Ended>& ended() { return ended_; }
  bool empty() const { return items_.empty(); }
  std::size_t loading() const { return loading_; }
  /// Whether FileIo has something of it, or would have it if there were room.
  bool waiting_for_files() const {
    return loading_ > 0 || load_cursor_ < first_position_ + items_.size();
  }

private:
  struct Progress {
    Item item;
    std::uint32_t committed = 0; // In a batch, or sent.
    std::uint32_t sent = 0;
    std::uint32_t loaded = 0; // For which loads were started.
    std::uint32_t loads = 0;  // Not yet sent or dropped.
    bool stopped = false;
    bool ended = false;
    std::shared_ptr<const Error> error;
  };
  struct Load {
    std::uint64_t position = 0;
    std::byte* buffer = nullptr;
    FileTransfer transfer;
    bool in_flight = false;
    bool committed = false;
    bool dropped = false;
  };
  // An extent of the writer's batch.
  struct Part {
    std::uint64_t position = 0;
    std::uint32_t bytes = 0;
    bool loaded = false;
  };

  Progress& at(std::uint64_t position) {
    return items_[static_cast<std::size_t>(position - first_position_)];
  }
  bool add_part(std::uint32_t& room, std::vector<iovec>& payload);
  Load* next_load();
  void take_back(FrameWriter& writer);
  void end_if_over(Progress& progress);
  void pop_ended();
  void drop_load(Load& load);
  void drop_loads_of(std::uint64_t position);
  void pop_loads();

  FileIo& files_;
  StagingPool& staging_;
  Ring<Progress> items_;
  std::uint64_t first_position_ = 0; // Of items_.front().
  std::uint64_t cursor_ = 0;         // The next to commit from,
  std::uint64_t load_cursor_ = 0;    // and to load.
  Ring<Load> loads_;
  std::size_t loading_ = 0;
  std::vector<Part> parts_;               // Of the batch, in order,
  std::vector<std::size_t> segment_ends_; // and where each segment's end.
  std::size_t segments_accounted_ = 0;
  std::vector<wire::PayloadExtent> extents_;
  std::vector<iovec> payload_;
  std::vector<Ended> ended_;
};

} // namespace wherry

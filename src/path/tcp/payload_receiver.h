// Brings the extents of payload segments to where they belong, and tells of their ends in the order
// in which they came: for a consumer the answers to READs, for an owner its peers' WRITEs. Bytes
// for memory are read in place; bytes for files go through one staging buffer a segment.
#pragma once

#include "path/file_io.h"
#include "path/path.h"
#include "path/ring.h"
#include "path/staging_pool.h"
#include "path/tcp/frame_reader.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace wherry {

class PayloadReceiver final : public FileTransferOwner {
public:
  /// An extent on its way, or ended.
  struct Arrival {
    std::uint64_t slice = 0;
    std::uint32_t length_bytes = 0;
    bool last = false;
    std::uint32_t tag = 0;              ///< The lane's own name for its slice.
    std::uint64_t lease = 0;            ///< Of an owner; 0 if none.
    ErrorCode refused{};                ///< Not touched: dropped, for this reason (0: not refused).
    bool dropped = false;               ///< Nobody wants it any more.
    bool corrupt = false;               ///< Its segment's checksum did not match.
    std::shared_ptr<const Error> error; ///< Storing failed.
    LocalBytes local;

  private:
    friend class PayloadReceiver;
    enum class State : std::uint8_t { landing, to_store, storing, done };
    State state_ = State::landing;
    std::size_t staged_ = 0; // Index + 1 of its staged segment.
    std::byte* staged_at_ = nullptr;
    FileTransfer transfer_;
  };

  PayloadReceiver(FileIo& files, StagingPool& staging, std::size_t arrivals_max);
  ~PayloadReceiver() override;

  /// Room for a segment of that many extents, some of which (`any_file`) are for files.
  bool prepare(std::size_t extents, bool any_file);
  /// Adds the next extent of the segment; prepare() was true. Its target is filled in.
  Arrival& land(const wire::PayloadExtent& extent, const LocalBytes* local, PayloadTarget& target);
  /// All extents of the segment have been landed.
  void on_payload_end(bool checksum_ok);
  /// Nothing of this slice is to touch memory any more. Of files: what is not yet being stored.
  void drop(std::uint64_t slice, FrameReader& reader);
  /// The stream is gone: the segment that was landing is not complete.
  void abandon();

  /// Starts what can be stored.
  void pump();
  /// The first arrival, if it has ended.
  Arrival* front();
  void pop();
  std::size_t storing() const { return storing_; }
  /// Whether FileIo has something of it, or is to have it.
  bool waiting_for_files() const { return storing_ + to_store_ > 0; }
  bool storing(std::uint64_t slice) const;
  /// Whether an extent of the slice is here, leaving out the first `skip` arrivals.
  bool has(std::uint64_t slice, std::size_t skip) const;
  bool empty() const { return arrivals_.empty(); }
  void on_transfer(FileTransfer& transfer) override;

private:
  struct Staged {
    std::byte* buffer = nullptr;
    std::size_t used = 0;
    std::size_t references = 0;
  };
  static constexpr std::size_t staged_max = 16;

  void unstage(Arrival& arrival);
  void settle(Arrival& arrival);

  FileIo& files_;
  StagingPool& staging_;
  Ring<Arrival> arrivals_;
  std::size_t landing_ = 0; // Extents at the end of arrivals_ whose payload is on its way.
  std::size_t to_store_ = 0;
  std::size_t storing_ = 0;
  std::array<Staged, staged_max> staged_;
  std::size_t current_ = 0; // Index + 1 of the landing segment's.
};

} // namespace wherry

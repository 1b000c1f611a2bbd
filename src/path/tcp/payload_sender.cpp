#include "path/tcp/payload_sender.h"

#include "base/assert.h"

#include <algorithm>

namespace wherry {

namespace {
constexpr std::size_t loads_max = 16; // Staging buffers a lane may hold for sending.
}

PayloadSender::PayloadSender(FileIo& files, StagingPool& staging, std::size_t items_max)
    : files_(files), staging_(staging), items_(items_max), loads_(loads_max) {
  parts_.reserve(FrameWriter::pieces_max);
  segment_ends_.reserve(FrameWriter::segments_max);
  extents_.reserve(wire::frame_descriptors_max);
  payload_.reserve(wire::frame_descriptors_max);
  ended_.reserve(items_max);
}

PayloadSender::~PayloadSender() {
  WHERRY_ASSERT(loading_ == 0);
  while (!loads_.empty()) {
    if (loads_.front().buffer != nullptr) {
      staging_.give(loads_.front().buffer, Staging::loading);
    }
    loads_.pop();
  }
}

void PayloadSender::push(const Item& item) {
  Progress& progress = items_.push();
  progress = Progress{};
  progress.item = item;
}

// -- loading files
// ---------------------------------------------------------------------------------

void PayloadSender::load_ahead() {
  while (load_cursor_ < first_position_ + items_.size()) {
    Progress& progress = at(load_cursor_);
    if (progress.item.local.file == nullptr || progress.stopped ||
        progress.loaded == progress.item.length_bytes) {
      ++load_cursor_;
      continue;
    }
    if (loads_.room() == 0) {
      return;
    }
    std::byte* buffer = staging_.take(Staging::loading);
    if (buffer == nullptr) {
      return;
    }
    Load& load = loads_.push();
    load.position = load_cursor_;
    load.buffer = buffer;
    load.in_flight = true;
    load.committed = false;
    load.dropped = false;
    load.transfer = FileTransfer{};
    load.transfer.owner = this;
    load.transfer.file = progress.item.local.file;
    load.transfer.offset = progress.item.local.offset + progress.loaded;
    load.transfer.bytes = buffer;
    load.transfer.length_bytes =
        std::min(progress.item.length_bytes - progress.loaded, wire::segment_bytes_max);
    if (!files_.start(load.transfer)) {
      // The worker is full; what is there of this load is taken back.
      staging_.give(buffer, Staging::loading);
      load.buffer = nullptr;
      load.in_flight = false;
      load.dropped = true;
      pop_loads();
      return;
    }
    ++loading_;
    ++progress.loads;
    progress.loaded += load.transfer.length_bytes;
  }
}

void PayloadSender::on_transfer(FileTransfer& transfer) {
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    Load& load = loads_[i];
    if (&load.transfer != &transfer) {
      continue;
    }
    load.in_flight = false;
    --loading_;
    Progress& progress = at(load.position);
    if (transfer.error && !progress.error) {
      progress.error = std::shared_ptr<const Error>(std::move(transfer.error));
      progress.stopped = true;
    }
    if (progress.stopped) {
      drop_loads_of(load.position);
    }
    end_if_over(progress);
    pop_loads();
    pop_ended();
    return;
  }
  WHERRY_ASSERT(false);
}

// Gives up a load that will not be sent; its item is not ended by this alone.
void PayloadSender::drop_load(Load& load) {
  if (load.in_flight || load.committed || load.dropped) {
    return;
  }
  staging_.give(load.buffer, Staging::loading);
  load.buffer = nullptr;
  load.dropped = true;
  --at(load.position).loads;
}

void PayloadSender::drop_loads_of(std::uint64_t position) {
  for (std::size_t k = 0; k < loads_.size(); ++k) {
    if (loads_[k].position == position) {
      drop_load(loads_[k]);
    }
  }
}

void PayloadSender::pop_loads() {
  while (!loads_.empty() && loads_.front().dropped) {
    loads_.pop();
  }
}

PayloadSender::Load* PayloadSender::next_load() {
  for (std::size_t i = 0; i < loads_.size(); ++i) {
    if (!loads_[i].committed && !loads_[i].dropped) {
      return &loads_[i];
    }
  }
  return nullptr;
}

// -- segments
// --------------------------------------------------------------------------------------

void PayloadSender::build(FrameWriter& writer, bool checksum) {
  // The writer's batch is new, or holds only control frames.
  parts_.clear();
  segment_ends_.clear();
  segments_accounted_ = 0;
  while (writer.has_segment_room(wire::frame_descriptors_max)) {
    extents_.clear();
    payload_.clear();
    std::uint32_t room = wire::segment_bytes_max;
    while (room > 0 && extents_.size() < wire::frame_descriptors_max && add_part(room, payload_)) {
    }
    if (extents_.empty()) {
      return;
    }
    const bool appended = writer.segment(extents_, payload_, checksum);
    WHERRY_ASSERT(appended);
    segment_ends_.push_back(parts_.size());
  }
}

// The next piece of the next item. False: nothing can be added to this segment.
bool PayloadSender::add_part(std::uint32_t& room, std::vector<iovec>& payload) {
  while (cursor_ < first_position_ + items_.size()) {
    Progress& progress = at(cursor_);
    const Item& item = progress.item;
    if (progress.stopped || progress.committed == item.length_bytes) {
      ++cursor_;
      continue;
    }
    const std::byte* from = nullptr;
    std::uint32_t bytes = 0;
    if (item.local.file == nullptr) {
      from = item.local.memory + progress.committed;
      bytes = std::min(room, item.length_bytes - progress.committed);
    } else {
      Load* load = next_load();
      if (load == nullptr || load->position != cursor_ || load->in_flight) {
        return false;
      }
      if (load->transfer.length_bytes > room) {
        return false;
      }
      from = load->buffer;
      bytes = load->transfer.length_bytes;
      load->committed = true;
    }
    extents_.push_back({item.slice, item.range, item.offset + progress.committed, bytes,
                        progress.committed + bytes == item.length_bytes});
    payload.push_back({const_cast<std::byte*>(from), bytes});
    parts_.push_back({cursor_, bytes, item.local.file != nullptr});
    progress.committed += bytes;
    room -= bytes;
    return true;
  }
  return false;
}

void PayloadSender::on_sent(const FrameWriter& writer) {
  while (segments_accounted_ < writer.segments_sent()) {
    const std::size_t begin = segments_accounted_ == 0 ? 0 : segment_ends_[segments_accounted_ - 1];
    for (std::size_t i = begin; i < segment_ends_[segments_accounted_]; ++i) {
      Progress& progress = at(parts_[i].position);
      progress.sent += parts_[i].bytes;
      if (parts_[i].loaded) {
        // Loads are committed and sent in order: this is the first that is committed.
        for (std::size_t k = 0; k < loads_.size(); ++k) {
          if (!loads_[k].committed || loads_[k].dropped) {
            continue;
          }
          WHERRY_ASSERT(loads_[k].position == parts_[i].position);
          loads_[k].committed = false;
          drop_load(loads_[k]);
          break;
        }
      }
      end_if_over(progress);
    }
    ++segments_accounted_;
  }
  pop_loads();
  pop_ended();
}

// Takes back the segments that have not begun.
void PayloadSender::take_back(FrameWriter& writer) {
  on_sent(writer);
  const std::size_t remaining = writer.unsend();
  while (segment_ends_.size() > remaining) {
    const std::size_t begin =
        segment_ends_.size() == 1 ? 0 : segment_ends_[segment_ends_.size() - 2];
    for (std::size_t i = parts_.size(); i-- > begin;) {
      Progress& progress = at(parts_[i].position);
      progress.committed -= parts_[i].bytes;
      cursor_ = std::min(cursor_, parts_[i].position);
      if (!parts_[i].loaded) {
        continue;
      }
      for (std::size_t k = loads_.size(); k-- > 0;) {
        if (!loads_[k].committed || loads_[k].dropped) {
          continue;
        }
        loads_[k].committed = false;
        break;
      }
    }
    parts_.resize(begin);
    segment_ends_.pop_back();
  }
}

bool PayloadSender::stop(std::uint32_t tag, FrameWriter& writer) {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    Progress& progress = items_[i];
    if (progress.item.tag != tag || progress.ended) {
      continue;
    }
    if (progress.stopped) {
      return progress.committed > progress.sent;
    }
    take_back(writer);
    progress.stopped = true;
    const bool in_transit = progress.committed > progress.sent;
    drop_loads_of(first_position_ + i);
    end_if_over(progress);
    pop_loads();
    pop_ended();
    return in_transit;
  }
  return false;
}

void PayloadSender::stop_all(FrameWriter& writer) {
  take_back(writer);
  for (std::size_t i = 0; i < items_.size(); ++i) {
    items_[i].stopped = true;
    items_[i].sent = items_[i].committed;
  }
  parts_.clear();
  segment_ends_.clear();
  segments_accounted_ = 0;
  for (std::size_t k = 0; k < loads_.size(); ++k) {
    if (!loads_[k].dropped) {
      loads_[k].committed = false;
    }
    drop_load(loads_[k]);
  }
  pop_loads();
  for (std::size_t i = 0; i < items_.size(); ++i) {
    end_if_over(items_[i]);
  }
  pop_ended();
}

void PayloadSender::end_if_over(Progress& progress) {
  if (progress.ended) {
    return;
  }
  const bool whole = progress.sent == progress.item.length_bytes;
  const bool over = whole || (progress.stopped && progress.sent == progress.committed);
  if (!over || progress.loads > 0) {
    return;
  }
  progress.ended = true;
  ended_.push_back({progress.item.tag, progress.sent, !whole, whole ? nullptr : progress.error});
}

void PayloadSender::pop_ended() {
  while (!items_.empty() && items_.front().ended) {
    items_.front().error.reset();
    items_.pop();
    ++first_position_;
  }
  cursor_ = std::max(cursor_, first_position_);
  load_cursor_ = std::max(load_cursor_, first_position_);
}

} // namespace wherry

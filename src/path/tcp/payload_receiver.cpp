#include "path/tcp/payload_receiver.h"

#include "base/assert.h"

namespace wherry {

PayloadReceiver::PayloadReceiver(FileIo& files, StagingPool& staging, std::size_t arrivals_max)
    : files_(files), staging_(staging), arrivals_(arrivals_max) {
  WHERRY_ASSERT(arrivals_max >= std::size_t{2} * wire::frame_descriptors_max);
}

PayloadReceiver::~PayloadReceiver() {
  WHERRY_ASSERT(storing_ == 0);
  for (Staged& staged : staged_) {
    if (staged.buffer != nullptr) {
      staging_.give(staged.buffer, Staging::storing);
    }
  }
}

bool PayloadReceiver::prepare(std::size_t extents, bool any_file) {
  WHERRY_ASSERT(landing_ == 0);
  current_ = 0;
  if (arrivals_.room() < extents) {
    return false;
  }
  if (!any_file) {
    return true;
  }
  for (std::size_t i = 0; i < staged_max; ++i) {
    if (staged_[i].buffer != nullptr) {
      continue;
    }
    staged_[i].buffer = staging_.take(Staging::storing);
    if (staged_[i].buffer == nullptr) {
      return false;
    }
    staged_[i].used = 0;
    staged_[i].references = 1; // The landing segment's own.
    current_ = i + 1;
    return true;
  }
  return false;
}

PayloadReceiver::Arrival& PayloadReceiver::land(const wire::PayloadExtent& extent,
                                                const LocalBytes* local, PayloadTarget& target) {
  Arrival& arrival = arrivals_.push();
  arrival.slice = extent.slice;
  arrival.length_bytes = extent.length_bytes;
  arrival.last = extent.last;
  arrival.tag = 0;
  arrival.lease = 0;
  arrival.refused = ErrorCode{};
  arrival.dropped = local == nullptr;
  arrival.corrupt = false;
  arrival.error.reset();
  arrival.local = local != nullptr ? *local : LocalBytes{};
  arrival.state_ = Arrival::State::landing;
  arrival.staged_ = 0;
  arrival.staged_at_ = nullptr;
  ++landing_;
  target = {arrival.local.memory, extent.length_bytes};
  if (arrival.local.file != nullptr) {
    WHERRY_ASSERT(current_ != 0);
    Staged& staged = staged_[current_ - 1];
    WHERRY_ASSERT(staged.used + extent.length_bytes <= staging_.buffer_bytes());
    arrival.staged_ = current_;
    arrival.staged_at_ = staged.buffer + staged.used;
    target.at = arrival.staged_at_;
    staged.used += extent.length_bytes;
    ++staged.references;
  }
  return arrival;
}

void PayloadReceiver::on_payload_end(bool checksum_ok) {
  const std::size_t first = arrivals_.size() - landing_;
  for (std::size_t i = first; i < arrivals_.size(); ++i) {
    Arrival& arrival = arrivals_[i];
    arrival.corrupt = !checksum_ok;
    if (arrival.local.file != nullptr && checksum_ok && !arrival.dropped) {
      arrival.state_ = Arrival::State::to_store;
      ++to_store_;
    } else {
      settle(arrival);
    }
  }
  landing_ = 0;
  if (current_ != 0) {
    Staged& staged = staged_[current_ - 1];
    if (--staged.references == 0) {
      staging_.give(staged.buffer, Staging::storing);
      staged.buffer = nullptr;
    }
    current_ = 0;
  }
  pump();
}

void PayloadReceiver::pump() {
  for (std::size_t i = 0; to_store_ > 0 && i < arrivals_.size(); ++i) {
    Arrival& arrival = arrivals_[i];
    if (arrival.state_ != Arrival::State::to_store) {
      continue;
    }
    arrival.transfer_ = FileTransfer{};
    arrival.transfer_.owner = this;
    arrival.transfer_.file = arrival.local.file;
    arrival.transfer_.offset = arrival.local.offset;
    arrival.transfer_.bytes = arrival.staged_at_;
    arrival.transfer_.length_bytes = arrival.length_bytes;
    arrival.transfer_.write = true;
    if (!files_.start(arrival.transfer_)) {
      return;
    }
    arrival.state_ = Arrival::State::storing;
    --to_store_;
    ++storing_;
  }
}

void PayloadReceiver::on_transfer(FileTransfer& transfer) {
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    Arrival& arrival = arrivals_[i];
    if (&arrival.transfer_ != &transfer || arrival.state_ != Arrival::State::storing) {
      continue;
    }
    --storing_;
    if (transfer.error) {
      arrival.error = std::shared_ptr<const Error>(std::move(transfer.error));
    }
    settle(arrival);
    return;
  }
  WHERRY_ASSERT(false);
}

void PayloadReceiver::settle(Arrival& arrival) {
  arrival.state_ = Arrival::State::done;
  unstage(arrival);
}

void PayloadReceiver::unstage(Arrival& arrival) {
  if (arrival.staged_ == 0) {
    return;
  }
  Staged& staged = staged_[arrival.staged_ - 1];
  arrival.staged_ = 0;
  if (--staged.references > 0) {
    return;
  }
  staging_.give(staged.buffer, Staging::storing);
  staged.buffer = nullptr;
}

void PayloadReceiver::drop(std::uint64_t slice, FrameReader& reader) {
  const std::size_t first_landing = arrivals_.size() - landing_;
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    Arrival& arrival = arrivals_[i];
    if (arrival.slice != slice) {
      continue;
    }
    if (arrival.state_ == Arrival::State::landing) {
      arrival.dropped = true;
      if (arrival.local.memory != nullptr) {
        reader.discard(i - first_landing);
      }
    } else if (arrival.state_ == Arrival::State::to_store) {
      arrival.dropped = true;
      --to_store_;
      settle(arrival);
    }
  }
}

void PayloadReceiver::abandon() {
  const std::size_t first = arrivals_.size() - landing_;
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    Arrival& arrival = arrivals_[i];
    if (i < first && arrival.state_ != Arrival::State::to_store) {
      continue;
    }
    if (arrival.state_ == Arrival::State::to_store) {
      --to_store_;
    }
    arrival.dropped = true;
    settle(arrival);
  }
  landing_ = 0;
  if (current_ == 0) {
    return;
  }
  Staged& staged = staged_[current_ - 1];
  current_ = 0;
  if (--staged.references > 0) {
    return;
  }
  staging_.give(staged.buffer, Staging::storing);
  staged.buffer = nullptr;
}

bool PayloadReceiver::storing(std::uint64_t slice) const {
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    if (arrivals_[i].slice == slice && arrivals_[i].state_ == Arrival::State::storing) {
      return true;
    }
  }
  return false;
}

bool PayloadReceiver::has(std::uint64_t slice, std::size_t skip) const {
  for (std::size_t i = skip; i < arrivals_.size(); ++i) {
    if (arrivals_[i].slice == slice) {
      return true;
    }
  }
  return false;
}

PayloadReceiver::Arrival* PayloadReceiver::front() {
  if (arrivals_.empty() || arrivals_.front().state_ != Arrival::State::done) {
    return nullptr;
  }
  return &arrivals_.front();
}

void PayloadReceiver::pop() {
  arrivals_.front().error.reset();
  arrivals_.pop();
}

} // namespace wherry

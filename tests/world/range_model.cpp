#include "world/range_model.h"

#include "base/assert.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace wherry::world {
namespace {

constexpr Moment under_way = UINT64_MAX;

/// How many leading bytes of both are the same.
std::size_t match(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (std::memcmp(a.data(), b.data(), a.size()) == 0) {
    return a.size();
  }
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

bool differ_in_one_bit(std::byte a, std::byte b) {
  return std::has_single_bit(std::to_integer<unsigned>(a ^ b));
}

/// Whose bytes these look like, for the reader of a failure.
std::string looks_like(std::uint64_t position, std::span<const std::byte> bytes, WriterId last) {
  const std::size_t wanted = std::min<std::size_t>(bytes.size(), 8);
  std::string text;
  for (WriterId writer = 1; writer <= last; ++writer) {
    if (match_pattern(writer, position, bytes.first(wanted)) == wanted) {
      text += fmt::format(" {}", writer);
    }
  }
  return text.empty() ? " nobody" : text;
}

} // namespace

// --- RangeModel
// -----------------------------------------------------------------------------------

RangeModel::RangeModel(std::string name, Bytes live)
    : name_(std::move(name)), live_(std::move(live)), length_(live_().size()) {
  const std::span<const std::byte> now = live_();
  base_.assign(now.begin(), now.end());
  if (length_ > 0) {
    cells_.push_back({0, length_, {{.writer = 0, .begun = 0, .over = 0, .certain = true}}});
  }
}

bool RangeModel::Cell::is_changing() const {
  return std::any_of(candidates.begin(), candidates.end(),
                     [](const Candidate& c) { return c.over == under_way; });
}

std::size_t RangeModel::cell_of(std::uint64_t offset) const {
  const auto found =
      std::upper_bound(cells_.begin(), cells_.end(), offset,
                       [](std::uint64_t value, const Cell& cell) { return value < cell.end; });
  return static_cast<std::size_t>(found - cells_.begin());
}

std::size_t RangeModel::split_at(std::uint64_t offset) {
  const std::size_t index = cell_of(offset);
  if (index == cells_.size() || cells_[index].begin == offset) {
    return index;
  }
  Cell left = cells_[index];
  left.end = offset;
  cells_[index].begin = offset;
  cells_.insert(cells_.begin() + static_cast<std::ptrdiff_t>(index), std::move(left));
  return index + 1;
}

std::span<RangeModel::Cell> RangeModel::cut(std::uint64_t offset, std::uint64_t length) {
  WHERRY_ASSERT(offset <= length_ && length <= length_ - offset);
  if (length == 0) {
    return {};
  }
  const std::size_t first = split_at(offset);
  const std::size_t last = split_at(offset + length);
  return std::span(cells_).subspan(first, last - first);
}

void RangeModel::write_begins(WriterId writer, std::uint64_t offset, std::uint64_t length,
                              Moment now) {
  last_writer_ = std::max(last_writer_, writer);
  last_change_ = now;
  for (Cell& cell : cut(offset, length)) {
    cell.candidates.push_back(
        {.writer = writer, .begun = now, .over = under_way, .certain = false});
  }
  for (ReadModel* read : reads_) {
    read->also(writer, offset, offset + length);
  }
}

void RangeModel::write_is_confirmed(WriterId writer, std::uint64_t offset, std::uint64_t length,
                                    Moment now) {
  for (Cell& cell : cut(offset, length)) {
    for (Candidate& candidate : cell.candidates) {
      if (candidate.writer == writer) {
        candidate.certain = true;
        candidate.over = std::min(candidate.over, now);
      }
    }
    forget_overwritten(cell);
  }
}

void RangeModel::forget_overwritten(Cell& cell) {
  Moment latest_begun = 0;
  for (const Candidate& candidate : cell.candidates) {
    if (candidate.certain) {
      latest_begun = std::max(latest_begun, candidate.begun);
    }
  }
  std::erase_if(cell.candidates, [&](const Candidate& c) { return c.over < latest_begun; });
}

void RangeModel::write_never_happened(WriterId writer, std::uint64_t offset, std::uint64_t length) {
  for (Cell& cell : cut(offset, length)) {
    std::erase_if(cell.candidates,
                  [&](const Candidate& c) { return c.writer == writer && !c.certain; });
  }
}

void RangeModel::write_is_over(WriterId writer, std::uint64_t offset, std::uint64_t length,
                               Moment now) {
  for (Cell& cell : cut(offset, length)) {
    for (Candidate& candidate : cell.candidates) {
      if (candidate.writer == writer) {
        candidate.over = std::min(candidate.over, now);
      }
    }
  }
}

void RangeModel::freeze(Moment now) {
  if (frozen_) {
    return;
  }
  const std::span<const std::byte> last = live_();
  frozen_bytes_.assign(last.begin(), last.end());
  frozen_ = true;
  last_change_ = now;
  for (Cell& cell : cells_) {
    for (Candidate& candidate : cell.candidates) {
      candidate.over = std::min(candidate.over, now);
    }
  }
}

std::optional<std::string> RangeModel::check(std::uint64_t offset, std::uint64_t length) const {
  const std::span<const std::byte> all = bytes();
  if (all.size() != length_) {
    return fmt::format("range {} has {} bytes where it had {}", name_, all.size(), length_);
  }
  const std::uint64_t end = offset + length;
  for (std::size_t i = cell_of(offset); i < cells_.size() && cells_[i].begin < end; ++i) {
    const Cell& cell = cells_[i];
    std::uint64_t at = std::max(cell.begin, offset);
    const std::uint64_t until = std::min(cell.end, end);
    while (at < until) {
      // Runs of one writer, longest first: most cells have a single candidate.
      std::size_t longest = 0;
      const std::span<const std::byte> left = all.subspan(at, until - at);
      for (const Candidate& candidate : cell.candidates) {
        const std::size_t run = candidate.writer == 0
                                    ? match(left, std::span(base_).subspan(at, left.size()))
                                    : match_pattern(candidate.writer, at, left);
        longest = std::max(longest, run);
        if (longest == left.size()) {
          break;
        }
      }
      if (longest == 0 && is_flipped(at, cell, left[0])) {
        longest = 1;
      }
      if (longest == 0) {
        return describe(at, cell);
      }
      at += longest;
    }
  }
  return std::nullopt;
}

bool RangeModel::is_flipped(std::uint64_t position, const Cell& cell, std::byte byte) const {
  return bits_flip_ &&
         std::any_of(cell.candidates.begin(), cell.candidates.end(), [&](const Candidate& c) {
           return !c.certain && differ_in_one_bit(byte, pattern_byte(c.writer, position));
         });
}

std::string RangeModel::describe(std::uint64_t position, const Cell& cell) const {
  std::string may;
  for (const Candidate& candidate : cell.candidates) {
    may += fmt::format(" {}{}{}", candidate.writer, candidate.certain ? "!" : "",
                       candidate.over == under_way ? "*" : "");
  }
  return fmt::format("range {}: byte {} is none of those that may stand there (writers{}; ! it has "
                     "happened, * it may still); it looks like:{}",
                     name_, position, may,
                     looks_like(position, bytes().subspan(position), last_writer_));
}

void RangeModel::settle(std::uint64_t offset, std::uint64_t length, Moment now) {
  const std::span<const std::byte> all = bytes();
  bool any = false;
  for (Cell& cell : cut(offset, length)) {
    const bool is_base = cell.candidates.size() == 1 && cell.candidates[0].writer == 0;
    if (is_base || cell.is_changing()) {
      continue;
    }
    std::copy(all.begin() + static_cast<std::ptrdiff_t>(cell.begin),
              all.begin() + static_cast<std::ptrdiff_t>(cell.end),
              base_.begin() + static_cast<std::ptrdiff_t>(cell.begin));
    cell.candidates = {{.writer = 0, .begun = now, .over = now, .certain = true}};
    any = true;
  }
  if (any) {
    merge_settled();
  }
}

void RangeModel::merge_settled() {
  std::size_t kept = 0;
  for (std::size_t i = 1; i < cells_.size(); ++i) {
    Cell& last = cells_[kept];
    Cell& cell = cells_[i];
    const bool both_base = last.candidates.size() == 1 && last.candidates[0].writer == 0 &&
                           cell.candidates.size() == 1 && cell.candidates[0].writer == 0;
    if (both_base) {
      last.end = cell.end;
      last.candidates[0].over = std::max(last.candidates[0].over, cell.candidates[0].over);
      last.candidates[0].begun = std::min(last.candidates[0].begun, cell.candidates[0].begun);
      continue;
    }
    ++kept;
    if (kept != i) {
      cells_[kept] = std::move(cell);
    }
  }
  if (!cells_.empty()) {
    cells_.resize(kept + 1);
  }
}

bool RangeModel::is_changing(std::uint64_t offset, std::uint64_t length) const {
  for (std::size_t i = cell_of(offset); i < cells_.size() && cells_[i].begin < offset + length;
       ++i) {
    if (cells_[i].is_changing()) {
      return true;
    }
  }
  return false;
}

// --- ReadModel
// ------------------------------------------------------------------------------------

ReadModel::ReadModel(RangeModel& range, std::uint64_t offset, std::uint64_t length)
    : range_(range), begin_(offset), end_(offset + length),
      contended_(range.is_changing(offset, length)) {
  base_.assign(range.base_.begin() + static_cast<std::ptrdiff_t>(begin_),
               range.base_.begin() + static_cast<std::ptrdiff_t>(end_));
  for (const RangeModel::Cell& cell : range.cut(offset, length)) {
    Piece piece{cell.begin, cell.end, {}};
    for (const auto& candidate : cell.candidates) {
      // Whoever begins after the end of a publication must not reach it.
      if (!range.frozen_) {
        piece.writers.push_back(candidate.writer);
      }
    }
    pieces_.push_back(std::move(piece));
  }
  range.reads_.push_back(this);
}

ReadModel::~ReadModel() {
  std::erase(range_.reads_, this);
}

void ReadModel::also(WriterId writer, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t from = std::max(begin, begin_);
  const std::uint64_t to = std::min(end, end_);
  if (from < to) {
    later_.push_back({from, to, {writer}});
  }
}

bool ReadModel::is_legal(std::uint64_t position, std::byte byte, const Piece& piece) const {
  const auto is_one = [&](WriterId writer) { return is_of(writer, position, byte); };
  return std::any_of(piece.writers.begin(), piece.writers.end(), is_one) ||
         std::any_of(later_.begin(), later_.end(), [&](const Piece& later) {
           return position >= later.begin && position < later.end && is_one(later.writers[0]);
         });
}

bool ReadModel::is_of(WriterId writer, std::uint64_t position, std::byte byte) const {
  const std::byte legal = writer == 0 ? base_[position - begin_] : pattern_byte(writer, position);
  return byte == legal || (writer != 0 && range_.bits_flip_ && differ_in_one_bit(byte, legal));
}

std::optional<std::string> ReadModel::check(std::uint64_t at,
                                            std::span<const std::byte> bytes) const {
  const std::uint64_t begin = begin_ + at;
  const std::uint64_t end = begin + bytes.size();
  for (const Piece& piece : pieces_) {
    std::uint64_t position = std::max(piece.begin, begin);
    const std::uint64_t until = std::min(piece.end, end);
    if (position >= until) {
      continue;
    }
    if (piece.writers.empty()) {
      return fmt::format("a READ that began when nobody could reach range {} any more brought "
                         "bytes of it",
                         range_.name_);
    }
    const WriterId first = piece.writers[0];
    const auto left = bytes.subspan(position - begin, until - position);
    position += first == 0 ? match(left, std::span(base_).subspan(position - begin_, left.size()))
                           : match_pattern(first, position, left);
    for (; position < until; ++position) {
      if (!is_legal(position, bytes[position - begin], piece)) {
        return fmt::format(
            "a READ of range {} brought a byte {} that was never there meanwhile; "
            "it looks like:{}",
            range_.name_, position,
            looks_like(position, bytes.subspan(position - begin), range_.last_writer_));
      }
    }
  }
  return std::nullopt;
}

} // namespace wherry::world

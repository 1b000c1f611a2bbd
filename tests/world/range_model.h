// What the bytes of an owner's range may be: per run of bytes the WRITEs that a legal history
// allows to have been the last, told from reports alone (R28, R29).
//
// A WRITE takes effect at some moment between its submission and the moment at which its report
// says that it is confirmed, or over. Of two WRITEs whose spans do not overlap the later one wins;
// if they do, either may have won. A moment is a number that counts what the oracle saw.
#pragma once

#include "world/pattern.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace wherry::world {

using Moment = std::uint64_t;

class ReadModel;

/// One range of one incarnation of its owner, under one publication.
class RangeModel {
public:
  using Bytes = std::function<std::span<const std::byte>()>;

  RangeModel(std::string name, Bytes live);
  RangeModel(const RangeModel&) = delete;
  RangeModel& operator=(const RangeModel&) = delete;

  const std::string& name() const { return name_; }
  std::uint64_t length() const { return length_; }
  /// Bits flip on the way. A segment whose checksum does not match may have been put in place: what
  /// is uncertain may be there with one bit changed.
  void let_bits_flip() { bits_flip_ = true; }

  void write_begins(WriterId writer, std::uint64_t offset, std::uint64_t length, Moment now);
  void write_is_confirmed(WriterId writer, std::uint64_t offset, std::uint64_t length, Moment now);
  void write_never_happened(WriterId writer, std::uint64_t offset, std::uint64_t length);
  /// It may have happened, and will not any more.
  void write_is_over(WriterId writer, std::uint64_t offset, std::uint64_t length, Moment now);
  /// Nobody can reach the bytes through this publication any more: what they are now they stay for
  /// those who used it, whatever a successor does with the memory.
  void freeze(Moment now);
  bool frozen() const { return frozen_; }

  /// Nothing if the bytes are what they may be; else what is wrong with the first that is not.
  std::optional<std::string> check(std::uint64_t offset, std::uint64_t length) const;
  /// Where no WRITE is under way, only the bytes that are there now are legal from now on.
  /// To be called after check().
  void settle(std::uint64_t offset, std::uint64_t length, Moment now);
  /// Whether a WRITE may still change these bytes.
  bool is_changing(std::uint64_t offset, std::uint64_t length) const;
  /// When a WRITE last began, or the range ended.
  Moment last_change() const { return last_change_; }
  std::span<const std::byte> bytes() const { return frozen_ ? frozen_bytes_ : live_(); }

private:
  friend class ReadModel;
  struct Candidate {
    WriterId writer = 0;
    Moment begun = 0;
    Moment over = 0;
    bool certain = false; ///< It has happened.
  };
  struct Cell {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::vector<Candidate> candidates;
    bool is_changing() const;
  };

  /// The cells that make up exactly [offset, offset + length).
  std::span<Cell> cut(std::uint64_t offset, std::uint64_t length);
  std::size_t split_at(std::uint64_t offset);
  std::size_t cell_of(std::uint64_t offset) const;
  static void forget_overwritten(Cell& cell);
  void merge_settled();
  bool is_flipped(std::uint64_t position, const Cell& cell, std::byte byte) const;
  std::string describe(std::uint64_t position, const Cell& cell) const;

  std::string name_;
  Bytes live_;
  std::uint64_t length_;
  std::vector<std::byte> base_; ///< What writer 0 stands for.
  std::vector<Cell> cells_;     ///< In order, without gaps.
  std::vector<ReadModel*> reads_;
  WriterId last_writer_ = 0;
  Moment last_change_ = 0;
  bool frozen_ = false;
  bool bits_flip_ = false;
  std::vector<std::byte> frozen_bytes_;
};

/// What a READ that is under way may bring: what was legal when it was submitted, and what was
/// written since.
class ReadModel {
public:
  ReadModel(RangeModel& range, std::uint64_t offset, std::uint64_t length);
  ~ReadModel();
  ReadModel(const ReadModel&) = delete;
  ReadModel& operator=(const ReadModel&) = delete;

  /// Bytes at `at` of the READ. Nothing if they are legal.
  std::optional<std::string> check(std::uint64_t at, std::span<const std::byte> bytes) const;
  /// Whether a WRITE may have changed the bytes while they were read.
  bool is_contended() const { return contended_ || !later_.empty(); }

private:
  friend class RangeModel;
  struct Piece {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::vector<WriterId> writers;
  };
  void also(WriterId writer, std::uint64_t begin, std::uint64_t end);
  bool is_legal(std::uint64_t position, std::byte byte, const Piece& piece) const;
  bool is_of(WriterId writer, std::uint64_t position, std::byte byte) const;

  RangeModel& range_;
  const std::uint64_t begin_;
  const std::uint64_t end_;
  std::vector<std::byte> base_;
  std::vector<Piece> pieces_;
  std::vector<Piece> later_; ///< One writer each.
  bool contended_;
};

} // namespace wherry::world

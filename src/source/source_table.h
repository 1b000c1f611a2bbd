// What an owner publishes: sources by name, their epochs and ranges, and the access check of every
// operation (R23 to R25). Pure state, no I/O; the shard's leader owns it, not thread-safe.
#pragma once

#include "base/error.h"
#include "base/ids.h"
#include "base/random.h"
#include "memory/range_table.h"
#include "wire/control.h"

#include <wherry/source.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace wherry {

/// What describe says of a file range that is published; asked when it is published.
struct RangeToPublish {
  std::string name;
  std::uint64_t registration = 0;
  std::optional<FileVersion> version{};
  std::string evidence;
  std::vector<PathKind> routes;
};

/// One published range.
struct PublishedRange {
  std::string name;
  std::uint64_t id = 0; ///< What peers call it.
  std::uint64_t registration = 0;
  RangeKind kind{};
  std::uint64_t length_bytes = 0;
  Visibility visibility{};
  std::optional<FileVersion> version;
  std::string evidence;
  std::vector<PathKind> routes;
  bool recalled = false; ///< Left Describe; served until it is removed.
};

class PublishedSource {
public:
  PublishedSource(std::string name, std::uint64_t epoch) : name_(std::move(name)), epoch_(epoch) {}

  const std::string& name() const { return name_; }
  std::uint64_t epoch() const { return epoch_; }

  /// All or none (R24). Errors: invalid_argument (name of zero or over 4095 bytes, NUL, twice the
  /// same; registration), access_denied (local_only).
  Result<void> add(std::span<const RangeToPublish> ranges, const RangeTable& table);

  const PublishedRange* find(std::string_view name) const; ///< Not recalled ones.
  const PublishedRange* find(std::uint64_t id) const;
  /// Ids of ranges of this source that publish the registration.
  std::vector<std::uint64_t> publishing(std::uint64_t registration) const;

  /// The page that starts at `page` (0: the first), bounded in count and bytes. Ranges that are
  /// added or removed between two pages may be in or out; no other is missed or told twice.
  wire::DescribeReply describe(std::uint64_t page) const;
  static RangeDescription describe(const PublishedRange& range);

  /// Takes the range out of Describe and lookups; it is still served.
  void recall(std::uint64_t id);
  /// Ends it: checks answer range_withdrawn from now on.
  void remove(std::uint64_t id);
  std::size_t size() const { return ranges_.size(); }

  /// The access check (R25): id, bounds without overflow, visibility. A range that was removed is
  /// range_withdrawn, an id that never was is not_found. No message: it is on the path of every
  /// slice.
  struct Check {
    ErrorCode code{}; ///< Valid when `range` is null.
    const PublishedRange* range = nullptr;
  };
  Check check(std::uint64_t id, std::uint64_t offset, std::uint64_t length_bytes,
              Access access) const;

private:
  void insert(const RangeToPublish& range, const RangeTable::Facts& facts);

  std::string name_;
  std::uint64_t epoch_;
  SlotMap<PublishedRange> ranges_;
  std::unordered_map<std::string, std::uint64_t> by_name_; ///< Not recalled ones.
  /// Every registration of a large source may be retired, one after the other.
  std::unordered_multimap<std::uint64_t, std::uint64_t> by_registration_;
};

/// 52 random bits, never 0 (R20): exact in a JSON number.
std::uint64_t random_epoch(Random& random);
/// The epoch after the one in an epoch file's content (empty: none yet). Larger. Errors:
/// invalid_argument when the content is not what next_epoch wrote.
struct NextEpoch {
  std::uint64_t epoch = 0;
  std::string content; ///< For the file.
};
Result<NextEpoch> next_epoch(std::string_view content, Random& random);

/// The owner's answer to a Hello (R21): what does not match, as a Refusal; nothing when it may come
/// in. `source` is null when there is none of that name.
std::optional<wire::Refusal> refuse(const wire::Hello& hello, const PublishedSource* source,
                                    const EngineId& self);

} // namespace wherry

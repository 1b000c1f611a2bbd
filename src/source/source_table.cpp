// What an owner publishes: ranges under names, their epoch, and the check of every operation of a
// peer (R20, R21, R23 to R25). Pure state; the shard's leader calls it. What a peer sends is only
// compared here; what it gets to read is bounded by the wire's pages (R42).
#include "source/source_table.h"

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/syntax.h"

#include <array>
#include <unordered_set>
#include <utility>

namespace wherry {
namespace {

/// Exact in a JSON number.
constexpr std::uint64_t epoch_max = (std::uint64_t{1} << 53) - 1;

/// A name for a message: printable, and no longer than a line.
std::string in_quotes(std::string_view name) {
  constexpr std::size_t shown_max = 200;
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : name.substr(0, shown_max)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\') {
      text.append("\\x").append({digits[byte >> 4], digits[byte & 15]});
    } else {
      text += c;
    }
  }
  return text + (name.size() > shown_max ? "...\"" : "\"");
}

wire::Refusal stale(std::string message, const PublishedSource* source) {
  return {ErrorCode::stale_epoch, std::move(message), source != nullptr ? source->epoch() : 0};
}

std::string epoch_content(std::uint64_t epoch) {
  const std::string text = "wherry epoch " + std::to_string(epoch);
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(text)));
  return text + " crc " + std::to_string(crc) + "\n";
}

/// Nothing when the content is not one that epoch_content() makes.
std::optional<std::uint64_t> parse_epoch_content(std::string_view content) {
  constexpr std::string_view head = "wherry epoch ";
  if (!content.starts_with(head)) {
    return std::nullopt;
  }
  const std::string_view rest = content.substr(head.size());
  const auto epoch = parse_decimal(rest.substr(0, rest.find(' ')), epoch_max);
  if (!epoch || *epoch == 0 || content != epoch_content(*epoch)) {
    return std::nullopt;
  }
  return epoch;
}

} // namespace

Result<void> PublishedSource::add(std::span<const RangeToPublish> ranges, const RangeTable& table) {
  std::vector<RangeTable::Facts> facts;
  facts.reserve(ranges.size());
  std::unordered_set<std::string_view> names;
  for (const RangeToPublish& range : ranges) {
    if (!wire::is_name(range.name)) {
      return fail(ErrorCode::invalid_argument,
                  "range name " + in_quotes(range.name) + " is not 1 to 4095 bytes without NUL");
    }
    if (range.routes.size() > wire::routes_max) {
      return fail(ErrorCode::invalid_argument, "range " + in_quotes(range.name) + " has " +
                                                   std::to_string(range.routes.size()) + " routes");
    }
    if (by_name_.contains(range.name) || !names.insert(range.name).second) {
      return fail(ErrorCode::invalid_argument, "two ranges of source " + in_quotes(name_) +
                                                   " are called " + in_quotes(range.name));
    }
    auto known = table.facts(range.registration);
    if (!known) {
      Error error = std::move(known.error());
      error.message = "range " + in_quotes(range.name) + ": " + error.message;
      return fail(std::move(error));
    }
    if (known->visibility == Visibility::local_only) {
      return fail(ErrorCode::access_denied, "range " + in_quotes(range.name) +
                                                ": its registration is local_only; register it "
                                                "with another visibility to publish it");
    }
    facts.push_back(*known);
  }
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    insert(ranges[i], facts[i]);
  }
  return {};
}

void PublishedSource::insert(const RangeToPublish& range, const RangeTable::Facts& facts) {
  const auto [id, published] = ranges_.emplace();
  WHERRY_ASSERT(published != nullptr);
  published->name = range.name;
  published->id = id;
  published->registration = range.registration;
  published->kind = facts.kind;
  published->length_bytes = facts.length_bytes;
  published->visibility = facts.visibility;
  published->version = range.version;
  published->evidence = range.evidence;
  published->routes = range.routes;
  by_name_.emplace(range.name, id);
  by_registration_.emplace(range.registration, id);
}

const PublishedRange* PublishedSource::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : ranges_.find(found->second);
}

const PublishedRange* PublishedSource::find(std::uint64_t id) const {
  return ranges_.find(id);
}

std::vector<std::uint64_t> PublishedSource::publishing(std::uint64_t registration) const {
  std::vector<std::uint64_t> ids;
  const auto [first, last] = by_registration_.equal_range(registration);
  for (auto it = first; it != last; ++it) {
    ids.push_back(it->second);
  }
  return ids;
}

wire::DescribeReply PublishedSource::describe(std::uint64_t page) const {
  // A page is named by the slot at which it starts: slots keep their order, whatever comes and
  // goes.
  wire::DescribeReply reply;
  std::size_t bytes = 0;
  std::uint64_t slot = page;
  while (slot <= UINT32_MAX) {
    const std::uint64_t id = ranges_.first_from(static_cast<std::uint32_t>(slot));
    if (id == 0) {
      break;
    }
    slot = id_slot(id);
    const PublishedRange& range = *ranges_.find(id);
    if (!range.recalled) {
      RangeDescription description = describe(range);
      bytes += wire::description_bytes(description);
      if (reply.ranges.size() == wire::describe_page_max || bytes > wire::describe_page_bytes_max) {
        reply.next = slot;
        break;
      }
      reply.ranges.push_back(std::move(description));
    }
    ++slot;
  }
  return reply;
}

RangeDescription PublishedSource::describe(const PublishedRange& range) {
  RangeDescription description;
  description.name = range.name;
  description.range = {range.id, range.length_bytes, range.visibility, range.kind};
  description.version = range.version;
  description.routes = range.routes;
  description.evidence = range.evidence;
  return description;
}

void PublishedSource::recall(std::uint64_t id) {
  PublishedRange* range = ranges_.find(id);
  if (range == nullptr || range->recalled) {
    return;
  }
  range->recalled = true;
  by_name_.erase(range->name);
}

void PublishedSource::remove(std::uint64_t id) {
  recall(id);
  const PublishedRange* range = ranges_.find(id);
  if (range == nullptr) {
    return;
  }
  const auto [first, last] = by_registration_.equal_range(range->registration);
  for (auto it = first; it != last; ++it) {
    if (it->second == id) {
      by_registration_.erase(it);
      break;
    }
  }
  ranges_.erase(id);
}

PublishedSource::Check PublishedSource::check(std::uint64_t id, std::uint64_t offset,
                                              std::uint64_t length_bytes, Access access) const {
  const PublishedRange* range = ranges_.find(id);
  if (range == nullptr) {
    return {ranges_.was_issued(id) ? ErrorCode::range_withdrawn : ErrorCode::not_found};
  }
  if (offset > range->length_bytes || length_bytes > range->length_bytes - offset) {
    return {ErrorCode::out_of_range};
  }
  if (access == Access::write && range->visibility != Visibility::remote_read_write) {
    return {ErrorCode::access_denied};
  }
  return {ErrorCode{}, range};
}

std::uint64_t random_epoch(Random& random) {
  std::uint64_t epoch = 0;
  while (epoch == 0) {
    epoch = random.u64() >> 12;
  }
  return epoch;
}

Result<NextEpoch> next_epoch(std::string_view content, Random& random) {
  if (content.empty()) {
    const std::uint64_t epoch = random_epoch(random);
    return NextEpoch{epoch, epoch_content(epoch)};
  }
  const auto last = parse_epoch_content(content);
  if (!last) {
    return fail(ErrorCode::invalid_argument,
                "not an epoch file, or a damaged one: restore it, or remove it to start anew");
  }
  if (*last == epoch_max) {
    return fail(ErrorCode::invalid_argument,
                "the epochs of this file are used up: use another file");
  }
  // A random step: a file that comes back from a backup does not lead to an epoch that was used.
  const std::uint64_t room = epoch_max - *last;
  const std::uint64_t step = 1 + (random.u64() >> 32);
  const std::uint64_t epoch = *last + (step <= room ? step : 1);
  return NextEpoch{epoch, epoch_content(epoch)};
}

std::optional<wire::Refusal> refuse(const wire::Hello& hello, const PublishedSource* source,
                                    const EngineId& self) {
  // First of all: behind this address may be another engine, with a source of the same name.
  if (hello.expected_owner && *hello.expected_owner != self) {
    return stale("engine " + self.to_string() + " serves this address now, not engine " +
                     hello.expected_owner->to_string(),
                 source);
  }
  if (source == nullptr) {
    return wire::Refusal{ErrorCode::not_found, "no source is called " + in_quotes(hello.name), 0};
  }
  if (hello.expected_epoch != 0 && hello.expected_epoch != source->epoch()) {
    return stale("source " + in_quotes(hello.name) + " has epoch " +
                     std::to_string(source->epoch()) + " now, not " +
                     std::to_string(hello.expected_epoch),
                 source);
  }
  return std::nullopt;
}

} // namespace wherry

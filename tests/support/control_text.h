// A control message as one line with every field in it: to compare messages and to show them.
#pragma once

#include "base/hex.h"
#include "wire/control.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace wherry::testing {

/// Writes "name=value " for each field given.
class FieldText {
public:
  explicit FieldText(std::string_view message) { text_.append(message).append(": "); }

  FieldText& field(std::string_view name, std::uint64_t value) {
    return raw(name, std::to_string(value));
  }
  FieldText& signed_field(std::string_view name, std::int64_t value) {
    return raw(name, std::to_string(value));
  }
  FieldText& field(std::string_view name, const std::array<std::uint8_t, 16>& bytes) {
    return raw(name, hex_text(bytes));
  }
  /// Printable, and different for different bytes.
  FieldText& field(std::string_view name, std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string value;
    for (const char c : bytes) {
      const auto byte = static_cast<std::uint8_t>(c);
      if (byte > 0x20 && byte < 0x7f && c != '%') {
        value += c;
      } else {
        value.append({'%', digits[byte >> 4], digits[byte & 15]});
      }
    }
    return raw(name, value);
  }
  FieldText& range(const RangeDescription& r) {
    field("name", r.name).field("range", r.range.id).field("length", r.range.length_bytes);
    field("visibility", static_cast<std::uint64_t>(r.range.visibility));
    field("kind", static_cast<std::uint64_t>(r.range.kind));
    if (r.version) {
      field("device", r.version->device).field("inode", r.version->inode);
      field("size", r.version->size_bytes).signed_field("mtime", r.version->mtime_ns);
    }
    for (const PathKind route : r.routes) {
      field("route", static_cast<std::uint64_t>(route));
    }
    return field("evidence", r.evidence);
  }
  std::string text() const { return text_; }

private:
  FieldText& raw(std::string_view name, std::string_view value) {
    text_.append(name).append("=").append(value).append(" ");
    return *this;
  }

  std::string text_;
};

struct ControlText {
  std::string operator()(const wire::Hello& m) const {
    FieldText text("Hello");
    text.field("name", m.name).field("consumer", m.consumer.bytes);
    text.field("expected_epoch", m.expected_epoch);
    if (m.expected_owner) {
      text.field("expected_owner", m.expected_owner->bytes);
    }
    return text.field("lanes", m.lanes).field("previous_session", m.previous_session).text();
  }
  std::string operator()(const wire::Welcome& m) const {
    return FieldText("Welcome")
        .field("owner", m.owner.bytes)
        .field("epoch", m.epoch)
        .field("session", m.session)
        .field("key", m.key)
        .field("lanes", m.lanes)
        .field("slices_max", m.slices_max)
        .text();
  }
  std::string operator()(const wire::Refusal& m) const {
    return FieldText("Refusal")
        .field("code", static_cast<std::uint64_t>(m.code))
        .field("message", m.message)
        .field("current_epoch", m.current_epoch)
        .text();
  }
  std::string operator()(const wire::DescribeRequest& m) const {
    return FieldText("DescribeRequest").field("id", m.id).field("page", m.page).text();
  }
  std::string operator()(const wire::DescribeReply& m) const {
    FieldText text("DescribeReply");
    text.field("id", m.id).field("next", m.next);
    for (const RangeDescription& range : m.ranges) {
      text.range(range);
    }
    return text.text();
  }
  std::string operator()(const wire::LookupRequest& m) const {
    return FieldText("LookupRequest").field("id", m.id).field("name", m.name).text();
  }
  std::string operator()(const wire::LookupReply& m) const {
    return FieldText("LookupReply").field("id", m.id).range(m.range).text();
  }
  std::string operator()(const wire::ChecksumRequest& m) const {
    return FieldText("ChecksumRequest")
        .field("id", m.id)
        .field("range", m.range)
        .field("offset", m.offset)
        .field("length", m.length_bytes)
        .text();
  }
  std::string operator()(const wire::ChecksumReply& m) const {
    return FieldText("ChecksumReply").field("id", m.id).field("digest", m.digest.bytes).text();
  }
  std::string operator()(const wire::ErrorReply& m) const {
    return FieldText("ErrorReply")
        .field("id", m.id)
        .field("code", static_cast<std::uint64_t>(m.code))
        .signed_field("native_number", m.native_number)
        .field("message", m.message)
        .text();
  }
  std::string operator()(const wire::FenceRequest& m) const {
    return FieldText("FenceRequest")
        .field("id", m.id)
        .field("lane", m.lane)
        .field("generation", m.generation)
        .text();
  }
  std::string operator()(const wire::FenceReply& m) const {
    return FieldText("FenceReply").field("id", m.id).text();
  }
  std::string operator()(const wire::Recall& m) const {
    return FieldText("Recall").field("range", m.range).text();
  }
  std::string operator()(const wire::RecallDone& m) const {
    return FieldText("RecallDone").field("range", m.range).text();
  }
  std::string operator()(const wire::Goodbye&) const { return "Goodbye"; }
};

inline std::string control_text(const wire::ControlMessage& message) {
  return std::visit(ControlText{}, message);
}

} // namespace wherry::testing

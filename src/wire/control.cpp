// Control documents: FlatBuffers behind a fixed header, and the checks that FlatBuffers does not
// make. Pure; any thread. Every byte may come from a stranger: the verifier bounds what is read,
// and strings are copied only after their length was checked (R42).
#include "wire/control.h"

#include "base/assert.h"
#include "base/crc32c.h"
#include "control_generated.h"
#include "wire/bad_field.h"
#include "wire/bytes.h"
#include "wire/frames.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace wherry::wire {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;
using ByteVector = flatbuffers::Vector<std::uint8_t>;

/// Envelope, message, range description.
constexpr flatbuffers::uoffset_t table_depth_max = 3;
/// More than a full page, so that a page that is too long is refused by its name.
constexpr flatbuffers::uoffset_t tables_max = 4 * describe_page_max;

/// The part of `text` that is sent: at most message_bytes_max, cut between UTF-8 characters.
std::string_view bounded(std::string_view text) {
  if (text.size() <= message_bytes_max) {
    return text;
  }
  std::size_t end = message_bytes_max;
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  for (int i = 0; i < 3 && continues(end); ++i) {
    --end;
  }
  return text.substr(0, end);
}

// -- encoding ------------------------------------------------------------------------------------

flatbuffers::Offset<ByteVector> put_name(Builder& builder, std::string_view name) {
  WHERRY_ASSERT(is_name(name));
  return builder.CreateVector(reinterpret_cast<const std::uint8_t*>(name.data()), name.size());
}

flatbuffers::Offset<flatbuffers::String> put_text(Builder& builder, std::string_view text) {
  const std::string_view sent = bounded(text);
  return builder.CreateString(sent.data(), sent.size());
}

fb::Bytes16 bytes16(const std::array<std::uint8_t, 16>& bytes) {
  return fb::Bytes16(flatbuffers::span<const std::uint8_t, 16>(bytes));
}

flatbuffers::Offset<fb::RangeDescription> put(Builder& builder, const RangeDescription& range) {
  WHERRY_ASSERT(range.routes.size() <= routes_max);
  std::array<std::uint8_t, routes_max> codes{};
  std::transform(range.routes.begin(), range.routes.end(), codes.begin(),
                 [](PathKind path) { return static_cast<std::uint8_t>(path); });
  const auto name = put_name(builder, range.name);
  const auto routes = builder.CreateVector(codes.data(), range.routes.size());
  const auto evidence = put_text(builder, range.evidence);
  fb::FileVersion version;
  if (range.version) {
    version = fb::FileVersion(range.version->device, range.version->inode,
                              range.version->size_bytes, range.version->mtime_ns);
  }
  return fb::CreateRangeDescription(builder, name, range.range.id, range.range.length_bytes,
                                    static_cast<std::uint8_t>(range.range.visibility),
                                    static_cast<std::uint8_t>(range.range.kind),
                                    range.version ? &version : nullptr, routes, evidence);
}

auto put(Builder& builder, const Hello& m) {
  const auto name = put_name(builder, m.name);
  const fb::Bytes16 consumer = bytes16(m.consumer.bytes);
  const fb::Bytes16 owner = m.expected_owner ? bytes16(m.expected_owner->bytes) : fb::Bytes16();
  return fb::CreateHello(builder, name, &consumer, m.expected_epoch,
                         m.expected_owner ? &owner : nullptr, m.lanes, m.previous_session);
}

auto put(Builder& builder, const Welcome& m) {
  const fb::Bytes16 owner = bytes16(m.owner.bytes);
  const fb::Bytes16 key = bytes16(m.key);
  return fb::CreateWelcome(builder, &owner, m.epoch, m.session, &key, m.lanes, m.slices_max);
}

auto put(Builder& builder, const Refusal& m) {
  return fb::CreateRefusal(builder, static_cast<std::uint16_t>(m.code),
                           put_text(builder, m.message), m.current_epoch);
}

auto put(Builder& builder, const DescribeRequest& m) {
  return fb::CreateDescribeRequest(builder, m.id, m.page);
}

auto put(Builder& builder, const DescribeReply& m) {
  WHERRY_ASSERT(m.ranges.size() <= describe_page_max);
  std::vector<flatbuffers::Offset<fb::RangeDescription>> ranges;
  ranges.reserve(m.ranges.size());
  for (const RangeDescription& range : m.ranges) {
    ranges.push_back(put(builder, range));
  }
  return fb::CreateDescribeReply(builder, m.id, builder.CreateVector(ranges), m.next);
}

auto put(Builder& builder, const LookupRequest& m) {
  return fb::CreateLookupRequest(builder, m.id, put_name(builder, m.name));
}

auto put(Builder& builder, const LookupReply& m) {
  return fb::CreateLookupReply(builder, m.id, put(builder, m.range));
}

auto put(Builder& builder, const ChecksumRequest& m) {
  return fb::CreateChecksumRequest(builder, m.id, m.range, m.offset, m.length_bytes);
}

auto put(Builder& builder, const ChecksumReply& m) {
  const fb::Bytes16 digest = bytes16(m.digest.bytes);
  return fb::CreateChecksumReply(builder, m.id, &digest);
}

auto put(Builder& builder, const ErrorReply& m) {
  return fb::CreateErrorReply(builder, m.id, static_cast<std::uint16_t>(m.code), m.native_number,
                              put_text(builder, m.message));
}

auto put(Builder& builder, const FenceRequest& m) {
  return fb::CreateFenceRequest(builder, m.id, m.lane, m.generation);
}

auto put(Builder& builder, const FenceReply& m) {
  return fb::CreateFenceReply(builder, m.id);
}

auto put(Builder& builder, const Recall& m) {
  return fb::CreateRecall(builder, m.range);
}

auto put(Builder& builder, const RecallDone& m) {
  return fb::CreateRecallDone(builder, m.range);
}

auto put(Builder& builder, const Goodbye&) {
  return fb::CreateGoodbye(builder);
}

/// The union's code of a message: its place in ControlMessage, counted from 1.
fb::Message code_of(const ControlMessage& message) {
  return static_cast<fb::Message>(message.index() + 1);
}
static_assert(std::variant_size_v<ControlMessage> == static_cast<std::size_t>(fb::Message::MAX));

// -- decoding ------------------------------------------------------------------------------------

/// Reads the fields of one message and keeps the first thing that is wrong with them.
class Fields {
public:
  explicit Fields(std::string_view message) : message_(message) {}

  std::string name(std::string_view field, const ByteVector* bytes) {
    if (!present(field, bytes)) {
      return {};
    }
    const std::string_view name(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    if (!between(field, "length", name.size(), 1, name_bytes_max)) {
      return {};
    }
    if (!is_name(name)) {
      refuse(field, "has a NUL byte");
      return {};
    }
    return std::string(name);
  }

  std::string text(std::string_view field, const flatbuffers::String* text) {
    if (text == nullptr || !between(field, "length", text->size(), 0, message_bytes_max)) {
      return {};
    }
    return text->str();
  }

  std::array<std::uint8_t, 16> bytes16(std::string_view field, const fb::Bytes16* bytes) {
    std::array<std::uint8_t, 16> result{};
    if (present(field, bytes)) {
      std::copy_n(bytes->bytes()->data(), result.size(), result.begin());
    }
    return result;
  }

  ErrorCode code(std::string_view field, std::uint16_t value) {
    between(field, "", value, 1, error_code_max);
    return static_cast<ErrorCode>(value);
  }

  /// An enumeration of one byte.
  template <class E>
  E choice(std::string_view field, std::uint8_t value, E first, E last) {
    between(field, "", value, static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last));
    return static_cast<E>(value);
  }

  template <class T>
  T number(std::string_view field, T value, std::uint64_t min, std::uint64_t max) {
    between(field, "", value, min, max);
    return value;
  }

  template <class T>
  bool present(std::string_view field, const T* value) {
    if (value == nullptr) {
      refuse(field, "is missing");
    }
    return value != nullptr;
  }

  /// `what` is "" for the value itself, or "length".
  bool between(std::string_view field, std::string_view what, std::uint64_t value,
               std::uint64_t min, std::uint64_t max) {
    if (value >= min && value <= max) {
      return true;
    }
    const std::string_view link = what.empty() ? "is " : "has length ";
    refuse(field, std::string(link) + std::to_string(value) + ", not " + std::to_string(min) +
                      " to " + std::to_string(max));
    return false;
  }

  void refuse(std::string_view field, std::string_view problem) {
    if (problem_.empty()) {
      problem_.append("control message ").append(message_).append(": ");
      problem_.append(field).append(" ").append(problem);
    }
  }

  bool good() const { return problem_.empty(); }

  template <class M>
  Result<ControlMessage> result(M message) {
    if (!good()) {
      return fail(ErrorCode::protocol_mismatch, std::move(problem_));
    }
    return ControlMessage(std::move(message));
  }

private:
  std::string_view message_;
  std::string problem_;
};

RangeDescription get(Fields& fields, const fb::RangeDescription& t) {
  RangeDescription range;
  range.name = fields.name("range name", t.name());
  range.range.id = fields.number("range id", t.id(), 1, UINT64_MAX);
  range.range.length_bytes = t.length_bytes(); // An empty file is a range too.
  // What nobody else may reach is not described.
  range.range.visibility = fields.choice("range visibility", t.visibility(),
                                         Visibility::remote_read, Visibility::remote_read_write);
  range.range.kind = fields.choice("range kind", t.kind(), RangeKind::host_memory, RangeKind::file);
  if (const fb::FileVersion* v = t.version(); v != nullptr) {
    range.version = FileVersion{v->device(), v->inode(), v->size_bytes(), v->mtime_ns()};
  }
  if (const ByteVector* routes = t.routes(); routes != nullptr) {
    if (fields.between("range routes", "length", routes->size(), 0, routes_max)) {
      for (const std::uint8_t route : *routes) {
        range.routes.push_back(fields.choice("range route", route, PathKind::tcp, PathKind::gds));
      }
    }
  }
  range.evidence = fields.text("range evidence", t.evidence());
  return range;
}

Result<ControlMessage> get(const fb::Hello& t) {
  Fields fields("Hello");
  Hello m;
  m.name = fields.name("name", t.name());
  m.consumer.bytes = fields.bytes16("consumer", t.consumer());
  m.expected_epoch = t.expected_epoch();
  if (t.expected_owner() != nullptr) {
    m.expected_owner = EngineId{fields.bytes16("expected_owner", t.expected_owner())};
  }
  m.lanes = fields.number("lanes", t.lanes(), 1, lanes_max);
  m.previous_session = t.previous_session();
  return fields.result(std::move(m));
}

Result<ControlMessage> get(const fb::Welcome& t) {
  Fields fields("Welcome");
  Welcome m;
  m.owner.bytes = fields.bytes16("owner", t.owner());
  m.epoch = fields.number("epoch", t.epoch(), 1, UINT64_MAX);
  m.session = fields.number("session", t.session(), 1, UINT64_MAX);
  m.key = fields.bytes16("key", t.key());
  m.lanes = fields.number("lanes", t.lanes(), 1, lanes_max);
  m.slices_max = fields.number("slices_max", t.slices_max(), 1, UINT32_MAX);
  return fields.result(m);
}

Result<ControlMessage> get(const fb::Refusal& t) {
  Fields fields("Refusal");
  Refusal m;
  m.code = fields.code("code", t.code());
  m.message = fields.text("message", t.message());
  m.current_epoch = t.current_epoch();
  return fields.result(std::move(m));
}

Result<ControlMessage> get(const fb::DescribeRequest& t) {
  return ControlMessage(DescribeRequest{t.id(), t.page()});
}

/// Tables of a FlatBuffer may overlap, so that a small body names the same long strings many times:
/// what is copied may not exceed what was sent.
bool sent_as_often_as_told(const fb::DescribeReply& t, std::size_t body_bytes) {
  std::uint64_t told = 0;
  for (const fb::RangeDescription* range : *t.ranges()) {
    told += range->name() != nullptr ? range->name()->size() : 0;
    told += range->routes() != nullptr ? range->routes()->size() : 0;
    told += range->evidence() != nullptr ? range->evidence()->size() : 0;
  }
  return told <= body_bytes;
}

Result<ControlMessage> get(const fb::DescribeReply& t, std::size_t body_bytes) {
  Fields fields("DescribeReply");
  DescribeReply m;
  m.id = t.id();
  m.next = t.next();
  if (t.ranges() == nullptr ||
      !fields.between("ranges", "length", t.ranges()->size(), 0, describe_page_max)) {
    return fields.result(std::move(m));
  }
  if (!sent_as_often_as_told(t, body_bytes)) {
    fields.refuse("ranges", "overlap");
    return fields.result(std::move(m));
  }
  std::size_t page_bytes = 0;
  m.ranges.reserve(t.ranges()->size());
  for (const fb::RangeDescription* range : *t.ranges()) {
    m.ranges.push_back(get(fields, *range));
    page_bytes += description_bytes(m.ranges.back());
    if (!fields.good()) {
      break;
    }
  }
  fields.between("ranges", "length", page_bytes, 0, describe_page_bytes_max);
  return fields.result(std::move(m));
}

Result<ControlMessage> get(const fb::LookupRequest& t) {
  Fields fields("LookupRequest");
  LookupRequest m{t.id(), fields.name("name", t.name())};
  return fields.result(std::move(m));
}

Result<ControlMessage> get(const fb::LookupReply& t) {
  Fields fields("LookupReply");
  LookupReply m;
  m.id = t.id();
  if (fields.present("range", t.range())) {
    m.range = get(fields, *t.range());
  }
  return fields.result(std::move(m));
}

Result<ControlMessage> get(const fb::ChecksumRequest& t) {
  return ControlMessage(ChecksumRequest{t.id(), t.range(), t.offset(), t.length_bytes()});
}

Result<ControlMessage> get(const fb::ChecksumReply& t) {
  Fields fields("ChecksumReply");
  return fields.result(ChecksumReply{t.id(), Digest{fields.bytes16("digest", t.digest())}});
}

Result<ControlMessage> get(const fb::ErrorReply& t) {
  Fields fields("ErrorReply");
  ErrorReply m;
  m.id = t.id();
  m.code = fields.code("code", t.code());
  m.native_number = t.native_number();
  m.message = fields.text("message", t.message());
  return fields.result(std::move(m));
}

Result<ControlMessage> get(const fb::FenceRequest& t) {
  Fields fields("FenceRequest");
  FenceRequest m{t.id(), fields.number("lane", t.lane(), 0, lanes_max - 1), t.generation()};
  return fields.result(m);
}

Result<ControlMessage> get(const fb::FenceReply& t) {
  return ControlMessage(FenceReply{t.id()});
}

Result<ControlMessage> get(const fb::Recall& t) {
  return ControlMessage(Recall{t.range()});
}

Result<ControlMessage> get(const fb::RecallDone& t) {
  return ControlMessage(RecallDone{t.range()});
}

Result<ControlMessage> get(const fb::Goodbye&) {
  return ControlMessage(Goodbye{});
}

Result<ControlMessage> get(const fb::Envelope& envelope, std::size_t body_bytes) {
  if (envelope.message() == nullptr) {
    return fail(ErrorCode::protocol_mismatch, "control message: it is missing");
  }
  switch (envelope.message_type()) {
  case fb::Message::NONE:
    break;
  case fb::Message::Hello:
    return get(*envelope.message_as_Hello());
  case fb::Message::Welcome:
    return get(*envelope.message_as_Welcome());
  case fb::Message::Refusal:
    return get(*envelope.message_as_Refusal());
  case fb::Message::DescribeRequest:
    return get(*envelope.message_as_DescribeRequest());
  case fb::Message::DescribeReply:
    return get(*envelope.message_as_DescribeReply(), body_bytes);
  case fb::Message::LookupRequest:
    return get(*envelope.message_as_LookupRequest());
  case fb::Message::LookupReply:
    return get(*envelope.message_as_LookupReply());
  case fb::Message::ChecksumRequest:
    return get(*envelope.message_as_ChecksumRequest());
  case fb::Message::ChecksumReply:
    return get(*envelope.message_as_ChecksumReply());
  case fb::Message::ErrorReply:
    return get(*envelope.message_as_ErrorReply());
  case fb::Message::FenceRequest:
    return get(*envelope.message_as_FenceRequest());
  case fb::Message::FenceReply:
    return get(*envelope.message_as_FenceReply());
  case fb::Message::Recall:
    return get(*envelope.message_as_Recall());
  case fb::Message::RecallDone:
    return get(*envelope.message_as_RecallDone());
  case fb::Message::Goodbye:
    return get(*envelope.message_as_Goodbye());
  }
  return bad_field("control message", "type", static_cast<std::uint8_t>(envelope.message_type()),
                   "1 to 15");
}

/// The verifier and the accessors trust the body's alignment: a body that is not aligned is copied.
class AlignedBody {
public:
  explicit AlignedBody(std::span<const std::byte> body) : bytes_(body) {
    if (reinterpret_cast<std::uintptr_t>(body.data()) % alignof(std::uint64_t) != 0) {
      words_.resize((body.size() + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
      std::memcpy(words_.data(), body.data(), body.size());
      bytes_ = std::as_bytes(std::span(words_)).first(body.size());
    }
  }
  const std::uint8_t* data() const { return reinterpret_cast<const std::uint8_t*>(bytes_.data()); }
  std::size_t size() const { return bytes_.size(); }

private:
  std::vector<std::uint64_t> words_;
  std::span<const std::byte> bytes_;
};

} // namespace

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= name_bytes_max &&
         name.find('\0') == std::string_view::npos;
}

std::vector<std::byte> encode(const ControlMessage& message) {
  Builder builder;
  const auto body = std::visit([&](const auto& m) { return put(builder, m).Union(); }, message);
  builder.Finish(fb::CreateEnvelope(builder, code_of(message), body));
  WHERRY_ASSERT(builder.GetSize() <= control_body_bytes_max);

  std::vector<std::byte> frame(control_header_bytes + builder.GetSize());
  const std::span<std::byte> out = std::span(frame).subspan(control_header_bytes);
  std::memcpy(out.data(), builder.GetBufferPointer(), out.size());
  FieldWriter(frame.data()).u32(builder.GetSize()).u32(crc32c(out));
  return frame;
}

std::size_t description_bytes(const RangeDescription& range) {
  // Entry of the page's vector 4, table with its fields 66, vtable 20, three lengths and a NUL 13,
  // and before each of these at most 7 bytes of padding.
  constexpr std::size_t fixed_bytes = 160;
  return fixed_bytes + range.name.size() + range.routes.size() + bounded(range.evidence).size();
}

Result<ControlHeader>
decode_control_header(std::span<const std::byte, control_header_bytes> bytes) {
  FieldReader reader(bytes.data());
  ControlHeader header;
  header.body_bytes = reader.u32();
  header.crc32c = reader.u32();
  if (header.body_bytes < 1 || header.body_bytes > control_body_bytes_max) {
    return bad_field("control header", "body_bytes", header.body_bytes, "1 to 1048576");
  }
  return header;
}

Result<ControlMessage> decode_control(const ControlHeader& header,
                                      std::span<const std::byte> body) {
  WHERRY_ASSERT(body.size() == header.body_bytes);
  if (const std::uint32_t crc = crc32c(body); crc != header.crc32c) {
    return bad_field("control message", "crc32c", header.crc32c, std::to_string(crc));
  }
  const AlignedBody aligned(body);
  flatbuffers::Verifier verifier(aligned.data(), aligned.size(), table_depth_max, tables_max);
  if (!fb::VerifyEnvelopeBuffer(verifier)) {
    return fail(ErrorCode::protocol_mismatch,
                "control message: its FlatBuffer does not pass the verifier");
  }
  return get(*fb::GetEnvelope(aligned.data()), body.size());
}

} // namespace wherry::wire

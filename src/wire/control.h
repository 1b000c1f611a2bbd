// Control documents: what a session's control connection carries. FlatBuffers (schema control.fbs)
// behind a fixed header; the verifier is always on. Pure functions; plain structs outside.
//
//   control frame = body_bytes u32 (1 to control_body_bytes_max), crc32c u32 of the body, body
//
// consumer -> owner: Hello (first), then requests, each with an id that its answer repeats
// owner -> consumer: Welcome or Refusal (first), answers, Recall
#pragma once

#include "base/error.h"
#include "base/ids.h"

#include <wherry/capability.hpp>
#include <wherry/registration.hpp>
#include <wherry/source.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace wherry::wire {

inline constexpr std::size_t control_header_bytes = 8;
inline constexpr std::uint32_t control_body_bytes_max = 1 << 20;
inline constexpr std::size_t name_bytes_max = 4095;
inline constexpr std::size_t message_bytes_max = 4096;
inline constexpr std::uint32_t describe_page_max = 256; ///< Ranges a page ...
/// ... and the sum of their description_bytes().
inline constexpr std::size_t describe_page_bytes_max = control_body_bytes_max - 256;
inline constexpr std::size_t routes_max = 16; ///< Of one range.

/// Opens, or opens again, a session with the source `name`.
struct Hello {
  std::string name;
  EngineId consumer;
  std::uint64_t expected_epoch = 0;       ///< 0: asks for the current one.
  std::optional<EngineId> expected_owner; ///< When bound already (R21).
  std::uint32_t lanes = 1;                ///< Wanted.
  std::uint64_t previous_session = 0;     ///< The owner ends it before it answers (R29).
};

struct Welcome {
  EngineId owner;
  std::uint64_t epoch = 0;
  std::uint64_t session = 0;
  std::array<std::uint8_t, 16> key{};
  std::uint32_t lanes = 0;      ///< Granted.
  std::uint32_t slices_max = 0; ///< READ slices that a lane may have out.
};

/// Instead of Welcome, or at the end of a session.
struct Refusal {
  ErrorCode code{};
  std::string message;
  std::uint64_t current_epoch = 0; ///< With stale_epoch.
};

struct DescribeRequest {
  std::uint64_t id = 0;
  std::uint64_t page = 0; ///< 0: the first.
};
struct DescribeReply {
  std::uint64_t id = 0;
  std::vector<RangeDescription> ranges;
  std::uint64_t next = 0; ///< 0: that was the last page.
};

struct LookupRequest {
  std::uint64_t id = 0;
  std::string name;
};
struct LookupReply {
  std::uint64_t id = 0;
  RangeDescription range;
};

struct ChecksumRequest {
  std::uint64_t id = 0;
  std::uint64_t range = 0;
  std::uint64_t offset = 0;
  std::uint64_t length_bytes = 0;
};
struct ChecksumReply {
  std::uint64_t id = 0;
  Digest digest;
};

/// The answer to a request that could not be served.
struct ErrorReply {
  std::uint64_t id = 0;
  ErrorCode code{};
  std::int32_t native_number = 0;
  std::string message;
};

/// Ends one lane incarnation; answered when nothing that came on it can change bytes any more.
struct FenceRequest {
  std::uint64_t id = 0;
  std::uint32_t lane = 0;
  std::uint32_t generation = 0;
};
struct FenceReply {
  std::uint64_t id = 0;
};

/// The owner asks the consumer to stop using a range (R18) ...
struct Recall {
  std::uint64_t range = 0;
};
/// ... and the consumer says that it has stopped and drained.
struct RecallDone {
  std::uint64_t range = 0;
};

struct Goodbye {};

using ControlMessage =
    std::variant<Hello, Welcome, Refusal, DescribeRequest, DescribeReply, LookupRequest,
                 LookupReply, ChecksumRequest, ChecksumReply, ErrorReply, FenceRequest, FenceReply,
                 Recall, RecallDone, Goodbye>;

/// Whether `name` may name a source or a range: 1 to name_bytes_max bytes without NUL.
bool is_name(std::string_view name);

/// A whole control frame, header included. The message obeys the bounds (asserted): names, page
/// lengths, and a body below the maximum. Texts for people (message, evidence) are cut to
/// message_bytes_max.
std::vector<std::byte> encode(const ControlMessage& message);

/// The encoded size of one range in a DescribeReply, from above: to fill pages within the bound.
std::size_t description_bytes(const RangeDescription& range);

struct ControlHeader {
  std::uint32_t body_bytes = 0;
  std::uint32_t crc32c = 0;
};
/// Errors: protocol_mismatch (length of zero or over the maximum).
Result<ControlHeader> decode_control_header(std::span<const std::byte, control_header_bytes> bytes);
/// Errors: protocol_mismatch (crc, verifier, unknown message, a field out of bounds).
Result<ControlMessage> decode_control(const ControlHeader& header, std::span<const std::byte> body);

} // namespace wherry::wire

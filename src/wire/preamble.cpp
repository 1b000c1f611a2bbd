// The preamble: encode, decode, and a name for what strangers send (R22). Pure; any thread.
#include "wire/preamble.h"

#include "base/crc32c.h"
#include "base/hex.h"
#include "wire/bad_field.h"
#include "wire/bytes.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

namespace wherry::wire {
namespace {

/// The line end shows whether something on the way translates text.
constexpr std::string_view magic = "WHERRY\r\n";
constexpr std::size_t crc_offset = 12;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint32_t crc_of(std::span<const std::byte> preamble) {
  return crc32c(preamble.first(crc_offset));
}

struct Stranger {
  std::string_view prefix;
  std::string_view name;
};

/// What other programs say first. TLS: a handshake or alert record of any 3.x version.
constexpr Stranger strangers[] = {
    {"HTTP/", "an HTTP response"},         {"GET ", "an HTTP request"},
    {"PUT ", "an HTTP request"},           {"POST ", "an HTTP request"},
    {"HEAD ", "an HTTP request"},          {"DELETE ", "an HTTP request"},
    {"OPTIONS ", "an HTTP request"},       {"PATCH ", "an HTTP request"},
    {"CONNECT ", "an HTTP request"},       {"TRACE ", "an HTTP request"},
    {"PRI * HTTP/2", "an HTTP/2 request"}, {"\x16\x03", "a TLS handshake"},
    {"\x15\x03", "a TLS alert"},           {"SSH-", "an SSH banner"},
};

} // namespace

std::array<std::byte, preamble_bytes> encode(const Preamble& preamble) {
  std::array<std::byte, preamble_bytes> bytes{};
  std::memcpy(bytes.data(), magic.data(), magic.size());
  FieldWriter(bytes.data() + magic.size())
      .u16(preamble.version)
      .u8(static_cast<std::uint8_t>(preamble.role))
      .u8(static_cast<std::uint8_t>(preamble.security));
  FieldWriter(bytes.data() + crc_offset).u32(crc_of(bytes));
  return bytes;
}

bool may_be_preamble(std::span<const std::byte> prefix) {
  const std::size_t judged = std::min(prefix.size(), magic.size());
  return as_text(prefix.first(judged)) == magic.substr(0, judged);
}

Error not_a_preamble(std::span<const std::byte> prefix) {
  prefix = prefix.first(std::min(prefix.size(), preamble_bytes));
  const auto* first = reinterpret_cast<const std::uint8_t*>(prefix.data());
  std::string look = "hex " + hex_text({first, prefix.size()});
  for (const Stranger& stranger : strangers) {
    if (as_text(prefix).starts_with(stranger.prefix)) {
      look = stranger.name;
    }
  }
  Error error;
  error.code = ErrorCode::protocol_mismatch;
  error.message = "the peer does not speak Wherry: its first bytes are " + look;
  return error;
}

Result<Preamble> decode_preamble(std::span<const std::byte, preamble_bytes> bytes) {
  if (!may_be_preamble(bytes)) {
    return fail(not_a_preamble(bytes));
  }
  FieldReader reader(bytes.data() + magic.size());
  Preamble preamble;
  preamble.version = reader.u16();
  preamble.role = static_cast<Role>(reader.u8());
  preamble.security = static_cast<Security>(reader.u8());
  const std::uint32_t crc = reader.u32();
  // Before the version: the layout is that of every version, so a wrong sum is damage.
  if (const std::uint32_t computed = crc_of(bytes); crc != computed) {
    return bad_field("preamble", "crc32c", crc, std::to_string(computed));
  }
  if (preamble.version != protocol_version) {
    return fail(ErrorCode::protocol_mismatch,
                "the peer speaks Wherry protocol version " + std::to_string(preamble.version) +
                    ", this engine version " + std::to_string(protocol_version));
  }
  return preamble;
}

} // namespace wherry::wire

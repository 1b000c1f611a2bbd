// Little-endian fields in the order in which a layout lists them, at any alignment. Pure; the
// compiler turns each into one load or store at a fixed offset.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace wherry::wire {

template <std::unsigned_integral T>
T little_endian(T value) {
  if constexpr (std::endian::native == std::endian::big) {
    auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
    for (std::size_t i = 0; i < sizeof(T) / 2; ++i) {
      std::swap(bytes[i], bytes[sizeof(T) - 1 - i]);
    }
    value = std::bit_cast<T>(bytes);
  }
  return value;
}

/// Writes fields one behind the other. The room behind `out` is the caller's promise.
class FieldWriter {
public:
  explicit FieldWriter(std::byte* out) : at_(out) {}

  FieldWriter& u8(std::uint8_t value) { return put(value); }
  FieldWriter& u16(std::uint16_t value) { return put(value); }
  FieldWriter& u32(std::uint32_t value) { return put(value); }
  FieldWriter& u64(std::uint64_t value) { return put(value); }
  FieldWriter& i32(std::int32_t value) { return put(static_cast<std::uint32_t>(value)); }
  FieldWriter& bytes16(const std::array<std::uint8_t, 16>& value) {
    std::memcpy(at_, value.data(), value.size());
    at_ += value.size();
    return *this;
  }

private:
  template <std::unsigned_integral T>
  FieldWriter& put(T value) {
    value = little_endian(value);
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
    return *this;
  }

  std::byte* at_;
};

/// Reads fields one behind the other. The bytes behind `in` are the caller's promise.
class FieldReader {
public:
  explicit FieldReader(const std::byte* in) : at_(in) {}

  std::uint8_t u8() { return get<std::uint8_t>(); }
  std::uint16_t u16() { return get<std::uint16_t>(); }
  std::uint32_t u32() { return get<std::uint32_t>(); }
  std::uint64_t u64() { return get<std::uint64_t>(); }
  std::int32_t i32() { return static_cast<std::int32_t>(get<std::uint32_t>()); }
  std::array<std::uint8_t, 16> bytes16() {
    std::array<std::uint8_t, 16> value{};
    std::memcpy(value.data(), at_, value.size());
    at_ += value.size();
    return value;
  }

private:
  template <std::unsigned_integral T>
  T get() {
    T value = 0;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return little_endian(value);
  }

  const std::byte* at_;
};

} // namespace wherry::wire

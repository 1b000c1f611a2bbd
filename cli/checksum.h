// XXH3-128, the checksum that owners answer with (R23), over bytes as they are here.
#pragma once

#include <wherry/source.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace wherry::cli {

class Hasher {
public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  void add(std::span<const std::byte> bytes);
  /// Of what was added since the last call; then begins anew.
  Digest take();

private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Of a part of an open file. Errors: io_error (`what` names the file; too short counts).
Result<Digest> file_digest(int descriptor, std::uint64_t offset, std::uint64_t length_bytes,
                           std::string_view what);

} // namespace wherry::cli

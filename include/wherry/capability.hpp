// What an engine can do, as separate facts (R1): built, loadable, discovered, ready.
#pragma once

#include <wherry/export.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::inline v0 {

/// One way to move bytes. `automatic` is a wish, never an answer.
enum class PathKind : std::uint8_t { automatic, tcp, io_uring, posix, rdma, cuda, gds };

WHERRY_API std::string_view to_string(PathKind path);

enum class Answer : std::uint8_t { no, yes, not_asked };

WHERRY_API std::string_view to_string(Answer answer);

/// One answer and, for a no, the reason: the file, symbol, device, permission or errno.
struct Fact {
  Answer answer = Answer::not_asked;
  std::string reason;
};

struct DeviceVerdict {
  std::string name;
  Fact usable;
};

struct PathCapability {
  PathKind path{};
  Fact built;      ///< Compiled in.
  Fact loadable;   ///< Its foreign library and every required symbol resolved.
  Fact discovered; ///< Devices found.
  Fact ready;      ///< A route to the named peer exists now.
  std::vector<DeviceVerdict> devices;
};

} // namespace wherry::inline v0

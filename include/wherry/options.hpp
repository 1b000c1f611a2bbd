// What an engine can be told when it is created. Every limit that a peer can push against is here,
// is bounded by default, and shows as a counter (R43).
#pragma once

#include <wherry/export.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace wherry::inline v0 {

/// A point in time after which a blocking call gives up; it never ends a request (R31).
/// A value type; measured on the steady clock.
class Deadline {
public:
  using Clock = std::chrono::steady_clock;

  static Deadline never() { return Deadline(Clock::time_point::max()); }
  static Deadline now() { return Deadline(Clock::time_point::min()); }
  static Deadline at(Clock::time_point when) { return Deadline(when); }
  static Deadline after(std::chrono::nanoseconds duration) {
    const auto start = Clock::now();
    if (duration >= Clock::time_point::max() - start) {
      return never();
    }
    return Deadline(start + duration);
  }

  bool is_never() const { return when_ == Clock::time_point::max(); }
  Clock::time_point when() const { return when_; }

private:
  explicit Deadline(Clock::time_point when) : when_(when) {}
  Clock::time_point when_;
};

enum class LogLevel : std::uint8_t { debug, info, warning, error };

/// Receives the library's messages; the library itself prints nothing. Called on any of the
/// engine's threads, one call at a time; it must not call back into the engine.
using LogSink = std::function<void(LogLevel level, std::string_view message)>;

/// How the tcp path behaves. Both ends have their own; the smaller of two limits holds.
struct TcpConfig {
  /// Data connections a consumer opens to a source, 1 to 64.
  std::uint32_t lanes = 2;
  /// Checksums over payload segments that this engine sends. Headers are always checked.
  bool payload_checksums = false;
  /// How long a cancelled WRITE may take to finish its segment before its lane is cut (R36).
  std::chrono::milliseconds cancel_grace{100};
  /// How long a peer may neither read nor write, while it should, before its lane is cut (R36).
  std::chrono::milliseconds peer_stall_timeout{30'000};
  /// How long connecting, and each exchange of a handshake, may take.
  std::chrono::milliseconds connect_timeout{5'000};
  /// How long, at most, a thread polls for the next bytes before it sleeps; less where that was in
  /// vain.
  std::chrono::microseconds spin{50};
};

/// Bounds on what peers and callers can make an engine hold.
struct Limits {
  std::uint32_t registrations = 1'200'000;     ///< MR copies: one a range without rdma (R13).
  std::uint64_t registered_bytes = 1ULL << 50; ///< Copies times length (R13).
  std::uint32_t requests = 4096;               ///< Requests that are not yet drained.
  std::uint64_t operations = 1ULL << 20;       ///< Operations of these requests.
  std::uint64_t staging_bytes = 64ULL << 20;   ///< Buffers between sockets and files.
  std::uint32_t open_files = 256;              ///< File ranges are opened on demand.
  std::uint32_t sessions = 1024;               ///< Sessions that peers have with our sources.
  std::uint32_t handshakes = 128;              ///< Connections that have not yet said who they are.
  std::uint32_t lanes_per_session = 64;
  std::uint32_t unsettled_writes = 1024; ///< Remembered per open source (R29).
};

struct EngineOptions {
  TcpConfig tcp{};
  Limits limits{};
  /// 1: the engine has a thread of its own. 0: the application drives it, through progress() and
  /// its blocking calls. Other values are refused.
  std::uint32_t threads = 1;
  /// How long dropping the engine may take (see TransferEngine).
  std::chrono::milliseconds close_timeout{5'000};
  /// Threads for calls that may block: opening, reading and writing files, resolving names.
  std::uint32_t native_workers = 2;
  LogSink log{};
  /// With threads = 0: called, on the caller's thread, whenever a blocking call has nothing to do.
  /// Drive the other engines of the process there. Without it such a call sleeps until something
  /// arrives.
  std::function<void()> on_idle{};
};

} // namespace wherry::inline v0

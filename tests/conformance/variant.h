// What a conformance case runs on: engines over one path, in one world. A case sees this interface
// only; each variant adds a provider of a few lines (variants.cpp).
//
//   tcp_sockets    real sockets, real time, an engine thread each
//   tcp_simulated  simulated network, files and clock; all engines in one thread
//   scripted       as tcp_simulated, with scripted links instead of lanes
//   null           the same with null links: nothing moves
#pragma once

#include "conformance/fault_network.h"
#include "engine/seams.h"

#include <wherry/wherry.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wherry {
class Script;
}

namespace wherry::conformance {

enum class Ability : std::uint8_t {
  payload,  ///< Bytes arrive, under the owner's access check.
  hold,     ///< Requests can be kept under way.
  cut,      ///< Lanes and sessions can be broken.
  segments, ///< Payload travels in segments, over lanes that can be stopped at any byte.
  files,    ///< File ranges.
  threads,  ///< Engines have threads of their own.
  script,   ///< A script decides.
  raw,      ///< Anybody may connect: a peer that is none of ours.
};
std::string_view to_string(Ability ability);

/// Where hold() keeps requests.
enum class Where : std::uint8_t {
  unsent,     ///< Nothing has left the consumer.
  unanswered, ///< What fits on the way has left, and no answer comes.
};

struct Node {
  std::unique_ptr<TransferEngine> engine;
  std::shared_ptr<FaultNetwork> network;
  std::string host;
};

class Variant {
public:
  Variant();
  Variant(const Variant&) = delete;
  Variant& operator=(const Variant&) = delete;
  virtual ~Variant();

  virtual std::string_view name() const = 0;
  virtual bool can(Ability ability) const = 0;

  // --- Engines ---

  /// A new engine on this path. Lives until drop() or the end of the case. `host`: where another
  /// one was.
  TransferEngine& engine(EngineOptions options = {}, const std::string& host = {});
  /// Destroys it, as at the orderly end of its process.
  void drop(TransferEngine& engine);
  void drop_all();
  Node& node(const TransferEngine& engine);
  /// For SourceOptions::listen.
  std::string listen_address(const TransferEngine& engine, std::uint16_t port = 0);
  std::vector<std::unique_ptr<Node>>& nodes() { return nodes_; }

  // --- Time ---

  /// On the clock of this world.
  virtual Deadline after(std::chrono::nanoseconds duration) = 0;
  /// Drives what must be driven until `done`, or for a bounded while (then false).
  bool run_until(const std::function<bool()>& done);
  /// Time for everything that can happen by itself to happen.
  virtual void run_a_while() = 0;

  // --- Faults ---

  /// From now on requests between these two stay under way, until release().
  virtual void hold(TransferEngine& consumer, TransferEngine& owner, Where where);
  virtual void release(TransferEngine& consumer, TransferEngine& owner);
  /// The lanes break, or (session) all connections of the consumer.
  virtual void cut_lane(TransferEngine& consumer);
  virtual void cut_session(TransferEngine& consumer);
  /// While held, the consumer gets no fence for a lane that was cut.
  virtual void hold_fences(TransferEngine& consumer, bool held);
  virtual Script* script() { return nullptr; }

  // --- Files, in a place of their own ---

  virtual std::string file_path(std::string_view name) = 0;
  virtual std::string make_file(std::string_view name, std::span<const std::byte> content) = 0;
  virtual std::vector<std::byte> file_content(const std::string& path) = 0;
  virtual void remove_file(const std::string& path) = 0;
  virtual void replace_file(const std::string& path, std::span<const std::byte> content) = 0;
  virtual void resize_file(const std::string& path, std::size_t size_bytes) = 0;
  /// The same content, with a new mtime.
  virtual void touch_file(const std::string& path) = 0;
  struct Unwritable {
    std::string path;
    ErrorCode code{};
  };
  virtual Unwritable unwritable_file() = 0;

  // --- What happened ---

  /// Slices that ended on the path under test, and on any other, counted at the consumers.
  struct Served {
    std::uint64_t here = 0;
    std::uint64_t elsewhere = 0;
  };
  virtual Served served() = 0;
  /// What reports said to have moved.
  std::atomic<std::uint64_t> bytes_claimed = 0;
  std::vector<std::string> log() const;

protected:
  virtual Seams make_seams(const EngineOptions& options, Node& node) = 0;
  virtual void adapt(EngineOptions& options, Node& node) = 0;
  /// Lets a little happen, for a thread that waits for it.
  virtual void step() = 0;
  std::uint64_t tcp_slices();
  std::uint64_t tcp_slices_of_dropped() const { return dropped_slices_; }

  std::vector<std::unique_ptr<Node>> nodes_;

private:
  mutable std::mutex log_mutex_;
  std::vector<std::string> log_;
  std::uint64_t dropped_slices_ = 0;
};

/// Makes a variant for one case.
struct Provider {
  const char* name;
  std::unique_ptr<Variant> (*make)();
};
/// For gtest.
void PrintTo(const Provider& provider, std::ostream* out);

std::span<const Provider> all_providers();
/// Those that move bytes.
std::span<const Provider> moving_providers();

std::uint64_t counter(const TransferEngine& engine, std::string_view name);

} // namespace wherry::conformance

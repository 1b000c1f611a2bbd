// What a test says to scripted links, and what they did: the fate of each slice, what is held, what
// arrives late. One script serves any number of links between engines of one process, on one
// thread, which is also that of the owners' shards.
#pragma once

#include "base/ids.h"
#include "path/path.h"

#include <wherry/error.hpp>
#include <wherry/request.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace wherry {

/// Where a slice stays until it is released.
enum class Hold : std::uint8_t {
  no,         ///< It ends at the link's next turn.
  unsent,     ///< At the consumer: none of it has gone out. Cancelling takes it back.
  unanswered, ///< At the owner: it was sent, and no answer has come. A WRITE that is cut there is
              ///< uncertain, and its bytes may still arrive.
};

/// What becomes of a slice. The default: all of it moves, and that is confirmed.
struct Fate {
  static constexpr std::uint32_t all = UINT32_MAX;

  Hold hold = Hold::no;
  std::uint32_t moved_bytes = all;     ///< Leading bytes that really move.
  std::uint32_t confirmed_bytes = all; ///< Leading bytes that the completion claims: at most those.
  std::optional<Error> error{};        ///< Why it is short; needed when it is.
  bool uncertain = false;              ///< A short WRITE: other bytes may have changed.
};

/// A lane of a session with an owner.
struct ScriptedLane {
  EngineId owner;
  std::uint64_t session = 0;
  std::uint32_t lane = 0;
  bool operator==(const ScriptedLane&) const = default;
};

class ScriptedLink;

class Script {
public:
  Script() = default;
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;
  ~Script();

  // --- What a test says ---

  /// Asked once a slice, when it is submitted. Empty: the default fate, with `hold`.
  std::function<Fate(const Slice&)> decide;
  /// What the consumer asks the owner for instead: a peer that asks for what it was never told of.
  std::function<void(Slice&)> forge;
  /// For slices that nobody decides about.
  Hold hold = Hold::no;
  /// Cancelling is heard and not acted on: the slices end when they are released.
  bool ignore_cancel = false;
  /// A link that closes stays in `closing` although all its slices have ended.
  bool linger = false;
  /// Slices that a link takes before it has no room.
  std::size_t room = 1024;

  /// Lets held slices go on: all, or only the one that was held `index`th and is still there.
  void release_all();
  void release(std::size_t index);
  std::size_t held() const;
  /// Breaks the lanes: what is unsent fails, WRITEs that are unanswered end uncertain.
  void cut(const Error& why);
  /// Lets the bytes of such WRITEs arrive after all, until the owner has ended their lane. Returns
  /// how many writes that were.
  std::size_t land_late_writes();
  std::size_t late_writes() const { return late_.size(); }

  // --- The engines' side ---

  std::unique_ptr<Link> connect(const ScriptedLane& lane);
  /// An owner's session began, or (null) ended: what is late for it never arrives.
  void serve(const EngineId& owner, std::uint64_t session, OwnerAccess* access);

  struct Counters {
    std::uint64_t links = 0, slices = 0, completions = 0, moved_bytes = 0, refusals = 0,
                  cancels = 0, late_writes = 0;
  };
  const Counters& counters() const { return counters_; }

private:
  friend class ScriptedLink;
  struct LateWrite {
    ScriptedLane lane;
    std::uint64_t range = 0;
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes;
  };
  using Session = std::pair<std::array<std::uint8_t, 16>, std::uint64_t>;

  Fate fate_of(const Slice& slice);
  OwnerAccess* access(const ScriptedLane& lane) const;
  /// Moves the leading bytes. Null, or why the owner refused: then no byte was touched.
  std::shared_ptr<const Error> move(const ScriptedLane& lane, const Slice& slice,
                                    std::uint32_t bytes);
  void keep_late(const ScriptedLane& lane, const Slice& slice, std::uint32_t from);
  void drop_late(const ScriptedLane& lane);
  void forget(ScriptedLink* link);

  std::map<Session, OwnerAccess*> sessions_;
  std::vector<ScriptedLink*> links_;
  std::vector<LateWrite> late_;
  Counters counters_;
};

} // namespace wherry

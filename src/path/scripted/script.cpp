#include "path/scripted/script.h"

#include "base/assert.h"
#include "path/scripted/scripted_link.h"

#include <algorithm>
#include <cstring>

namespace wherry {

Script::~Script() {
  WHERRY_ASSERT(links_.empty());
}

// --- What a test says -------------------------------------------------------------------------

void Script::release_all() {
  for (ScriptedLink* link : links_) {
    link->release_all();
  }
}

void Script::release(std::size_t index) {
  for (ScriptedLink* link : links_) {
    const std::size_t held = link->held();
    if (index < held) {
      link->release(index);
      return;
    }
    index -= held;
  }
  WHERRY_ASSERT(false); // The test's mistake: so many are not held.
}

std::size_t Script::held() const {
  std::size_t held = 0;
  for (const ScriptedLink* link : links_) {
    held += link->held();
  }
  return held;
}

void Script::cut(const Error& why) {
  for (ScriptedLink* link : links_) {
    link->begin_close(why);
  }
}

std::size_t Script::land_late_writes() {
  const std::vector<LateWrite> landing = std::move(late_);
  late_.clear();
  for (const LateWrite& write : landing) {
    OwnerAccess* owner = access(write.lane);
    if (owner == nullptr) {
      continue;
    }
    const OwnerAccess::Grant grant =
        owner->acquire(write.range, write.offset, write.bytes.size(), Access::write);
    if (grant.lease == 0) {
      ++counters_.refusals;
      continue;
    }
    std::memcpy(grant.local.memory, write.bytes.data(), write.bytes.size());
    owner->release(grant.lease);
    ++counters_.late_writes;
  }
  return landing.size();
}

// --- The engines' side ------------------------------------------------------------------------

std::unique_ptr<Link> Script::connect(const ScriptedLane& lane) {
  auto link = std::make_unique<ScriptedLink>(*this, lane);
  links_.push_back(link.get());
  ++counters_.links;
  return link;
}

void Script::serve(const EngineId& owner, std::uint64_t session, OwnerAccess* access) {
  if (access != nullptr) {
    sessions_[{owner.bytes, session}] = access;
    return;
  }
  sessions_.erase({owner.bytes, session});
  std::erase_if(late_, [&](const LateWrite& write) {
    return write.lane.owner == owner && write.lane.session == session;
  });
}

Fate Script::fate_of(const Slice& slice) {
  ++counters_.slices;
  if (decide) {
    return decide(slice);
  }
  Fate fate;
  fate.hold = hold;
  return fate;
}

OwnerAccess* Script::access(const ScriptedLane& lane) const {
  const auto found = sessions_.find({lane.owner.bytes, lane.session});
  return found == sessions_.end() ? nullptr : found->second;
}

std::shared_ptr<const Error> Script::move(const ScriptedLane& lane, const Slice& slice,
                                          std::uint32_t bytes) {
  WHERRY_ASSERT(slice.local.file == nullptr); // This path knows memory only.
  const auto refuse = [](ErrorCode code, const char* message) {
    auto error = std::make_shared<Error>();
    error->code = code;
    error->message = message;
    error->path = "scripted lane";
    return error;
  };
  OwnerAccess* owner = access(lane);
  if (owner == nullptr) {
    return refuse(ErrorCode::connection_lost, "the owner's session has ended");
  }
  // Checked for the whole slice, whatever the test lets through.
  const bool read = slice.kind == OperationKind::read;
  const OwnerAccess::Grant grant =
      owner->acquire(slice.remote_range, slice.remote_offset, slice.length_bytes,
                     read ? Access::read : Access::write);
  if (grant.lease == 0) {
    ++counters_.refusals;
    return refuse(grant.refused, "the owner refused the operation");
  }
  WHERRY_ASSERT(grant.local.file == nullptr);
  std::byte* const to = read ? slice.local.memory : grant.local.memory;
  const std::byte* const from = read ? grant.local.memory : slice.local.memory;
  // Two ranges of one process may overlap.
  std::memmove(to, from, bytes);
  owner->release(grant.lease);
  counters_.moved_bytes += bytes;
  return nullptr;
}

// The bytes as they are now: they have left the consumer's memory, and are on their way.
void Script::keep_late(const ScriptedLane& lane, const Slice& slice, std::uint32_t from) {
  const std::byte* begin = slice.local.memory + from;
  late_.push_back({lane, slice.remote_range, slice.remote_offset + from,
                   std::vector<std::byte>(begin, begin + (slice.length_bytes - from))});
}

void Script::drop_late(const ScriptedLane& lane) {
  std::erase_if(late_, [&](const LateWrite& write) { return write.lane == lane; });
}

void Script::forget(ScriptedLink* link) {
  std::erase(links_, link);
}

} // namespace wherry

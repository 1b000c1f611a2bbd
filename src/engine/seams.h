// The outside world as the engine sees it. Real ones are made by TransferEngine::create;
// simulations and tests pass their own. (The sixth seam, memory allocation, is the replaceable
// operator new.)
#pragma once

#include "base/clock.h"
#include "base/random.h"
#include "os/dynlib/libraries.h"
#include "os/files.h"
#include "os/network.h"
#include "os/worker.h"
#include "path/path.h"

#include <functional>
#include <memory>

namespace wherry {

/// What a replacement for the tcp path's links is told: tests run the engine over `scripted` links,
/// and benchmarks over `null` ones. Sessions are opened as usual.
struct LinkRequest {
  std::uint64_t session = 0;
  std::uint32_t lane = 0;
  EngineId owner;
};
class LinkMaker {
public:
  virtual ~LinkMaker() = default;
  virtual std::unique_ptr<Link> connect(const LinkRequest& request) = 0;
  /// An owner's session began or ended: what such links may reach, and through which check.
  virtual void serve(const EngineId& owner, std::uint64_t session, OwnerAccess* access) = 0;
};

/// Shared objects may be used by several engines of one thread.
struct Seams {
  std::shared_ptr<Clock> clock;
  std::shared_ptr<Random> random;
  std::shared_ptr<Network> network;
  std::shared_ptr<Files> files;
  std::shared_ptr<Worker> worker;
  std::shared_ptr<Libraries> libraries;
  std::shared_ptr<LinkMaker> links; ///< Null: tcp lanes.
};

} // namespace wherry

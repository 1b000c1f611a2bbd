// One engine with one opened source: how every consumer command begins.
#pragma once

#include "console.h"
#include "options.h"

#include <wherry/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace wherry::cli {

/// The source goes before its engine.
struct Session {
  TransferEngine engine;
  RemoteSource remote;
};

/// An engine that logs to the console, which must outlive it.
Result<TransferEngine> make_engine(const TcpConfig& tcp, std::chrono::nanoseconds close_timeout,
                                   Console& console);

/// Opens the source. Where the reference has no epoch, says to which one it was bound.
Result<Session> open_session(const PeerOptions& peer, const TransferOptions& transfer,
                             Console& console);

/// Every page of the source's ranges, in the owner's order, until `take` fails. Errors: describe's,
/// `take`'s, protocol_mismatch (pages that lead nowhere).
Result<void>
for_each_page(RemoteSource& remote,
              const std::function<Result<void>(const std::vector<RangeDescription>&)>& take);

struct NamedRemoteRange {
  std::string name;
  RemoteRange range;
};

/// The ranges that `wanted` (names or globs) selects, each once; all where it is empty. A name that
/// is one of the source's goes before its meaning as a glob. Errors: not_found (a pattern without a
/// range), resource_exhausted (more ranges than this command holds), describe's.
Result<std::vector<NamedRemoteRange>> select_ranges(RemoteSource& remote,
                                                    const std::vector<std::string>& wanted);

} // namespace wherry::cli

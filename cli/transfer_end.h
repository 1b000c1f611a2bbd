// How commands end: what failed is listed, and the gravest decides the status.
#pragma once

#include "console.h"

#include <wherry/request.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wherry::cli {

struct FailedFile {
  std::string name;
  Error error;
  RemoteEffect effect = RemoteEffect::none;
  LocalDrain drain = LocalDrain::drained;
};

struct TransferEnd {
  std::size_t files = 0; ///< Asked for.
  std::size_t completed = 0;
  std::vector<FailedFile> failed{};
  std::optional<Error> stopped{}; ///< What ended the command before its files did.
};

/// Tells the one error that ended the command, and gives its exit status.
int end_with(Console& console, const Error& error);

/// After these no other file can fare better on the same session: the command stops.
bool ends_session(ErrorCode code);

/// Says what failed on standard error, and gives the exit status. `signal`: what ended the command.
int report_end(Console& console, const TransferEnd& end, int signal);

/// "pulled 3 files, 1.2 GiB in 0.80 s (1.5 GiB/s), verified"
std::string done_text(std::string_view verb, std::size_t files, std::uint64_t bytes, double seconds,
                      bool verified);

/// `failed` for a JSON document: name, error, and the effect where there is one.
nlohmann::json failed_json(const TransferEnd& end);

} // namespace wherry::cli

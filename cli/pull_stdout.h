// Reads one range to standard output, in order, through a few buffers. One thread.
#pragma once

#include "options.h"
#include "pull_plan.h"
#include "session.h"
#include "transfer_end.h"
#include "transfer_window.h"

namespace wherry::cli {

TransferEnd pull_to_stdout(Session& session, const PullOptions& options, const PullItem& item,
                           TransferWindow& window);

} // namespace wherry::cli

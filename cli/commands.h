// The commands. Each says what there is to say and returns the exit status.
#pragma once

#include "console.h"
#include "interrupt.h"
#include "options.h"

namespace wherry::cli {

int run(const ServeOptions& options, Console& console, Interrupt& interrupt);
int run(const DescribeOptions& options, Console& console, Interrupt& interrupt);
int run(const PullOptions& options, Console& console, Interrupt& interrupt);
int run(const PushOptions& options, Console& console, Interrupt& interrupt);
int run(const DoctorOptions& options, Console& console, Interrupt& interrupt);
int run(const VersionOptions& options, Console& console, Interrupt& interrupt);

} // namespace wherry::cli

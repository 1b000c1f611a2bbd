// The command `world`: runs seeds of the simulation until one fails or time is up.
#include "base/syntax.h"
#include "world/simulation.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

namespace {

using namespace wherry::world;

struct Arguments {
  std::optional<std::uint64_t> seed;
  std::uint64_t first = 1;
  std::uint64_t seeds = 1000;
  std::uint64_t seconds = UINT64_MAX;
  bool verbose = false;
  wherry::world::Lie lie = Lie::none;
};

constexpr const char* usage =
    "usage: world [--seed N [--verbose]] [--first N] [--seeds N] [--seconds S] [--canary LIE]\n"
    "  --seed N      replays one seed; --verbose prints what happened\n"
    "  --first N     the first of --seeds seeds (1000 from 1 on)\n"
    "  --seconds S   starts no seed after that time\n"
    "  --canary LIE  puts a lie between engine and oracle; succeeds when the oracle finds it:\n"
    "                one_byte_more, drained_early, certain_early, settled_early, changed_outcome\n";

std::optional<Lie> lie_of(const std::string& text) {
  const std::pair<const char*, Lie> names[] = {{"one_byte_more", Lie::one_byte_more},
                                               {"drained_early", Lie::drained_early},
                                               {"certain_early", Lie::certain_early},
                                               {"settled_early", Lie::settled_early},
                                               {"changed_outcome", Lie::changed_outcome}};
  for (const auto& [name, lie] : names) {
    if (text == name) {
      return lie;
    }
  }
  return std::nullopt;
}

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--verbose") {
      arguments.verbose = true;
      continue;
    }
    if (i + 1 == argc) {
      return std::nullopt;
    }
    const std::string value = argv[++i];
    if (option == "--canary") {
      const auto lie = lie_of(value);
      if (!lie) {
        return std::nullopt;
      }
      arguments.lie = *lie;
      continue;
    }
    const auto number = wherry::parse_decimal(value, UINT64_MAX);
    if (!number) {
      return std::nullopt;
    }
    if (option == "--seed") {
      arguments.seed = number;
    } else if (option == "--first") {
      arguments.first = *number;
    } else if (option == "--seeds") {
      arguments.seeds = *number;
    } else if (option == "--seconds") {
      arguments.seconds = *number;
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

// An assertion ends the process: what to type is to be known all the same.
char last_words[96];

void on_abort(int) {
  static_cast<void>(!write(STDERR_FILENO, last_words, std::strlen(last_words)));
}

Verdict run(std::uint64_t seed, const Arguments& arguments) {
  std::snprintf(last_words, sizeof last_words,
                "world: seed %llu ended the process; replay: world --seed %llu --verbose\n",
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seed));
  RunOptions options;
  options.lie = arguments.lie;
  options.trace = arguments.verbose ? stdout : nullptr;
  return run_seed(seed, options);
}

int replay(std::uint64_t seed, const Arguments& arguments) {
  const Verdict verdict = run(seed, arguments);
  fmt::print("seed {}: {} steps, {} requests, {:.3f} s simulated, trace {:016x}\n", seed,
             verdict.steps, verdict.requests, static_cast<double>(verdict.simulated_ns) / 1e9,
             verdict.trace_hash);
  if (verdict.wrong) {
    fmt::print("seed {} FAILED: {}\n", seed, *verdict.wrong);
  }
  return verdict.wrong ? 1 : 0;
}

int search(const Arguments& arguments) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  std::uint64_t seeds = 0;
  std::uint64_t steps = 0;
  std::uint64_t requests = 0;
  std::optional<std::string> wrong;
  std::uint64_t seed = arguments.first;
  while (seeds < arguments.seeds && passed() < static_cast<double>(arguments.seconds)) {
    const Verdict verdict = run(seed, arguments);
    ++seeds;
    steps += verdict.steps;
    requests += verdict.requests;
    if (verdict.wrong) {
      wrong = verdict.wrong;
      break;
    }
    ++seed;
  }
  fmt::print("{} seeds, {} steps, {} requests, {:.0f} seeds a second\n", seeds, steps, requests,
             static_cast<double>(seeds) / passed());
  if (arguments.lie != Lie::none) {
    fmt::print("{}\n", wrong ? "the lie was found: " + *wrong : "the lie was NOT found");
    return wrong ? 0 : 1;
  }
  if (wrong) {
    fmt::print("seed {} FAILED: {}\nreplay: world --seed {} --verbose\n", seed, *wrong, seed);
  }
  return wrong ? 1 : 0;
}

} // namespace

int main(int argc, char** argv) {
  const auto arguments = parse(argc, argv);
  if (!arguments) {
    std::fputs(usage, stderr);
    return 2;
  }
  static_cast<void>(std::signal(SIGABRT, on_abort));
  return arguments->seed ? replay(*arguments->seed, *arguments) : search(*arguments);
}

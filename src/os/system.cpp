// The kernel's clock and randomness. No state; any thread.
#include "os/system.h"

#include "base/assert.h"

#include <sys/random.h>

#include <cerrno>
#include <ctime>

namespace wherry {
namespace {

class SystemClock final : public Clock {
public:
  std::uint64_t now_ns() override {
    timespec now{};
    const int answer = clock_gettime(CLOCK_MONOTONIC, &now);
    WHERRY_ASSERT(answer == 0);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000ULL +
           static_cast<std::uint64_t>(now.tv_nsec);
  }
};

class SystemRandom final : public Random {
public:
  void fill(std::span<std::byte> out) override {
    while (!out.empty()) {
      const ssize_t count = getrandom(out.data(), out.size(), 0);
      if (count < 0 && errno == EINTR) {
        continue;
      }
      // Ids and session keys from a weaker source would be worse than none.
      WHERRY_ASSERT(count > 0);
      out = out.subspan(static_cast<std::size_t>(count));
    }
  }
};

} // namespace

std::unique_ptr<Clock> make_system_clock() {
  return std::make_unique<SystemClock>();
}

std::unique_ptr<Random> make_system_random() {
  return std::make_unique<SystemRandom>();
}

} // namespace wherry

// Assertions for our own mistakes, in every build. A peer's, a driver's or a caller's mistake never
// reaches one: those are results.
#pragma once

namespace wherry {
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);
}

#define WHERRY_ASSERT(x)                                                                           \
  (__builtin_expect(static_cast<bool>(x), 1) ? void(0)                                             \
                                             : ::wherry::assertion_failed(#x, __FILE__, __LINE__))

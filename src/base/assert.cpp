// Ends the process when an invariant of ours is broken. Touches stderr only: a broken invariant has
// nobody left to return a result to, and going on could corrupt somebody's memory. Any thread.
#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace wherry {

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "wherry: broken invariant: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

} // namespace wherry

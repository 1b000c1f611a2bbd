#include "path/null/null_link.h"

#include "base/assert.h"
#include "base/clock.h"

#include <utility>

namespace wherry {

void NullLink::submit(const Slice& slice) {
  WHERRY_ASSERT(has_room() && slice.length_bytes > 0);
  Completion& completion = completions_.push();
  completion = Completion{};
  completion.request = slice.request;
  completion.index = slice.index;
  completion.confirmed_bytes = slice.length_bytes;
  ++slices_;
}

bool NullLink::progress(std::uint64_t) {
  return !completions_.empty();
}

std::size_t NullLink::poll(std::span<Completion> out) {
  std::size_t count = 0;
  for (; count < out.size() && !completions_.empty(); ++count) {
    out[count] = std::move(completions_.front());
    completions_.pop();
  }
  return count;
}

void NullLink::begin_close(Error why) {
  if (state_ != LinkState::ready) {
    return;
  }
  state_ = LinkState::drained; // Nothing is ever under way.
  why_ = std::move(why);
  why_.path = "null lane";
}

std::uint64_t NullLink::next_deadline_ns() const {
  return completions_.empty() ? never_ns : 0;
}

} // namespace wherry

// A link that ends every slice at once, confirmed, and moves no byte: what is left is the engine's
// own work, for its accounting and for benchmarks. It claims what never happened; nothing that is
// shipped makes one.
#pragma once

#include "path/path.h"
#include "path/ring.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace wherry {

class NullLink final : public Link {
public:
  NullLink() : completions_(slots) {}

  bool has_room() const override { return state_ == LinkState::ready && completions_.room() > 0; }
  void submit(const Slice& slice) override;
  /// True while completions are there, so that they are polled.
  bool progress(std::uint64_t now_ns) override;
  std::size_t poll(std::span<Completion> out) override;
  void request_cancel(std::uint64_t, std::uint64_t) override {} // All have ended.
  std::size_t using_range(std::uint64_t) const override { return 0; }
  void begin_close(Error why) override;
  LinkState state() const override { return state_; }
  const Error& why() const override { return why_; }
  std::uint64_t next_deadline_ns() const override;

  std::uint64_t slices() const { return slices_; }

private:
  static constexpr std::size_t slots = 1024;

  Ring<Completion> completions_;
  std::uint64_t slices_ = 0;
  LinkState state_ = LinkState::ready;
  Error why_;
};

} // namespace wherry

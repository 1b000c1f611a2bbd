// What happened in a run of the world: a hash that tells two runs apart, and, if wanted, lines to
// read. One thread.
#pragma once

#include "world/sim_clock.h"

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string_view>

namespace wherry::world {

class Trace {
public:
  struct Value {
    const char* name;
    std::uint64_t value;
  };

  /// Lines go to `out`; null: none are made.
  explicit Trace(std::FILE* out = nullptr) : out_(out) {}

  /// From now on events carry this clock's time.
  void set_clock(SimClock* clock) { clock_ = clock; }
  /// An event of the run: part of the hash.
  void note(std::string_view what, std::initializer_list<Value> values = {});
  /// Told to the reader only: may hold what differs from run to run.
  void tell(std::string_view line);
  bool verbose() const { return out_ != nullptr; }
  std::uint64_t hash() const { return hash_; }

private:
  void mix(std::uint64_t value);

  std::FILE* out_;
  SimClock* clock_ = nullptr;
  std::uint64_t hash_ = 0x9e3779b97f4a7c15ULL;
};

} // namespace wherry::world

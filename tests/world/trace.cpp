#include "world/trace.h"

#include <bit>
#include <cinttypes>

namespace wherry::world {

void Trace::mix(std::uint64_t value) {
  hash_ = std::rotl((hash_ ^ value) * 0xbf58476d1ce4e5b9ULL, 29);
}

void Trace::note(std::string_view what, std::initializer_list<Value> values) {
  const std::uint64_t now_ns = clock_ != nullptr ? clock_->now_ns() : 0;
  mix(now_ns);
  for (const char c : what) {
    mix(static_cast<unsigned char>(c));
  }
  for (const Value& value : values) {
    mix(value.value);
  }
  if (out_ == nullptr) {
    return;
  }
  std::fprintf(out_, "%12.6f  %.*s", static_cast<double>(now_ns) / 1e6,
               static_cast<int>(what.size()), what.data());
  for (const Value& value : values) {
    std::fprintf(out_, " %s=%" PRIu64, value.name, value.value);
  }
  std::fputc('\n', out_);
}

void Trace::tell(std::string_view line) {
  if (out_ == nullptr) {
    return;
  }
  const std::uint64_t now_ns = clock_ != nullptr ? clock_->now_ns() : 0;
  std::fprintf(out_, "%12.6f  | %.*s\n", static_cast<double>(now_ns) / 1e6,
               static_cast<int>(line.size()), line.data());
}

} // namespace wherry::world

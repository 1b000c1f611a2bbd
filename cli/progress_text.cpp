#include "progress_text.h"

#include "units.h"

#include <fmt/format.h>

#include <algorithm>

namespace wherry::cli {
namespace {

constexpr std::chrono::seconds window{5};
constexpr std::chrono::milliseconds sample_interval{100};
constexpr std::size_t columns_for_total = 50;
constexpr std::size_t columns_for_bar = 72;
constexpr std::size_t bar_cells = 20;

std::string bar(unsigned per_cent) {
  const std::size_t filled = per_cent * bar_cells / 100;
  return "[" + std::string(filled, '#') + std::string(bar_cells - filled, '.') + "] ";
}

} // namespace

void RateMeter::update(Time now, std::uint64_t bytes) {
  const bool another =
      samples_.size() < 2 || now - samples_[samples_.size() - 2].when >= sample_interval;
  if (another) {
    samples_.push_back({now, bytes});
  } else {
    samples_.back() = {now, bytes};
  }
  while (samples_.size() > 2 && now - samples_[1].when >= window) {
    samples_.pop_front();
  }
}

double RateMeter::bytes_per_second() const {
  const Sample& first = samples_.front();
  const Sample& last = samples_.back();
  const double seconds = std::chrono::duration<double>(last.when - first.when).count();
  if (seconds <= 0 || last.bytes < first.bytes) {
    return 0;
  }
  return static_cast<double>(last.bytes - first.bytes) / seconds;
}

std::optional<std::chrono::seconds> RateMeter::time_left(std::uint64_t bytes_left) const {
  const double rate = bytes_per_second();
  if (rate < 1) {
    return {};
  }
  // Bounded before it becomes an integer; beyond some years nobody reads it.
  const double seconds = std::min(static_cast<double>(bytes_left) / rate, 1e9);
  return std::chrono::seconds(static_cast<std::int64_t>(seconds + 0.999));
}

std::string progress_line(const ProgressFacts& facts, std::size_t columns) {
  const std::size_t room = columns > 0 ? columns - 1 : 0;
  const unsigned per_cent = percent(facts.bytes, facts.total_bytes);
  std::string line = fmt::format("{:3}%", per_cent);
  std::string amount = "  " + format_size(facts.bytes);
  if (columns >= columns_for_total) {
    amount += " of " + format_size(facts.total_bytes);
  }
  const std::string rate = "  " + format_rate(facts.bytes_per_second);
  const std::string left = facts.left ? fmt::format("  {} left", format_clock(*facts.left)) : "";
  if (columns >= columns_for_bar) {
    line += "  " + bar(per_cent);
  }
  for (const std::string& part : {amount, rate, left}) {
    if (line.size() + part.size() <= room) {
      line += part;
    } else {
      break;
    }
  }
  return line.substr(0, std::min(line.size(), room));
}

} // namespace wherry::cli

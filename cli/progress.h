// The progress of one command on standard error, after DuckDB's manners: not before the first
// moment, only when the text changes, never backwards. One thread.
#pragma once

#include "console.h"
#include "progress_text.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace wherry::cli {

class Progress {
public:
  /// Shows on a terminal, or wherever it goes when `wanted`.
  Progress(Console& console, bool wanted, std::uint64_t total_bytes);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `bytes` moved in all; cheap when it is too early for another line.
  void update(std::uint64_t bytes);
  /// The last line, and its end.
  void finish();

private:
  using Clock = std::chrono::steady_clock;

  enum class Form { none, terminal, lines, json };

  void show(Clock::time_point now);
  std::size_t columns() const;

  Console& console_;
  const std::uint64_t total_bytes_;
  const Form form_;
  const Clock::time_point start_;
  Clock::time_point next_;
  RateMeter meter_;
  std::uint64_t bytes_ = 0;
  bool shown_ = false;
  bool finished_ = false;
  std::string last_;
};

} // namespace wherry::cli

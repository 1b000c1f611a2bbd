#include "progress.h"

#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace wherry::cli {
namespace {

constexpr std::chrono::milliseconds first_moment{500};
constexpr std::chrono::milliseconds redraw_interval{100};
constexpr std::chrono::milliseconds line_interval{1000};
constexpr std::chrono::milliseconds json_interval{100};
constexpr std::size_t columns_where_unknown = 80;

} // namespace

Progress::Progress(Console& console, bool wanted, std::uint64_t total_bytes)
    : console_(console), total_bytes_(total_bytes),
      form_(console.json()                 ? (wanted ? Form::json : Form::none)
            : ::isatty(STDERR_FILENO) == 1 ? Form::terminal
            : wanted                       ? Form::lines
                                           : Form::none),
      start_(Clock::now()), next_(wanted ? start_ : start_ + first_moment), meter_(start_) {}

Progress::~Progress() {
  finish();
}

void Progress::update(std::uint64_t bytes) {
  // What is fetched a second time after a failure counts once.
  bytes_ = std::max(bytes_, std::min(bytes, total_bytes_));
  const auto now = Clock::now();
  meter_.update(now, bytes_);
  if (form_ != Form::none && now >= next_) {
    show(now);
  }
}

void Progress::finish() {
  if (finished_) {
    return;
  }
  finished_ = true;
  if (form_ == Form::none || !shown_) {
    return;
  }
  show(Clock::now());
  console_.finish_drawing();
}

void Progress::show(Clock::time_point now) {
  const ProgressFacts facts{bytes_, total_bytes_, meter_.bytes_per_second(),
                            meter_.time_left(total_bytes_ - std::min(bytes_, total_bytes_))};
  shown_ = true;
  if (form_ == Form::json) {
    next_ = now + json_interval;
    nlohmann::json object{{"event", "progress"},
                          {"bytes", facts.bytes},
                          {"total_bytes", facts.total_bytes},
                          {"bytes_per_second", static_cast<std::uint64_t>(facts.bytes_per_second)}};
    if (facts.left) {
      object["left_s"] = facts.left->count();
    }
    console_.progress_json(object);
    return;
  }
  next_ = now + (form_ == Form::terminal ? redraw_interval : line_interval);
  std::string line = progress_line(facts, columns());
  if (line == last_) {
    return;
  }
  if (form_ == Form::terminal) {
    console_.draw(line);
  } else {
    console_.progress(line);
  }
  last_ = std::move(line);
}

std::size_t Progress::columns() const {
  winsize size{};
  const bool known =
      form_ == Form::terminal && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : columns_where_unknown;
}

} // namespace wherry::cli

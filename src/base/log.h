// Where the library's messages go: one sink, given as an option, one call at a time. Thread-safe.
#pragma once

#include <wherry/options.hpp>

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace wherry {

class Log {
public:
  explicit Log(LogSink sink) : sink_(std::move(sink)) {}
  void operator()(LogLevel level, std::string_view message) {
    if (!sink_) {
      return;
    }
    const std::lock_guard lock(mutex_);
    sink_(level, message);
  }

private:
  std::mutex mutex_;
  LogSink sink_;
};

} // namespace wherry

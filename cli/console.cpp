#include "console.h"

#include "errors.h"
#include "hints.h"
#include "text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace wherry::cli {

using Json = nlohmann::json;

void add_name(Json& object, std::string_view key, std::string_view name) {
  std::string text = replace_invalid(name);
  if (text != name) {
    object[std::string(key) + "_base64"] = base64(name);
  }
  object[std::string(key)] = std::move(text);
}

std::string dump(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json error_json(const Error& error) {
  Json object{{"code", to_string(error.code)}, {"message", error.message}};
  if (!error.native_call.empty()) {
    object["native_call"] = error.native_call;
  }
  if (error.native_number != 0) {
    object["native_number"] = error.native_number;
  }
  if (!error.device.empty()) {
    object["device"] = error.device;
  }
  if (!error.path.empty()) {
    object["path"] = error.path;
  }
  if (error.current_epoch) {
    object["current_epoch"] = *error.current_epoch;
  }
  return object;
}

Result<void> write_all(int descriptor, std::string_view bytes, std::string_view what) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return fail(system_error(ErrorCode::io_error, "write", errno, what));
    }
  }
  return {};
}

void Console::note(std::string_view text) {
  say("note", "", text);
}

void Console::warning(std::string_view text) {
  say("warning", "warning: ", text);
}

void Console::log(LogLevel level, std::string_view text) {
  static constexpr std::string_view names[] = {"debug", "info", "warning", "error"};
  if (level >= level_) {
    const std::string_view name = names[static_cast<std::size_t>(level)];
    say("log", fmt::format("{}: ", name), text);
  }
}

void Console::failure(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (json_) {
    write_line(dump({{"event", "failure"}, {"error", error_json(error)}}));
  } else {
    write_line(fmt::format("wherry: {}: {}", to_string(error.code), printable(error.message)));
  }
}

void Console::error(const Error& error) {
  this->error(error, hint_for(error.code));
}

void Console::error(const Error& error, std::string_view hint) {
  const std::lock_guard lock(mutex_);
  if (json_) {
    Json object = error_json(error);
    object["hint"] = hint;
    write_line(dump({{"error", std::move(object)}}));
  } else {
    write_line(fmt::format("wherry: {}: {}", to_string(error.code), printable(error.message)));
    write_line(fmt::format("hint: {}", printable(hint)));
  }
}

void Console::draw(std::string_view line) {
  const std::lock_guard lock(mutex_);
  // Blanks, not an escape sequence, wipe the rest of a longer line: every terminal knows them.
  std::string text = fmt::format("\r{}", line);
  if (line.size() < drawn_) {
    text += std::string(drawn_ - line.size(), ' ') + fmt::format("\r{}", line);
  }
  drawn_ = line.size();
  (void)write_all(STDERR_FILENO, text, "standard error");
}

void Console::progress(std::string_view line) {
  const std::lock_guard lock(mutex_);
  write_line(line);
}

void Console::progress_json(const Json& facts) {
  progress(dump(facts));
}

void Console::finish_drawing() {
  const std::lock_guard lock(mutex_);
  if (drawn_ > 0) {
    drawn_ = 0;
    (void)write_all(STDERR_FILENO, "\n", "standard error");
  }
}

Result<void> Console::print(std::string_view text) {
  return write_all(STDOUT_FILENO, text, "standard output");
}

Result<void> Console::print_json(const Json& document) {
  return print(dump(document) + "\n");
}

void Console::say(std::string_view kind, std::string_view prefix, std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (json_) {
    write_line(dump({{"event", kind}, {"message", std::string(prefix) + std::string(text)}}));
  } else {
    write_line(fmt::format("wherry: {}{}", prefix, printable(text)));
  }
}

// Nobody can be told that standard error is gone, so its errors end here.
void Console::write_line(std::string_view line) {
  wipe();
  (void)write_all(STDERR_FILENO, fmt::format("{}\n", line), "standard error");
}

void Console::wipe() {
  if (drawn_ > 0) {
    const std::string text = fmt::format("\r{}\r", std::string(drawn_, ' '));
    drawn_ = 0;
    (void)write_all(STDERR_FILENO, text, "standard error");
  }
}

} // namespace wherry::cli

// Where a command speaks: results on standard output, everything else on standard error; with
// --json one object a line there. Any thread may call it (the engine's log does).
#pragma once

#include <wherry/error.hpp>
#include <wherry/options.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

namespace wherry::cli {

/// `name`, with U+FFFD for bytes that are no UTF-8, and only then `name_base64`.
void add_name(nlohmann::json& object, std::string_view key, std::string_view name);

/// One line of JSON. Whatever bytes are in it, it comes out as valid UTF-8.
std::string dump(const nlohmann::json& document);

/// The evidence of an error: code, message, and the rest where it is known.
nlohmann::json error_json(const Error& error);

class Console {
public:
  Console(bool json, LogLevel level) : json_(json), level_(level) {}

  bool json() const { return json_; }

  /// Standard error. Text is made printable here.
  void note(std::string_view text);
  void warning(std::string_view text);
  void log(LogLevel level, std::string_view text);
  /// `wherry: CODE: sentence`.
  void failure(const Error& error);
  /// The same, and its hint: what ends the command.
  void error(const Error& error);
  /// As error(), with another way out than the code's usual one.
  void error(const Error& error, std::string_view hint);

  /// A line that is drawn over the last one; an empty one wipes it. Only for terminals.
  void draw(std::string_view line);
  /// A progress line that stays.
  void progress(std::string_view line);
  void progress_json(const nlohmann::json& facts);
  /// Leaves what is drawn standing, and ends its line.
  void finish_drawing();

  /// Standard output, all of it. Errors: io_error, where the reader has gone or the disk is full.
  Result<void> print(std::string_view text);
  Result<void> print_json(const nlohmann::json& document);

private:
  void say(std::string_view kind, std::string_view prefix, std::string_view text);
  void write_line(std::string_view line);
  void wipe();

  const bool json_;
  const LogLevel level_;
  std::mutex mutex_;
  std::size_t drawn_ = 0; // characters of the line that is drawn now
};

/// write() of all bytes to a descriptor. Error: io_error.
Result<void> write_all(int descriptor, std::string_view bytes, std::string_view what);

} // namespace wherry::cli

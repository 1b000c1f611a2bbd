// `wherry version`: what this is, and what it was built with.
#include "commands.h"
#include "exit_status.h"
#include "session.h"
#include "transfer_end.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string>

namespace wherry::cli {
namespace {

using Json = nlohmann::json;

#ifdef __clang__
constexpr std::string_view compiler = "clang " __clang_version__;
#else
constexpr std::string_view compiler = "gcc " __VERSION__;
#endif
#ifdef NDEBUG
constexpr bool optimised = true;
#else
constexpr bool optimised = false;
#endif

} // namespace

int run(const VersionOptions&, Console& console, Interrupt&) {
  const auto engine = make_engine({}, std::chrono::seconds(1), console);
  if (!engine) {
    return end_with(console, engine.error());
  }
  Json paths = Json::array();
  std::string list;
  for (const PathCapability& capability : engine->capabilities()) {
    if (capability.built.answer == Answer::yes) {
      paths.push_back(to_string(capability.path));
      list += fmt::format(" {}", to_string(capability.path));
    }
  }
  const Version built = version();
  const auto told =
      console.json()
          ? console.print_json(
                {{"version", built.version},
                 {"commit", built.commit},
                 {"protocol", built.protocol},
                 {"build",
                  {{"compiler", compiler}, {"release", optimised}, {"paths", std::move(paths)}}}})
          : console.print(fmt::format("wherry {} ({})\nprotocol {}\nbuilt with {}, {}\npaths:{}\n",
                                      built.version, built.commit, built.protocol, compiler,
                                      optimised ? "release" : "debug", list));
  return told ? static_cast<int>(exit_ok) : end_with(console, told.error());
}

} // namespace wherry::cli

// `wherry doctor`: per path the four answers of R1, with the reason for each no.
#include "commands.h"
#include "errors.h"
#include "exit_status.h"
#include "session.h"
#include "text.h"
#include "transfer_end.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace wherry::cli {
namespace {

using Json = nlohmann::json;

// What the paths answer, and what the source did where one was named.
struct Findings {
  std::vector<PathCapability> paths;
  std::vector<Route> routes;
  std::string reference;
  std::optional<Error> refused;
};

std::string answer_text(const Fact& fact) {
  return fact.answer == Answer::not_asked ? "not asked" : std::string(to_string(fact.answer));
}

struct Question {
  std::string_view name;
  const Fact PathCapability::* fact;
};
constexpr Question questions[] = {{"built", &PathCapability::built},
                                  {"loadable", &PathCapability::loadable},
                                  {"discovered", &PathCapability::discovered},
                                  {"ready", &PathCapability::ready}};

// Without a source nobody asked, whatever else is known of a path.
void clear_ready(Findings& findings) {
  for (PathCapability& capability : findings.paths) {
    capability.ready = {};
  }
}

// With a source: ready is what its routes say. Where it could not be opened, nothing is.
void fill_ready(Findings& findings) {
  for (PathCapability& capability : findings.paths) {
    const auto route =
        std::find_if(findings.routes.begin(), findings.routes.end(),
                     [&](const Route& known) { return known.path == capability.path; });
    if (capability.built.answer == Answer::no) {
      capability.ready = {Answer::no, "not built"};
    } else if (findings.refused) {
      capability.ready = {Answer::no, findings.refused->message};
    } else if (route != findings.routes.end()) {
      capability.ready = route->ready;
    } else {
      capability.ready = {Answer::no, "the source offers no such route"};
    }
  }
}

Result<Findings> examine(const DoctorOptions& options, Console& console) {
  Findings findings;
  if (options.peer.reference.empty()) {
    const auto engine = make_engine({}, std::chrono::seconds(2), console);
    if (!engine) {
      return fail(engine.error());
    }
    findings.paths = engine->capabilities();
    clear_ready(findings);
    return findings;
  }
  if (auto reference = SourceReference::parse(options.peer.reference); !reference) {
    return fail(reference.error());
  }
  auto session = open_session(options.peer, {}, console);
  if (session) {
    findings.paths = session->engine.capabilities();
    findings.routes = session->remote.routes();
    findings.reference = session->remote.reference().to_string();
  } else {
    const auto engine = make_engine({}, std::chrono::seconds(2), console);
    if (!engine) {
      return fail(engine.error());
    }
    findings.paths = engine->capabilities();
    findings.reference = options.peer.reference;
    findings.refused = session.error();
  }
  fill_ready(findings);
  return findings;
}

std::string report_text(const Findings& findings) {
  std::string text =
      fmt::format("{:9} {:6} {:9} {:11} {}\n", "path", "built", "loadable", "discovered", "ready");
  std::string reasons;
  for (const PathCapability& capability : findings.paths) {
    text += fmt::format("{:9} {:6} {:9} {:11} {}\n", to_string(capability.path),
                        answer_text(capability.built), answer_text(capability.loadable),
                        answer_text(capability.discovered), answer_text(capability.ready));
    for (const Question& question : questions) {
      if (const Fact& fact = capability.*question.fact; !fact.reason.empty()) {
        reasons += fmt::format("{}: {}: {}: {}\n", to_string(capability.path), question.name,
                               answer_text(fact), printable(fact.reason));
      }
    }
    for (const DeviceVerdict& device : capability.devices) {
      reasons +=
          fmt::format("{}: device {}: {}{}{}\n", to_string(capability.path), printable(device.name),
                      answer_text(device.usable), device.usable.reason.empty() ? "" : ": ",
                      printable(device.usable.reason));
    }
  }
  if (!findings.reference.empty()) {
    text += fmt::format("source {}: {}\n", printable(findings.reference),
                        findings.refused ? fmt::format("{}: {}", to_string(findings.refused->code),
                                                       printable(findings.refused->message))
                                         : "open");
  }
  return text + reasons;
}

Json fact_json(const Fact& fact) {
  Json object{{"answer", answer_text(fact)}};
  if (!fact.reason.empty()) {
    object["reason"] = fact.reason;
  }
  return object;
}

Json report_json(const Findings& findings) {
  Json paths = Json::array();
  for (const PathCapability& capability : findings.paths) {
    Json object{{"path", to_string(capability.path)}};
    for (const Question& question : questions) {
      object[std::string(question.name)] = fact_json(capability.*question.fact);
    }
    Json devices = Json::array();
    for (const DeviceVerdict& device : capability.devices) {
      Json verdict{{"usable", fact_json(device.usable)}};
      add_name(verdict, "name", device.name);
      devices.push_back(std::move(verdict));
    }
    object["devices"] = std::move(devices);
    paths.push_back(std::move(object));
  }
  Json document{{"paths", std::move(paths)}};
  if (!findings.reference.empty()) {
    document["reference"] = findings.reference;
    document["source"] =
        findings.refused ? Json{{"error", error_json(*findings.refused)}} : Json("open");
  }
  return document;
}

// --require: unless the path is ready, the reason.
Result<void> check_required(const Findings& findings, PathKind required) {
  for (const PathCapability& capability : findings.paths) {
    if (capability.path != required) {
      continue;
    }
    for (const Question& question : questions) {
      const Fact& fact = capability.*question.fact;
      const bool last = &fact == &capability.ready;
      if (fact.answer == Answer::no || (last && fact.answer != Answer::yes)) {
        return fail(ErrorCode::unavailable,
                    fmt::format("the path {} is not ready: {}: {}{}{}", to_string(required),
                                question.name, answer_text(fact), fact.reason.empty() ? "" : ": ",
                                fact.reason));
      }
    }
    return {};
  }
  return fail(ErrorCode::unavailable, fmt::format("the path {} is not built", to_string(required)));
}

} // namespace

int run(const DoctorOptions& options, Console& console, Interrupt&) {
  const auto findings = examine(options, console);
  if (!findings) {
    return end_with(console, findings.error());
  }
  const auto told = console.json() ? console.print_json(report_json(*findings))
                                   : console.print(report_text(*findings));
  if (!told) {
    return end_with(console, told.error());
  }
  if (options.require) {
    if (auto ready = check_required(*findings, *options.require); !ready) {
      return end_with(console, ready.error());
    }
  }
  return exit_ok;
}

} // namespace wherry::cli

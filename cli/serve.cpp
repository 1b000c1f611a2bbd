// `wherry serve`: publishes what its RANGEs name, until a signal.
#include "catalog.h"
#include "commands.h"
#include "errors.h"
#include "exit_status.h"
#include "listen_address.h"
#include "range_spec.h"
#include "session.h"
#include "text.h"
#include "transfer_end.h"
#include "units.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

namespace wherry::cli {
namespace {

using Json = nlohmann::json;

struct Published {
  std::vector<Registration> registrations;
  std::vector<NamedRange> ranges;
  std::uint64_t bytes = 0;
};

Result<std::vector<RangeSpec>> parse_all(const std::vector<std::string>& texts) {
  std::vector<RangeSpec> specs;
  for (const std::string& text : texts) {
    auto spec = parse_range_spec(text);
    if (!spec) {
      return fail(spec.error());
    }
    specs.push_back(std::move(*spec));
  }
  return specs;
}

Result<Catalog> make_catalog(const std::vector<RangeSpec>& specs) {
  Catalog catalog;
  for (const RangeSpec& spec : specs) {
    if (spec.create) {
      if (auto created = create_file(spec); !created) {
        return fail(created.error());
      }
    }
    if (auto added = catalog.add(spec); !added) {
      return fail(added.error());
    }
  }
  return catalog;
}

Visibility visibility_of(const CatalogEntry& entry) {
  return entry.writable ? Visibility::remote_read_write : Visibility::remote_read;
}

Result<Registration> register_memory(TransferEngine& engine, const CatalogEntry& entry) {
  const std::uint64_t length = entry.length_bytes;
  void* memory =
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return fail(system_error(
        ErrorCode::resource_exhausted, "mmap", errno,
        fmt::format("no memory of {} for '{}'", format_size(length), printable(entry.name))));
  }
  const std::shared_ptr<void> owner(memory, [length](void* mapped) { ::munmap(mapped, length); });
  if (entry.random_seed) {
    fill_random(*entry.random_seed, static_cast<unsigned char*>(memory), length);
  }
  return engine.register_memory({static_cast<std::byte*>(memory), length},
                                {.visibility = visibility_of(entry), .keep_alive = owner});
}

Result<Published> register_all(TransferEngine& engine, const Catalog& catalog) {
  Published published;
  for (const CatalogEntry& entry : catalog.entries()) {
    auto registration =
        entry.path.empty() ? register_memory(engine, entry)
                           : engine.register_file(entry.path, {.visibility = visibility_of(entry)});
    if (!registration) {
      return fail(registration.error());
    }
    published.bytes += registration->length();
    published.ranges.emplace_back(entry.name, *registration);
    published.registrations.push_back(std::move(*registration));
  }
  return published;
}

std::string source_name(const ServeOptions& options, const std::vector<RangeSpec>& specs) {
  if (!options.name.empty()) {
    return options.name;
  }
  if (specs.size() > 1) {
    return "wherry";
  }
  const RangeSpec& only = specs.front();
  return only.name ? *only.name : only.memory ? "mem" : default_name(only.path);
}

void tell_before_ready(const ServeOptions& options, const Catalog& catalog, Console& console) {
  if (const std::string skipped = catalog.skipped_text(); !skipped.empty()) {
    console.note(skipped);
  }
  if (!is_loopback(options.listen)) {
    console.warning(
        fmt::format("listening on {} without authentication: whoever reaches it may read every "
                    "range, and write the writable ones",
                    printable(options.listen)));
  }
}

Result<void> tell_ready(const Source& source, const Published& published, Console& console) {
  const std::string reference = source.reference().to_string();
  if (!console.json()) {
    return console.print(reference + "\n");
  }
  return console.print_json({{"event", "ready"},
                             {"reference", reference},
                             {"ranges", published.ranges.size()},
                             {"length_bytes", published.bytes}});
}

// Closes in slices, so that a second signal can end the patience before the time is up.
Result<void> close_engine(TransferEngine& engine, const ServeOptions& options,
                          Interrupt& interrupt) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + options.close_timeout;
  for (;;) {
    const bool last = Clock::now() >= end || interrupt.count() > 1;
    const auto slice = last ? std::chrono::milliseconds(0) : std::chrono::milliseconds(200);
    auto closed = engine.close(Deadline::at(std::min(end, Clock::now() + slice)));
    if (closed || last || closed.error().code != ErrorCode::busy) {
      return closed;
    }
  }
}

int serve(const ServeOptions& options, TransferEngine& engine, const Source& source,
          const Published& published, Console& console, Interrupt& interrupt) {
  interrupt.expect(options.close_timeout + std::chrono::seconds(2), 3);
  if (auto told = tell_ready(source, published, console); !told) {
    return end_with(console, told.error());
  }
  while (interrupt.signal() == 0) {
    interrupt.wait(0, std::chrono::hours(1));
  }
  if (auto closed = close_engine(engine, options, interrupt); !closed) {
    return end_with(console, closed.error());
  }
  if (console.json()) {
    (void)console.print_json({{"event", "closed"}});
  }
  return exit_ok;
}

Result<Source> publish(const ServeOptions& options, const std::vector<RangeSpec>& specs,
                       TransferEngine& engine, const Published& published) {
  SourceOptions source_options;
  source_options.listen = options.listen;
  source_options.advertise = options.advertise;
  return engine.publish(source_name(options, specs), source_options, published.ranges);
}

} // namespace

int run(const ServeOptions& options, Console& console, Interrupt& interrupt) {
  const auto specs = parse_all(options.ranges);
  if (!specs) {
    return end_with(console, specs.error());
  }
  const auto catalog = make_catalog(*specs);
  if (!catalog) {
    return end_with(console, catalog.error());
  }
  TcpConfig tcp;
  tcp.payload_checksums = options.checksum;
  // What close_engine() could not close by the deadline does not get another one.
  auto engine = make_engine(tcp, std::chrono::milliseconds(100), console);
  if (!engine) {
    return end_with(console, engine.error());
  }
  const auto published = register_all(*engine, *catalog);
  if (!published) {
    return end_with(console, published.error());
  }
  tell_before_ready(options, *catalog, console);
  if (published->ranges.empty()) {
    return end_with(console, make_error(ErrorCode::invalid_argument,
                                        "there is nothing to serve: no RANGE has a "
                                        "regular file"));
  }
  const auto source = publish(options, *specs, *engine, *published);
  if (!source) {
    return end_with(console, source.error());
  }
  return serve(options, *engine, *source, *published, console, interrupt);
}

} // namespace wherry::cli

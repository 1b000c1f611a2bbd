// The system's dynamic loader. No state: what is loaded stays loaded with the process (R5). Any
// thread that may block. Rules: R2 (nothing is loaded but what is asked for), R3 (the message).
#include "os/dynlib/libraries.h"

#include "base/assert.h"

#include <dlfcn.h>
#include <link.h>

#include <string_view>

namespace wherry {
namespace {

tl::unexpected<Error> unavailable(const std::string& soname, const char* call,
                                  std::string_view why) {
  // The loader mostly begins with the name itself; the message says it once.
  const std::string prefix = soname + ": ";
  if (why.starts_with(prefix)) {
    why.remove_prefix(prefix.size());
  }
  Error error;
  error.code = ErrorCode::unavailable;
  error.message = prefix + std::string(why);
  error.native_call = call;
  return fail(std::move(error));
}

std::string loader_text() {
  const char* text = dlerror(); // NOLINT(concurrency-mt-unsafe): glibc keeps it per thread
  return text != nullptr ? text : "the loader gave no reason";
}

std::string loaded_path(void* handle) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 || map == nullptr) {
    return {};
  }
  return map->l_name;
}

void* find(void* handle, const Symbol& symbol) {
  return symbol.version != nullptr ? dlvsym(handle, symbol.name, symbol.version)
                                   : dlsym(handle, symbol.name);
}

std::string symbol_text(const Symbol& symbol) {
  std::string text = symbol.name;
  if (symbol.version != nullptr) {
    text += " (version " + std::string(symbol.version) + ")";
  }
  return text;
}

class SystemLibraries final : public Libraries {
public:
  Result<LoadedLibrary> load(const std::string& soname, std::span<const Symbol> symbols) override {
    WHERRY_ASSERT(!soname.empty()); // dlopen would answer with the program itself.
    for (const Symbol& symbol : symbols) {
      *symbol.slot = nullptr;
    }
    // RTLD_NOW: what is missing shows here and not in the middle of a transfer. RTLD_LOCAL: its
    // symbols resolve nothing in the application.
    void* handle = dlopen(soname.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      return unavailable(soname, "dlopen", loader_text());
    }

    LoadedLibrary library{.soname = soname, .path = loaded_path(handle), .missing_optional = {}};
    for (const Symbol& symbol : symbols) {
      if (find(handle, symbol) != nullptr) {
        continue;
      }
      if (symbol.required) {
        return unavailable(soname, symbol.version != nullptr ? "dlvsym" : "dlsym",
                           library.path + " has no symbol " + symbol_text(symbol));
      }
      library.missing_optional.emplace_back(symbol.name);
    }
    // Only now: a table is filled whole or not at all.
    for (const Symbol& symbol : symbols) {
      *symbol.slot = find(handle, symbol);
    }
    return library;
  }
};

} // namespace

std::unique_ptr<Libraries> make_system_libraries() {
  return std::make_unique<SystemLibraries>();
}

} // namespace wherry

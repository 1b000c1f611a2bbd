// The library seam: the only code that calls dlopen and dlsym. Libraries are never closed (R5).
#pragma once

#include "base/error.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace wherry {

/// One function of a foreign library's table.
struct Symbol {
  const char* name;
  const char* version; ///< For dlvsym; null: the default version.
  bool required;
  void** slot; ///< Where the address goes; null when a missing optional one.
};

/// What was loaded, as evidence.
struct LoadedLibrary {
  std::string soname;
  std::string path; ///< As the loader resolved it.
  std::vector<std::string> missing_optional;
};

class Libraries {
public:
  virtual ~Libraries() = default;
  /// Loads `soname` and fills the table, all or nothing. May block: native worker only.
  /// Errors: unavailable; the message starts with "SONAME: " and goes on with the loader's reason
  /// or the missing symbol and its version (R3).
  virtual Result<LoadedLibrary> load(const std::string& soname,
                                     std::span<const Symbol> symbols) = 0;
};

std::unique_ptr<Libraries> make_system_libraries();

} // namespace wherry

#include "range_spec.h"

#include "errors.h"
#include "text.h"
#include "units.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

namespace wherry::cli {
namespace {

constexpr std::string_view memory_prefix = "mem:";
constexpr std::size_t name_bytes_max = 4095;

// At commas; `\,` is a comma and `\\` a backslash, every other backslash stands for itself.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == ',' || text[i + 1] == '\\');
    if (text[i] == ',') {
      parts.emplace_back();
    } else {
      i += escape ? 1 : 0;
      parts.back() += text[i];
    }
  }
  return parts;
}

// What the options have set so far; each may be given once.
struct Given {
  bool name = false, access = false, size = false, create = false, fill = false;
};

tl::unexpected<Error> once(std::string_view key) {
  return fail(ErrorCode::invalid_argument, fmt::format("{} is given twice", key));
}

Result<void> set_name(RangeSpec& spec, std::string_view value) {
  if (value.empty() || value.size() > name_bytes_max) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("name= takes 1 to {} bytes", name_bytes_max));
  }
  spec.name = value;
  return {};
}

Result<void> set_access(RangeSpec& spec, std::string_view value) {
  if (value != "read" && value != "write") {
    return fail(ErrorCode::invalid_argument,
                fmt::format("access= takes read or write, not '{}'", printable(value)));
  }
  spec.writable = value == "write";
  return {};
}

Result<void> set_size(RangeSpec& spec, std::string_view value) {
  const auto size = parse_size(value);
  if (!size) {
    return fail(size.error());
  }
  spec.size_bytes = *size;
  return {};
}

Result<void> set_fill(RangeSpec& spec, std::string_view value) {
  constexpr std::string_view random = "random:";
  if (value == "zero") {
    return {};
  }
  std::uint64_t seed = 0;
  const std::string_view digits = value.substr(std::min(random.size(), value.size()));
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
  if (!value.starts_with(random) || parsed.ec != std::errc() ||
      parsed.ptr != digits.data() + digits.size()) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("fill= takes zero or random:SEED, where SEED is a number, not '{}'",
                            printable(value)));
  }
  spec.random_seed = seed;
  return {};
}

Result<void> set_option(RangeSpec& spec, Given& given, std::string_view option) {
  const std::size_t equals = option.find('=');
  const std::string_view key = option.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? "" : option.substr(equals + 1);
  struct Row {
    std::string_view key;
    bool& given;
    Result<void> (*set)(RangeSpec&, std::string_view);
    bool of_memory, of_files;
  };
  const Row rows[] = {
      {"name", given.name, set_name, true, true},
      {"access", given.access, set_access, true, true},
      {"size", given.size, set_size, false, true},
      {"fill", given.fill, set_fill, true, false},
  };
  if (option == "create" && !spec.memory) {
    if (given.create) {
      return once(option);
    }
    given.create = spec.create = true;
    return {};
  }
  for (const Row& row : rows) {
    if (row.key == key && equals != std::string_view::npos &&
        (spec.memory ? row.of_memory : row.of_files)) {
      if (row.given) {
        return once(key);
      }
      row.given = true;
      return row.set(spec, value);
    }
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("'{}' is no option of {}", printable(option),
                          spec.memory
                              ? "memory (name=, access=, fill=)"
                              : "a file (name=, access=, size=, create); a comma in a path is "
                                "written \\,"));
}

Result<void> set_target(RangeSpec& spec, const std::string& target) {
  spec.memory = target.starts_with(memory_prefix);
  if (!spec.memory) {
    if (target.empty()) {
      return fail(ErrorCode::invalid_argument, "the path is empty");
    }
    spec.path = target;
    return {};
  }
  if (auto set = set_size(spec, std::string_view(target).substr(memory_prefix.size())); !set) {
    return set;
  }
  if (spec.size_bytes == 0) {
    return fail(ErrorCode::invalid_argument, "memory of 0 bytes cannot be published");
  }
  return {};
}

Result<RangeSpec> parse_parts(const std::vector<std::string>& parts) {
  RangeSpec spec;
  Given given;
  if (auto set = set_target(spec, parts[0]); !set) {
    return fail(set.error());
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (auto set = set_option(spec, given, parts[i]); !set) {
      return fail(set.error());
    }
  }
  if (given.size != given.create) {
    return fail(ErrorCode::invalid_argument,
                given.size ? "size= is for a file to create: add create, or leave size= out"
                           : "create needs size=");
  }
  if (spec.create && spec.size_bytes == 0) {
    return fail(ErrorCode::invalid_argument, "a file of 0 bytes cannot be published");
  }
  return spec;
}

} // namespace

Result<RangeSpec> parse_range_spec(std::string_view text) {
  auto spec = parse_parts(split(text));
  if (!spec) {
    spec.error().message = fmt::format("RANGE '{}': {}", printable(text), spec.error().message);
  }
  return spec;
}

void fill_random(std::uint64_t seed, unsigned char* bytes, std::uint64_t length_bytes) {
  // splitmix64: every seed is a good one, and a word costs a few instructions.
  std::uint64_t state = seed;
  for (std::uint64_t at = 0; at < length_bytes; at += sizeof(std::uint64_t)) {
    state += 0x9E3779B97F4A7C15U;
    std::uint64_t word = state;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9U;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBU;
    word ^= word >> 31;
    std::memcpy(bytes + at, &word, std::min<std::uint64_t>(sizeof word, length_bytes - at));
  }
}

} // namespace wherry::cli

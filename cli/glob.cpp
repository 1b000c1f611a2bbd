#include "glob.h"

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace wherry::cli {
namespace {

// One step of a pattern: a set of bytes, taken once or any number of times.
struct Step {
  std::bitset<256> bytes;
  bool repeated = false;
};

std::bitset<256> only(char c) {
  std::bitset<256> set;
  set.set(static_cast<std::uint8_t>(c));
  return set;
}

std::bitset<256> all_but_slash() {
  std::bitset<256> set;
  set.set();
  set.reset('/');
  return set;
}

// The set that starts at pattern[at] == '['; moves `at` behind its ']'. An unfinished one leaves
// `at`.
std::bitset<256> bracket(std::string_view pattern, std::size_t& at) {
  std::size_t i = at + 1;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  i += negated ? 1 : 0;
  std::bitset<256> set;
  for (const std::size_t first = i; i < pattern.size(); ++i) {
    if (pattern[i] == ']' && i > first) {
      at = i + 1;
      set = negated ? ~set : set;
      set.reset('/');
      return set;
    }
    const auto low = static_cast<std::uint8_t>(pattern[i]);
    auto high = low;
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      high = static_cast<std::uint8_t>(pattern[i + 2]);
      i += 2;
    }
    for (unsigned byte = low; byte <= high; ++byte) {
      set.set(byte);
    }
  }
  return set;
}

std::vector<Step> compile(std::string_view pattern) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < pattern.size();) {
    const char c = pattern[i];
    if (c == '*') {
      const bool twice = i + 1 < pattern.size() && pattern[i + 1] == '*';
      steps.push_back({twice ? ~std::bitset<256>() : all_but_slash(), true});
      i += twice ? 2 : 1;
    } else if (c == '?') {
      steps.push_back({all_but_slash(), false});
      ++i;
    } else if (c == '\\' && i + 1 < pattern.size()) {
      steps.push_back({only(pattern[i + 1]), false});
      i += 2;
    } else {
      std::size_t next = i;
      const std::bitset<256> set = c == '[' ? bracket(pattern, next) : std::bitset<256>();
      steps.push_back({next > i ? set : only(c), false});
      i = next > i ? next : i + 1;
    }
  }
  return steps;
}

} // namespace

bool is_glob(std::string_view text) {
  return text.find_first_of("*?[\\") != std::string_view::npos;
}

bool glob_match(std::string_view pattern, std::string_view name) {
  const std::vector<Step> steps = compile(pattern);
  // here[i]: the bytes so far can be matched by the first i steps.
  std::vector<bool> here(steps.size() + 1);
  std::vector<bool> next(steps.size() + 1);
  const auto skip_repeated = [&](std::vector<bool>& states) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (states[i] && steps[i].repeated) {
        states[i + 1] = true;
      }
    }
  };
  here[0] = true;
  skip_repeated(here);
  for (const char c : name) {
    next.assign(next.size(), false);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (here[i] && steps[i].bytes.test(static_cast<std::uint8_t>(c))) {
        next[steps[i].repeated ? i : i + 1] = true;
      }
    }
    skip_repeated(next);
    here.swap(next);
  }
  return here[steps.size()];
}

} // namespace wherry::cli

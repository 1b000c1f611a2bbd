// A consumer's local range as its user knows it: which bytes are lent to requests, and what all
// others hold. Whatever is not lent for a READ never changes (R30).
#pragma once

#include "base/random.h"
#include "world/sim_files.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace wherry::world {

class LocalModel {
public:
  /// Host memory.
  LocalModel(std::string name, std::span<std::byte> memory);
  /// A file, all of it.
  LocalModel(std::string name, SimFiles& files, std::string path);
  LocalModel(const LocalModel&) = delete;
  LocalModel& operator=(const LocalModel&) = delete;

  const std::string& name() const { return name_; }
  std::uint64_t length() const { return shadow_.size(); }
  bool is_file() const { return files_ != nullptr; }

  /// A free place, with a byte left free on both sides, so that a byte too many shows.
  std::optional<std::uint64_t> lend(std::uint64_t length, SeededRandom& random);
  /// The request does not touch it any more.
  void give_back(std::uint64_t offset);
  /// What the user writes there.
  void put(std::uint64_t offset, std::span<const std::byte> bytes);
  std::span<const std::byte> bytes(std::uint64_t offset, std::uint64_t length) const;
  /// What is there now stays there.
  void note(std::uint64_t offset, std::uint64_t length);

  /// Whether these bytes are as the user knows them.
  std::optional<std::string> check(std::uint64_t offset, std::uint64_t length) const;
  /// All that is not lent.
  std::optional<std::string> check_free() const;

private:
  struct Lent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  std::span<const std::byte> live() const;
  bool is_free(std::uint64_t begin, std::uint64_t end) const;

  std::string name_;
  std::span<std::byte> memory_;
  SimFiles* files_ = nullptr;
  std::string path_;
  std::vector<std::byte> shadow_;
  std::vector<Lent> lent_; ///< In order.
};

} // namespace wherry::world

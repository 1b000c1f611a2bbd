#include "world/local_model.h"

#include "base/assert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace wherry::world {

LocalModel::LocalModel(std::string name, std::span<std::byte> memory)
    : name_(std::move(name)), memory_(memory), shadow_(memory.begin(), memory.end()) {}

LocalModel::LocalModel(std::string name, SimFiles& files, std::string path)
    : name_(std::move(name)), files_(&files), path_(std::move(path)),
      shadow_(files.content(path_)) {}

std::span<const std::byte> LocalModel::live() const {
  return files_ != nullptr ? std::span<const std::byte>(files_->content(path_)) : memory_;
}

bool LocalModel::is_free(std::uint64_t begin, std::uint64_t end) const {
  return std::none_of(lent_.begin(), lent_.end(), [&](const Lent& lent) {
    return begin <= lent.end && lent.begin <= end; // a byte between them
  });
}

std::optional<std::uint64_t> LocalModel::lend(std::uint64_t length, SeededRandom& random) {
  if (length > this->length()) {
    return std::nullopt;
  }
  for (int attempt = 0; attempt < 6; ++attempt) {
    const std::uint64_t begin = random.below(this->length() - length + 1);
    if (!is_free(begin, begin + length)) {
      continue;
    }
    if (length > 0) {
      const Lent lent{begin, begin + length};
      lent_.insert(std::upper_bound(lent_.begin(), lent_.end(), lent,
                                    [](const Lent& a, const Lent& b) { return a.begin < b.begin; }),
                   lent);
    }
    return begin;
  }
  return std::nullopt;
}

void LocalModel::give_back(std::uint64_t offset) {
  std::erase_if(lent_, [&](const Lent& lent) { return lent.begin == offset; });
}

void LocalModel::put(std::uint64_t offset, std::span<const std::byte> bytes) {
  WHERRY_ASSERT(offset + bytes.size() <= length());
  if (bytes.empty()) {
    return;
  }
  std::memcpy(shadow_.data() + offset, bytes.data(), bytes.size());
  if (files_ != nullptr) {
    files_->overwrite(path_, offset, bytes);
  } else {
    std::memcpy(memory_.data() + offset, bytes.data(), bytes.size());
  }
}

std::span<const std::byte> LocalModel::bytes(std::uint64_t offset, std::uint64_t length) const {
  return live().subspan(offset, length);
}

void LocalModel::note(std::uint64_t offset, std::uint64_t length) {
  const auto now = bytes(offset, length);
  std::copy(now.begin(), now.end(), shadow_.begin() + static_cast<std::ptrdiff_t>(offset));
}

std::optional<std::string> LocalModel::check(std::uint64_t offset, std::uint64_t length) const {
  const auto now = live();
  if (now.size() != shadow_.size()) {
    return fmt::format("{} has {} bytes where it had {}", name_, now.size(), shadow_.size());
  }
  if (length == 0 || std::memcmp(now.data() + offset, shadow_.data() + offset, length) == 0) {
    return std::nullopt;
  }
  const auto begin = shadow_.begin() + static_cast<std::ptrdiff_t>(offset);
  const auto end = begin + static_cast<std::ptrdiff_t>(length);
  const auto changed = std::mismatch(begin, end, now.data() + offset).first;
  return fmt::format("byte {} of {} changed, and no READ may touch it", changed - shadow_.begin(),
                     name_);
}

std::optional<std::string> LocalModel::check_free() const {
  std::uint64_t at = 0;
  for (const Lent& lent : lent_) {
    if (auto wrong = check(at, lent.begin - at)) {
      return wrong;
    }
    at = lent.end;
  }
  return check(at, length() - at);
}

} // namespace wherry::world

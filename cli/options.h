// What the command line said, one struct a command. Values only.
#pragma once

#include <wherry/capability.hpp>
#include <wherry/options.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace wherry::cli {

struct CommonOptions {
  bool json = false;
  LogLevel log_level = LogLevel::warning;
};

struct ServeOptions {
  std::string listen = "127.0.0.1:0";
  std::string advertise;
  std::string name;
  std::chrono::nanoseconds close_timeout = std::chrono::seconds(5);
  bool checksum = true;
  std::vector<std::string> ranges;
};

/// How a consumer reaches an owner.
struct PeerOptions {
  std::string reference;
  std::chrono::nanoseconds connect_timeout = std::chrono::seconds(5);
  PathKind path = PathKind::automatic;
};

/// What pull and push have in common.
struct TransferOptions {
  std::chrono::nanoseconds stall_timeout = std::chrono::seconds(30);
  std::optional<std::chrono::nanoseconds> timeout{};
  std::optional<std::uint32_t> lanes{};
  bool checksum = true;
  bool verify = false;
  bool progress = false;
};

struct DescribeOptions {
  PeerOptions peer;
};

struct PullOptions {
  PeerOptions peer;
  TransferOptions transfer;
  std::string dest; ///< Empty: the source's or the range's name here.
  std::vector<std::string> ranges;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length{};
  std::uint32_t jobs = 4;
  bool overwrite = false;
  bool fail_fast = false;
  bool dry_run = false;
  bool sync = true;
};

struct PushOptions {
  PeerOptions peer;
  TransferOptions transfer;
  std::vector<std::string> sources;
  std::optional<std::string> range{};
  std::uint64_t offset = 0;
};

struct DoctorOptions {
  PeerOptions peer; ///< An empty reference: no source is asked.
  std::optional<PathKind> require{};
};

struct VersionOptions {};

using CommandOptions = std::variant<ServeOptions, DescribeOptions, PullOptions, PushOptions,
                                    DoctorOptions, VersionOptions>;

} // namespace wherry::cli

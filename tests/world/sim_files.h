// Files in memory, with faults to order. Names point to inodes; an open descriptor keeps its inode,
// as in Unix, so that a file can be replaced or removed under an engine that has it open. One
// thread.
//
// Unkind where the kernel may be: reads and writes are short at random, and descriptor numbers are
// used again at once (a stale one finds another file).
#pragma once

#include "base/random.h"
#include "os/files.h"
#include "world/sim_clock.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace wherry {

struct SimFilesOptions {
  std::uint32_t short_io_one_in = 4; ///< 0: never.
  std::size_t open_files_max = 1024; ///< More is EMFILE.
};

/// The calls in which fail_next() can plant an error.
enum class SimFileCall : std::uint8_t { open, stat, read, write, read_small, replace_small };

class SimFiles final : public Files {
public:
  SimFiles(SimClock& clock, std::uint64_t seed, const SimFilesOptions& options = {})
      : clock_(clock), random_(seed), options_(options) {}

  // --- What the world does to the files, behind the engines' backs ---

  /// A new file (a new inode where the name exists already).
  void create(const std::string& path, std::vector<std::byte> content);
  void remove(const std::string& path);
  /// Shorter or longer (by zeros), in place: the inode stays.
  void resize(const std::string& path, std::size_t size_bytes);
  /// Other bytes in place, with a new mtime.
  void overwrite(const std::string& path, std::size_t offset, std::span<const std::byte> bytes);
  /// Refuses to be opened for writing (EACCES); reading goes on.
  void set_read_only(const std::string& path, bool read_only);
  /// A directory, device or pipe, as far as stat() tells.
  void set_regular(const std::string& path, bool regular);

  bool exists(const std::string& path) const { return names_.contains(path); }
  const std::vector<std::byte>& content(const std::string& path) const;
  FileStat stat_of(const std::string& path) const;
  std::size_t open_files() const { return open_.size(); }
  /// The call fails with `error` once, after `skip` good ones. Several may be planted in a row.
  void fail_next(SimFileCall call, int error, std::uint32_t skip = 0);
  void forget_planted() { planted_.clear(); }

  // --- What the engines see ---

  Result<FileDescriptor> open(const std::string& path, bool writable) override;
  void close(FileDescriptor file) override;
  Result<FileStat> stat(FileDescriptor file) override;
  IoResult read(FileDescriptor file, std::uint64_t offset, std::span<std::byte> into) override;
  IoResult write(FileDescriptor file, std::uint64_t offset,
                 std::span<const std::byte> from) override;
  Result<std::string> read_small(const std::string& path, std::size_t bytes_max) override;
  Result<void> replace_small(const std::string& path, std::string_view content) override;

private:
  struct Inode {
    std::uint64_t number = 0;
    std::vector<std::byte> content;
    std::int64_t mtime_ns = 0;
    bool read_only = false;
    bool regular = true;
  };
  struct Open {
    std::shared_ptr<Inode> inode;
    bool writable = false;
  };
  struct Planted {
    std::uint32_t skip;
    int error;
  };

  FileStat describe(const Inode& inode) const;
  Inode& named(const std::string& path) const;
  void touch(Inode& inode);
  int planted_error(SimFileCall call);
  std::size_t draw_count(std::size_t count);

  SimClock& clock_;
  SeededRandom random_;
  SimFilesOptions options_;
  std::map<std::string, std::shared_ptr<Inode>> names_;
  std::map<FileDescriptor, Open> open_;
  std::map<SimFileCall, std::deque<Planted>> planted_;
  std::uint64_t inodes_made_ = 0;
};

} // namespace wherry

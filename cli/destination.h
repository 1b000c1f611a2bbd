// Where a pull writes: part files below one directory, which become whole by a rename. Never
// outside that directory and never through a link in it, whatever the names are. One thread.
#pragma once

#include "interrupt.h"

#include <wherry/error.hpp>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace wherry::cli {

/// A descriptor, closed with its last owner.
class Descriptor {
public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

private:
  const int number_;
};

/// A file on its way. Dropping it removes it.
class PartFile {
public:
  PartFile(PartFile&&) noexcept = default;
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile();

  int descriptor() const { return file_->number(); }
  /// Of the part file, as a path from here: for register_file.
  const std::string& path() const { return path_; }

private:
  friend class Destination;
  PartFile(Interrupt& interrupt, std::shared_ptr<Descriptor> directory,
           std::unique_ptr<Descriptor> file, std::string path, std::string target);

  Interrupt* interrupt_;
  std::shared_ptr<Descriptor> directory_;
  std::unique_ptr<Descriptor> file_; // locked: another pull to the same target is told `busy`
  std::string path_;
  std::string target_;
};

class Destination {
public:
  struct Options {
    bool overwrite = false;
    bool sync = true;
  };

  /// The directory `root`, which is made where it is not there (its parent must be).
  /// Errors: invalid_argument, io_error.
  static Result<Destination> open(const std::string& root, Options options, Interrupt& interrupt);

  /// A target's path from here, for messages.
  std::string path_of(std::string_view target) const;

  /// Whether `target`, a safe name, could be completed now. Error: invalid_argument (it exists).
  Result<void> check_free(const std::string& target) const;

  /// The part file of `target`, with room for `length_bytes`, and the directories above it.
  /// Errors: busy (another process writes it), invalid_argument (a link, or no file, is in the
  /// way), io_error (with the disk's reason).
  Result<PartFile> create(const std::string& target, std::uint64_t length_bytes);

  /// Syncs the file and renames it to its target. Errors: invalid_argument (the target exists now),
  /// io_error.
  Result<void> complete(PartFile& part);

  /// Syncs the directories in which files were completed since the last call. Error: io_error.
  Result<void> sync_directories();

private:
  Destination(std::string root, std::shared_ptr<Descriptor> directory, Options options,
              Interrupt& interrupt);
  Result<std::shared_ptr<Descriptor>> directory_of(const std::string& target);
  Result<std::shared_ptr<Descriptor>> open_below(const std::shared_ptr<Descriptor>& parent,
                                                 const std::string& component,
                                                 const std::string& path);
  Result<std::unique_ptr<Descriptor>>
  open_locked(const Descriptor& directory, const std::string& name, const std::string& path) const;

  std::string root_;
  std::shared_ptr<Descriptor> directory_;
  Options options_;
  Interrupt* interrupt_;
  // The directory used last: neighbours come together.
  std::string recent_path_;
  std::shared_ptr<Descriptor> recent_;
  std::set<std::string> unsynced_; // directories, from the root; "" is the root
};

} // namespace wherry::cli

// How file ranges are read and written for a shard: asynchronous, into and from host buffers. The
// posix engine (path/file) serves it with pread and pwrite on the native worker.
#pragma once

#include "base/error.h"
#include "memory/range_table.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace wherry {

class FileIo;

/// Somebody who starts transfers and is told of their ends.
class FileTransferOwner;

/// One read or write. Owned by whoever starts it; must stay until its end was told.
struct FileTransfer {
  FileTransferOwner* owner = nullptr;
  NativeOwner* file = nullptr;
  std::uint64_t offset = 0; ///< In the range.
  std::byte* bytes = nullptr;
  std::uint32_t length_bytes = 0;
  bool write = false;
  std::unique_ptr<Error> error; ///< Result: null when all of it was moved.
  FileTransfer* next = nullptr; ///< For FileIo.
};

class FileTransferOwner {
public:
  virtual ~FileTransferOwner() = default;
  /// On the shard's leader. The transfer is the owner's again.
  virtual void on_transfer(FileTransfer& transfer) = 0;
};

class FileIo {
public:
  virtual ~FileIo() = default;
  /// False: no room now, try again later. The whole transfer is done, or it ends with an error:
  /// short reads and writes are continued inside, an early end of the file is an error.
  virtual bool start(FileTransfer& transfer) = 0;
  /// Tells owners about the ends that have come in; returns how many.
  virtual std::size_t deliver() = 0;
};

} // namespace wherry

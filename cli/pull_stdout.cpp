#include "pull_stdout.h"

#include "checksum.h"
#include "console.h"
#include "errors.h"
#include "verify.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace wherry::cli {
namespace {

constexpr std::uint64_t chunk_bytes = std::uint64_t{4} << 20;
constexpr std::size_t chunks_in_flight = 4;

class StdoutPull {
public:
  StdoutPull(Session& session, const PullOptions& options, const PullItem& item,
             TransferWindow& window)
      : session_(session), options_(options), item_(item), window_(window),
        chunks_((item.length_bytes + chunk_bytes - 1) / chunk_bytes) {}

  Result<void> run() {
    if (auto ready = prepare(); !ready) {
      return ready;
    }
    while (written_ < chunks_) {
      if (auto moved = step(); !moved) {
        window_.stop(moved.error());
        while (window_.in_flight() > 0) {
          window_.next();
        }
        return moved;
      }
    }
    return options_.transfer.verify ? verify() : Result<void>();
  }

private:
  struct Buffer {
    std::byte* bytes;
    Registration registration;
    bool filled = false;
  };

  static_assert(verify_piece_bytes % chunk_bytes == 0);

  std::uint64_t length_of(std::uint64_t chunk) const {
    return std::min(chunk_bytes, item_.length_bytes - chunk * chunk_bytes);
  }
  Buffer& buffer_of(std::uint64_t chunk) { return buffers_[chunk % chunks_in_flight]; }

  Result<void> prepare() {
    for (std::size_t i = 0; i < std::min<std::uint64_t>(chunks_in_flight, chunks_); ++i) {
      // The engine holds the memory for as long as anything may still touch it.
      std::shared_ptr<std::byte[]> memory(new std::byte[chunk_bytes]);
      std::byte* bytes = memory.get();
      auto registration =
          session_.engine.register_memory({bytes, chunk_bytes}, {.keep_alive = std::move(memory)});
      if (!registration) {
        return fail(registration.error());
      }
      buffers_.push_back({bytes, std::move(*registration)});
    }
    return {};
  }

  // Asks for what there is room for, waits for one chunk, writes what is next.
  Result<void> step() {
    for (; asked_ < std::min(chunks_, written_ + chunks_in_flight); ++asked_) {
      const std::array operations{Operation::read(buffer_of(asked_).registration, 0, item_.range,
                                                  item_.offset + asked_ * chunk_bytes,
                                                  length_of(asked_))};
      if (auto submitted = window_.submit(asked_, operations, false); !submitted) {
        return submitted;
      }
    }
    const TransferWindow::Ended ended = window_.next();
    if (const auto& stopped = window_.stopped()) {
      return fail(*stopped);
    }
    if (!ended.report.completed()) {
      return fail(ended.report.failure ? ended.report.failure->error
                                       : make_error(ErrorCode::cancelled, "the request was ended"));
    }
    buffer_of(ended.tag).filled = true;
    for (; written_ < chunks_ && buffer_of(written_).filled; ++written_) {
      if (auto wrote = write_next(); !wrote) {
        return wrote;
      }
    }
    return {};
  }

  Result<void> write_next() {
    Buffer& buffer = buffer_of(written_);
    const std::uint64_t length = length_of(written_);
    if (auto wrote = write_all(STDOUT_FILENO, {reinterpret_cast<const char*>(buffer.bytes), length},
                               "standard output");
        !wrote) {
      return wrote;
    }
    if (options_.transfer.verify) {
      hasher_.add({buffer.bytes, length});
      if ((written_ + 1) * chunk_bytes % verify_piece_bytes == 0 || written_ + 1 == chunks_) {
        pieces_.push_back(hasher_.take());
      }
    }
    buffer.filled = false;
    window_.worked(); // a slow reader is no stall of the owner's
    return {};
  }

  Result<void> verify() {
    const auto stopped = [this] {
      window_.check();
      return window_.stopped();
    };
    return verify_part(session_.remote, {item_.range, item_.offset, item_.length_bytes},
                       options_.transfer.stall_timeout, stopped,
                       [this](std::uint64_t at, std::uint64_t) -> Result<Digest> {
                         return pieces_[at / verify_piece_bytes];
                       });
  }

  Session& session_;
  const PullOptions& options_;
  const PullItem& item_;
  TransferWindow& window_;
  const std::uint64_t chunks_;
  std::uint64_t asked_ = 0;
  std::uint64_t written_ = 0;
  std::vector<Buffer> buffers_;
  Hasher hasher_;
  std::vector<Digest> pieces_;
};

} // namespace

TransferEnd pull_to_stdout(Session& session, const PullOptions& options, const PullItem& item,
                           TransferWindow& window) {
  TransferEnd end;
  end.files = 1;
  StdoutPull pull(session, options, item, window);
  if (auto done = pull.run(); !done) {
    end.failed.push_back({item.name, done.error()});
  } else {
    end.completed = 1;
  }
  return end;
}

} // namespace wherry::cli

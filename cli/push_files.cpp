#include "push_files.h"

#include "checksum.h"
#include "destination.h"
#include "errors.h"
#include "text.h"
#include "units.h"
#include "verify.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace wherry::cli {
namespace {

constexpr std::size_t requests_max = 4;

std::vector<Operation> operations_for(const PushItem& item, const Registration& registration) {
  std::vector<Operation> operations;
  const std::uint64_t step = operation_bytes(item.length_bytes);
  for (std::uint64_t at = 0; at < item.length_bytes; at += step) {
    operations.push_back(Operation::write(registration, at, item.target.range, item.offset + at,
                                          std::min(step, item.length_bytes - at)));
  }
  return operations;
}

} // namespace

std::string effect_text(RemoteEffect effect, std::uint64_t confirmed_bytes) {
  const std::string confirmed = fmt::format("{} bytes are confirmed in place", confirmed_bytes);
  switch (effect) {
  case RemoteEffect::none:
    return "";
  case RemoteEffect::applied:
    return "all bytes are in place";
  case RemoteEffect::partial:
    return confirmed + ", and nothing else changed";
  case RemoteEffect::acknowledged:
    return "the owner's network card took the bytes; nothing says that they are in place";
  case RemoteEffect::uncertain:
    return confirmed + "; other bytes of this push may have changed, and may go on changing";
  }
  return "";
}

TransferEnd FilePush::run(std::span<const PushItem> items, std::vector<PushedFile>& pushed) {
  items_ = items;
  pushed_ = &pushed;
  pushed.assign(items.size(), {});
  registrations_.resize(items.size());
  end_.files = items.size();
  std::size_t next = 0;
  for (;;) {
    window_.check();
    while (!window_.stopped() && window_.in_flight() < requests_max && next < items.size()) {
      start(next++);
    }
    if (window_.in_flight() == 0) {
      break;
    }
    const TransferWindow::Ended ended = window_.next();
    finish(static_cast<std::size_t>(ended.tag), ended.report);
  }
  end_.stopped = window_.stopped();
  return std::move(end_);
}

void FilePush::start(std::size_t index) {
  const PushItem& item = items_[index];
  if (item.length_bytes == 0) {
    (*pushed_)[index].completed = true;
    ++end_.completed;
    return;
  }
  auto registration = session_.engine.register_file(item.source, {.length = item.length_bytes});
  if (!registration) {
    fail_item(index, registration.error(), LocalDrain::drained);
    return;
  }
  const auto operations = operations_for(item, *registration);
  registrations_[index].emplace(std::move(*registration));
  if (auto submitted = window_.submit(index, operations, false); !submitted) {
    fail_item(index, submitted.error(), LocalDrain::drained);
  }
}

void FilePush::finish(std::size_t index, const Report& report) {
  PushedFile& file = (*pushed_)[index];
  file.effect = report.remote_effect;
  file.confirmed_bytes = report.completed_bytes;
  registrations_[index].reset();
  if (!report.completed()) {
    const Error ended =
        window_.stopped().value_or(make_error(ErrorCode::cancelled, "the request was ended"));
    // A cancelled request's own words say less than why we cancelled it.
    const bool cancelled = report.outcome == Outcome::cancelled || !report.failure;
    fail_item(index, cancelled ? ended : report.failure->error, report.local_drain);
    return;
  }
  if (options_.transfer.verify) {
    auto same = verify(items_[index]);
    window_.worked();
    if (!same) {
      fail_item(index, same.error(), report.local_drain);
      return;
    }
  }
  file.completed = true;
  ++end_.completed;
}

Result<void> FilePush::verify(const PushItem& item) {
  const Descriptor file(::open(item.source.c_str(), O_RDONLY | O_CLOEXEC));
  const std::string quoted = fmt::format("'{}'", printable(item.source));
  if (file.number() < 0) {
    return fail(system_error(ErrorCode::io_error, "open", errno, quoted));
  }
  const auto stopped = [this] {
    window_.check();
    return window_.stopped();
  };
  return verify_part(session_.remote, {item.target.range, item.offset, item.length_bytes},
                     options_.transfer.stall_timeout, stopped,
                     [&](std::uint64_t at, std::uint64_t length) {
                       return file_digest(file.number(), at, length, quoted);
                     });
}

void FilePush::fail_item(std::size_t index, Error error, LocalDrain drain) {
  const PushedFile& file = (*pushed_)[index];
  if (ends_session(error.code)) {
    window_.stop(error);
  }
  if (const std::string effect = effect_text(file.effect, file.confirmed_bytes); !effect.empty()) {
    error.message += "; " + effect;
  }
  end_.failed.push_back({items_[index].source, std::move(error), file.effect, drain});
}

} // namespace wherry::cli

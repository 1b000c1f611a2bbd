#include "pull_files.h"

#include "checksum.h"
#include "errors.h"
#include "text.h"
#include "verify.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace wherry::cli {
namespace {

constexpr std::uint64_t group_bytes_max = std::uint64_t{8} << 20;
constexpr std::size_t group_files_max = 32;

void add_operations(std::vector<Operation>& operations, const PullItem& item,
                    const Registration& registration) {
  const std::uint64_t step = operation_bytes(item.length_bytes);
  for (std::uint64_t at = 0; at < item.length_bytes; at += step) {
    operations.push_back(Operation::read(registration, at, item.range, item.offset + at,
                                         std::min(step, item.length_bytes - at)));
  }
}

// What a request of one file came to.
Error error_of(const Report& report) {
  if (report.failure) {
    return report.failure->error;
  }
  const bool timed_out = report.outcome == Outcome::timed_out;
  return make_error(timed_out ? ErrorCode::timed_out : ErrorCode::cancelled,
                    "the request was ended");
}

} // namespace

TransferEnd FilePull::run(std::span<const PullItem> items) {
  waiting_ = items;
  end_.files = items.size();
  for (;;) {
    window_.check();
    const std::size_t requests_max =
        std::min<std::size_t>(options_.jobs, TransferWindow::requests_max);
    while (!stopped() && window_.in_flight() < requests_max && can_start()) {
      start_group();
      window_.check();
    }
    if (window_.in_flight() == 0) {
      break;
    }
    finish_group();
  }
  alone_.clear();
  if (auto synced = destination_.sync_directories(); !synced) {
    end_.failed.push_back({".", synced.error()});
  }
  // Fail-fast stops the window too, but the file that failed is the reason.
  if (!failed_fast_) {
    end_.stopped = window_.stopped();
  }
  return std::move(end_);
}

// What goes once more has its file open already.
bool FilePull::can_start() const {
  return !alone_.empty() || (!waiting_.empty() && open_files_ < open_files_max_);
}

// Takes the next files and puts them on their way. Empty ones are finished on the spot.
void FilePull::start_group() {
  Group group;
  if (!alone_.empty()) {
    group.push_back(std::move(alone_.front()));
    alone_.pop_front();
  }
  std::uint64_t group_bytes = 0;
  const bool retried = !group.empty();
  while (!retried && !stopped() && !waiting_.empty() &&
         may_join(group, group_bytes, waiting_.front())) {
    const PullItem& item = waiting_.front();
    waiting_ = waiting_.subspan(1);
    auto member = prepare(item);
    if (!member) {
      fail_item(item, member.error(), LocalDrain::drained);
    } else if (item.length_bytes == 0) {
      finish(*member);
    } else {
      group_bytes += item.length_bytes;
      ++open_files_;
      group.push_back(std::move(*member));
    }
  }
  if (group.empty()) {
    return;
  }
  if (stopped()) {
    open_files_ -= group.size();
    return;
  }
  submit(std::move(group));
}

bool FilePull::may_join(const Group& group, std::uint64_t group_bytes, const PullItem& item) const {
  return group.empty() ||
         (group.size() < group_files_max && open_files_ < open_files_max_ &&
          item.length_bytes <= group_bytes_max - std::min(group_bytes, group_bytes_max));
}

Result<FilePull::Member> FilePull::prepare(const PullItem& item) {
  auto part = destination_.create(item.target, item.length_bytes);
  if (!part) {
    return fail(part.error());
  }
  Member member{&item, std::move(*part)};
  if (item.length_bytes > 0) {
    auto registration = session_.engine.register_file(
        member.part.path(), {.writable = true, .length = item.length_bytes});
    if (!registration) {
      return fail(registration.error());
    }
    member.registration.emplace(std::move(*registration));
  }
  return member;
}

void FilePull::submit(Group group) {
  std::vector<Operation> operations;
  for (const Member& member : group) {
    if (member.registration) { // one operation each, where there are several
      add_operations(operations, *member.item, *member.registration);
    }
  }
  const std::uint64_t tag = next_tag_++;
  const auto submitted = window_.submit(tag, operations, group.size() > 1);
  if (submitted) {
    groups_.emplace(tag, std::move(group));
    return;
  }
  // Admission is all or nothing: which of several was refused shows when each is alone.
  if (group.size() > 1 && !ends_session(submitted.error().code)) {
    std::move(group.begin(), group.end(), std::back_inserter(alone_));
    return;
  }
  for (const Member& member : group) {
    fail_member(member, submitted.error(), LocalDrain::drained);
  }
}

void FilePull::finish_group() {
  const TransferWindow::Ended ended = window_.next();
  auto node = groups_.extract(ended.tag);
  Group group = std::move(node.mapped());
  if (ended.report.completed()) {
    for (Member& member : group) {
      --open_files_;
      finish(member);
    }
    return;
  }
  if (stopped()) {
    open_files_ -= group.size();
    if (ended.report.local_drain == LocalDrain::unquiesced) {
      fail_item(*group.front().item, error_of(ended.report), LocalDrain::unquiesced);
    }
    return;
  }
  divide(std::move(group), ended.report);
}

// After a request that failed: the files that it brought are done, the one that it names has
// failed, the others of several go once more.
void FilePull::divide(Group group, const Report& report) {
  const Error error = error_of(report);
  for (std::size_t i = 0; i < group.size(); ++i) {
    const bool confirmed =
        i < report.operations.size() && report.operations[i] == OperationState::confirmed;
    if (group.size() > 1 && confirmed) {
      --open_files_;
      finish(group[i]);
    } else if (group.size() == 1 || ends_session(error.code) ||
               (report.failure && report.failure->operation == i)) {
      fail_member(group[i], error, report.local_drain);
    } else {
      alone_.push_back(std::move(group[i]));
    }
  }
}

void FilePull::finish(Member& member) {
  member.registration.reset();
  if (auto done = complete(member); !done) {
    fail_item(*member.item, done.error(), LocalDrain::drained);
  } else {
    ++end_.completed;
  }
  window_.worked();
}

Result<void> FilePull::complete(Member& member) {
  const PullItem& item = *member.item;
  if (options_.transfer.verify) {
    const auto ours = [&](std::uint64_t at, std::uint64_t length) {
      return file_digest(member.part.descriptor(), at, length, printable(member.part.path()));
    };
    const auto stopped = [&] {
      window_.check();
      return window_.stopped();
    };
    if (auto same = verify_part(session_.remote, {item.range, item.offset, item.length_bytes},
                                options_.transfer.stall_timeout, stopped, ours);
        !same) {
      return same;
    }
  }
  return destination_.complete(member.part);
}

void FilePull::fail_member(const Member& member, const Error& error, LocalDrain drain) {
  --open_files_;
  fail_item(*member.item, error, drain);
}

// A file's own failure is kept with its name; one of the session ends everything.
void FilePull::fail_item(const PullItem& item, const Error& error, LocalDrain drain) {
  if (ends_session(error.code) && drain != LocalDrain::unquiesced) {
    window_.stop(error);
    return;
  }
  end_.failed.push_back({item.name, error, RemoteEffect::none, drain});
  if (options_.fail_fast && !window_.stopped()) {
    failed_fast_ = true;
    window_.stop(error);
  }
}

} // namespace wherry::cli

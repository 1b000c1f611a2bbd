// R23, R28 and R37 for file ranges, at either end: whole bytes or the truth, and a file that is not
// what it was is noticed.
#include "conformance/conformance.h"

#include <algorithm>
#include <array>

namespace wherry::conformance {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

class FileRanges : public Conformance {
protected:
  void SetUp() override {
    Conformance::SetUp();
    WHERRY_NEEDS(files);
  }

  /// A file at the owner, published as "f".
  struct Published {
    std::string path;
    Registration registration;
    RemoteRange range;
  };
  Published publish(Pair& pair, const std::string& name, std::span<const std::byte> content,
                    Visibility visibility) {
    const std::string path = on().make_file(name, content);
    FileOptions options;
    options.visibility = visibility;
    Registration registration = must(pair.owner.register_file(path, options));
    must(pair.source->add(std::array{NamedRange(name, registration)}));
    RemoteRange range = must(pair.remote->range(name, soon()));
    EXPECT_EQ(range.kind, RangeKind::file);
    EXPECT_EQ(range.length_bytes, content.size());
    return {path, std::move(registration), range};
  }
  static Registration writable(TransferEngine& engine, const std::string& path) {
    FileOptions options;
    options.writable = true;
    return must(engine.register_file(path, options));
  }
  Bytes head_of(const std::string& path, std::size_t bytes) {
    Bytes content = on().file_content(path);
    content.resize(std::min(content.size(), bytes));
    return content;
  }
  void expect_changed(const Report& report) {
    ASSERT_EQ(report.outcome, Outcome::failed) << describe(report);
    EXPECT_EQ(report.failure->error.code, ErrorCode::range_changed) << describe(report);
    EXPECT_EQ(report.local_drain, LocalDrain::drained);
  }
};

// --- All four directions
// --------------------------------------------------------------------------

TEST_P(FileRanges, R37_a_remote_file_is_read_into_memory) {
  PairOptions options;
  options.my_bytes = 5 * mib;
  Pair pair(on(), options);
  const Bytes content = pattern(4 * mib + 333, 21);
  const Published file = publish(pair, "f", content, Visibility::remote_read);
  struct Row {
    std::size_t my_offset, offset, bytes;
  };
  for (const Row row : {Row{0, 0, 4 * mib + 333}, Row{7, 4095, 4097}, Row{1, 4 * mib + 332, 1},
                        Row{0, 262'143, 262'146}}) {
    const Report report = pair.run(
        {Operation::read(*pair.my_range, row.my_offset, file.range, row.offset, row.bytes)});
    EXPECT_TRUE(report.completed()) << describe(report);
    EXPECT_EQ(report.completed_bytes, row.bytes);
    EXPECT_TRUE(same(pair.mine(row.my_offset, row.bytes),
                     std::span(content).subspan(row.offset, row.bytes)));
  }
  EXPECT_GT(counter(pair.owner, "posix_reads_total"), 0U);
  EXPECT_EQ(counter(pair.owner, "posix_writes_total"), 0U);
  EXPECT_EQ(counter(pair.consumer, "posix_writes_total"), 0U);
}

TEST_P(FileRanges, R29_R37_memory_is_written_into_a_remote_file) {
  PairOptions options;
  options.my_bytes = 5 * mib;
  Pair pair(on(), options);
  Bytes content = pattern(4 * mib + 333, 21);
  const Published file = publish(pair, "f", content, Visibility::remote_read_write);
  const auto write = [&](std::size_t my_offset, std::size_t offset, std::size_t bytes) {
    const Report report =
        pair.run({Operation::write(*pair.my_range, my_offset, file.range, offset, bytes)});
    EXPECT_TRUE(report.completed()) << describe(report);
    EXPECT_EQ(report.remote_effect, RemoteEffect::applied);
    std::copy_n(pair.my_bytes->begin() + static_cast<std::ptrdiff_t>(my_offset), bytes,
                content.begin() + static_cast<std::ptrdiff_t>(offset));
    EXPECT_TRUE(same(on().file_content(file.path), content));
  };
  write(13, 4 * mib + 332, 1);
  write(7, 4095, 262'146);
  write(3, 0, 4 * mib + 333);
  EXPECT_GT(counter(pair.owner, "posix_writes_total"), 0U);
}

TEST_P(FileRanges, R37_local_files_take_reads_and_give_writes) {
  PairOptions options;
  options.their_bytes = 3 * mib;
  Pair pair(on(), options);
  Bytes content = pattern(3 * mib, 31);
  const std::string path = on().make_file("local", content);
  const Registration local = writable(pair.consumer, path);
  Report report = pair.run({Operation::write(local, 100, pair.range, 5, 2 * mib + 1)});
  EXPECT_TRUE(report.completed()) << describe(report);
  EXPECT_EQ(report.remote_effect, RemoteEffect::applied);
  EXPECT_TRUE(same(pair.theirs(5, 2 * mib + 1), std::span(content).subspan(100, 2 * mib + 1)));
  fill(*pair.their_bytes, 32);
  report = pair.run({Operation::read(local, 7, pair.range, 9, 2 * mib + 3)});
  EXPECT_TRUE(report.completed()) << describe(report);
  std::copy_n(pair.their_bytes->begin() + 9, 2 * mib + 3, content.begin() + 7);
  EXPECT_TRUE(same(on().file_content(path), content));
}

TEST_P(FileRanges, R37_files_move_to_files) {
  Pair pair(on());
  const Bytes theirs = pattern(3 * mib, 41);
  const Published file = publish(pair, "theirs", theirs, Visibility::remote_read_write);
  Bytes mine = pattern(4 * mib, 42);
  const std::string path = on().make_file("mine", mine);
  const Registration local = writable(pair.consumer, path);
  EXPECT_TRUE(pair.run({Operation::read(local, 1, file.range, 2, 3 * mib - 2)}).completed());
  std::copy(theirs.begin() + 2, theirs.end(), mine.begin() + 1);
  EXPECT_TRUE(same(on().file_content(path), mine));
  EXPECT_TRUE(pair.run({Operation::write(local, 0, file.range, 0, 3 * mib)}).completed());
  EXPECT_TRUE(same(on().file_content(file.path), std::span(mine).first(3 * mib)));
}

TEST_P(FileRanges, R37_a_range_is_a_part_of_its_file) {
  Pair pair(on());
  Bytes content = pattern(100'000, 51);
  const std::string path = on().make_file("part", content);
  FileOptions options;
  options.visibility = Visibility::remote_read_write;
  options.offset = 1000;
  options.length = 50'000;
  const Registration part = must(pair.owner.register_file(path, options));
  EXPECT_EQ(part.length(), 50'000U);
  must(pair.source->add(std::array{NamedRange("part", part)}));
  const RemoteRange range = must(pair.remote->range("part", soon()));
  EXPECT_TRUE(pair.run({Operation::read(*pair.my_range, 0, range, 0, 50'000)}).completed());
  EXPECT_TRUE(same(pair.mine(0, 50'000), std::span(content).subspan(1000, 50'000)));
  EXPECT_TRUE(refused(pair.remote->submit({Operation::read(*pair.my_range, 0, range, 1, 50'000)}),
                      ErrorCode::out_of_range));
  fill(*pair.my_bytes, 52);
  EXPECT_TRUE(pair.run({Operation::write(*pair.my_range, 0, range, 0, 50'000)}).completed());
  std::copy_n(pair.my_bytes->begin(), 50'000, content.begin() + 1000);
  EXPECT_TRUE(same(on().file_content(path), content)) << "the rest stays";
}

TEST_P(FileRanges, R43_more_files_than_may_be_open_are_served) {
  PairOptions options;
  options.owner.limits.open_files = 3;
  options.consumer.limits.open_files = 2;
  Pair pair(on(), options);
  constexpr std::size_t count = 24;
  std::vector<Published> files;
  std::vector<Registration> locals;
  std::vector<std::string> paths;
  std::vector<Bytes> contents;
  std::vector<Operation> operations;
  for (std::size_t i = 0; i < count; ++i) {
    contents.push_back(pattern(100 * kib + i, 60 + i));
    files.push_back(
        publish(pair, "f" + std::to_string(i), contents.back(), Visibility::remote_read));
    paths.push_back(on().make_file("l" + std::to_string(i), pattern(100 * kib + i, 1)));
    locals.push_back(writable(pair.consumer, paths.back()));
    operations.push_back(
        Operation::read(locals.back(), 0, files.back().range, 0, contents.back().size()));
  }
  const Report report = pair.run(operations);
  EXPECT_TRUE(report.completed()) << describe(report);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_TRUE(same(on().file_content(paths[i]), contents[i])) << i;
  }
  // Idle ones are bounded; those in use beyond it are at most the worker's threads.
  EXPECT_LE(counter(pair.owner, "open_files"), 5U);
  EXPECT_LE(counter(pair.consumer, "open_files"), 4U);
  EXPECT_EQ(counter(pair.owner, "staging_buffers"), 0U);
}

TEST_P(FileRanges, R43_little_staging_memory_is_enough) {
  PairOptions options;
  options.owner.limits.staging_bytes = 8 * mib;
  options.consumer.limits.staging_bytes = 8 * mib;
  options.lanes = 8;
  Pair pair(on(), options);
  const Bytes content = pattern(24 * mib, 71);
  const Published file = publish(pair, "f", content, Visibility::remote_read_write);
  const std::string path = on().make_file("l", Bytes(24 * mib));
  const Registration local = writable(pair.consumer, path);
  Request reading = pair.submit({Operation::read(local, 0, file.range, 0, 12 * mib)});
  Request writing =
      pair.submit({Operation::write(local, 12 * mib, file.range, 12 * mib, 12 * mib)});
  EXPECT_TRUE(reading.wait_drained(soon()).completed());
  EXPECT_TRUE(writing.wait_drained(soon()).completed());
  EXPECT_TRUE(same(head_of(path, 12 * mib), std::span(content).first(12 * mib)));
  EXPECT_TRUE(same(on().file_content(file.path), on().file_content(path)));
}

// --- R17 for files: what may be registered
// ----------------------------------------------------------

TEST_P(FileRanges, R17_files_that_cannot_be_used_are_refused_and_leave_nothing) {
  TransferEngine& engine = this->engine();
  const std::string path = on().make_file("f", pattern(1000, 1));
  const auto options = [](std::uint64_t offset, std::optional<std::uint64_t> length) {
    FileOptions made;
    made.offset = offset;
    made.length = length;
    return made;
  };
  EXPECT_TRUE(
      refused(engine.register_file(on().file_path("none")), ErrorCode::not_found, {"none"}));
  EXPECT_TRUE(refused(engine.register_file(path, options(1001, {})), ErrorCode::invalid_argument,
                      {"1000"}));
  EXPECT_TRUE(
      refused(engine.register_file(path, options(0, 1001)), ErrorCode::invalid_argument, {"1000"}));
  EXPECT_TRUE(
      refused(engine.register_file(path, options(1, UINT64_MAX)), ErrorCode::invalid_argument));
  EXPECT_TRUE(
      refused(engine.register_file(path, options(UINT64_MAX, 2)), ErrorCode::invalid_argument));
  const Variant::Unwritable unwritable = on().unwritable_file();
  FileOptions writing;
  writing.writable = true;
  EXPECT_TRUE(refused(engine.register_file(unwritable.path, writing), unwritable.code));
  writing = {};
  writing.visibility = Visibility::remote_read_write;
  EXPECT_TRUE(refused(engine.register_file(unwritable.path, writing), unwritable.code));
  writing.visibility = static_cast<Visibility>(9);
  EXPECT_TRUE(refused(engine.register_file(path, writing), ErrorCode::invalid_argument));
  EXPECT_EQ(counter(engine, "registrations"), 0U);
  EXPECT_EQ(counter(engine, "open_files"), 0U);
  EXPECT_EQ(must(engine.register_file(unwritable.path)).kind(), RangeKind::file);
}

TEST_P(FileRanges, R17_only_regular_files_are_registered) {
  WHERRY_NEEDS(raw);
  TransferEngine& engine = this->engine();
  EXPECT_TRUE(refused(engine.register_file("/"), ErrorCode::invalid_argument, {"regular"}));
  EXPECT_TRUE(refused(engine.register_file("/dev/zero"), ErrorCode::invalid_argument, {"regular"}));
  EXPECT_FALSE(engine.register_file(std::string("/dev/null\0x", 11)));
  EXPECT_FALSE(engine.register_file(""));
  EXPECT_EQ(counter(engine, "registrations"), 0U);
}

TEST_P(FileRanges, R17_an_empty_file_is_a_range_of_no_bytes) {
  Pair pair(on());
  const Published file = publish(pair, "empty", {}, Visibility::remote_read);
  const Report report = pair.run({Operation::read(*pair.my_range, 0, file.range, 0, 0)});
  EXPECT_TRUE(report.completed()) << describe(report);
  EXPECT_TRUE(refused(pair.remote->submit({Operation::read(*pair.my_range, 0, file.range, 0, 1)}),
                      ErrorCode::out_of_range));
}

TEST_P(FileRanges, R17_a_file_that_is_not_writable_is_no_target) {
  Pair pair(on());
  const Bytes content = pattern(4096, 1);
  const std::string path = on().make_file("mine", content);
  const Registration local = must(pair.consumer.register_file(path));
  EXPECT_TRUE(refused(pair.remote->submit({Operation::read(local, 0, pair.range, 0, 10)}),
                      ErrorCode::invalid_argument, {"not writable"}));
  const Published file = publish(pair, "theirs", content, Visibility::remote_read);
  EXPECT_TRUE(refused(pair.remote->submit({Operation::write(*pair.my_range, 0, file.range, 0, 1)}),
                      ErrorCode::access_denied));
  EXPECT_TRUE(same(on().file_content(path), content));
  EXPECT_TRUE(same(on().file_content(file.path), content));
}

// --- R23: a file that is not what it was
// --------------------------------------------------------------

TEST_P(FileRanges, R23_describe_tells_the_version_of_a_file) {
  Pair pair(on());
  const Published file = publish(pair, "f", pattern(12'345, 1), Visibility::remote_read);
  const Description description = must(pair.remote->describe({}, soon()));
  const auto found = std::find_if(description.ranges.begin(), description.ranges.end(),
                                  [](const RangeDescription& one) { return one.name == "f"; });
  ASSERT_NE(found, description.ranges.end());
  ASSERT_TRUE(found->version);
  EXPECT_EQ(found->version->size_bytes, 12'345U);
  EXPECT_NE(found->version->inode, 0U);
  EXPECT_EQ(found->evidence, "staged posix file");
}

TEST_P(FileRanges, R23_a_read_only_file_that_changed_answers_range_changed) {
  Pair pair(on());
  const Bytes content = pattern(64 * kib, 1);
  struct Row {
    const char* name;
    std::function<void(const std::string&)> change;
  };
  const Row rows[] = {
      {"replaced", [&](const std::string& path) { on().replace_file(path, content); }},
      {"touched", [&](const std::string& path) { on().touch_file(path); }},
      {"shorter", [&](const std::string& path) { on().resize_file(path, 64 * kib - 1); }},
      {"longer", [&](const std::string& path) { on().resize_file(path, 64 * kib + 1); }},
      {"empty", [&](const std::string& path) { on().resize_file(path, 0); }},
      {"removed", [&](const std::string& path) { on().remove_file(path); }},
  };
  for (const bool used : {false, true}) { // With and without an open descriptor.
    for (const Row& row : rows) {
      SCOPED_TRACE(row.name);
      const std::string name = std::string(row.name) + (used ? " used" : "");
      const Published file = publish(pair, name, content, Visibility::remote_read);
      const Operation operation = Operation::read(*pair.my_range, 0, file.range, 0, 4096);
      if (used) {
        EXPECT_TRUE(pair.run({operation}).completed());
      }
      row.change(file.path);
      expect_changed(pair.run({operation}));
      EXPECT_TRUE(
          refused(pair.remote->checksum(file.range, 0, 4096, soon()), ErrorCode::range_changed));
      EXPECT_TRUE(pair.works()) << "the lane goes on";
    }
  }
  EXPECT_EQ(counter(pair.consumer, "tcp_lanes_cut_total"), 0U);
}

TEST_P(FileRanges, R23_a_writable_file_may_change_but_not_be_replaced_or_cut_short) {
  Pair pair(on());
  const Bytes content = pattern(64 * kib, 1);
  const Published file = publish(pair, "f", content, Visibility::remote_read_write);
  on().touch_file(file.path);
  on().resize_file(file.path, 65 * kib);
  EXPECT_TRUE(pair.run({Operation::write(*pair.my_range, 0, file.range, 0, 4096)}).completed());
  EXPECT_TRUE(same(head_of(file.path, 4096), pair.mine(0, 4096)));
  on().resize_file(file.path, 1000);
  const Report report = pair.run({Operation::write(*pair.my_range, 0, file.range, 0, 4096)});
  expect_changed(report);
  EXPECT_EQ(report.completed_bytes, 0U);
  EXPECT_TRUE(report.remote_settled);
  expect_changed(pair.run({Operation::read(*pair.my_range, 0, file.range, 0, 4096)}));
  EXPECT_EQ(on().file_content(file.path).size(), 1000U) << "nothing made it longer";

  const Published other = publish(pair, "other", content, Visibility::remote_read_write);
  const Bytes replacement = pattern(64 * kib, 2);
  const Operation into_other = Operation::write(*pair.my_range, 0, other.range, 0, 4096);
  for (const bool open : {true, false}) { // A descriptor that is open finds the old file.
    if (open) {
      EXPECT_TRUE(pair.run({into_other}).completed());
    }
    on().replace_file(other.path, replacement);
    expect_changed(pair.run({into_other}));
    EXPECT_TRUE(same(on().file_content(other.path), replacement)) << "the replacement was touched";
  }
  EXPECT_TRUE(pair.works());
}

TEST_P(FileRanges, R23_R28_a_local_file_that_changed_fails_with_what_is_true) {
  Pair pair(on());
  const std::string path = on().make_file("mine", pattern(64 * kib, 1));
  const Registration local = must(pair.consumer.register_file(path));
  on().resize_file(path, 10);
  const Bytes theirs = *pair.their_bytes;
  const Report write = pair.run({Operation::write(local, 0, pair.range, 0, 64 * kib)});
  expect_changed(write);
  EXPECT_EQ(write.remote_effect, RemoteEffect::none);
  EXPECT_NE(write.failure->error.message.find("mine"), std::string::npos)
      << write.failure->error.message;
  EXPECT_TRUE(same(*pair.their_bytes, theirs));
  const std::string target = on().make_file("target", pattern(64 * kib, 1));
  const Registration into = writable(pair.consumer, target);
  on().replace_file(target, pattern(64 * kib, 2));
  expect_changed(pair.run({Operation::read(into, 0, pair.range, 0, 64 * kib)}));
  EXPECT_TRUE(same(on().file_content(target), pattern(64 * kib, 2)));
  EXPECT_TRUE(pair.works());
}

TEST_P(FileRanges, R28_one_changed_file_does_not_stop_a_batch_that_carries_on) {
  Pair pair(on());
  const Bytes content = pattern(64 * kib, 1);
  const Published first = publish(pair, "first", content, Visibility::remote_read);
  const Published changed = publish(pair, "changed", content, Visibility::remote_read);
  const Published last = publish(pair, "last", content, Visibility::remote_read);
  on().touch_file(changed.path);
  SubmitOptions options;
  options.per_operation = true;
  options.on_error = OnError::carry_on;
  const std::array operations{Operation::read(*pair.my_range, 0, first.range, 0, 64 * kib),
                              Operation::read(*pair.my_range, 64 * kib, changed.range, 0, 64 * kib),
                              Operation::read(*pair.my_range, 128 * kib, last.range, 0, 64 * kib),
                              pair.read(192 * kib, 64 * kib)};
  Report report = pair.run(operations, options);
  EXPECT_EQ(report.outcome, Outcome::failed) << describe(report);
  EXPECT_EQ(report.completed_ops, 1U);
  EXPECT_EQ(report.failure->operation, 1U);
  EXPECT_EQ(report.failure->error.code, ErrorCode::range_changed);
  EXPECT_EQ(report.operations, (std::vector{OperationState::confirmed, OperationState::failed,
                                            OperationState::confirmed, OperationState::confirmed}));
  EXPECT_TRUE(same(pair.mine(0, 64 * kib), content));
  EXPECT_TRUE(same(pair.mine(128 * kib, 64 * kib), content));
  EXPECT_TRUE(same(pair.mine(192 * kib, 64 * kib), pair.theirs(192 * kib, 64 * kib)));
}

TEST_P(FileRanges, R28_a_file_cut_short_under_way_leaves_a_true_prefix) {
  PairOptions options;
  options.my_bytes = 16 * mib;
  options.lanes = 1;
  Pair pair(on(), options);
  const Bytes content = pattern(16 * mib, 81);
  const Published file = publish(pair, "f", content, Visibility::remote_read);
  FaultNetwork& network = *on().node(pair.owner).network;
  network.pass_lane_writes(3 * mib + 5000);
  Request request = pair.submit({Operation::read(*pair.my_range, 0, file.range, 0, 16 * mib)});
  EXPECT_TRUE(run_until([&] { return request.report().completed_bytes >= 2 * mib; }));
  on().resize_file(file.path, 100);
  network.pass_lane_writes(FaultNetwork::unlimited);
  const Report report = request.wait_drained(soon());
  expect_changed(report);
  EXPECT_GE(report.completed_bytes, 2 * mib);
  EXPECT_TRUE(
      same(pair.mine(0, report.completed_bytes), std::span(content).first(report.completed_bytes)));
  EXPECT_TRUE(pair.works());
}

// --- Ends
// -------------------------------------------------------------------------------------------

TEST_P(FileRanges, R18_a_file_range_retires_and_its_file_is_closed) {
  Pair pair(on());
  Published file = publish(pair, "f", pattern(64 * kib, 1), Visibility::remote_read);
  EXPECT_TRUE(pair.run({Operation::read(*pair.my_range, 0, file.range, 0, 64 * kib)}).completed());
  EXPECT_EQ(counter(pair.owner, "open_files"), 1U);
  must(file.registration.retire(soon()));
  EXPECT_EQ(counter(pair.owner, "open_files"), 0U);
  EXPECT_TRUE(refused(pair.remote->submit({Operation::read(*pair.my_range, 0, file.range, 0, 1)}),
                      ErrorCode::range_withdrawn));
}

TEST_P(FileRanges, R30_R36_cancelling_file_transfers_drains_and_keeps_the_lane) {
  PairOptions options;
  options.lanes = 1;
  Pair pair(on(), options);
  const Published file = publish(pair, "f", pattern(16 * mib, 1), Visibility::remote_read_write);
  const std::string path = on().make_file("l", Bytes(16 * mib));
  const Registration local = writable(pair.consumer, path);
  for (const bool reading : {true, false}) {
    Request request = pair.submit({reading ? Operation::read(local, 0, file.range, 0, 16 * mib)
                                           : Operation::write(local, 0, file.range, 0, 16 * mib)});
    EXPECT_TRUE(run_until([&] {
      const Report report = request.report();
      return report.completed_bytes >= mib || report.outcome;
    }));
    request.cancel();
    const Report report = request.wait_drained(soon());
    EXPECT_EQ(report.local_drain, LocalDrain::drained) << describe(report);
    const std::size_t prefix = report.completed_bytes;
    EXPECT_TRUE(same(head_of(path, prefix), head_of(file.path, prefix)));
    EXPECT_TRUE(pair.works());
  }
  EXPECT_EQ(counter(pair.consumer, "tcp_lanes_cut_total"), 0U);
  EXPECT_EQ(counter(pair.consumer, "staging_buffers"), 0U);
}

INSTANTIATE_TEST_SUITE_P(all, FileRanges, moving(), provider_name);

} // namespace
} // namespace wherry::conformance

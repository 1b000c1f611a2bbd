// What an owner publishes (R20, R21, R23 to R25, R42): names, pages, access checks, epochs and the
// answer to a greeting.
#include "base/crc32c.h"
#include "source/source_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

namespace wherry {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

/// A source, and a table with something to publish.
class PublishedSourceTest : public ::testing::Test {
protected:
  std::uint64_t registered(Visibility visibility, std::uint64_t length_bytes = 64) {
    RangeSpec spec;
    spec.base = memory_.data();
    spec.length_bytes = length_bytes;
    spec.visibility = visibility;
    auto id = table_.add(std::move(spec));
    EXPECT_TRUE(id);
    return *id;
  }

  static RangeToPublish range(std::string name, std::uint64_t registration) {
    return {std::move(name), registration, std::nullopt, "direct host memory", {PathKind::tcp}};
  }

  Result<void> add(std::vector<RangeToPublish> ranges) { return source_.add(ranges, table_); }

  /// Publishes one range and gives its id.
  std::uint64_t published(const std::string& name, Visibility visibility,
                          std::uint64_t length_bytes = 64) {
    EXPECT_TRUE(add({range(name, registered(visibility, length_bytes))}));
    return source_.find(name)->id;
  }

  std::vector<std::string> names(std::uint64_t page = 0) const {
    std::vector<std::string> result;
    for (const RangeDescription& description : source_.describe(page).ranges) {
      result.push_back(description.name);
    }
    return result;
  }

  /// The code of a check; none when it passed.
  std::optional<ErrorCode> checked(std::uint64_t id, std::uint64_t offset, std::uint64_t length,
                                   Access access) const {
    const PublishedSource::Check check = source_.check(id, offset, length, access);
    return check.range == nullptr ? std::optional(check.code) : std::nullopt;
  }

  std::array<std::byte, 4096> memory_{};
  RangeTable table_{Limits{}};
  PublishedSource source_{"weights", 42};
};

TEST_F(PublishedSourceTest, R24_publishes_what_was_registered) {
  const std::uint64_t registration = registered(Visibility::remote_read, 100);
  RangeToPublish to_publish = range("layer0", registration);
  to_publish.version = FileVersion{1, 2, 3, 4};
  ASSERT_TRUE(add({to_publish}));
  const PublishedRange* found = source_.find("layer0");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->registration, registration);
  EXPECT_EQ(source_.find(found->id), found);

  const RangeDescription told = PublishedSource::describe(*found);
  EXPECT_EQ(told.name, "layer0");
  EXPECT_EQ(told.range.id, found->id);
  EXPECT_EQ(told.range.length_bytes, 100u);
  EXPECT_EQ(told.range.visibility, Visibility::remote_read);
  EXPECT_EQ(told.range.kind, RangeKind::host_memory);
  EXPECT_EQ(told.version, to_publish.version);
  EXPECT_THAT(told.routes, ElementsAre(PathKind::tcp));
  EXPECT_EQ(told.evidence, "direct host memory");
}

TEST_F(PublishedSourceTest, R24_a_batch_with_one_bad_range_publishes_none) {
  ASSERT_TRUE(add({range("taken", registered(Visibility::remote_read))}));
  const std::uint64_t good = registered(Visibility::remote_read);
  const std::uint64_t retiring = registered(Visibility::remote_read);
  ASSERT_TRUE(table_.begin_retire(retiring));
  RangeToPublish winding = range("winding", good);
  winding.routes.assign(17, PathKind::tcp);
  struct Row {
    RangeToPublish bad;
    ErrorCode code;
    std::string_view message;
  };
  const Row rows[] = {
      {range("", good), ErrorCode::invalid_argument, "range name \"\" is not 1 to 4095 bytes"},
      {range(std::string(4096, 'n'), good), ErrorCode::invalid_argument, "nnn...\" is not 1 to"},
      {range(std::string("a\0b", 3), good), ErrorCode::invalid_argument, "\"a\\x00b\""},
      {range("taken", good), ErrorCode::invalid_argument,
       "two ranges of source \"weights\" are called \"taken\""},
      {range("first", good), ErrorCode::invalid_argument, "are called \"first\""},
      {range("private", registered(Visibility::local_only)), ErrorCode::access_denied,
       "range \"private\": its registration is local_only"},
      {range("nothing", 12345), ErrorCode::invalid_argument, "range \"nothing\": "},
      {range("zero", 0), ErrorCode::invalid_argument, "range \"zero\": "},
      {range("ending", retiring), ErrorCode::invalid_argument, "range \"ending\": "},
      {winding, ErrorCode::invalid_argument, "range \"winding\" has 17 routes"},
  };
  for (const Row& row : rows) {
    const auto added = add({range("first", good), row.bad, range("last", good)});
    ASSERT_FALSE(added) << row.message;
    EXPECT_EQ(added.error().code, row.code) << added.error().message;
    EXPECT_THAT(added.error().message, HasSubstr(std::string(row.message)));
    EXPECT_EQ(source_.size(), 1u);
    EXPECT_THAT(names(), ElementsAre("taken"));
    EXPECT_EQ(source_.find("first"), nullptr);
    EXPECT_TRUE(source_.publishing(good).empty());
  }
  EXPECT_TRUE(add({}));
}

TEST_F(PublishedSourceTest, R24_one_registration_may_have_several_names) {
  const std::uint64_t shared = registered(Visibility::remote_read);
  ASSERT_TRUE(add({range("a", shared), range("b", shared)}));
  published("c", Visibility::remote_read);
  const std::uint64_t a = source_.find("a")->id;
  const std::uint64_t b = source_.find("b")->id;
  EXPECT_THAT(source_.publishing(shared), UnorderedElementsAre(a, b));
  source_.recall(a);
  EXPECT_THAT(source_.publishing(shared), UnorderedElementsAre(a, b));
  source_.remove(a);
  EXPECT_THAT(source_.publishing(shared), ElementsAre(b));
  source_.remove(b);
  EXPECT_TRUE(source_.publishing(shared).empty());
  EXPECT_THAT(names(), ElementsAre("c"));
}

TEST_F(PublishedSourceTest, R24_a_recalled_range_is_served_and_not_told) {
  const std::uint64_t id = published("layer0", Visibility::remote_read_write);
  source_.recall(id);
  source_.recall(id);
  EXPECT_EQ(source_.find("layer0"), nullptr);
  EXPECT_TRUE(names().empty());
  EXPECT_EQ(checked(id, 0, 64, Access::write), std::nullopt);
  EXPECT_TRUE(source_.find(id)->recalled);

  // The name is free again, and the old range's end does not take the new one's name.
  const std::uint64_t successor = published("layer0", Visibility::remote_read);
  EXPECT_NE(successor, id);
  source_.remove(id);
  ASSERT_NE(source_.find("layer0"), nullptr);
  EXPECT_EQ(source_.find("layer0")->id, successor);
}

TEST_F(PublishedSourceTest, R24_a_removed_range_is_withdrawn_and_an_unknown_one_not_found) {
  const std::uint64_t first = published("layer0", Visibility::remote_read);
  source_.remove(first);
  source_.remove(first);
  EXPECT_EQ(checked(first, 0, 1, Access::read), ErrorCode::range_withdrawn);
  EXPECT_EQ(source_.size(), 0u);

  const std::uint64_t second = published("layer0", Visibility::remote_read);
  ASSERT_EQ(id_slot(first), id_slot(second));
  EXPECT_EQ(checked(first, 0, 1, Access::read), ErrorCode::range_withdrawn);
  EXPECT_EQ(checked(second, 0, 1, Access::read), std::nullopt);

  const std::uint32_t slot = id_slot(second);
  const std::uint32_t generation = id_generation(second);
  for (const std::uint64_t never :
       {std::uint64_t{0}, make_id(slot, 0), make_id(slot, generation + 1),
        make_id(slot, UINT32_MAX), make_id(slot + 1, 1), make_id(63, 1), make_id(64, 1),
        make_id(UINT32_MAX, 1), UINT64_MAX}) {
    EXPECT_EQ(checked(never, 0, 1, Access::read), ErrorCode::not_found) << never;
  }
  source_.remove(second);
  EXPECT_EQ(checked(make_id(slot, generation + 1), 0, 1, Access::read), ErrorCode::not_found);
}

TEST_F(PublishedSourceTest, R25_access_is_checked_without_overflow) {
  const std::uint64_t readable = published("readable", Visibility::remote_read, 100);
  const std::uint64_t writable = published("writable", Visibility::remote_read_write, 100);
  struct Row {
    std::string_view name;
    std::uint64_t id, offset, length_bytes;
    Access access;
    std::optional<ErrorCode> refused;
  };
  const auto out = ErrorCode::out_of_range;
  const Row rows[] = {
      {"whole", readable, 0, 100, Access::read, {}},
      {"last byte", readable, 99, 1, Access::read, {}},
      {"nothing at the end", readable, 100, 0, Access::read, {}},
      {"one too long", readable, 0, 101, Access::read, out},
      {"one too far", readable, 100, 1, Access::read, out},
      {"begins beyond", readable, 101, 0, Access::read, out},
      {"sum wraps to 0", readable, 1, UINT64_MAX, Access::read, out},
      {"sum wraps into the range", readable, UINT64_MAX - 9, 20, Access::read, out},
      {"greatest of both", readable, UINT64_MAX, UINT64_MAX, Access::read, out},
      {"write to readable", readable, 0, 1, Access::write, ErrorCode::access_denied},
      {"write to writable", writable, 0, 100, Access::write, {}},
      {"read of writable", writable, 50, 50, Access::read, {}},
      {"write beyond", writable, 50, 51, Access::write, out},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(checked(row.id, row.offset, row.length_bytes, row.access), row.refused) << row.name;
  }
  EXPECT_EQ(source_.check(writable, 0, 1, Access::write).range, source_.find(writable));
}

TEST_F(PublishedSourceTest, R23_pages_tell_every_range_once_in_order) {
  for (const std::size_t count : {0u, 1u, 255u, 256u, 257u, 512u, 1000u}) {
    PublishedSource source("many", 1);
    const std::uint64_t registration = registered(Visibility::remote_read);
    std::vector<RangeToPublish> ranges;
    ranges.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      ranges.push_back(range("r" + std::to_string(i), registration));
    }
    ASSERT_TRUE(source.add(ranges, table_));
    std::vector<std::string> told;
    std::uint64_t page = 0;
    std::size_t pages = 0;
    do {
      const wire::DescribeReply reply = source.describe(page);
      EXPECT_LE(reply.ranges.size(), wire::describe_page_max);
      for (const RangeDescription& description : reply.ranges) {
        EXPECT_EQ(description.name, "r" + std::to_string(told.size()));
        told.push_back(description.name);
      }
      EXPECT_TRUE(reply.next == 0 || reply.next > page);
      page = reply.next;
      ++pages;
    } while (page != 0);
    EXPECT_EQ(told.size(), count);
    EXPECT_EQ(pages, std::max<std::size_t>(1, (count + 255) / 256)) << count;
  }
}

TEST_F(PublishedSourceTest, R23_pages_of_long_descriptions_fit_a_control_message) {
  std::vector<RangeToPublish> ranges;
  const std::uint64_t registration = registered(Visibility::remote_read);
  for (int i = 0; i < 300; ++i) {
    RangeToPublish long_one = range(std::to_string(1000 + i), registration);
    long_one.name.resize(wire::name_bytes_max, 'n');
    long_one.evidence = std::string(10'000, 'e');
    ranges.push_back(long_one);
  }
  ASSERT_TRUE(add(ranges));
  std::set<std::string> told;
  std::uint64_t page = 0;
  do {
    const wire::DescribeReply reply = source_.describe(page);
    ASSERT_FALSE(reply.ranges.empty());
    EXPECT_LE(wire::encode(reply).size(),
              wire::control_header_bytes + wire::control_body_bytes_max);
    for (const RangeDescription& description : reply.ranges) {
      EXPECT_TRUE(told.insert(description.name).second);
    }
    page = reply.next;
  } while (page != 0);
  EXPECT_EQ(told.size(), 300u);
}

TEST_F(PublishedSourceTest, R23_what_comes_and_goes_between_pages_hides_no_other_range) {
  const std::uint64_t registration = registered(Visibility::remote_read);
  std::vector<RangeToPublish> ranges;
  ranges.reserve(600);
  for (int i = 0; i < 600; ++i) {
    ranges.push_back(range(std::to_string(i), registration));
  }
  ASSERT_TRUE(add(ranges));
  std::set<std::string> told;
  const auto hear = [&](const wire::DescribeReply& reply) {
    for (const RangeDescription& description : reply.ranges) {
      EXPECT_TRUE(told.insert(description.name).second) << description.name;
    }
    return reply.next;
  };
  const std::uint64_t second = hear(source_.describe(0));
  // Told and untold ones go, the one that the next page starts with among them; their slots are
  // taken again.
  for (const std::string name : {"0", "7", "256", "300", "599"}) {
    source_.remove(source_.find(name)->id);
  }
  source_.recall(source_.find("400")->id);
  ASSERT_TRUE(add({range("new 1", registration), range("new 2", registration)}));
  for (std::uint64_t page = second; page != 0;) {
    page = hear(source_.describe(page));
  }
  for (int i = 0; i < 600; ++i) {
    const bool gone = i == 256 || i == 300 || i == 400 || i == 599;
    EXPECT_EQ(told.contains(std::to_string(i)), !gone) << i;
  }
}

TEST_F(PublishedSourceTest, R42_pages_that_nobody_was_given_are_empty_or_later_ranges) {
  published("a", Visibility::remote_read);
  published("b", Visibility::remote_read);
  EXPECT_THAT(names(1), ElementsAre("b"));
  for (const std::uint64_t page :
       {std::uint64_t{2}, std::uint64_t{UINT32_MAX}, std::uint64_t{UINT32_MAX} + 1, UINT64_MAX}) {
    EXPECT_TRUE(names(page).empty()) << page;
    EXPECT_EQ(source_.describe(page).next, 0u) << page;
  }
}

TEST_F(PublishedSourceTest, R23_no_next_page_when_only_recalled_ranges_follow) {
  const std::uint64_t registration = registered(Visibility::remote_read);
  std::vector<RangeToPublish> ranges;
  ranges.reserve(260);
  for (int i = 0; i < 260; ++i) {
    ranges.push_back(range(std::to_string(i), registration));
  }
  ASSERT_TRUE(add(ranges));
  EXPECT_NE(source_.describe(0).next, 0u);
  for (int i = 256; i < 260; ++i) {
    source_.recall(source_.find(std::to_string(i))->id);
  }
  EXPECT_EQ(source_.describe(0).ranges.size(), 256u);
  EXPECT_EQ(source_.describe(0).next, 0u);
}

// -- epochs --------------------------------------------------------------------------------------

/// Says what it is told to, then that again.
class FixedRandom final : public Random {
public:
  explicit FixedRandom(std::vector<std::uint64_t> values) : values_(std::move(values)) {}
  void fill(std::span<std::byte> out) override {
    const std::uint64_t value = values_[std::min(next_++, values_.size() - 1)];
    std::memcpy(out.data(), &value, std::min(out.size(), sizeof value));
  }

private:
  std::vector<std::uint64_t> values_;
  std::size_t next_ = 0;
};

std::string epoch_file(std::string_view epoch) {
  const std::string text = "wherry epoch " + std::string(epoch);
  return text + " crc " + std::to_string(crc32c(std::as_bytes(std::span(text)))) + "\n";
}

constexpr std::uint64_t epoch_max = (std::uint64_t{1} << 53) - 1;

TEST(Epoch, R20_random_epochs_have_52_bits_and_are_never_0) {
  FixedRandom ones({UINT64_MAX});
  EXPECT_EQ(random_epoch(ones), (std::uint64_t{1} << 52) - 1);
  FixedRandom zeros({0, 4095, 5 << 12});
  EXPECT_EQ(random_epoch(zeros), 5u);

  SeededRandom random(1);
  std::uint64_t bits_seen = 0;
  for (int i = 0; i < 200; ++i) {
    bits_seen |= random_epoch(random);
  }
  EXPECT_EQ(bits_seen, (std::uint64_t{1} << 52) - 1);
}

TEST(Epoch, R20_an_epoch_file_begins_with_a_random_epoch) {
  FixedRandom random({1234 << 12});
  const auto first = next_epoch("", random);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->epoch, 1234u);
  EXPECT_EQ(first->content, "wherry epoch 1234 crc 997669487\n");
}

TEST(Epoch, R20_epochs_of_a_file_strictly_increase) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SeededRandom random(seed);
    std::string content;
    std::uint64_t last = 0;
    for (int i = 0; i < 20; ++i) {
      const auto next = next_epoch(content, random);
      ASSERT_TRUE(next);
      EXPECT_GT(next->epoch, last);
      EXPECT_LE(next->epoch, epoch_max);
      EXPECT_EQ(next->content, epoch_file(std::to_string(next->epoch)));
      last = next->epoch;
      content = next->content;
    }
  }
}

TEST(Epoch, R20_a_file_that_comes_back_leads_to_another_epoch) {
  const std::string backup = epoch_file("1000");
  SeededRandom random(3);
  const auto first = next_epoch(backup, random);
  const auto second = next_epoch(backup, random);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->epoch, second->epoch);
}

TEST(Epoch, R20_the_last_epochs_of_a_file_are_used_and_then_refused) {
  FixedRandom large({UINT64_MAX});
  const auto last = next_epoch(epoch_file(std::to_string(epoch_max - 1)), large);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->epoch, epoch_max);
  EXPECT_EQ(last->content, "wherry epoch 9007199254740991 crc 3286905780\n");
  const auto none = next_epoch(last->content, large);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(none.error().message, HasSubstr("used up"));
}

TEST(Epoch, R20_R42_a_file_that_we_did_not_write_is_refused) {
  const std::string good = epoch_file("1234");
  const std::string rows[] = {
      "1234\n",
      "wherry epoch ",
      "wherry epoch 1234",
      "wherry epoch 1234 crc 0\n",
      good + "\n",
      good + good,
      good + std::string(1, '\0'),
      " " + good,
      epoch_file("0"),
      epoch_file("01234"),
      epoch_file("-1"),
      epoch_file("+1"),
      epoch_file(" 1"),
      epoch_file("0x12"),
      epoch_file(""),
      epoch_file("9007199254740992"),
      epoch_file("18446744073709551616"),
      std::string(1 << 20, '9'),
  };
  SeededRandom random(1);
  for (const std::string& content : rows) {
    const auto next = next_epoch(content, random);
    ASSERT_FALSE(next) << content.substr(0, 100);
    EXPECT_EQ(next.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(next.error().message, HasSubstr("not an epoch file, or a damaged one"));
  }
  ASSERT_TRUE(next_epoch(good, random));
  for (std::size_t kept = 1; kept < good.size(); ++kept) {
    EXPECT_FALSE(next_epoch(std::string_view(good).substr(0, kept), random)) << kept;
  }
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string flipped = good;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(next_epoch(flipped, random)) << flipped;
  }
}

// -- greetings -----------------------------------------------------------------------------------

EngineId engine(std::uint8_t value) {
  EngineId id;
  id.bytes.fill(value);
  return id;
}

TEST(Refuse, R21_a_greeting_is_held_to_its_binding) {
  const PublishedSource source("weights", 42);
  struct Row {
    std::string_view name;
    bool published;
    std::uint64_t expected_epoch;
    std::optional<EngineId> expected_owner;
    std::optional<ErrorCode> refused;
    std::uint64_t current_epoch;
    std::string_view message;
  };
  const auto stale = ErrorCode::stale_epoch;
  const auto gone = ErrorCode::not_found;
  const Row rows[] = {
      {"asks for the current one", true, 0, {}, {}, 0, ""},
      {"states the epoch", true, 42, {}, {}, 0, ""},
      {"is bound", true, 42, engine(1), {}, 0, ""},
      {"states an older epoch",
       true,
       41,
       {},
       stale,
       42,
       "source \"weights\" has epoch 42 now, not 41"},
      {"states a newer epoch", true, UINT64_MAX, {}, stale, 42, "not 18446744073709551615"},
      {"is bound to an older epoch", true, 41, engine(1), stale, 42, "has epoch 42 now"},
      {"is bound to another engine", true, 42, engine(2), stale, 42,
       "engine 01010101010101010101010101010101 serves this address now, not engine 0202"},
      {"is bound to another engine, both differ", true, 41, engine(2), stale, 42, "serves this"},
      {"asks for a source that is not here",
       false,
       0,
       {},
       gone,
       0,
       "no source is called \"weights\""},
      {"states the epoch of a source that is not here", false, 42, {}, gone, 0, "no source"},
      {"is bound to a source that is gone", false, 42, engine(1), gone, 0, "no source is called"},
      {"is bound to another engine, without the source", false, 42, engine(2), stale, 0, "serves"},
  };
  for (const Row& row : rows) {
    wire::Hello hello;
    hello.name = "weights";
    hello.expected_epoch = row.expected_epoch;
    hello.expected_owner = row.expected_owner;
    const auto refused = refuse(hello, row.published ? &source : nullptr, engine(1));
    ASSERT_EQ(refused.has_value(), row.refused.has_value()) << row.name;
    if (refused) {
      EXPECT_EQ(refused->code, *row.refused) << row.name;
      EXPECT_EQ(refused->current_epoch, row.current_epoch) << row.name;
      EXPECT_THAT(refused->message, HasSubstr(std::string(row.message))) << row.name;
    }
  }
}

TEST(Refuse, R42_a_name_from_a_peer_comes_back_printable_and_short) {
  wire::Hello hello;
  hello.name = "\x1b[31m\n\"" + std::string(4000, '\xff');
  const auto refused = refuse(hello, nullptr, engine(1));
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->message.starts_with("no source is called \"\\x1b[31m\\x0a\\x22\\xff\\xff"));
  EXPECT_LT(refused->message.size(), 1000u);
  EXPECT_TRUE(std::all_of(refused->message.begin(), refused->message.end(),
                          [](char c) { return c >= ' ' && c <= '~'; }));
}

} // namespace
} // namespace wherry

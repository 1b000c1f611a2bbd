// R1 to R4: what an engine says it can do, and that nothing takes the place of what it cannot.
#include "conformance/conformance.h"

#include <algorithm>
#include <array>

namespace wherry::conformance {
namespace {

constexpr std::array unbuilt = {PathKind::io_uring, PathKind::rdma, PathKind::cuda, PathKind::gds};

class Capabilities : public Conformance {};

TEST_P(Capabilities, R1_every_path_answers_four_questions_and_every_no_has_its_reason) {
  const auto all = engine().capabilities();
  for (const PathKind path : {PathKind::tcp, PathKind::posix, PathKind::io_uring, PathKind::rdma,
                              PathKind::cuda, PathKind::gds}) {
    const auto of_path = [&](const PathCapability& one) { return one.path == path; };
    ASSERT_EQ(std::count_if(all.begin(), all.end(), of_path), 1) << to_string(path);
    const PathCapability& capability = *std::find_if(all.begin(), all.end(), of_path);
    for (const Fact* fact :
         {&capability.built, &capability.loadable, &capability.discovered, &capability.ready}) {
      EXPECT_TRUE(fact->answer != Answer::no || !fact->reason.empty()) << to_string(path);
    }
    if (std::find(unbuilt.begin(), unbuilt.end(), path) != unbuilt.end()) {
      EXPECT_EQ(capability.built.answer, Answer::no) << to_string(path);
      EXPECT_NE(capability.built.reason.find(to_string(path)), std::string::npos)
          << capability.built.reason;
      EXPECT_NE(capability.ready.answer, Answer::yes);
    } else {
      EXPECT_EQ(capability.built.answer, Answer::yes) << to_string(path);
      EXPECT_EQ(capability.loadable.answer, Answer::yes);
      EXPECT_EQ(capability.discovered.answer, Answer::yes);
      EXPECT_EQ(capability.ready.answer, Answer::not_asked) << "no peer was named";
    }
  }
  EXPECT_EQ(all.size(), 6U) << "`automatic` is a wish, never an answer";
}

TEST_P(Capabilities, R1_R16_routes_tell_whether_a_source_can_be_reached_now) {
  Pair pair(on());
  const auto routes = pair.remote->routes();
  ASSERT_EQ(routes.size(), 1U);
  EXPECT_EQ(routes.front().path, PathKind::tcp);
  EXPECT_EQ(routes.front().ready.answer, Answer::yes);
  EXPECT_EQ(routes.front().lanes, 2U) << "the default";
  must(pair.consumer.close(soon()));
  EXPECT_EQ(pair.remote->routes().front().ready.answer, Answer::no);
  EXPECT_FALSE(pair.remote->routes().front().ready.reason.empty());
}

TEST_P(Capabilities, R4_a_path_that_is_not_built_is_refused_by_name_and_nothing_falls_back) {
  Pair pair(on());
  const Bytes mine = *pair.my_bytes;
  const std::uint64_t requests = counter(pair.consumer, "requests_submitted_total");
  std::vector<PathKind> paths(unbuilt.begin(), unbuilt.end());
  paths.push_back(PathKind::posix); // Built, and no way to a peer.
  paths.push_back(static_cast<PathKind>(99));
  for (const PathKind path : paths) {
    SubmitOptions submit;
    submit.path = path;
    EXPECT_TRUE(refused(pair.remote->submit({pair.read(0, 100)}, submit), ErrorCode::unavailable,
                        {to_string(path), "tcp"}));
    OpenOptions open;
    open.path = path;
    EXPECT_TRUE(refused(pair.consumer.open(pair.source->reference(), open), ErrorCode::unavailable,
                        {to_string(path), "tcp"}));
  }
  EXPECT_EQ(counter(pair.consumer, "requests_submitted_total"), requests);
  EXPECT_EQ(counter(pair.consumer, "remotes"), 1U);
  EXPECT_EQ(counter(pair.owner, "sessions_opened_total"), 1U);
  EXPECT_TRUE(same(*pair.my_bytes, mine));
  EXPECT_EQ(on().served().here, 0U);
  SubmitOptions tcp;
  tcp.path = PathKind::tcp;
  const Report report = pair.run({pair.read(0, 100)}, tcp);
  EXPECT_TRUE(report.completed());
  EXPECT_EQ(report.path, PathKind::tcp);
  EXPECT_EQ(on().served().here, 1U);
}

TEST_P(Capabilities, R4_R37_a_file_engine_that_is_not_built_is_refused_by_name) {
  WHERRY_NEEDS(files);
  TransferEngine& engine = this->engine();
  const std::string path = on().make_file("file", pattern(4096, 1));
  for (const PathKind wished : {PathKind::io_uring, PathKind::gds, PathKind::tcp, PathKind::rdma}) {
    FileOptions options;
    options.engine = wished;
    EXPECT_TRUE(refused(engine.register_file(path, options), ErrorCode::unavailable,
                        {to_string(wished), "posix"}));
  }
  EXPECT_EQ(counter(engine, "registrations"), 0U);
  FileOptions options;
  options.engine = PathKind::posix;
  const Registration range = must(engine.register_file(path, options));
  EXPECT_EQ(range.kind(), RangeKind::file);
}

INSTANTIATE_TEST_SUITE_P(all, Capabilities, moving(), provider_name);

} // namespace
} // namespace wherry::conformance

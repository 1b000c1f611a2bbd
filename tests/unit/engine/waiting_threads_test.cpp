// Threads that wait on one engine, over real sockets: whoever leads serves the others too, and
// tells them (R31).
#include <wherry/wherry.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace wherry {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t bytes = 1 << 20;

struct TwoEngines {
  TransferEngine owner = *TransferEngine::create();
  std::vector<std::byte> shared = std::vector<std::byte>(bytes, std::byte{42});
  Registration range =
      *owner.register_memory(shared, {.visibility = Visibility::remote_read_write});
  Source source = *owner.publish("weights", {}, {{"layer0", range}});
  TransferEngine engine = *TransferEngine::create();
  std::vector<std::byte> memory = std::vector<std::byte>(bytes);
  Registration local = *engine.register_memory(memory);
  RemoteSource remote = *engine.open(source.reference().to_string());
  RemoteRange layer0 = *remote.range("layer0");
};

// One thread waits long for what never comes, and leads meanwhile.
TEST(WaitingThreads, R31_a_request_ends_for_its_thread_though_another_one_leads) {
  TwoEngines two;
  auto queue = *two.engine.completion_queue();
  std::thread leader([&] {
    std::array<CompletionEntry, 4> out;
    EXPECT_EQ(queue.wait(out, Deadline::after(3s)), 0U);
  });
  std::this_thread::sleep_for(100ms);
  const auto start = SteadyClock::now();
  for (int i = 0; i < 5; ++i) {
    auto request = two.remote.submit({Operation::read(two.local, 0, two.layer0, 0, bytes)});
    ASSERT_TRUE(request);
    EXPECT_TRUE(request->wait_drained(Deadline::after(10s)).completed());
    EXPECT_TRUE(two.remote.range("layer0", Deadline::after(10s)))
        << "answers wake their thread too";
  }
  EXPECT_LT(SteadyClock::now() - start, 2s);
  leader.join();
}

TEST(WaitingThreads, R31_many_threads_wait_on_one_engine) {
  TwoEngines two;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::size_t length = 1 + (t * 977 + static_cast<std::size_t>(i) * 131) % 5000;
        auto request =
            two.remote.submit({Operation::read(two.local, t * 8192, two.layer0, t * 8192, length)});
        ASSERT_TRUE(request);
        const Report report = request->wait_drained(Deadline::after(10s));
        ASSERT_TRUE(report.completed());
        ASSERT_EQ(report.completed_bytes, length);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

// Files are read by worker threads; their ends wake the lanes that wait for them.
TEST(WaitingThreads, R37_file_ranges_are_moved_both_ways) {
  const auto directory =
      std::filesystem::temp_directory_path() / ("wherry-waiting-" + std::to_string(::getpid()));
  std::filesystem::create_directories(directory);
  const std::string path = (directory / "file").string();
  std::ofstream(path) << std::string(bytes, 'x');
  {
    TwoEngines two;
    auto file = two.owner.register_file(path, {.visibility = Visibility::remote_read_write});
    ASSERT_TRUE(file);
    const NamedRange named[] = {{"file", *file}};
    ASSERT_TRUE(two.source.add(named));
    const auto remote_file = two.remote.range("file");
    ASSERT_TRUE(remote_file);
    auto read = two.remote.submit({Operation::read(two.local, 0, *remote_file, 0, bytes)});
    ASSERT_TRUE(read);
    EXPECT_TRUE(read->wait_drained(Deadline::after(10s)).completed());
    EXPECT_EQ(two.memory, std::vector<std::byte>(bytes, std::byte{'x'}));
    std::fill(two.memory.begin(), two.memory.end(), std::byte{'y'});
    auto write = two.remote.submit({Operation::write(two.local, 0, *remote_file, 0, bytes)});
    ASSERT_TRUE(write);
    EXPECT_TRUE(write->wait_drained(Deadline::after(10s)).completed());
    std::ifstream in(path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), std::string(bytes, 'y'));
  }
  std::filesystem::remove_all(directory);
}

} // namespace
} // namespace wherry

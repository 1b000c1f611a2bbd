// The first example: an owner publishes memory, a consumer reads it and writes to it, and both look
// whether the bytes are right. Two engines in one program; in real life they are two processes, and
// the reference travels from one to the other as text.
#include <wherry/wherry.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr std::size_t length_bytes = 64 << 20;

[[noreturn]] void give_up(const char* doing, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", doing, why.c_str());
  std::exit(EXIT_FAILURE);
}

// Every call that can fail gives a Result: a value, or an error with its code and its evidence.
template <class T>
T must(const char* doing, wherry::Result<T> result) {
  if (!result) {
    give_up(doing, std::string(to_string(result.error().code)) + ": " + result.error().message);
  }
  if constexpr (!std::is_void_v<T>) {
    return std::move(*result);
  }
}

// In place: a registration is of these bytes, not of whatever the vector may hold later.
void fill(std::vector<std::byte>& bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>((i * 31 + seed) >> 3);
  }
}

// A request has one outcome; its report says how far it came, and what it did to remote bytes.
void finish(const char* doing, wherry::Request request) {
  const auto start = std::chrono::steady_clock::now();
  const wherry::Report report = request.wait_drained(wherry::Deadline::after(30s));
  if (!report.completed()) {
    give_up(doing, report.failure ? report.failure->error.message : "not done after 30 s");
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%s: %llu bytes, %.0f MiB/s, remote effect %s\n", doing,
              static_cast<unsigned long long>(report.completed_bytes),
              static_cast<double>(report.completed_bytes) / 1048576 / took.count(),
              std::string(to_string(report.remote_effect)).c_str());
}

} // namespace

int main() {
  // The owner: memory that outlives its registration, and a source with one range.
  std::vector<std::byte> weights(length_bytes);
  fill(weights, 1);
  auto owner = must("create the owner", wherry::TransferEngine::create());
  auto published =
      must("register",
           owner.register_memory(weights, {.visibility = wherry::Visibility::remote_read_write}));
  auto source = must("publish", owner.publish("weights", {}, {{"layer0", published}}));
  const std::string reference = source.reference().to_string();
  std::printf("published %s\n", reference.c_str());

  // The consumer: an engine and memory of its own, and the source by its reference.
  std::vector<std::byte> copy(length_bytes);
  auto consumer = must("create the consumer", wherry::TransferEngine::create());
  auto local = must("register", consumer.register_memory(copy));
  auto remote = must("open", consumer.open(reference));
  auto layer0 = must("find layer0", remote.range("layer0"));

  finish("read", must("submit",
                      remote.submit({wherry::Operation::read(local, 0, layer0, 0, length_bytes)})));
  if (copy != weights) {
    give_up("compare", "what was read is not what is there");
  }

  fill(copy, 2);
  finish(
      "write",
      must("submit", remote.submit({wherry::Operation::write(local, 0, layer0, 0, length_bytes)})));
  if (weights != copy) {
    give_up("compare", "what is there is not what was written");
  }

  // Memory may be freed once its registration has retired: only then can nothing touch it any more.
  must("retire", local.retire(wherry::Deadline::after(5s)));
  must("withdraw and retire", published.retire(wherry::Deadline::after(5s)));
  std::printf("both ends have the same %zu bytes\n", length_bytes);
  return EXIT_SUCCESS;
}

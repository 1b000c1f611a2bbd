// Wherry's side of the two-process benchmark: the same work as raw.c, through the public interface.
//   wherry_peer owner FILE
//   wherry_peer consumer FILE MYFILE REFERENCE SIZES      (SIZES: 4096,65536,...)
//   wherry_peer check FILE MYFILE REFERENCE
// Environment: LANES (1), CHECKSUMS (0 or 1), SECONDS_EACH (0.6), SPIN_US.
#include <wherry/wherry.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace {

constexpr std::size_t region_bytes = 256UL << 20;
constexpr std::size_t batch_operations = 1000;
constexpr std::size_t small_bytes = 4096;
constexpr std::size_t step_bytes = 8192;

using Clock = std::chrono::steady_clock;

std::uint64_t allocations = 0;

const char* setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

template <class T>
T need(wherry::Result<T> result, const char* what) {
  if (result) {
    return std::move(*result);
  }
  std::fprintf(stderr, "%s: %s\n", what, result.error().message.c_str());
  std::exit(1);
}

std::span<std::byte> map_region(const char* path, int fill) {
  const int fd = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, region_bytes) != 0) {
    std::exit(1);
  }
  void* p = ::mmap(nullptr, region_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  ::close(fd);
  if (p == MAP_FAILED) {
    std::exit(1);
  }
  if (fill != 0) {
    std::memset(p, fill, region_bytes);
  }
  return {static_cast<std::byte*>(p), region_bytes};
}

wherry::EngineOptions options() {
  wherry::EngineOptions o;
  o.tcp.lanes = static_cast<std::uint32_t>(std::atoi(setting("LANES", "1")));
  o.tcp.payload_checksums = *setting("CHECKSUMS", "0") == '1';
  if (const char* spin = std::getenv("SPIN_US")) {
    o.tcp.spin = std::chrono::microseconds(std::atoi(spin));
  }
  return o;
}

int owner(const char* path) {
  const auto memory = map_region(path, 1);
  auto engine = need(wherry::TransferEngine::create(options()), "create");
  auto range =
      need(engine.register_memory(memory, {wherry::Visibility::remote_read_write, {}}), "register");
  auto source = need(engine.publish("bench", {}, {{"region", range}}), "publish");
  std::printf("READY %s\n", source.reference().to_string().c_str());
  std::fflush(stdout);
  char c = 0;
  while (::read(0, &c, 1) > 0) {
  }
  return 0;
}

struct Consumer {
  wherry::TransferEngine engine;
  wherry::Registration local;
  wherry::RemoteSource remote;
  wherry::RemoteRange range;
  std::vector<wherry::Operation> operations;

  void one(bool write, std::size_t size, std::size_t batch) {
    operations.clear();
    for (std::size_t i = 0; i < batch; ++i) {
      operations.push_back(
          write ? wherry::Operation::write(local, i * step_bytes, range, i * step_bytes, size)
                : wherry::Operation::read(local, i * step_bytes, range, i * step_bytes, size));
    }
    auto request = need(remote.submit(operations), "submit");
    const wherry::Report report = request.wait(wherry::Deadline::never());
    if (report.completed()) {
      return;
    }
    std::fprintf(stderr, "not completed: %s\n",
                 report.failure ? report.failure->error.message.c_str() : "");
    std::exit(1);
  }

  std::uint64_t counter(std::string_view name) const {
    for (const auto& c : engine.counters()) {
      if (c.name == name) {
        return c.value;
      }
    }
    return 0;
  }
};

Consumer connect(const char* path, const char* reference) {
  const auto memory = map_region(path, 2);
  auto engine = need(wherry::TransferEngine::create(options()), "create");
  auto local = need(engine.register_memory(memory), "register");
  auto remote = need(engine.open(std::string_view(reference)), "open");
  auto range = need(remote.range("region"), "range");
  return {std::move(engine), std::move(local), std::move(remote), range, {}};
}

void timed(Consumer& consumer, const char* name, bool write, std::size_t size, std::size_t batch) {
  static std::vector<double> latencies(1 << 18);
  const double seconds = std::atof(setting("SECONDS_EACH", "0.6"));
  for (int i = 0; i < 3; ++i) {
    consumer.one(write, size, batch);
  }
  std::printf("BEGIN\n");
  std::fflush(stdout);
  const std::uint64_t allocated = allocations;
  std::size_t n = 0;
  const auto start = Clock::now();
  auto last = start;
  while ((std::chrono::duration<double>(last - start).count() < seconds || n < 5) &&
         n < latencies.size()) {
    consumer.one(write, size, batch);
    const auto now = Clock::now();
    latencies[n++] = std::chrono::duration<double>(now - last).count();
    last = now;
  }
  const std::uint64_t made = allocations - allocated;
  std::sort(latencies.begin(), latencies.begin() + static_cast<std::ptrdiff_t>(n));
  const double bytes = static_cast<double>(size * batch);
  std::printf("ROW %s %zu %.9f %.3f %zu\n", name, size * batch,
              bytes * static_cast<double>(n) / std::chrono::duration<double>(last - start).count() /
                  1e9,
              latencies[n / 2] * 1e6, n);
  std::printf("ALLOCATIONS %s %zu %llu in %zu requests\n", name, size * batch,
              static_cast<unsigned long long>(made), n);
  std::fflush(stdout);
}

// After each WRITE: is every page's last byte in the owner's memory? After each READ: in ours?
int check(Consumer& consumer, volatile char* mine, volatile char* theirs) {
  int late_in_all = 0;
  for (const std::size_t size : {8UL, 4096UL, 65536UL, 1UL << 20, 16UL << 20, 64UL << 20}) {
    for (const bool write : {false, true}) {
      int late = 0;
      const int n = size > 1 << 20 ? 20 : 300;
      for (int i = 0; i < n; ++i) {
        volatile char* from = write ? mine : theirs;
        volatile char* to = write ? theirs : mine;
        const auto c = static_cast<char>(i * 7 + write + static_cast<int>(size % 31) + 1);
        for (std::size_t j = (size - 1) % 4096; j < size; j += 4096) {
          from[j] = c;
          to[j] = static_cast<char>(~c);
        }
        consumer.one(write, size, 1);
        bool bad = false;
        for (std::size_t j = (size - 1) % 4096; j < size; j += 4096) {
          bad |= to[j] != c;
        }
        late += bad;
      }
      late_in_all += late;
      std::printf("CHECK wherry %s %zu late %d of %d\n", write ? "WRITE" : "READ", size, late, n);
    }
  }
  return late_in_all == 0 ? 0 : 1;
}

} // namespace

void* operator new(std::size_t size) {
  __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
  if (void* p = std::malloc(size)) {
    return p;
  }
  std::abort();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "owner") == 0) {
    return owner(argv[2]);
  }
  if (argc < 5) {
    return 2;
  }
  const auto theirs = map_region(argv[2], 0);
  Consumer consumer = connect(argv[3], argv[4]);
  if (std::strcmp(argv[1], "check") == 0) {
    const auto mine = map_region(argv[3], 0);
    return check(consumer, reinterpret_cast<volatile char*>(mine.data()),
                 reinterpret_cast<volatile char*>(theirs.data()));
  }
  if (argc < 6) {
    return 2;
  }
  for (char* size = std::strtok(argv[5], ","); size != nullptr; size = std::strtok(nullptr, ",")) {
    timed(consumer, "READ", false, std::strtoul(size, nullptr, 10), 1);
    timed(consumer, "WRITE", true, std::strtoul(size, nullptr, 10), 1);
  }
  timed(consumer, "READ x1000", false, small_bytes, batch_operations);
  timed(consumer, "WRITE x1000", true, small_bytes, batch_operations);
  return 0;
}

// The providers: what differs between the variants, and nothing else.
#include "base/assert.h"
#include "conformance/variant.h"
#include "engine/access.h"
#include "os/system.h"
#include "path/null/null_link.h"
#include "path/scripted/script.h"
#include "world/sim_clock.h"
#include "world/sim_files.h"
#include "world/sim_network.h"
#include "world/sim_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

namespace wherry::conformance {
namespace {

constexpr std::size_t worker_queue_max = 4096;

template <class T>
T need(Result<T> result) {
  if (!result) {
    throw std::runtime_error(result.error().message);
  }
  return std::move(*result);
}

// --- tcp over real sockets --------------------------------------------------------------------

class SocketsVariant final : public Variant {
public:
  ~SocketsVariant() override {
    drop_all();
    if (!folder_.empty()) {
      std::error_code ignored;
      std::filesystem::remove_all(folder_, ignored);
    }
  }

  std::string_view name() const override { return "tcp_sockets"; }
  Deadline after(std::chrono::nanoseconds duration) override { return Deadline::after(duration); }
  bool can(Ability ability) const override { return ability != Ability::script; }
  Served served() override { return {tcp_slices(), 0}; }

  /// The engines' threads do what there is to do; what could still come is bounded by this.
  void run_a_while() override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    while (std::chrono::steady_clock::now() < end) {
      step();
    }
  }

  std::string file_path(std::string_view name) override {
    if (folder_.empty()) {
      std::string pattern = std::filesystem::temp_directory_path() / "wherry-conformance-XXXXXX";
      folder_ = ::mkdtemp(pattern.data());
    }
    return folder_ / name;
  }
  std::string make_file(std::string_view name, std::span<const std::byte> content) override {
    const std::string path = file_path(name);
    write(path, content);
    return path;
  }
  std::vector<std::byte> file_content(const std::string& path) override {
    std::ifstream in(path, std::ios::binary);
    const std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
    const auto bytes = std::as_bytes(std::span(chars));
    return {bytes.begin(), bytes.end()};
  }
  void remove_file(const std::string& path) override { std::filesystem::remove(path); }
  void replace_file(const std::string& path, std::span<const std::byte> content) override {
    write(path + ".new", content);
    std::filesystem::rename(path + ".new", path);
  }
  void resize_file(const std::string& path, std::size_t size_bytes) override {
    std::filesystem::resize_file(path, size_bytes);
  }
  void touch_file(const std::string& path) override {
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) +
                                               std::chrono::seconds(1));
  }
  /// The program that runs cannot be opened for writing, whoever asks.
  Unwritable unwritable_file() override { return {"/proc/self/exe", ErrorCode::io_error}; }

protected:
  void adapt(EngineOptions&, Node& node) override { node.host = "127.0.0.1"; }
  Seams make_seams(const EngineOptions& options, Node& node) override {
    node.network = std::make_shared<FaultNetwork>(need(make_kernel_network()));
    Seams seams;
    seams.clock = make_system_clock();
    seams.random = make_system_random();
    seams.network = node.network;
    seams.files = make_kernel_files();
    if (options.threads > 0) {
      seams.worker = need(make_threaded_worker(options.native_workers, worker_queue_max));
    } else {
      seams.worker = make_inline_worker(worker_queue_max);
    }
    seams.libraries = make_system_libraries();
    return seams;
  }
  void step() override { std::this_thread::yield(); }

private:
  static void write(const std::string& path, std::span<const std::byte> content) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(content.data()),
              static_cast<std::streamsize>(content.size()));
    out.close();
    WHERRY_ASSERT(out.good());
  }

  std::filesystem::path folder_;
};

// --- One thread, simulated network, files and time ---------------------------------------------

class SimulatedVariant : public Variant {
public:
  ~SimulatedVariant() override { drop_all(); }

  std::string_view name() const override { return "tcp_simulated"; }
  Deadline after(std::chrono::nanoseconds duration) override {
    return Deadline::at(
        Deadline::Clock::time_point(std::chrono::nanoseconds(clock_->now_ns()) + duration));
  }
  bool can(Ability ability) const override {
    return ability != Ability::threads && ability != Ability::script && ability != Ability::raw;
  }
  Served served() override { return {tcp_slices(), 0}; }
  void run_a_while() override {
    const std::uint64_t end = clock_->now_ns() + 20'000'000;
    while (clock_->now_ns() < end) {
      step();
    }
  }

  std::string file_path(std::string_view name) override { return std::string(name); }
  std::string make_file(std::string_view name, std::span<const std::byte> content) override {
    files_->create(std::string(name), {content.begin(), content.end()});
    return std::string(name);
  }
  std::vector<std::byte> file_content(const std::string& path) override {
    return files_->content(path);
  }
  void remove_file(const std::string& path) override { files_->remove(path); }
  void replace_file(const std::string& path, std::span<const std::byte> content) override {
    files_->create(path, {content.begin(), content.end()});
  }
  void resize_file(const std::string& path, std::size_t size_bytes) override {
    files_->resize(path, size_bytes);
  }
  void touch_file(const std::string& path) override { files_->overwrite(path, 0, {}); }
  Unwritable unwritable_file() override {
    files_->create("read_only", std::vector<std::byte>(4096));
    files_->set_read_only("read_only", true);
    return {"read_only", ErrorCode::access_denied};
  }

protected:
  static constexpr std::uint64_t seed = 20'261'201;

  void adapt(EngineOptions& options, Node& node) override {
    ++hosts_;
    if (node.host.empty()) {
      node.host = fmt::format("10.0.0.{}", hosts_);
    }
    options.threads = 0;
    options.on_idle = [this] { step(); };
  }
  Seams make_seams(const EngineOptions&, Node& node) override {
    node.network = std::make_shared<FaultNetwork>(network_.attach(node.host));
    workers_.push_back(std::make_shared<SimWorker>(*clock_, seed + hosts_));
    Seams seams;
    seams.clock = clock_;
    seams.random = std::make_shared<SeededRandom>(seed + hosts_);
    seams.network = node.network;
    seams.files = files_;
    seams.worker = workers_.back();
    seams.libraries = make_system_libraries();
    return seams;
  }

  /// Everybody works; where nobody has anything to do, time passes. An engine that waits (and calls
  /// this when idle) is led by that call, and not driven here.
  void step() override {
    bool moved = false;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      moved |= nodes_[i]->engine != nullptr && nodes_[i]->engine->progress();
    }
    if (moved) {
      return;
    }
    // Deadlines that are due are seen by the next turn.
    const std::uint64_t now_ns = clock_->now_ns();
    std::uint64_t next_ns = std::min(network_.next_event_ns(), now_ns + tick_ns);
    for (const auto& node : nodes_) {
      if (node->engine != nullptr) {
        next_ns = std::min(next_ns, EngineAccess::earliest_deadline_ns(*node->engine));
      }
    }
    for (const auto& worker : workers_) {
      next_ns = std::min(next_ns, worker->next_due_ns());
    }
    // What is said to be due now and stays so must not stop the world.
    stuck_ = next_ns <= now_ns ? stuck_ + 1 : 0;
    network_.advance_to(std::max(next_ns, stuck_ > 4 ? now_ns + 1'000 : now_ns));
  }

  // Waits with a deadline in between must see it pass.
  static constexpr std::uint64_t tick_ns = 1'000'000;

  std::shared_ptr<SimClock> clock_ = std::make_shared<SimClock>();

private:
  SimSwitch network_{*clock_, seed};
  std::shared_ptr<SimFiles> files_ = std::make_shared<SimFiles>(*clock_, seed);
  std::vector<std::shared_ptr<SimWorker>> workers_;
  std::uint64_t hosts_ = 0;
  int stuck_ = 0;
};

// --- Scripted and null links, sessions over the simulated network -------------------------------

class ScriptedVariant final : public SimulatedVariant {
public:
  ~ScriptedVariant() override { drop_all(); }

  std::string_view name() const override { return "scripted"; }
  bool can(Ability ability) const override {
    return ability == Ability::payload || ability == Ability::hold || ability == Ability::cut ||
           ability == Ability::script;
  }
  Script* script() override { return &links_->script; }
  Served served() override { return {script()->counters().completions, tcp_slices()}; }

  void hold(TransferEngine&, TransferEngine&, Where where) override {
    script()->hold = where == Where::unsent ? Hold::unsent : Hold::unanswered;
  }
  void release(TransferEngine&, TransferEngine&) override {
    script()->hold = Hold::no;
    script()->release_all();
  }
  void cut_lane(TransferEngine&) override {
    Error why;
    why.code = ErrorCode::connection_lost;
    why.message = "the script says so";
    script()->cut(why);
  }
  void hold_fences(TransferEngine&, bool held) override { script()->linger = held; }

protected:
  struct Links final : LinkMaker {
    std::unique_ptr<Link> connect(const LinkRequest& request) override {
      return script.connect({request.owner, request.session, request.lane});
    }
    void serve(const EngineId& owner, std::uint64_t session, OwnerAccess* access) override {
      script.serve(owner, session, access);
    }
    Script script;
  };

  Seams make_seams(const EngineOptions& options, Node& node) override {
    Seams seams = SimulatedVariant::make_seams(options, node);
    seams.links = links_;
    return seams;
  }

private:
  std::shared_ptr<Links> links_ = std::make_shared<Links>();
};

class NullVariant final : public SimulatedVariant {
public:
  ~NullVariant() override { drop_all(); }

  std::string_view name() const override { return "null"; }
  bool can(Ability) const override { return false; }
  Served served() override { return {*slices_, tcp_slices()}; }

protected:
  /// Counts beyond the life of the link.
  struct CountingLink final : Link {
    explicit CountingLink(std::shared_ptr<std::uint64_t> count) : slices(std::move(count)) {}
    bool has_room() const override { return link.has_room(); }
    void submit(const Slice& slice) override {
      ++*slices;
      link.submit(slice);
    }
    bool progress(std::uint64_t now_ns) override { return link.progress(now_ns); }
    std::size_t poll(std::span<Completion> out) override { return link.poll(out); }
    void request_cancel(std::uint64_t request, std::uint64_t now_ns) override {
      link.request_cancel(request, now_ns);
    }
    std::size_t using_range(std::uint64_t range) const override { return link.using_range(range); }
    void begin_close(Error why) override { link.begin_close(std::move(why)); }
    LinkState state() const override { return link.state(); }
    const Error& why() const override { return link.why(); }
    std::uint64_t next_deadline_ns() const override { return link.next_deadline_ns(); }

    NullLink link;
    std::shared_ptr<std::uint64_t> slices;
  };
  struct Links final : LinkMaker {
    explicit Links(std::shared_ptr<std::uint64_t> count) : slices(std::move(count)) {}
    std::unique_ptr<Link> connect(const LinkRequest&) override {
      return std::make_unique<CountingLink>(slices);
    }
    void serve(const EngineId&, std::uint64_t, OwnerAccess*) override {}
    std::shared_ptr<std::uint64_t> slices;
  };

  Seams make_seams(const EngineOptions& options, Node& node) override {
    Seams seams = SimulatedVariant::make_seams(options, node);
    seams.links = std::make_shared<Links>(slices_);
    return seams;
  }

private:
  std::shared_ptr<std::uint64_t> slices_ = std::make_shared<std::uint64_t>(0);
};

template <class T>
std::unique_ptr<Variant> make() {
  return std::make_unique<T>();
}

constexpr std::array providers = {Provider{"tcp_sockets", make<SocketsVariant>},
                                  Provider{"tcp_simulated", make<SimulatedVariant>},
                                  Provider{"scripted", make<ScriptedVariant>},
                                  Provider{"null", make<NullVariant>}};

} // namespace

std::span<const Provider> all_providers() {
  return providers;
}

std::span<const Provider> moving_providers() {
  return std::span(providers).first(3);
}

} // namespace wherry::conformance

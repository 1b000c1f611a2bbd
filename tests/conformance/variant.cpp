#include "conformance/variant.h"

#include "base/assert.h"
#include "engine/access.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ostream>
#include <utility>

namespace wherry::conformance {
namespace {

// Far above what anything here takes, also under sanitizers on busy cores.
constexpr std::chrono::seconds patience(60);

} // namespace

std::string_view to_string(Ability ability) {
  switch (ability) {
  case Ability::payload:
    return "moves no bytes";
  case Ability::hold:
    return "cannot keep requests under way";
  case Ability::cut:
    return "cannot be broken";
  case Ability::segments:
    return "has no segments";
  case Ability::files:
    return "knows no files";
  case Ability::threads:
    return "has no engine threads";
  case Ability::script:
    return "has no script";
  case Ability::raw:
    return "is closed to strangers";
  }
  return "?";
}

void PrintTo(const Provider& provider, std::ostream* out) {
  *out << provider.name;
}

Variant::Variant() = default;
Variant::~Variant() = default;

TransferEngine& Variant::engine(EngineOptions options, const std::string& host) {
  auto node = std::make_unique<Node>();
  node->host = host;
  options.log = [this](LogLevel level, std::string_view message) {
    const std::lock_guard lock(log_mutex_);
    log_.push_back(fmt::format("[{}] {}", static_cast<int>(level), message));
  };
  adapt(options, *node);
  auto seams = make_seams(options, *node);
  auto made = EngineAccess::create(std::move(options), std::move(seams));
  if (!made) {
    throw std::runtime_error(made.error().message);
  }
  node->engine = std::make_unique<TransferEngine>(std::move(*made));
  nodes_.push_back(std::move(node));
  return *nodes_.back()->engine;
}

void Variant::drop(TransferEngine& engine) {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                  [&](const auto& node) { return node->engine.get() == &engine; });
  WHERRY_ASSERT(found != nodes_.end());
  dropped_slices_ += counter(engine, "tcp_read_slices_total");
  dropped_slices_ += counter(engine, "tcp_write_slices_total");
  // Destroyed while it is still listed: its close drives the others, and they it.
  (*found)->engine.reset();
  nodes_.erase(std::find_if(nodes_.begin(), nodes_.end(),
                            [](const auto& node) { return node->engine == nullptr; }));
}

// What was made last goes first: mostly the consumers.
void Variant::drop_all() {
  while (!nodes_.empty()) {
    drop(*nodes_.back()->engine);
  }
}

Node& Variant::node(const TransferEngine& engine) {
  for (auto& node : nodes_) {
    if (node->engine.get() == &engine) {
      return *node;
    }
  }
  throw std::runtime_error("no such engine");
}

std::string Variant::listen_address(const TransferEngine& engine, std::uint16_t port) {
  return fmt::format("{}:{}", node(engine).host, port);
}

bool Variant::run_until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    step();
  }
  return true;
}

void Variant::hold(TransferEngine& consumer, TransferEngine& owner, Where where) {
  node(where == Where::unsent ? consumer : owner).network->freeze_lanes(true);
}

void Variant::release(TransferEngine& consumer, TransferEngine& owner) {
  node(consumer).network->freeze_lanes(false);
  node(owner).network->freeze_lanes(false);
}

void Variant::cut_lane(TransferEngine& consumer) {
  FaultNetwork& network = *node(consumer).network;
  network.cut_newest_lane();
  EXPECT_TRUE(run_until([&] { return network.settled(); }));
}

void Variant::cut_session(TransferEngine& consumer) {
  FaultNetwork& network = *node(consumer).network;
  network.cut();
  EXPECT_TRUE(run_until([&] { return network.settled(); }));
}

void Variant::hold_fences(TransferEngine& consumer, bool held) {
  node(consumer).network->freeze_control(held);
}

std::vector<std::string> Variant::log() const {
  const std::lock_guard lock(log_mutex_);
  return log_;
}

std::uint64_t Variant::tcp_slices() {
  std::uint64_t slices = dropped_slices_;
  for (const auto& node : nodes_) {
    slices += counter(*node->engine, "tcp_read_slices_total");
    slices += counter(*node->engine, "tcp_write_slices_total");
  }
  return slices;
}

std::uint64_t counter(const TransferEngine& engine, std::string_view name) {
  for (const Counter& counter : engine.counters()) {
    if (counter.name == name) {
      return counter.value;
    }
  }
  throw std::runtime_error(fmt::format("no counter {}", name));
}

} // namespace wherry::conformance

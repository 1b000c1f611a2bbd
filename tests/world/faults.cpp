#include "world/faults.h"

namespace wherry::world {

void Faults::at(std::uint64_t span_ns, std::uint32_t count, void (Faults::*fault)()) {
  for (std::uint32_t i = 0; i < count; ++i) {
    world_.at(add_ns(world_.now_ns(), world_.random().below(span_ns)), [this, fault] {
      if (!over_) {
        (this->*fault)();
      }
    });
  }
}

void Faults::schedule(std::uint64_t span_ns) {
  at(span_ns, plan_.cuts, &Faults::cut);
  at(span_ns, plan_.delays, &Faults::delay);
  at(span_ns, plan_.black_holes, &Faults::black_hole);
  at(span_ns, plan_.partitions, &Faults::partition);
  at(span_ns, plan_.stops, &Faults::stop_process);
  at(span_ns, plan_.crashes, &Faults::crash);
}

void Faults::stop() {
  over_ = true;
  world_.trace().note("faults stop");
  world_.net().heal();
  for (const auto& process : world_.processes()) {
    process->stopped_until_ns = 0;
  }
  if (!publisher_.up()) {
    publisher_.start();
  }
}

SimConnectionId Faults::any_connection() {
  const auto all = world_.net().connections();
  return all.empty() ? 0 : all[world_.random().below(all.size())].id;
}

Process& Faults::any_process() {
  return *world_.processes()[world_.random().below(world_.processes().size())];
}

void Faults::broke(const char* what, std::uint64_t subject) {
  oracle_.set_calm(false);
  world_.trace().note(what, {{"of", subject}});
}

void Faults::cut() {
  const SimConnectionId id = any_connection();
  broke("cut", id);
  world_.net().cut(id);
}

void Faults::delay() {
  const SimConnectionId id = any_connection();
  const std::uint64_t extra_ns = world_.random().below(plan_.delay_max_ns + 1);
  broke("delay", id);
  world_.net().delay(id, extra_ns);
  world_.at(add_ns(world_.now_ns(), world_.random().below(2 * plan_.delay_max_ns + 1)),
            [this, id] { world_.net().delay(id, 0); });
}

void Faults::black_hole() {
  const SimConnectionId id = any_connection();
  broke("black hole", id);
  world_.net().black_hole(id);
}

void Faults::partition() {
  const Consumer& consumer = *consumers_[world_.random().below(consumers_.size())];
  const std::string& host = const_cast<Consumer&>(consumer).process().host;
  broke("partition", consumers_.size());
  world_.net().partition(publisher_.process().host, host);
  world_.at(add_ns(world_.now_ns(), world_.random().below(plan_.stop_max_ns + 1)), [this] {
    world_.trace().note("heal");
    world_.net().heal();
  });
}

void Faults::stop_process() {
  Process& process = any_process();
  if (!process.engine || process.blocking) {
    return;
  }
  const std::uint64_t length_ns = world_.random().below(plan_.stop_max_ns + 1);
  broke("stop", length_ns);
  process.stopped_until_ns = add_ns(world_.now_ns(), length_ns);
}

void Faults::crash() {
  if (!publisher_.up() || publisher_.process().blocking) {
    return;
  }
  publisher_.crash();
  world_.at(add_ns(world_.now_ns(), world_.random().below(20 * ms)), [this] { recover(); });
}

void Faults::recover() {
  if (!publisher_.up()) {
    publisher_.start();
  }
}

} // namespace wherry::world

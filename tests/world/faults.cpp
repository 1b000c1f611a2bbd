#include "world/faults.h"

#include <cerrno>
#include <iterator>

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
  at(span_ns, plan_.consumer_crashes, &Faults::crash_consumer);
  at(span_ns, plan_.bit_flips, &Faults::flip_bit);
  at(span_ns, plan_.file_errors, &Faults::fail_file);
  at(span_ns, plan_.file_changes, &Faults::change_file);
  at(span_ns, plan_.native_errors, &Faults::fail_native);
}

void Faults::stop() {
  over_ = true;
  world_.trace().note("faults stop");
  world_.net().heal();
  for (const auto& process : world_.processes()) {
    process->stopped_until_ns = 0;
  }
  world_.files().forget_planted();
  for (const auto& process : world_.processes()) {
    if (process->engine) {
      process->network->sim()->forget_planted();
    }
  }
  recover();
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

void Faults::crash_consumer() {
  Consumer& consumer = *consumers_[world_.random().below(consumers_.size())];
  if (!consumer.up() || consumer.process().blocking) {
    return;
  }
  oracle_.set_calm(false);
  consumer.crash();
  world_.at(add_ns(world_.now_ns(), world_.random().below(20 * ms)), [this] { recover(); });
}

void Faults::recover() {
  if (!publisher_.up()) {
    publisher_.start();
  }
  for (const auto& consumer : consumers_) {
    if (!consumer->up()) {
      consumer->start();
    }
  }
}

void Faults::flip_bit() {
  const SimConnectionId id = any_connection();
  broke("bit flip", id);
  world_.net().corrupt(id, world_.random().one_in(2));
}

void Faults::fail_file() {
  constexpr SimFileCall calls[] = {SimFileCall::open, SimFileCall::stat, SimFileCall::read,
                                   SimFileCall::write};
  constexpr int errors[] = {EIO, ENOSPC, EMFILE, ESTALE};
  // One draw a line: the order of arguments is the compiler's.
  const std::size_t call = world_.random().below(std::size(calls));
  const int error = errors[world_.random().below(std::size(errors))];
  const auto skip = static_cast<std::uint32_t>(world_.random().below(4));
  broke("file error", call);
  world_.files().fail_next(calls[call], error, skip);
}

void Faults::change_file() {
  for (const auto& range : publisher_.ranges()) {
    if (publisher_.up() && range->memory == nullptr && range->published && !range->spoiled &&
        world_.random().one_in(2)) {
      return publisher_.spoil(*range);
    }
  }
}

void Faults::fail_native() {
  struct Row {
    SimCall call;
    int error;
  };
  constexpr Row rows[] = {{SimCall::accept, EMFILE},       {SimCall::accept, ECONNABORTED},
                          {SimCall::connect, ENETUNREACH}, {SimCall::connect, EADDRNOTAVAIL},
                          {SimCall::readv, ECONNRESET},    {SimCall::readv, ETIMEDOUT},
                          {SimCall::writev, EPIPE},        {SimCall::writev, ECONNRESET}};
  Process& process = any_process();
  if (!process.engine) {
    return;
  }
  const std::size_t row = world_.random().below(std::size(rows));
  broke("native error", row);
  process.network->sim()->fail_next(rows[row].call, rows[row].error,
                                    static_cast<std::uint32_t>(world_.random().below(8)));
}

} // namespace wherry::world

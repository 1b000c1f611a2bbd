// What breaks, and when: drawn from the seed before the run, and set as timers of the world. A
// fault that lasts (a delay, a partition) ends by itself or with heal().
#pragma once

#include "world/parties.h"
#include "world/plan.h"

#include <memory>
#include <vector>

namespace wherry::world {

class Faults {
public:
  Faults(World& world, Oracle& oracle, const Plan& plan, Publisher& publisher,
         std::vector<std::unique_ptr<Consumer>>& consumers)
      : world_(world), oracle_(oracle), plan_(plan), publisher_(publisher), consumers_(consumers) {}

  /// All of the plan's faults happen within `span_ns`.
  void schedule(std::uint64_t span_ns);
  /// From now on nothing breaks any more, and what is broken works again.
  void stop();

private:
  void at(std::uint64_t span_ns, std::uint32_t count, void (Faults::*fault)());
  void cut();
  void delay();
  void black_hole();
  void partition();
  void stop_process();
  void crash();
  void crash_consumer();
  void recover();
  void flip_bit();
  void fail_file();
  void change_file();
  void fail_native();
  /// A connection that is there; 0 if there is none.
  SimConnectionId any_connection();
  Process& any_process();
  void broke(const char* what, std::uint64_t subject);

  World& world_;
  Oracle& oracle_;
  const Plan& plan_;
  Publisher& publisher_;
  std::vector<std::unique_ptr<Consumer>>& consumers_;
  bool over_ = false;
};

} // namespace wherry::world

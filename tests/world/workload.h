// What the users of the world do, drawn from the seed: batches above all, and what may come across
// them. Knows which answers are due.
#pragma once

#include "world/parties.h"
#include "world/plan.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace wherry::world {

class Workload {
public:
  Workload(World& world, Oracle& oracle, const Plan& plan, Publisher& publisher,
           std::vector<std::unique_ptr<Consumer>>& consumers)
      : world_(world), oracle_(oracle), plan_(plan), publisher_(publisher), consumers_(consumers) {}

  /// One thing that a user does.
  void act();
  /// A small READ through the handle, which must tell whether it still has its owner (R21): the
  /// handle is open again, or stale for ever.
  void probe(Consumer& consumer, Consumer::Handle& handle);

private:
  /// What submit() may answer.
  struct Answers {
    std::vector<ErrorCode> due;      ///< It must be refused, for one of these or of `possible`.
    std::vector<ErrorCode> possible; ///< It may be refused for these.
  };

  Consumer* any_consumer(); ///< Null if the one that was drawn is dead.
  Consumer::Handle* any_handle(Consumer& consumer);
  RequestModel* any_open_request();

  void submit_something(Consumer& consumer);
  std::vector<OperationModel> draw_batch(Consumer& consumer, Consumer::Handle& handle);
  std::optional<OperationModel> draw_operation(Consumer& consumer, Consumer::Handle& handle);
  std::uint64_t draw_length(std::uint64_t max);
  SubmitOptions draw_options(Consumer& consumer);
  void submit_wrong(Consumer& consumer, Consumer::Handle& handle,
                    const std::vector<OperationModel>& parts, const SubmitOptions& options,
                    Answers answers);
  void judge(const std::optional<Error>& refused, const Answers& answers);
  Answers expect(Consumer& consumer, Consumer::Handle& handle,
                 const std::vector<OperationModel>& parts, const SubmitOptions& options);

  std::vector<OperationModel> draw_probe(Consumer& consumer, Consumer::Handle& handle);
  void cancel_something();
  void drop_something();
  void wait_for_something();
  void ask_something(Consumer& consumer);
  void recall_something();
  void retire_local(Consumer& consumer);
  void ask_checksum(Consumer& consumer, Consumer::Handle& handle);
  void open_or_close(Consumer& consumer);
  void open_something(Consumer& consumer);

  World& world_;
  Oracle& oracle_;
  const Plan& plan_;
  Publisher& publisher_;
  std::vector<std::unique_ptr<Consumer>>& consumers_;
};

} // namespace wherry::world

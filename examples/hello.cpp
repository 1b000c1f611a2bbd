// The shortest whole transfer; value() ends the program where something fails. See
// first_transfer.cpp for what errors and reports say.
#include <wherry/wherry.hpp>

#include <chrono>
#include <cstddef>
#include <vector>

int main() {
  std::vector<std::byte> weights(1 << 20, std::byte{42});
  std::vector<std::byte> copy(weights.size());

  // The owner publishes memory, under an epoch of its own.
  auto owner = wherry::TransferEngine::create().value();
  auto shared =
      owner.register_memory(weights, {.visibility = wherry::Visibility::remote_read}).value();
  auto source = owner.publish("weights", {}, {{"layer0", shared}}).value();

  // The consumer, in real life another process, opens it by its reference, and reads.
  auto engine = wherry::TransferEngine::create().value();
  auto local = engine.register_memory(copy).value();
  auto remote = engine.open(source.reference().to_string()).value();
  auto layer0 = remote.range("layer0").value();
  auto request = remote.submit({wherry::Operation::read(local, 0, layer0, 0, copy.size())}).value();
  const auto report = request.wait_drained(wherry::Deadline::after(std::chrono::seconds(30)));

  return report.completed() && copy == weights ? 0 : 1;
}

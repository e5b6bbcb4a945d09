// SPDX-License-Identifier: Apache-2.0
// A local bus on which things go wrong, for tests: messages are lost, come twice, late and in
// another order; connections are lost; what is stored fails before or after it happened. All by a
// seed and by steps of a time that the test advances: who uses it from one thread gets the same
// faults for the same calls.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "cluster/bus.h"
#include "cluster/bus_local.h"

namespace clew::cluster {

// Probabilities, 0 to 1: of each message for each end that it reaches; of each end in each step; of
// each call.
struct Faults {
  double lose = 0;   // A message.
  double twice = 0;  // It comes again, late or not.
  double late = 0;   // It comes 1 to `steps_max` steps later, so behind others.
  // The connection of an end, for 1 to `steps_max` steps.
  double disconnect = 0;
  double fail_before = 0;  // A call about logs or keys: Io, and it did not happen.
  double fail_after = 0;   // The same, and it did.
  // Of a log that is read the newest entries are missing, as where a replica has not got them yet.
  double behind = 0;
  // Of a log that is read one entry in the middle is left out, as by a replica that lacks it.
  double skip = 0;
  uint32_t steps_max = 5;
};

class FaultyState;

class FaultyHub {
 public:
  FaultyHub(uint64_t seed, Faults faults);
  ~FaultyHub();
  FaultyHub(const FaultyHub&) = delete;
  FaultyHub& operator=(const FaultyHub&) = delete;

  // `name` is for cut(). The end may outlive the hub.
  [[nodiscard]] std::unique_ptr<Bus> connect(std::string_view name, Permissions permissions = {});

  // One step of time: what is due comes, connections are lost and come back.
  void step();
  // Nothing goes wrong any more; what is late comes at once.
  void heal();
  // Ends of this name reach nobody, until they do.
  void cut(std::string_view name, bool is_cut = true);
  // Logs and keys are gone, as when a server's disk is.
  void lose_disk();
  // LocalHub::lose_end()
  void lose_end(uint64_t entries, bool knows_ids);
  // Of all ends, as if the server had gone.
  void set_reachable(bool is_reachable);

 private:
  std::shared_ptr<FaultyState> state_;  // Whoever lives last, of this and its ends, ends it.
};

}  // namespace clew::cluster

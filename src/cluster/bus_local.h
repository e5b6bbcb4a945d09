// SPDX-License-Identifier: Apache-2.0
// The bus inside one process: no server, logs and keys in memory. A hub is used by any thread, each
// of its ends by one. Nothing waits: every call returns at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/bus.h"

namespace clew::cluster {

// Patterns of what an end may publish or append, and of what it may subscribe to, as a server would
// hold it to them. Its own inbox is always allowed.
struct Permissions {
  std::vector<std::string> publish = {">"};
  std::vector<std::string> subscribe = {">"};
};

class LocalState;

class LocalHub {
 public:
  LocalHub();
  ~LocalHub();
  LocalHub(const LocalHub&) = delete;
  LocalHub& operator=(const LocalHub&) = delete;

  // The end may outlive the hub.
  [[nodiscard]] std::unique_ptr<Bus> connect(Permissions permissions = {});

  // Logs and keys are gone, as when a server's disk is.
  void lose_disk();
  // So many of the newest entries of each log, or puts of each bucket, are gone, though who sent
  // them was told that they are there: as when a new leader of a log's servers lacks them. What
  // comes then has their numbers. `knows_ids`: and what is appended again with an id of theirs is
  // said to be there.
  void lose_end(uint64_t entries, bool knows_ids);
  // Logs take no more, as where a server's disk is full.
  void set_log_full(bool is_full);
  // False: as if the server had gone. All ends are told; logs, keys and subscriptions stay.
  void set_reachable(bool is_reachable);

 private:
  std::shared_ptr<LocalState> state_;  // Whoever lives last, of this and its ends, ends it.
};

}  // namespace clew::cluster

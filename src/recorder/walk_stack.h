// SPDX-License-Identifier: Apache-2.0
// The stack of a walk (walk.h), and what is known behind the record that it is at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "recorder/paths.h"
#include "recorder/walk.h"

namespace clew::recorder {

// A DAG of one of the modules.
struct WalkedName {
  uint32_t module = 0;
  DagName dag;
};

struct Activation {
  uint32_t module = 0;
  uint32_t function = kNone;
  uint32_t call = kNone;  // The block whose call is in progress; kNone: none, or not known which.
  // A handler has interrupted it, and what it sets later goes into the handler's last record,
  bool sets_later = false;
  // or into its own. So many blocks of that path were added; 0: it is not interrupted so.
  size_t added = 0;
  uint32_t dag = kNone;
  uint32_t bits = 0;
  uint64_t interrupted_at = 0;
  bool is_believed = false;  // That the one further out has called it: nothing says so.

  [[nodiscard]] bool is_of(const WalkedName& name) const {
    return function == name.dag.function && module == name.module;
  }
};

struct KnownBehind {
  std::optional<WalkedName> next;   // The next record.
  std::optional<WalkedPlace> stop;  // Where control is.
  bool is_interrupted = false;      // There only for a while.

  // As far as an activation's module can say it. A record of another module is none of this one's
  // DAGs.
  [[nodiscard]] Behind in(uint32_t module) const {
    Behind known;
    if (next) {
      known.next = next->module == module ? next->dag : DagName{.is_entry = next->dag.is_entry};
    }
    if (stop && stop->module == module) {
      known.stopped_at = stop->address;
      known.is_interrupted = is_interrupted;
    }
    return known;
  }
};

}  // namespace clew::recorder

// SPDX-License-Identifier: Apache-2.0
// The processes that a user names, by their ids and by patterns of names, and those that a query's
// sources name by their modules (machine.Function).
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"

namespace clew::engine {

struct Chosen {
  std::vector<pid_t> pids = {};
  std::vector<std::string> name_patterns = {};  // All processes with such a name.
  std::vector<std::string> modules = {};        // All that have mapped such a module.
  bool may_miss = false;                        // None of them need be there.
};
// Each once, in ascending order. NotFound when nothing has a name, or a module.
Expected<std::vector<pid_t>> find_chosen(const Chosen& chosen);

// Those stay whose name is one of these patterns. Gives, in words, which were left out; empty:
// none. Refused: all were.
Expected<std::string> leave_out_others(std::vector<pid_t>& pids,
                                       const std::vector<std::string>& names);

}  // namespace clew::engine

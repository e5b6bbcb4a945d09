// SPDX-License-Identifier: Apache-2.0
// The processes that a user names, by their ids, by patterns of names or by whose they are, and
// those that a query's sources name by their modules (machine.Function).
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "engine/whose.h"
#include "target/pattern.h"

namespace clew::engine {

struct Chosen {
  std::vector<pid_t> pids = {};
  std::vector<std::string> name_patterns = {};  // All processes with such a name.
  std::vector<std::string> newest_names = {};   // Of those with such a name the last that began.
  std::vector<std::string> modules = {};        // All that have mapped such a module.
  Whose whose = {};  // Of these, or where nothing above is said of all, those that it holds for.
  bool may_miss = false;  // None of them need be there.

  [[nodiscard]] bool names_some() const { return says_who() || !whose.empty(); }
  // Whose they are is all that is said, so not all that is found need have what is asked for.
  [[nodiscard]] bool says_whose_alone() const {
    return !says_who() && modules.empty() && !whose.empty();
  }
  // Some are named, be it by what they are called.
  [[nodiscard]] bool says_who() const {
    return !pids.empty() || !name_patterns.empty() || !newest_names.empty();
  }
};
// Of a session for all processes of the machine that have one of these modules: also those that get
// it while it runs.
struct LaterProcesses {
  std::vector<target::Pattern> modules = {};
  // Whose it is, and what it is called. Of one that has gone: whether anybody would be meant.
  std::function<bool(pid_t)> is_meant = {};
  std::set<pid_t> known = {};  // Looked at already: traced, or left out for a reason that was told.
};

// Those that have none of these names (patterns) are not meant, if there is a list.
Expected<LaterProcesses> choose_later(const Chosen& chosen,
                                      const std::optional<std::vector<std::string>>& names);

// Each once, in ascending order. NotFound when nothing has a name, or a module, or is whose it
// should be.
Expected<std::vector<pid_t>> find_chosen(const Chosen& chosen);

// Those stay whose name is one of these patterns. Gives, in words, which were left out; empty:
// none. Refused: all were.
Expected<std::string> leave_out_others(std::vector<pid_t>& pids,
                                       const std::vector<std::string>& names);

}  // namespace clew::engine

// SPDX-License-Identifier: Apache-2.0
// Which imports of a module lead where their names say, in a process that has not begun: no other
// of its modules has a function of that name. A library that is opened later does not change that.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "recorder/imports.h"
#include "target/linked_names.h"

namespace clew::engine {

class KnownImports {
 public:
  // Each module of the process, before the first question. `is_silent`: it is a part of the C
  // library, and not recorded.
  void add(const target::LinkedNames& names, bool is_silent);
  // One that cannot be read: it may have any name.
  void add_unread() { has_unread_ = true; }

  [[nodiscard]] std::vector<recorder::KnownImport> of(const target::LinkedNames& names) const;

 private:
  struct Exporters {
    unsigned recorded = 0;
    unsigned silent = 0;
  };
  std::unordered_map<std::string, Exporters> by_name_;
  bool has_unread_ = false;
};

}  // namespace clew::engine

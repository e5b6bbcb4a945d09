// SPDX-License-Identifier: Apache-2.0
// UserTypes: the types of traced programs for D programs, converted from DWARF when they are named.
//
// A record of a program is declared in the table as `pid12`libfoo`name`, so that it is never taken
// for the kernel's or another program's of that name, and so that what a pointer leads to can be
// completed later. As in KernelTypes, no TypeIds are kept: what was converted is found in the table
// by that name. All of them are userland types: what their pointers lead to is read from the
// process.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "query/d/types.h"
#include "target/catalog.h"

namespace clew::engine {

class UserTypes {
 public:
  // Its types can be named from now on, those of the first process before others'.
  void add_process(pid_t pid);

  // `module`: "" any module, the program itself first; "a.out", "libc", "libc.so.6"; each of them
  // behind "pid12`", or "pid12" alone. kNoType when there is none.
  query::d::TypeId find(query::d::TypeTable& table, std::string_view module, query::d::Tag tag,
                        std::string_view name);
  std::optional<query::d::TypeEnumerator> find_enumerator(std::string_view name);

 private:
  struct Module {
    target::DebugInfo* types = nullptr;
    std::string prefix;  // Of its types' names in the table.
  };
  [[nodiscard]] std::vector<Module> modules(std::string_view name);
  void add_modules(pid_t pid, std::string_view name, std::vector<Module>& found);
  target::Catalog* catalog_of(pid_t pid);

  std::vector<pid_t> pids_;
  std::map<pid_t, std::optional<target::Catalog>> catalogs_;  // Nothing: it cannot be read.
};

}  // namespace clew::engine

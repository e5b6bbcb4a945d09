// SPDX-License-Identifier: Apache-2.0
// Which imports of a module lead where their names say, in a process that has not begun: no other
// of its modules has a function of that name. A library that is opened later does not change that.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "recorder/imports.h"
#include "target/module_image.h"

namespace clew::engine {

// What a module's file says of names.
struct ModuleNames {
  struct Import {
    recorder::KnownImport import;
    std::string symbol;
  };
  std::vector<std::string> functions;  // That others may find; each once.
  std::vector<Import> imports;         // Of names that are known. By slot.
  bool opens_libraries = false;        // It may have some loaded later.

  static Expected<ModuleNames> of(const target::ModuleImage& image);
};

class KnownImports {
 public:
  // Each module of the process, before the first question. `is_silent`: it is a part of the C
  // library, and not recorded.
  void add(const ModuleNames& module, bool is_silent);
  // A module that cannot be read may have any name.
  void add_unread() { has_unread_ = true; }

  [[nodiscard]] std::vector<recorder::KnownImport> of(const ModuleNames& module) const;

 private:
  struct Exporters {
    unsigned recorded = 0;
    unsigned silent = 0;
  };
  std::unordered_map<std::string, Exporters> by_name_;
  bool has_unread_ = false;
};

}  // namespace clew::engine

// SPDX-License-Identifier: Apache-2.0
// Which imports of a module lead where their names say, in a process that has not begun: no other
// of its modules has a function of that name. A library that is opened later does not change that.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "recorder/imports.h"
#include "target/module_image.h"
#include "target/process.h"

namespace clew::engine {

class KnownImports {
 public:
  // Each module of the process, before the first question. `is_silent`: it is a part of the C
  // library, and not recorded. One that cannot be read may have any name.
  void add(const target::ProcessModule& module, bool is_silent);

  Expected<std::vector<recorder::KnownImport>> of(const target::ModuleImage& image) const;

 private:
  struct Exporters {
    unsigned recorded = 0;
    unsigned silent = 0;
  };
  std::unordered_map<std::string, Exporters> by_name_;
  bool has_unread_ = false;
};

}  // namespace clew::engine

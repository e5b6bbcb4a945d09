// SPDX-License-Identifier: Apache-2.0
// The D libraries of -L (-x libdir): files with definitions that every program may use.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace clew::engine {

struct DLibrary {
  std::string path;
  std::string text;
};

// All *.d of a directory, those that others depend on (#pragma D depends_on library x.d) before
// them. A library that depends on a module or provider that `is_there` does not know is left out;
// `kind` is "module" or "provider". Io: the directory cannot be read.
using DependencyQuestion = std::function<bool(std::string_view kind, std::string_view name)>;
Expected<std::vector<DLibrary>> read_libraries(const std::string& directory,
                                               const DependencyQuestion& is_there);

}  // namespace clew::engine

// SPDX-License-Identifier: Apache-2.0
// What gdb must know of the copies in a process, or in its core file: a folder with a file of
// symbols for each module that is recorded (symbol_file.h), and a script that reads them all.
//
//     app.gdb/copies.gdb
//     app.gdb/0.sym, 1.sym, ...
//
// The script has no word that comes from the snap: that would be a command of anybody's.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace clew::recorder {

struct DebuggerFiles {
  std::string script;
  size_t modules = 0;
  size_t functions = 0;
  std::vector<std::string> problems;  // Modules that could not be read, and why.
};

struct DebuggerRequest {
  std::string snap;
  std::string folder;  // Is made.
  std::function<void(std::string_view)> progress = {};
};

// Errors: those of reading the snap; Io, also when the folder is there; Refused when its name
// cannot stand in a script.
Expected<DebuggerFiles> write_for_debugger(const DebuggerRequest& request);

}  // namespace clew::recorder

// SPDX-License-Identifier: Apache-2.0
// PerfMap: names of code that a process made while it ran. Compilers of that kind (node, Java
// agents, .NET, PHP, Python 3.12) write /tmp/perf-PID.map, one line a function: "START SIZE name",
// numbers in hexadecimal without a prefix (Linux, tools/perf/Documentation/jit-interface.txt).
//
// Anybody may write to /tmp: only a regular file of the process's user, or of root, is taken, as
// perf does. What is in it is hostile all the same: lines that are no functions are left out, and
// its size has a limit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"

namespace clew::target {

// What stands for the module of such code.
inline constexpr const char* kMadeCode = "jit";

struct PerfMapPlace {
  std::string function;
  uint64_t offset_bytes = 0;
};

class PerfMap {
 public:
  explicit PerfMap(pid_t pid) : pid_(pid) {}

  // The file is read at the first question, and again when it has changed and the address is not
  // known. Nothing where there is no file, or no function there. What was read outlives the
  // process.
  std::optional<PerfMapPlace> find(uint64_t address);

 private:
  struct Function {
    uint64_t end = 0;
    std::string name;
  };

  [[nodiscard]] std::optional<PerfMapPlace> known(uint64_t address) const;
  void read();
  void add_line(std::string_view line);

  pid_t pid_;
  std::map<uint64_t, Function> functions_;  // By where they begin; they do not overlap.
  timespec changed_{};                      // Of the file that was read last, …
  off_t size_bytes_ = -1;                   // … -1 before the first.
};

}  // namespace clew::target

// SPDX-License-Identifier: Apache-2.0
// PerfMap: names of code that a process made while it ran. Compilers of that kind (node, Java
// agents, .NET, PHP, Python 3.12) write /tmp/perf-PID.map, one line a function: "START SIZE name",
// numbers in hexadecimal without a prefix (Linux, tools/perf/Documentation/jit-interface.txt).
//
// Anybody may write to /tmp: only a regular file of the process's user, or of root, is taken, as
// perf does. What is in it is hostile all the same: lines that are no functions are left out, and
// its size has a limit.
#pragma once

#include <chrono>
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

  using Clock = std::chrono::steady_clock;

  // The file is read at the first question, and again when it has changed and the address is not
  // known: what is new in it, unless it is another file. Compilers write without end, and many
  // addresses are in no map, so after a look there is none for a time that grows with what was
  // read, up to a second. Nothing where there is no file, or no function there. What was read
  // outlives the process.
  std::optional<PerfMapPlace> find(uint64_t address, Clock::time_point now = Clock::now());

 private:
  struct Function {
    uint64_t end = 0;
    std::string name;
  };

  [[nodiscard]] std::optional<PerfMapPlace> known(uint64_t address) const;
  [[nodiscard]] bool has_grown(int file, const struct stat& status) const;
  size_t read();
  void add_lines(std::string_view text);
  void add_line(std::string_view line);

  pid_t pid_;
  std::map<uint64_t, Function> functions_;  // By where they begin; they do not overlap.
  struct stat last_ {};                     // Of the file that was read last.
  off_t done_bytes_ = 0;                    // Of it: the lines that have their ends,
  std::string last_line_;                   // and the end of the last of them.
  Clock::time_point next_look_{};
};

}  // namespace clew::target

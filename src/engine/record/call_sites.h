// SPDX-License-Identifier: Apache-2.0
// Where a thread that is in code without records, as the C library, was called from: the return
// address in a copy. By the call frame information of that code and the thread's stack, as far as
// both say it for sure; of a thread that waits in a system call rbp and rbx are not known at first.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>
#include <sys/user.h>

#include "target/process.h"
#include "target/unwind_rows.h"

namespace clew::engine {

class CallSites {
 public:
  using IsInCopy = std::function<bool(uint64_t pc)>;

  // Reads what it needs of modules that it has not seen yet, so that nobody waits for it later;
  // some 10 ms for a C library.
  void read(const std::vector<target::ProcessModule>& modules);

  // Of a thread that stands, or waits; reads what it meets and has not read. Nothing when it is in
  // a copy itself, or that is not known.
  [[nodiscard]] std::optional<uint64_t> find(pid_t process, const user_regs_struct& registers,
                                             const std::vector<target::ProcessModule>& modules,
                                             const IsInCopy& is_in_copy);

 private:
  const target::UnwindRows& rows_of(const target::ProcessModule& module);

  std::map<std::string, target::UnwindRows> rows_;  // By path and build-id.
};

}  // namespace clew::engine

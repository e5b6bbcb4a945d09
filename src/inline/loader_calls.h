// SPDX-License-Identifier: Apache-2.0
// From a program's exec to where nothing of it has run yet but the loader: by the loader's system
// calls, at which the process stops. Nothing of ours is in it meanwhile, so that it runs on as if
// nobody had looked when the tracer dies.
//
// The loader has one more call to make once its list of modules is complete: it unmaps its cache
// (glibc, dl_main()), before any constructor runs. Where it used no cache, as all libraries were
// found by LD_LIBRARY_PATH, there is no such place. A program without a loader stands at its entry
// as its exec returns.
//
// The caller traces the process, with its one thread and PTRACE_O_TRACESYSGOOD: begin() as it
// stands for its exec, then let it go on by PTRACE_SYSCALL, and stopped() for each SIGTRAP | 0x80.
#pragma once

#include <cstdint>

#include <sys/types.h>

#include "base/error.h"

namespace clew::inline_ {

class LoaderCalls {
 public:
  explicit LoaderCalls(pid_t pid) : pid_(pid) {}
  // Errors: Refused for a 32-bit program.
  Expected<void> begin();
  // Whether it is there. Errors: Io when it is not after so many calls; Refused when the program
  // runs already.
  Expected<bool> stopped();

 private:
  [[nodiscard]] Expected<bool> is_loaded(uint64_t pc) const;

  pid_t pid_;
  uint64_t entry_ = 0;
  uint64_t loader_ = 0;  // Where it is mapped. 0: there is none.
  uint64_t loader_end_ = 0;
  unsigned calls_ = 0;
};

}  // namespace clew::inline_

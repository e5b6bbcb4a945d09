// SPDX-License-Identifier: Apache-2.0
// From a program's exec to where nothing of it has run yet but the loader: the loader's own notice
// to debuggers (_dl_debug_state with r_debug.r_state = RT_CONSISTENT), or the entry point of a
// static program. For commands that we start, which are killed with us until they run: the
// instruction that stops them would kill what others have started (loader_calls.h).
//
// The caller traces the process, with its one thread, and waits for it: begin(), then let it go on
// by how(), and each time that it stands for a SIGTRAP, trapped(). So many can be on their way at
// once, and signals that come meanwhile are the caller's business.
#pragma once

#include <cstdint>

#include <sys/ptrace.h>
#include <sys/types.h>

#include "base/error.h"

namespace clew::inline_ {

// Until the instruction at an address is next. By a breakpoint of the processor, or by an
// instruction, where only the file's own stands. Else in steps, which is slow: a loader has some
// 100,000 instructions. The trap of a uprobe is the kernel's, we would not be told of it.
class RunTo {
 public:
  RunTo(pid_t pid, uint64_t address) : pid_(pid), address_(address) {}
  // Both: whether it is there, and nothing of ours is in the process any more. Errors: Io; then
  // undo() is to be called.
  Expected<bool> begin();
  Expected<bool> trapped();
  [[nodiscard]] __ptrace_request how() const {
    return way_ == Way::Steps ? PTRACE_SINGLESTEP : PTRACE_CONT;
  }
  // It goes on to elsewhere.
  void undo();

 private:
  enum class Way : uint8_t { None, Register, Instruction, Steps };
  Expected<bool> is_there() const;
  [[nodiscard]] bool write_byte(uint8_t byte) const;

  pid_t pid_;
  uint64_t address_;
  Way way_ = Way::None;
  uint8_t original_ = 0;
};

class ProgramStart {
 public:
  explicit ProgramStart(pid_t pid) : pid_(pid), run_(pid, 0) {}
  // As those of RunTo. Errors also: Refused for a 32-bit program.
  Expected<bool> begin();
  Expected<bool> trapped();
  [[nodiscard]] __ptrace_request how() const { return steps_off_ ? PTRACE_SINGLESTEP : run_.how(); }
  void undo() { run_.undo(); }

 private:
  pid_t pid_;
  RunTo run_;
  uint64_t notice_ = 0;  // 0: the program has no loader that gives one.
  unsigned notices_ = 0;
  bool steps_off_ = false;  // The notice's instruction, so that it can be stopped at again.
};

}  // namespace clew::inline_

// SPDX-License-Identifier: Apache-2.0
// A D probe: its four names, and how the kernel makes it fire.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "abi/machine/tables.h"

namespace clew::kernel {

enum class AttachKind : uint8_t {
  Host,            // BEGIN, END, ERROR: run by the tracer (BPF_PROG_TEST_RUN), or by a fault
  RawTracepoint,   // `symbol`: the tracepoint's name; its arguments are arg0…
  TraceEvent,      // `number`: the event's id in tracefs. arg0 = the address of its record
  CallMoves,       // The same, of the end of a system call that has moved bytes through a
                   // descriptor (`moves`): arg0 = the pipe or socket, arg1 = how many, arg2 = its
                   // inode, arg3 = what the pipe has left, arg4, arg5 = the call's third and fourth
  SyscallEntry,    // `number`; all through raw_tp/sys_enter. arg0… = the call's arguments
  SyscallReturn,   // `number`; raw_tp/sys_exit. arg0 = arg1 = the result
  Profile,         // Every `period_ns` on every CPU. arg0 = kernel pc or 0, arg1 = user pc or 0
  Tick,            // Every `period_ns` on one CPU. The same arguments
  FunctionEntry,   // `symbol` of the kernel: kprobe
  FunctionReturn,  // kretprobe: arg0 = 0 (offset), arg1 = the result. Where the argument map or a
                   // filter asks for arg2…, fexit: the function's own arguments (lockstat, io)
  UserEntry,       // uprobe at `offset_bytes` of the file `path`, of `pid` (0 = all)
  UserReturn,      // uretprobe
  UserExit,    // uprobe at an instruction that leaves a function, the stack pointer at its return
               // address: as UserReturn, and that address stays what it is
  UserOffset,  // uprobe inside a function; arg0…: none
  LockReturn,  // uretprobe of a function that takes a lock (`lock_kind`), its first argument:
               // arg0 = the lock, arg1 = the result, arg2 = whether the thread waited,
               // arg3 = whether it is for writing, arg4 = whether the thread has it
  LockWait,    // A thread of `pid` waits in such a function: arg0 = the lock, arg1 = whether it
               // is for writing
  Usdt,        // uprobe with arguments by `usdt_arguments`, `semaphore_offset_bytes`
};

// Whether it needs a breakpoint of the kernel at `offset_bytes` of `path`.
constexpr bool needs_uprobe(AttachKind kind) {
  switch (kind) {
    case AttachKind::UserEntry:
    case AttachKind::UserReturn:
    case AttachKind::UserExit:
    case AttachKind::UserOffset:
    case AttachKind::Usdt:
    case AttachKind::LockReturn:
    case AttachKind::LockWait:
      return true;
    case AttachKind::Host:
    case AttachKind::RawTracepoint:
    case AttachKind::TraceEvent:
    case AttachKind::CallMoves:
    case AttachKind::SyscallEntry:
    case AttachKind::SyscallReturn:
    case AttachKind::Profile:
    case AttachKind::Tick:
    case AttachKind::FunctionEntry:
    case AttachKind::FunctionReturn:
      return false;
  }
  return false;
}

// A condition on an argument of the attach point, or on kernel memory that it points to.
struct ProbeFilter {
  uint8_t argument = 0;            // Of the attach point: before argument_map.
  uint8_t load_bytes = 0;          // 0: the argument itself; 1, 2, 4 or 8: so much of the kernel's
  uint32_t load_offset_bytes = 0;  // memory at the argument + load_offset_bytes, zero-extended.
  bool is_inverted = false;        // The comparison must fail.
  uint64_t mask = ~uint64_t{0};
  uint64_t value = 0;  // (it & mask) == value

  auto operator<=>(const ProbeFilter&) const = default;
};

// What else than an argument of the attach point an entry of argument_map may stand for.
inline constexpr uint8_t kArgumentLoaded = 0xED;  // The kernel's word at argument 0 +
                                                  // load_offset_bytes; 0 when that is bad.
inline constexpr uint8_t kArgumentTask = 0xEE;    // The current task (struct task_struct *).
inline constexpr uint8_t kArgumentErrno = 0xEF;   // SyscallReturn: errno.
inline constexpr uint8_t kArgumentNumber = 0xF0;  // From here on: the number entry - 0xF0.

// Of AttachKind::CallMoves.
struct Moves {
  bool of_sockets = false;      // Else of pipes.
  uint8_t descriptor = 0;       // Which argument of the call it is: 0 to 2.
  bool wants_unread = false;    // What a pipe has left: where a clause looks at it.
  std::vector<int64_t> pids{};  // Of whom alone; at most kMovesPidsMax. None: of all.

  auto operator<=>(const Moves&) const = default;
};
inline constexpr size_t kMovesPidsMax = 4;
inline constexpr uint32_t kUnreadArgument = 3;

struct Probe {
  uint32_t id = 0;
  std::string provider;
  std::string module;
  std::string function;
  std::string name;

  AttachKind kind = AttachKind::Host;
  std::string symbol;
  uint32_t number = 0;
  uint64_t period_ns = 0;
  std::string path;
  uint64_t offset_bytes = 0;
  uint64_t semaphore_offset_bytes = 0;
  Moves moves;
  std::string usdt_arguments;
  int64_t pid = 0;
  abi::MachineLockKind lock_kind = abi::MachineLockKind::Mutex;
  // A USDT probe that a glob for any process met: it stands for this place of the file in every
  // process, also in those that start later. `pid` is one that has it.
  bool is_everywhere = false;
  // How the provider's arguments are made of the attach point's: argument i is that one's
  // argument_map[i]; empty = as they are. (proc, sched, io: over tracepoints.)
  std::vector<uint8_t> argument_map;
  uint32_t load_offset_bytes = 0;  // For kArgumentLoaded.
  // The probe fires only when argument `filter_argument` & filter_mask == filter_value, if
  // filter_mask is not 0 (lockstat, io by its operation).
  // (An argument of the attach point: before argument_map.)
  uint8_t filter_argument = 0;
  uint64_t filter_mask = 0;
  uint64_t filter_value = 0;
  // Further conditions, which must hold too; at most kProbeFiltersMax.
  std::vector<ProbeFilter> more_filters;
  // The probe fires only in a process's first thread (proc:::start).
  bool is_first_thread_only = false;
  // FunctionEntry, FunctionReturn: the program asks where the call's frame is, to pair the two.
  // That takes a probe of its own: what kprobe.multi says at returns has no stack pointer, or not
  // that of the function, from Linux 6.14 on (arch/x86/kernel/ftrace_64.S, return_to_handler).
  bool needs_frame = false;
  // What is missed as it interrupts its own program is none of what is wanted.
  bool ignores_nested = false;
};

inline constexpr uint32_t kProbeFiltersMax = 3;
inline constexpr uint32_t kBeginProbe = 1;
inline constexpr uint32_t kEndProbe = 2;
inline constexpr uint32_t kErrorProbe = 3;

}  // namespace clew::kernel

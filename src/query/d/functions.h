// SPDX-License-Identifier: Apache-2.0
// The names that D itself knows: built-in variables, subroutines (functions of an expression),
// actions (statements that record or do something) and aggregating functions; one table each in
// functions.cc, with prototypes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "abi/aggregate.h"

namespace clew::query::d {

enum class Builtin : uint8_t {
  None,
  Arg0,
  Arg1,
  Arg2,
  Arg3,
  Arg4,
  Arg5,
  Arg6,
  Arg7,
  Arg8,
  Arg9,         // int64_t
  Args,         // args[]: typed by the probe
  Caller,       // uintptr_t: pc of the kernel caller
  Cpu,          // processorid_t (int)
  Curcpu,       // cpuinfo_t *
  Curlwpsinfo,  // lwpsinfo_t *
  Curpsinfo,    // psinfo_t *
  Curthread,    // struct task_struct *
  Cwd,          // string
  Epid,         // uint_t
  Errno,        // int
  Execargs,     // string
  Execname,     // string
  Fds,          // fileinfo_t []
  Gid,
  Id,  // uint_t: the probe's
  Ipl,
  Pid,  // pid_t
  Ppid,
  Probefunc,  // string, and so on:
  Probemod,
  Probename,
  Probeprov,
  Root,
  Stackdepth,
  Tid,        // id_t
  Timestamp,  // uint64_t, ns
  Ucaller,
  Uid,
  Uregs,  // uregs[]
  Ustackdepth,
  Vtimestamp,
  Walltimestamp,  // int64_t, ns since 1970
};

enum class Subroutine : uint8_t {
  None,
  Alloca,
  Basename,
  Bcopy,
  Cleanpath,
  Copyin,
  Copyinstr,
  Copyinto,
  DPath,
  DdiPathname,
  Dirname,
  Getmajor,
  Getminor,
  Htonl,
  Htonll,
  Htons,
  Index,
  InetNtoa,
  InetNtoa6,
  InetNtop,
  Json,
  LinkNtop,
  Lltostr,
  Msgdsize,
  Msgsize,
  MutexOwned,
  MutexOwner,
  MutexTypeAdaptive,
  MutexTypeSpin,
  Ntohl,
  Ntohll,
  Ntohs,
  Progenyof,
  Rand,
  Rindex,
  RwIswriter,
  RwReadHeld,
  RwWriteHeld,
  Speculation,
  Strchr,
  Strjoin,
  Strlen,
  Strrchr,
  Strstr,
  Strtok,
  Strtoll,
  Substr,
  Tolower,
  Toupper,
};

enum class Action : uint8_t {
  None,
  Breakpoint,
  Chill,
  Clear,
  Commit,
  Copyout,
  Copyoutstr,
  Denormalize,
  Discard,
  Exit,
  Freopen,
  Ftruncate,
  Jstack,
  Mod,
  Normalize,
  Panic,
  Pcap,
  Print,
  Printa,
  Printf,
  Raise,
  Setopt,
  Speculate,
  Stack,
  Stop,
  Sym,
  System,
  Trace,
  Tracemem,
  Trunc,
  Uaddr,
  Ufunc,
  Umod,
  Ustack,
  Usym,
};

using abi::AggregateFunction;  // Up to Llquantize.

// Nothing when the name is none of them. Functions like stack() are both actions and, in keys of
// aggregations, expressions of dynamic type.
std::optional<Builtin> find_builtin(std::string_view name);
std::optional<Subroutine> find_subroutine(std::string_view name);
std::optional<Action> find_action(std::string_view name);
std::optional<AggregateFunction> find_aggregate(std::string_view name);

// Whether D itself has a function of that name, which then is what a call means.
bool is_d_function(std::string_view name);

std::string_view name_of(Builtin builtin);
std::string_view name_of(Subroutine subroutine);
std::string_view name_of(Action action);

}  // namespace clew::query::d

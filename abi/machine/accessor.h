// SPDX-License-Identifier: Apache-2.0
// The accessors of D programs, besides those of abi/accessor.h: numbers of BPF CALLs from
// kMachineAccessorBase on. In all of them r1 is the window (loaded as window pointer 0), the others
// are numbers; window addresses are offsets in it. "string" is the offset of a NUL-terminated text
// of at most string_bytes, or 0 for NULL. "dst" is the offset of string_bytes of room. "address" is
// a D pointer: the kernel's, or tagged (kMachineWindowTag, kMachineGlobalTag) the window's or the
// globals'; with user = 1 the process's.
//
// An accessor that fails sets header.fault and returns 0; the program looks at it after each call
// that is marked F, and ends the clause.
#pragma once

#include <cstdint>

namespace clew::abi {

inline constexpr uint32_t kMachineAccessorBase = 64;

enum class MachineAccessor : uint32_t {
  Before = kMachineAccessorBase - 1,
#define CLEW_MACHINE_ACCESSOR(name, in_kernel, in_process, arguments) name,
#include "abi/machine/accessors.def"
  End,
};

inline constexpr uint32_t kMachineAccessorCount =
    static_cast<uint32_t>(MachineAccessor::End) - kMachineAccessorBase;

// Built-in variables, by the numbers of query::d::Builtin (src/plan/d checks that they agree).
// args[] and the names that have no value here are left out.
enum class MachineBuiltin : uint64_t {
  Arg0 = 1,  // … Arg9 = 10
  Arg9 = 10,
  Caller = 12,
  Cpu = 13,
  Curcpu = 14,       // Number of the CPU.
  Curlwpsinfo = 15,  // struct task_struct *, as the next two.
  Curpsinfo = 16,
  Curthread = 17,
  Cwd = 18,
  Epid = 19,
  Errno = 20,
  Execargs = 21,
  Execname = 22,
  Gid = 24,
  Id = 25,
  Ipl = 26,
  Pid = 27,
  Ppid = 28,
  Probefunc = 29,
  Probemod = 30,
  Probename = 31,
  Probeprov = 32,
  Root = 33,
  Stackdepth = 34,
  Tid = 35,
  Timestamp = 36,
  Ucaller = 37,
  Uid = 38,
  Ustackdepth = 40,
  Vtimestamp = 41,
  Walltimestamp = 42,
};

}  // namespace clew::abi

// SPDX-License-Identifier: Apache-2.0
// The accessors of D programs, besides those of abi/accessor.h: numbers of BPF CALLs from
// kDAccessorBase on. In all of them r1 is the window (loaded as window pointer 0), the others are
// numbers; window addresses are offsets in it. "string" is the offset of a NUL-terminated text of
// at most string_bytes, or 0 for NULL. "dst" is the offset of string_bytes of room. "address" is a
// D pointer: the kernel's, or tagged (kDWindowTag, kDGlobalTag) the window's or the globals'; with
// user = 1 the process's.
//
// An accessor that fails sets header.fault and returns 0; the program looks at it after each call
// that is marked F, and ends the clause.
#pragma once

#include <cstdint>

namespace clew::abi {

inline constexpr uint32_t kDAccessorBase = 64;

enum class DAccessor : uint32_t {
  // memory
  Load = kDAccessorBase,  // (w, address, size 1|2|4|8, user) F: the bytes, zero-extended.
  Store,                  // (w, address, size, value) F: only tagged addresses can be stored to.
  Copy,                   // (w, dst, address, size, user) F: any size <= 4096.
  ReadString,             // (w, dst, address, size_max, user) F: dst; the rest up to a multiple of
                          // 8 is zeroed. address 0 is a fault.
  CopyOut,                // (w, address, src, size) F
  Alloca,                 // (w, size) F: tagged pointer to zeroed scratch, 8-aligned.
  MoveString,             // (w, dst, string): copies; a NULL string gives 0, else dst.
  PadString,              // (w, dst, string, size): copies and zeroes up to size (keys, records);
                          // NULL becomes "". 0.
  // variables
  VariableLoad,        // (w, variable): value of 8 bytes, 0 when it does not exist.
  VariableStore,       // (w, variable, value) F(Dropped)
  VariableLoadBytes,   // (w, variable, dst): 1, or 0 and dst zeroed when it does not exist.
  VariableStoreBytes,  // (w, variable, src) F(Dropped): value_bytes bytes.
  VariableDelete,      // (w, variable)
  GlobalLoadBytes,     // (w, dst, offset in globals, size)
  GlobalStoreBytes,    // (w, offset in globals, src, size)
  // built-in variables
  BuiltinInteger,  // (w, query::d::Builtin): the value. F
  BuiltinString,   // (w, query::d::Builtin, dst) F: dst.
  UserRegister,    // (w, index) F
  UserArgument,    // (w, index) F: argument on the user's stack or in registers, for index >= 6
  // strings; results are strings (dst or 0) unless said
  StringLength,    // (w, string) F: bytes
  StringCompare,   // (w, a, b): -1, 0, 1; NULL equals only NULL and is less than all.
  StringJoin,      // (w, dst, a, b) F
  Substring,       // (w, dst, string, first, count) F: count INT64_MAX = to the end
  Tokenize,        // (w, dst, string or 0 to go on, delimiters) F: strtok
  FindString,      // (w, string, needle, from or INT64_MIN) F: index(), -1 when absent
  FindLastString,  // (w, string, needle, from or INT64_MIN) F: rindex()
  StringAt,        // (w, dst, string, byte) F: strchr
  StringAtLast,    // strrchr
  StringFrom,      // (w, dst, string, needle) F: strstr
  BaseName,        // (w, dst, string) F
  DirectoryName,
  CleanPath,
  ToLower,
  ToUpper,
  NumberToString,  // (w, dst, value, base or 0) F: lltostr; base 0: decimal signed
  StringToNumber,  // (w, string, base) F: strtoll
  Json,            // (w, dst, string, key string) F
  InetNtoa,        // (w, dst, address) F: of the 4 bytes at an address
  InetNtoa6,       // of 16 bytes
  InetNtop,        // (w, dst, family, address) F
  LinkNtop,        // (w, dst, type, address) F
  DPath,           // (w, dst, address of a struct path) F
  Random,          // (w)
  Progenyof,       // (w, pid)
  // aggregations: key in the key area
  Aggregate,  // (w, aggregation, value, weight)
  // records
  Commit,            // (w, size): emits the record at kDRecordOffset; size with its header.
  Speculation,       // (w): a new id or 0
  Speculate,         // (w, id) F
  SpeculateCommit,   // (w, id) F
  SpeculateDiscard,  // (w, id) F
  Stack,             // (w, dst offset, frames, kind 0 kernel 1 user): frames + 1 words (user: + 2):
                     // [user: tgid], then pcs, 0 ends.
  StackDepth,        // (w, kind)
  Exit,              // (w, code)
  Raise,             // (w, signal)
  Chill,             // (w, ns) F
  ProbeName,  // (w, DBuiltin): where the texts of the session's names have probeprov, probemod,
              // probefunc or probename. Equal texts are in one place.
  End,
};

inline constexpr uint32_t kDAccessorCount = static_cast<uint32_t>(DAccessor::End) - kDAccessorBase;

// Built-in variables, by the numbers of query::d::Builtin (src/plan/d checks that they agree).
// args[] and the names that have no value here are left out.
enum class DBuiltin : uint64_t {
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

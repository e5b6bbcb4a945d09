// SPDX-License-Identifier: Apache-2.0
// A query's probe in the kernel: how the program of a query (src/plan), which is written for a
// region and a context (abi/region.h, abi/context.h), lies in a window of the D machine
// (abi/machine/window.h). src/kernel/probe_to_bpf.cc translates addresses by this table.
//
//     in the program                        in the window
//     argument 0 to 5 of the context        MachineWindowHeader::arguments
//     return value of the context           MachineWindowHeader::arguments[1]
//     frame of the context                  MachineWindowHeader::frame_address
//     the context's other words             kQueryContextOffset + their offset there
//     window pointer p below kQueryMachine  kQueryRegionOffset + p: header and frame of a region
//     window pointer kQueryMachine + p      p itself
//     site constant                         MachineWindowHeader::enabling
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/context.h"
#include "abi/machine/window.h"
#include "abi/region.h"

namespace clew::abi {

inline constexpr uint32_t kQueryRegionOffset = kMachineLocalOffset;
inline constexpr uint32_t kQueryRegionBytes = 0x800;  // Behind the frame: the words of sample().
inline constexpr uint32_t kQueryContextOffset = kQueryRegionOffset + kQueryRegionBytes;
inline constexpr uint32_t kQueryCommOffset = kQueryContextOffset + 0x200;
inline constexpr uint32_t kQueryCommBytes = 16;
inline constexpr uint32_t kQueryProcessNameOffset = kQueryCommOffset + kQueryCommBytes;
inline constexpr uint32_t kQueryProcessNameBytes = 64;
inline constexpr uint32_t kQueryNodeNameOffset = kQueryProcessNameOffset + kQueryProcessNameBytes;
inline constexpr uint32_t kQueryNodeNameBytes = 64;
inline constexpr uint32_t kQueryUidOffset = kQueryNodeNameOffset + kQueryNodeNameBytes;
inline constexpr uint32_t kQueryControlGroupOffset = kQueryUidOffset + 8;
inline constexpr uint32_t kQueryEntryOffset = kQueryControlGroupOffset + 8;
inline constexpr uint32_t kQueryEntryBytes = 0x100;  // Time and arguments of a call's entry.
inline constexpr uint32_t kQueryValuesOffset = kQueryEntryOffset + kQueryEntryBytes;
inline constexpr uint32_t kQueryValuesMax = 64;  // Arguments of aggregates.
inline constexpr uint32_t kQueryEnd = kQueryValuesOffset + 8 * kQueryValuesMax;
static_assert(sizeof(Context) <= kQueryCommOffset - kQueryContextOffset);
static_assert(kQueryEnd < kMachineWindowBytes);

inline constexpr uint32_t kQueryMachine = 0x100000;

// A stack in an event or a key: the process, 0 for the stack of the kernel, then the code
// addresses, the innermost first, up to a 0 or `frames` of them.
constexpr uint32_t stack_words(uint32_t frames) {
  return 1 + frames + 1;
}

// What the kernel knows of an event besides its arguments, as further arguments of the context.
enum class QueryWord : uint16_t {
  Pid = 6,
  Comm,         // The address of the thread's name in the window.
  ProcessName,  // The same of the process's.
  Elapsed,      // ns since the entry of the same call.
  EntryArgument0,
  EntryArgument5 = EntryArgument0 + 5,
  // In no context. The address of the machine's name as the process sees it, a constant; and what
  // lies at kQueryUidOffset and kQueryControlGroupOffset: whom the thread may act as, and the
  // number of its control group.
  NodeName = 0x100,
  Uid,
  ControlGroup,
};
static_assert(static_cast<uint32_t>(QueryWord::EntryArgument5) < 6 + kStackArgumentsMax);

// Accessors of such programs besides those of abi/accessor.h and abi/machine/accessor.h; r1 is the
// window, dst an offset in it.
inline constexpr uint32_t kQueryAccessorBase = 192;
enum class QueryAccessor : uint32_t {
  Pid = kQueryAccessorBase,  // (w)
  Tid,                       // (w)
  Comm,                      // (w, dst): kQueryCommBytes bytes.
  ProcessName,               // (w, dst): kQueryProcessNameBytes bytes.
  NodeName,                  // (w, dst): kQueryNodeNameBytes bytes.
  Caller,                    // (w): of a function of the kernel, at its entry.
  UserStack,                 // (w, dst, frames): stack_words(frames).
  KernelStack,               // (w, dst, frames): the same without the process.
  Uid,                       // (w): the effective one, as the machine numbers users.
  ControlGroup,              // (w): of version 2.
  // (address): what may be loaded from; a program has no other pointer to the kernel's memory.
  // What is not there, and in some kernels all, loads as 0.
  KernelMemory,
};

}  // namespace clew::abi

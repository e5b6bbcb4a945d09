// SPDX-License-Identifier: Apache-2.0
// What a probe program sees through r1 at entry: the read-only context of one hit. Native code
// never builds this struct: a load at one of these offsets becomes a register, a stack or a slot
// read. The interpreter and the kernel engine read it as memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace clew::abi {

inline constexpr uint32_t kStackArgumentsMax = 10;
inline constexpr uint32_t kVectorArgumentsMax = 8;

struct Context {
  uint64_t arguments[6];       // rdi rsi rdx rcx r8 r9 as they are at the site.
  uint64_t return_value;       // rax at an exit.
  uint64_t return_value_high;  // rdx at an exit (128-bit results).
  uint64_t frame;       // Address of the return address = rsp at function entry and at an exit.
  uint64_t caller;      // The return address.
  uint64_t tid;         // Thread id in the initial namespace of the tracer; 0 if not known.
  uint64_t process;     // 0 = the attached process, 1.. = a followed child (index, not a pid).
  uint64_t generation;  // 0 or 1: the half of the region that takes updates now.
  uint64_t stack_arguments[kStackArgumentsMax];  // arg6.. : the words above the return address.
  // The low halves of xmm0 to xmm7: arguments at function entry, xmm0 the result at an exit.
  uint64_t vectors[kVectorArgumentsMax];
  uint64_t base_pointer;  // rbp
  uint64_t rbx;           // Of these two, walks along call frame information begin.
};
static_assert(offsetof(Context, return_value_high) == 56);
static_assert(offsetof(Context, caller) == 72);
static_assert(offsetof(Context, tid) == 80);
static_assert(offsetof(Context, process) == 88);
static_assert(offsetof(Context, stack_arguments) == 104);
static_assert(offsetof(Context, vectors) == 184);

static_assert(offsetof(Context, return_value) == 48);
static_assert(offsetof(Context, frame) == 64);
static_assert(offsetof(Context, generation) == 96);
static_assert(sizeof(Context) == 104 + 8 * (kStackArgumentsMax + kVectorArgumentsMax + 2));

}  // namespace clew::abi

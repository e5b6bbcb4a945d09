// SPDX-License-Identifier: Apache-2.0
// The accessors: the only calls that a probe program may make. A number is the `imm` of a BPF CALL
// (opcode 0x85, source register 0) and the index of its entry in the runtime's accessor table.
// Arguments in r1..r5, result in r0; r1..r5 are undefined afterwards, r6..r9 are kept (RFC
// 9669, 2.2).
#pragma once

#include <cstdint>

namespace clew::abi {

enum class Accessor : uint32_t {
  // --- inline in native code, no call -------------------------------------------------------
  Time =
      0,    // r0 = time stamp counter, in ticks. The host knows the rate (no unit is assumed here).
  Cpu = 1,  // r0 = number of the CPU.
  BitLength = 2,  // r0 = 64 - leading zeros of r1; 0 for 0. floor(log2(x)) = BitLength(x) - 1.
  // --- calls into the runtime ---------------------------------------------------------------
  DivideUnsigned = 3,  // r0 = r1 / r2; 0 when r2 = 0 (RFC 9669, 4.1).
  ModuloUnsigned = 4,  // r0 = r1 % r2; r1 when r2 = 0.
  DivideSigned = 5,    // r0 = r1 / r2, truncated; 0 when r2 = 0; INT64_MIN when INT64_MIN / -1.
  ModuloSigned = 6,    // r0 = r1 % r2; r1 when r2 = 0; 0 when INT64_MIN % -1.
  TryRead = 7,  // copy r2 bytes (1..4096) from address r3 to window pointer r1; r0 = 1, or 0 and
                // the destination zeroed when any byte cannot be read. Never a fault or a signal.
  TryReadString =
      8,  // copy a NUL-terminated string from address r3 to window pointer r1, at most r2
          // bytes (1..4096) with its NUL; the rest is zeroed. r0 = length without NUL, or -1.
  TableFind =
      9,  // r1 = index of a table, r2 = window pointer to its key words, r3 = hash of the key;
          // r0 = window pointer to the cells, inserted if new; 0 when full (counted).
  RecordPut = 10,  // r1 = key; r0 = window pointer to the record's payload, 0 when full (counted).
  RecordTake =
      11,  // r1 = key; r0 = window pointer to the payload of the record, which is now free but
           // not yet overwritten; 0 when there is none (counted as unpaired).
  RecordDrop = 12,      // r1 = key; frees its record, if there is one. r0 = 1, or 0 without one.
  RecordTakeLeft = 13,  // r1 = an address on this stack: takes the innermost record whose frame
                        // lies between RegionHeader::unwind_from and it (the record of a call that
                        // the unwinder leaves). r0 as RecordTake, but 0 is the end, no loss.
  WalkStack =
      14,  // r1 = window pointer to stack_words(r2) words (abi/query_window.h), r2 = how many
           // frames at most (0..kStackFramesMax), r3 = address of a return address, r4 and
           // r5 = rbp and rbx there: the pid, then where that call returns to and its
           // callers' calls, then zeros. r0 = a hash of the words, never 0; 0 when the
           // session has no tables (abi/machine/unwind.h): then all words are 0.
  WalkWithin =
      15,  // The same from a place within a function, at an offset point whose stub has saved
           // kAllSaved (abi/stub.h): r3 = the address of the instruction before which the
           // program is, r4 = rbp: the pid, then that address, and the callers' calls.
  WalkLeft =
      16,  // WalkStack from the frame of the record that RecordTakeLeft took last, with what rbp
           // and rbx were at that call's begin. r3 = where the unwinder has put the address at
           // which the program goes on, in place of a return address.
  ContextOpen = 17,  // r0 = window pointer to the thread's context (abi/region.h, ContextLayout); 0
                     // when it is in no request.
  ContextAct = 18,   // r1 = a ContextAct, r2 = an object, r3 = a BagKind for each bag, of
                     // kBagKindBits (region.h); r0 = a ContextOutcome.
};

// What becomes of a thread's context.
enum class ContextAct : uint32_t {
  Begin,  // A request begins.
  End,    // The thread is in none.
  Put,    // Whoever takes the object goes on from here; from nowhere, when the thread is in none.
  Doubt,  // From nobody knows where: whoever takes the object, or joins it, is in none.
  Take,   // The thread goes on from where the object was put.
  Join,   // And from where it is itself, when that is in the same request.
  Lose,   // An act was missed: all contexts of the session are forgotten.
};
enum class ContextOutcome : uint32_t {
  Nothing,  // What was to be taken or joined is not known, or nobody has put it.
  Done,
  Other,    // What was to be joined is in another request: the thread stays in its own.
  Overlap,  // Both have counted, perhaps the same events: it is not known where the thread is.
  InDoubt,  // Nor was it before.
};

inline constexpr uint32_t kAccessorCount = 19;
inline constexpr uint32_t kStackFramesMax = 250;  // An entry of a table with it fits the slack.

}  // namespace clew::abi

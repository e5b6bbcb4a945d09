// SPDX-License-Identifier: Apache-2.0
// Functions of extensions in the kernel: what such a function, the clause that calls it, and the
// accessors share. A thread's variables are memory that the kernel keeps with the thread:
//
//     0     MachineExtensionHead, which no address of the function's reaches
//     64    the area: addresses of the function are offsets in it, masked by its size, a power of 2
//             0     nothing: where NULL points to
//             64    the variables of all extensions
//             end   the function's frame (kMachineExtensionFrameBytes), whose last byte is the
//             area's
//           slack: accesses and reads that begin in the area end here
//
// Arguments and fuel are in the window, in the words that a program in a process has for its frame.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/machine/window.h"

namespace clew::abi {

inline constexpr uint32_t kMachineExtensionArguments = offsetof(MachineWindowHeader, frame);
inline constexpr uint32_t kMachineExtensionFuelWord =
    5;  // Of the frame: what is left of the firing's.
inline constexpr uint32_t kMachineExtensionFuel =
    kMachineExtensionArguments + 8 * kMachineExtensionFuelWord;

struct MachineExtensionHead {
  uint64_t busy;       // A function works on the variables; who interrupts it must not.
  uint64_t exhausted;  // Firings of this thread that were out of fuel.
  uint64_t zero;       // Always 0, which the kernel's verifier does not know,
  uint64_t forgotten;  // and a word of which it forgets where the value came from.
  uint64_t reserved[4];
};
static_assert(offsetof(MachineExtensionHead, exhausted) == 8);
static_assert(offsetof(MachineExtensionHead, zero) == 16);
static_assert(offsetof(MachineExtensionHead, forgotten) == 24);
static_assert(sizeof(MachineExtensionHead) == 64);

inline constexpr uint32_t kMachineExtensionVariables = 64;
inline constexpr uint32_t kMachineExtensionFrameBytes = 512;
inline constexpr uint32_t kMachineExtensionAreaMax = 0x8000;
inline constexpr uint32_t kMachineExtensionSlackBytes = 0x2000;
inline constexpr uint32_t kMachineExtensionExhaustedMax = 8;

constexpr uint32_t extension_state_bytes(uint32_t area_bytes) {
  return static_cast<uint32_t>(sizeof(MachineExtensionHead)) + area_bytes +
         kMachineExtensionSlackBytes;
}

// Why a function ended its firing.
enum class MachineExtensionEnd : uint64_t { NoRoom, Nested, Fuel };

}  // namespace clew::abi

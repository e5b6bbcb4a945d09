// SPDX-License-Identifier: Apache-2.0
// Which instructions the kernel may refuse a uprobe: it runs a displaced instruction elsewhere, and
// knows from its prefixes and opcode whether that can be done (arch_uprobe_analyze_insn() in
// arch/x86/kernel/uprobes.c). Here is a guess only, that the kernel is then asked about: an attempt
// that fails costs tens of milliseconds, so that it is asked once for each class of instructions.
// Internal to attach.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/file_descriptor.h"

namespace clew::kernel {

// Of the file, at an offset; none where it ends before.
inline constexpr size_t kInstructionBytesMax = 15;
using InstructionBytes = std::array<uint8_t, kInstructionBytesMax>;
std::optional<InstructionBytes> read_instruction(const FileDescriptor& file, uint64_t offset_bytes);

// Is this what a uprobe fails with at an instruction that cannot be moved? An error number.
bool is_about_instruction(int64_t error);

// Instructions that the kernel decides on alike have the same class.
using InstructionClass = uint32_t;

// Of the instruction at the begin of `code`, when the kernel may refuse it.
std::optional<InstructionClass> suspect_class(std::span<const uint8_t> code);

// Whether the kernel takes the vector instruction at the begin of `code` for another one. It looks
// at the opcode and not at what VEX or EVEX say of it, so that vpbroadcastd %esi, %ymm17 (opcode
// 7a) is a jp for it, which it does itself: the program goes on without what the instruction does.
// Seen with Linux 6.18; branch_setup_xol_ops() and arch_uprobe_analyze_insn().
bool is_misread(std::span<const uint8_t> code);

}  // namespace clew::kernel

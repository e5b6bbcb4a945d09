// SPDX-License-Identifier: Apache-2.0
// Which instructions the kernel may refuse a uprobe: it runs a displaced instruction elsewhere, and
// knows from its prefixes and opcode whether that can be done (arch_uprobe_analyze_insn() in
// arch/x86/kernel/uprobes.c). Here is a guess only, that the kernel is then asked about: an attempt
// that fails costs tens of milliseconds, so that it is asked once for each class of instructions.
// Internal to attach.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace clew::kernel {

// Instructions that the kernel decides on alike have the same class.
using InstructionClass = uint32_t;

// Of the instruction at the begin of `code`, when the kernel may refuse it.
std::optional<InstructionClass> suspect_class(std::span<const uint8_t> code);

}  // namespace clew::kernel

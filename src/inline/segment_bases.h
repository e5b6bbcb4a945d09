// SPDX-License-Identifier: Apache-2.0
// How threads come by their gs base: by the instruction where the kernel allows it; elsewhere a
// thread without a slot makes a system call (runtime/claim.cc), and those that are there when a
// session comes get theirs from the tracer.
#pragma once

#include "base/error.h"
#include "inline/arena.h"
#include "inline/stopped_target.h"

namespace clew::inline_ {

// Of the target. What its filters of system calls say is found out only where it matters. Refused
// when a thread's own base can be had in no way.
Expected<abi::SegmentBases> find_segment_bases(StoppedTarget& target, bool keeps_self_pointer);

// Gives slots to stopped threads that have none. Helpless: that cannot take one by an instruction.
// Registers are changed and reach them when they run. Does what it can: a thread without a slot is
// one that comes later. All: also who could take one by itself, as copies do not ask for it.
enum class SlotsFor : uint8_t { Helpless, All };
void give_slots(StoppedTarget& target, const Arena& arena, SlotsFor whom = SlotsFor::Helpless);

}  // namespace clew::inline_

// SPDX-License-Identifier: Apache-2.0
// Memory besides the arena that a target shares with one session: how it gets there, and how it is
// known again. A name alone says nothing, since programs map BPF maps of their own, so the journal
// has the places.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "abi/journal.h"
#include "base/error.h"
#include "inline/stopped_target.h"
#include "target/process.h"

namespace clew::inline_ {

// Of files that a tracer makes to be shared; begins with the arena's name, so that a descriptor
// that stays behind is found.
inline constexpr std::string_view kSharedFileName = "clew-arena-session";

// Gives the target a descriptor of ours through a pair of sockets, which are closed again: the
// number that it has there. A tracer that is killed meanwhile leaves them behind.
Expected<uint64_t> hand_over(StoppedTarget& target, int descriptor);

// Of a semaphore: whether its module is still there.
bool is_there(std::span<const target::Mapping> maps, const abi::SharedRecord& semaphore);

// Takes back what a session added to a semaphore of a static probe, once, however often we are
// killed meanwhile. `journaled`: the record, null for a forked child, which shares it.
Expected<void> lower_semaphore(const StoppedTarget& target, const abi::SharedRecord& part,
                               abi::SharedRecord* journaled);

// Descriptors of the process that came by one of these records and were never closed again: whoever
// made them was killed.
std::vector<int> descriptors_left(pid_t pid, std::span<const abi::SharedRecord> records);

// May the mapping be one of them? Only asked for places in the journal.
bool is_shared_part(const target::Mapping& map);

}  // namespace clew::inline_

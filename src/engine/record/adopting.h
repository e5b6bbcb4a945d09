// SPDX-License-Identifier: Apache-2.0
// What a recorder before has left in a process, for the next one: its session, lobes, copies and
// answers are gone on with, as threads may be in the copies, and write into the lobes.
#pragma once

#include <cstdint>

#include <sys/types.h>

#include "base/error.h"
#include "recorder/installable.h"

namespace clew::engine {

// A recorder that was killed has its entries in the text yet.
Expected<void> clean_up_after_recorder(pid_t pid);

// Of a copy with what stands behind it.
uint64_t room_bytes(const recorder::Installable& installable);

}  // namespace clew::engine

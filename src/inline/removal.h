// SPDX-License-Identifier: Apache-2.0
// Takes sessions out of a stopped process: text first, so that no thread enters their code any
// more, then the threads that are inside, then memory.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "inline/arena.h"
#include "inline/attachment.h"
#include "inline/site_journal.h"
#include "inline/stopped_target.h"

namespace clew::inline_ {

// Removes the layers of the sessions in `leaving` (bit s: session s). When `everything` is set all
// layers go and the arena is unmapped; the tracer's own mapping stays readable.
// `stopped` of the report is not set here.
Expected<DetachReport> remove_sessions(StoppedTarget& target, const Arena& arena,
                                       SiteJournal& journal, uint32_t leaving, bool everything);

}  // namespace clew::inline_

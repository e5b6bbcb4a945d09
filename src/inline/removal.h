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

struct RemovalRequest {
  uint32_t leaving = 0;  // Bit s: the layers of session s go.
  // All layers go and the arena is unmapped; the tracer's own mapping stays readable.
  bool everything = false;
  // A forked child of the target: the journal is still needed for the target itself.
  bool keep_journal = false;
};

// `stopped` of the report is not set here.
Expected<DetachReport> remove_sessions(StoppedTarget& target, const Arena& arena,
                                       SiteJournal& journal, const RemovalRequest& request);

}  // namespace clew::inline_

// SPDX-License-Identifier: Apache-2.0
// What an attachment shares with the tracer, as the collector wants it described.
#pragma once

#include "collect/session_view.h"
#include "inline/attachment.h"

namespace clew::engine {

// Everything but what only the session's own programs decide (dense_words, event_words, …).
collect::SessionView session_memory(const inline_::Attachment& attachment,
                                    const abi::RegionLayout& layout);

}  // namespace clew::engine

// SPDX-License-Identifier: Apache-2.0
// Processes that clew record records or has recorded: copies of their functions are there until
// they end.
#pragma once

#include <sys/types.h>

namespace clew::inline_ {

// Also when the recorder is gone. False when its memory map may not be read.
bool is_recorded(pid_t pid);
// The one that records it, or prepares that; 0: none lives.
pid_t recorder_of(pid_t pid);

}  // namespace clew::inline_

// SPDX-License-Identifier: Apache-2.0
// What a session says of what it left in a process: memory that a thread may still go on in, and
// text that is not as its file has it.
#pragma once

#include <span>
#include <string>

#include <sys/types.h>

#include "base/error.h"
#include "inline/attachment.h"

namespace clew::engine {

// "libc.so.6!free+0x4 (libc.so.6+0xa1b2c: e9 10 20 30 40, not 90 90 90 90 90), …", the first few.
std::string places_of(pid_t pid, std::span<const inline_::TextChange> changes);

// An error that says why memory stays, names the places where text that sessions touched differs,
// and each forked child that keeps something.
Expected<void> check_left(pid_t pid, const inline_::DetachReport& report);

}  // namespace clew::engine

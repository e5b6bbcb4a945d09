// SPDX-License-Identifier: Apache-2.0
// The TCP connections of a process that stands still: how many bytes each has carried. Counted from
// there back by its thread's records, each call has a place in the stream, which is also that of
// the other end's call.
#pragma once

#include <sys/types.h>

#include "recorder/snap.h"

namespace clew::engine {

// Of the first kDescriptorsMax descriptors. What cannot be looked at, as behind a process's end, is
// left out. Linux 5.6 (pidfd_getfd(2)).
inline constexpr size_t kDescriptorsMax = 1024;
void read_streams(pid_t process, recorder::Snap& snap);

}  // namespace clew::engine

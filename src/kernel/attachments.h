// SPDX-License-Identifier: Apache-2.0
// What holds programs at attach points; and how uprobes come and go while we may be killed at any
// moment. The kernel that sets or takes breakpoints for a thread gives up in the middle when the
// thread has a SIGKILL to take ("failed to unregister, leaking uprobe": __get_user_pages() of
// mm/gup.c, Linux 6.18), and those that are there stay in the process for good.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/file_descriptor.h"

namespace clew::kernel {

// Descriptors of links and events; an attachment ends with the last descriptor of it.
using Attachments = std::vector<FileDescriptor>;

// BPF_LINK_CREATE, of uprobes. By a process of its own, which goes on when we are killed: it shares
// our memory and descriptors, and ends with the call. The link's descriptor, or -errno.
int64_t create_link(void* attributes, size_t size);

// Takes them back, and returns when text has no breakpoint of theirs. By processes that hold them
// and end: one that is ending takes no signal any more. Where none can be made, here.
void end_uprobes(Attachments& uprobes);

// Takes others back. The end of each waits for all that the kernel's programs do at the time: so
// many wait at once.
void close_all(Attachments& attachments);

}  // namespace clew::kernel

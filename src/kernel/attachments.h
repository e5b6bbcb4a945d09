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

// BPF_LINK_CREATE. By a process of its own, which goes on when we are killed: it shares our memory
// and descriptors, and ends with the call. The link's descriptor, or -errno.
int64_t create_link(void* attributes, size_t size);

// Takes all of them back, and returns when they are gone: text has no breakpoint of theirs then,
// whoever is killed meanwhile. Forks; callers may have threads.
void close_all(Attachments& attachments);

}  // namespace clew::kernel

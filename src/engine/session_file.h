// SPDX-License-Identifier: Apache-2.0
// Files in memory of one session that processes get to read (inline/shared_parts.h).
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/file_descriptor.h"

namespace clew::engine {

// Of zeros; its size is final.
Expected<FileDescriptor> make_session_file(uint64_t size_bytes);
// For the process, which gets no descriptor by which it could write.
Expected<FileDescriptor> open_read_only(const FileDescriptor& file);

}  // namespace clew::engine

// SPDX-License-Identifier: Apache-2.0
// clew snap: a running recorder is asked for a snap of one of its processes, and the snap becomes a
// file of whoever asked. The recorder is found as the process's tracer, and what it sends is
// anybody's bytes.
#pragma once

#include <string>

#include <sys/types.h>

#include "base/error.h"

namespace clew::engine {

struct SnapRequest {
  pid_t process = 0;
  std::string directory = ".";  // Where the snap goes.
};

// The snap's path. Errors: NotFound without such a process; Refused when nothing records it; Io
// when its recorder does not answer, or the file cannot be written.
Expected<std::string> ask_snap(const SnapRequest& request);

}  // namespace clew::engine

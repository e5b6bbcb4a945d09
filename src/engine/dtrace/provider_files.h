// SPDX-License-Identifier: Apache-2.0
// dtrace -h and -G: what the build of a program with static probes of its own needs of the file
// that describes its provider.
#pragma once

#include "base/error.h"
#include "engine/dtrace/request.h"

namespace clew::engine {

// Writes the header, or the object, to -o; without, beside us, named after the script. The object
// is made by the assembler (`as`, which a build has), and the objects that will call its probes are
// looked at by `nm`. The exit status. Errors have DTrace's text without the leading "dtrace: ".
Expected<int> write_provider_files(const DtraceRequest& request);

}  // namespace clew::engine

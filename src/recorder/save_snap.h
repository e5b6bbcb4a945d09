// SPDX-License-Identifier: Apache-2.0
// Snap -> a file whose name is free: NAME.snap, or NAME-PID.snap, … where that is somebody else's,
// as another recorder's just now.
#pragma once

#include <string>

#include "base/error.h"
#include "recorder/snap.h"

namespace clew::recorder {

// Errors: it is no folder, or nothing can be written there.
Expected<void> check_snap_folder(const std::string& folder);

// The path. Errors: Io.
Expected<std::string> save_snap(const std::string& folder, const Snap& snap);

}  // namespace clew::recorder

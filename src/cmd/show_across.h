// SPDX-License-Identifier: Apache-2.0
// clew show --across: one logical thread over the snaps of several processes.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "recorder/show.h"

namespace clew::cmd {

// It ends where the first one's thread `options.thread` does; 0: the first thread that is shown of
// it. Errors: those of reading and showing a snap.
Expected<void> show_across(const std::vector<std::string>& paths,
                           const recorder::ShowOptions& options, bool as_json);

}  // namespace clew::cmd

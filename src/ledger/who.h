// SPDX-License-Identifier: Apache-2.0
// Who we are, and which processes are meant: what /proc and the user database say.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "ledger/entry.h"

namespace clew::ledger {

[[nodiscard]] Who who_we_are();
// Whom the site's rules are about: who logged in, where somebody did, or else our user.
[[nodiscard]] const std::string& acting_user(const Who& who);
// The name of a user; empty where it has none.
[[nodiscard]] std::string user_name(uid_t uid);
// One that has gone meanwhile has no name.
[[nodiscard]] TouchedProcess touched_process(pid_t pid);
// The verb by which we were started: our second word.
[[nodiscard]] std::string our_verb();

}  // namespace clew::ledger

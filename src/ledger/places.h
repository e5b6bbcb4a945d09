// SPDX-License-Identifier: Apache-2.0
// Where the ledger is told: the folder, and the sockets of the system's logs.
#pragma once

#include <string>

namespace clew::ledger {

struct Places {
  std::string folder;  // Empty: there is no home for it.
  std::string journal = "/run/systemd/journal/socket";
  std::string syslog = "/dev/log";
};

// Root's is /var/log/clew, whatever the environment says, so that who may become root to trace
// cannot keep that to themselves by it. Another user's is $CLEW_SESSIONS, else
// $XDG_STATE_HOME/clew, which is ~/.local/state/clew where nothing is said.
[[nodiscard]] Places places_here();

}  // namespace clew::ledger

// SPDX-License-Identifier: Apache-2.0
// clew snap --group: all running recorders that have one name are asked for snaps of all their
// processes, such as a client, a server and its workers. All are asked before any answer is waited
// for, so the snaps are of about the same moment.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"

namespace clew::engine {

struct TakenSnap {
  pid_t process = 0;
  std::string path;
};

struct GroupSnaps {
  std::vector<TakenSnap> snaps;
  std::vector<std::string> problems;  // Of recorders that gave none.
};

// The folder is where the snaps go. Errors: NotFound without such a group, with the nearest name;
// Io when nothing can be written there.
Expected<GroupSnaps> ask_group(const std::string& group, const std::string& folder);

}  // namespace clew::engine

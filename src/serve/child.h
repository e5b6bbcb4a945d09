// SPDX-License-Identifier: Apache-2.0
// A command of ours that runs as a child, and what it writes. It ends as Ctrl-C ends it, also when
// we are killed: whatever happens, the processes that it traces are as they were.
#pragma once

#include <string>

#include <sys/types.h>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "serve/task.h"

namespace clew::serve {

class Child {
 public:
  // Errors: the system has no room for one more.
  static Expected<Child> start(const Command& command);

  // Asks it to end, once. Its answer comes before it is gone.
  void stop();
  // Once it is gone, which `gone` being readable says: "0", "1", …, or "signal 9".
  std::string status();

  FileDescriptor output;
  FileDescriptor messages;
  FileDescriptor gone;
  bool is_session = false;

 private:
  pid_t pid_ = 0;
  bool is_stopped_ = false;
};

}  // namespace clew::serve

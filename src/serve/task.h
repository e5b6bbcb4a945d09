// SPDX-License-Identifier: Apache-2.0
// What the process that speaks HTTP may ask the keeper to run: a closed list of tasks, each of
// which is a verb of this command. Words of strangers are values of its options, and nothing else:
// never an option, a file or a program, except where a task says so.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace clew::serve {

// How the command that a task is runs.
struct Command {
  std::vector<std::string> words{};  // Without the name of the program.
  std::string input{};               // Of its standard input.
  bool is_session = false;           // It traces until it is stopped.
};

struct TaskRules {
  bool commands_allowed = false;  // --allow-commands
};

// `fields`: the name of the task and its words, each "name=value".
//   query, d: a session: text, pid, name, command (a word each), for, max-overhead, follow
//   explain-query, explain-d: what it would do: text, pid, name
//   functions: pid, name, pattern; processes; machine: pid; traced; examples: word
// Errors: there is no such task, a word is not one of its, or commands are not allowed.
Expected<Command> command_of(const std::vector<std::string>& fields, const TaskRules& rules);

}  // namespace clew::serve

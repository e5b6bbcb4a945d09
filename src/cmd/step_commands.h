// SPDX-License-Identifier: Apache-2.0
// The commands of clew show -i, by gdb's words.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"

namespace clew::cmd {

enum class StepCommand : uint8_t {
  Step,
  Next,
  Finish,
  Until,
  Advance,
  ReverseStep,
  ReverseNext,
  ReverseFinish,
  Continue,
  ReverseContinue,
  Break,
  Delete,
  Hits,
  Others,
  Backtrace,
  Frame,
  List,
  Info,
  Thread,
  Start,
  End,
  Goto,
  Print,
  Help,
  Quit,
};

struct StepCommandRow {
  StepCommand command = StepCommand::Help;
  std::string_view names;  // By spaces: the full one, short forms, others.
  std::string_view arguments;
  std::string_view help;
};

// In the order in which help lists them.
std::span<const StepCommandRow> step_commands();

// By a name, or a beginning that only one command has. Errors: NotFound, with the nearest name or
// those that are possible.
Expected<StepCommand> find_step_command(std::string_view word);

}  // namespace clew::cmd

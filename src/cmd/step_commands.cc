// SPDX-License-Identifier: Apache-2.0
#include "cmd/step_commands.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/nearest.h"

namespace clew::cmd {

namespace {

constexpr std::array kRows = {
    StepCommandRow{StepCommand::Step, "step s", "[N]", "to the next line, also into calls"},
    StepCommandRow{StepCommand::Next, "next n", "[N]", "to the function's next line, over calls"},
    StepCommandRow{StepCommand::Finish, "finish fin", "", "behind the function's end"},
    StepCommandRow{StepCommand::Until, "until u", "[WHERE]",
                   "to a later line of the function, out of loops; or to WHERE"},
    StepCommandRow{StepCommand::Advance, "advance", "WHERE",
                   "to WHERE, or where the function ends"},
    StepCommandRow{StepCommand::ReverseStep, "reverse-step rs", "[N]",
                   "to the line before, also into calls from their end"},
    StepCommandRow{StepCommand::ReverseNext, "reverse-next rn", "[N]",
                   "to the function's line before, over calls"},
    StepCommandRow{StepCommand::ReverseFinish, "reverse-finish rfin", "",
                   "to the call of the function"},
    StepCommandRow{StepCommand::Break, "break b", "[WHERE]", "continue is to stop there"},
    StepCommandRow{StepCommand::Delete, "delete d", "[NUMBER]", "a breakpoint; all of them"},
    StepCommandRow{StepCommand::Continue, "continue c", "[N]",
                   "to the next breakpoint, or where the thread stopped"},
    StepCommandRow{StepCommand::ReverseContinue, "reverse-continue rc", "[N]",
                   "to the breakpoint before, or the oldest moment"},
    StepCommandRow{StepCommand::Hits, "hits", "[WHERE]", "all moments that stop there"},
    StepCommandRow{StepCommand::Others, "others", "", "what other threads ran meanwhile"},
    StepCommandRow{StepCommand::Backtrace, "backtrace bt where", "[N]", "the calls in progress"},
    StepCommandRow{StepCommand::Frame, "frame f", "", "where this is"},
    StepCommandRow{StepCommand::List, "list l", "[LINE]",
                   "the source around it, then what follows"},
    StepCommandRow{StepCommand::Info, "info i", "threads | modules | breakpoints", "lists them"},
    StepCommandRow{StepCommand::Thread, "thread t", "[NUMBER]",
                   "this one from now on, by its number or thread id"},
    StepCommandRow{StepCommand::Start, "start", "", "to the oldest moment"},
    StepCommandRow{StepCommand::End, "end fault", "", "to where the thread stopped"},
    StepCommandRow{StepCommand::Goto, "goto", "NUMBER",
                   "to a moment, by the number in front of it"},
    StepCommandRow{StepCommand::Print, "print p display x inspect", "", "values are not recorded"},
    StepCommandRow{StepCommand::Help, "help h", "", "this"},
    StepCommandRow{StepCommand::Quit, "quit q exit", "", "ends; so does Ctrl-D"},
};

std::vector<std::pair<std::string_view, StepCommand>> all_names() {
  std::vector<std::pair<std::string_view, StepCommand>> names;
  for (const StepCommandRow& row : kRows) {
    for (std::string_view left = row.names; !left.empty();) {
      const size_t end = std::min(left.find(' '), left.size());
      names.emplace_back(left.substr(0, end), row.command);
      left.remove_prefix(std::min(end + 1, left.size()));
    }
  }
  return names;
}

}  // namespace

std::span<const StepCommandRow> step_commands() {
  return kRows;
}

Expected<StepCommand> find_step_command(std::string_view word) {
  std::vector<std::string_view> all;
  std::vector<std::string_view> possible;
  std::optional<StepCommand> found;
  bool is_one = true;
  for (const auto& [name, command] : all_names()) {
    if (name == word) return command;
    all.push_back(name);
    if (!name.starts_with(word)) continue;
    possible.push_back(name);
    is_one = is_one && (!found || *found == command);
    found = command;
  }
  if (found && is_one) return *found;
  if (found) {
    return fail(ErrorCode::NotFound,
                fmt::format("'{}' may be {}", word, fmt::join(possible, ", ")));
  }
  const std::string near = nearest_name(word, all);
  return fail(ErrorCode::NotFound,
              fmt::format("no command '{}'; {}", word,
                          near.empty() ? std::string("help lists them")
                                       : fmt::format("did you mean '{}'?", near)));
}

}  // namespace clew::cmd

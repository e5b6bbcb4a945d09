// SPDX-License-Identifier: Apache-2.0
// Command line -> values, with the exit status that a wrong or a helped user gets.
#pragma once

#include <optional>

#include <CLI/CLI.hpp>

#include "cmd/verbs.h"

namespace clew::cmd {

// Nothing when the verb is to go on; else its exit status (help was printed, or an error).
inline std::optional<int> parse_arguments(CLI::App& app, int argument_count,
                                          const char* const* arguments) {
  try {
    app.parse(argument_count, arguments);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? kExitAnswered : kExitUsage;
  }
  return std::nullopt;
}

}  // namespace clew::cmd

// SPDX-License-Identifier: Apache-2.0
// Command line -> values, with the exit status that a wrong or a helped user gets.
#pragma once

#include <optional>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "cmd/verbs.h"

namespace clew::cmd {

// Also takes -v, which every verb has but dtrace, where it means something else. Nothing when the
// verb is to go on; else its exit status (help was printed, or an error).
inline std::optional<int> parse_arguments(CLI::App& app, int argument_count,
                                          const char* const* arguments) {
  int verbose = 0;
  app.add_flag("-v,--verbose", verbose, "say on standard error what is done; -vv: in detail");
  try {
    app.parse(argument_count, arguments);
    if (verbose > 0) log_to_standard_error(verbose > 1 ? LogLevel::Details : LogLevel::Steps);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? kExitAnswered : kExitUsage;
  }
  return std::nullopt;
}

}  // namespace clew::cmd

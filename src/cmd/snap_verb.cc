// SPDX-License-Identifier: Apache-2.0
// clew snap: what a recorded process does now.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cmd/console.h"
#include "cmd/parse_arguments.h"
#include "cmd/verbs.h"
#include "engine/record/ask_snap.h"

namespace clew::cmd {

int snap_verb(int argument_count, const char* const* arguments) {
  engine::SnapRequest request;
  CLI::App app("Writes what a process did that clew record records; it runs on.", "clew snap");
  app.add_option("pid", request.process, "the process, or a child that it forked")
      ->required()
      ->check(whole_number(1));
  app.add_option("-o,--output", request.directory, "the folder for the snap; else the current one");
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  const auto path = engine::ask_snap(request);
  if (!path) return report(path.error());
  fmt::print("{}\n", *path);
  return kExitAnswered;
}

}  // namespace clew::cmd

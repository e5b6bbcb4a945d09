// SPDX-License-Identifier: Apache-2.0
// clew snap: what a recorded process does now, or all those of a group.
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cmd/console.h"
#include "cmd/parse_arguments.h"
#include "cmd/verbs.h"
#include "engine/record/ask_group.h"
#include "engine/record/ask_snap.h"

namespace clew::cmd {
namespace {

void print_json(const engine::GroupSnaps& taken) {
  nlohmann::ordered_json all;
  all["snaps"] = nlohmann::ordered_json::array();
  for (const engine::TakenSnap& snap : taken.snaps)
    all["snaps"].push_back({{"process", snap.process}, {"path", snap.path}});
  all["problems"] = taken.problems;
  fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void print_paths(const engine::GroupSnaps& taken) {
  for (const engine::TakenSnap& snap : taken.snaps)
    fmt::print("{}\n", snap.path);
}

Expected<engine::GroupSnaps> take(const engine::SnapRequest& request,
                                  const std::optional<std::string>& group) {
  if (group) return engine::ask_group(*group, request.directory);
  std::string path = CLEW_TRY(engine::ask_snap(request));
  return engine::GroupSnaps{{{request.process, std::move(path)}}, {}};
}

}  // namespace

int snap_verb(int argument_count, const char* const* arguments) {
  engine::SnapRequest request;
  std::optional<std::string> group;
  bool wants_json = false;
  CLI::App app("Writes what a process did that clew record records; it runs on.", "clew snap");
  auto* const pid = app.add_option("pid", request.process, "the process, or a child that it forked")
                        ->check(whole_number(1));
  app.add_option("--group", group, "all processes of all recorders that have this name")
      ->excludes(pid);
  app.add_option("-o,--output", request.directory, "the folder for the snap; else the current one");
  app.add_flag("--json", wants_json, "as JSON");
  if (const auto status = parse_arguments(app, argument_count, arguments)) return *status;
  if (pid->count() == 0 && !group) {
    return wrong_usage(app, "who is missing: clew snap PID, or clew snap --group NAME");
  }
  const auto taken = take(request, group);
  if (!taken) return report(taken.error());
  wants_json ? print_json(*taken) : print_paths(*taken);
  Console console(false);
  for (const std::string& problem : taken->problems)
    console.warning(problem);
  return taken->problems.empty() ? kExitAnswered : kExitError;
}

}  // namespace clew::cmd

// SPDX-License-Identifier: Apache-2.0
// The arguments that `run` and `explain` share: the query and the processes.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <sys/types.h>

#include "base/error.h"
#include "engine/run.h"

namespace clew::cmd {

struct RequestArguments {
  std::string query;  // The text, or the path of a file that holds it.
  engine::Chosen processes;
  std::string command;
  std::vector<std::string> vocabularies;
  std::vector<std::string> extensions;
  bool no_branch_guards = false;
  uint64_t fuel = extension::kFuel;
  bool allow_missing = false;
  bool yes = false;
  bool follow = false;
  bool allow_late_uprobe_danger = false;
  bool uprobes = false;
  bool copies = false;
  std::string plan = "emit";
  bool no_uprobes = false;
};

void declare_request(CLI::App& app, RequestArguments& arguments);
Expected<engine::Request> request_of(const RequestArguments& arguments);

// Directories of vocabulary files: installed, and the user's own.
std::vector<std::string> default_vocabularies();

// Words of a command line, as a shell splits them: quotes and backslashes, no expansion.
Expected<std::vector<std::string>> split_command(const std::string& command);

}  // namespace clew::cmd

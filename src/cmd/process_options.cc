// SPDX-License-Identifier: Apache-2.0
#include "cmd/process_options.h"

#include <fmt/format.h>

#include "cmd/parse_arguments.h"

namespace clew::cmd {

void declare_processes(CLI::App& app, engine::Chosen& chosen, const std::string& what) {
  // One value each time: the query may stand behind any of them.
  const auto repeated = [&app](const char* name, auto& values, const std::string& words) {
    return app.add_option(name, values, words)->allow_extra_args(false);
  };
  repeated("-p,--pid", chosen.pids, what + " these processes")
      ->delimiter(',')
      ->check(whole_number(1));
  repeated("-n,--name", chosen.name_patterns,
           what + " all processes with this name (pattern); may be given several times");
  repeated("--newest", chosen.newest_names,
           what + " only the last that began of the processes with this name (pattern)");
  engine::Whose& whose = chosen.whose;
  repeated("--container", whose.containers,
           "only processes in this container: its name (pattern; of Kubernetes also POD/NAME and "
           "NAMESPACE/POD/NAME), or 4 digits of its id and more");
  repeated("--unit", whose.units, "only processes of this unit of systemd (pattern)");
  repeated("--cgroup", whose.cgroups, "only processes in this control group, and below");
  repeated("--user", whose.users, "only processes that act as this user (name or number)");
  repeated("--command-line", whose.command_lines,
           "only processes whose command line has these words");
}

}  // namespace clew::cmd

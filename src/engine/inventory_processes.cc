// SPDX-License-Identifier: Apache-2.0
// clew list --processes.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "engine/inventory.h"
#include "ledger/who.h"
#include "output/format.h"
#include "target/pattern.h"
#include "target/process.h"

namespace clew::engine {
namespace {

// What the kernel says about ptrace(2) is said process by process, by clew doctor PID.
bool may_be_ours(const target::Process& process) {
  const bool has_ended = process.state == 'Z' || process.state == 'X';
  return !has_ended && (geteuid() == 0 || process.uid == geteuid());
}

std::string process_json(const target::Process& process) {
  const ledger::TouchedProcess known = ledger::touched_process(process.pid());
  const nlohmann::json line = {{"pid", process.pid()},
                               {"comm", target::program_name(process)},
                               {"user", ledger::user_name(process.uid)},
                               {"command", fmt::format("{}", fmt::join(process.arguments, " "))},
                               {"started", fmt::to_string(known.started_ns)}};
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string process_text(const target::Process& process) {
  return fmt::format("{:>8}  {:<20} {:<12} {}\n", process.pid(),
                     output::printable(target::program_name(process)),
                     ledger::user_name(process.uid),
                     output::printable(fmt::format("{}", fmt::join(process.arguments, " "))));
}

}  // namespace

Expected<std::string> list_processes(const NameRequest& request) {
  const target::Pattern pattern = CLEW_TRY(target::Pattern::compile(request.pattern));
  const std::vector<target::Process> processes = CLEW_TRY(target::list_others());
  std::string text;
  for (const target::Process& process : processes) {
    if (!may_be_ours(process) || !target::is_called(process, pattern)) continue;
    text += request.json ? process_json(process) : process_text(process);
  }
  if (request.json) return text;
  return fmt::format("{:>8}  {:<20} {:<12} {}\n", "PID", "PROGRAM", "USER", "COMMAND") + text;
}

}  // namespace clew::engine

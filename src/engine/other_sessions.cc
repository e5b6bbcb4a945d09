// SPDX-License-Identifier: Apache-2.0
#include "engine/other_sessions.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

#include "code/refusal.h"
#include "engine/owners.h"
#include "inline/attachment.h"
#include "target/process.h"

namespace clew::engine {

bool is_of_cluster(pid_t tracer) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", tracer));
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  return words.find(std::string("\0--serve-session\0", 17)) != std::string::npos;
}

std::string other_tracers(const std::set<pid_t>& processes) {
  std::set<pid_t> tracers;
  for (const pid_t process : processes) {
    const auto arena = inline_::look_at(process);
    if (!arena) continue;
    for (const inline_::SessionInfo& session : arena->sessions) {
      if (session.tracer_alive && session.tracer != getpid()) tracers.insert(session.tracer);
    }
  }
  Owners owners;
  std::string text;
  for (const pid_t tracer : tracers) {
    const auto facts = target::read_facts(tracer);
    text += fmt::format("{}clew {} ({}user {})", text.empty() ? "" : ", ", tracer,
                        is_of_cluster(tracer) ? "of a cluster's node, " : "",
                        facts ? owners.of_user(facts->uid).user : "?");
  }
  return text;
}

std::string holders_of(const std::vector<collect::RefusedSite>& refused,
                       const std::set<pid_t>& processes) {
  const bool is_held =
      std::any_of(refused.begin(), refused.end(), [](const collect::RefusedSite& site) {
        return site.reason == code::name(code::RefusalReason::WindowInUse);
      });
  return is_held ? other_tracers(processes) : "";
}

}  // namespace clew::engine

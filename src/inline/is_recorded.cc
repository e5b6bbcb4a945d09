// SPDX-License-Identifier: Apache-2.0
#include "inline/is_recorded.h"

#include <algorithm>

#include "inline/attachment.h"
#include "target/process.h"

namespace clew::inline_ {

// By the memory in which it records (engine/record/lobe_file.cc).
bool is_recorded(pid_t pid) {
  const auto maps = target::read_memory_map(pid);
  return maps && std::any_of(maps->begin(), maps->end(), [](const target::Mapping& map) {
           return map.path == "/memfd:clew-lobes";
         });
}

pid_t recorder_of(pid_t pid) {
  if (!is_recorded(pid)) return 0;
  const auto arena = look_at(pid);
  if (!arena) return 0;
  const auto session = std::find_if(arena->sessions.begin(), arena->sessions.end(),
                                    [](const auto& one) { return one.tracer_alive; });
  return session == arena->sessions.end() ? 0 : session->tracer;
}

}  // namespace clew::inline_

// SPDX-License-Identifier: Apache-2.0
#include "engine/is_recorded.h"

#include <algorithm>

#include "target/process.h"

namespace clew::engine {

// By the memory in which it records (engine/record/lobe_file.cc).
bool is_recorded(pid_t pid) {
  const auto maps = target::read_memory_map(pid);
  return maps && std::any_of(maps->begin(), maps->end(), [](const target::Mapping& map) {
           return map.path == "/memfd:clew-lobes";
         });
}

}  // namespace clew::engine

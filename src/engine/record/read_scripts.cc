// SPDX-License-Identifier: Apache-2.0
#include "engine/record/read_scripts.h"

#include <span>
#include <string_view>

#include "recorder/interpreters.h"
#include "recorder/script_memory.h"
#include "target/exported_places.h"

namespace clew::engine {

namespace {

std::string key_of_file(const target::ProcessModule& module) {
  return module.path + '\n' + module.build_id;
}

}  // namespace

void ScriptReader::read(const std::vector<target::ProcessModule>& modules) {
  const auto kinds = recorder::interpreter_kinds();
  std::vector<std::string_view> names;
  for (const recorder::InterpreterKind& kind : kinds)
    names.insert(names.end(), kind.exports.begin(), kind.exports.end());
  for (const target::ProcessModule& module : modules) {
    const auto [known, is_new] = found_.try_emplace(key_of_file(module));
    if (!is_new || !module.problem.empty()) continue;
    const auto exports = target::read_exported_places(module.open_path, names);
    if (!exports) continue;
    size_t at = 0;
    for (size_t kind = 0; kind < kinds.size(); ++kind) {
      Found found{.kind = kind, .places = {}};
      for (size_t i = 0; i < kinds[kind].exports.size(); ++i)
        found.places.push_back((*exports)[at++].value_or(0));
      if (found.places.front() != 0) known->second.push_back(std::move(found));
    }
  }
}

void ScriptReader::add_scripts(const std::vector<target::ProcessModule>& modules,
                               recorder::Snap& snap) const {
  snap.scripts = {};
  std::vector<int32_t> threads;
  threads.reserve(snap.threads.size());
  for (const recorder::SnapThread& thread : snap.threads)
    threads.push_back(thread.thread);
  const pid_t process = snap.pid;
  recorder::ScriptMemory memory([process](uint64_t address, std::span<uint8_t> bytes) {
    return target::read_memory(process, address, bytes).has_value();
  });
  for (const target::ProcessModule& module : modules) {
    const auto known = found_.find(key_of_file(module));
    if (known == found_.end()) continue;
    for (const Found& found : known->second) {
      std::vector<uint64_t> places = found.places;
      for (uint64_t& place : places) {
        if (place != 0) place += module.load_bias;
      }
      recorder::read_scripts(recorder::interpreter_kinds()[found.kind],
                             {.places = places, .threads = threads}, memory, snap.scripts);
    }
  }
}

}  // namespace clew::engine

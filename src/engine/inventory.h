// SPDX-License-Identifier: Apache-2.0
// What is there: functions that can be traced, fields, tracepoints; processes that are traced.
// Text for people, or one JSON object a line.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "engine/chosen.h"

namespace clew::engine {

struct ListRequest {
  std::string pattern = "*";  // module!function
  // Of processes (what several of them have is listed once), …
  Chosen processes = {};
  std::string file = "";  // … or of an ELF file.
  bool sites = false;     // Also whether entry and exits can be taken, and why not.
  bool types = false;  // Signatures from debug information; when few match they are shown anyway.
  bool json = false;
};
Expected<std::string> list_functions(const ListRequest& request);

// Fields and tracepoints whose names match; NotFound when none does.
struct NameRequest {
  std::string pattern = "*";
  bool json = false;
};
Expected<std::string> list_fields(const NameRequest& request);
// What values are by other names: those of vocabularies, and sets of named numbers, whose numbers
// are told where the pattern names some.
Expected<std::string> list_values(const NameRequest& request,
                                  const std::vector<std::string>& vocabulary_paths);
Expected<std::string> list_tracepoints(const NameRequest& request,
                                       const std::vector<std::string>& vocabulary_paths);
// Whether a pattern without a module, such as libc.*, can only mean tracepoints: it has a dot and
// some match.
bool names_tracepoints(const std::string& pattern,
                       const std::vector<std::string>& vocabulary_paths);

// Processes whose names match, and which this user may trace. No match is no error.
Expected<std::string> list_processes(const NameRequest& request);

// Processes with an arena, their sessions and residue.
std::string list_traced(bool json);
// Removes what dead sessions left in a process; `force` also live ones.
Expected<std::string> remove_probes(pid_t pid, bool force);

}  // namespace clew::engine

// SPDX-License-Identifier: Apache-2.0
// The programs of a command line -> one Script, its probe programs, and which probe runs which of
// them. The programs share variables and aggregations, as if they stood in one file.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "engine/dtrace/probes.h"
#include "engine/dtrace/request.h"
#include "extension/extension.h"
#include "kernel/machine_session.h"
#include "plan/d/generate.h"
#include "query/d/script.h"

namespace clew::engine {

struct CompiledProgram {
  std::string name;                  // What messages call it: the file, or the text.
  bool is_script = false;            // -s
  std::string text{};                // As it was compiled.
  uint64_t matched = 0;              // Pairs of clause and probe.
  query::d::Stability probes{};      // Of the least stable one.
  query::d::Stability statements{};  // Of all that its clauses name.
};

struct CompiledScript {
  query::d::Script script;
  plan::d::Generated generated;
  std::vector<CompiledProgram> programs;
  std::vector<kernel::MachineEnabling> enablings;
  std::vector<uint32_t> error_clauses;
  std::set<pid_t> named_pids;  // Of the probes whose provider a description spells out: pid123.

  // Where functions of extensions run: all in processes, or all in the kernel, so that a thread has
  // their variables once (extension_clauses.h).
  bool extensions_in_kernel = false;

  [[nodiscard]] bool calls_extension(uint32_t clause) const {
    return !generated.calls[clause].empty();
  }
  [[nodiscard]] bool wants_process(uint32_t clause) const {
    return !extensions_in_kernel && calls_extension(clause);
  }
  // Why no clause may run in a process; empty: some may. What changes things the kernel takes away
  // when we are killed, and a process cannot falsify there what it was told to do. Only the kernel
  // knows, too, which processor it is on for as long as a probe takes.
  [[nodiscard]] std::string_view kernels_alone() const {
    if (script.options.is_set("useruprobes")) return "option useruprobes";
    if (script.options.values.contains("cpu")) return "option cpu";
    return script.is_destructive ? "destructive actions" : "";
  }
};

// Errors have DTrace's text without the leading "dtrace: ".
Expected<CompiledScript> compile_script(const DtraceRequest& request, kernel::Catalogue& catalogue,
                                        query::d::TypeProvider* types, pid_t target);

}  // namespace clew::engine

// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/listing.h"

#include <fmt/format.h>

#include "engine/dtrace/commands.h"
#include "engine/dtrace/probes.h"
#include "engine/dtrace/script_compiler.h"
#include "kernel/attach_functions.h"
#include "output/d/listing.h"

namespace clew::engine {
namespace {

// Of the kernel.
bool stands_at_function(kernel::AttachKind kind) {
  return kind == kernel::AttachKind::FunctionEntry || kind == kernel::AttachKind::FunctionReturn;
}

class Lister {
 public:
  Lister(const DtraceRequest& request, const kernel::Catalogue& catalogue, DtraceConsole& console)
      : request_(request), catalogue_(catalogue), console_(console) {
    console_.write(output::d::listing_heading());
  }

  void show(const kernel::Probe& probe) {
    const output::d::ProbeNames names{probe.id, probe.provider, probe.module, probe.function,
                                      probe.name};
    console_.write(output::d::listing_row(names));
    functions_ += stands_at_function(probe.kind) ? 1 : 0;
    if (!request_.is_verbose) return;
    std::vector<std::string> types;
    if (const auto arguments = catalogue_.arguments(probe.id)) {
      for (const auto& argument : *arguments) {
        types.push_back(argument.translated_type);
      }
    }
    console_.write(output::d::listing_details(stability_of(catalogue_, probe), types));
  }

  // What is there, but not for us.
  void tell_refused() {
    const auto may = functions_ == 0 ? Expected<void>() : kernel::may_attach_functions();
    if (may) return;
    console_.flush();
    console_.message(
        fmt::format("{} of these cannot be enabled: {}", functions_, may.error().message));
  }

 private:
  const DtraceRequest& request_;
  const kernel::Catalogue& catalogue_;
  DtraceConsole& console_;
  uint64_t functions_ = 0;  // Probes that stand at functions of the kernel.
};

// Of each description without a probe; true when there is one.
bool tell_unmatched(const CompiledScript& compiled, kernel::Catalogue& catalogue,
                    DtraceConsole& console) {
  CatalogueProbes probes(catalogue);
  bool is_any = false;
  for (const query::d::Clause& clause : compiled.script.clauses) {
    for (const query::d::ProbeDescription& d : clause.probes) {
      const auto matched = probes.match(d);
      if (matched && !matched->empty()) continue;
      const std::string near = probes.nearest(d);
      console.message(fmt::format("failed to match {}:{}:{}:{}: No probe matches description{}",
                                  d.provider, d.module, d.function, d.name,
                                  near.empty() ? "" : fmt::format("\n  did you mean '{}'?", near)));
      is_any = true;
    }
  }
  return is_any;
}

}  // namespace

Expected<int> list_probes(const DtraceRequest& request, kernel::Catalogue& catalogue,
                          ScriptTypes& types, DtraceConsole& console) {
  if (request.programs.empty()) {
    Lister lister(request, catalogue, console);
    CLEW_TRY(catalogue.for_each([&](const kernel::Probe& probe) { lister.show(probe); }));
    lister.tell_refused();
    return 0;
  }
  Commands commands;  // Held, and killed at the end: they are there to be looked at.
  CLEW_TRY(commands.start(request));
  CLEW_TRY(commands.watch(request.pids));
  for (const pid_t pid : commands.pids()) {
    types.add_process(pid);
    catalogue.add_target(pid);
  }
  const pid_t target = commands.first_pid();
  DtraceRequest lenient = request;  // What matches nothing is told with the four fields.
  lenient.options.emplace_back("zdefs", "");
  Lister lister(request, catalogue, console);
  const CompiledScript compiled = CLEW_TRY(compile_script(lenient, catalogue, &types, target));
  for (const kernel::MachineEnabling& enabling : compiled.enablings) {
    lister.show(enabling.probe);
  }
  lister.tell_refused();
  return tell_unmatched(compiled, catalogue, console) ? 1 : 0;
}

}  // namespace clew::engine

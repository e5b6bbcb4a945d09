// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/extension_clauses.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "kernel/probe.h"

namespace clew::engine {
namespace {

// The first clause of a probe that calls a function.
const plan::d::ExtensionCall* call_of(const CompiledScript& compiled,
                                      const kernel::DEnabling& enabling) {
  const auto found =
      std::find_if(enabling.clauses.begin(), enabling.clauses.end(),
                   [&](uint32_t clause) { return compiled.calls_extension(clause); });
  return found == enabling.clauses.end() ? nullptr : &compiled.generated.calls[*found].front();
}

tl::unexpected<Error> refuse(const plan::d::ExtensionCall& call, const kernel::Probe& probe,
                             std::string_view why) {
  return fail(ErrorCode::Refused,
              fmt::format("line {}: {}( ) is a function of an extension, which runs in processes "
                          "only, and the kernel would have to run it at {}:{}:{}:{}: {}",
                          call.line, call.function, probe.provider, probe.module, probe.function,
                          probe.name, why));
}

// Why the kernel runs a probe in any case; empty when it does not.
std::string_view kernel_reason(const CompiledScript& compiled, const kernel::Probe& probe) {
  if (!kernel::needs_uprobe(probe.kind)) return "that is no probe of a process";
  if (!compiled.named_pids.contains(static_cast<pid_t>(probe.pid)))
    return "its description names no process";
  if (compiled.script.options.is_set("useruprobes")) return "-x useruprobes";
  if (compiled.script.is_destructive) return "the script has destructive actions";
  return {};
}

// A planner's reason. Those of the analysis are in the documentation.
std::string in_words(const std::string& reason) {
  if (reason != "kernel-clause") return reason;
  return reason + ", a clause there asks for what only the kernel knows, as ustack() does";
}

}  // namespace

Expected<void> check_extension_clauses(const CompiledScript& compiled) {
  for (const kernel::DEnabling& enabling : compiled.enablings) {
    const plan::d::ExtensionCall* const call = call_of(compiled, enabling);
    if (call == nullptr) continue;
    const std::string_view why = kernel_reason(compiled, enabling.probe);
    if (!why.empty()) return refuse(*call, enabling.probe, why);
  }
  return {};
}

Expected<void> check_extension_clauses(const CompiledScript& compiled, const InlineProbes& probes) {
  const plan::d::ExtensionCall* call = nullptr;
  const auto is_left = [&](uint32_t enabling) {
    call = call_of(compiled, compiled.enablings[enabling]);
    return call != nullptr && !probes.enablings().contains(enabling);
  };
  for (const auto& [enabling, why] : probes.refusals()) {
    if (is_left(enabling)) return refuse(*call, compiled.enablings[enabling].probe, in_words(why));
  }
  for (uint32_t i = 0; i < compiled.enablings.size(); ++i) {
    if (is_left(i)) return refuse(*call, compiled.enablings[i].probe, "it cannot be inline");
  }
  return {};
}

}  // namespace clew::engine

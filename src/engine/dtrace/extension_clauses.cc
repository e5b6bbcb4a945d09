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
                                      const kernel::MachineEnabling& enabling) {
  const auto found =
      std::find_if(enabling.clauses.begin(), enabling.clauses.end(),
                   [&](uint32_t clause) { return compiled.calls_extension(clause); });
  return found == enabling.clauses.end() ? nullptr : &compiled.generated.calls[*found].front();
}

tl::unexpected<Error> refuse(const plan::d::ExtensionCall& call, const kernel::Probe& probe,
                             std::string_view why) {
  return fail(
      ErrorCode::Refused,
      fmt::format("line {}: {}( ) is a function of an extension, which would run in processes "
                  "at other probes, and in the kernel at {}:{}:{}:{}: {} (-x useruprobes: "
                  "all in the kernel)",
                  call.line, call.function, probe.provider, probe.module, probe.function,
                  probe.name, why));
}

// Whether the kernel runs a probe in any case.
bool is_kernels(const CompiledScript& compiled, const kernel::Probe& probe) {
  return !kernel::needs_uprobe(probe.kind) ||
         !compiled.named_pids.contains(static_cast<pid_t>(probe.pid)) ||
         !compiled.kernels_alone().empty();
}

// A planner's reason. Those of the analysis are in the documentation.
std::string in_words(const std::string& reason) {
  if (reason != "kernel-clause") return reason;
  return reason + ", a clause there asks for what only the kernel knows, as stack() does";
}

}  // namespace

bool extensions_belong_to_kernel(const CompiledScript& compiled) {
  return std::any_of(compiled.enablings.begin(), compiled.enablings.end(),
                     [&](const kernel::MachineEnabling& enabling) {
                       return call_of(compiled, enabling) != nullptr &&
                              is_kernels(compiled, enabling.probe);
                     });
}

kernel::MachineExtensions kernel_extensions(const CompiledScript& compiled) {
  kernel::MachineExtensions result;
  if (!compiled.extensions_in_kernel) return result;
  const plan::d::ExtensionState& state = compiled.generated.extensions;
  for (const auto& [name, function] : state.functions) {
    result.functions.push_back(
        {.name = name, .parameters = function.parameters, .code = function.body.code});
  }
  for (const auto& of_clause : compiled.generated.calls) {
    auto& calls = result.calls.emplace_back();
    for (const plan::d::ExtensionCall& call : of_clause)
      calls.push_back({call.instruction, call.function, call.line});
  }
  result.begin = state.begin;
  result.variables_bytes = state.end - state.begin;
  for (const extension::InitialWord& word : state.initial_words)
    result.initial_words.push_back({word.offset_bytes, word.value});
  result.fuel = state.fuel;
  return result;
}

Expected<void> check_extension_clauses(const CompiledScript& compiled, const InlineProbes& probes) {
  if (compiled.extensions_in_kernel) return {};
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

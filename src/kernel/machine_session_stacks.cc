// SPDX-License-Identifier: Apache-2.0
// From /proc/kallsyms, which is long: it is read only for scripts that ask for stacks.
#include "kernel/machine_session_stacks.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "kernel/to_bpf.h"
#include "target/kernel_symbols.h"

namespace clew::kernel {
namespace {

constexpr uint64_t kFunctionBytesMax = 4096;  // Of one of these, when the next symbol is far.

// What stands between a program and where its probe fired: of tracepoints and trace events, of
// BEGIN and END, and of uprobes.
bool is_wanted(std::string_view name) {
  constexpr std::array<std::string_view, 9> kPrefixes = {
      "bpf_trace_run",     "__bpf_trace_",    "__traceiter_",
      "perf_trace_",       "bpf_prog_test_",  "__bpf_prog_test_run_raw_tp",
      "uprobe_multi_link", "uprobe_prog_run", "uprobe_handle_trampoline"};
  constexpr std::array<std::string_view, 7> kNames = {
      "handler_chain",      "uprobe_notify_resume", "__x64_sys_uretprobe", "__ia32_sys_uretprobe",
      "perf_syscall_enter", "perf_syscall_exit",    "trace_call_bpf"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); }) ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool asks_for_user_stack(const Function& clause) {
  return std::any_of(clause.references.begin(), clause.references.end(), [](const Reference& one) {
    return one.symbol == "d_user_stack" || one.symbol == "d_user_stack_depth" ||
           one.symbol == "d_builtin_ucaller" || one.symbol == "d_builtin_ustackdepth";
  });
}

bool asks_for_user_stack(const ProgramPlan& plan, const MachineEnabling& enabling) {
  return std::any_of(enabling.clauses.begin(), enabling.clauses.end(),
                     [&](uint32_t clause) { return asks_for_user_stack(plan.clauses[clause]); });
}

// Whether it fires in one process only, which is a target or named by the script, or in ours.
bool is_of_one_process(const Probe& probe) {
  switch (probe.kind) {
    case AttachKind::Host:
      return true;
    case AttachKind::UserEntry:
    case AttachKind::UserReturn:
    case AttachKind::UserExit:
    case AttachKind::UserOffset:
    case AttachKind::Usdt:
    case AttachKind::LockReturn:
    case AttachKind::LockWait:
      return probe.pid > 0;
    case AttachKind::FunctionEntry:
    case AttachKind::FunctionReturn:
    case AttachKind::RawTracepoint:
    case AttachKind::TraceEvent:
    case AttachKind::CallMoves:
    case AttachKind::SyscallEntry:
    case AttachKind::SyscallReturn:
    case AttachKind::Profile:
    case AttachKind::Tick:
      return false;
  }
  return false;
}

}  // namespace

bool wants_user_stack(const ProgramPlan& plan) {
  return std::any_of(plan.clauses.begin(), plan.clauses.end(),
                     [](const Function& clause) { return asks_for_user_stack(clause); });
}

bool wants_our_stack(const ProgramPlan& plan, std::span<const MachineEnabling> enablings) {
  return std::any_of(enablings.begin(), enablings.end(), [&](const MachineEnabling& enabling) {
    return enabling.probe.kind == AttachKind::Host && asks_for_user_stack(plan, enabling);
  });
}

bool wants_all_user_stacks(const ProgramPlan& plan, std::span<const MachineEnabling> enablings) {
  return std::any_of(enablings.begin(), enablings.end(), [&](const MachineEnabling& enabling) {
    return !is_of_one_process(enabling.probe) && asks_for_user_stack(plan, enabling);
  });
}

bool wants_stack(const ProgramPlan& plan) {
  return uses(plan, "d_stack") || uses(plan, "d_stack_depth") || uses(plan, "d_builtin_caller") ||
         uses(plan, "d_builtin_stackdepth");
}

bool wants_stack_arguments(const ProgramPlan& plan) {
  constexpr uint32_t kInRegisters = 6;
  return std::any_of(plan.clauses.begin(), plan.clauses.end(), [](const Function& clause) {
    return arguments_read(clause) >> kInRegisters != 0;
  });
}

std::vector<abi::MachineCodeRange> skipped_functions(const ProgramPlan& plan) {
  if (!wants_stack(plan)) return {};
  const std::string text = target::read_kernel_symbols();
  std::vector<uint64_t> addresses;
  std::vector<uint64_t> wanted;
  target::for_each_kernel_symbol(text, [&](const target::KernelSymbolLine& symbol) {
    if (symbol.address == 0) return;
    addresses.push_back(symbol.address);
    if (is_wanted(symbol.name)) wanted.push_back(symbol.address);
  });
  std::sort(addresses.begin(), addresses.end());
  std::sort(wanted.begin(), wanted.end());
  std::vector<abi::MachineCodeRange> ranges;
  for (const uint64_t begin : wanted) {
    const auto next = std::upper_bound(addresses.begin(), addresses.end(), begin);
    const uint64_t end = next == addresses.end() ? begin + kFunctionBytesMax
                                                 : std::min(*next, begin + kFunctionBytesMax);
    ranges.push_back({begin, end});
  }
  return ranges;
}

}  // namespace clew::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/machine_session_programs.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>
#include <sys/stat.h>

#include "abi/machine/tables.h"
#include "base/assert.h"
#include "kernel/attach.h"
#include "kernel/bpf_types.h"
#include "kernel/extension_to_bpf.h"
#include "kernel/features.h"
#include "kernel/machine_session_stacks.h"
#include "kernel/probe_to_bpf.h"
#include "kernel/static_arguments.h"
#include "kernel/to_bpf.h"

namespace clew::kernel {
namespace {

constexpr char kMovedMain[] = "d_main_moved";

struct KindOfProgram {
  const char* main;
  ProgramType type;
};

ProgramType user_type() {
  return features().has_user_probe_multi ? ProgramType::UserProbeMulti : ProgramType::SingleProbe;
}

ProgramType function_type() {
  return features().has_kernel_probe_multi ? ProgramType::KernelProbeMulti
                                           : ProgramType::SingleProbe;
}

KindOfProgram program_of(AttachKind kind) {
  switch (kind) {
    case AttachKind::Host:
      return {"d_main_host", ProgramType::RawTracepoint};
    case AttachKind::RawTracepoint:
      return {"d_main_raw_tracepoint", ProgramType::RawTracepoint};
    case AttachKind::TraceEvent:
      return {"d_main_trace_event", ProgramType::TraceEvent};
    case AttachKind::CallMoves:
      return {kMovedMain, ProgramType::TraceEvent};
    case AttachKind::SyscallEntry:
      return {"d_main_syscall_entry", ProgramType::RawTracepoint};
    case AttachKind::SyscallReturn:
      return {"d_main_syscall_return", ProgramType::RawTracepoint};
    case AttachKind::Profile:
    case AttachKind::Tick:
      return {"d_main_profile", ProgramType::PerfEvent};
    case AttachKind::UserEntry:
      return {"d_main_user_entry", user_type()};
    case AttachKind::UserReturn:
      return {"d_main_user_return", user_type()};
    case AttachKind::UserExit:
      return {"d_main_user_exit", user_type()};
    case AttachKind::UserOffset:
    case AttachKind::Usdt:
      return {"d_main_user_offset", user_type()};
    case AttachKind::LockReturn:
      return {"d_main_lock_return", user_type()};
    case AttachKind::LockWait:
      return {"d_main_lock_wait", ProgramType::RawTracepoint};
    case AttachKind::FunctionEntry:
      return {"d_main_function_entry", function_type()};
    case AttachKind::FunctionReturn:
      return {"d_main_function_return", function_type()};
  }
  return {"d_main_host", ProgramType::RawTracepoint};
}

// Which arguments of a function its return has to have: arguments 2 and on of the attach point.
uint64_t arguments_at_return(const Probe& probe, const std::vector<ProbeFilter>& filters,
                             bool wants_arguments) {
  uint64_t used = 0;
  const auto use = [&used](uint8_t argument) {
    if (argument >= 2 && argument < 8) used |= uint64_t{1} << (argument - 2);
  };
  for (const ProbeFilter& one : filters)
    use(one.argument);
  if (!wants_arguments) return used;
  for (const uint8_t argument : probe.argument_map)
    use(argument);
  return used;
}

abi::MachineActivity when_of(const Probe& probe) {
  if (probe.kind != AttachKind::Host) return abi::MachineActivity::Active;
  return probe.id == kEndProbe ? abi::MachineActivity::Stopped : abi::MachineActivity::Inactive;
}

bool is_system_call(AttachKind kind) {
  return kind == AttachKind::SyscallEntry || kind == AttachKind::SyscallReturn;
}

// Where the kernel's structs have what accessors look at. A field that another kernel may not have
// is 0 there, and reads as nothing.
struct KernelNumber {
  const char* name;
  const char* record;
  const char* path;
};

constexpr KernelNumber kKernelNumbers[] = {
    {"d_n_task_tgid", "task_struct", "tgid"},
    {"d_n_task_real_parent", "task_struct", "real_parent"},
    {"d_n_task_comm", "task_struct", "comm"},
    {"d_n_task_runtime", "task_struct", "se.sum_exec_runtime"},
    {"d_n_task_fs", "task_struct", "fs"},
    {"d_n_task_mm", "task_struct", "mm"},
    {"d_n_task_group_leader", "task_struct", "group_leader"},
    {"d_n_mm_exe_file", "mm_struct", "exe_file"},
    {"d_n_task_nsproxy", "task_struct", "nsproxy"},
    {"d_n_nsproxy_uts", "nsproxy", "uts_ns"},
    {"d_n_uts_name", "uts_namespace", "name"},
    {"d_n_task_cred", "task_struct", "cred"},
    {"d_n_cred_euid", "cred", "euid"},
    {"d_n_file_dentry", "file", "f_path.dentry"},
    {"d_n_fs_root", "fs_struct", "root"},
    {"d_n_fs_pwd", "fs_struct", "pwd"},
    {"d_n_path_mnt", "path", "mnt"},
    {"d_n_path_dentry", "path", "dentry"},
    {"d_n_dentry_parent", "dentry", "d_parent"},
    {"d_n_dentry_name", "dentry", "d_name"},
    {"d_n_mount_mnt", "mount", "mnt"},
    {"d_n_mount_parent", "mount", "mnt_parent"},
    {"d_n_mount_point", "mount", "mnt_mountpoint"},
    {"d_n_mnt_root", "vfsmount", "mnt_root"},
    {"d_n_mm_arg_start", "mm_struct", "arg_start"},
    {"d_n_mm_arg_end", "mm_struct", "arg_end"},
    {"d_n_task_utask", "task_struct", "utask"},
    {"d_n_utask_returns", "uprobe_task", "return_instances"},
    {"d_n_return_stack", "return_instance", "stack"},
    {"d_n_return_address", "return_instance", "orig_ret_vaddr"},
    {"d_n_return_next", "return_instance", "next"},
    {"d_n_vma_start", "vm_area_struct", "vm_start"},
    {"d_n_vma_end", "vm_area_struct", "vm_end"},
    {"d_n_vma_offset", "vm_area_struct", "vm_pgoff"},
    {"d_n_vma_flags", "vm_area_struct", "vm_flags"},
    {"d_n_vma_file", "vm_area_struct", "vm_file"},
    {"d_n_mm_program", "mm_struct", "exe_file"},
    {"d_n_file_inode", "file", "f_inode"},
    {"d_n_inode_number", "inode", "i_ino"},
    {"d_n_inode_super", "inode", "i_sb"},
    {"d_n_super_device", "super_block", "s_dev"},
    {"d_n_task_files", "task_struct", "files"},
    {"d_n_files_table", "files_struct", "fdt"},
    {"d_n_table_size", "fdtable", "max_fds"},
    {"d_n_table_files", "fdtable", "fd"},
    {"d_n_file_private", "file", "private_data"},
    {"d_n_inode_mode", "inode", "i_mode"},
    {"d_n_socket_sock", "socket", "sk"},
    {"d_n_pipe_head", "pipe_inode_info", "head"},
    {"d_n_pipe_tail", "pipe_inode_info", "tail"},
    {"d_n_pipe_ring_size", "pipe_inode_info", "ring_size"},
    {"d_n_pipe_buffers", "pipe_inode_info", "bufs"},
    {"d_n_buffer_length", "pipe_buffer", "len"},
};

bool refers_to_kernel(const Function& function) {
  for (const Reference& one : function.references) {
    for (const KernelNumber& number : kKernelNumbers) {
      if (one.symbol == number.name) return true;
    }
  }
  return false;
}

std::vector<ProbeFilter> filters_of(const Probe& probe) {
  std::vector<ProbeFilter> filters = probe.more_filters;
  if (probe.filter_mask == 0) return filters;
  ProbeFilter first;
  first.argument = probe.filter_argument;
  first.mask = probe.filter_mask;
  first.value = probe.filter_value;
  filters.insert(filters.begin(), first);
  return filters;
}

Error unreadable_argument(const Probe& probe, uint32_t unreadable) {
  const int index = std::countr_zero(unreadable);
  return {ErrorCode::Refused,
          fmt::format("{}: its arg{} is where no program of the kernel can read it: '{}'",
                      full_name(probe), index, probe.usdt_arguments)};
}

// Arguments are right or refused.
Expected<void> check_arguments(const Probe& probe, uint32_t read, target::BtfFiles& types,
                               ProgramKey& key) {
  if (key.filters.size() > kProbeFiltersMax + 1) {
    return fail(ErrorCode::Limit,
                fmt::format("{}: {} conditions, at most {} are possible", full_name(probe),
                            key.filters.size(), kProbeFiltersMax + 1));
  }
  if (!key.wants_arguments && key.filters.empty()) return {};
  if (probe.kind == AttachKind::Usdt && !probe.usdt_arguments.empty()) {
    const uint32_t unreadable = unreadable_static_arguments(probe.usdt_arguments) & read;
    if (unreadable != 0) return tl::unexpected(unreadable_argument(probe, unreadable));
    key.main = "d_main_static";
    key.static_arguments = probe.usdt_arguments;
  }
  if (probe.kind != AttachKind::RawTracepoint) return {};
  const target::Btf* kernel = CLEW_TRY(types.kernel());
  const auto tracepoint = find_tracepoint(*kernel, probe.symbol);
  if (!tracepoint) {
    return fail(ErrorCode::Refused, fmt::format("{}: its arguments are not known: {}",
                                                full_name(probe), tracepoint.error().message));
  }
  key.argument_count = static_cast<uint32_t>(tracepoint_parameters(*kernel, *tracepoint).size());
  return {};
}

// The registers of a system call can be read directly where the program is told their type; else it
// has to ask for them. A return looks at them for the call's number.
void look_at_registers(const Probe& probe, target::BtfFiles& types, ProgramKey& key) {
  const bool is_return = probe.kind == AttachKind::SyscallReturn;
  if (!is_return && !key.wants_arguments && key.filters.empty()) return;
  const auto kernel = types.kernel();
  if (!kernel) return;
  const auto type = find_tracepoint(**kernel, is_return ? "sys_exit" : "sys_enter");
  if (!type || !takes_typed_tracepoint(*type)) return;
  key.type = ProgramType::TypedTracepoint;
  key.attach_type = *type;
}

// A return that has to know the function's arguments is a program for this function alone.
Expected<void> look_at_arguments(const Probe& probe, target::BtfFiles& types, ProgramKey& key) {
  key.used_arguments = arguments_at_return(probe, key.filters, key.wants_arguments);
  if (key.used_arguments == 0) return {};
  const target::Btf* kernel = CLEW_TRY(types.kernel());
  const FunctionType function = CLEW_TRY(find_function(*kernel, probe.symbol));
  key.main = "d_main_function_exit";
  key.type = ProgramType::FunctionExit;
  key.attach_type = function.id;
  key.argument_count = function.arguments;
  key.has_result = function.has_result;
  return {};
}

Expected<ProgramKey> key_of(const ProgramPlan& plan, const MachineEnabling& enabling,
                            uint32_t index, target::BtfFiles& types) {
  const Probe& probe = enabling.probe;
  const KindOfProgram kind = program_of(probe.kind);
  ProgramKey key;
  key.main = kind.main;
  key.type = probe.needs_frame ? ProgramType::SingleProbe : kind.type;
  key.run_when = when_of(probe);
  key.clauses = enabling.clauses;
  uint32_t read = 0;
  for (const uint32_t clause : enabling.clauses)
    read |= plan.arguments_read[clause];
  key.wants_arguments = read != 0;
  key.filters = filters_of(probe);
  key.moves = probe.moves;
  key.moves.wants_unread = (read & 1U << kUnreadArgument) != 0;
  key.is_first_thread_only = probe.is_first_thread_only;
  if (probe.kind == AttachKind::LockWait) {
    key.lock_pid = probe.pid;
    key.lock_function = probe.offset_bytes;
  }
  if (key.wants_arguments) {
    key.argument_map = probe.argument_map;
    key.load_offset_bytes = probe.load_offset_bytes;
  }
  CLEW_TRY(check_arguments(probe, read, types, key));
  if (probe.kind == AttachKind::FunctionReturn) CLEW_TRY(look_at_arguments(probe, types, key));
  if (is_system_call(probe.kind)) look_at_registers(probe, types, key);
  const bool is_tracepoint =
      probe.kind == AttachKind::RawTracepoint || probe.kind == AttachKind::LockWait;
  if ((is_tracepoint && !features().has_tracepoint_cookies) ||
      key.type == ProgramType::FunctionExit) {
    key.cookie = cookie_of(probe.id, index);
  }
  return key;
}

Expected<uint32_t> add(ProgramPlan& plan, const MachineEnabling& enabling, uint32_t index,
                       target::BtfFiles& types) {
  ProgramKey key = CLEW_TRY(key_of(plan, enabling, index, types));
  auto group = std::find_if(plan.groups.begin(), plan.groups.end(),
                            [&](const ProgramGroup& one) { return one.key == key; });
  if (group == plan.groups.end()) {
    ProgramGroup added;
    added.key = std::move(key);
    group = plan.groups.insert(group, std::move(added));
  }
  group->enablings.push_back(index);
  return static_cast<uint32_t>(group - plan.groups.begin());
}

// As runtime/kernel/arguments.h has them.
void add_filter_numbers(const std::vector<ProbeFilter>& filters, Symbols& symbols) {
  const auto number = [&](const std::string& name, uint64_t value) {
    symbols[name] = {Symbol::Kind::Number, value};
  };
  number("d_n_filters", filters.size());
  for (size_t i = 0; i <= kProbeFiltersMax; ++i) {
    const ProbeFilter filter = i < filters.size() ? filters[i] : ProbeFilter();
    const uint64_t inverted = filter.is_inverted ? 1 : 0;
    const std::string name = fmt::format("d_n_filter_{}_", i);
    number(name + "what", filter.argument | uint64_t{filter.load_bytes} << 8 | inverted << 16 |
                              uint64_t{filter.load_offset_bytes} << 32);
    number(name + "mask", filter.mask);
    number(name + "value", filter.value);
  }
}

// As runtime/kernel/moved.cc has them.
void add_moves_numbers(const Moves& moves, Symbols& symbols) {
  const auto number = [&](const std::string& name, uint64_t value) {
    symbols[name] = {Symbol::Kind::Number, value};
  };
  number("d_n_moved_descriptor", moves.descriptor);
  number("d_n_moved_kind", moves.of_sockets ? S_IFSOCK : S_IFIFO);
  number("d_n_moved_unread", moves.wants_unread ? 1 : 0);
  CLEW_ASSERT(moves.pids.size() <= kMovesPidsMax);
  number("d_n_only_pids", moves.pids.size());
  for (size_t i = 0; i < kMovesPidsMax; ++i) {
    number(fmt::format("d_n_only_pid_{}", i),
           i < moves.pids.size() ? static_cast<uint64_t>(moves.pids[i]) : 0);
  }
}

uint64_t pack(const std::vector<uint8_t>& map, size_t first) {
  uint64_t packed = 0;
  for (size_t i = 0; i < 8; ++i) {
    // Arguments that the map does not name are 0: the tenth word and on.
    const uint64_t argument = first + i < map.size() ? map[first + i] : 0xF;
    packed |= argument << (8 * i);
  }
  return packed;
}

}  // namespace

std::string full_name(const Probe& probe) {
  return fmt::format("{}:{}:{}:{}", probe.provider, probe.module, probe.function, probe.name);
}

namespace {

// Clause `index`, translated for the kernel, with what it calls.
Expected<Function> translated(const MachinePrograms& programs, uint32_t index) {
  const isa::Program& program = programs.clauses[index];
  const std::span<const MachineExtensionCall> calls = programs.extensions.calls_of(index);
  Function function = CLEW_TRY(programs.are_probes ? probe_to_bpf(program, index, calls)
                                                   : to_bpf(program, index, calls));
  if (!calls.empty()) CLEW_TRY(put_extension_calls(function, programs.extensions));
  return function;
}

}  // namespace

Expected<ProgramPlan> plan_programs(const MachinePrograms& programs,
                                    std::span<const MachineEnabling> enablings,
                                    target::BtfFiles& types) {
  ProgramPlan plan;
  for (uint32_t i = 0; i < programs.clauses.size(); ++i) {
    auto function = translated(programs, i);
    if (!function) {
      const std::string where = programs.are_probes ? "" : fmt::format("clause {}: ", i);
      return fail(function.error().code, where + function.error().message);
    }
    plan.clauses.push_back(std::move(*function));
    plan.arguments_read.push_back(arguments_read(plan.clauses.back()));
  }
  for (const MachineExtensionFunction& one : programs.extensions.functions) {
    plan.clauses.push_back(
        CLEW_TRY(extension_to_bpf(one, programs.extensions, features().has_open_loops)));
  }
  for (uint32_t i = 0; i < enablings.size(); ++i) {
    const MachineEnabling& one = enablings[i];
    if (one.probe.id == kErrorProbe || one.clauses.empty()) continue;
    (void)CLEW_TRY(add(plan, one, i, types));
  }
  for (ProgramGroup& group : plan.groups) {
    if (!is_system_call(enablings[group.enablings.front()].probe.kind)) continue;
    group.system_calls_begin = plan.system_call_tables++ * abi::kMachineSystemCallsMax;
  }
  return plan;
}

Expected<uint32_t> add_to_plan(ProgramPlan& plan, const MachineEnabling& enabling, uint32_t index) {
  target::BtfFiles types;  // Probes of processes need none.
  return add(plan, enabling, index, types);
}

void add_program_numbers(const ProgramGroup& group, Symbols& symbols) {
  const ProgramKey& key = group.key;
  const auto number = [&](const char* name, uint64_t value) {
    symbols[name] = {Symbol::Kind::Number, value};
  };
  number("d_n_run_when", static_cast<uint64_t>(key.run_when));
  number("d_n_wants_arguments", key.wants_arguments ? 1 : 0);
  number("d_n_knows_registers", key.type == ProgramType::TypedTracepoint ? 1 : 0);
  number("d_n_cookie", key.cookie);
  number("d_n_has_result", key.has_result ? 1 : 0);
  number("d_n_used_arguments", key.used_arguments);
  number("d_n_argument_count", key.argument_count);
  number("d_n_has_argument_map", key.argument_map.empty() ? 0 : 1);
  number("d_n_argument_map_low", pack(key.argument_map, 0));
  number("d_n_argument_map_high", pack(key.argument_map, 8));
  number("d_n_load_offset", key.load_offset_bytes);
  number("d_n_first_thread_only", key.is_first_thread_only ? 1 : 0);
  add_filter_numbers(key.filters, symbols);
  number("d_n_system_calls_begin", group.system_calls_begin);
  number("d_n_lock_pid", static_cast<uint64_t>(key.lock_pid));
  number("d_n_lock_function", key.lock_function);
  add_moves_numbers(key.moves, symbols);
}

bool uses(const ProgramPlan& plan, std::string_view function) {
  for (const Function& clause : plan.clauses) {
    for (const Reference& one : clause.references) {
      if (one.symbol == function) return true;
    }
  }
  return false;
}

namespace {

// How programs load from any address of the kernel (bpf_rdonly_cast(), Linux 6.2): all of them have
// to be compiled for a kernel that has none, too.
void add_untrusted_pointers(const ProgramPlan& plan, target::BtfFiles& types, Symbols& symbols) {
  UntrustedPointers found;
  if (uses(plan, kUntrustedPointer)) {
    const auto kernel = types.kernel();
    if (kernel) found = untrusted_pointers(**kernel);
  }
  symbols[kUntrustedPointer] = {Symbol::Kind::Function, found.function};
  symbols[kUntrustedType] = {Symbol::Kind::Number, found.type};
}

}  // namespace

Expected<void> add_kernel_numbers(const ProgramPlan& plan, target::BtfFiles& types,
                                  Symbols& symbols) {
  add_untrusted_pointers(plan, types, symbols);
  constexpr std::string_view kManagesWithout = "d_builtin_execname";
  bool is_needed = wants_user_stack(plan) ||
                   std::any_of(plan.groups.begin(), plan.groups.end(),
                               [](const auto& group) { return group.key.main == kMovedMain; });
  for (const auto& [name, function] : accessor_functions(LoopKind::Open)) {
    is_needed =
        is_needed || (name != kManagesWithout && refers_to_kernel(function) && uses(plan, name));
  }
  if (!is_needed && !uses(plan, kManagesWithout)) return {};
  const auto kernel = types.kernel();
  if (!kernel && is_needed) return tl::unexpected(kernel.error());
  for (const KernelNumber& one : kKernelNumbers) {
    const uint64_t offset = kernel ? offset_in_record(**kernel, one.record, one.path) : 0;
    symbols[one.name] = {Symbol::Kind::Number, offset};
  }
  symbols["d_n_buffer_bytes"] = {Symbol::Kind::Number,
                                 kernel ? bytes_of_record(**kernel, "pipe_buffer") : 0};
  return {};
}

}  // namespace clew::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/machine_session.h"

#include <algorithm>
#include <map>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/clock_ns.h"
#include "base/log.h"
#include "kernel/attach.h"
#include "kernel/attach_functions.h"
#include "kernel/bpf.h"
#include "kernel/everywhere.h"
#include "kernel/features.h"
#include "kernel/lock_entries.h"
#include "kernel/machine_session_aggregates.h"
#include "kernel/machine_session_programs.h"
#include "kernel/machine_session_stacks.h"
#include "kernel/maps.h"
#include "kernel/static_arguments.h"
#include "kernel/user_stacks.h"

namespace clew::kernel {
namespace {

using abi::MachineActivity;

constexpr uint32_t kQuietTriesMax = 1U << 20;  // Turns of waiting for programs that run.

std::vector<ClauseStep> steps_of(const MachinePrograms& programs,
                                 const std::vector<uint32_t>& clauses) {
  std::vector<ClauseStep> steps;
  for (const uint32_t clause : clauses) {
    const uint32_t scratch = clause < programs.scratch_begin.size()
                                 ? programs.scratch_begin[clause]
                                 : programs.local_begin + programs.local_bytes;
    steps.push_back({clause, scratch});
  }
  return steps;
}

// More of them are taken back by several threads.
constexpr size_t kFewAttachments = 16;

// Programs of processes' probes are loaded only when the kernel is to run them.
bool is_deferred(AttachKind kind) {
  return kind == AttachKind::UserEntry || kind == AttachKind::UserReturn ||
         kind == AttachKind::UserExit || kind == AttachKind::UserOffset || kind == AttachKind::Usdt;
}

}  // namespace

struct MachineSession::Data {
  Data() = default;
  ~Data() {
    end_uprobes(uprobes);
    if (attachments.size() > kFewAttachments) close_all(attachments);
  }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;

  MachinePrograms programs;
  std::vector<MachineEnabling> enablings;
  ProgramPlan plan;
  MachineMaps maps;
  Symbols symbols;
  std::set<uint32_t> elsewhere;  // Indices of enablings that others take care of.
  EverywherePlaces everywhere;
  LockEntries locks;
  target::AddressSpaces own_spaces;
  std::unique_ptr<UserStacks> user_stacks;  // Null when no clause asks for them.
  std::vector<FileDescriptor> loaded;       // By group.
  Attachments attachments;
  Attachments uprobes;
  std::vector<uint32_t> left_out;            // Ids of probes.
  std::vector<uint32_t> functions_left_out;  // Indices of enablings.

  [[nodiscard]] abi::MachineShared& shared() const { return *maps.shared.as<abi::MachineShared>(); }

  [[nodiscard]] uint64_t cookie(uint32_t enabling) const {
    return cookie_of(enablings[enabling].probe.id, enabling);
  }

  // What a message is about: the probe of a query, clauses of D. A program of very many clauses
  // does not fill the screen.
  [[nodiscard]] std::string place_of(const ProgramGroup& group) const {
    if (programs.are_probes) return full_name(enablings[group.enablings.front()].probe);
    constexpr size_t kNamedMax = 8;
    const std::vector<uint32_t>& clauses = group.key.clauses;
    const std::span<const uint32_t> named =
        std::span(clauses).first(std::min(clauses.size(), kNamedMax));
    const std::string list = fmt::format("clause {}", fmt::join(named, ", "));
    return named.size() == clauses.size()
               ? list
               : fmt::format("{} and {} more", list, clauses.size() - named.size());
  }

  // "line 3: f() cannot run in the kernel: …", when the message is about such a function.
  [[nodiscard]] std::string extension_refusal(const ProgramGroup& group,
                                              const std::string& message) const {
    const std::string function = extension_function_in(message);
    if (function.empty()) return {};
    uint32_t line = 0;
    for (const uint32_t clause : group.key.clauses) {
      for (const MachineExtensionCall& call : programs.extensions.calls_of(clause)) {
        if (line == 0 && call.function == function) line = call.line;
      }
    }
    const std::string place = line == 0 ? "" : fmt::format("line {}: ", line);
    return fmt::format("{}{}() cannot run in the kernel: {}", place, function, message);
  }

  [[nodiscard]] tl::unexpected<Error> refusal(const ProgramGroup& group, const Error& error) const {
    const std::string of_extension = extension_refusal(group, error.message);
    if (!of_extension.empty()) return fail(error.code, of_extension);
    const bool is_write = error.message.find("bpf_probe_write_user") != std::string::npos;
    return fail(error.code,
                is_write ? fmt::format("{}: copyout() and copyoutstr() are not possible: this "
                                       "kernel lets no program write to the memory of processes",
                                       place_of(group))
                         : fmt::format("{}: {}", place_of(group), error.message));
  }

  Expected<void> make_user_stacks() {
    if (!wants_user_stack(plan)) return {};
    UserStacks::Options options;
    options.spaces = programs.spaces != nullptr ? programs.spaces : &own_spaces;
    options.targets.assign(programs.target_pids.begin(), programs.target_pids.end());
    if (wants_our_stack(plan, enablings)) options.targets.push_back(getpid());
    options.wants_all = wants_all_user_stacks(plan, enablings);
    user_stacks = CLEW_TRY(UserStacks::make(options));
    return {};
  }

  [[nodiscard]] uint32_t error_enabling() const {
    const auto error =
        std::find_if(enablings.begin(), enablings.end(),
                     [](const MachineEnabling& one) { return one.probe.id == kErrorProbe; });
    return static_cast<uint32_t>(error - enablings.begin());
  }

  Expected<void> load_all(target::BtfFiles& types, std::string* log) {
    symbols = maps.symbols(programs);
    if (user_stacks) user_stacks->add_symbols(symbols);
    symbols["d_n_enabled"] = {Symbol::Kind::Number, maps.enabled_max};
    symbols["d_n_error_enabling"] = {Symbol::Kind::Number, error_enabling()};
    symbols["d_n_only_cpu"] = {Symbol::Kind::Number,
                               programs.only_cpu ? *programs.only_cpu + 1 : 0};
    symbols["d_n_names_bytes"] = {Symbol::Kind::Number, maps.names_bytes};
    symbols["d_n_skipped"] = {Symbol::Kind::Number, maps.skipped_count};
    symbols["d_n_wants_stack"] = {Symbol::Kind::Number, wants_stack(plan) ? 1U : 0U};
    symbols["d_n_wants_stack_arguments"] = {Symbol::Kind::Number,
                                            wants_stack_arguments(plan) ? 1U : 0U};
    symbols["d_n_may_write_user"] = {Symbol::Kind::Number, uses(plan, "d_copy_out") ? 1U : 0U};
    CLEW_TRY(add_kernel_numbers(plan, types, symbols));
    for (const MachineEnabling& one : enablings)
      CLEW_TRY(locks.prepare(one.probe, symbols));
    loaded.resize(plan.groups.size());
    for (size_t i = 0; i < plan.groups.size(); ++i) {
      if (is_deferred(probe_of(plan.groups[i]).kind)) continue;
      loaded[i] = CLEW_TRY(load_group(plan.groups[i], log));
    }
    return {};
  }

  // The first of its probes.
  [[nodiscard]] const Probe& probe_of(const ProgramGroup& group) const {
    return enablings[group.enablings.front()].probe;
  }

  // Whether it has one probe and never gets another, so that the program need not ask which fires.
  [[nodiscard]] bool is_alone(const ProgramGroup& group) const {
    const AttachKind kind = probe_of(group).kind;
    return group.enablings.size() == 1 &&
           (kind == AttachKind::RawTracepoint || kind == AttachKind::TraceEvent ||
            kind == AttachKind::CallMoves);
  }

  // Those that the kernel has to attach.
  [[nodiscard]] std::vector<uint32_t> wanted(const ProgramGroup& group) const {
    std::vector<uint32_t> wanted;
    std::copy_if(group.enablings.begin(), group.enablings.end(), std::back_inserter(wanted),
                 [&](uint32_t enabling) { return !elsewhere.contains(enabling); });
    return wanted;
  }

  // Loads what the kernel has to run in processes after all.
  Expected<void> load_deferred(std::string* log) {
    for (size_t i = 0; i < plan.groups.size(); ++i) {
      if (loaded[i].valid() || wanted(plan.groups[i]).empty()) continue;
      loaded[i] = CLEW_TRY(load_group(plan.groups[i], log));
    }
    return {};
  }

  Expected<FileDescriptor> link_and_load(const LinkInput& input, std::string* log) {
    return load_image(CLEW_TRY(link(input, plan.clauses, symbols)), log);
  }

  Expected<FileDescriptor> load_group(const ProgramGroup& group, std::string* log) {
    add_program_numbers(group, symbols);
    if (is_alone(group)) {
      symbols["d_n_cookie"] = {Symbol::Kind::Number, cookie(group.enablings.front())};
    }
    const std::vector<ClauseStep> steps = steps_of(programs, group.key.clauses);
    const std::vector<ClauseStep> errors = steps_of(programs, programs.error_clauses);
    const Function arguments = make_static_arguments(group.key.static_arguments);
    LinkInput input{.name = "clew_d",
                    .main = group.key.main,
                    .type = group.key.type,
                    .clauses = steps,
                    .error_clauses = errors,
                    .static_arguments = &arguments,
                    .loops = features().has_open_loops ? LoopKind::Open : LoopKind::Counted,
                    .attach_type = group.key.attach_type};
    Expected<FileDescriptor> program = link_and_load(input, log);
    // A function that is called is looked at once: large programs may pass the verifier so alone.
    if (!program) {
      input.inlines = false;
      program = link_and_load(input, log);
    }
    if (!program) return refusal(group, program.error());
    return program;
  }

  Expected<void> attach_group(uint32_t index) {
    CLEW_ASSERT(index < plan.groups.size() && loaded.size() == plan.groups.size());
    const ProgramGroup& group = plan.groups[index];
    CLEW_ASSERT(!group.enablings.empty());
    switch (enablings[group.enablings.front()].probe.kind) {
      case AttachKind::Host:
        return {};
      case AttachKind::FunctionEntry:
      case AttachKind::FunctionReturn:
        return attach_kernel_functions(index);
      case AttachKind::RawTracepoint:
        return attach_tracepoints(index);
      case AttachKind::TraceEvent:
      case AttachKind::CallMoves:
        return attach_trace_events(index);
      case AttachKind::SyscallEntry:
        return attach_system_calls(index, "sys_enter");
      case AttachKind::SyscallReturn:
        return attach_system_calls(index, "sys_exit");
      case AttachKind::Profile:
      case AttachKind::Tick:
        return attach_clocks(index);
      case AttachKind::UserEntry:
      case AttachKind::UserReturn:
      case AttachKind::UserExit:
      case AttachKind::UserOffset:
      case AttachKind::LockReturn:
      case AttachKind::LockWait:
      case AttachKind::Usdt:
        return attach_process(index, wanted(plan.groups[index]));
    }
    return {};
  }

  Expected<void> attach_tracepoints(uint32_t index) {
    const ProgramGroup& group = plan.groups[index];
    for (const uint32_t enabling : group.enablings) {
      const uint64_t kept = group.key.cookie != 0 ? 0 : cookie(enabling);  // By the kernel.
      attachments.push_back(
          CLEW_TRY(attach_raw_tracepoint(loaded[index], enablings[enabling].probe.symbol, kept)));
    }
    return {};
  }

  Expected<void> attach_trace_events(uint32_t index) {
    for (const uint32_t enabling : plan.groups[index].enablings) {
      CLEW_TRY(attach_trace_event(loaded[index], enablings[enabling].probe, cookie(enabling),
                                  attachments));
    }
    return {};
  }

  // One attachment for all of them; the table says which calls are meant.
  Expected<void> attach_system_calls(uint32_t index, const char* tracepoint) {
    const ProgramGroup& group = plan.groups[index];
    CLEW_ASSERT(group.system_calls_begin / abi::kMachineSystemCallsMax < plan.system_call_tables);
    auto* table = maps.system_calls.as<uint64_t>() + group.system_calls_begin;
    for (const uint32_t enabling : group.enablings) {
      const Probe& probe = enablings[enabling].probe;
      if (probe.number >= abi::kMachineSystemCallsMax) {
        return fail(ErrorCode::Limit,
                    fmt::format("{}: system call {}", full_name(probe), probe.number));
      }
      table[probe.number] = cookie(enabling);
    }
    const bool is_typed = group.key.type == ProgramType::TypedTracepoint;
    attachments.push_back(CLEW_TRY(is_typed ? attach_typed_tracepoint(loaded[index], tracepoint)
                                            : attach_raw_tracepoint(loaded[index], tracepoint, 0)));
    return {};
  }

  Expected<void> attach_clocks(uint32_t index) {
    for (const uint32_t enabling : plan.groups[index].enablings) {
      const ClockPlace place{.probe = enablings[enabling].probe, .only_cpu = programs.only_cpu};
      log_detail(0, "opens the perf events of {}", full_name(place.probe));
      CLEW_TRY(attach_clock(loaded[index], place, cookie(enabling), attachments));
    }
    return {};
  }

  Expected<void> attach_process(uint32_t index, std::span<const uint32_t> chosen) {
    if (chosen.empty()) return {};
    for (const uint32_t enabling : chosen)
      CLEW_TRY(locks.attach(enablings[enabling].probe, symbols, uprobes));
    if (enablings[chosen.front()].probe.kind != AttachKind::LockWait) {
      return attach_user_places(index, chosen);
    }
    for (const uint32_t enabling : chosen) {
      const uint64_t kept = plan.groups[index].key.cookie != 0 ? 0 : cookie(enabling);
      attachments.push_back(CLEW_TRY(attach_raw_tracepoint(loaded[index], "sys_enter", kept)));
    }
    return {};
  }

  Expected<void> attach_user_places(uint32_t index, std::span<const uint32_t> chosen) {
    std::map<std::pair<std::string, int64_t>, UserPlaces> by_file;
    for (const uint32_t enabling : chosen) {
      const Probe& probe = enablings[enabling].probe;
      UserPlaces& places = by_file[{probe.path, probe.pid}];
      places.path = probe.path;
      places.pid = probe.pid;
      places.is_return =
          probe.kind == AttachKind::UserReturn || probe.kind == AttachKind::LockReturn;
      places.places.push_back({probe.offset_bytes, probe.semaphore_offset_bytes, cookie(enabling)});
    }
    for (const auto& [file, places] : by_file) {
      log_step(static_cast<pid_t>(places.pid), "sets {} uprobes{} in {}", places.places.size(),
               places.is_return ? " of returns" : "", places.path);
      const auto cookies = CLEW_TRY(features().has_user_probe_multi
                                        ? attach_user(loaded[index], places, uprobes)
                                        : attach_user_singly(loaded[index], places, uprobes));
      for (const uint64_t cookie : cookies) {
        left_out.push_back(static_cast<uint32_t>(cookie >> 32));
      }
    }
    return {};
  }

  // Plans, loads and attaches enablings that were appended, group by group.
  Expected<void> add(uint32_t first) {
    std::map<uint32_t, std::vector<uint32_t>> by_group;
    for (uint32_t i = first; i < enablings.size(); ++i) {
      CLEW_TRY(locks.prepare(enablings[i].probe, symbols));
      const uint32_t index = CLEW_TRY(add_to_plan(plan, enablings[i], i));
      CLEW_ASSERT(index < plan.groups.size());
      loaded.resize(plan.groups.size());
      if (!loaded[index].valid()) loaded[index] = CLEW_TRY(load_group(plan.groups[index], nullptr));
      by_group[index].push_back(i);
    }
    for (const auto& [index, chosen] : by_group)
      CLEW_TRY(attach_process(index, chosen));
    return {};
  }

  Expected<void> attach_kernel_functions(uint32_t index) {
    const ProgramGroup& group = plan.groups[index];
    const Probe& first = enablings[group.enablings.front()].probe;
    if (group.key.type == ProgramType::FunctionExit) {
      attachments.push_back(CLEW_TRY(attach_trampoline(loaded[index], full_name(first))));
      return {};
    }
    std::vector<FunctionPlace> places;
    for (const uint32_t enabling : group.enablings) {
      const Probe& probe = enablings[enabling].probe;
      places.push_back({probe.module, probe.symbol, cookie(enabling)});
    }
    const FunctionAttach how{.is_return = first.kind == AttachKind::FunctionReturn,
                             .is_single = group.key.type == ProgramType::SingleProbe};
    for (const uint64_t one : CLEW_TRY(attach_functions(loaded[index], how, places, attachments)))
      functions_left_out.push_back(static_cast<uint32_t>(one));
    return {};
  }

  // Runs the host program of BEGIN or END, if there is one.
  Expected<void> fire(uint32_t probe) {
    for (uint32_t i = 0; i < plan.groups.size(); ++i) {
      for (const uint32_t enabling : plan.groups[i].enablings) {
        if (enablings[enabling].probe.id != probe) continue;
        if (enablings[enabling].probe.kind != AttachKind::Host) continue;
        CLEW_TRY(run_program(loaded[i], cookie(enabling), programs.only_cpu));
      }
    }
    return {};
  }

  // What the kernel did not even start, for it was in the same program already.
  void count_misses() const {
    for (size_t i = 0; i < loaded.size(); ++i) {
      const auto& of_group = plan.groups[i].enablings;
      const bool is_none = std::all_of(of_group.begin(), of_group.end(), [this](uint32_t one) {
        return enablings[one].probe.ignores_nested;
      });
      if (loaded[i].valid() && !is_none) shared().losses.nested += recursion_misses(loaded[i]);
    }
  }

  // Waits until no program is in a window: none that begins later will run a clause.
  void wait_for_windows() const {
    auto* windows = maps.windows.as<abi::MachineWindow>();
    const uint32_t count = maps.cpus * abi::kMachineWindowsPerCpu;
    for (uint32_t i = 0; i < count; ++i) {
      for (uint32_t turn = 0; turn < kQuietTriesMax; ++turn) {
        if (__atomic_load_n(&windows[i].header.busy, __ATOMIC_SEQ_CST) == 0) break;
        (void)sched_yield();
      }
    }
  }
};

MachineSession::MachineSession(std::unique_ptr<Data> data) : data_(std::move(data)) {}
MachineSession::MachineSession(MachineSession&&) noexcept = default;
MachineSession& MachineSession::operator=(MachineSession&&) noexcept = default;
MachineSession::~MachineSession() = default;

Expected<MachineSession> MachineSession::load(MachinePrograms programs,
                                              std::vector<MachineEnabling> enablings,
                                              std::string* verifier_log) {
  if (is_too_old()) return fail(ErrorCode::Refused, kTooOld);
  const StepTime time;
  auto data = std::make_unique<Data>();
  data->programs = std::move(programs);
  data->enablings = std::move(enablings);
  data->everywhere.merge(data->enablings);
  target::BtfFiles types;
  data->plan = CLEW_TRY(plan_programs(data->programs, data->enablings, types));
  const std::vector<abi::MachineCodeRange> skipped = skipped_functions(data->plan);
  data->maps = CLEW_TRY(
      MachineMaps::make(data->programs, data->enablings, data->plan.system_call_tables, skipped));
  CLEW_TRY(data->make_user_stacks());
  data->shared().wall_offset_ns =
      static_cast<uint64_t>(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
  CLEW_TRY(data->load_all(types, verifier_log));
  log_step(0, "loaded programs of {} kinds for {} probes into the kernel ({:.1f} ms)",
           data->plan.groups.size(), data->enablings.size(), time.ms());
  return MachineSession(std::move(data));
}

Expected<void> MachineSession::load_others(const std::set<uint32_t>& elsewhere,
                                           std::string* verifier_log) {
  data_->elsewhere = elsewhere;
  return data_->load_deferred(verifier_log);
}

Expected<void> MachineSession::attach() {
  const StepTime time;
  CLEW_TRY(data_->load_deferred(nullptr));
  for (uint32_t i = 0; i < data_->plan.groups.size(); ++i)
    CLEW_TRY(data_->attach_group(i));
  log_step(0, "attached {} probes of the kernel and uprobes, {} left out ({:.1f} ms)",
           data_->enablings.size(), data_->left_out.size(), time.ms());
  return {};
}

const std::vector<uint32_t>& MachineSession::left_out() const {
  return data_->left_out;
}

const std::vector<uint32_t>& MachineSession::functions_left_out() const {
  return data_->functions_left_out;
}

Expected<void> MachineSession::add(std::vector<MachineEnabling> enablings) {
  const auto first = static_cast<uint32_t>(data_->enablings.size());
  data_->everywhere.merge(enablings);
  for (MachineEnabling& one : enablings) {
    if (one.clauses.empty()) continue;
    const auto index = static_cast<uint32_t>(data_->enablings.size());
    if (!data_->maps.add_enabled(index, one.probe)) {
      return fail(ErrorCode::Limit, fmt::format("no room for {}", full_name(one.probe)));
    }
    data_->enablings.push_back(std::move(one));
  }
  return data_->add(first);
}

Expected<void> MachineSession::begin() {
  CLEW_TRY(data_->fire(kBeginProbe));
  auto inactive = static_cast<uint64_t>(MachineActivity::Inactive);
  (void)__atomic_compare_exchange_n(&data_->shared().activity, &inactive,
                                    static_cast<uint64_t>(MachineActivity::Active), false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return {};
}

void MachineSession::stop() {
  __atomic_store_n(&data_->shared().activity, static_cast<uint64_t>(MachineActivity::Stopped),
                   __ATOMIC_SEQ_CST);
}

MachineState MachineSession::state() const {
  MachineState state = data_->maps.state(data_->programs);
  state.process.enabled_count = data_->maps.enabled_max;
  state.process.error_enabling = data_->error_enabling();
  state.process.may_write_user = uses(data_->plan, "d_copy_out") ? 1 : 0;
  return state;
}

std::vector<ThreadValue> MachineSession::thread_values(uint32_t variable) const {
  const Mapping& table = data_->maps.dynamic.memory;
  return read_thread_values(state().process, {table.data(), table.size_bytes()}, variable);
}

Expected<void> MachineSession::end() {
  stop();
  data_->wait_for_windows();
  data_->count_misses();
  return data_->fire(kEndProbe);
}

int MachineSession::poll_descriptor() const {
  return data_->maps.ring->map().get();
}

int MachineSession::process_descriptor() const {
  return data_->user_stacks ? data_->user_stacks->poll_descriptor() : -1;
}

uint64_t MachineSession::read(const std::function<void(std::span<const uint8_t>)>& take) {
  if (!data_->user_stacks) return data_->maps.ring->read(take);
  // What processes had mapped when a record was made is told by notices that came before it: so the
  // records are fetched first, and looked at last.
  std::vector<std::vector<uint8_t>> records;
  const uint64_t count = data_->maps.ring->read(
      [&](std::span<const uint8_t> record) { records.emplace_back(record.begin(), record.end()); });
  data_->user_stacks->update();
  for (const std::vector<uint8_t>& record : records)
    take(record);
  return count;
}

std::vector<MachineAggregate> MachineSession::aggregate(uint32_t aggregation) const {
  return read_aggregation(data_->maps, aggregation, false);
}

std::vector<MachineAggregate> MachineSession::take(uint32_t aggregation) {
  return read_aggregation(data_->maps, aggregation, true);
}

void MachineSession::clear(uint32_t aggregation) {
  (void)read_aggregation(data_->maps, aggregation, true);
}

std::string_view MachineSession::probe_name(uint64_t place) const {
  if (place >= data_->maps.names_bytes) return {};
  const std::string_view names(data_->maps.names.as<char>(), data_->maps.names_bytes);
  return names.substr(place, names.find('\0', place) - place);
}

std::span<const MachineEnabling> MachineSession::enablings() const {
  return data_->enablings;
}

abi::MachineShared& MachineSession::shared() {
  return data_->shared();
}

std::span<const abi::MachineWindow> MachineSession::windows() const {
  return {data_->maps.windows.as<abi::MachineWindow>(),
          size_t{data_->maps.cpus} * abi::kMachineWindowsPerCpu};
}

void MachineSession::free_speculation(uint32_t id) {
  if (id == 0 || id > abi::kMachineSpeculationsMax) return;
  abi::MachineSpeculation& one = data_->shared().speculations[id - 1];
  one.bytes = 0;
  ++one.generation;
  __atomic_store_n(&one.state, 0, __ATOMIC_RELEASE);
}

}  // namespace clew::kernel

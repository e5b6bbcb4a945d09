// SPDX-License-Identifier: Apache-2.0
// proc and sched: the life of processes and threads, and when they run.
#include "kernel/providers/derived.h"

namespace clew::kernel {

namespace {

constexpr uint64_t kCloneThread = 0x10000;  // CLONE_THREAD, sched.h
constexpr uint64_t kSignalMask = 0x7f;      // Of an exit code: wait(2).
constexpr uint64_t kCoreDumped = 0x80;
// si_code of SIGCHLD: what `exit` gives as its reason.
constexpr uint8_t kExited = 1;
constexpr uint8_t kKilled = 2;
constexpr uint8_t kDumped = 3;
constexpr uint64_t kSignalIgnored = 1;  // TRACE_SIGNAL_IGNORED, trace/events/signal.h

// One of the three reasons of an exit; `group_dead` is 1 in the last thread. Since Linux 6.15 the
// tracepoint tells; before, the function of taskstats that is called a line earlier.
void add_exit(std::vector<DerivedProbe>& probes, uint8_t reason,
              const std::vector<DerivedFilter>& filters) {
  DerivedProbe exit = {.provider = "proc",
                       .name = "exit",
                       .symbol = "sched_process_exit",
                       .map = {constant(reason)},
                       .arguments = {{"int", "int", 0}},
                       .filters = {{.argument = 1, .mask = 0xff, .value = 1}},
                       .parameters_min = 2};
  exit.filters.insert(exit.filters.end(), filters.begin(), filters.end());
  probes.push_back(exit);
}

void add_exits(std::vector<DerivedProbe>& probes) {
  const DerivedFilter unsignalled = {
      .mask = kSignalMask, .record = "task_struct", .member = "exit_code"};
  DerivedFilter signalled = unsignalled;
  signalled.is_inverted = true;
  DerivedFilter undumped = unsignalled;
  undumped.mask = kCoreDumped;
  DerivedFilter dumped = undumped;
  dumped.value = kCoreDumped;
  const size_t first = probes.size();
  add_exit(probes, kExited, {unsignalled});
  add_exit(probes, kKilled, {signalled, undumped});
  add_exit(probes, kDumped, {signalled, dumped});
  const size_t end = probes.size();
  for (size_t i = first; i < end; ++i) {
    DerivedProbe older = probes[i];
    older.kind = AttachKind::FunctionEntry;
    older.symbol = "taskstats_exit";
    older.parameters_min = 0;
    older.is_fallback = true;
    probes.push_back(std::move(older));
  }
}

void add_signals(std::vector<DerivedProbe>& probes) {
  std::vector<DerivedArgument> sent = thread_arguments(0);
  sent.push_back({"int", "int", 2});
  // signal_generate(signal, info, task, group, result)
  const std::vector<uint8_t> map = {2, 2, 0};
  probes.push_back({.provider = "proc",
                    .name = "signal-send",
                    .symbol = "signal_generate",
                    .map = map,
                    .arguments = sent});
  probes.push_back({.provider = "proc",
                    .name = "signal-discard",
                    .symbol = "signal_generate",
                    .map = map,
                    .arguments = sent,
                    .filters = {{.argument = 4, .mask = UINT32_MAX, .value = kSignalIgnored}}});
  // A pending signal that sigwait() took.
  probes.push_back({.provider = "proc",
                    .name = "signal-clear",
                    .kind = AttachKind::SyscallReturn,
                    .symbol = "rt_sigtimedwait",
                    .map = {1},
                    .arguments = {{"int", "int", 0}},
                    .filters = {{.argument = 1, .mask = kSignBit, .value = 0}}});
  // signal_deliver(signal, info, action): sa_handler is the first member of the action.
  probes.push_back({.provider = "proc",
                    .name = "signal-handle",
                    .symbol = "signal_deliver",
                    .arguments = {{"int", "int", 0},
                                  {"struct kernel_siginfo *", "struct kernel_siginfo *", 1},
                                  {"struct k_sigaction *", "struct k_sigaction *", 2}}});
}

void add_exec(std::vector<DerivedProbe>& probes, std::string_view call, uint8_t path_argument) {
  probes.push_back({.provider = "proc",
                    .name = "exec",
                    .kind = AttachKind::SyscallEntry,
                    .symbol = call,
                    .is_shown = true,
                    .map = {path_argument},
                    .arguments = {{"char *", "char *", 0, true}}});
  probes.push_back({.provider = "proc",
                    .name = "exec-failure",
                    .kind = AttachKind::SyscallReturn,
                    .symbol = call,
                    .is_shown = true,
                    .map = {kArgumentErrno},
                    .arguments = {{"int", "int", 0}},
                    .filters = {{.argument = 1, .mask = kSignBit, .value = kSignBit}}});
}

// `flags` of task_newtask(task, flags).
DerivedFilter makes_thread(bool wanted) {
  return {.argument = 1, .mask = kCloneThread, .value = wanted ? kCloneThread : 0};
}

}  // namespace

std::vector<DerivedProbe> process_probes() {
  std::vector<DerivedProbe> probes;
  probes.push_back({.provider = "proc",
                    .name = "create",
                    .symbol = "task_newtask",
                    .map = {0},
                    .arguments = {{"struct task_struct *", "psinfo_t *", 0}},
                    .filters = {makes_thread(false)}});
  probes.push_back({.provider = "proc",
                    .name = "lwp-create",
                    .symbol = "task_newtask",
                    .map = {0, 0},
                    .arguments = thread_arguments(0),
                    .filters = {makes_thread(true)}});
  add_exec(probes, "execve", 0);
  add_exec(probes, "execveat", 1);
  probes.push_back({.provider = "proc", .name = "exec-success", .symbol = "sched_process_exec"});
  add_exits(probes);
  probes.push_back({.provider = "proc", .name = "lwp-exit", .symbol = "sched_process_exit"});
  // The first function that a new thread runs.
  for (const bool is_process : {true, false}) {
    probes.push_back({.provider = "proc",
                      .name = is_process ? "start" : "lwp-start",
                      .kind = AttachKind::FunctionReturn,
                      .symbol = "schedule_tail",
                      .is_first_thread_only = is_process});
  }
  add_signals(probes);
  return probes;
}

namespace {

// Probes at functions of the scheduler: queues, priorities, ticks; and sched_yield(2).
void add_queue_probes(std::vector<DerivedProbe>& probes) {
  for (const bool is_enqueue : {true, false}) {
    // enqueue_task(queue, task, flags)
    std::vector<DerivedArgument> arguments = thread_arguments(0);
    arguments.push_back({"struct rq *", "cpuinfo_t *", 2});
    arguments.push_back({"int", "int", 3});
    probes.push_back({.provider = "sched",
                      .name = is_enqueue ? "enqueue" : "dequeue",
                      .kind = AttachKind::FunctionEntry,
                      .symbol = is_enqueue ? "enqueue_task" : "dequeue_task",
                      .map = {1, 1, 0, 2},
                      .arguments = std::move(arguments)});
  }
  std::vector<DerivedArgument> priority = thread_arguments(0);
  priority.push_back({"long", "int", 2});
  probes.push_back({.provider = "sched",
                    .name = "change-pri",
                    .kind = AttachKind::FunctionEntry,
                    .symbol = "set_user_nice",
                    .map = {0, 0, 1},
                    .arguments = std::move(priority)});
  DerivedProbe tick = {.provider = "sched",
                       .name = "tick",
                       .kind = AttachKind::FunctionEntry,
                       .symbol = "sched_tick",
                       .map = {kArgumentTask, kArgumentTask},
                       .arguments = thread_arguments(0)};
  DerivedProbe surrender = tick;
  surrender.name = "surrender";
  surrender.kind = AttachKind::SyscallEntry;
  surrender.symbol = "sched_yield";
  probes.push_back(tick);
  tick.symbol = "scheduler_tick";  // Before Linux 6.10.
  tick.is_fallback = true;
  probes.push_back(std::move(tick));
  probes.push_back(std::move(surrender));
}

}  // namespace

std::vector<DerivedProbe> scheduler_probes() {
  std::vector<DerivedProbe> probes;
  // sched_switch(preempt, previous, next, previous_state): in the thread that leaves.
  probes.push_back({.provider = "sched",
                    .name = "off-cpu",
                    .symbol = "sched_switch",
                    .map = {2, 2},
                    .arguments = thread_arguments(0)});
  probes.push_back({.provider = "sched",
                    .name = "preempt",
                    .symbol = "sched_switch",
                    .filters = {{.argument = 0, .mask = 0xff, .value = 1}}});
  probes.push_back({.provider = "sched",
                    .name = "sleep",
                    .symbol = "sched_switch",
                    .filters = {{.argument = 0, .mask = 0xff, .value = 0},
                                {.argument = 3, .mask = UINT32_MAX, .is_inverted = true}},
                    .parameters_min = 4});
  // sched_exit_tp(is_switch): in the thread that arrives, or that was chosen again (Linux 6.16).
  probes.push_back({.provider = "sched",
                    .name = "on-cpu",
                    .symbol = "sched_exit_tp",
                    .filters = {{.argument = 0, .mask = 0xff, .value = 1}}});
  probes.push_back({.provider = "sched",
                    .name = "on-cpu",
                    .kind = AttachKind::FunctionEntry,
                    .symbol = "finish_task_switch",
                    .is_fallback = true});
  probes.push_back({.provider = "sched",
                    .name = "remain-cpu",
                    .symbol = "sched_exit_tp",
                    .filters = {{.argument = 0, .mask = 0xff, .value = 0}}});
  probes.push_back({.provider = "sched",
                    .name = "wakeup",
                    .symbol = "sched_waking",
                    .map = {0, 0},
                    .arguments = thread_arguments(0)});
  add_queue_probes(probes);
  return probes;
}

}  // namespace clew::kernel

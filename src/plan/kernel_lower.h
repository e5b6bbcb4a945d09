// SPDX-License-Identifier: Apache-2.0
// Plan -> programs of the D machine, for the query's sources in the kernel, or for those of
// processes whose probes are the kernel's uprobes: what stands in front of the merge. A program is
// a probe program as lower.h makes them, by the same Coder; where its context and frame are is said
// by abi/query_window.h. State takes one of two forms:
//     Table    cells by key in the D machine's tables, one for each aggregate (kernel_cells.h)
//     Events   captured values go through its ring: a record is a MachineRecordHeader, then the
//     words
//
// A source that asks for the entry of a call (elapsed, entry.argN) gets a second program there, the
// recorder, which keeps time and arguments in a variable of the thread. A thread is in one system
// call at a time; of functions it is in many, also in the same one twice, so that their variable
// has the function and the place of the call's return address as its key. The function is known by
// its probe's id, which is to be the same at entry and return.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "abi/machine/window.h"
#include "base/error.h"
#include "extension/extension.h"
#include "isa/inline_calls.h"
#include "isa/program.h"
#include "plan/kernel_form.h"
#include "plan/lower.h"
#include "plan/plan.h"

namespace clew::plan {

// A function of an extension for the kernel, which has the variables elsewhere: an LDDW of kind
// Window has an offset in those of all extensions.
struct KernelFunction {
  std::string name;
  uint32_t parameters = 0;
  std::vector<isa::Instruction> code;
};

// What the kernel tells of a process's life, each as a query of one source and one value, a pid:
// the programs that keep the session's scope are made of them.
struct KernelFamily {
  query::Query begins;  // A process was made: fires in the one that made it.
  query::Query ends;
  bool follows = false;  // Those that processes of the scope make belong to it; else only counted.
};
enum class FamilyEvent : uint8_t { Begins, Ends };

struct KernelProgram {
  isa::Program program;
  uint16_t source = 0;  // Index in query.sources.
  bool is_recorder = false;
  std::optional<FamilyEvent> family{};  // Of KernelFamily, and of no source.
  std::vector<isa::Reference> calls{};  // Of such functions; behind each is an LDDW of the context.
};

// Where a recorder keeps the system calls that a source waits for: a variable of the thread, with
// the time of the entry, six arguments and the id of the probe.
struct KernelCalls {
  uint32_t variable = 0;
  uint16_t source = 0;  // Index in query.sources.
};

struct KernelLowerInput {
  std::vector<int64_t> pids;  // Only these processes; empty = all,
  int64_t tracer_pid = 0;     // but this one.
  int64_t epoch_ns = 0;       // CLOCK_REALTIME - CLOCK_MONOTONIC.
  std::span<const extension::Extension> extensions{};
  const KernelFamily* family = nullptr;  // Borrowed; with pids.
  // Sources of processes, by index (uprobe_form.h): then these are lowered, and none of the kernel.
  std::set<uint16_t> process_sources{};
};

struct KernelLowered {
  // What the tracer needs behind the merge: form, words of events, the clock (ns as they are), the
  // table's shape.
  Lowered root;
  std::vector<KernelProgram> programs;
  std::vector<abi::MachineAggregation>
      aggregations;                             // Tables; one count when there is no aggregate.
  std::vector<size_t> table_of;                 // By aggregate, its place in `aggregations`.
  std::vector<abi::MachineVariable> variables;  // Of recorders.
  std::vector<KernelCalls> calls;               // Those of them that are of system calls.
  std::vector<KernelFunction> functions;        // That programs call,
  uint32_t function_bytes = 0;                  // and their variables.
  std::vector<extension::InitialWord> initial_words;
  bool asks_for_groups = false;  // Programs note numbers of control groups.
};

// The plan is one of make_kernel_plan. Errors: Limit, InvalidQuery as lower().
Expected<KernelLowered> lower_kernel(const Plan& plan, const KernelLowerInput& input);

}  // namespace clew::plan

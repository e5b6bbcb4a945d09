// SPDX-License-Identifier: Apache-2.0
// MachineSession: the programs of one D script, loaded into the kernel and attached, with the maps
// they share. The order of use: load, attach, begin, then poll and read until exit was called or
// the caller decides, then end; destruction detaches and frees everything.
//
//     clause programs (isa::Program) ─ to_bpf ─▶ functions ┐
//     runtime/kernel (the D accessors, C++ for BPF) ───────┴ link ─▶ one program per set of clauses
//                                                                    and kind of attach point
//
// A program that is attached to a probe finds a free window (abi::MachineWindow) of its CPU, fills
// in probe id and arguments, calls the clauses that the probe enables in order, and releases the
// window. Nothing of it sleeps, loops without bound, or waits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/machine/window.h"
#include "base/error.h"
#include "isa/program.h"
#include "kernel/extensions.h"
#include "kernel/machine_state.h"
#include "kernel/probe.h"
#include "kernel/thread_values.h"
#include "target/address_space.h"

namespace clew::kernel {

// What src/plan/d made of a script.
struct MachinePrograms {
  std::vector<isa::Program> clauses;    // By clause; each returns 0. Window pointer loads and D
                                        // accessor calls as abi/machine/accessor.h says.
                                        // Load64::Global loads an address in the globals.
  std::vector<uint32_t> error_clauses;  // Clauses of the ERROR probe, in order.
  std::vector<uint32_t> scratch_begin;  // By clause: where alloca's scratch begins.
  std::vector<uint8_t> globals;         // Their first values.
  std::vector<uint8_t> literals;  // String literals: at abi::kMachineLocalOffset of every window
                                  // from the start; no program writes them.
  std::vector<abi::MachineVariable> variables;
  std::vector<abi::MachineAggregation> aggregations;
  uint32_t local_begin = 0;  // this-> variables: zeroed at the start of each firing,
  uint32_t local_bytes = 0;  // from local_begin on.
  uint64_t string_bytes = 256;
  uint64_t principal_bytes = 4U << 20;    // bufsize, per CPU
  uint64_t aggregation_bytes = 4U << 20;  // aggsize, per CPU
  uint64_t dynamic_bytes = 1U << 20;      // dynvarsize
  uint64_t speculation_bytes = 4U << 20;  // specsize
  uint64_t speculations = 1;              // nspec
  uint64_t target_pid = 0;
  std::optional<uint64_t> only_cpu;         // Firings on other processors are nobody's.
  uint32_t later_enablings = 0;             // Room for those that MachineSession::add() brings.
  std::vector<int32_t> target_pids;         // Whose stacks must be right from the start.
  target::AddressSpaces* spaces = nullptr;  // Where processes with stacks are kept, for their
                                            // names; borrowed. Null: the session's own.
  MachineExtensions extensions;             // What clauses call in the kernel.
  bool are_probes = false;  // The clauses are probes of a query (abi/query_window.h).
};

// A probe and the clauses that it enables, in the order of the program.
struct MachineEnabling {
  Probe probe;
  std::vector<uint32_t> clauses;
};

// One key of an aggregation, merged over CPUs: its bytes and its cells without the word of updates.
struct MachineAggregate {
  std::vector<uint8_t> key;
  std::vector<uint64_t> cells;
};

class MachineSession {
 public:
  // Loads all programs but those of probes in processes.
  // Errors, here and there: Refused when the kernel does not take a program (the message names the
  // clause; `verifier_log`, if it is not null, gets the kernel's own words), or may not be used for
  // BPF at all.
  static Expected<MachineSession> load(MachinePrograms programs,
                                       std::vector<MachineEnabling> enablings,
                                       std::string* verifier_log = nullptr);
  MachineSession(MachineSession&&) noexcept;
  MachineSession& operator=(MachineSession&&) noexcept;
  ~MachineSession();

  // Loads the programs of the other probes but those `elsewhere`: places in enablings() that
  // somebody else takes care of.
  Expected<void> load_others(const std::set<uint32_t>& elsewhere,
                             std::string* verifier_log = nullptr);
  // Attaches everything but BEGIN, END, ERROR and what is elsewhere; loads what is not loaded yet.
  // Errors name the probe.
  Expected<void> attach();
  // What was loaded and added: the caller's, where probes that stand for one place are one.
  [[nodiscard]] std::span<const MachineEnabling> enablings() const;
  // Ids of the probes that attach() left out: the kernel cannot set them at their instructions.
  [[nodiscard]] const std::vector<uint32_t>& left_out() const;
  // The same of functions of the kernel, which it lets nobody probe: places in enablings().
  [[nodiscard]] const std::vector<uint32_t>& functions_left_out() const;
  // Probes of processes that were found since: attaches them, also while others fire. What it has
  // already (Probe::is_everywhere) is left out. Errors: Limit when there is no room for more; and
  // as of load and attach. What was there before goes on in each case.
  Expected<void> add(std::vector<MachineEnabling> enablings);
  // Fires BEGIN in this process, then lets the others fire unless exit() was called in it.
  Expected<void> begin();
  // No probe fires any more that has not begun; those that run elsewhere are to be waited for.
  void stop();
  // Stops all probes, then fires END.
  Expected<void> end();

  // What others need to work on the session's memory. Valid while the session lives.
  [[nodiscard]] MachineState state() const;

  // A descriptor that polls readable when records wait.
  [[nodiscard]] int poll_descriptor() const;
  // The same when processes changed whose stacks may be asked for: then read() is wanted soon. -1
  // when no clause asks.
  [[nodiscard]] int process_descriptor() const;
  // Passes each record that waits, oldest first; those of Data begin with a MachineRecordHeader.
  // Returns how many.
  uint64_t read(const std::function<void(std::span<const uint8_t>)>& take);

  // All keys of one aggregation as they are now; while probes fire, cells may be newer than others.
  [[nodiscard]] std::vector<MachineAggregate> aggregate(uint32_t aggregation) const;
  // The same, and takes it out: every update is in exactly one result, or in a later aggregate().
  [[nodiscard]] std::vector<MachineAggregate> take(uint32_t aggregation);
  // Forgets what it holds: later snapshots have only newer updates. Atomic for each key.
  void clear(uint32_t aggregation);

  // What threads have in a variable without keys (self->x) now.
  [[nodiscard]] std::vector<ThreadValue> thread_values(uint32_t variable) const;

  // The text of a probe's name that a key has by its place; empty when nothing is there. Valid
  // while the session lives.
  [[nodiscard]] std::string_view probe_name(uint64_t place) const;

  // The shared state (losses, activity, speculations), mapped. Valid while the session lives.
  [[nodiscard]] abi::MachineShared& shared();
  // The windows of all CPUs, mapped.
  [[nodiscard]] std::span<const abi::MachineWindow> windows() const;
  // After the records of a speculation were committed or discarded by the collector.
  void free_speculation(uint32_t id);

 private:
  struct Data;
  explicit MachineSession(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

}  // namespace clew::kernel

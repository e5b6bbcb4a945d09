// SPDX-License-Identifier: Apache-2.0
// The probes of a D session that run inside processes: which enablings they are, and the processes.
// Only processes that the command line or a description names are touched.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/cost_meter.h"
#include "engine/dtrace/inline_firings.h"
#include "engine/dtrace/inline_libraries.h"
#include "engine/dtrace/inline_process.h"
#include "engine/dtrace/inline_sites.h"
#include "engine/dtrace/script_compiler.h"
#include "engine/uprobe_locks.h"
#include "kernel/machine_state.h"
#include "session/driven.h"

namespace clew::engine {

class InlineProbes final : public session::Driven {
 public:
  // `tell` takes a line about what is missing.
  explicit InlineProbes(std::function<void(std::string_view)> tell) : tell_(std::move(tell)) {}

  // Before arm(). Errors: what is to be held cannot be measured here.
  Expected<void> measure(std::optional<double> max_overhead);
  // The session begins. Without measure(), nothing.
  void begin_measuring();
  // Of all processes with inline probes; nothing where there are none.
  [[nodiscard]] collect::Cost cost();

  // Arms what can be inline. What cannot is left to the kernel, and the notes say why, a line for
  // each process. `state` is that of a session whose BEGIN has not fired.
  // `locks` has those of all processes that the script names, held.
  void arm(const CompiledScript& compiled, const kernel::MachineState& state,
           const UprobeLocks& locks);

  // Of the script: those that the kernel need not attach.
  [[nodiscard]] const std::set<uint32_t>& enablings() const { return enablings_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  // By enabling: why probes of named processes are none of these.
  [[nodiscard]] const std::map<uint32_t, std::string>& refusals() const { return refusals_; }
  [[nodiscard]] bool empty() const { return processes_.empty(); }
  // Whether a clause runs in a process, so that a record of it may come from there.
  [[nodiscard]] bool runs(uint32_t clause) const { return clauses_.contains(clause); }

  // A clause whose variables are the threads' own in this process: it may have no other probes.
  [[nodiscard]] bool keeps(pid_t pid, uint32_t clause) const {
    return private_pids_.contains(pid) && private_clauses_.contains(clause);
  }

  // Libraries of this process that are closed and opened again have their probes again.
  [[nodiscard]] bool follows(pid_t pid) const;

  // Waits for processes to open libraries, and arms what they have opened.
  std::chrono::nanoseconds patience() override;
  void read(const collect::TakeRecord& take);
  // What an aggregation's cells in processes have, to what its tables have (InlineCells::add).
  void add_cells(uint32_t aggregation, bool takes, std::vector<kernel::MachineAggregate>& entries);
  void add_losses(abi::MachineLosses& losses);
  void keep_house() override;
  std::vector<collect::DisarmedProbe> disarm_spinning() override;
  // Afterwards no clause runs in a process. What was recorded stays to be read. A line for each
  // process that could not be left as it was.
  std::vector<std::string> detach();
  // There was such a line.
  [[nodiscard]] bool leaves_anything() const { return leaves_anything_; }

 private:
  struct Arming {
    const CompiledScript& compiled;
    const kernel::MachineState& state;
    const UprobeLocks& locks;
    InlineFirings& firings;
  };
  void arm_process(pid_t pid, const Arming& arming);
  void read_samples();
  void follow_libraries(std::chrono::milliseconds timeout);

  std::function<void(std::string_view)> tell_;
  std::unique_ptr<InlineFirings> firings_;
  std::optional<CostMeter> meter_;
  bool has_new_samples_ = false;
  std::vector<std::unique_ptr<InlineProcess>> processes_;
  std::vector<std::unique_ptr<InlineLibraries>> libraries_;  // Of those that are followed.
  std::set<uint32_t> enablings_;
  std::set<uint32_t> clauses_;
  std::set<uint32_t> private_clauses_;  // Of the script.
  std::set<pid_t> private_pids_;
  std::vector<std::string> notes_;
  std::map<uint32_t, std::string> refusals_;
  std::vector<pid_t> given_up_;
  bool leaves_anything_ = false;
};

}  // namespace clew::engine

// SPDX-License-Identifier: Apache-2.0
// One process with probes of a D session inline: the session's memory is mapped there, the probes
// are armed, and what its threads record is read.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/file_descriptor.h"
#include "collect/reader.h"
#include "collect/threads.h"
#include "engine/dtrace/inline_cells.h"
#include "engine/fuel_guard.h"
#include "engine/points.h"
#include "engine/probe_costs.h"
#include "engine/process_stacks.h"
#include "inline/attachment.h"
#include "kernel/machine_state.h"

namespace clew::engine {

class InlineProcess {
 public:
  // Shares the state with the process; no probe is armed yet. Errors: Refused when the process
  // cannot be attached to, or knows itself by other numbers than the kernel's programs do.
  static Expected<std::unique_ptr<InlineProcess>> open(std::shared_ptr<inline_::ProcessLock> lock,
                                                       const kernel::MachineState& state,
                                                       InlineCells cells, bool walks_stacks);

  // Of open(); shares nothing yet.
  InlineProcess(pid_t pid, inline_::Attachment attachment, InlineCells cells)
      : pid_(pid), attachment_(std::move(attachment)), cells_(std::move(cells)) {}

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Windows that other sessions have in a module.
  [[nodiscard]] std::vector<code::Window> installed(uint64_t load_bias) const {
    return attachment_.installed(load_bias);
  }
  // Its threads may read the processor's counter, and the machine's clock is made of it.
  [[nodiscard]] bool has_counter() const;
  // Gives the updates of the programs that are to be armed their places.
  [[nodiscard]] InlineCells& cells() { return cells_; }
  // Once; nothing may be read before.
  Expected<ArmReport> arm(std::span<const ModulePoints> modules);
  // Afterwards, in libraries that were opened since.
  Expected<ArmReport> arm_more(std::span<const ModulePoints> modules) {
    if (stacks_) stacks_->look_at(pid_);
    return arm_points(attachment_, modules, rules_);
  }

  // --- libraries that are closed and opened again (inline_::Attachment has the rest) ---
  Expected<void> follow_modules() { return attachment_.follow_modules(); }
  // The loader waits for modules_done(). Waits so long for it.
  [[nodiscard]] bool loader_waits(std::chrono::milliseconds timeout) {
    return attachment_.wait(timeout) == inline_::Event::ModulesChanged;
  }
  bool modules_done() { return attachment_.modules_done(); }
  [[nodiscard]] bool is_running() const {
    return attachment_.state() == inline_::TargetState::Running;
  }
  [[nodiscard]] std::vector<uint64_t> reloaded() const { return attachment_.reloaded(); }
  // A body of an enabling whose firings may run out of fuel.
  void guard(uint32_t enabling, const std::string& name, uint64_t body) {
    fuel_guard_.add(InlineCells::fuel_word(enabling), name, body);
  }
  // What its probes cost.
  [[nodiscard]] ProbeCosts& costs() { return costs_; }
  // All code of probes is known to costs().
  void find_runtime_areas() { costs_.set_areas(attachment_.runtime_areas()); }
  std::vector<collect::DisarmedProbe> keep_below(const OverheadBound& bound,
                                                 std::vector<std::string>& problems);
  void add_cost(collect::Cost& cost) const;
  // Takes out probes whose firings ran out of fuel; a line for each that could not be.
  std::vector<collect::DisarmedProbe> disarm_spinning(std::vector<std::string>& problems);

  // Has the process other code than before? Stacks would end there.
  void look_at_code();

  // Semaphores of static probes, until detach().
  Expected<void> raise(std::span<const uint64_t> semaphores) {
    return attachment_.raise(semaphores);
  }

  // What waits in the rings; also when the process is gone.
  void read(const collect::TakeRecord& take) { reader_->read_records(take); }
  // Slots of ended threads are given to new ones.
  void keep_house();
  void add_losses(abi::MachineLosses& losses);
  void add_cells(uint32_t aggregation, bool takes, std::vector<kernel::MachineAggregate>& entries);
  // See inline_::Attachment.
  Expected<inline_::ProcessLock::Hold> hold() { return attachment_.hold(); }
  Expected<std::optional<inline_::ProcessLock::Hold>> try_hold() { return attachment_.try_hold(); }
  // Takes the probes and the memory out.
  Expected<inline_::DetachReport> detach() { return attachment_.detach(); }

 private:
  Expected<void> share(const kernel::MachineState& state);
  Expected<void> make_reader();
  // The cells' words, of all threads.
  std::vector<uint64_t> read_sums();

  pid_t pid_;
  inline_::Attachment attachment_;
  InlineCells cells_;
  FileDescriptor own_file_;  // The MachineProcess and what it names that is constant.
  BodyRules rules_;
  FuelGuard fuel_guard_;
  ProbeCosts costs_;
  std::optional<ProcessStacks> stacks_;  // When a clause walks them. Of this process alone.
  std::chrono::steady_clock::time_point looked_;
  uint32_t unknown_code_ = 0;
  std::unique_ptr<collect::Reader> reader_;
  collect::ProcThreads threads_;
};

}  // namespace clew::engine

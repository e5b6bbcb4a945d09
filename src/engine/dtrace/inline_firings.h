// SPDX-License-Identifier: Apache-2.0
// Clauses -> the programs that run them inline, in a process: which lists of clauses can, and one
// program for each list and kind of point.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <sys/types.h>

#include "engine/clock.h"
#include "engine/dtrace/inline_cells.h"
#include "engine/dtrace/script_compiler.h"
#include "plan/d/firing.h"

namespace clew::engine {

// Where the state of a clause's program is.
enum class FiringForm : uint8_t {
  Shared,   // In the tables that processes and the kernel share.
  Cells,    // What can be counted in the thread's own words is.
  Private,  // So are variables that only clauses inside one process name (PrivateVariables).
};

class InlineFirings {
 public:
  // Borrowed.
  explicit InlineFirings(const CompiledScript& compiled);

  using Clauses = std::vector<uint32_t>;
  // A process can do all that they ask for, and nothing that they record makes the tracer do more
  // than print: what a process writes about itself may be wrong.
  [[nodiscard]] bool can_run(const Clauses& clauses) const;
  // What another process's or the kernel's memory shows may depend on what a process wrote into the
  // shared variables: a clause that fires elsewhere follows pointers, and reads variables.
  [[nodiscard]] bool could_be_led_astray(pid_t pid) const;
  [[nodiscard]] bool reads_result(const Clauses& clauses) const;
  // Some clause of the script asks for a user stack.
  [[nodiscard]] bool walk_stacks() const;
  [[nodiscard]] bool names_privates(const Clauses& clauses) const;
  // Null when there is no program for them. But for Shared, its updates want places.
  const plan::d::Firing* find(plan::d::FiringPoint point, const Clauses& clauses,
                              const std::string& static_arguments, FiringForm form);
  // FiringConstant::Tick, 0 when no program wants it; takes some milliseconds the first time.
  uint64_t tick();
  [[nodiscard]] CellRoom room() const { return room_; }

 private:
  [[nodiscard]] std::vector<plan::d::FiringClause> steps_of(const Clauses& clauses,
                                                            FiringForm form) const;
  [[nodiscard]] bool commands_tracer(uint32_t clause) const;
  // Functions of extensions, which the kernel runs.
  [[nodiscard]] bool calls_kernel(const Clauses& clauses) const;

  const CompiledScript& compiled_;
  CellRoom room_;
  std::vector<plan::d::FiringClause> error_clauses_;
  ClockSample begin_ = sample_clock();
  std::optional<uint64_t> tick_;
  using Key = std::tuple<plan::d::FiringPoint, Clauses, std::string, FiringForm>;
  std::map<Key, std::unique_ptr<plan::d::Firing>> firings_;
};

}  // namespace clew::engine

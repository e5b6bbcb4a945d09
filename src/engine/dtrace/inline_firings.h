// SPDX-License-Identifier: Apache-2.0
// Clauses -> the programs that run them inline, in a process: which lists of clauses can, and one
// program for each list and kind of point.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "engine/dtrace/script_compiler.h"
#include "plan/d/firing.h"

namespace clew::engine {

class InlineFirings {
 public:
  // Borrowed.
  explicit InlineFirings(const CompiledScript& compiled);

  using Clauses = std::vector<uint32_t>;
  // A process can do all that they ask for, and nothing that they record makes the tracer do more
  // than print: what a process writes about itself may be wrong.
  [[nodiscard]] bool can_run(const Clauses& clauses) const;
  [[nodiscard]] bool reads_result(const Clauses& clauses) const;
  // Null when there is no program for them.
  const plan::d::Firing* find(plan::d::FiringPoint point, const Clauses& clauses,
                              const std::string& static_arguments);

 private:
  [[nodiscard]] std::vector<plan::d::FiringClause> steps_of(const Clauses& clauses) const;
  [[nodiscard]] bool commands_tracer(uint32_t clause) const;

  const CompiledScript& compiled_;
  std::vector<plan::d::FiringClause> error_clauses_;
  using Key = std::tuple<plan::d::FiringPoint, Clauses, std::string>;
  std::map<Key, std::unique_ptr<plan::d::Firing>> firings_;
};

}  // namespace clew::engine

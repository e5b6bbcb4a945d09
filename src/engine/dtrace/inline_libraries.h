// SPDX-License-Identifier: Apache-2.0
// Libraries with inline probes that one process closes and opens again: the loader waits until they
// are armed anew, at their new places. Those that it never had open are for LateProbes.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/dtrace/inline_process.h"
#include "engine/dtrace/inline_sites.h"

namespace clew::engine {

// What the probes of one process are planned with.
struct InlinePlans {
  // `compiled` and `firings` are borrowed.
  InlinePlans(const CompiledScript& compiled, target::Catalog modules, InlineFirings& firings)
      : catalog(std::move(modules)), planner(compiled, catalog, codes, firings) {}

  target::Catalog catalog;
  CodeCache codes;
  InlineSitePlanner planner;
};

// Names the bodies of probes to who takes them out when they run out of fuel, or cost too much.
void guard_bodies(InlineProcess& process, const InlineSitePlanner& planner,
                  std::span<const InlineModule> modules, const ArmReport& armed);

class InlineLibraries {
 public:
  // Of a process whose probes are armed. `process` is borrowed, and `names` of the enablings.
  // Null when none of the libraries can be closed, or nobody can be told when it is.
  static std::unique_ptr<InlineLibraries> follow(InlineProcess& process,
                                                 std::unique_ptr<InlinePlans> plans,
                                                 const InlineSites& sites,
                                                 std::span<const abi::MachineEnabled> names);

  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  [[nodiscard]] bool is_over() const { return !process_.is_running(); }
  // Waits so long for a library, and arms it. What is missing is a line.
  void look(std::chrono::milliseconds timeout, std::vector<std::string>& lines);

  // Of follow().
  InlineLibraries(InlineProcess& process, std::unique_ptr<InlinePlans> plans,
                  std::span<const abi::MachineEnabled> names)
      : process_(process), plans_(std::move(plans)), names_(names) {}

 private:
  Expected<void> arm_new(std::vector<std::string>& lines);
  void tell_other_file(size_t module, std::vector<std::string>& lines) const;
  Expected<InlineRefusals> arm_module(size_t module);
  Expected<InlineRefusals> install(const LateModule& late);

  InlineProcess& process_;
  std::unique_ptr<InlinePlans> plans_;
  std::span<const abi::MachineEnabled> names_;
  bool loader_waits_ = false;
  bool went_on_loading_ = false;  // Told once.
};

}  // namespace clew::engine

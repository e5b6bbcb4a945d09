// SPDX-License-Identifier: Apache-2.0
// The probes of one process -> windows and what runs at their points. Nothing in the process
// changes here. What cannot be inline is left to the kernel's uprobes, probe by probe, and no
// uprobe stands in a window of ours: the kernel would execute the file's instruction in place of
// our jump.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "code/windows.h"
#include "engine/dtrace/inline_cells.h"
#include "engine/dtrace/inline_firings.h"
#include "engine/points.h"
#include "engine/sites.h"
#include "target/catalog.h"

namespace clew::engine {

// Why probes of a process are not inline: how many of them, by reason.
using InlineRefusals = std::map<std::string, uint32_t>;

struct InlineModule {
  size_t module = 0;
  std::vector<uint32_t> enablings;  // By request of the plan.
  code::Plan plan;
};

// A module that came after the others.
struct LateModule {
  InlineModule planned;
  InlineRefusals refusals;  // Of its probes.
};

struct InlineSites {
  std::vector<InlineModule> modules;
  std::set<uint32_t> enablings;  // All that are inline.
  InlineRefusals refusals;
};

class InlineSitePlanner {
 public:
  // All are borrowed.
  InlineSitePlanner(const CompiledScript& compiled, target::Catalog& catalog, CodeCache& codes,
                    InlineFirings& firings)
      : compiled_(compiled), catalog_(catalog), codes_(codes), firings_(firings) {}

  // Windows of other sessions, by module.
  void set_installed(std::map<size_t, InstalledWindows> installed) {
    installed_ = std::move(installed);
  }
  // Never inline from now on.
  void leave_out(uint32_t enabling, const std::string& reason);

  InlineSites plan();
  // Whether probes of the last plan() are of this file, wherever it was mapped then.
  [[nodiscard]] bool has_probes_of(size_t module);
  // The same of its name, which may be another file's by now.
  [[nodiscard]] bool has_probes_of_name(size_t module) const;
  // The same probes in this module of the same file. Others keep their plans.
  LateModule plan_again(size_t module, InstalledWindows installed);
  // By enabling: why those of the process that are in no plan are not.
  [[nodiscard]] const std::map<uint32_t, std::string>& left_out() const { return left_out_; }
  // Once the sites are known: variables are the threads' own where all probes of the clauses that
  // name them are inline, and `cells` has room for these. `has_counter`: the processor's counter
  // goes with the machine's clock, and may be read.
  void choose_form(const InlineSites& sites, InlineCells& cells,
                   std::span<const abi::MachineEnabled> names, bool has_counter);
  // From now on no variables are.
  void share_variables() { may_be_private_ = false; }
  [[nodiscard]] FiringForm form() const { return form_; }
  // The programs at a module's points, whose updates have their places in `cells`. `names` of the
  // enablings, by index.
  Expected<ModulePoints> points_of(const InlineModule& module, InlineCells& cells,
                                   std::span<const abi::MachineEnabled> names);
  // As messages name its probe.
  [[nodiscard]] std::string name_of(uint32_t enabling) const;
  // Its probe's module and function.
  [[nodiscard]] std::pair<std::string, std::string> function_of(uint32_t enabling) const;
  // What has to be raised in the process while the probes of the plan are armed.
  std::vector<uint64_t> semaphores();
  // The same for one module.
  void add_semaphores(size_t module, std::set<uint64_t>& addresses);

 private:
  struct Place {
    size_t module = 0;
    uint64_t address = 0;  // Link time.
    code::RequestKind kind = code::RequestKind::Entry;
  };
  using Places = std::map<uint32_t, Place>;  // By enabling.

  void leave_out_module(size_t module, const std::string& reason);
  [[nodiscard]] bool is_of_one_file(size_t module, size_t other);
  std::optional<InlineModule> plan_fitting(size_t module);
  void find_places();
  [[nodiscard]] std::optional<Place> place_of(const kernel::Probe& probe);
  [[nodiscard]] bool has_program(const kernel::MachineEnabling& enabling);
  const plan::d::Firing* find_firing(uint32_t enabling, InlineCells& cells,
                                     std::span<const abi::MachineEnabled> names,
                                     std::vector<uint64_t>& places);
  const plan::d::Firing* find_in_form(uint32_t enabling, FiringForm form, InlineCells& cells,
                                      std::span<const abi::MachineEnabled> names,
                                      std::vector<uint64_t>& places);
  code::ProbeReads reads_of(uint32_t index, code::RequestKind kind);
  InlineModule plan_module(size_t module, const code::ModuleCode& code);
  void drop_refused(const InlineModule& planned);
  void drop_unfit(const InlineModule& planned);
  void drop_beside_uprobes(const InlineModule& planned);
  [[nodiscard]] std::set<uint64_t> uprobes_in(size_t module);
  [[nodiscard]] const kernel::MachineEnabling& enabling_of(uint32_t index) const {
    return compiled_.enablings[index];
  }

  const CompiledScript& compiled_;
  target::Catalog& catalog_;
  CodeCache& codes_;
  InlineFirings& firings_;
  std::map<size_t, InstalledWindows> installed_;
  Places places_;
  std::map<const plan::d::Firing*, code::ProbeReads> reads_;  // By what `firings_` keeps.
  std::map<uint32_t, std::string> left_out_;
  bool may_be_private_ = true;
  FiringForm form_ = FiringForm::Cells;
};

}  // namespace clew::engine

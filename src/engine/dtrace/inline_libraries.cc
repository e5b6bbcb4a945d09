// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/inline_libraries.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace clew::engine {
namespace {

// The loader and the C library stay as long as the process.
bool can_be_closed(target::Catalog& catalog, size_t module) {
  if (catalog.modules()[module].file.is_executable) return false;
  const auto image = catalog.image(module);
  if (!image) return true;
  return (*image)->soname() != "libc.so.6" && !(*image)->soname().starts_with("ld-linux");
}

std::string reasons_of(const InlineRefusals& refusals) {
  std::string text;
  for (const auto& [reason, count] : refusals)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, reason);
  return text;
}

}  // namespace

void guard_bodies(InlineProcess& process, const InlineSitePlanner& planner,
                  std::span<const InlineModule> modules, const ArmReport& armed) {
  for (const ArmedBody& body : armed.bodies) {
    const InlineModule& module = modules[body.module];
    const uint32_t enabling = module.enablings[module.plan.points[body.point].request];
    const auto [file, function] = planner.function_of(enabling);
    process.costs().add(ProbeCosts::Function{.module = file, .name = function}, body.address,
                        body.code);
    if (body.has_fuel_counts) process.guard(enabling, planner.name_of(enabling), body.address);
  }
  process.find_runtime_areas();
}

std::unique_ptr<InlineLibraries> InlineLibraries::follow(
    InlineProcess& process, std::unique_ptr<InlinePlans> plans, const InlineSites& sites,
    std::span<const abi::MachineEnabled> names) {
  const bool can_come_back = std::any_of(
      sites.modules.begin(), sites.modules.end(),
      [&](const InlineModule& module) { return can_be_closed(plans->catalog, module.module); });
  if (!can_come_back || !process.follow_modules()) return nullptr;
  return std::make_unique<InlineLibraries>(process, std::move(plans), names);
}

void InlineLibraries::look(std::chrono::milliseconds timeout, std::vector<std::string>& lines) {
  loader_waits_ = loader_waits_ || process_.loader_waits(timeout);
  if (!loader_waits_) return;
  // The loader waits for us no longer than it would for a tracer that is dead: then it goes on.
  const auto hold = process_.try_hold();
  if (hold && !*hold) return;
  loader_waits_ = false;
  const Expected<void> done = arm_new(lines);
  if (!done && process_.is_running()) {
    lines.push_back(
        fmt::format("warning: probes of libraries that process {} opens are missing: {}", pid(),
                    done.error().message));
  }
  if (process_.modules_done() || std::exchange(went_on_loading_, true)) return;
  lines.push_back(
      fmt::format("warning: process {} went on before libraries that it opened had their probes "
                  "again: firings there may be missing",
                  pid()));
}

Expected<void> InlineLibraries::arm_new(std::vector<std::string>& lines) {
  for (const uint64_t bias : process_.reloaded())
    plans_->catalog.note_gone(bias);
  for (const size_t module : CLEW_TRY(plans_->catalog.refresh())) {
    if (!plans_->planner.has_probes_of(module)) {
      tell_other_file(module, lines);
      continue;
    }
    const InlineRefusals refusals = CLEW_TRY(arm_module(module));
    if (refusals.empty()) continue;
    lines.push_back(
        fmt::format("warning: process {} has loaded {} again: probes, which were inline, are "
                    "missing there: {} (-x useruprobes)",
                    pid(), plans_->catalog.modules()[module].file.path, reasons_of(refusals)));
  }
  return {};
}

void InlineLibraries::tell_other_file(size_t module, std::vector<std::string>& lines) const {
  if (!plans_->planner.has_probes_of_name(module)) return;
  lines.push_back(fmt::format(
      "warning: process {} has loaded {} again, which is another file now: probes, which "
      "were inline, are missing there",
      pid(), plans_->catalog.modules()[module].file.path));
}

Expected<InlineRefusals> InlineLibraries::arm_module(size_t module) {
  const uint64_t bias = plans_->catalog.modules()[module].file.load_bias;
  const LateModule late = plans_->planner.plan_again(module, process_.installed(bias));
  InlineRefusals refusals = late.refusals;
  if (late.planned.plan.points.empty()) return refusals;
  for (const auto& [reason, count] : CLEW_TRY(install(late)))
    refusals[reason] += count;
  std::set<uint64_t> semaphores;
  plans_->planner.add_semaphores(module, semaphores);
  CLEW_TRY(process_.raise(std::vector<uint64_t>(semaphores.begin(), semaphores.end())));
  return refusals;
}

// What the process refuses, probe by probe. A library that is gone already is none of that.
Expected<InlineRefusals> InlineLibraries::install(const LateModule& late) {
  const InlineModule& planned = late.planned;
  const ModulePoints points =
      CLEW_TRY(plans_->planner.points_of(planned, process_.cells(), names_));
  const ArmReport armed = CLEW_TRY(process_.arm_more({&points, 1}));
  guard_bodies(process_, plans_->planner, {&planned, 1}, armed);
  std::map<uint32_t, code::RefusalReason> refused;  // By enabling.
  for (const inline_::PointRefusal& refusal : armed.install.refusals) {
    refused.emplace(planned.enablings[planned.plan.points[refusal.point].request], refusal.reason);
  }
  InlineRefusals refusals;
  for (const auto& [enabling, reason] : refused) {
    if (reason == code::RefusalReason::ModuleGone) {
      plans_->catalog.note_gone(points.load_bias);
    } else {
      ++refusals[std::string(code::name(reason))];
    }
  }
  return refusals;
}

}  // namespace clew::engine

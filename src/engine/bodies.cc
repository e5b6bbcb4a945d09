// SPDX-License-Identifier: Apache-2.0
#include "engine/bodies.h"

#include <cstddef>
#include <set>

#include "abi/region.h"
#include "base/assert.h"
#include "engine/copied_functions.h"

namespace clew::engine {
namespace {

// A landing does its work for each call that is left: all records of a thread at most.
constexpr uint64_t kLandingFuel = 2000ULL << plan::kRecordsLog2;

bool is_landing(const plan::ProbeProgram& program) {
  return program.point == plan::ProgramPoint::Landing || program.point == plan::ProgramPoint::Jump;
}

// A landing works for calls of all probes, so that its hits are none of one probe.
FuelCounts fuel_counts(const plan::ProbeProgram& probe, const Site& site,
                       const plan::Lowered& lowered) {
  const bool is_landing = is_at_unwinder(probe.point);
  const uint64_t of_thread =
      is_landing ? offsetof(abi::RegionHeader, missed_fuel) : lowered.fuel_pointer(fuel_word(site));
  return {.of_thread = static_cast<uint32_t>(of_thread),
          .of_all = 4 * (is_landing ? plan::kFuelWords : fuel_word(site))};
}

// Where the module of the site is.
struct PlacedSite {
  Site site;
  uint64_t load_bias = 0;
};

uint64_t constant_of(plan::SiteConstant kind, const PlacedSite& placed,
                     const plan::Lowered& lowered) {
  const Site& site = placed.site;
  switch (kind) {
    case plan::SiteConstant::SiteAddress:
      return site.address + placed.load_bias;
    case plan::SiteConstant::GroupPointer:
      return lowered.group_pointer(site.group.value_or(0));
    case plan::SiteConstant::RecordTag:
      return site.function_number << abi::kFunctionIdShift;
    case plan::SiteConstant::FunctionIndex:
    case plan::SiteConstant::ModuleIndex:
    case plan::SiteConstant::ProbeIndex:
      return site.names;
  }
  return 0;
}

PointProgram program_at(const plan::ProbeProgram& probe, const isa::Program& program,
                        const PlacedSite& placed, const plan::Lowered& lowered) {
  const Site& site = placed.site;
  PointProgram result;
  result.program = &program;
  result.constants.reserve(probe.site_constants.size());
  for (const plan::SiteConstant kind : probe.site_constants)
    result.constants.push_back(constant_of(kind, placed, lowered));
  if (lowered.calls_extensions) result.fuel = lowered.extension_fuel;
  if (is_landing(probe)) result.fuel = kLandingFuel;
  if (lowered.fuel_offset != 0) result.fuel_counts = fuel_counts(probe, site, lowered);
  return result;
}

BodyRules rules_of(const plan::Lowered& lowered, const inline_::Geometry& geometry) {
  BodyRules rules;
  rules.environment.window_address = geometry.window_address;
  rules.environment.window_size_log2 = lowered.layout.size_log2;
  rules.environment.slot_address = geometry.slot_address;
  rules.environment.generation_address = geometry.generation_address;
  rules.environment.branch_guards = lowered.calls_extensions && lowered.branch_guards;
  rules.policy.branch_guards = rules.environment.branch_guards;
  rules.policy.window_address = geometry.window_address;
  rules.policy.window_size_log2 = lowered.layout.size_log2;
  rules.policy.slot_address = geometry.slot_address;
  rules.policy.generation_address = geometry.generation_address;
  rules.spent_address = geometry.spent_address;
  return rules;
}

ModulePoints points_of(const SiteSet& set, const ModulePlan& module, const plan::Lowered& lowered,
                       const target::Catalog& catalog) {
  CLEW_ASSERT(module.module < catalog.modules().size());
  const target::ProcessModule& file = catalog.modules()[module.module].file;
  ModulePoints points{.plan = &module.plan,
                      .load_bias = file.load_bias,
                      .programs = {},
                      .text = file.executable_ranges};
  points.programs.reserve(module.plan.points.size());
  for (const code::Point& point : module.plan.points) {
    CLEW_ASSERT(point.request < module.requests.size());
    const PlannedRequest& request = module.requests[point.request];
    CLEW_ASSERT(request.program < lowered.programs.size());
    const plan::ProbeProgram& probe = lowered.programs[request.program];
    CLEW_ASSERT(is_at_unwinder(probe.point) || request.site < set.sites.size());
    const bool replaced = point.tail_call && probe.at_tail_call;
    const Site site = is_at_unwinder(probe.point) ? Site{} : set.sites[request.site];
    points.programs.push_back(program_at(probe, replaced ? *probe.at_tail_call : probe.program,
                                         {.site = site, .load_bias = file.load_bias}, lowered));
  }
  return points;
}

std::vector<ModulePoints> points_of(const SiteSet& set, const plan::Lowered& lowered,
                                    const target::Catalog& catalog) {
  std::vector<ModulePoints> modules;
  modules.reserve(set.modules.size());
  for (const ModulePlan& module : set.modules)
    modules.push_back(points_of(set, module, lowered, catalog));
  return modules;
}

// Of programs at sites alone.
Expected<std::vector<CopyInput>> copy_inputs(const SiteSet& set, target::Catalog& catalog,
                                             std::span<const ModulePoints> points) {
  std::vector<CopyInput> inputs;
  inputs.reserve(points.size());
  for (size_t m = 0; m < points.size(); ++m) {
    const ModulePlan& module = set.modules[m];
    const target::ModuleImage* const image = CLEW_TRY(catalog.image(module.module));
    CopyInput input{*image, catalog.modules()[module.module].file, points[m], {}};
    for (const code::Point& point : module.plan.points)
      input.functions.push_back(set.sites[module.requests[point.request].site].address);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// What is gone is not refused: it may come back.
void list_refusals(SiteSet& set, const plan::Lowered& lowered, ArmReport& report) {
  for (const inline_::PointRefusal& refusal : report.install.refusals) {
    CLEW_ASSERT(refusal.module < set.modules.size());
    const ModulePlan& module = set.modules[refusal.module];
    CLEW_ASSERT(refusal.point < module.plan.points.size());
    if (refusal.reason == code::RefusalReason::ModuleGone) {
      report.gone.insert(module.module);
      continue;
    }
    const code::Point& point = module.plan.points[refusal.point];
    const PlannedRequest& request = module.requests[point.request];
    if (is_at_unwinder(lowered.programs[request.program].point)) {
      set.refused.push_back({.function = set.unwinders[request.site].name,
                             .kind = "unwinder",
                             .reason = std::string(code::name(refusal.reason))});
      continue;
    }
    const Site& site = set.sites[request.site];
    set.refused.push_back({.function = set.names[site.names].function,
                           .kind = point.kind == code::PointKind::Exit ? "exit" : "entry",
                           .reason = std::string(code::name(refusal.reason))});
  }
}

// Which sites the bodies belong to; those at the unwinder are of none.
void list_bodies(const SiteSet& set, const plan::Lowered& lowered, ArmReport& report) {
  for (ArmedBody& body : report.bodies) {
    CLEW_ASSERT(body.module < set.modules.size());
    const ModulePlan& module = set.modules[body.module];
    CLEW_ASSERT(body.point < module.plan.points.size());
    const PlannedRequest& request = module.requests[module.plan.points[body.point].request];
    ArmedSite& armed = report.sites.emplace_back(
        ArmedSite{.site = std::nullopt, .address = body.address, .code = std::move(body.code)});
    if (is_at_unwinder(lowered.programs[request.program].point)) continue;
    armed.site = request.site;
    armed.has_fuel_counts = body.has_fuel_counts;
  }
}

}  // namespace

std::vector<std::string> left_by_jump(const SiteSet& set, const plan::Lowered& lowered) {
  std::set<std::string> names;
  if (!lowered.records.has_time) return {};
  for (const ModulePlan& module : set.modules) {
    for (const code::Point& point : module.plan.points) {
      const PlannedRequest& request = module.requests[point.request];
      const plan::ProbeProgram& probe = lowered.programs[request.program];
      const bool is_timed = point.tail_call && probe.point == plan::ProgramPoint::Exit;
      if (!is_timed || probe.is_recorder) continue;
      names.insert(set.names[set.sites[request.site].names].function);
    }
  }
  return {names.begin(), names.end()};
}

uint32_t fuel_word(const Site& site) {
  return static_cast<uint32_t>(site.names % plan::kFuelWords);
}

Expected<native::Code> translate_site(const plan::ProbeProgram& program, const Site& site,
                                      const plan::Lowered& lowered, code::PointKind point,
                                      const inline_::Geometry& geometry) {
  return translate_point(program_at(program, program.program, {.site = site}, lowered),
                         {.kind = point}, rules_of(lowered, geometry));
}

Expected<std::vector<CopiedReport>> judge_copies(const SiteSet& set, const plan::Lowered& lowered,
                                                 target::Catalog& catalog,
                                                 const inline_::Geometry& geometry) {
  const std::vector<ModulePoints> points = points_of(set, lowered, catalog);
  const auto inputs = CLEW_TRY(copy_inputs(set, catalog, points));
  return judge_copies(catalog.pid(), inputs, rules_of(lowered, geometry));
}

Expected<ArmReport> arm(inline_::Attachment& attachment, SiteSet& set, const plan::Lowered& lowered,
                        target::Catalog& catalog, bool wants_copies) {
  std::vector<ModulePoints> modules = points_of(set, lowered, catalog);
  BodyRules rules = rules_of(lowered, attachment.geometry());
  rules.policy.time_is_readable = attachment.time_is_readable();
  rules.policy.cpu_is_readable = attachment.cpu_is_readable();
  std::vector<CopiedReport> copied;
  if (wants_copies) {
    const auto inputs = CLEW_TRY(copy_inputs(set, catalog, modules));
    Copies copies = CLEW_TRY(make_copies(attachment, inputs, rules));
    for (size_t m = 0; m < modules.size(); ++m)
      modules[m].copies = std::move(copies.ways[m]);
    copied = std::move(copies.reports);
  }
  ArmReport report = CLEW_TRY(arm_points(attachment, modules, rules));
  report.copied = std::move(copied);
  list_bodies(set, lowered, report);
  list_refusals(set, lowered, report);
  for (UnwinderFunction& function : set.unwinders) {
    function.is_armed = true;
  }
  return report;
}

}  // namespace clew::engine

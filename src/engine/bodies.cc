// SPDX-License-Identifier: Apache-2.0
#include "engine/bodies.h"

#include <optional>

#include "abi/context.h"
#include "verify/verified_code.h"

namespace clew::engine {
namespace {

// A landing does its work for each call that is left: all records of a thread at most.
constexpr uint64_t kLandingFuel = 2000ULL << plan::kRecordsLog2;

bool is_landing(const plan::ProbeProgram& program) {
  return program.point == plan::ProgramPoint::Landing || program.point == plan::ProgramPoint::Jump;
}

native::PointKind native_point(inline_::PointKind kind) {
  switch (kind) {
    case inline_::PointKind::Entry:
      return native::PointKind::Entry;
    case inline_::PointKind::Exit:
      return native::PointKind::Exit;
    case inline_::PointKind::Offset:
      return native::PointKind::Offset;
  }
  return native::PointKind::Offset;
}

uint64_t constant_of(plan::SiteConstant kind, const Site& site, const plan::Lowered& lowered) {
  switch (kind) {
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

// What a body may read above rsp: the saved registers, and where the stack is a function's own, the
// return address and the argument words above it.
uint32_t stack_readable_bytes(inline_::PointKind kind, abi::RegisterSet clobbers) {
  const uint32_t saved = 8 * abi::saved_count(clobbers);
  switch (kind) {
    case inline_::PointKind::Entry:
      return saved + 8 + 8 * abi::kStackArgumentsMax;
    case inline_::PointKind::Exit:
      return saved + 8;
    case inline_::PointKind::Offset:
      return saved;
  }
  return saved;
}

Expected<native::Code> translate(const isa::Program& program,
                                 const std::vector<plan::SiteConstant>& kinds, const Site& site,
                                 const plan::Lowered& lowered,
                                 const native::Environment& environment) {
  std::vector<uint64_t> constants;
  constants.reserve(kinds.size());
  for (const plan::SiteConstant kind : kinds) {
    constants.push_back(constant_of(kind, site, lowered));
  }
  return native::translate(program, environment, constants);
}

native::Environment environment_of(const plan::ProbeProgram& program, inline_::PointKind point,
                                   const plan::Lowered& lowered,
                                   const inline_::Geometry& geometry) {
  native::Environment environment{.point = native_point(point),
                                  .window_address = geometry.window_address,
                                  .window_size_log2 = lowered.layout.size_log2,
                                  .slot_address = geometry.slot_address,
                                  .generation_address = geometry.generation_address};
  if (is_landing(program)) environment.fuel = kLandingFuel;
  return environment;
}

// The code of all points of one module, in the order of plan.points.
Expected<std::vector<native::Code>> translate_module(const SiteSet& set, const ModulePlan& module,
                                                     const plan::Lowered& lowered,
                                                     const inline_::Geometry& geometry) {
  std::vector<native::Code> codes;
  codes.reserve(module.plan.points.size());
  for (const inline_::Point& point : module.plan.points) {
    const PlannedRequest& request = module.requests[point.request];
    const plan::ProbeProgram& probe = lowered.programs[request.program];
    const bool replaced = point.tail_call && probe.at_tail_call;
    const Site site = is_at_unwinder(probe.point) ? Site{} : set.sites[request.site];
    codes.push_back(
        CLEW_TRY(translate(replaced ? *probe.at_tail_call : probe.program, probe.site_constants,
                           site, lowered, environment_of(probe, point.kind, lowered, geometry))));
  }
  return codes;
}

// What the verifier must know of a body besides where it lies.
struct BodyRules {
  inline_::PointKind kind = inline_::PointKind::Entry;
  uint64_t fuel_max = verify::Policy{}.fuel_max;
};

BodyRules rules_of(const ModulePlan& module, const inline_::Point& point,
                   const plan::Lowered& lowered) {
  const plan::ProbeProgram& probe = lowered.programs[module.requests[point.request].program];
  BodyRules rules{.kind = point.kind};
  if (is_landing(probe)) rules.fuel_max = kLandingFuel;
  return rules;
}

Expected<verify::VerifiedCode> place_and_verify(const native::Code& code, const BodyRules& rules,
                                                const inline_::BodyPlace& place,
                                                const plan::Lowered& lowered,
                                                const inline_::Geometry& geometry) {
  std::vector<uint8_t> bytes = code.bytes;
  if (!native::relocate(code, place.address, place.accessor_entries, bytes)) {
    return fail(ErrorCode::Limit, "the runtime is too far from a trampoline");
  }
  const verify::Policy policy{
      .address = place.address,
      .window_address = geometry.window_address,
      .window_size_log2 = lowered.layout.size_log2,
      .slot_address = geometry.slot_address,
      .generation_address = geometry.generation_address,
      .stack_readable_bytes = stack_readable_bytes(rules.kind, code.clobbers),
      .clobbers = code.clobbers,
      .accessor_entries = place.accessor_entries,
      .fuel_max = rules.fuel_max};
  return verify::check(bytes, policy);
}

void list_refusals(SiteSet& set, const plan::Lowered& lowered,
                   const std::vector<inline_::PointRefusal>& refusals) {
  for (const inline_::PointRefusal& refusal : refusals) {
    const ModulePlan& module = set.modules[refusal.module];
    const inline_::Point& point = module.plan.points[refusal.point];
    const PlannedRequest& request = module.requests[point.request];
    if (is_at_unwinder(lowered.programs[request.program].point)) {
      set.refused.push_back({.function = set.unwinders[request.site].name,
                             .kind = "unwinder",
                             .reason = std::string(inline_::name(refusal.reason))});
      continue;
    }
    const Site& site = set.sites[request.site];
    set.refused.push_back({.function = set.names[site.names].function,
                           .kind = point.kind == inline_::PointKind::Exit ? "exit" : "entry",
                           .reason = std::string(inline_::name(refusal.reason))});
  }
}

}  // namespace

Expected<native::Code> translate_site(const plan::ProbeProgram& program, const Site& site,
                                      const plan::Lowered& lowered, inline_::PointKind point,
                                      const inline_::Geometry& geometry) {
  return translate(program.program, program.site_constants, site, lowered,
                   environment_of(program, point, lowered, geometry));
}

Expected<ArmReport> arm(inline_::Attachment& attachment, SiteSet& set, const plan::Lowered& lowered,
                        const target::Catalog& catalog) {
  const inline_::Geometry& geometry = attachment.geometry();
  std::vector<std::vector<native::Code>> codes;
  std::vector<std::vector<inline_::BodyShape>> shapes;
  std::vector<inline_::ModuleRequest> requests;
  ArmReport report;
  for (const ModulePlan& module : set.modules) {
    codes.push_back(CLEW_TRY(translate_module(set, module, lowered, geometry)));
    std::vector<inline_::BodyShape>& bodies = shapes.emplace_back();
    for (const native::Code& code : codes.back()) {
      report.code_bytes += code.bytes.size();
      bodies.push_back({.size_bytes = static_cast<uint32_t>(code.bytes.size()),
                        .clobbers = code.clobbers,
                        .guarded = code.guarded});
    }
  }
  for (size_t m = 0; m < set.modules.size(); ++m) {
    requests.push_back({.plan = &set.modules[m].plan,
                        .load_bias = catalog.modules()[set.modules[m].module].file.load_bias,
                        .bodies = shapes[m]});
  }
  inline_::Layout layout = CLEW_TRY(attachment.lay_out(requests));
  std::vector<inline_::Body> bodies;
  for (uint32_t m = 0; m < set.modules.size(); ++m) {
    for (uint32_t p = 0; p < codes[m].size(); ++p) {
      const std::optional<inline_::BodyPlace> place = layout.place(m, p);
      if (!place) continue;
      bodies.push_back(
          {.module = m,
           .point = p,
           .code = CLEW_TRY(place_and_verify(
               codes[m][p], rules_of(set.modules[m], set.modules[m].plan.points[p], lowered),
               *place, lowered, geometry))});
    }
  }
  report.install = CLEW_TRY(attachment.install(std::move(layout), bodies));
  list_refusals(set, lowered, report.install.refusals);
  for (UnwinderFunction& function : set.unwinders) {
    function.is_armed = true;
  }
  return report;
}

}  // namespace clew::engine

// SPDX-License-Identifier: Apache-2.0
#include "engine/points.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "abi/context.h"
#include "base/assert.h"
#include "base/log.h"
#include "engine/callees.h"

namespace clew::engine {
namespace {

native::PointKind native_point(code::PointKind kind) {
  switch (kind) {
    case code::PointKind::Entry:
      return native::PointKind::Entry;
    case code::PointKind::Exit:
      return native::PointKind::Exit;
    case code::PointKind::Offset:
      return native::PointKind::Offset;
  }
  return native::PointKind::Offset;
}

// What is above rsp for sure: the saved registers, and where the stack is a function's own, the
// return address.
uint32_t stack_mapped_bytes(code::PointKind kind, abi::RegisterSet clobbers) {
  const uint32_t saved = 8 * abi::saved_count(clobbers);
  return kind == code::PointKind::Offset ? saved : saved + 8;
}

// What a body may read there: at an entry also the words of arguments, if the stack goes on so far.
uint32_t stack_readable_bytes(code::PointKind kind, abi::RegisterSet clobbers) {
  const uint32_t mapped = stack_mapped_bytes(kind, clobbers);
  return kind == code::PointKind::Entry ? mapped + 8 * abi::kStackArgumentsMax : mapped;
}

// The code of all points of one module, in their order.
Expected<std::vector<native::Code>> translate_module(const ModulePoints& module,
                                                     const BodyRules& rules) {
  CLEW_ASSERT(module.programs.size() == module.plan->points.size());
  std::vector<native::Code> codes;
  codes.reserve(module.programs.size());
  for (size_t p = 0; p < module.programs.size(); ++p) {
    codes.push_back(CLEW_TRY(translate_point(module.programs[p], module.plan->points[p], rules)));
  }
  return codes;
}

Expected<verify::VerifiedCode> place_and_verify(const isa::Program& program,
                                                const native::Code& code,
                                                const inline_::BodyPlace& place,
                                                const verify::Policy& rules) {
  std::vector<uint8_t> bytes = code.bytes;
  if (!native::relocate(code, place.address, place.accessor_entries, bytes)) {
    return fail(ErrorCode::Limit, "the runtime is too far from a trampoline");
  }
  verify::Policy policy = rules;
  policy.address = place.address;
  policy.clobbers = code.clobbers;
  const std::vector<verify::Callee> callees = callees_of(program, place.accessor_entries);
  policy.callees = callees;
  std::vector<verify::DeclaredFact> facts;
  facts.reserve(code.facts.size());
  for (const native::DeclaredFact& fact : code.facts)
    facts.push_back({fact.offset_bytes, fact.in, fact.high});
  policy.facts = facts;
  return verify::check(bytes, policy);
}

std::vector<inline_::BodyShape> shapes_of(const std::vector<native::Code>& codes) {
  std::vector<inline_::BodyShape> shapes;
  shapes.reserve(codes.size());
  for (const native::Code& code : codes) {
    shapes.push_back({.size_bytes = static_cast<uint32_t>(code.bytes.size()),
                      .clobbers = code.clobbers,
                      .guarded = code.guarded});
  }
  return shapes;
}

// The absolute address of the count of all threads: all that a program of a query has of globals.
std::optional<uint32_t> spent_word(const PointProgram& program, const BodyRules& rules) {
  if (!program.fuel_counts || !program.fuel_counts->of_all) return std::nullopt;
  return rules.spent_address + *program.fuel_counts->of_all;
}

constexpr uint32_t kSpentBytes = 4;

verify::Policy policy_of(const PointProgram& program, const native::Code& code,
                         const code::Point& point, const BodyRules& rules) {
  verify::Policy policy = rules.policy;
  policy.fuel_max = program.fuel;
  if (const std::optional<uint32_t> spent = spent_word(program, rules)) {
    policy.globals_address = *spent;
    policy.globals_bytes = kSpentBytes;
  }
  policy.stack_readable_bytes = stack_readable_bytes(point.kind, code.clobbers);
  policy.stack_mapped_bytes = stack_mapped_bytes(point.kind, code.clobbers);
  return policy;
}

}  // namespace

Expected<native::Code> translate_point(const PointProgram& program, const code::Point& point,
                                       const BodyRules& rules) {
  native::Environment environment = rules.environment;
  environment.point = native_point(point.kind);
  environment.fuel = program.fuel;
  if (program.fuel_counts) environment.missed_fuel_offset = program.fuel_counts->of_thread;
  if (const std::optional<uint32_t> spent = spent_word(program, rules)) {
    environment.globals_address = environment.spent_address = *spent;
    environment.globals_bytes = kSpentBytes;
  }
  environment.saved = program.saved;
  if (point.keeps_flags) environment.saved.add(abi::kSavedFlags);
  return native::translate(*program.program, environment, program.constants);
}

Expected<void> check_at(uint64_t address, const native::Code& code, const PointProgram& program,
                        const code::Point& point, const BodyRules& rules) {
  CLEW_ASSERT(code.calls.empty());
  const inline_::BodyPlace place = {.address = address, .accessor_entries = {}};
  const verify::Policy policy = policy_of(program, code, point, rules);
  CLEW_TRY(place_and_verify(*program.program, code, place, policy));
  return {};
}

std::string why_none_copied(const std::vector<CopiedReport>& reports) {
  std::map<std::string, uint32_t> reasons;
  for (const CopiedReport& report : reports) {
    if (report.copied != 0) return {};
    for (const auto& [reason, functions] : report.others)
      reasons[reason] += functions;
  }
  const auto most =
      std::max_element(reasons.begin(), reasons.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == reasons.end() ? "" : fmt::format("[{}]", most->first);
}

Expected<ArmReport> arm_points(inline_::Attachment& attachment,
                               std::span<const ModulePoints> modules, const BodyRules& rules) {
  std::vector<std::vector<native::Code>> codes;
  const StepTime time;
  std::vector<std::vector<inline_::BodyShape>> shapes;
  ArmReport report;
  for (const ModulePoints& module : modules) {
    codes.push_back(CLEW_TRY(translate_module(module, rules)));
    shapes.push_back(shapes_of(codes.back()));
    for (const native::Code& code : codes.back())
      report.code_bytes += code.bytes.size();
  }
  std::vector<inline_::ModuleRequest> requests;
  for (size_t m = 0; m < modules.size(); ++m) {
    requests.push_back({.plan = modules[m].plan,
                        .load_bias = modules[m].load_bias,
                        .bodies = shapes[m],
                        .text = modules[m].text,
                        .copies = modules[m].copies});
  }
  log_step(attachment.pid(), "translated programs for {} modules: {} bytes of code ({:.1f} ms)",
           modules.size(), report.code_bytes, time.ms());
  inline_::Layout layout = CLEW_TRY(attachment.lay_out(requests));
  std::vector<inline_::Body> bodies;
  for (uint32_t m = 0; m < modules.size(); ++m) {
    for (uint32_t p = 0; p < codes[m].size(); ++p) {
      const std::optional<inline_::BodyPlace> place = layout.place(m, p);
      if (!place) continue;
      report.bodies.push_back({.module = m,
                               .point = p,
                               .address = place->address,
                               .has_fuel_counts = modules[m].programs[p].fuel_counts.has_value(),
                               .code = layout.probe_code(m, p)});
      const native::Code& code = codes[m][p];
      const verify::Policy policy =
          policy_of(modules[m].programs[p], code, modules[m].plan->points[p], rules);
      const isa::Program& program = *modules[m].programs[p].program;
      bodies.push_back({.module = m,
                        .point = p,
                        .code = CLEW_TRY(place_and_verify(program, code, *place, policy))});
    }
  }
  log_step(attachment.pid(), "verified {} bodies ({:.1f} ms)", bodies.size(), time.ms());
  report.install = CLEW_TRY(attachment.install(std::move(layout), bodies));
  return report;
}

}  // namespace clew::engine

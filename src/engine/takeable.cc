// SPDX-License-Identifier: Apache-2.0
#include "engine/takeable.h"

#include <array>
#include <span>

#include <fmt/format.h>

#include "abi/context.h"
#include "code/kept_instruction.h"
#include "code/refusal.h"
#include "engine/uprobe_sites.h"

namespace clew::engine {

namespace {

// Every window that would overwrite that byte.
void refuse_at(const code::Plan& plan, uint64_t address, const ForeignPatch& patch,
               std::vector<Takeable>& result) {
  for (const code::Point& point : plan.points) {
    const code::Window& window = plan.windows[point.window];
    if (address - window.address >= window.size_bytes) continue;
    Takeable& takeable = result[point.request / 2];
    (point.request % 2 == 0 ? takeable.entry : takeable.exits) =
        code::name(code::RefusalReason::ForeignPatch);
    takeable.owner = patch.owner;
  }
}

std::string uprobe_for(code::RefusalReason reason) {
  if (takes_uprobe(reason, UprobePolicy::WhereLate)) return Takeable::kYes;
  return takes_uprobe(reason, UprobePolicy::WhereRefused) ? "--uprobes" : "";
}

// What the first instruction does to values that a probe may ask for.
std::vector<std::string> changed(std::span<const uint8_t> first) {
  using abi::Register;
  constexpr std::array<Register, 6> kArguments = {Register::Rdi, Register::Rsi, Register::Rdx,
                                                  Register::Rcx, Register::R8,  Register::R9};
  std::vector<std::string> names;
  const auto add = [&](const code::ProbeReads& reads, std::string name) {
    if (!code::leaves_alone(first, reads)) names.push_back(std::move(name));
  };
  for (size_t i = 0; i < kArguments.size(); ++i) {
    code::ProbeReads reads;
    reads.registers.add(kArguments[i]);
    add(reads, fmt::format("arg{}", i));
  }
  for (unsigned i = 0; i < abi::kVectorArgumentsMax; ++i) {
    code::ProbeReads reads;
    reads.vectors = static_cast<uint16_t>(1U << i);
    add(reads, fmt::format("xmm{}", i));
  }
  code::ProbeReads reads;
  reads.stack = true;
  add(reads, "stack");
  reads = {};
  reads.memory = true;
  add(reads, "memory");
  return names;
}

// Where the entry is behind the first instruction, and bytes that serve both ways have no room.
void note_lacking(CodeCache& codes, const code::ModuleCode& code, const code::Plan& plan,
                  std::vector<Takeable>& result) {
  std::vector<code::Request> requests;
  std::vector<size_t> places;
  for (const code::Point& point : plan.points) {
    const bool is_behind =
        point.kind == code::PointKind::Entry && code::is_behind_first(plan, point);
    if (!is_behind) continue;
    requests.push_back({.kind = code::RequestKind::Entry, .address = point.address});
    places.push_back(point.request / 2);
  }
  const code::Plan whole = codes.plan(code, requests, {}, code::LateUprobeDanger::Refused);
  for (const code::Refusal& refusal : whole.refusals) {
    const uint64_t function = requests[refusal.request].address;
    result[places[refusal.request]].entry_without = changed(code.text_from(function));
  }
}

}  // namespace

Expected<std::vector<Takeable>> find_takeable(target::Catalog& catalog, CodeCache& codes,
                                              const std::vector<target::FunctionMatch>& matches,
                                              size_t module,
                                              std::span<const ForeignPatch> patches) {
  const target::ModuleImage* image = CLEW_TRY(catalog.image(module));
  const code::ModuleCode* code = CLEW_TRY(codes.code(catalog, module));
  std::vector<code::Request> requests;
  for (const target::FunctionMatch& match : matches) {
    const uint64_t address = image->functions()[match.function].address;
    requests.push_back(
        {.kind = code::RequestKind::Entry, .address = address, .reads = code::kReadsNothing});
    requests.push_back({.kind = code::RequestKind::Exits, .address = address});
  }
  std::vector<Takeable> result(matches.size());
  const code::Plan plan = codes.plan(*code, requests, {}, code::LateUprobeDanger::Refused);
  for (const code::Refusal& refusal : plan.refusals) {
    Takeable& takeable = result[refusal.request / 2];
    const bool is_entry = refusal.request % 2 == 0;
    (is_entry ? takeable.entry : takeable.exits) = code::name(refusal.reason);
    (is_entry ? takeable.entry_uprobe : takeable.exits_uprobe) = uprobe_for(refusal.reason);
  }
  note_lacking(codes, *code, plan, result);
  const uint64_t bias = catalog.modules()[module].file.load_bias;
  for (const ForeignPatch& patch : patches)
    refuse_at(plan, patch.address - bias, patch, result);
  for (size_t i = 0; i < result.size(); ++i)
    result[i].later_uprobe = code::later_uprobe(*code, plan.windows, requests[2 * i].address);
  return result;
}

}  // namespace clew::engine

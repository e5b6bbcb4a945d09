// SPDX-License-Identifier: Apache-2.0
#include "recorder/carriers.h"

#include <algorithm>

#include "code/liveness.h"
#include "code/register_effect.h"

namespace clew::recorder {

namespace {

using abi::Register;
using code::Block;
using code::EdgeKind;
using code::Flow;

bool touches_r11(const code::ModuleCode& code, const copy::Proved& proved) {
  for (const Block& block : proved.blocks.blocks()) {
    for (auto at = code.at(block.begin); at && at->address < block.end; at = code.at(at->end())) {
      const auto effect = code::register_effect(code.text_from(at->address).first(at->length));
      if (effect.read.has(Register::R11) || effect.changed.has(Register::R11)) return true;
    }
  }
  return false;
}

// Does a switch lead where an entry from outside would load an older cursor?
bool switches_out(const code::ModuleCode& code, const copy::Proved& proved) {
  const uint64_t start = code.functions()[proved.function].address;
  for (const copy::SwitchTable& table : proved.switches.tables) {
    for (const uint64_t target : table.targets) {
      if (target == start || !proved.blocks.block_at(target)) return true;
    }
  }
  return false;
}

// Does control come to a landing pad by itself, where the cursor in memory is older?
bool runs_on_to_landing_pads(const copy::Facts& facts, const copy::Proved& proved) {
  const std::vector<uint64_t>& pads = facts.landing_pads;
  const std::vector<Block>& blocks = proved.blocks.blocks();
  const auto lands = [&](const Block& block) {
    return std::binary_search(pads.begin(), pads.end(), block.begin);
  };
  if (std::none_of(blocks.begin(), blocks.end(), lands)) return false;
  for (const Block& block : blocks) {
    for (const code::Edge& edge : proved.blocks.edges_of(block)) {
      if (edge.kind == EdgeKind::Label) return true;
      if (edge.block != code::kNoBlock && lands(blocks[edge.block])) return true;
    }
  }
  return false;
}

bool wants_r11(copy::Facts& facts, const copy::Proved& proved, const code::ModuleEffects& effects,
               size_t index) {
  if (effects.calls.wanted[proved.function].has(Register::R11)) return true;
  const code::Liveness liveness =
      code::Liveness::by_calls(facts.code, {proved.function, &proved.blocks}, facts.flags,
                               effects.calls, effects.blocks[index]);
  for (uint32_t i = 0; i < proved.blocks.blocks().size(); ++i) {
    if (liveness.at_start(i).registers.has(Register::R11)) return true;
  }
  return false;
}

bool all_ways_leave(const Copied& copied, const copy::Proved& proved,
                    const std::vector<bool>& leaves) {
  for (const Block& block : proved.blocks.blocks()) {
    for (const code::Edge& edge : proved.blocks.edges_of(block)) {
      if (edge.kind != EdgeKind::TailCall) continue;
      const uint32_t callee = copied.at(edge.target);
      if (callee == kNone || !leaves[callee]) return false;
    }
  }
  return true;
}

}  // namespace

Carriers find_carriers(copy::Facts& facts, const copy::ModuleProof& proof, const Copied& copied,
                       const code::ModuleEffects& effects) {
  Carriers carriers;
  for (size_t i = 0; i < proof.proved.size(); ++i) {
    const copy::Proved& proved = proof.proved[i];
    carriers.carries.push_back(
        !touches_r11(facts.code, proved) && !switches_out(facts.code, proved) &&
        !runs_on_to_landing_pads(facts, proved) && !wants_r11(facts, proved, effects, i));
  }
  carriers.leaves = carriers.carries;
  for (bool changes = true; changes;) {
    changes = false;
    for (size_t i = 0; i < proof.proved.size(); ++i) {
      if (!carriers.leaves[i] || all_ways_leave(copied, proof.proved[i], carriers.leaves)) continue;
      carriers.leaves[i] = false;
      changes = true;
    }
  }
  return carriers;
}

}  // namespace clew::recorder

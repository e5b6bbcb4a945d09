// SPDX-License-Identifier: Apache-2.0
// What the flow found, checked jump by jump and table by table.
#include "copy/switches.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <utility>

#include "copy/table_flow.h"

namespace clew::copy {

namespace {

using code::Block;
using code::EdgeKind;
using Refused = tl::unexpected<Refusal>;

// Does control stay in the function there, or who knows where it goes?
bool needs_table(const code::Blocks& blocks, const Block& block) {
  const auto edges = blocks.edges_of(block);
  return std::any_of(edges.begin(), edges.end(), [](const code::Edge& edge) {
    return edge.kind == EdgeKind::Case || edge.kind == EdgeKind::Label ||
           edge.kind == EdgeKind::Unknown;
  });
}

class SwitchFinder {
 public:
  SwitchFinder(const Facts& facts, uint32_t function, const code::Blocks& blocks)
      : facts_(facts),
        function_(function),
        blocks_(blocks),
        reader_(facts, function, blocks),
        bounds_(facts, function, blocks),
        extents_(reader_, bounds_) {}

  tl::expected<Switches, Refusal> run(const std::vector<uint64_t>& jumps) {
    auto candidates = find_candidates(facts_, blocks_, reader_);
    if (!candidates) return Refused({Reason::UnresolvedJump, jumps.front()});
    candidates_ = std::move(*candidates);
    flow_ = follow_tables(facts_, function_, blocks_, candidates_, extents_);
    CandidateSet used = 0;
    for (const uint64_t jump : jumps) {
      const auto found = std::find_if(flow_.jumps.begin(), flow_.jumps.end(),
                                      [jump](const auto& one) { return one.address == jump; });
      if (found == flow_.jumps.end()) return Refused({Reason::UnresolvedJump, jump});
      used |= found->from;
    }
    if ((used & flow_.escaped) != 0) return Refused({Reason::TableEscapes, flow_.escaped_at});
    for (const FlowResult::Jump& jump : flow_.jumps) {
      const auto table = table_of(jump.from);
      if (!table) return Refused({Reason::UnboundedTable, jump.address});
      result_.jumps.push_back({jump.address, *table});
    }
    if (const auto wrong = wrong_assumption()) return Refused({Reason::UnboundedTable, *wrong});
    add_names(used);
    return std::move(result_);
  }

 private:
  // In result_.tables: made when it is first asked for.
  std::optional<uint32_t> table_of(CandidateSet from) {
    const uint64_t address = candidates_[static_cast<size_t>(std::countr_zero(from))].table;
    const auto known = tables_.find(address);
    if (known != tables_.end()) return known->second;
    const TableExtent& extent = extents_.of(address);
    if (!extent.is_known) return std::nullopt;
    const auto index = static_cast<uint32_t>(result_.tables.size());
    result_.tables.push_back({address, extent.kind, extent.targets});
    tables_.emplace(address, index);
    return index;
  }

  // A switch leads to where bounds were found because none does.
  [[nodiscard]] std::optional<uint64_t> wrong_assumption() const {
    for (const SwitchTable& table : result_.tables) {
      for (const uint64_t assumed : extents_.of(table.address).assumed) {
        for (const SwitchTable& other : result_.tables) {
          const auto& targets = other.targets;
          if (std::find(targets.begin(), targets.end(), assumed) != targets.end()) return assumed;
        }
      }
    }
    return std::nullopt;
  }

  void add_names(CandidateSet used) {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if ((used >> i & 1) == 0) continue;
      const Candidate& one = candidates_[i];
      for (const NamingField& field : one.fields) {
        result_.names.push_back(
            {field.instruction, field.offset, one.is_absolute, tables_.at(one.table)});
      }
    }
    std::sort(result_.names.begin(), result_.names.end(),
              [](const auto& a, const auto& b) { return a.instruction < b.instruction; });
  }

  const Facts& facts_;
  uint32_t function_;
  const code::Blocks& blocks_;
  TableReader reader_;
  BoundFinder bounds_;
  TableExtents extents_;
  std::vector<Candidate> candidates_;
  FlowResult flow_;
  std::map<uint64_t, uint32_t> tables_;  // By address.
  Switches result_;
};

}  // namespace

tl::expected<Switches, Refusal> find_switches(const Facts& facts, uint32_t function,
                                              const code::Blocks& blocks) {
  std::vector<uint64_t> jumps;
  for (const Block& block : blocks.blocks()) {
    if (!needs_table(blocks, block)) continue;
    const auto last = facts.code.at(block.last);
    // Else control gets to bytes that are none.
    if (!last || last->flow != code::Flow::IndirectJump) {
      return Refused({Reason::Undecodable, block.last});
    }
    jumps.push_back(block.last);
  }
  if (jumps.empty()) return Switches{};
  return SwitchFinder(facts, function, blocks).run(jumps);
}

}  // namespace clew::copy

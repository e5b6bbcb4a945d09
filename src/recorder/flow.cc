// SPDX-License-Identifier: Apache-2.0
#include "recorder/flow.h"

#include <algorithm>

namespace clew::recorder {

namespace {

using code::Edge;
using code::EdgeKind;

bool is_switch(std::span<const Edge> edges) {
  return !edges.empty() && (edges[0].kind == EdgeKind::Case || edges[0].kind == EdgeKind::Label);
}

const copy::SwitchTable* table_of(const copy::Switches& switches, uint64_t jump) {
  for (const copy::TableJump& one : switches.jumps) {
    if (one.jump == jump) return &switches.tables[one.table];
  }
  return nullptr;
}

void make_unique(std::vector<uint32_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

class FlowMaker {
 public:
  FlowMaker(const copy::Facts& facts, const copy::Proved& proved, const Copied& copied)
      : facts_(facts), proved_(proved), copied_(copied) {}

  void make(Flow& flow) {
    const uint64_t start = facts_.code.functions()[proved_.function].address;
    flow.entry_ = block_at(start);
    flow.self_ = copied_.at(start);
    for (const code::Block& block : proved_.blocks.blocks()) {
      flow.nodes_.push_back({.first_way = static_cast<uint32_t>(flow.ways_.size())});
      add(flow, block);
      Node& node = flow.nodes_.back();
      node.ways = static_cast<uint32_t>(flow.ways_.size()) - node.first_way;
    }
    add_landing_pads(flow);
    for (const Node& node : flow.nodes_) {
      if (node.call != CallKind::Copied && node.behind != kNone) {
        flow.resumes_.push_back(node.behind);
      }
    }
    make_unique(flow.cases_);
    make_unique(flow.resumes_);
  }

 private:
  // Where a block begins.
  [[nodiscard]] uint32_t block_at(uint64_t address) const {
    const auto block = proved_.blocks.block_at(address);
    return block && proved_.blocks.blocks()[*block].begin == address ? *block : kNone;
  }

  void add(Flow& flow, const code::Block& block) {
    const auto edges = proved_.blocks.edges_of(block);
    const auto last = facts_.code.at(block.last);
    const code::Flow kind = last ? last->flow : code::Flow::Trap;
    Node& node = flow.nodes_.back();
    const bool is_call = kind == code::Flow::Call || kind == code::Flow::IndirectCall;
    const KnownImport* import = last ? import_of(*last) : nullptr;
    const bool is_silent = import != nullptr && import->own == 0;
    if (is_call && !(edges.size() == 1 && is_silent)) {
      return add_call(node, *last, edges);
    }
    if (is_switch(edges)) return add_switch(flow, block.last);
    node.is_branch = kind == code::Flow::Conditional && edges.size() == 2;
    for (const Edge& edge : edges) {
      flow.ways_.push_back(way_of(edge));
      const bool runs_on = last && edge.target == last->end();
      if (edge.kind != EdgeKind::TailCall || runs_on || import == nullptr) continue;
      flow.ways_.back() =
          is_silent ? Way{WayKind::Return, kNone, kNone, edge.target} : way_out(import->own);
    }
  }

  [[nodiscard]] const KnownImport* import_of(const code::Instruction& branch) const {
    switch (branch.flow) {
      case code::Flow::Call:
      case code::Flow::IndirectCall:
      case code::Flow::Jump:
      case code::Flow::Conditional:
      case code::Flow::IndirectJump:
        return copied_.imports().behind(facts_.code, branch);
      case code::Flow::Next:
      case code::Flow::Nop:
      case code::Flow::Int3:
      case code::Flow::Return:
      case code::Flow::Trap:
      case code::Flow::System:
      case code::Flow::Bad:
        return nullptr;
    }
    return nullptr;
  }

  void add_call(Node& node, const code::Instruction& call, std::span<const Edge> edges) const {
    if (!edges.empty()) node.behind = edges[0].block;
    node.may_land_anywhere = !facts_.call_sites.has_value();
    node.landing = landing_of(call);
    const bool is_direct = call.flow == code::Flow::Call;
    if (is_direct) node.callee = copied_.at(code::branch_target(facts_.code, call));
    if (const KnownImport* import = import_of(call)) node.callee = copied_.at(import->own);
    node.call = is_direct ? CallKind::Outside : CallKind::Indirect;
    if (node.callee != kNone) node.call = CallKind::Copied;
  }

  [[nodiscard]] uint32_t landing_of(const code::Instruction& call) const {
    if (!facts_.call_sites) return kNone;
    const auto behind = std::upper_bound(
        facts_.call_sites->begin(), facts_.call_sites->end(), call.address,
        [](uint64_t value, const target::CallSite& site) { return value < site.begin; });
    if (behind == facts_.call_sites->begin() || (behind - 1)->end <= call.address) return kNone;
    return block_at((behind - 1)->landing_pad);
  }

  void add_switch(Flow& flow, uint64_t jump) {
    const copy::SwitchTable* table = table_of(proved_.switches, jump);
    if (table == nullptr) return;
    std::vector<uint64_t> targets = table->targets;
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    for (const uint64_t target : targets) {
      const uint32_t block = block_at(target);
      if (block != kNone) flow.cases_.push_back(block);
      flow.ways_.push_back(block != kNone ? Way{WayKind::Block, block, kNone, target}
                                          : way_out(target));
    }
  }

  [[nodiscard]] Way way_of(const Edge& edge) const {
    if (edge.kind == EdgeKind::Return) return {.kind = WayKind::Return};
    if (edge.block != kNone) return {WayKind::Block, edge.block, kNone, edge.target};
    return way_out(edge.target);
  }

  [[nodiscard]] Way way_out(uint64_t target) const {
    const uint32_t function = target == 0 ? kNone : copied_.at(target);
    return {function == kNone ? WayKind::TailOut : WayKind::Tail, kNone, function, target};
  }

  void add_landing_pads(Flow& flow) const {
    const auto& blocks = proved_.blocks.blocks();
    for (uint32_t i = 0; i < blocks.size(); ++i) {
      if (std::binary_search(facts_.landing_pads.begin(), facts_.landing_pads.end(),
                             blocks[i].begin)) {
        flow.landing_pads_.push_back(i);
      }
    }
  }

  const copy::Facts& facts_;
  const copy::Proved& proved_;
  const Copied& copied_;
};

Flow::Flow(const copy::Facts& facts, const copy::Proved& proved, const Copied& copied) {
  FlowMaker(facts, proved, copied).make(*this);
}

// The largest set: all functions, less those that a tail call out of the set takes away.
Copied::Copied(const copy::Facts& facts, const copy::ModuleProof& proof, Imports imports)
    : returns_itself_(proof.proved.size(), true), imports_(std::move(imports)) {
  for (uint32_t i = 0; i < proof.proved.size(); ++i) {
    by_address_.emplace_back(facts.code.functions()[proof.proved[i].function].address, i);
  }
  std::sort(by_address_.begin(), by_address_.end());
  std::vector<std::pair<uint32_t, uint32_t>> tails;  // Callee, function.
  std::vector<uint32_t> pending;
  for (uint32_t i = 0; i < proof.proved.size(); ++i) {
    const Flow flow(facts, proof.proved[i], *this);
    for (uint32_t block = 0; block < flow.nodes().size(); ++block) {
      for (const Way& way : flow.ways_of(block)) {
        if (way.kind == WayKind::Tail) tails.emplace_back(way.function, i);
        if (way.kind != WayKind::TailOut || !returns_itself_[i]) continue;
        returns_itself_[i] = false;
        pending.push_back(i);
      }
    }
  }
  std::sort(tails.begin(), tails.end());
  while (!pending.empty()) {
    const uint32_t callee = pending.back();
    pending.pop_back();
    for (auto tail = std::lower_bound(tails.begin(), tails.end(), std::pair(callee, 0U));
         tail != tails.end() && tail->first == callee; ++tail) {
      if (!returns_itself_[tail->second]) continue;
      returns_itself_[tail->second] = false;
      pending.push_back(tail->second);
    }
  }
}

uint32_t Copied::entered_by(const code::ModuleCode& code, const code::Instruction& branch) const {
  const bool is_direct = branch.flow == code::Flow::Call || branch.flow == code::Flow::Jump ||
                         branch.flow == code::Flow::Conditional;
  if (!is_direct) return kNone;
  const uint32_t function = at(code::branch_target(code, branch));
  if (function != kNone) return function;
  const KnownImport* import = imports_.behind(code, branch);
  return import == nullptr ? kNone : at(import->own);
}

uint32_t Copied::at(uint64_t address) const {
  const auto found =
      std::lower_bound(by_address_.begin(), by_address_.end(), std::pair(address, 0U));
  return found != by_address_.end() && found->first == address ? found->second : kNone;
}

}  // namespace clew::recorder

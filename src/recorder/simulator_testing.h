// SPDX-License-Identifier: Apache-2.0
// For tests: a thread that runs a module's copied functions at random, writes the records that
// probes would, and remembers each block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "recorder/signal_records.h"
#include "recorder/walk.h"

namespace clew::recorder {

struct RanBlock {
  uint32_t function = 0;
  uint32_t block = 0;
  int32_t depth = 0;
  bool is_entry = false;

  bool operator==(const RanBlock&) const = default;
};

class Simulator {
 public:
  Simulator(const copy::Facts& facts, const copy::ModuleProof& proof, const ModuleTiling& tiling,
            const ModulePaths& paths)
      : facts_(facts), proof_(proof), tiling_(tiling), paths_(paths), costs_(proof.proved.size()) {
    for (uint32_t i = 0; i < costs_.size(); ++i)
      costs_[i].resize(proof.proved[i].blocks.blocks().size(), kFar);
    while (find_costs()) {
    }
  }

  // From a function's entry, until its end or about so many blocks.
  void run(uint32_t function, size_t blocks, std::mt19937_64& random) {
    random_ = &random;
    ran_.clear();
    words_.clear();
    firsts_.clear();
    stack_.clear();
    is_done_ = false;
    handler_ = 0;
    enter(function);
    while (!is_done_ && ran_.size() < blocks)
      leave();
  }

  // A signal's handler interrupts the last block somewhere, and about so many blocks are run in it.
  void interrupt(size_t blocks) {
    if (is_done_) return;
    const auto signal = signal_record(1, somewhere());
    words_.insert(words_.end(), signal.begin(), signal.end());
    const size_t end = ran_.size() + blocks;
    enter(any_function(), true);
    handler_ = stack_.size();
    while (!is_done_ && ran_.size() < end)
      leave();
  }

  [[nodiscard]] const std::vector<RanBlock>& ran() const { return ran_; }
  [[nodiscard]] const std::vector<uint32_t>& words() const { return words_; }
  // Of each word: the block in ran() that it begins with.
  [[nodiscard]] const std::vector<size_t>& firsts() const { return firsts_; }
  // An instruction of the last block.
  [[nodiscard]] uint64_t somewhere() {
    const auto& blocks = proof_.proved[ran_.back().function].blocks.blocks();
    const code::Block& block = blocks[ran_.back().block];
    std::vector<uint64_t> places;
    for (auto at = facts_.code.at(block.begin); at && at->address < block.end;
         at = facts_.code.at(at->end())) {
      places.push_back(at->address);
    }
    return places[pick(places.size())];
  }

 private:
  static constexpr uint32_t kFar = 1U << 30;
  static constexpr size_t kDeep = 24;

  struct Activation {
    uint32_t function = 0;
    uint32_t block = kNone;
    bool from_outside = false;  // Its caller is not copied.
  };

  // How many blocks it takes to return from each. False: nothing has changed.
  bool find_costs() {
    bool changed = false;
    for (uint32_t f = 0; f < costs_.size(); ++f) {
      const Flow& flow = paths_.of(f).flow();
      for (auto block = static_cast<uint32_t>(costs_[f].size()); block-- > 0;) {
        const Node& node = flow.nodes()[block];
        uint32_t cost = kFar;
        if (node.behind != kNone) cost = costs_[f][node.behind];
        if (node.call == CallKind::Copied) cost += entry_cost(node.callee);
        for (const Way& way : flow.ways_of(block))
          cost = std::min(cost, cost_of(f, way));
        cost = std::min(cost + 1, kFar);
        changed = changed || cost < costs_[f][block];
        costs_[f][block] = std::min(cost, costs_[f][block]);
      }
    }
    return changed;
  }

  [[nodiscard]] uint32_t entry_cost(uint32_t function) const {
    return costs_[function][paths_.of(function).flow().entry()];
  }

  [[nodiscard]] uint32_t cost_of(uint32_t function, const Way& way) const {
    if (way.kind == WayKind::Tail) return entry_cost(way.function);
    return way.kind == WayKind::Block ? costs_[function][way.block] : 0;
  }

  size_t pick(size_t count) { return static_cast<size_t>((*random_)() % count); }

  void enter(uint32_t function, bool from_outside = false) {
    stack_.push_back({function, kNone, from_outside});
    go_to(paths_.of(function).flow().entry());
    ran_.back().is_entry = true;
  }

  void go_to(uint32_t block) {
    Activation& top = stack_.back();
    if (goes_round(top, block)) {
      while (ran_.back().block != block)
        ran_.pop_back();
      top.block = block;
      return;
    }
    top.block = block;
    const uint32_t dag = paths_.of(top.function).dag_of(block);
    if (dag != kNone) {
      words_.push_back(abi::dag_record(1 + tiling_.first_dag[top.function] + dag));
      firsts_.push_back(ran_.size());
    }
    ran_.push_back({top.function, block, static_cast<int32_t>(stack_.size()) - 1});
  }

  // A loop that is recorded once goes round: only its last time is told.
  [[nodiscard]] bool goes_round(const Activation& at, uint32_t to) const {
    const auto& loops = tiling_.functions[at.function].loops;
    return std::any_of(loops.begin(), loops.end(), [&](const OnceLoop& loop) {
      return loop.latch == at.block && loop.head == to;
    });
  }

  // The end of the innermost activation's block.
  void leave() {
    const Activation top = stack_.back();
    const Flow& flow = paths_.of(top.function).flow();
    const Node& node = flow.nodes()[top.block];
    if (node.call == CallKind::Copied) return enter(node.callee);
    if (node.call != CallKind::None) return outside(node.call == CallKind::Indirect);
    const auto ways = flow.ways_of(top.block);
    if (ways.empty()) return done();
    const size_t side = choose(top.function, ways);
    if (node.is_branch) set_bit(top, side);
    switch (ways[side].kind) {
      case WayKind::Block:
        return go_to(ways[side].block);
      case WayKind::Return:
        return come_back();
      case WayKind::Tail: {
        const bool from_outside = top.from_outside;
        stack_.pop_back();
        return enter(ways[side].function, from_outside);
      }
      case WayKind::TailOut:
        tail_outside();
    }
  }

  size_t choose(uint32_t function, std::span<const Way> ways) {
    size_t side = pick(ways.size());
    const bool hurry = stack_.size() > kDeep && pick(8) != 0;
    for (size_t i = 0; i < ways.size(); ++i) {
      const uint32_t best = cost_of(function, ways[side]);
      const uint32_t cost = cost_of(function, ways[i]);
      if (cost < best && (hurry || (best == kFar && pick(16) != 0))) side = i;
    }
    return side;
  }

  void set_bit(const Activation& at, size_t side) {
    for (const BitSite& site : tiling_.functions[at.function].bits) {
      if (site.block == at.block && site.edge == side) words_.back() |= 1U << site.bit;
    }
  }

  void done() { is_done_ = true; }

  // In code that is not copied: it calls back, or returns to the innermost activation.
  void outside(bool is_indirect) {
    if (pick(is_indirect ? 2 : 8) == 0) return enter(any_function(), true);
    go_on();
  }

  uint32_t any_function() {
    auto function = static_cast<uint32_t>(pick(costs_.size()));
    for (unsigned i = 0; i < 100 && stack_.size() > kDeep && entry_cost(function) > 20; ++i)
      function = static_cast<uint32_t>(pick(costs_.size()));
    return function;
  }

  void go_on() {
    if (stack_.empty()) return done();
    const Activation& top = stack_.back();
    const uint32_t behind = paths_.of(top.function).flow().nodes()[top.block].behind;
    if (behind == kNone) return done();
    go_to(behind);
  }

  void come_back() {
    const bool from_outside = stack_.back().from_outside;
    stack_.pop_back();
    if (stack_.size() < std::max<size_t>(handler_, 1)) return done();
    if (from_outside) return outside(false);
    go_on();
  }

  // The activation is gone, and what it jumped to may call back before it returns.
  void tail_outside() {
    const bool from_outside = stack_.back().from_outside;
    if (stack_.size() <= std::max<size_t>(handler_, 1)) return done();
    stack_.pop_back();
    if (pick(2) == 0 && !from_outside) return enter_for_gone();
    if (from_outside) return outside(false);
    go_on();
  }

  // Called back by what a tail call led to: when it returns, so does that, sooner or later.
  void enter_for_gone() { enter(any_function(), false); }

  const copy::Facts& facts_;
  const copy::ModuleProof& proof_;
  const ModuleTiling& tiling_;
  const ModulePaths& paths_;
  std::vector<std::vector<uint32_t>> costs_;
  std::mt19937_64* random_ = nullptr;
  std::vector<Activation> stack_;
  std::vector<RanBlock> ran_;
  std::vector<uint32_t> words_;
  std::vector<size_t> firsts_;
  size_t handler_ = 0;  // Activations up to that of a handler, which ends the run.
  bool is_done_ = false;
};

}  // namespace clew::recorder

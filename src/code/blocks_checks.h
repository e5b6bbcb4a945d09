// SPDX-License-Identifier: Apache-2.0
// For tests: what must hold of a function's blocks, checked against a linear disassembly by Zydis
// alone, which shares with the finder only where the parts of the function are.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "code/blocks.h"
#include "code/decode.h"

namespace clew::code {

// Where ranges start or end, ascending: disassembly begins anew there, as the sweep does.
inline std::vector<uint64_t> stops_of(const ModuleCode& code) {
  std::vector<uint64_t> stops = {UINT64_MAX};
  for (const FunctionRange& range : code.functions()) {
    stops.push_back(range.address);
    stops.push_back(range.address + range.size_bytes);
  }
  std::sort(stops.begin(), stops.end());
  return stops;
}

class BlocksCheck {
 public:
  BlocksCheck(const ModuleCode& code, const std::vector<uint64_t>& stops, uint32_t function,
              const NoReturn& noreturn)
      : code_(code),
        stops_(stops),
        noreturn_(noreturn),
        parts_(code.parts_of(function)),
        entry_(parts_.front().begin),
        blocks_(find_blocks(code, function, noreturn)) {
    for (const AddressRange& part : parts_)
      disassemble(part);
  }

  [[nodiscard]] const Blocks& blocks() const { return blocks_; }
  // Direct branches into the middle of an instruction of the function: over a lock prefix.
  [[nodiscard]] size_t odd_branches() const { return odd_branches_; }
  [[nodiscard]] size_t instructions() const { return lines_.size(); }

  // An empty string, or what does not hold, and where.
  [[nodiscard]] std::string broken() {
    uint64_t end = 0;
    for (const Block& block : blocks_.blocks()) {
      std::string problem = block.begin < end ? "overlaps" : broken_block(block);
      if (!problem.empty()) return problem + in_hex(block.begin);
      end = block.end;
    }
    for (const std::string& problem : {broken_reach(), dead_block()}) {
      if (!problem.empty()) return problem + in_hex(entry_);
    }
    return "";
  }

 private:
  struct Line {
    uint8_t length = 0;
    Flow flow = Flow::Bad;
    uint64_t target = 0;  // Of a direct branch.
  };

  static std::string in_hex(uint64_t address) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (; address != 0; address /= 16)
      text.insert(text.begin(), kDigits[address % 16]);
    return " at " + text;
  }

  void disassemble(const AddressRange& part) {
    for (uint64_t address = part.begin; address < part.end;) {
      const uint64_t stop = *std::upper_bound(stops_.begin(), stops_.end(), address);
      const std::span<const uint8_t> bytes = code_.text_from(address);
      const auto decoded = decode_with_zydis(bytes);
      if (!decoded || decoded->length > stop - address) {
        ++address;
        continue;
      }
      Line line{decoded->length, decoded->flow};
      if (is_direct(line.flow)) {
        line.target = address + line.length +
                      static_cast<uint64_t>(
                          signed_field(bytes, decoded->immediate_offset, decoded->immediate_size));
      }
      lines_[address] = line;
      address += line.length;
    }
  }

  static bool is_direct(Flow flow) {
    return flow == Flow::Jump || flow == Flow::Conditional || flow == Flow::Call;
  }
  static bool may_be_inside(Flow flow) {
    return flow == Flow::Next || flow == Flow::Nop || flow == Flow::System;
  }

  // A system instruction other than syscall: a far branch is one.
  [[nodiscard]] bool may_be_far(uint64_t address, const Line& line) const {
    const std::span<const uint8_t> bytes = code_.text_from(address).first(line.length);
    const bool is_syscall = bytes.size() == 2 && bytes[0] == 0x0f && bytes[1] == 0x05;
    return line.flow == Flow::System && !is_syscall;
  }

  [[nodiscard]] bool is_inside(uint64_t address) const {
    return std::any_of(parts_.begin(), parts_.end(), [address](const AddressRange& part) {
      return part.begin <= address && address < part.end;
    });
  }

  [[nodiscard]] bool begins_block(uint64_t address) const {
    const auto block = blocks_.block_at(address);
    return block && blocks_.blocks()[*block].begin == address;
  }

  std::string broken_block(const Block& block) {
    uint64_t address = block.begin;
    while (address < block.end) {
      const auto line = lines_.find(address);
      if (line == lines_.end()) return "no instruction in the block";
      if (address == block.last) break;
      if (!may_be_inside(line->second.flow)) return "a branch inside of the block";
      address += line->second.length;
    }
    if (address != block.last) return "the last instruction is none of it";
    const Line& last = lines_[address];
    if (address + last.length != block.end) return "the end is not that of the last instruction";
    for (const Edge& edge : blocks_.edges_of(block)) {
      if (std::string problem = broken_edge(edge); !problem.empty()) return problem;
    }
    return broken_last(block, last);
  }

  [[nodiscard]] std::string broken_edge(const Edge& edge) const {
    const bool is_known = edge.target != 0;
    switch (edge.kind) {
      case EdgeKind::Next:
      case EdgeKind::Taken:
      case EdgeKind::CallReturn:
        if (edge.block == kNoBlock) return "an edge that leads to no block";
        break;
      case EdgeKind::Case:
        if (edge.block == kNoBlock && !code_.range_starting_at(edge.target)) return "a wild case";
        break;
      case EdgeKind::TailCall:
        if (is_known && is_inside(edge.target)) return "a tail call inside";
        if (is_known && code_.range_at(edge.target) && !code_.range_starting_at(edge.target)) {
          return "a tail call into the middle";
        }
        break;
      case EdgeKind::Elsewhere:
        if (is_inside(edge.target) || !code_.range_at(edge.target)) return "an edge elsewhere";
        break;
      case EdgeKind::Return:
      case EdgeKind::StackSwitch:
      case EdgeKind::Label:
        if (is_known) return "a target that nobody knows";
        break;
      case EdgeKind::Unknown:
        if (is_known && begins_block(edge.target)) return "a known target";
        break;
    }
    if (edge.block == kNoBlock) return "";
    const std::vector<Block>& all = blocks_.blocks();
    const bool leads_there = edge.block < all.size() && all[edge.block].begin == edge.target;
    return leads_there ? "" : "an edge into the middle of a block";
  }

  // The edges are those that the last instruction has.
  std::string broken_last(const Block& block, const Line& last) {
    const std::span<const Edge> edges = blocks_.edges_of(block);
    const auto leads_to = [&](uint64_t target) {
      return std::any_of(edges.begin(), edges.end(),
                         [=](const Edge& edge) { return edge.target == target; });
    };
    switch (last.flow) {
      case Flow::Conditional:
        if (edges.size() != 2) return "not two ways";
        if (!leads_to(block.end) && is_inside(block.end)) return "not passed";
        return broken_branch(last, leads_to(last.target));
      case Flow::Jump:
        return edges.size() == 1 ? broken_branch(last, leads_to(last.target)) : "not one way";
      case Flow::Call:
      case Flow::IndirectCall:
        return edges.size() <= 1 ? "" : "a call with two ways";
      case Flow::Trap:
        return edges.empty() ? "" : "a trap that is passed";
      case Flow::Return:
        return edges.size() == 1 && edges[0].kind == EdgeKind::Return ? "" : "no return";
      case Flow::IndirectJump:
        return edges.size() == std::max<size_t>(code_.table_targets(block.last).size(), 1)
                   ? ""
                   : "not the edges of the table";
      case Flow::System:
      case Flow::Next:
      case Flow::Nop:
      case Flow::Int3:
      case Flow::Bad:
        return edges.size() == 1 ? "" : "not one way on";
    }
    return "";
  }

  std::string broken_branch(const Line& branch, bool has_edge) {
    if (!has_edge) return "a branch without an edge";
    if (!is_inside(branch.target) || begins_block(branch.target)) return "";
    ++odd_branches_;
    return lines_.count(branch.target) == 0 ? "" : "a branch that leads to no block's start";
  }

  // From the entry over direct branches and tables: all that is met is in a block.
  [[nodiscard]] std::string broken_reach() const {
    std::vector<uint64_t> ways = {entry_};
    std::map<uint64_t, bool> seen;
    while (!ways.empty()) {
      const uint64_t address = ways.back();
      ways.pop_back();
      const auto line = lines_.find(address);
      if (line == lines_.end() || !is_inside(address) || seen[address]) continue;
      seen[address] = true;
      if (!blocks_.block_at(address)) return "reached, and in no block";
      add_ways(address, line->second, ways);
    }
    return "";
  }

  void add_ways(uint64_t address, const Line& line, std::vector<uint64_t>& ways) const {
    const std::span<const uint64_t> table = code_.table_targets(address);
    const bool is_branch = line.flow == Flow::Jump || line.flow == Flow::Conditional;
    const bool is_call = line.flow == Flow::Call || line.flow == Flow::IndirectCall;
    const bool passes = (may_be_inside(line.flow) && !may_be_far(address, line)) ||
                        line.flow == Flow::Conditional ||
                        (is_call && !noreturn_.is_last({address, line.length, line.flow}));
    // Behind a function's last call there is padding.
    const uint64_t next = is_call ? padding_end(code_, address + line.length) : 0;
    if (is_branch) ways.push_back(line.target);
    if (passes && (!is_call || is_inside(next))) ways.push_back(address + line.length);
    ways.insert(ways.end(), table.begin(), table.end());
  }

  // Each is foreign, or an edge leads there.
  [[nodiscard]] std::string dead_block() const {
    const std::vector<Block>& all = blocks_.blocks();
    std::vector<bool> reached(all.size());
    std::vector<size_t> ways;
    const auto reach = [&](size_t block) {
      if (block >= all.size() || reached[block]) return;
      reached[block] = true;
      ways.push_back(block);
    };
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].foreign) reach(i);
    }
    while (!ways.empty()) {
      const Block& block = all[ways.back()];
      ways.pop_back();
      for (const Edge& edge : blocks_.edges_of(block))
        reach(edge.block);
    }
    const bool alive = std::all_of(reached.begin(), reached.end(), [](bool b) { return b; });
    return alive ? "" : "a block that nothing leads to";
  }

  const ModuleCode& code_;
  const std::vector<uint64_t>& stops_;
  const NoReturn& noreturn_;
  std::vector<AddressRange> parts_;
  uint64_t entry_;
  Blocks blocks_;
  std::map<uint64_t, Line> lines_;
  size_t odd_branches_ = 0;
};

}  // namespace clew::code

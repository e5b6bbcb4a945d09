// SPDX-License-Identifier: Apache-2.0
// Marks where blocks begin along all ways through a function, then cuts what was reached.
#include "code/blocks.h"

#include <algorithm>

#include "code/decode.h"
#include "code/exits.h"
#include "code/stack_depth.h"

namespace clew::code {

namespace {

// syscall, sysenter, int n, xbegin, xabort: control comes back, or to where xbegin says, which is a
// foreign target. The other instructions of Flow::System go anywhere. Intel SDM, volume 2.
bool passes_system(std::span<const uint8_t> bytes) {
  const unsigned at = opcode_offset(bytes);
  if (at + 2 > bytes.size()) return false;
  if (bytes[at] == 0x0f) return bytes[at + 1] == 0x05 || bytes[at + 1] == 0x34;
  return bytes[at] == 0xcd || bytes[at] == 0xc6 || bytes[at] == 0xc7;
}

// What the walk knows of a byte.
constexpr uint8_t kReached = 1;  // An instruction begins here, and control gets here.
constexpr uint8_t kStart = 2;    // A block begins here.
constexpr uint8_t kForeign = 4;  // Something that is no edge may lead here.

std::vector<AddressRange> without_overlaps(std::vector<AddressRange> parts) {
  std::sort(parts.begin(), parts.end(), [](const AddressRange& a, const AddressRange& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::vector<AddressRange> result;
  for (const AddressRange& part : parts) {
    if (result.empty() || part.begin >= result.back().end) {
      result.push_back(part);
    } else {
      result.back().end = std::max(result.back().end, part.end);
    }
  }
  return result;
}

}  // namespace

class BlockFinder {
 public:
  BlockFinder(const ModuleCode& code, uint32_t function, const NoReturn& noreturn)
      : code_(code),
        function_(function),
        noreturn_(noreturn),
        parts_(without_overlaps(code.parts_of(function))) {
    size_t size = 0;
    for (const AddressRange& part : parts_) {
      first_index_.push_back(size);
      size += part.end - part.begin;
    }
    marks_.resize(size);
  }

  Blocks run() {
    start(code_.functions()[function_].address, kForeign);
    for (const AddressRange& part : parts_)
      start_at_foreign_targets(part);
    while (!pending_.empty()) {
      const uint64_t address = pending_.back();
      pending_.pop_back();
      follow(address);
    }
    result_.edges_.clear();
    for (const AddressRange& part : parts_)
      cut(part);
    link();
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::optional<size_t> index_of(uint64_t address) const {
    const auto after = std::upper_bound(
        parts_.begin(), parts_.end(), address,
        [](uint64_t value, const AddressRange& part) { return value < part.begin; });
    if (after == parts_.begin()) return std::nullopt;
    const AddressRange& part = *(after - 1);
    if (address >= part.end) return std::nullopt;
    return first_index_[static_cast<size_t>(after - parts_.begin()) - 1] + (address - part.begin);
  }

  // The function's instruction that begins there.
  [[nodiscard]] std::optional<Instruction> own_at(uint64_t address) const {
    const std::optional<Instruction> at = code_.at(address);
    return at && at->flow != Flow::Bad && index_of(address) ? at : std::nullopt;
  }

  void start_at_foreign_targets(const AddressRange& part) {
    for (auto at = code_.at(part.begin); at && at->address < part.end; at = code_.at(at->end())) {
      if (code_.is_foreign_target(at->address)) start(at->address, kForeign);
    }
  }

  void start(uint64_t address, uint8_t also = 0) {
    if (!own_at(address)) return;
    uint8_t& mark = marks_[*index_of(address)];
    if ((mark & (kStart | kReached)) == 0) pending_.push_back(address);
    mark |= kStart | also;
  }

  // Straight on to what ends the block, or what was seen.
  void follow(uint64_t address) {
    for (auto at = own_at(address); at; at = own_at(at->end())) {
      uint8_t& mark = marks_[*index_of(at->address)];
      if ((mark & kReached) != 0) return;
      mark |= kReached;
      if (!ends_block(*at)) continue;
      start_at_targets(*at);
      return;
    }
  }

  [[nodiscard]] bool ends_block(const Instruction& at) const {
    switch (at.flow) {
      case Flow::Next:
      case Flow::Nop:
        return false;
      case Flow::System:
        return !passes_system(code_.text_from(at.address).first(at.length));
      case Flow::Int3:
      case Flow::IndirectCall:
      case Flow::IndirectJump:
      case Flow::Call:
      case Flow::Jump:
      case Flow::Conditional:
      case Flow::Return:
      case Flow::Trap:
      case Flow::Bad:
        return true;
    }
    return true;
  }

  void start_at_targets(const Instruction& last) {
    // The tables of one function are few, the jumps through them can be many.
    const std::span<const uint64_t> table = code_.table_targets(last.address);
    if (!table.empty() && table.data() == followed_table_) return;
    if (!table.empty()) followed_table_ = table.data();
    result_.edges_.clear();  // They are made anew when blocks are cut.
    add_edges(last);
    for (const Edge& edge : result_.edges_) {
      if (stays(edge)) start(edge.target);
    }
  }

  [[nodiscard]] bool stays(const Edge& edge) const {
    const bool may_stay = edge.kind == EdgeKind::Next || edge.kind == EdgeKind::Taken ||
                          edge.kind == EdgeKind::Case || edge.kind == EdgeKind::CallReturn;
    return may_stay && index_of(edge.target);
  }

  void add_edges(const Instruction& last) {
    switch (last.flow) {
      case Flow::Conditional:
        add(EdgeKind::Taken, branch_target(code_, last));
        return add(EdgeKind::Next, last.end());
      case Flow::Jump:
        return add(EdgeKind::Taken, branch_target(code_, last));
      case Flow::IndirectJump:
        return add_indirect_jump(last);
      case Flow::Call:
      case Flow::IndirectCall:
        if (comes_back(last)) add(EdgeKind::CallReturn, last.end());
        return;
      case Flow::Return:
        return result_.edges_.push_back({EdgeKind::Return});
      case Flow::Next:
      case Flow::Nop:
      case Flow::Int3:
        return add(EdgeKind::Next, last.end());
      case Flow::System:
        if (ends_block(last)) return result_.edges_.push_back({EdgeKind::Unknown});
        return add(EdgeKind::Next, last.end());
      case Flow::Trap:
      case Flow::Bad:
        return;
    }
  }

  // Where another function begins, or none is: a tail call, whatever the jump looks like.
  void add(EdgeKind kind, uint64_t target) {
    const bool runs_on = kind == EdgeKind::Next || kind == EdgeKind::CallReturn;
    if (runs_on && !index_of(target)) target = padding_end(code_, target);
    if (own_at(target)) return result_.edges_.push_back({kind, target});
    if (index_of(target)) return result_.edges_.push_back({EdgeKind::Unknown, target});
    const std::optional<uint32_t> range = code_.range_at(target);
    if (range && code_.functions()[*range].address != target) {
      return result_.edges_.push_back({EdgeKind::Elsewhere, target});
    }
    const bool is_case = kind == EdgeKind::Case;
    result_.edges_.push_back({is_case ? EdgeKind::Case : EdgeKind::TailCall, target});
  }

  // A function that ends behind a call, and what fills the rest, ends with it.
  [[nodiscard]] bool comes_back(const Instruction& call) const {
    if (noreturn_.is_last(call)) return false;
    return index_of(padding_end(code_, call.end())).has_value();
  }

  void add_indirect_jump(const Instruction& jump) {
    const std::span<const uint64_t> table = code_.table_targets(jump.address);
    for (const uint64_t target : table)
      add(EdgeKind::Case, target);
    if (table.empty()) result_.edges_.push_back({kind_of(jump)});
  }

  EdgeKind kind_of(const Instruction& jump) {
    if (!depths_) {
      depths_.emplace(code_, function_);
      unexplained_ = unexplained_jumps(code_, function_);
      find_switches();
    }
    if (std::binary_search(switches_.begin(), switches_.end(), jump.end())) {
      return EdgeKind::StackSwitch;
    }
    const auto& jumps = unexplained_;
    if (std::find(jumps.begin(), jumps.end(), jump.address) != jumps.end()) {
      return EdgeKind::Unknown;
    }
    // What exits.cc explains with a frame on the stack stays, and all of its targets are foreign.
    return depths_->at(jump.address) == 0 ? EdgeKind::TailCall : EdgeKind::Label;
  }

  // `mov rsp, rcx ; pop rcx ; jmp rcx` and `mov rsp, r8 ; mov rbp, r9 ; jmp rdx`.
  void find_switches() {
    for (const StackSwitch kind : {StackSwitch::Unwinder, StackSwitch::Longjmp}) {
      for (const uint64_t move : find_stack_switches(code_, function_, kind)) {
        const std::optional<Instruction> first = code_.at(move);
        const auto second = first ? code_.at(first->end()) : std::nullopt;
        const auto jump = second ? code_.at(second->end()) : std::nullopt;
        if (jump) switches_.push_back(jump->end());
      }
    }
    std::sort(switches_.begin(), switches_.end());
  }

  // Blocks and edges of what was reached in a part.
  void cut(const AddressRange& part) {
    std::optional<Instruction> last;  // Of the block that is open.
    for (auto at = code_.at(part.begin); at && at->address < part.end; at = code_.at(at->end())) {
      const uint8_t mark = marks_[*index_of(at->address)];
      const bool is_reached = (mark & kReached) != 0;
      if (last && (!is_reached || (mark & kStart) != 0)) close(last);
      if (!is_reached) continue;
      if (!last) {
        result_.blocks_.push_back({.begin = at->address, .foreign = (mark & kForeign) != 0});
      }
      last = at;
      if (ends_block(*at)) close(last);
    }
    if (last) close(last);
  }

  void close(std::optional<Instruction>& last) {
    Block& block = result_.blocks_.back();
    block.end = last->end();
    block.last = last->address;
    const std::span<const uint64_t> table = code_.table_targets(last->address);
    if (!table.empty() && table.data() == cut_table_) {
      block.first_edge = table_edges_.first_edge;
      block.edges_count = table_edges_.edges_count;
    } else {
      block.first_edge = result_.edges_.size();
      add_edges(*last);
      block.edges_count = result_.edges_.size() - block.first_edge;
    }
    if (!table.empty()) {
      cut_table_ = table.data();
      table_edges_ = block;
    }
    last.reset();
  }

  void link() {
    for (Edge& edge : result_.edges_) {
      if (stays(edge)) edge.block = result_.block_at(edge.target).value_or(kNoBlock);
    }
  }

  const ModuleCode& code_;
  uint32_t function_;
  const NoReturn& noreturn_;
  std::vector<AddressRange> parts_;  // By address.
  std::vector<size_t> first_index_;  // Of each part's first byte.
  std::vector<uint8_t> marks_;
  std::vector<uint64_t> pending_;
  const uint64_t* followed_table_ = nullptr;
  const uint64_t* cut_table_ = nullptr;  // Whose edges these are:
  Block table_edges_;
  // Made when the first indirect jump without a table is met: most functions have none.
  std::optional<StackDepths> depths_;
  std::vector<uint64_t> unexplained_;
  std::vector<uint64_t> switches_;  // The ends of the jumps that switch stacks.
  Blocks result_;
};

Blocks find_blocks(const ModuleCode& code, uint32_t function, const NoReturn& noreturn) {
  return BlockFinder(code, function, noreturn).run();
}

std::span<const Edge> Blocks::edges_of(const Block& block) const {
  return std::span(edges_).subspan(block.first_edge, block.edges_count);
}

std::optional<uint32_t> Blocks::block_at(uint64_t address) const {
  const auto after =
      std::upper_bound(blocks_.begin(), blocks_.end(), address,
                       [](uint64_t value, const Block& block) { return value < block.begin; });
  if (after == blocks_.begin() || address >= (after - 1)->end) return std::nullopt;
  return static_cast<uint32_t>(after - blocks_.begin()) - 1;
}

bool Blocks::is_whole() const {
  return std::none_of(edges_.begin(), edges_.end(),
                      [](const Edge& edge) { return edge.kind == EdgeKind::Unknown; });
}

}  // namespace clew::code

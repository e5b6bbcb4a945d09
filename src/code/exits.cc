// SPDX-License-Identifier: Apache-2.0
// The walk over a function's instructions that finds its exits.
#include "code/exits.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <set>

#include "code/decode.h"
#include "code/displace.h"
#include "code/flag_use.h"
#include "code/stack_depth.h"

namespace clew::code {

namespace {

using RefusedExit = tl::unexpected<ExitRefusal>;

// The bytes of a fixed sequence of instructions.
using Sequence = std::span<const uint8_t>;

constexpr auto kUnwinderSwitch = std::to_array<uint8_t>({0x48, 0x89, 0xcc,  // mov rsp, rcx
                                                         0x59,              // pop rcx
                                                         0xff, 0xe1});      // jmp rcx
constexpr auto kUnwinderLengths = std::to_array<uint8_t>({3, 1, 2});
constexpr auto kOldUnwinderSwitch = std::to_array<uint8_t>({0x48, 0x89, 0xcc,  // mov rsp, rcx
                                                            0xc3});            // ret
constexpr auto kOldUnwinderLengths = std::to_array<uint8_t>({3, 1});
constexpr auto kLongjmpSwitch = std::to_array<uint8_t>({0x4c, 0x89, 0xc4,  // mov rsp, r8
                                                        0x4c, 0x89, 0xcd,  // mov rbp, r9
                                                        0xff, 0xe2});      // jmp rdx
constexpr auto kLongjmpLengths = std::to_array<uint8_t>({3, 3, 2});

// Instructions of these lengths and bytes stand at `address`.
bool is_at(const ModuleCode& code, uint64_t address, Sequence bytes,
           std::span<const uint8_t> lengths) {
  const Sequence text = code.text_from(address);
  if (text.size() < bytes.size() || !std::equal(bytes.begin(), bytes.end(), text.begin())) {
    return false;
  }
  return std::all_of(lengths.begin(), lengths.end(), [&](uint8_t length) {
    const std::optional<Instruction> instruction = code.at(address);
    address += length;
    return instruction && instruction->length == length;
  });
}

// Is this the jump at the end of a switch of stacks?
bool ends_switch(const ModuleCode& code, uint64_t jump) {
  constexpr uint64_t kJumpLength = 2;
  return is_at(code, jump + kJumpLength - kUnwinderSwitch.size(), kUnwinderSwitch,
               kUnwinderLengths) ||
         is_at(code, jump + kJumpLength - kLongjmpSwitch.size(), kLongjmpSwitch, kLongjmpLengths);
}

bool begins_switch(const ModuleCode& code, uint64_t address, StackSwitch kind) {
  switch (kind) {
    case StackSwitch::Unwinder:
      return is_at(code, address, kUnwinderSwitch, kUnwinderLengths) ||
             is_at(code, address, kOldUnwinderSwitch, kOldUnwinderLengths);
    case StackSwitch::Longjmp:
      return is_at(code, address, kLongjmpSwitch, kLongjmpLengths);
  }
  return false;
}

void sort_by_address(std::vector<Exit>& exits) {
  std::stable_sort(exits.begin(), exits.end(),
                   [](const Exit& a, const Exit& b) { return a.address < b.address; });
}

Side taken_side(const Instruction& jump) {
  return jump.flow == Flow::Conditional ? Side::Taken : Side::Before;
}

uint64_t behind_nops(const ModuleCode& code, uint64_t address) {
  std::optional<Instruction> at = code.at(address);
  while (at && at->flow == Flow::Nop && !code.range_starting_at(at->address))
    at = code.at(at->end());
  return at ? at->address : 0;
}

class ExitFinder {
 public:
  ExitFinder(const ModuleCode& code, uint32_t function)
      : code_(code), function_(function), parts_(code.parts_of(function)) {}

  tl::expected<std::vector<Exit>, ExitRefusal> run() {
    for (const AddressRange& part : parts_) {
      if (const auto problem = walk(part)) return RefusedExit(*problem);
    }
    sort_by_address(exits_);
    for (const AddressRange& part : parts_) {
      for (const uint64_t entry : code_.side_entries(part)) {
        if (leads_out(entry)) return RefusedExit({entry, RefusalReason::SharedTail});
      }
    }
    return std::move(exits_);
  }

  std::vector<uint64_t> unexplained() {
    std::vector<uint64_t> result;
    const std::vector<uint64_t>& jumps = code_.indirect_jumps();
    for (const AddressRange& part : parts_) {
      auto jump = std::lower_bound(jumps.begin(), jumps.end(), part.begin);
      for (; jump != jumps.end() && *jump < part.end; ++jump) {
        const std::optional<Instruction> instruction = code_.at(*jump);
        if (instruction && visit_indirect_jump(*instruction)) result.push_back(*jump);
      }
    }
    return result;
  }

 private:
  using Problem = std::optional<ExitRefusal>;

  // Does control get from there to an exit? Those who come in there are calls of other functions.
  [[nodiscard]] bool leads_out(uint64_t entry) const {
    std::set<uint64_t> seen;
    std::vector<uint64_t> ways = {entry};
    while (!ways.empty()) {
      const uint64_t address = ways.back();
      ways.pop_back();
      if (!seen.insert(address).second) continue;
      const std::optional<Instruction> at = code_.at(address);
      if (!at || !is_inside(address) || is_exit(address)) return true;
      if (!add_next(*at, ways)) return true;
    }
    return false;
  }

  [[nodiscard]] bool is_exit(uint64_t address) const {
    return std::any_of(exits_.begin(), exits_.end(),
                       [=](const Exit& exit) { return exit.address == address; });
  }

  // False when it is not known where control goes on.
  bool add_next(const Instruction& at, std::vector<uint64_t>& ways) const {
    const std::span<const uint64_t> table = code_.table_targets(at.address);
    switch (at.flow) {
      case Flow::Conditional:
        ways.push_back(branch_target(code_, at));
        break;
      case Flow::Jump:
        ways.push_back(branch_target(code_, at));
        return true;
      case Flow::IndirectJump:
        ways.insert(ways.end(), table.begin(), table.end());
        return !table.empty();
      case Flow::Trap:
      case Flow::Int3:
        return true;
      case Flow::Return:
      case Flow::Bad:
        return false;
      case Flow::Next:
      case Flow::Nop:
      case Flow::Call:
      case Flow::IndirectCall:
      case Flow::System:
        break;
    }
    ways.push_back(at.end());
    return true;
  }

  Problem walk(const AddressRange& part) {
    Instruction last;
    for (uint64_t address = part.begin; address < part.end;) {
      const std::optional<Instruction> instruction = code_.at(address);
      if (!instruction || instruction->flow == Flow::Bad) {
        return ExitRefusal{address, RefusalReason::Undecodable};
      }
      if (const Problem problem = visit(*instruction)) return problem;
      const bool filler = instruction->flow == Flow::Nop || instruction->flow == Flow::Int3;
      if (!filler || code_.is_target(address)) last = *instruction;
      address = instruction->end();
    }
    return check_end(part, last);
  }

  // A function ends with a jump, a return, or a call that does not return.
  Problem check_end(const AddressRange& part, const Instruction& last) {
    switch (last.flow) {
      case Flow::Jump:
      case Flow::IndirectJump:
      case Flow::Return:
      case Flow::Trap:
      case Flow::Call:
      case Flow::IndirectCall:
        return std::nullopt;
      case Flow::Next:
      case Flow::Nop:
      case Flow::Int3:
      case Flow::Conditional:
      case Flow::System:
      case Flow::Bad:
        break;
    }
    if (is_inside(part.end) || ends_handler(last)) return std::nullopt;
    if (!runs_on(part, last)) return ExitRefusal{last.address, RefusalReason::FallsThrough};
    exits_.push_back({last.address, Side::Passed, true});
    return std::nullopt;
  }

  [[nodiscard]] bool ends_handler(const Instruction& last) const {
    const std::optional<Instruction> before = code_.before(last.address);
    return last.flow == Flow::System && !code_.is_target(last.address) && before &&
           is_signal_return(code_, before->address);
  }

  // Does control go from the part's last instruction straight to the first one of another function,
  // with the stack as at the entry, and flags that nobody reads? It is a tail call without a jump.
  bool runs_on(const AddressRange& part, const Instruction& last) {
    const bool passes =
        last.flow == Flow::Next || last.flow == Flow::Nop || last.flow == Flow::Conditional;
    if (!passes || depth_at(last.address) != 0) return false;
    const auto bytes = code_.text_from(last.address).first(last.length);
    if (last.flow == Flow::Next && apply(bytes, {}).depth != 0) return false;
    const uint64_t next = behind_nops(code_, part.end);
    const auto function = code_.function_starting_at(next);
    return function && *function != function_ && !may_use_flags(code_, next);
  }

  Problem visit(const Instruction& instruction) {
    switch (instruction.flow) {
      case Flow::Return:
        return visit_return(instruction);
      case Flow::Jump:
      case Flow::Conditional:
        return visit_jump(instruction);
      case Flow::IndirectJump:
        return visit_indirect_jump(instruction);
      case Flow::Next:
      case Flow::Nop:
      case Flow::Int3:
      case Flow::IndirectCall:
      case Flow::Call:
      case Flow::Trap:
      case Flow::System:
      case Flow::Bad:
        return std::nullopt;
    }
    return std::nullopt;
  }

  // `push target ; ret` is a jump.
  Problem visit_return(const Instruction& instruction) {
    const std::optional<Instruction> earlier = code_.before(instruction.address);
    if (earlier && earlier->flow == Flow::Next && !code_.is_target(instruction.address)) {
      const auto depth = apply(code_.text_from(earlier->address).first(earlier->length), {}).depth;
      if (depth && *depth > 0) {
        return ExitRefusal{instruction.address, RefusalReason::UnbalancedExit};
      }
    }
    exits_.push_back({.address = instruction.address});
    return std::nullopt;
  }

  Problem visit_jump(const Instruction& jump) {
    if (is_inside(branch_target(code_, jump))) return std::nullopt;
    if (depth_at(jump.address) != 0) {
      return ExitRefusal{jump.address, RefusalReason::UnbalancedExit};
    }
    exits_.push_back({jump.address, taken_side(jump), true});
    return std::nullopt;
  }

  Problem visit_indirect_jump(const Instruction& jump) {
    if (!code_.table_targets(jump.address).empty()) return std::nullopt;
    if (ends_switch(code_, jump.address)) return std::nullopt;
    const std::optional<int64_t> depth = depth_at(jump.address);
    const bool inner_pointers =
        std::any_of(parts_.begin(), parts_.end(),
                    [this](const AddressRange& part) { return code_.has_inner_pointers(part); });
    // With its frame on the stack it cannot leave: a computed goto over relocated labels, or one
    // whose load of the table's entry is far away. All targets are known.
    if (depth.has_value() && depth != 0 && (inner_pointers || has_table())) return std::nullopt;
    if (depth != 0 || (inner_pointers && !reads_fixed_address(jump))) {
      return ExitRefusal{jump.address, RefusalReason::IndirectJump};
    }
    if (is_computed(jump)) return ExitRefusal{jump.address, RefusalReason::IndirectJump};
    exits_.push_back({jump.address, Side::Before, true});
    return std::nullopt;
  }

  // Another jump of the function uses a table.
  [[nodiscard]] bool has_table() const {
    const std::vector<uint64_t>& jumps = code_.indirect_jumps();
    for (const AddressRange& part : parts_) {
      auto jump = std::lower_bound(jumps.begin(), jumps.end(), part.begin);
      for (; jump != jumps.end() && *jump < part.end; ++jump) {
        if (!code_.table_targets(*jump).empty()) return true;
      }
    }
    return false;
  }

  // jmp [rip + x]: an import, never a switch.
  [[nodiscard]] bool reads_fixed_address(const Instruction& jump) const {
    const auto decoded = decode(code_.text_from(jump.address));
    return decoded && decoded->rip_relative;
  }

  // A jump to a sum is a switch whose table was not recognised, whatever the depth.
  [[nodiscard]] bool is_computed(const Instruction& jump) const {
    const std::span<const uint8_t> bytes = code_.text_from(jump.address);
    const bool through_register = bytes[jump.length - 1] >= 0xc0;
    const std::optional<Instruction> earlier = code_.before(jump.address);
    if (!through_register || !earlier || earlier->length != 3) return false;
    const std::span<const uint8_t> sum = code_.text_from(earlier->address);
    return (sum[1] == 0x01 || sum[1] == 0x03) && sum[2] >= 0xc0;
  }

  [[nodiscard]] bool is_inside(uint64_t address) const {
    return std::any_of(parts_.begin(), parts_.end(), [address](const AddressRange& part) {
      return part.begin <= address && address < part.end;
    });
  }

  std::optional<int64_t> depth_at(uint64_t address) {
    if (!depths_) depths_.emplace(code_, function_);
    return depths_->at(address);
  }

  const ModuleCode& code_;
  uint32_t function_;
  std::vector<AddressRange> parts_;
  std::optional<StackDepths> depths_;  // Made when first needed: most functions do not.
  std::vector<Exit> exits_;
};

// Finds the ways to one return. All that may lead to it must be seen: what is not a direct jump of
// the same function marks its target as foreign.
class WayFinder {
 public:
  WayFinder(const ModuleCode& code, uint32_t function, uint64_t ret)
      : code_(code), function_(function), ret_(ret) {}

  std::optional<ReturnWays> run() {
    if (!find_begin() || !is_reached_from_here_only() || !add_passing() || !add_jumps()) {
      return std::nullopt;
    }
    sort_by_address(result_.ways);
    return std::move(result_);
  }

 private:
  // Back from the ret to the branch target.
  bool find_begin() {
    const std::optional<Instruction> ret = code_.at(ret_);
    if (!ret || ret->flow != Flow::Return) return false;
    end_ = ret->end();
    uint64_t begin = ret_;
    while (!code_.is_target(begin)) {
      const std::optional<Instruction> before = code_.before(begin);
      if (!before || !may_run_anywhere(*before)) return false;
      begin = before->address;
      if (end_ - begin > kTailSizeMax) return false;
    }
    result_.begin = begin;
    if (begin != ret_) make_tail();
    return true;
  }

  [[nodiscard]] bool may_run_anywhere(const Instruction& instruction) const {
    const auto displaced = displace(code_, instruction, instruction.address);
    return displaced && displaced->form == Form::Plain;
  }

  void make_tail() {
    Tail& tail = result_.tail;
    tail.ret_offset = static_cast<uint8_t>(ret_ - result_.begin);
    tail.size_bytes = static_cast<uint8_t>(end_ - result_.begin);
    std::copy_n(code_.text_from(result_.begin).begin(), tail.size_bytes, tail.bytes.begin());
  }

  [[nodiscard]] bool is_reached_from_here_only() const {
    const auto range = code_.range_at(result_.begin);
    if (!range || range != code_.range_at(ret_) || code_.owner_of(*range) != function_ ||
        code_.is_foreign_target(result_.begin) || code_.overlaps_rseq(result_.begin, end_)) {
      return false;
    }
    for (uint64_t inside = result_.begin + 1; inside < end_; ++inside) {
      if (code_.is_target(inside)) return false;
    }
    return unexplained_jumps(code_, function_).empty();
  }

  // False when it is not known whether control goes on from the instruction in front.
  bool add_passing() {
    const std::optional<Instruction> before = code_.before(result_.begin);
    if (!before || code_.range_at(before->address) != code_.range_at(ret_)) return false;
    switch (behind_padding(*before)) {
      case Flow::Jump:
      case Flow::IndirectJump:
      case Flow::Return:
      case Flow::Trap:
        return true;
      case Flow::Next:
        if (result_.begin == ret_ && pushes(*before)) return false;
        break;
      case Flow::Nop:
      case Flow::Conditional:
        break;
      case Flow::Int3:
      case Flow::IndirectCall:
      case Flow::Call:
      case Flow::System:
      case Flow::Bad:
        return false;
    }
    result_.ways.push_back({before->address, Side::Passed, false});
    return true;
  }

  // `push target ; ret` is a jump.
  [[nodiscard]] bool pushes(const Instruction& before) const {
    const auto bytes = code_.text_from(before.address).first(before.length);
    const std::optional<int64_t> depth = apply(bytes, {}).depth;
    return depth && *depth > 0;
  }

  // How control leaves the instruction, or the one in front of the nops that it ends.
  [[nodiscard]] Flow behind_padding(Instruction instruction) const {
    while (instruction.flow == Flow::Nop && !code_.is_target(instruction.address)) {
      const std::optional<Instruction> earlier = code_.before(instruction.address);
      if (!earlier) return Flow::Bad;
      instruction = *earlier;
    }
    return instruction.flow;
  }

  bool add_jumps() {
    for (const AddressRange& part : code_.parts_of(function_)) {
      for (uint64_t address = part.begin; address < part.end;) {
        const std::optional<Instruction> instruction = code_.at(address);
        if (!instruction || instruction->flow == Flow::Bad) return false;
        const bool jumps =
            instruction->flow == Flow::Jump || instruction->flow == Flow::Conditional;
        if (jumps && branch_target(code_, *instruction) == result_.begin) {
          result_.ways.push_back({address, way_side(*instruction), false});
        }
        address = instruction->end();
      }
    }
    return true;
  }

  // What is copied runs instead of the jump.
  [[nodiscard]] Side way_side(const Instruction& jump) const {
    return result_.tail.size_bytes != 0 ? Side::Taken : taken_side(jump);
  }

  const ModuleCode& code_;
  uint32_t function_;
  uint64_t ret_;
  uint64_t end_ = 0;
  ReturnWays result_;
};

}  // namespace

std::optional<ReturnWays> ways_to_return(const ModuleCode& code, uint32_t function, uint64_t ret) {
  return WayFinder(code, function, ret).run();
}

tl::expected<std::vector<Exit>, ExitRefusal> find_exits(const ModuleCode& code, uint32_t function) {
  return ExitFinder(code, function).run();
}

std::vector<uint64_t> find_stack_switches(const ModuleCode& code, uint32_t function,
                                          StackSwitch kind) {
  std::vector<uint64_t> found;
  for (const AddressRange& part : code.parts_of(function)) {
    std::optional<Instruction> at = code.at(part.begin);
    for (; at && at->address < part.end; at = code.at(at->end())) {
      if (begins_switch(code, at->address, kind)) found.push_back(at->address);
    }
  }
  return found;
}

std::vector<size_t> find_stack_switches(std::span<const uint8_t> text, StackSwitch kind) {
  const Sequence form =
      kind == StackSwitch::Unwinder ? Sequence(kUnwinderSwitch) : Sequence(kLongjmpSwitch);
  std::vector<size_t> found;
  for (size_t from = 0; from < text.size();) {
    const void* const at = memmem(text.data() + from, text.size() - from, form.data(), form.size());
    if (at == nullptr) break;
    const auto offset = static_cast<size_t>(static_cast<const uint8_t*>(at) - text.data());
    found.push_back(offset);
    from = offset + form.size();
  }
  return found;
}

std::vector<uint64_t> unexplained_jumps(const ModuleCode& code, uint32_t function) {
  return ExitFinder(code, function).unexplained();
}

}  // namespace clew::code

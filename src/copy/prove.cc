// SPDX-License-Identifier: Apache-2.0
#include "copy/prove.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "code/decode.h"
#include "code/displace.h"
#include "code/import_slot.h"

namespace clew::copy {

namespace {

using code::AddressRange;
using code::Block;
using code::EdgeKind;
using code::Flow;
using code::Instruction;
using Refused = tl::unexpected<Refusal>;

bool has_prefix(std::span<const uint8_t> bytes, uint8_t wanted) {
  const auto prefixes = bytes.first(code::opcode_offset(bytes));
  return std::find(prefixes.begin(), prefixes.end(), wanted) != prefixes.end();
}

class Prover {
 public:
  Prover(const Facts& facts, uint32_t function)
      : facts_(facts),
        code_(facts.code),
        function_(function),
        parts_(code_.parts_of(function)),
        blocks_(code::find_blocks(code_, function, facts.noreturn)) {}

  tl::expected<Proved, Refusal> run() {
    const uint64_t start = code_.functions()[function_].address;
    // Parts of it may have code all the same.
    if (!blocks_.block_at(start)) return Refused({Reason::NoCode, start});
    if (std::binary_search(facts_.resolvers.begin(), facts_.resolvers.end(), start)) {
      return Refused({Reason::Resolver, start});
    }
    for (const Block& block : blocks_.blocks()) {
      if (const auto refusal = check_block(block)) return Refused(*refusal);
    }
    auto switches = find_switches(facts_, function_, blocks_);
    if (!switches) return Refused(switches.error());
    return Proved{function_, std::move(blocks_), std::move(*switches)};
  }

 private:
  [[nodiscard]] std::optional<Refusal> check_block(const Block& block) const {
    if (code_.overlaps_rseq(block.begin, block.end)) return Refusal{Reason::Rseq, block.begin};
    for (auto at = code_.at(block.begin); at && at->address < block.end; at = code_.at(at->end())) {
      const std::optional<uint32_t> range = code_.range_at(at->address);
      if (!range || code_.owner_of(*range) != function_) {
        return Refusal{Reason::Overlaps, at->address};
      }
      if (const auto reason = check(*at)) return Refusal{*reason, at->address};
    }
    for (const code::Edge& edge : blocks_.edges_of(block)) {
      if (edge.kind == EdgeKind::Elsewhere) return Refusal{Reason::IntoMiddle, block.last};
      if (edge.kind == EdgeKind::StackSwitch) return Refusal{Reason::StackSwitch, block.last};
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Reason> check(const Instruction& at) const {
    switch (at.flow) {
      case Flow::Bad:
        return Reason::Undecodable;
      case Flow::System:
        return Reason::SystemCall;
      case Flow::Int3:
        return Reason::Trap;
      case Flow::Trap:
        return std::nullopt;
      case Flow::Call:
        if (asks_caller(facts_, at)) return Reason::AsksCaller;
        if (is_own(code::branch_target(code_, at)) && !is_start(code::branch_target(code_, at))) {
          return Reason::ReadsOwnPlace;
        }
        break;
      case Flow::Jump:
      case Flow::Conditional:
        if (asks_caller(facts_, at)) return Reason::AsksCaller;
        break;
      case Flow::Next:
      case Flow::Nop:
      case Flow::IndirectCall:
      case Flow::IndirectJump:
      case Flow::Return:
        break;
    }
    return check_form(at);
  }

  [[nodiscard]] std::optional<Reason> check_form(const Instruction& at) const {
    const std::span<const uint8_t> bytes = code_.text_from(at.address).first(at.length);
    if (code::is_signal_return(code_, at.address)) return Reason::SystemCall;
    const auto decoded = code::decode(bytes);
    if (!decoded) return Reason::Undecodable;
    const bool is_direct =
        at.flow == Flow::Jump || at.flow == Flow::Conditional || at.flow == Flow::Call;
    // Intel ignores the first before branches, AMD cuts the target; the second cuts the sum.
    if (is_direct && has_prefix(bytes, 0x66)) return Reason::Unsupported;
    // With a displacement of four bytes it would be too long.
    constexpr unsigned kPrefixesMax = code::kInstructionSizeMax - 6;
    if (is_direct && code::opcode_offset(bytes) > kPrefixesMax) return Reason::Unsupported;
    if (!decoded->rip_relative) return std::nullopt;
    if (has_prefix(bytes, 0x67)) return Reason::Unsupported;
    const uint64_t target = at.end() + static_cast<uint64_t>(code::signed_field(
                                           bytes, decoded->displacement_offset, 4));
    const auto& asking = facts_.caller_slots;
    if (std::binary_search(asking.begin(), asking.end(), target)) return Reason::AsksCaller;
    const bool is_lea = bytes[code::opcode_offset(bytes)] == 0x8d;
    if (is_lea && is_own(target) && !is_start(target)) return Reason::LabelEscapes;
    return std::nullopt;
  }

  [[nodiscard]] bool is_own(uint64_t address) const {
    return std::any_of(parts_.begin(), parts_.end(), [address](const AddressRange& part) {
      return part.begin <= address && address < part.end;
    });
  }

  [[nodiscard]] bool is_start(uint64_t address) const {
    return address == code_.functions()[function_].address;
  }

  const Facts& facts_;
  const code::ModuleCode& code_;
  uint32_t function_;
  std::vector<AddressRange> parts_;
  code::Blocks blocks_;
};

}  // namespace

bool asks_caller(const Facts& facts, const code::Instruction& branch) {
  if (facts.caller_slots.empty()) return false;
  const auto slot = code::import_slot(facts.code, branch);
  return slot && std::binary_search(facts.caller_slots.begin(), facts.caller_slots.end(), *slot);
}

tl::expected<Proved, Refusal> prove(const Facts& facts, uint32_t function) {
  return Prover(facts, function).run();
}

}  // namespace clew::copy

// SPDX-License-Identifier: Apache-2.0
#include "copy/asked_callers.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "code/decode.h"
#include "code/full_decode.h"
#include "code/stack_depth.h"

namespace clew::copy {
namespace {

using code::Flow;
using code::Instruction;

constexpr int64_t kWord = 8;

// [rsp + x] without an index, or [rbp + 8]: nearly all other instructions are told by their bytes.
bool may_read_it(std::span<const uint8_t> bytes) {
  for (size_t i = 1; i < bytes.size(); ++i) {
    const bool by_stack = bytes[i] == 0x24 && (bytes[i - 1] & 7) == 4 && bytes[i - 1] < 0xc0;
    const bool by_frame = bytes[i] == kWord && (bytes[i - 1] & 0xc7) == 0x45;
    if (by_stack || by_frame) return true;
  }
  return false;
}

// A word that an instruction reads and names: below what a register holds.
struct WordRead {
  ZydisRegister base = ZYDIS_REGISTER_NONE;
  int64_t displacement = 0;
};

std::optional<WordRead> word_read(std::span<const uint8_t> bytes) {
  const std::optional<code::Full> full = code::decode_full(bytes);
  if (!full) return std::nullopt;
  for (const ZydisDecodedOperand& operand : full->operands()) {
    const bool is_read = operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
                         operand.visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
                         operand.mem.type == ZYDIS_MEMOP_TYPE_MEM &&
                         (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
    if (!is_read || operand.mem.index != ZYDIS_REGISTER_NONE) continue;
    return WordRead{operand.mem.base, operand.mem.disp.value};
  }
  return std::nullopt;
}

// pop of a general register
bool is_pop(std::span<const uint8_t> bytes) {
  return (bytes.back() & 0xf8) == 0x58 &&
         (bytes.size() == 1 || (bytes.size() == 2 && bytes[0] == 0x41));
}

// mov rbp, rsp, in both forms.
bool sets_frame(std::span<const uint8_t> bytes) {
  return bytes.size() == 3 && bytes[0] == 0x48 &&
         ((bytes[1] == 0x89 && bytes[2] == 0xe5) || (bytes[1] == 0x8b && bytes[2] == 0xec));
}

class Reader {
 public:
  Reader(const code::ModuleCode& code, uint32_t function) : code_(code), function_(function) {}

  // Does it read its return address, other than by returning there?
  bool reads() {
    const uint64_t start = code_.functions()[function_].address;
    for (const code::AddressRange& part : code_.parts_of(function_)) {
      for (auto at = code_.at(part.begin); at && at->address < part.end; at = code_.at(at->end())) {
        const auto bytes = code_.text_from(at->address).first(at->length);
        if (at->address == start && is_pop(bytes)) return true;
        if (sets_frame(bytes)) has_frame_ = true;
        if (may_read_it(bytes) && reads(*at, bytes)) return true;
      }
    }
    return false;
  }

 private:
  bool reads(const Instruction& at, std::span<const uint8_t> bytes) {
    const std::optional<WordRead> word = word_read(bytes);
    if (!word) return false;
    if (word->base == ZYDIS_REGISTER_RBP) return has_frame_ && word->displacement == kWord;
    if (word->base != ZYDIS_REGISTER_RSP || word->displacement % kWord != 0) return false;
    if (!depths_) depths_.emplace(code_, function_);
    return depths_->at(at.address) == word->displacement;
  }

  const code::ModuleCode& code_;
  uint32_t function_;
  bool has_frame_ = false;
  std::optional<code::StackDepths> depths_;
};

// Of jumps and calls: from which function to which place.
struct Leaving {
  uint64_t from = 0;
  uint64_t to = 0;
  bool is_jump = false;
};

std::vector<Leaving> leavings_of(const code::ModuleCode& code) {
  std::vector<Leaving> found;
  for (uint32_t i = 0; i < code.functions().size(); ++i) {
    if (code.owner_of(i) != i) continue;
    const uint64_t from = code.functions()[i].address;
    for (const code::AddressRange& part : code.parts_of(i)) {
      for (auto at = code.at(part.begin); at && at->address < part.end; at = code.at(at->end())) {
        const bool is_jump = at->flow == Flow::Jump || at->flow == Flow::Conditional;
        if (!is_jump && at->flow != Flow::Call) continue;
        const uint64_t to = code::branch_target(code, *at);
        found.push_back({from, to, is_jump});
      }
    }
  }
  return found;
}

}  // namespace

std::set<uint64_t> asked_callers(const Facts& facts) {
  std::set<uint64_t> asking;
  for (uint32_t i = 0; i < facts.code.functions().size(); ++i) {
    if (facts.code.owner_of(i) == i && Reader(facts.code, i).reads())
      asking.insert(facts.code.functions()[i].address);
  }
  std::set<uint64_t> asked;
  if (asking.empty()) return asked;
  const std::vector<Leaving> leavings = leavings_of(facts.code);
  // Who leaves by a jump has its own caller asked.
  for (size_t known = 0; known != asking.size();) {
    known = asking.size();
    for (const Leaving& one : leavings) {
      if (!asking.contains(one.to)) continue;
      asked.insert(one.from);
      if (one.is_jump) asking.insert(one.from);
    }
  }
  return asked;
}

}  // namespace clew::copy

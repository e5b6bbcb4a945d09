// SPDX-License-Identifier: Apache-2.0
// Walks to the first instruction that reads the flags, or writes all of them.
#include "code/flag_use.h"

#include <algorithm>
#include <optional>

#include <Zydis/Zydis.h>

#include "code/decode.h"
#include "code/flag_effect.h"

namespace clew::code {

namespace {

constexpr unsigned kInstructionsMax = 32;

// What a walk does where the flags pass to code that cannot be seen.
struct Ends {
  bool at_return = false;
  bool in_doubt = true;
  bool at_target = false;  // Where something else jumps to, when control would run on into it.
};

// All ways from one instruction on, until flags are read or overwritten.
class Walk {
 public:
  Walk(const ModuleCode& code, Ends ends) : code_(code), ends_(ends) {}

  // Are some of them read?
  bool reads_from(uint64_t address) {
    push({address, kStatusFlags, false});
    for (unsigned i = 0; i < kStepsMax && !ways_.empty(); ++i) {
      const Way way = ways_.back();
      ways_.pop_back();
      if (step(way)) return true;
    }
    return !ways_.empty() && ends_.in_doubt;
  }

 private:
  static constexpr unsigned kStepsMax = 64;
  struct Way {
    uint64_t address = 0;
    FlagSet alive = 0;
    bool is_callee = false;
  };

  void push(const Way& way) {
    if (way.alive != 0) ways_.push_back(way);
  }

  bool step(Way way) {
    const std::optional<Instruction> at = code_.at(way.address);
    if (!at) return ends_.in_doubt;
    switch (at->flow) {
      case Flow::Next:
      case Flow::Nop:
      case Flow::System:
      case Flow::Conditional:
        return pass(way, *at);
      case Flow::Jump:
        push({branch_target(code_, *at), way.alive, way.is_callee});
        return false;
      case Flow::Call:
        // Its callee may take flags; those behind its return are the callee's.
        if (!way.is_callee) push({branch_target(code_, *at), way.alive, true});
        return false;
      case Flow::Return:
        return ends_.at_return && !way.is_callee;
      case Flow::IndirectJump:
        for (const uint64_t target : code_.table_targets(at->address))
          push({target, way.alive, way.is_callee});
        return false;
      case Flow::IndirectCall:
      case Flow::Int3:
      case Flow::Trap:
        return false;
      case Flow::Bad:
        return ends_.in_doubt;
    }
    return ends_.in_doubt;
  }

  bool pass(Way way, const Instruction& at) {
    const std::span<const uint8_t> bytes = code_.text_from(at.address).first(at.length);
    if (at.flow != Flow::Nop && !is_plainly_neutral(bytes)) {
      const FlagEffect effect = flag_effect(bytes);
      if ((effect.read & way.alive) != 0) return true;
      way.alive &= ~effect.written;
    }
    if (at.flow == Flow::Conditional) {
      push({branch_target(code_, at), way.alive, way.is_callee});
    }
    const bool ends = ends_.at_target && code_.is_target(at.end());
    if (!ends) push({at.end(), way.alive, way.is_callee});
    return false;
  }

  const ModuleCode& code_;
  Ends ends_;
  std::vector<Way> ways_;
};

// cmp, test, bt, and instructions that do nothing but set flags.
bool only_sets_flags(std::span<const uint8_t> bytes) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisDecodedInstruction instruction;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, nullptr, bytes.data(), bytes.size(),
                                                  &instruction))) {
    return true;
  }
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_TEST:
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_STC:
    case ZYDIS_MNEMONIC_CLC:
    case ZYDIS_MNEMONIC_CMC:
    case ZYDIS_MNEMONIC_SAHF:
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFD:
    case ZYDIS_MNEMONIC_POPFQ:
    case ZYDIS_MNEMONIC_PTEST:
    case ZYDIS_MNEMONIC_VPTEST:
    case ZYDIS_MNEMONIC_COMISS:
    case ZYDIS_MNEMONIC_COMISD:
    case ZYDIS_MNEMONIC_UCOMISS:
    case ZYDIS_MNEMONIC_UCOMISD:
      return true;
    default:  // Of some 1,700.
      return false;
  }
}

// Straight back from `address`: does a comparison leave flags that nothing reads before it? A
// compiler would have left it out.
bool follows_unread_comparison(const ModuleCode& code, uint64_t address) {
  constexpr unsigned kBackMax = 8;
  for (unsigned i = 0; i < kBackMax && !code.is_target(address); ++i) {
    const std::optional<Instruction> before = code.before(address);
    if (!before || (before->flow != Flow::Next && before->flow != Flow::Nop)) return false;
    const std::span<const uint8_t> bytes = code.text_from(before->address).first(before->length);
    if (before->flow == Flow::Next && !is_plainly_neutral(bytes)) {
      const FlagEffect effect = flag_effect(bytes);
      if ((effect.written & kStatusFlags) != 0) return only_sets_flags(bytes);
      if ((effect.read & kStatusFlags) != 0) return false;
    }
    address = before->address;
  }
  return false;
}

// Where control goes on from a tail call; 0 = not known.
uint64_t tail_target(const ModuleCode& code, const Exit& exit) {
  const std::optional<Instruction> at = code.at(exit.address);
  if (!at) return 0;
  if (exit.side == Side::Passed) return at->end();
  const bool is_direct = at->flow == Flow::Jump || at->flow == Flow::Conditional;
  return is_direct ? branch_target(code, *at) : 0;
}

}  // namespace

bool may_use_flags(const ModuleCode& code, uint64_t address) {
  std::optional<Instruction> at = code.at(address);
  for (unsigned i = 0; at && i < kInstructionsMax; ++i) {
    switch (at->flow) {
      case Flow::Next:
        if (const FlagUse use = flag_use(code.text_from(at->address).first(at->length));
            use != FlagUse::None) {
          return use == FlagUse::Reads;
        }
        break;
      case Flow::Nop:
        break;
      case Flow::Jump:
        at = code.at(branch_target(code, *at));
        continue;
      case Flow::Call:
      case Flow::IndirectCall:
      case Flow::Return:
        return false;  // The ABI knows no flags in either.
      case Flow::Int3:
      case Flow::IndirectJump:
      case Flow::Conditional:
      case Flow::Trap:
      case Flow::System:
      case Flow::Bad:
        return true;
    }
    at = code.at(at->end());
  }
  return true;
}

bool FlagValues::live_at_entry(uint64_t address, uint32_t function) {
  // Without its callers first: few functions get to their end without writing flags.
  if (Walk(code_, {.at_return = false}).reads_from(address)) return true;
  return Walk(code_, {.at_return = true}).reads_from(address) && is_result_of(function);
}

bool FlagValues::live_at_exit(const Exit& exit, uint32_t function) {
  if (is_result_of(function) || follows_unread_comparison(code_, exit.address)) return true;
  const uint64_t target = exit.tail_call ? tail_target(code_, exit) : 0;
  return target != 0 && Walk(code_, {.in_doubt = false}).reads_from(target);
}

bool FlagValues::is_result_of(uint32_t function) {
  if (!is_searched_) find_callers();
  return any_ || results_[function];
}

void FlagValues::find_callers() {
  is_searched_ = true;
  results_.resize(code_.functions().size());
  code_.each_call([this](const Instruction& call) { note_call(call); });
  while (!pending_.empty()) {
    const uint32_t function = pending_.back();
    pending_.pop_back();
    add_tail_calls(function);
  }
}

// Of imports nothing is known. Behind a call that does not return stands what is reached from
// elsewhere.
void FlagValues::note_call(const Instruction& call) {
  const Ends ends = {.in_doubt = false, .at_target = true};
  if (code_.is_target(call.end()) || !Walk(code_, ends).reads_from(call.end())) return;
  if (call.flow == Flow::Call) return add(branch_target(code_, call));
  // Between functions there is data.
  const auto range = code_.range_at(call.address);
  const auto decoded = decode(code_.text_from(call.address));
  if (range && !code_.is_unsafe(*range) && decoded && !decoded->rip_relative) any_ = true;
}

void FlagValues::add(uint64_t target) {
  const auto range = code_.range_at(target);
  if (!range) return;
  const uint32_t function = code_.owner_of(*range);
  if (results_[function]) return;
  results_[function] = true;
  pending_.push_back(function);
}

// What it jumps to returns to the same caller.
void FlagValues::add_tail_calls(uint32_t function) {
  for (const AddressRange& part : code_.parts_of(function)) {
    bool runs_on = false;
    for (auto at = code_.at(part.begin); at && at->address < part.end; at = code_.at(at->end())) {
      const bool jumps = at->flow == Flow::Jump || at->flow == Flow::Conditional;
      if (jumps) add(branch_target(code_, *at));
      const bool is_filler = at->flow == Flow::Nop || at->flow == Flow::Int3;
      if (!is_filler) runs_on = at->flow == Flow::Next || at->flow == Flow::Conditional;
      if (at->flow != Flow::IndirectJump || !code_.table_targets(at->address).empty()) continue;
      const auto decoded = decode(code_.text_from(at->address));
      if (decoded && !decoded->rip_relative) any_ = true;
    }
    if (runs_on) add(part.end);
  }
}

}  // namespace clew::code

// SPDX-License-Identifier: Apache-2.0
// Walks to the first instruction that reads the flags, or writes all of them.
#include "code/flag_use.h"

#include <algorithm>
#include <optional>

#include <Zydis/Zydis.h>

#include "code/decode.h"

namespace clew::code {

namespace {

constexpr unsigned kInstructionsMax = 32;

enum class Use : uint8_t { None, Reads, Writes };

// Intel SDM, volume 2, appendix A: opcodes of the one-byte map.
constexpr uint8_t kTwoByteMap = 0x0f;
constexpr uint8_t kThreeByteMap = 0x38;
constexpr uint8_t kCarryAdd = 0xf6;  // adcx, adox

bool is_prefix(uint8_t byte) {
  static constexpr uint8_t kPrefixes[] = {0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x26,
                                          0x2e, 0x36, 0x3e, 0x64, 0x65};
  return std::find(std::begin(kPrefixes), std::end(kPrefixes), byte) != std::end(kPrefixes) ||
         (byte & 0xf0) == 0x40;
}

// add, or, adc, sbb, and, sub, xor, cmp, by number.
Use use_of_arithmetic(unsigned operation) {
  return operation == 2 || operation == 3 ? Use::Reads : Use::Writes;
}

// cmovcc, setcc, adcx and adox read; what the others write is not counted on.
Use use_of_two_byte(uint8_t opcode, uint8_t next) {
  const bool conditional = (opcode & 0xf0) == 0x40 || (opcode & 0xf0) == 0x90;
  const bool carries = opcode == kThreeByteMap && next == kCarryAdd;
  return conditional || carries ? Use::Reads : Use::None;
}

Use use_of_one_byte(uint8_t opcode, uint8_t mod_rm) {
  const unsigned operation = (mod_rm >> 3) & 7U;
  if (opcode < 0x40 && (opcode & 7) < 6) return use_of_arithmetic(opcode >> 3);
  if (opcode == 0x80 || opcode == 0x81 || opcode == 0x83) return use_of_arithmetic(operation);
  if (opcode == 0x84 || opcode == 0x85 || opcode == 0xa8 || opcode == 0xa9) return Use::Writes;
  if (opcode == 0xf6 || opcode == 0xf7) return operation < 2 ? Use::Writes : Use::None;
  const bool rotates = opcode == 0xc0 || opcode == 0xc1 || (opcode >= 0xd0 && opcode <= 0xd3);
  if (rotates) return operation == 2 || operation == 3 ? Use::Reads : Use::None;
  // pushf, lahf, cmc, salc
  return opcode == 0x9c || opcode == 0x9f || opcode == 0xf5 || opcode == 0xd6 ? Use::Reads
                                                                              : Use::None;
}

Use use_of(std::span<const uint8_t> bytes) {
  size_t at = 0;
  while (at + 1 < bytes.size() && is_prefix(bytes[at]))
    ++at;
  const auto byte = [&](size_t index) { return index < bytes.size() ? bytes[index] : uint8_t{0}; };
  if (byte(at) == kTwoByteMap) return use_of_two_byte(byte(at + 1), byte(at + 2));
  return use_of_one_byte(byte(at), byte(at + 1));
}

// The status flags of Zydis' sets.
constexpr ZydisAccessedFlagsMask kStatusFlags = ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF |
                                                ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF |
                                                ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF;

struct Effect {
  ZydisAccessedFlagsMask read = 0;
  ZydisAccessedFlagsMask written = 0;  // Whatever the operands are.
};

// Shifts by nothing and comparisons of no bytes write nothing: those by cl, those that repeat.
bool may_write_none(const ZydisDecodedInstruction& instruction) {
  constexpr ZydisInstructionAttributes kRepeats =
      ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  const bool shifts = instruction.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
                      (instruction.opcode == 0xd2 || instruction.opcode == 0xd3);
  const bool shifts_double = instruction.opcode_map == ZYDIS_OPCODE_MAP_0F &&
                             (instruction.opcode == 0xa5 || instruction.opcode == 0xad);
  return shifts || shifts_double || (instruction.attributes & kRepeats) != 0;
}

Effect effect_of(std::span<const uint8_t> bytes) {
  const Use use = use_of(bytes);
  if (use == Use::Writes) return {.written = kStatusFlags};
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisDecodedInstruction instruction;
  const bool decodes = ZYAN_SUCCESS(
      ZydisDecoderDecodeInstruction(&decoder, nullptr, bytes.data(), bytes.size(), &instruction));
  if (!decodes || instruction.cpu_flags == nullptr) {
    return {.read = use == Use::Reads ? kStatusFlags : 0};
  }
  const ZydisAccessedFlags& flags = *instruction.cpu_flags;
  Effect effect{.read = flags.tested};
  if (use == Use::Reads && effect.read == 0) effect.read = kStatusFlags;
  if (!may_write_none(instruction)) {
    effect.written = flags.modified | flags.set_0 | flags.set_1 | flags.undefined;
  }
  return effect;
}

// Moves, which are most of what stands at entries and behind calls: the opcode says it all.
bool is_plainly_neutral(std::span<const uint8_t> bytes) {
  const size_t at = bytes.size() > 1 && (bytes[0] & 0xf0) == 0x40 ? 1 : 0;
  const uint8_t opcode = bytes[at];
  return (opcode >= 0x50 && opcode < 0x60) || (opcode >= 0x88 && opcode <= 0x8d) ||
         (opcode & 0xf0) == 0xb0 || opcode == 0xc6 || opcode == 0xc7 || opcode == 0x63;
}

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
    ZydisAccessedFlagsMask alive = 0;
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
      const Effect effect = effect_of(bytes);
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
      const Effect effect = effect_of(bytes);
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
        if (const Use use = use_of(code.text_from(at->address).first(at->length));
            use != Use::None) {
          return use == Use::Reads;
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

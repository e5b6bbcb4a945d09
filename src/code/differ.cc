// SPDX-License-Identifier: Apache-2.0
// Originals against copies.
#include "code/differ.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include <sys/ucontext.h>

#include "base/page.h"
#include "code/decode.h"
#include "code/opcodes.h"

namespace clew::code {
namespace {

constexpr uint64_t kOriginal = 2 * kPage;  // Where windows run in place, in the sandbox.
constexpr uint64_t kCopy = 8 * kPage;      // Where their copies run.

// Results depend on time, chance or where the thread runs.
constexpr ZydisMnemonic kChanging[] = {
    ZYDIS_MNEMONIC_RDTSC,  ZYDIS_MNEMONIC_RDTSCP, ZYDIS_MNEMONIC_RDRAND, ZYDIS_MNEMONIC_RDSEED,
    ZYDIS_MNEMONIC_CPUID,  ZYDIS_MNEMONIC_RDPID,  ZYDIS_MNEMONIC_XGETBV, ZYDIS_MNEMONIC_TPAUSE,
    ZYDIS_MNEMONIC_UMWAIT, ZYDIS_MNEMONIC_RDPRU,  ZYDIS_MNEMONIC_LSL};

// Store or load what the sandbox leaves out or needs: the place of the last x87 instruction, flags
// besides those of arithmetic, protection keys, segments.
constexpr ZydisMnemonic kOfTheSandbox[] = {
    ZYDIS_MNEMONIC_POPF,     ZYDIS_MNEMONIC_POPFD,      ZYDIS_MNEMONIC_POPFQ,
    ZYDIS_MNEMONIC_PUSHF,    ZYDIS_MNEMONIC_PUSHFD,     ZYDIS_MNEMONIC_PUSHFQ,
    ZYDIS_MNEMONIC_FLDENV,   ZYDIS_MNEMONIC_FNSTENV,    ZYDIS_MNEMONIC_FNSAVE,
    ZYDIS_MNEMONIC_FRSTOR,   ZYDIS_MNEMONIC_FXSAVE,     ZYDIS_MNEMONIC_FXSAVE64,
    ZYDIS_MNEMONIC_FXRSTOR,  ZYDIS_MNEMONIC_FXRSTOR64,  ZYDIS_MNEMONIC_XSAVE,
    ZYDIS_MNEMONIC_XSAVE64,  ZYDIS_MNEMONIC_XSAVEC,     ZYDIS_MNEMONIC_XSAVEC64,
    ZYDIS_MNEMONIC_XSAVEOPT, ZYDIS_MNEMONIC_XSAVEOPT64, ZYDIS_MNEMONIC_XRSTOR,
    ZYDIS_MNEMONIC_XRSTOR64, ZYDIS_MNEMONIC_LDMXCSR,    ZYDIS_MNEMONIC_VLDMXCSR,
    ZYDIS_MNEMONIC_RDPKRU,   ZYDIS_MNEMONIC_WRPKRU,     ZYDIS_MNEMONIC_RDFSBASE,
    ZYDIS_MNEMONIC_WRFSBASE, ZYDIS_MNEMONIC_WRGSBASE,   ZYDIS_MNEMONIC_LFS,
    ZYDIS_MNEMONIC_LGS,      ZYDIS_MNEMONIC_LSS,        ZYDIS_MNEMONIC_VMCALL,
    ZYDIS_MNEMONIC_VMMCALL,  ZYDIS_MNEMONIC_STD};

template <size_t N>
bool is_one_of(ZydisMnemonic mnemonic, const ZydisMnemonic (&list)[N]) {
  return std::find(std::begin(list), std::end(list), mnemonic) != std::end(list);
}

bool writes_thread_memory_or_segment(const ZydisDecodedOperand& operand) {
  const bool writes = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
    const ZydisRegister segment = operand.mem.segment;
    return writes && (segment == ZYDIS_REGISTER_FS || segment == ZYDIS_REGISTER_GS);
  }
  return operand.type == ZYDIS_OPERAND_TYPE_REGISTER && writes &&
         ZydisRegisterGetClass(operand.reg.value) == ZYDIS_REGCLASS_SEGMENT;
}

void set_register(Registers& registers, ZydisRegister reg, int64_t value) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  const ZyanI8 id = ZydisRegisterGetId(whole);
  if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64 || id < 0) return;
  const int index = kContextIndex[static_cast<uint8_t>(id)];
  registers.general[static_cast<size_t>(index)] = value;
}

}  // namespace

Differ::Differ(uint64_t seed) : sandbox_(Sandbox::get()), random_(seed) {
  ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

void Differ::transplant(const Window& window) {
  window_ = window;
  window_.address = sandbox_.code_address() + kOriginal + 64;
  window_.window_class = WindowClass::OwnBytes;
  for (Displaced& displaced : window_.instructions)
    retarget(displaced);
}

Comparison Differ::compare() {
  const Registers registers = random_registers();
  std::array<uint8_t, kSandboxDataSize> before;
  fill_random(before);
  lay_out(before);
  const Outcome expected = sandbox_.run(window_.address, registers);
  std::array<uint8_t, kSandboxDataSize> expected_data;
  std::memcpy(expected_data.data(), sandbox_.data(), kSandboxDataSize);
  lay_out(before);
  const uint64_t destination = sandbox_.code_address() + kCopy + (random_() & 255);
  const auto copy = relocate(window_, {}, {.destination = destination}, {});
  if (!copy) return {copy.error().message};
  if (copy->bytes.size() > kPage) return {"too long"};
  std::memcpy(reinterpret_cast<void*>(destination), copy->bytes.data(), copy->bytes.size());
  // The copy stands alone: it must reach the instruction behind the window, not the window.
  std::memset(reinterpret_cast<void*>(window_.jump_address()), kInt3,
              window_.size_bytes - window_.kept_bytes);
  // But for what stays, and the jump behind it.
  const bool keeps = window_.kept_bytes != 0;
  if (keeps) {
    std::memcpy(reinterpret_cast<void*>(window_.jump_address()),
                copy->patches[0].replacement.data(), kJumpSizeBytes);
  }
  Outcome actual = sandbox_.run(keeps ? window_.address : destination, registers);
  actual.address = original_address(actual.address, destination, *copy);
  if (actual.signal != expected.signal) {
    return {"signal " + std::to_string(actual.signal) + " for " + std::to_string(expected.signal)};
  }
  // A call to nowhere faults before it pushes, its copy behind the push: the program dies anyhow.
  if (expected.signal == SIGSEGV && is_call_at(expected.address)) return {"", expected.signal};
  if (actual.address != expected.address) return {"stops elsewhere"};
  if (actual.registers != expected.registers) return {"registers"};
  const bool same = std::memcmp(expected_data.data(), sandbox_.data(), kSandboxDataSize) == 0;
  return {same ? "" : "memory", expected.signal};
}

bool Differ::is_call_at(uint64_t address) const {
  const Displaced& last = window_.instructions.back();
  const bool is_call = last.form == Form::IndirectCall || last.form == Form::RipIndirectCall;
  return is_call && window_.address + last.offset == address;
}

void Differ::retarget(Displaced& displaced) {
  uint8_t* bytes = window_.original.data() + displaced.offset;
  const uint64_t next = window_.address + displaced.offset + displaced.length;
  if (displaced.field_offset != 0) {
    displaced.target = sandbox_.data_address() + 2048 + (random_() & 0x3c0);
    const auto field = static_cast<uint32_t>(displaced.target - next);
    std::memcpy(bytes + displaced.field_offset, &field, 4);
    return;
  }
  const bool branch = displaced.form == Form::Jump || displaced.form == Form::ConditionalJump ||
                      displaced.form == Form::CountJump || displaced.form == Form::Call;
  if (branch) retarget_branch(displaced, bytes);
}

void Differ::retarget_branch(Displaced& displaced, uint8_t* bytes) {
  const uint64_t next = window_.address + displaced.offset + displaced.length;
  const auto decoded = decode_with_zydis({bytes, displaced.length});
  if (decoded->immediate_size == 4) {
    const auto field = static_cast<uint32_t>(64 + (random_() & 1023));
    std::memcpy(bytes + decoded->immediate_offset, &field, 4);
  }
  displaced.target =
      next + static_cast<uint64_t>(signed_field(
                 {bytes, displaced.length}, decoded->immediate_offset, decoded->immediate_size));
  const bool inside = displaced.target - window_.address < window_.size_bytes;
  if (inside) {  // A jump to the window's own first byte, say: send it behind the window.
    bytes[displaced.length - 1] = static_cast<uint8_t>(window_.size_bytes);
    displaced.target = next + window_.size_bytes;
  }
}

Registers Differ::random_registers() {
  Registers registers;
  for (int64_t& value : registers.general)
    value = random_general();
  registers.flags = random_() & Sandbox::kFlagsMask;
  fill_vectors(registers);
  // Away from the operands: a copied call pushes before it reads where to go.
  registers.general[REG_RSP] = data_middle() + int64_t{kPage};
  for (const Displaced& displaced : window_.instructions)
    aim_operands(displaced, registers);
  return registers;
}

// Half of the time small numbers, so that vectors of indices lead into the data.
void Differ::fill_vectors(Registers& registers) {
  registers.extended = sandbox_.extended();
  const bool is_small = (random_() & 1) != 0;
  for (const std::span<uint8_t> part : Sandbox::extended_registers(registers.extended)) {
    for (size_t i = 0; i < part.size(); ++i) {
      const bool is_low = i % 8 == 0 || i % 8 == 4;
      part[i] = is_small ? static_cast<uint8_t>(is_low ? random_() & 31 : 0)
                         : static_cast<uint8_t>(random_());
    }
  }
}

// Aligned for what demands it: the widest vector has 64 bytes.
int64_t Differ::data_middle() {
  return static_cast<int64_t>(sandbox_.data_address() + kSandboxDataSize / 2 + (random_() & 0xc0));
}

int64_t Differ::random_general() {
  switch (random_() & 7) {
    case 0:
    case 1:
      return static_cast<int64_t>(random_() & 15);
    case 2:
    case 3:
      return static_cast<int64_t>(random_());
    case 4:  // For jumps and calls through a register.
      return static_cast<int64_t>(sandbox_.code_address() + (random_() & 1023));
    default:
      return data_middle();
  }
}

// Sets the base of a memory operand so that it falls into the data, its index small, and how often
// a string instruction repeats.
void Differ::aim_operands(const Displaced& displaced, Registers& registers) {
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, window_.original.data() + displaced.offset,
                                           displaced.length, &instruction, operands.data()))) {
    return;
  }
  constexpr ZydisInstructionAttributes kRepeats =
      ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  if ((instruction.attributes & kRepeats) != 0) {
    set_register(registers, ZYDIS_REGISTER_RCX, static_cast<int64_t>(random_() & 31));
  }
  for (unsigned i = 0; i < instruction.operand_count; ++i) {
    const ZydisDecodedOperand& operand = operands[i];
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
    // Multiples of 16, for aligned vectors, half of the time.
    const uint64_t step = (random_() & 1) != 0 ? 16 : 1;
    set_register(registers, operand.mem.index, static_cast<int64_t>((random_() & 15) * step));
    if (operand.mem.base != ZYDIS_REGISTER_RSP) {
      set_register(registers, operand.mem.base, data_middle() - operand.mem.disp.value);
    }
  }
}

// Half of the time words that lead back into the sandbox, for indirect jumps and returns.
void Differ::fill_random(std::array<uint8_t, kSandboxDataSize>& bytes) {
  const bool pointers = (random_() & 1) != 0;
  for (size_t i = 0; i < bytes.size(); i += 8) {
    const uint64_t word = pointers ? sandbox_.code_address() + (random_() & 1023) : random_();
    std::memcpy(bytes.data() + i, &word, 8);
  }
}

void Differ::lay_out(const std::array<uint8_t, kSandboxDataSize>& data) {
  std::memset(sandbox_.code(), kInt3, kSandboxCodeSize);
  std::memcpy(reinterpret_cast<void*>(window_.address), window_.original.data(),
              window_.size_bytes);
  std::memcpy(sandbox_.data(), data.data(), kSandboxDataSize);
}

// Where a stop in the copy is in the original, by the boundaries.
uint64_t Differ::original_address(uint64_t address, uint64_t destination,
                                  const Relocated& copy) const {
  if (address - destination > copy.bytes.size()) return address;
  for (const Boundary& boundary : copy.boundaries) {
    if (destination + boundary.copy_offset == address) {
      return window_.address + boundary.window_offset;
    }
  }
  return address;
}

bool is_repeatable(const Window& window) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  for (const Displaced& displaced : window.instructions) {
    ZydisDecodedInstruction instruction;
    std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, window.original.data() + displaced.offset,
                                             displaced.length, &instruction, operands.data()))) {
      return false;
    }
    if (is_one_of(instruction.mnemonic, kChanging)) return false;
    if (is_one_of(instruction.mnemonic, kOfTheSandbox)) return false;
    const auto* end = operands.begin() + instruction.operand_count;
    if (std::any_of(operands.cbegin(), end, writes_thread_memory_or_segment)) return false;
  }
  return true;
}

std::string hex(const Window& window) {
  std::string text;
  for (unsigned i = 0; i < window.size_bytes; ++i) {
    static constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[window.original[i] >> 4];
    text += kDigits[window.original[i] & 15];
  }
  return text;
}

}  // namespace clew::code

// SPDX-License-Identifier: Apache-2.0
// Any bytes, as a program: the printer shows it, the validators judge it, and what they accept runs
// to a result or an error, a probe without loops within as many steps as it has instructions.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/assert.h"
#include "isa/interpreter.h"
#include "isa/print.h"
#include "isa/validator.h"

namespace clew::isa {
namespace {

constexpr uint32_t kWindowSize = 8192;
constexpr uint64_t kFuel = 5000;

// Bytes as they are are seldom a program. So half of the inputs choose rows of the opcode table,
// existing registers, near targets, and 0 for reserved fields.
Instruction tame(const Instruction& wild) {
  const OpcodeRow& row = opcode_table()[wild.opcode % opcode_table().size()];
  Instruction i = wild;
  i.opcode = row.opcode;
  const bool either = row.form == Form::Binary || row.form == Form::JumpIf;
  if (either && (wild.immediate & 1) != 0) i.opcode |= kSourceRegister;
  i.offset = static_cast<int16_t>(wild.offset % 64);
  unsigned destination = wild.destination() % kRegisterCount;
  unsigned source = wild.source() % kRegisterCount;
  if (row.form == Form::Binary || row.form == Form::MoveSigned) {
    i.offset = static_cast<int16_t>(row.selector);
  } else if (row.form == Form::Swap || row.form == Form::Atomic) {
    i.immediate = row.selector;
  } else if (row.form == Form::JumpFar || row.form == Form::CallLocal) {
    i.immediate = i.offset;
  } else if (row.form == Form::CallAccessor) {
    i.immediate = wild.offset & 0xF;
  }
  const bool source_selects =
      row.form == Form::CallAccessor || row.form == Form::CallLocal || row.form == Form::Load64;
  if (source_selects) source = static_cast<unsigned>(row.selector);
  const UsedFields used = used_fields(row.form, i);
  if (!used.destination) destination = 0;
  if (!used.source) source = 0;
  if (!used.offset) i.offset = 0;
  if (!used.immediate) i.immediate = 0;
  i.registers = static_cast<uint8_t>(destination | source << 4);
  return i;
}

Program program_from(std::span<const uint8_t> bytes) {
  Program program{"fuzz", {}, 2};
  const bool wild = bytes.empty() || (bytes[0] & 1) != 0;
  for (size_t at = 1; at + sizeof(Instruction) <= bytes.size(); at += sizeof(Instruction)) {
    Instruction i;
    std::memcpy(&i, bytes.data() + at, sizeof i);
    program.code.push_back(wild ? i : tame(i));
    const bool needs_second_half = !wild && program.code.back().opcode == kLoad64Opcode;
    if (needs_second_half) program.code.emplace_back();
  }
  if (!wild) program.code.push_back({0x95, 0, 0, 0});
  return program;
}

abi::RegionLayout layout() {
  abi::RegionLayout layout{};
  layout.table_count = 1;
  layout.generations = 2;
  layout.tables[0] = {.offset = 1024, .entries_log2 = 2, .key_words = 1, .cell_words = 1};
  layout.records = {.offset = 2048, .records_log2 = 2, .payload_words = 1, .reserved = 0};
  return layout;
}

void check(const Program& program) {
  (void)print(program);
  std::vector<uint8_t> window(kWindowSize);
  const abi::Context context{};
  const std::vector<uint64_t> constants{768, ~uint64_t{0}};
  RegionHost host(layout());
  const Expected<Outcome> outcome = interpret(program, {.window = window,
                                                        .context = &context,
                                                        .site_constants = constants,
                                                        .host = &host,
                                                        .fuel = kFuel});
  const bool is_program = validate(program).has_value();
  const bool is_probe = validate_probe(program).has_value();
  CLEW_ASSERT(is_program || !is_probe);
  CLEW_ASSERT(is_program || outcome.error().code != ErrorCode::Refused);
  if (!is_probe || program.code.size() >= kFuel) return;
  CLEW_ASSERT(outcome.has_value() || outcome.error().code == ErrorCode::Refused);
  CLEW_ASSERT(!outcome || outcome->instructions <= program.code.size());
}

}  // namespace
}  // namespace clew::isa

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  clew::isa::check(clew::isa::program_from({data, size}));
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Arbitrary instructions, valid or not: translate() never crashes, and what it translates the
// verifier accepts.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "abi/calling.h"
#include "abi/context.h"
#include "base/assert.h"
#include "native/code.h"
#include "native/print.h"
#include "verify/verified_code.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace native = clew::native;
  namespace verify = clew::verify;
  if (size < 1) return 0;
  const auto point = static_cast<native::PointKind>(data[0] % 3U);
  const native::Environment environment = {.point = point,
                                           .window_address = 0x1000'1000,
                                           .window_size_log2 = 10U + (data[0] >> 2U) % 10U,
                                           .slot_address = 0x1000'0000,
                                           .generation_address = 0x1000'0F00,
                                           .fuel = 1000,
                                           .branch_guards = (data[0] & 128U) != 0};
  clew::isa::Program program;
  program.code.resize((size - 1) / sizeof(clew::isa::Instruction));
  if (!program.code.empty()) {
    std::memcpy(program.code.data(), data + 1,
                program.code.size() * sizeof(clew::isa::Instruction));
  }
  constexpr std::array<uint64_t, 3> kConstants = {1024, 0x1234'5678'9ABC'DEF0, 3};
  const auto code = native::translate(program, environment, kConstants);
  if (!code) return 0;
  std::array<uint64_t, clew::abi::kDoorCount> entries;
  for (size_t k = 0; k < entries.size(); ++k)
    entries[k] = 0x5555'0010'0000 + 32 * k;
  std::vector<uint8_t> bytes = code->bytes;
  const uint64_t address = 0x5555'0000'0000;
  CLEW_ASSERT(native::relocate(*code, address, entries, bytes));
  const uint32_t above = point == native::PointKind::Offset ? 0 : 8;
  const uint32_t arguments =
      point == native::PointKind::Entry ? 8 * clew::abi::kStackArgumentsMax : 0;
  std::vector<verify::DeclaredFact> facts;
  for (const native::DeclaredFact& fact : code->facts)
    facts.push_back({fact.offset_bytes, fact.in, fact.high});
  std::vector<verify::Callee> callees;
  for (uint32_t number = 0; number < entries.size(); ++number)
    callees.push_back({entries[number], clew::abi::changed_by(number)});
  const verify::Policy policy = {
      .address = address,
      .window_address = environment.window_address,
      .window_size_log2 = environment.window_size_log2,
      .slot_address = environment.slot_address,
      .generation_address = environment.generation_address,
      .stack_readable_bytes = 8 * clew::abi::saved_count(code->clobbers) + above + arguments,
      .stack_mapped_bytes = 8 * clew::abi::saved_count(code->clobbers) + above + arguments,
      .clobbers = code->clobbers,
      .callees = callees,
      .fuel_max = environment.fuel,
      .facts = facts,
      .time_is_readable = true,
      .cpu_is_readable = true,
      .branch_guards = environment.branch_guards};
  const auto checked = verify::check(bytes, policy);
  if (!checked) std::fputs((checked.error().message + "\n" + native::print(*code)).c_str(), stderr);
  CLEW_ASSERT(checked.has_value());
  return 0;
}

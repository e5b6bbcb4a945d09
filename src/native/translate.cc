// SPDX-License-Identifier: Apache-2.0
// The steps of a translation: decode, unroll, analyse, allocate, lower, assemble. Analysis and
// allocation depend on each other (a context argument is live only while its register is not
// allocated), so they are repeated until the set of written argument registers stops growing.
#include <limits>

#include <fmt/format.h>

#include "abi/calling.h"
#include "abi/region.h"
#include "abi/slot.h"
#include "base/assert.h"
#include "native/allocation.h"
#include "native/analysis.h"
#include "native/code.h"
#include "native/layout.h"
#include "native/lowering.h"
#include "native/operation.h"
#include "native/unroll.h"

namespace clew::native {
namespace {

constexpr uint32_t kWindowLog2Min = 10;
constexpr uint32_t kWindowLog2Max = 30;
constexpr size_t kBodySizeMax = 65536;

Expected<void> check(const Environment& environment) {
  constexpr uint64_t kReach = std::numeric_limits<int32_t>::max();
  const uint32_t log2 = environment.window_size_log2;
  if (log2 < kWindowLog2Min || log2 > kWindowLog2Max) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("a window of 2^{} bytes; expected 2^{} to 2^{}", log2, kWindowLog2Min,
                            kWindowLog2Max));
  }
  const uint64_t window_end =
      environment.window_address + (uint64_t{1} << log2) + abi::kWindowSlackBytes;
  const uint64_t slot_end = uint64_t{environment.slot_address} + abi::kSlotControlSizeBytes;
  const uint64_t generation_end = uint64_t{environment.generation_address} + 4;
  if (window_end > kReach || slot_end > kReach || generation_end > kReach) {
    return fail(ErrorCode::InvalidQuery, "an address above 2 GiB in the environment");
  }
  const uint64_t globals_end = uint64_t{environment.globals_address} + environment.globals_bytes;
  const uint64_t pointers_end = (uint64_t{1} << log2) + abi::kWindowSlackBytes;
  const bool are_apart =
      environment.globals_bytes == 0 || environment.globals_address >= pointers_end;
  if (globals_end > kReach || !are_apart) {
    return fail(ErrorCode::InvalidQuery, "globals above 2 GiB, or where window pointers are");
  }
  if (environment.window_address % 8 != 0) {
    return fail(ErrorCode::InvalidQuery, "a window that is not 8-byte aligned");
  }
  if (environment.is_machine && environment.branch_guards) {
    return fail(ErrorCode::InvalidQuery, "branch guards in a program of D, which counts no strays");
  }
  return {};
}

struct Prepared {
  std::vector<Facts> facts;
  std::vector<Block> blocks;
  Allocation allocation;
  abi::RegisterSet clobbers;
};

Expected<Prepared> prepare(std::span<const Operation> operations, const Environment& environment,
                           abi::Doors doors) {
  abi::RegisterSet clobbers = environment.saved;
  while (true) {  // The set only grows, and has 16 members.
    Prepared prepared;
    prepared.facts = CLEW_TRY(analyse(operations, environment.point, clobbers));
    prepared.blocks = lay_out(operations, prepared.facts);
    prepared.allocation = CLEW_TRY(allocate(operations, prepared.facts, environment, doors));
    prepared.clobbers = joined(clobbers, prepared.allocation.clobbers);
    const bool stable = prepared.clobbers == clobbers;
    clobbers = prepared.clobbers;
    if (stable) return prepared;
  }
}

Code finish(Lowering& lowering) {
  Code code;
  lowering.assembler().finish(code);
  code.clobbers = lowering.assembler().written();
  code.guarded = lowering.guarded();
  return code;
}

// What the accessors want that the program calls.
abi::RegisterSet saved_for(std::span<const Operation> operations) {
  abi::RegisterSet set;
  for (const Operation& op : operations) {
    const bool is_call = op.kind == OperationKind::Call;
    if (is_call) set = joined(set, abi::saved_for(static_cast<uint32_t>(op.accessor)));
  }
  return set;
}

// The body for a stub that saves `saved`. Code::clobbers is what the body writes.
Code lower(std::span<const Operation> operations, const Prepared& prepared,
           const Environment& environment, abi::RegisterSet saved) {
  LoweringInput input = {.operations = operations,
                         .facts = prepared.facts,
                         .blocks = prepared.blocks,
                         .allocation = prepared.allocation,
                         .clobbers = saved,
                         .environment = environment};
  Lowering first(input);
  first.run();
  if (!prepared.allocation.has_loops) return finish(first);
  // What all ways to a loop's head have in common need not be made sure of there again.
  input.expected = first.assembler().ways();
  Lowering second(input);
  second.run();
  return finish(second.assembler().expectations_hold() ? second : first);
}

// What the body's stub and its deepest call take of the program's stack.
uint32_t stack_bytes(const Code& code) {
  uint32_t deepest = 0;
  for (const CallFixup& call : code.calls)
    deepest = std::max(deepest, abi::call_stack_bytes(call.door));
  return 8 * abi::saved_count(code.clobbers) + deepest;
}

Expected<Code> translate_with(std::span<const Operation> operations, const Environment& environment,
                              abi::Doors doors) {
  const Prepared prepared = CLEW_TRY(prepare(operations, environment, doors));
  Code code = lower(operations, prepared, environment, prepared.clobbers);
  // Fused operations write fewer registers than they were given. The stub saves what is written.
  const abi::RegisterSet written = joined(code.clobbers, environment.saved);
  if (written != prepared.clobbers) code = lower(operations, prepared, environment, written);
  CLEW_ASSERT((code.clobbers.bits() & ~written.bits()) == 0);
  code.clobbers = written;
  return code;
}

// Most bodies call seldom, and save the less the more a call keeps.
Expected<Code> smallest(std::span<const Operation> operations, const Environment& environment) {
  Code code = CLEW_TRY(translate_with(operations, environment, abi::Doors::Keeping));
  if (environment.is_machine || stack_bytes(code) <= abi::kStackBytesWanted) return code;
  Expected<Code> sparing = translate_with(operations, environment, abi::Doors::Sparing);
  if (sparing && stack_bytes(*sparing) < stack_bytes(code)) return sparing;
  return code;
}

}  // namespace

Expected<Code> translate(const isa::Program& program, const Environment& environment,
                         std::span<const uint64_t> site_constants) {
  CLEW_TRY(check(environment));
  const std::vector<Operation> operations =
      unroll(CLEW_TRY(decode(program, environment, site_constants)));
  Environment saving = environment;
  saving.saved = joined(environment.saved, saved_for(operations));
  Code code = CLEW_TRY(smallest(operations, saving));
  if (code.bytes.size() > kBodySizeMax) {
    return fail(ErrorCode::Limit,
                fmt::format("a body of {} bytes, more than {}", code.bytes.size(), kBodySizeMax));
  }
  return code;
}

bool relocate(const Code& code, uint64_t address, std::span<const uint64_t> accessor_entries,
              std::span<uint8_t> bytes) {
  if (bytes.size() != code.bytes.size()) return false;
  for (const CallFixup& call : code.calls) {
    const bool inside = call.offset_bytes + 4 <= bytes.size();
    if (call.door >= accessor_entries.size() || !inside) return false;
    const uint64_t next = address + call.offset_bytes + 4;
    const auto distance = static_cast<int64_t>(accessor_entries[call.door] - next);
    if (distance != static_cast<int32_t>(distance)) return false;
    for (uint32_t i = 0; i < 4; ++i) {
      bytes[call.offset_bytes + i] =
          static_cast<uint8_t>(static_cast<uint64_t>(distance) >> (8 * i));
    }
  }
  return true;
}

}  // namespace clew::native

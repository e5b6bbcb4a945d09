// SPDX-License-Identifier: Apache-2.0
// Reads the fields of BPF instructions (RFC 9669, 3 to 5) into operations.
#include "native/operation.h"

#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "abi/machine/process.h"

namespace clew::native {
namespace {

using isa::Instruction;

constexpr uint32_t kNoTarget = std::numeric_limits<uint32_t>::max();
constexpr uint8_t kFramePointer = 10;

bool is_machine_accessor(uint32_t number) {
  return number >= abi::kMachineAccessorBase && number < abi::kMachineProcessAccessorsEnd;
}

// How many of r2 to r5 an accessor of D reads.
uint32_t machine_argument_count(uint32_t number) {
  using abi::MachineAccessor;
  using abi::MachineProcessAccessor;
  constexpr auto kFirst = static_cast<uint32_t>(MachineProcessAccessor::Begin);
  if (number >= kFirst) {
    constexpr uint8_t kOfProcess[] = {2, 3, 0, 0, 0, 0, 2};  // Begin to Clear.
    return number - kFirst < std::size(kOfProcess) ? kOfProcess[number - kFirst] : 2;
  }
  constexpr uint8_t kCounts[] = {
#define CLEW_MACHINE_ACCESSOR(name, in_kernel, in_process, arguments) arguments,
#include "abi/machine/accessors.def"
  };
  return kCounts[number - abi::kMachineAccessorBase];
}

uint64_t sign_extend(int32_t value) {
  return static_cast<uint64_t>(int64_t{value});
}

tl::unexpected<Error> refuse(size_t index, std::string_view why) {
  return fail(ErrorCode::InvalidQuery, fmt::format("instruction {}: {}", index, why));
}

struct Decoder {
  const isa::Program& program;
  const Environment& environment;
  std::span<const uint64_t> site_constants;
  std::vector<Operation> operations = {};

  [[nodiscard]] uint32_t target(size_t index, int64_t distance) const {
    const int64_t to = static_cast<int64_t>(index) + 1 + distance;
    const bool inside = to >= 0 && to < static_cast<int64_t>(program.code.size());
    return inside ? static_cast<uint32_t>(to) : kNoTarget;
  }

  Expected<Operation> arithmetic(size_t index, const Instruction& i) const;
  Expected<Operation> swap(size_t index, const Instruction& i) const;
  Expected<Operation> branch(size_t index, const Instruction& i) const;
  Expected<Operation> call(size_t index, const Instruction& i) const;
  Expected<Operation> memory(size_t index, const Instruction& i) const;
  Expected<Operation> atomic(size_t index, const Instruction& i, Operation op) const;
  Expected<Operation> load64(size_t index) const;
  Expected<Operation> one(size_t index) const;
  Expected<void> all();
  [[nodiscard]] Expected<void> check_flow() const;
};

Expected<Operation> Decoder::swap(size_t index, const Instruction& i) const {
  Operation op;
  op.kind = OperationKind::Swap;
  op.destination = i.destination();
  const bool wide = isa::class_of(i) == isa::Class::Alu64;
  op.reversed = wide || isa::has_register_source(i);
  if (wide && isa::has_register_source(i)) return refuse(index, "unknown instruction");
  if (i.immediate != 16 && i.immediate != 32 && i.immediate != 64) {
    return refuse(index, "byte swap of a width other than 16, 32 and 64");
  }
  op.size_bytes = static_cast<uint8_t>(i.immediate / 8);
  return op;
}

Expected<Operation> Decoder::arithmetic(size_t index, const Instruction& i) const {
  Operation op;
  op.wide = isa::class_of(i) == isa::Class::Alu64;
  op.has_source = isa::has_register_source(i);
  op.destination = i.destination();
  op.source = i.source();
  op.immediate = sign_extend(i.immediate);
  op.alu = isa::alu_of(i);
  op.kind = OperationKind::Binary;
  switch (op.alu) {
    case isa::Alu::Swap:
      return swap(index, i);
    case isa::Alu::Negate:
      op.kind = OperationKind::Negate;
      return op;
    case isa::Alu::Move: {
      const bool known = i.offset == 8 || i.offset == 16 || (i.offset == 32 && op.wide);
      if (i.offset != 0 && (!known || !op.has_source)) return refuse(index, "unknown move");
      op.kind = i.offset == 0 ? OperationKind::Move : OperationKind::MoveSigned;
      op.size_bytes = static_cast<uint8_t>(i.offset / 8);
      return op;
    }
    case isa::Alu::Divide:
    case isa::Alu::Modulo:
      op.is_signed = i.offset == 1;
      return op;
    case isa::Alu::Add:
    case isa::Alu::Subtract:
    case isa::Alu::Multiply:
    case isa::Alu::Or:
    case isa::Alu::And:
    case isa::Alu::ShiftLeft:
    case isa::Alu::ShiftRight:
    case isa::Alu::ShiftRightSigned:
    case isa::Alu::Xor:
      return op;
  }
  return refuse(index, "unknown arithmetic instruction");
}

Expected<Operation> Decoder::call(size_t index, const Instruction& i) const {
  const auto number = static_cast<uint32_t>(i.immediate);
  if (isa::has_register_source(i)) return refuse(index, "a call through a register");
  if (i.source() != static_cast<uint8_t>(isa::CallKind::Accessor)) {
    return refuse(index, "a call of a function of the program; inline it");
  }
  const bool is_machine = environment.is_machine && is_machine_accessor(number);
  if (number >= abi::kAccessorCount && !is_machine) {
    return refuse(index, "a call of an unknown accessor");
  }
  Operation op;
  op.kind = OperationKind::Call;
  op.accessor = static_cast<abi::Accessor>(number);
  return op;
}

Expected<Operation> Decoder::branch(size_t index, const Instruction& i) const {
  Operation op;
  op.wide = isa::class_of(i) == isa::Class::Jump64;
  op.jump = isa::jump_of(i);
  op.has_source = isa::has_register_source(i);
  op.destination = i.destination();
  op.source = i.source();
  op.immediate = sign_extend(i.immediate);
  if (!op.wide && (op.jump == isa::Jump::Call || op.jump == isa::Jump::Exit)) {
    return refuse(index, "unknown jump");
  }
  switch (op.jump) {
    case isa::Jump::Call:
      return call(index, i);
    case isa::Jump::Exit:
      op.kind = OperationKind::Exit;
      return op;
    case isa::Jump::Always:
      op.kind = OperationKind::Jump;
      op.target = target(index, op.wide ? int64_t{i.offset} : int64_t{i.immediate});
      return op;
    case isa::Jump::Equal:
    case isa::Jump::Greater:
    case isa::Jump::GreaterOrEqual:
    case isa::Jump::BitsSet:
    case isa::Jump::NotEqual:
    case isa::Jump::SignedGreater:
    case isa::Jump::SignedGreaterOrEqual:
    case isa::Jump::Less:
    case isa::Jump::LessOrEqual:
    case isa::Jump::SignedLess:
    case isa::Jump::SignedLessOrEqual:
      op.kind = OperationKind::Branch;
      op.target = target(index, i.offset);
      return op;
  }
  return refuse(index, "unknown jump");
}

Expected<Operation> Decoder::atomic(size_t index, const Instruction& i, Operation op) const {
  op.kind = OperationKind::Atomic;
  op.atomic = static_cast<isa::Atomic>(i.immediate);
  op.wide = op.size_bytes == 8;
  if (op.size_bytes < 4) return refuse(index, "atomic operation on less than 32 bits");
  switch (op.atomic) {
    case isa::Atomic::Add:
    case isa::Atomic::Or:
    case isa::Atomic::And:
    case isa::Atomic::Xor:
    case isa::Atomic::FetchAdd:
    case isa::Atomic::FetchOr:
    case isa::Atomic::FetchAnd:
    case isa::Atomic::FetchXor:
    case isa::Atomic::Exchange:
    case isa::Atomic::CompareExchange:
      return op;
  }
  return refuse(index, "unknown atomic operation");
}

Expected<Operation> Decoder::memory(size_t index, const Instruction& i) const {
  const isa::Class group = isa::class_of(i);
  const isa::Mode mode = isa::mode_of(i);
  Operation op;
  op.destination = i.destination();
  op.source = i.source();
  op.offset_bytes = i.offset;
  op.size_bytes = static_cast<uint8_t>(isa::size_bytes(isa::size_of(i)));
  if (group == isa::Class::Ldx && (mode == isa::Mode::Memory || mode == isa::Mode::MemorySigned)) {
    op.kind = OperationKind::Load;
    op.is_signed = mode == isa::Mode::MemorySigned;
    if (op.is_signed && op.size_bytes == 8) return refuse(index, "unknown load");
    return op;
  }
  if (group == isa::Class::Stx && mode == isa::Mode::Atomic) return atomic(index, i, op);
  if (group != isa::Class::Ldx && mode == isa::Mode::Memory) {
    op.kind = OperationKind::Store;
    op.has_source = group == isa::Class::Stx;
    op.immediate = sign_extend(i.immediate);
    return op;
  }
  return refuse(index, "unknown load or store");
}

Expected<Operation> Decoder::load64(size_t index) const {
  const Instruction& low = program.code[index];
  if (index + 1 >= program.code.size()) return refuse(index, "half of a 64-bit load");
  const Instruction& high = program.code[index + 1];
  if (high.opcode != 0 || high.registers != 0 || high.offset != 0) {
    return refuse(index, "the second half of a 64-bit load is not zero");
  }
  Operation op;
  op.kind = OperationKind::Move;
  op.destination = low.destination();
  const auto value = static_cast<uint32_t>(low.immediate);
  switch (static_cast<isa::Load64>(low.source())) {
    case isa::Load64::Immediate:
      op.immediate = value | uint64_t{static_cast<uint32_t>(high.immediate)} << 32;
      return op;
    case isa::Load64::Window:
      op.immediate = value;
      return op;
    case isa::Load64::SiteConstant:
      if (value >= site_constants.size()) return refuse(index, "a site constant that is not given");
      op.immediate = site_constants[value];
      return op;
    case isa::Load64::Global:
      if (value >= environment.globals_bytes) return refuse(index, "an address behind the globals");
      op.immediate = uint64_t{environment.globals_address} + value;
      return op;
    case isa::Load64::Context:
      op.is_context = true;
      return op;
  }
  return refuse(index, "unknown 64-bit load");
}

Expected<Operation> Decoder::one(size_t index) const {
  const Instruction& i = program.code[index];
  if (i.destination() > kFramePointer) return refuse(index, "unknown register");
  switch (isa::class_of(i)) {
    case isa::Class::Ld:
      if (i.opcode == isa::kLoad64Opcode) return load64(index);
      return refuse(index, "unknown load");
    case isa::Class::Alu32:
    case isa::Class::Alu64:
      if (i.source() > kFramePointer) return refuse(index, "unknown register");
      return arithmetic(index, i);
    case isa::Class::Jump64:
    case isa::Class::Jump32:
      if (i.source() > kFramePointer) return refuse(index, "unknown register");
      return branch(index, i);
    case isa::Class::Ldx:
    case isa::Class::St:
    case isa::Class::Stx:
      if (i.source() > kFramePointer) return refuse(index, "unknown register");
      return memory(index, i);
  }
  return refuse(index, "unknown instruction");
}

bool writes_register(const Operation& op) {
  switch (op.kind) {
    case OperationKind::Move:
    case OperationKind::MoveSigned:
    case OperationKind::Binary:
    case OperationKind::Negate:
    case OperationKind::Swap:
    case OperationKind::Load:
      return true;
    case OperationKind::Nothing:
    case OperationKind::Store:
    case OperationKind::Atomic:
    case OperationKind::Branch:
    case OperationKind::Jump:
    case OperationKind::Call:
    case OperationKind::Exit:
      return false;
  }
  return false;
}

Expected<void> Decoder::all() {
  operations.reserve(program.code.size());
  while (operations.size() < program.code.size()) {
    const size_t index = operations.size();
    const Operation op = CLEW_TRY(one(index));
    const bool fetches = op.kind == OperationKind::Atomic && op.source == kFramePointer;
    if (fetches || (writes_register(op) && op.destination == kFramePointer)) {
      return refuse(index, "a write of r10");
    }
    operations.push_back(op);
    if (program.code[index].opcode == isa::kLoad64Opcode) operations.emplace_back();
  }
  return check_flow();
}

Expected<void> Decoder::check_flow() const {
  for (size_t index = 0; index < operations.size(); ++index) {
    const Operation& op = operations[index];
    const bool jumps = op.kind == OperationKind::Jump || op.kind == OperationKind::Branch;
    if (!jumps) continue;
    if (op.target == kNoTarget) return refuse(index, "a jump out of the program");
    if (operations[op.target].kind == OperationKind::Nothing) {
      return refuse(index, "a jump into a 64-bit load");
    }
  }
  const OperationKind last = operations.empty() ? OperationKind::Nothing : operations.back().kind;
  if (last != OperationKind::Exit && last != OperationKind::Jump) {
    return refuse(operations.size(), "the program runs past its end");
  }
  return {};
}

}  // namespace

Expected<std::vector<Operation>> decode(const isa::Program& program, const Environment& environment,
                                        std::span<const uint64_t> site_constants) {
  if (program.code.size() > isa::kInstructionsMax) {
    return fail(ErrorCode::Limit, fmt::format("a program of {} instructions, more than {}",
                                              program.code.size(), isa::kInstructionsMax));
  }
  Decoder decoder{.program = program, .environment = environment, .site_constants = site_constants};
  CLEW_TRY(decoder.all());
  return std::move(decoder.operations);
}

namespace {

uint32_t argument_count(abi::Accessor accessor) {
  switch (accessor) {
    case abi::Accessor::Time:
    case abi::Accessor::Cpu:
    case abi::Accessor::ContextOpen:
      return 0;
    case abi::Accessor::BitLength:
    case abi::Accessor::RecordPut:
    case abi::Accessor::RecordTake:
    case abi::Accessor::RecordDrop:
    case abi::Accessor::RecordTakeLeft:
      return 1;
    case abi::Accessor::DivideUnsigned:
    case abi::Accessor::ModuloUnsigned:
    case abi::Accessor::DivideSigned:
    case abi::Accessor::ModuloSigned:
      return 2;
    case abi::Accessor::TryRead:
    case abi::Accessor::TryReadString:
    case abi::Accessor::TableFind:
    case abi::Accessor::ContextAct:
      return 3;
    case abi::Accessor::WalkWithin:
      return 4;
    case abi::Accessor::WalkStack:
    case abi::Accessor::WalkLeft:
      return 5;
  }
  return 0;
}

}  // namespace

uint16_t argument_registers(abi::Accessor accessor) {
  const auto number = static_cast<uint32_t>(accessor);
  const bool is_machine = is_machine_accessor(number);
  const uint32_t first = is_machine ? 2 : 1;
  const uint32_t count = is_machine ? machine_argument_count(number) : argument_count(accessor);
  return static_cast<uint16_t>(((1U << count) - 1) << first);
}

bool is_inline(abi::Accessor accessor) {
  return accessor == abi::Accessor::Time || accessor == abi::Accessor::Cpu ||
         accessor == abi::Accessor::BitLength;
}

}  // namespace clew::native

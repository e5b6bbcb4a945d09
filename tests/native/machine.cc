// SPDX-License-Identifier: Apache-2.0
// Memory of a Machine:
//
//     low     one page below 2 GiB: its address is A; SessionEntry::generation stands at A + 64
//     slot    guard page | SlotControl page | window | slack page | guard page
//     code    accessor entries (16 bytes each), then stub and body
#include "machine.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <asm/prctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/calling.h"
#include "abi/region.h"
#include "base/assert.h"

extern "C" {
uint64_t clew_native_enter(uint64_t stub, uint64_t* registers, const uint64_t* arguments);
void clew_native_thunk();
void clew_native_thunk_of_records();
void clew_native_thunk_of_three();
void clew_native_thunk_of_c();
}

namespace clew::native {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kCodeSizeBytes = 128 * 1024;
constexpr uint32_t kGenerationOffset = 64;
constexpr uint32_t kGlobalsOffset = 2048;  // In the same page, to its end.
constexpr uint32_t kEntrySizeBytes = 32;
constexpr uint32_t kStubOffset = 1024;

void put(std::vector<uint8_t>& out, std::initializer_list<uint8_t> bytes) {
  out.insert(out.end(), bytes);
}

void put_address(std::vector<uint8_t>& out, uint64_t value) {
  for (uint32_t i = 0; i < 8; ++i)
    out.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

void put_stack_move(std::vector<uint8_t>& out, uint8_t opcode, abi::Register r) {
  const auto number = static_cast<uint8_t>(r);
  if (number >= 8) out.push_back(0x41);
  out.push_back(static_cast<uint8_t>(opcode + (number & 7U)));
}

// In the order of abi/stub.h.
std::vector<abi::Register> pushed(abi::RegisterSet clobbers) {
  std::vector<abi::Register> order = {abi::Register::R10};
  for (uint32_t n = 0; n < 16; ++n) {
    const auto r = static_cast<abi::Register>(n);
    if (r != abi::Register::R10 && clobbers.has(r)) order.push_back(r);
  }
  return order;
}

// Behind it everything has changed that may.
auto thunk_that_changes(abi::RegisterSet set) {
  if (set.has(abi::Register::R8)) return &clew_native_thunk_of_c;
  if (set.has(abi::Register::R12)) return &clew_native_thunk_of_three;
  return set.has(abi::Register::R11) ? &clew_native_thunk_of_records : &clew_native_thunk;
}

}  // namespace

Expected<std::unique_ptr<Machine>> Machine::make(const MachineOptions& options) {
  std::unique_ptr<Machine> machine(new Machine(options));
  CLEW_TRY(machine->map());
  machine->write_entries();
  return machine;
}

Expected<void> Machine::map() {
  const size_t window = size_t{1} << options_.window_size_log2;
  low_ = {nullptr, kPage};
  slot_ = {nullptr, 4 * kPage + window};
  code_ = {nullptr, kCodeSizeBytes};
  const auto get = [](Mapping& mapping, int protection, int flags) {
    void* start =
        mmap(nullptr, mapping.size_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (start == MAP_FAILED) return false;
    mapping.start = static_cast<uint8_t*>(start);
    return true;
  };
  const bool mapped = get(low_, PROT_READ | PROT_WRITE, MAP_32BIT) && get(slot_, PROT_NONE, 0) &&
                      get(code_, PROT_READ | PROT_WRITE, 0);
  if (!mapped) return fail(ErrorCode::Io, "mmap failed");
  uint8_t* const control = slot_.start + kPage;
  if (mprotect(control, 2 * kPage + window, PROT_READ | PROT_WRITE) != 0) {
    return fail(ErrorCode::Io, "mprotect failed");
  }
  const auto low = reinterpret_cast<uint64_t>(low_.start);
  environment_ = {.point = options_.point,
                  .window_address = static_cast<uint32_t>(low + kPage),
                  .window_size_log2 = options_.window_size_log2,
                  .slot_address = static_cast<uint32_t>(low),
                  .generation_address = static_cast<uint32_t>(low + kGenerationOffset),
                  .fuel = options_.fuel,
                  .globals_address =
                      options_.globals_bytes == 0 ? 0 : static_cast<uint32_t>(low + kGlobalsOffset),
                  .globals_bytes = options_.globals_bytes,
                  .branch_guards = options_.branch_guards};
  const uint64_t base = reinterpret_cast<uint64_t>(control) - low;
  if (syscall(SYS_arch_prctl, ARCH_SET_GS, base) != 0) return fail(ErrorCode::Io, "no gs base");
  return {};
}

Machine::~Machine() {
  syscall(SYS_arch_prctl, ARCH_SET_GS, 0);
  for (const Mapping& mapping : {low_, slot_, code_}) {
    if (mapping.start != nullptr) munmap(mapping.start, mapping.size_bytes);
  }
}

// entry: mov rax, &record ; jmp [rip] -> clew_native_thunk
void Machine::write_entries() {
  std::vector<uint8_t> text;
  for (uint32_t k = 0; k < abi::kDoorCount; ++k) {
    records_[k] = {.handler = &Machine::on_call,
                   .machine = this,
                   .accessor = static_cast<abi::Accessor>(abi::accessor_behind(k))};
    entries_[k] = reinterpret_cast<uint64_t>(code_.start) + k * kEntrySizeBytes;
    callees_[k] = {entries_[k], abi::changed_by(k), abi::saved_for(k)};
    put(text, {0x48, 0xB8});
    put_address(text, reinterpret_cast<uint64_t>(&records_[k]));
    put(text, {0xFF, 0x25, 0, 0, 0, 0});
    put_address(text, reinterpret_cast<uint64_t>(thunk_that_changes(abi::changed_by(k))));
    text.resize((k + 1) * kEntrySizeBytes, 0xCC);
  }
  std::copy(text.begin(), text.end(), code_.start);
}

uint64_t Machine::on_call(const CallRecord* record, const uint64_t* arguments) {
  isa::Arguments copy;
  std::copy_n(arguments, copy.size(), copy.begin());
  return record->machine->answer(record->accessor, copy);
}

// Written out once more, so that the interpreter's arithmetic is compared with something.
uint64_t Machine::answer(abi::Accessor accessor, const isa::Arguments& arguments) {
  const uint64_t a = arguments[0];
  const uint64_t b = arguments[1];
  const auto x = static_cast<int64_t>(a);
  const auto y = static_cast<int64_t>(b);
  switch (accessor) {
    case abi::Accessor::DivideUnsigned:
      return b == 0 ? 0 : a / b;
    case abi::Accessor::ModuloUnsigned:
      return b == 0 ? a : a % b;
    case abi::Accessor::DivideSigned:
      if (b == 0) return 0;
      return y == -1 ? 0 - a : static_cast<uint64_t>(x / y);
    case abi::Accessor::ModuloSigned:
      if (b == 0) return a;
      return y == -1 ? 0 : static_cast<uint64_t>(x % y);
    case abi::Accessor::Time:
    case abi::Accessor::Cpu:
    case abi::Accessor::BitLength:
    case abi::Accessor::TryRead:
    case abi::Accessor::TryReadString:
    case abi::Accessor::TableFind:
    case abi::Accessor::RecordPut:
    case abi::Accessor::RecordTake:
    case abi::Accessor::RecordDrop:
    case abi::Accessor::RecordTakeLeft:
    case abi::Accessor::WalkStack:
    case abi::Accessor::WalkWithin:
    case abi::Accessor::WalkLeft:
    case abi::Accessor::ContextOpen:
    case abi::Accessor::ContextAct:
      break;
  }
  if (host_ == nullptr) return 0;
  isa::Window memory(window());
  const Expected<uint64_t> result = host_->call(accessor, arguments, memory);
  return result ? *result : 0;
}

verify::Policy Machine::policy(abi::RegisterSet clobbers) const {
  const uint32_t saved = 8 * abi::saved_count(clobbers);
  uint32_t above = 0;
  if (options_.point == PointKind::Entry) above = 8 + 8 * abi::kStackArgumentsMax;
  if (options_.point == PointKind::Exit) above = 8;
  return {.address = reinterpret_cast<uint64_t>(code_.start) + body_offset(clobbers),
          .window_address = environment_.window_address,
          .window_size_log2 = environment_.window_size_log2,
          .slot_address = environment_.slot_address,
          .generation_address = environment_.generation_address,
          .globals_address = environment_.globals_address,
          .globals_bytes = environment_.globals_bytes,
          .stack_readable_bytes = saved + above,
          .stack_mapped_bytes = saved + above,
          .clobbers = clobbers,
          .callees = callees_,
          .fuel_max = options_.fuel,
          .facts = facts_,
          .time_is_readable = true,
          .cpu_is_readable = true,
          .branch_guards = options_.branch_guards};
}

std::span<uint8_t> Machine::window() {
  return {slot_.start + 2 * kPage, size_t{1} << options_.window_size_log2};
}

std::span<uint8_t> Machine::globals() {
  return {low_.start + kGlobalsOffset, options_.globals_bytes};
}

std::span<uint8_t> Machine::slack() {
  return {window().data() + window().size(), abi::kWindowSlackBytes};
}

abi::SlotControl& Machine::slot() {
  return *reinterpret_cast<abi::SlotControl*>(slot_.start + kPage);
}

void Machine::set_generation(uint32_t generation) {
  std::memcpy(low_.start + kGenerationOffset, &generation, sizeof(generation));
}

uint64_t Machine::stub_address() const {
  return reinterpret_cast<uint64_t>(code_.start) + kStubOffset;
}

uint32_t Machine::body_offset(abi::RegisterSet clobbers) const {
  std::vector<uint8_t> prologue;
  for (const abi::Register r : pushed(clobbers))
    put_stack_move(prologue, 0x50, r);
  return kStubOffset + static_cast<uint32_t>(prologue.size());
}

void Machine::write_stub(std::span<const uint8_t> body, abi::RegisterSet clobbers) {
  std::vector<uint8_t> text;
  std::vector<abi::Register> order = pushed(clobbers);
  for (const abi::Register r : order)
    put_stack_move(text, 0x50, r);
  const size_t body_start = text.size();
  text.insert(text.end(), body.begin(), body.end());
  std::reverse(order.begin(), order.end());
  for (const abi::Register r : order)
    put_stack_move(text, 0x58, r);
  put(text, {0xC3});
  CLEW_ASSERT(kStubOffset + text.size() <= code_.size_bytes);
  CLEW_ASSERT(mprotect(code_.start, code_.size_bytes, PROT_READ | PROT_WRITE) == 0);
  std::copy(text.begin(), text.end(), code_.start + kStubOffset);
  CLEW_ASSERT(mprotect(code_.start, code_.size_bytes, PROT_READ | PROT_EXEC) == 0);
  body_ = {code_.start + kStubOffset + body_start, body.size()};
}

bool Machine::install(const Code& code) {
  std::vector<uint8_t> bytes = code.bytes;
  if (!relocate(code, policy(code.clobbers).address, entries_, bytes)) return false;
  facts_.clear();
  for (const DeclaredFact& fact : code.facts)
    facts_.push_back({fact.offset_bytes, fact.in, fact.high});
  write_stub(bytes, code.clobbers);
  return true;
}

void Machine::install_bytes(std::span<const uint8_t> bytes, abi::RegisterSet clobbers) {
  write_stub(bytes, clobbers);
}

RegisterFile Machine::run(const RegisterFile& before, const RunArguments& arguments) {
  RegisterFile registers = before;
  frame_ = clew_native_enter(stub_address(), registers.data(), arguments.stack.data());
  return registers;
}

}  // namespace clew::native

// SPDX-License-Identifier: Apache-2.0
// What does one hit of a body cost? ns per call of a stub that saves and restores as abi/stub.h
// says; the owner check of a real trampoline (about 1.3 ns) is not in it. Baseline: BM_EmptyBody,
// the call of a stub around nothing. The spread comes with --benchmark_repetitions.
#include <cstdlib>
#include <memory>

#include <benchmark/benchmark.h>

#include "isa/accessor_host.h"
#include "isa/builder.h"
#include "machine.h"
#include "native/print.h"

namespace clew::native {
namespace {

using isa::Alu;
using isa::Builder;
using isa::Jump;
using isa::Label;
using isa::Register;
using isa::Size;

constexpr uint32_t kCell = 1024;
constexpr uint32_t kTable = 4096;
constexpr uint32_t kRing = 8192;

void add_cell(Builder& b, int32_t offset) {
  b.load(Size::Double, Register::R2, Register::R9, offset)
      .alu(Alu::Add, Register::R2, 1)
      .store(Size::Double, Register::R9, offset, Register::R2);
}

isa::Program finish(Builder& b) {
  b.move(Register::R0, 0).exit();
  return *b.finish("benchmark");
}

isa::Program empty_program() {
  Builder b;
  return finish(b);
}

isa::Program count_program() {
  Builder b;
  b.load_window(Register::R9, kCell);
  add_cell(b, 0);
  return finish(b);
}

isa::Program average_program() {
  Builder b;
  b.load_window(Register::R9, kCell);
  add_cell(b, 0);
  b.load(Size::Double, Register::R0, Register::R1, 0)
      .load(Size::Double, Register::R2, Register::R9, 8)
      .alu(Alu::Add, Register::R2, Register::R0)
      .store(Size::Double, Register::R9, 8, Register::R2);
  return finish(b);
}

isa::Program quantize_program() {
  Builder b;
  b.load(Size::Double, Register::R1, Register::R1, 0)
      .call(abi::Accessor::BitLength)
      .alu(Alu::ShiftLeft, Register::R0, 3)
      .load_window(Register::R3, kCell)
      .alu(Alu::Add, Register::R3, Register::R0)
      .load(Size::Double, Register::R2, Register::R3, 0)
      .alu(Alu::Add, Register::R2, 1)
      .store(Size::Double, Register::R3, 0, Register::R2);
  return finish(b);
}

void hash_step(Builder& b) {
  b.alu(Alu::Xor, Register::R0, Register::R2);
  for (const uint64_t multiplier : {0xFF51'AFD7'ED55'8CCDU, 0xC4CE'B9FE'1A85'EC53U}) {
    b.load_constant(Register::R3, multiplier)
        .alu(Alu::Multiply, Register::R0, Register::R3)
        .move(Register::R3, Register::R0)
        .alu(Alu::ShiftRight, Register::R3, 32)
        .alu(Alu::Xor, Register::R0, Register::R3);
  }
}

// count() by arg0, as src/plan lowers it: 256 entries of (hash, key, count).
isa::Program group_program() {
  Builder b;
  const Label slow = b.label();
  const Label found = b.label();
  const Label done = b.label();
  b.move(Register::R6, Register::R1)
      .load(Size::Double, Register::R0, Register::R6, 0)
      .store(Size::Double, Register::R10, -8, Register::R0)
      .load_constant(Register::R0, 0x9E37'79B9'7F4A'7C15)
      .load(Size::Double, Register::R2, Register::R10, -8);
  hash_step(b);
  b.load_window(Register::R3, offsetof(abi::RegionHeader, table_half))
      .load(Size::Double, Register::R3, Register::R3, 0)
      .move(Register::R4, Register::R0)
      .alu(Alu::ShiftRight, Register::R4, 1)
      .alu(Alu::Or, Register::R4, Register::R3)
      .alu(Alu::ShiftRight, Register::R4, 55)
      .alu(Alu::Multiply, Register::R4, 24)
      .load_window(Register::R5, kTable)
      .alu(Alu::Add, Register::R5, Register::R4)
      .alu(Alu::Or, Register::R0, 1)
      .load(Size::Double, Register::R3, Register::R5, 0)
      .jump_if(Jump::NotEqual, Register::R3, Register::R0, slow)
      .load(Size::Double, Register::R2, Register::R10, -8)
      .load(Size::Double, Register::R3, Register::R5, 8)
      .jump_if(Jump::NotEqual, Register::R3, Register::R2, slow)
      .move(Register::R9, Register::R5)
      .alu(Alu::Add, Register::R9, 16)
      .bind(found);
  add_cell(b, 0);
  b.bind(done);
  b.move(Register::R0, 0).exit();
  b.bind(slow)
      .move(Register::R1, 0)
      .move(Register::R2, Register::R10)
      .alu(Alu::Add, Register::R2, -8)
      .move(Register::R3, Register::R0)
      .call(abi::Accessor::TableFind)
      .jump_if(Jump::Equal, Register::R0, 0, done)
      .move(Register::R9, Register::R0)
      .jump(found);
  return *b.finish("group");
}

// A ring record of 32 bytes: header, time, two arguments.
isa::Program event_program() {
  Builder b;
  const Label full = b.label();
  b.move(Register::R6, Register::R1)
      .load_window(Register::R2, offsetof(abi::RegionHeader, ring_head))
      .load(Size::Double, Register::R3, Register::R2, 0)
      .load(Size::Double, Register::R4, Register::R2, 8)
      .move(Register::R5, Register::R3)
      .alu(Alu::Subtract, Register::R5, Register::R4)
      .jump_if(Jump::Equal, Register::R5, -1, full)
      .alu(Alu::And, Register::R3, 4095)
      .load_window(Register::R9, kRing)
      .alu(Alu::Add, Register::R9, Register::R3)
      .load_constant(Register::R0, uint64_t{1} << 32 | 32)
      .store(Size::Double, Register::R9, 0, Register::R0)
      .call(abi::Accessor::Time)
      .store(Size::Double, Register::R9, 8, Register::R0)
      .load(Size::Double, Register::R0, Register::R6, 0)
      .store(Size::Double, Register::R9, 16, Register::R0)
      .load(Size::Double, Register::R0, Register::R6, 8)
      .store(Size::Double, Register::R9, 24, Register::R0)
      .load_window(Register::R2, offsetof(abi::RegionHeader, ring_head))
      .load(Size::Double, Register::R3, Register::R2, 0)
      .alu(Alu::Add, Register::R3, 32)
      .store(Size::Double, Register::R2, 0, Register::R3)
      .bind(full);
  return finish(b);
}

isa::Program time_program() {
  Builder b;
  b.call(abi::Accessor::Time)
      .load_window(Register::R9, kCell)
      .store(Size::Double, Register::R9, 0, Register::R0);
  return finish(b);
}

void run(benchmark::State& state, const isa::Program& program) {
  auto machine = Machine::make({.point = PointKind::Entry, .window_size_log2 = 14});
  if (!machine) return state.SkipWithError("no machine");
  Machine& on = **machine;
  abi::RegionLayout layout = {};
  layout.size_log2 = 14;
  layout.table_count = 1;
  layout.tables[0] = {.offset = kTable, .entries_log2 = 8, .key_words = 1, .cell_words = 1};
  isa::RegionHost host(layout);
  on.set_host(&host);
  const auto code = translate(program, on.environment(), {});
  if (!code || !on.install(*code)) return state.SkipWithError("not translated");
  if (!verify::check(on.body(), on.policy(code->clobbers))) return state.SkipWithError("refused");
  state.SetLabel(std::to_string(code->bytes.size()) + " bytes" +
                 (code->guarded ? ", guarded" : ""));
  if (std::getenv("CLEW_PRINT_BODIES") != nullptr) std::fputs(print(*code).c_str(), stderr);
  const auto call = reinterpret_cast<void (*)(uint64_t, uint64_t)>(on.stub_address());
  uint64_t argument = 0;
  for (auto _ : state) {
    call(argument & 15, argument);
    ++argument;
  }
}

void check_only(benchmark::State& state, const isa::Program& program) {
  auto machine = Machine::make({});
  if (!machine) return state.SkipWithError("no machine");
  Machine& on = **machine;
  const auto code = translate(program, on.environment(), {});
  if (!code || !on.install(*code)) return state.SkipWithError("not translated");
  const verify::Policy policy = on.policy(code->clobbers);
  for (auto _ : state) {
    benchmark::DoNotOptimize(verify::check(on.body(), policy));
  }
}

void translate_only(benchmark::State& state, const isa::Program& program) {
  const Environment environment = {.window_address = 0x1000'1000,
                                   .window_size_log2 = 14,
                                   .slot_address = 0x1000'0000,
                                   .generation_address = 0x1000'0040};
  for (auto _ : state) {
    benchmark::DoNotOptimize(translate(program, environment, {}));
  }
}

void BM_EmptyBody(benchmark::State& state) {
  run(state, empty_program());
}
void BM_Count(benchmark::State& state) {
  run(state, count_program());
}
void BM_Average(benchmark::State& state) {
  run(state, average_program());
}
void BM_Quantize(benchmark::State& state) {
  run(state, quantize_program());
}
void BM_CountByArgument(benchmark::State& state) {
  run(state, group_program());
}
void BM_Event32Bytes(benchmark::State& state) {
  run(state, event_program());
}
void BM_Time(benchmark::State& state) {
  run(state, time_program());
}
void BM_TranslateCount(benchmark::State& state) {
  translate_only(state, count_program());
}
void BM_TranslateGroup(benchmark::State& state) {
  translate_only(state, group_program());
}
void BM_CheckCount(benchmark::State& state) {
  check_only(state, count_program());
}
void BM_CheckGroup(benchmark::State& state) {
  check_only(state, group_program());
}
BENCHMARK(BM_EmptyBody);
BENCHMARK(BM_Count);
BENCHMARK(BM_Average);
BENCHMARK(BM_Quantize);
BENCHMARK(BM_CountByArgument);
BENCHMARK(BM_Event32Bytes);
BENCHMARK(BM_Time);
BENCHMARK(BM_TranslateCount);
BENCHMARK(BM_TranslateGroup);
BENCHMARK(BM_CheckCount);
BENCHMARK(BM_CheckGroup);

}  // namespace
}  // namespace clew::native

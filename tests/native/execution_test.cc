// SPDX-License-Identifier: Apache-2.0
// Native code against the interpreter: the public conformance vectors, random programs, context.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "isa/assembler.h"
#include "isa/conformance_vectors.h"
#include "isa/interpreter.h"
#include "isa/random_program.h"
#include "machine.h"
#include "native/analysis.h"
#include "trial.h"

namespace clew::native {
namespace {

using isa::Instruction;

// r1 = window pointer, r2 = length, then the program.
isa::Program with_arguments(const std::vector<Instruction>& code, uint32_t pointer,
                            uint32_t length) {
  isa::Program out;
  out.code.push_back(
      {.opcode = 0x18, .registers = 0x11, .immediate = static_cast<int32_t>(pointer)});
  out.code.push_back({});
  out.code.push_back(
      {.opcode = 0xB7, .registers = 0x02, .immediate = static_cast<int32_t>(length)});
  out.code.insert(out.code.end(), code.begin(), code.end());
  return out;
}

struct Refusal {
  const char* vector;
  const char* reason;
};

// Vectors that run in the interpreter and are refused as native code, by design.
constexpr Refusal kRefused[] = {
    {"callx", "a call through a register"},
    {"rfc9669_call_local", "a call of a function of the program; inline it"},
};

bool is_refused(const std::string& name) {
  return std::any_of(std::begin(kRefused), std::end(kRefused),
                     [&](const Refusal& refusal) { return name == refusal.vector; });
}

TEST(NativeConformance, EveryVectorGivesItsResult) {
  const std::string folder = CLEW_SOURCE_DIR "/../shared/conformance/bpf";
  const auto vectors = isa::load_conformance_vectors(folder);
  if (!vectors) GTEST_SKIP() << "conformance vectors are absent: " << vectors.error().message;
  const auto on = machine({.window_size_log2 = isa::kVectorWindowSizeLog2, .fuel = 10'000'000});
  uint32_t run = 0;
  for (const isa::ConformanceVector& vector : *vectors) {
    if (vector.code.empty() || !vector.result || is_refused(vector.name)) continue;
    const auto window = on->window();
    std::fill(window.begin(), window.end(), uint8_t{0});
    const bool has_memory = !vector.memory.empty();
    std::copy(vector.memory.begin(), vector.memory.end(),
              window.begin() + isa::kVectorMemoryOffset);
    const isa::Program program =
        storing_result(with_arguments(vector.code, has_memory ? isa::kVectorMemoryOffset : 0,
                                      static_cast<uint32_t>(vector.memory.size())));
    ASSERT_EQ(prepare(*on, program), "") << vector.name;
    const RegisterFile before = marked_registers();
    const RegisterFile after = on->run(before);
    EXPECT_EQ(after, before) << vector.name;
    EXPECT_EQ(word_at(window, kResultOffset), *vector.result) << vector.name;
    ++run;
  }
  EXPECT_EQ(run + std::size(kRefused), vectors->size());
}

TEST(NativeConformance, RefusedVectorsNameTheirReason) {
  const std::string folder = CLEW_SOURCE_DIR "/../shared/conformance/bpf";
  const auto vectors = isa::load_conformance_vectors(folder);
  if (!vectors) GTEST_SKIP() << "conformance vectors are absent: " << vectors.error().message;
  const auto on = machine();
  for (const isa::ConformanceVector& vector : *vectors) {
    if (!is_refused(vector.name) || vector.code.empty()) continue;
    const auto code =
        translate({.name = vector.name, .code = vector.code, .site_constant_count = 0},
                  on->environment(), {});
    EXPECT_FALSE(code.has_value()) << vector.name;
  }
}

// The context of a hit with these registers, as the stub of `point` presents it.
abi::Context context_of(const RegisterFile& registers, PointKind point, uint64_t seed) {
  abi::Context context = {};
  constexpr uint32_t kArgumentRegisters[6] = {7, 6, 2, 1, 8, 9};
  for (uint32_t i = 0; i < 6; ++i)
    context.arguments[i] = registers[kArgumentRegisters[i]];
  if (point == PointKind::Exit) {
    context.return_value = registers[0];
    context.return_value_high = registers[2];
  }
  context.tid = seed % 5 == 0 ? 0 : 4711;
  context.process = 3;
  context.generation = seed % 2;
  for (uint64_t i = 0; i < abi::kStackArgumentsMax; ++i)
    context.stack_arguments[i] = seed * (i + 3);
  for (uint64_t i = 0; i < abi::kVectorArgumentsMax; ++i)
    context.vectors[i] = seed * 0xBF58'476D'1CE4'E5B9 + i;
  context.base_pointer = registers[5];
  context.rbx = registers[3];
  return context;
}

// Loads of context words that `point` lacks become loads of the thread id. Random programs keep the
// context in r9.
void keep_to_point(isa::Program& program, PointKind point) {
  for (Instruction& i : program.code) {
    const bool loads = isa::class_of(i) == isa::Class::Ldx && i.source() == 9;
    if (!loads || context_word(point, static_cast<uint32_t>(i.offset))) continue;
    i.offset = static_cast<int16_t>(offsetof(abi::Context, tid) + i.offset % 8);
  }
}

void fill(std::span<uint8_t> window, uint64_t seed) {
  for (size_t i = 0; i < window.size(); ++i) {
    window[i] = i < 256 ? uint8_t{0} : static_cast<uint8_t>(i * 31 + seed);
  }
}

class NativeRandom : public testing::TestWithParam<PointKind> {};

TEST_P(NativeRandom, ProgramsAgreeWithTheInterpreter) {
  const PointKind point = GetParam();
  const auto on = machine({.point = point});
  std::vector<uint8_t> expected(on->window().size());
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const uint64_t constants[2] = {seed * 0x9E37'79B9'7F4A'7C15, seed % 7};
    isa::Program program = storing_result(isa::random_program(
        {.seed = seed, .steps = 20 + static_cast<uint32_t>(seed % 60), .site_constants = 2}));
    keep_to_point(program, point);
    if (seed % 3 != 0) program = without_constants(program);
    RegisterFile before = marked_registers();
    for (uint64_t& value : before)
      value ^= seed * 0xD6E8'FEB8'6659'FD93;
    before[4] = 0;
    abi::Context context = context_of(before, point, seed);
    fill(expected, seed);
    fill(on->window(), seed);
    on->slot().tid = context.tid == 0 ? abi::kTidUnknown : static_cast<uint32_t>(context.tid);
    on->slot().process = static_cast<uint32_t>(context.process);
    on->set_generation(static_cast<uint32_t>(context.generation));
    ASSERT_EQ(prepare(*on, program, constants), "") << "seed " << seed;
    RunArguments arguments;
    std::copy_n(context.stack_arguments, arguments.stack.size(), arguments.stack.begin());
    std::copy_n(context.vectors, arguments.vectors.size(), arguments.vectors.begin());
    const RegisterFile after = on->run(before, arguments);
    ASSERT_EQ(after, before) << "seed " << seed;
    context.frame = on->frame();
    std::memcpy(&context.caller, reinterpret_cast<const void*>(on->frame()), 8);
    const auto outcome = isa::interpret(
        program, {.window = expected, .context = &context, .site_constants = constants});
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), on->window().begin()))
        << "seed " << seed << " result " << word_at(on->window(), kResultOffset) << " expected "
        << word_at(expected, kResultOffset);
  }
}

INSTANTIATE_TEST_SUITE_P(AtEachPoint, NativeRandom,
                         testing::Values(PointKind::Entry, PointKind::Exit, PointKind::Offset));

isa::Program assembled(std::string_view text) {
  auto program = isa::assemble(text);
  EXPECT_TRUE(program.has_value()) << program.error().message;
  return std::move(*program);
}

TEST(NativeLoops, RunAsOftenAsTheirCounterSays) {
  const auto on = machine();
  ASSERT_EQ(prepare(*on, assembled(R"(
      mov %r3, 1000
      lddw window %r4, 0x400
    again:
      ldxdw %r2, [%r4]
      add %r2, %r3
      stxdw [%r4], %r2
      sub %r3, 1
      jne %r3, 0, again
      mov %r0, 0
      exit)")),
            "");
  const RegisterFile before = marked_registers();
  EXPECT_EQ(on->run(before), before);
  EXPECT_EQ(word_at(on->window(), 0x400), 500'500U);
  EXPECT_EQ(word_at(on->window(), offsetof(abi::RegionHeader, missed_fuel)), 0U);
}

TEST(NativeLoops, EndWithTheirFuelAndAreCounted) {
  const auto on = machine({.fuel = 1000});
  ASSERT_EQ(prepare(*on, assembled(R"(
      lddw window %r4, 0x400
    again:
      ldxdw %r2, [%r4]
      add %r2, 1
      stxdw [%r4], %r2
      ja again)")),
            "");
  const RegisterFile before = marked_registers();
  for (uint64_t hit = 1; hit <= 3; ++hit) {
    EXPECT_EQ(on->run(before), before);
    EXPECT_EQ(word_at(on->window(), offsetof(abi::RegionHeader, missed_fuel)), hit);
  }
  // Five instructions for two turns: sub, js, add, add, jmp.
  EXPECT_EQ(word_at(on->window(), 0x400), 3 * 2 * 200U);
}

// What is between the labels has no effect: both are one place, where each way in must have what is
// declared of either.
TEST(NativeLoops, LabelsOfOnePlaceDeclareWhatHoldsForBoth) {
  const auto on = machine({.branch_guards = true});
  ASSERT_EQ(prepare(*on, assembled(R"(
      ldxdw %r3, [%r1]
      jne %r3, 7, head
      mov %r0, 0
      exit
    head:
      mov %r7, 1
    again:
      sub %r3, 1
      jne %r3, 0, again
      mov %r0, 0
      exit)")),
            "");
  const RegisterFile before = marked_registers();
  EXPECT_EQ(on->run(before), before);
}

// What has no effect is left out; the loop is reached behind it, with a %r2 of which nothing is
// known.
TEST(NativeLoops, AreReachedThroughBlocksWithoutCode) {
  const auto on = machine();
  const isa::Program program = storing_result(assembled(R"(
      ldxdw %r0, [%r1]
      ldxdw %r2, [%r1+8]
      add %r2, %r0
      jgt %r0, 5, empty
      ja next
  empty:
      mov %r6, 0
  next:
      mov %r7, 0
  loop:
      jgt %r0, 700, end
      ldxw %r3, [%r2]
      add %r0, %r3
      add %r0, 1
      jlt %r0, 600, loop
  end:
      exit)"));
  ASSERT_EQ(prepare(*on, program), "");
  RegisterFile before = marked_registers();
  before[7] = 9;
  before[6] = 2048 - 9;
  EXPECT_EQ(on->run(before), before);
  EXPECT_EQ(word_at(on->window(), kResultOffset), 600U);
}

TEST(NativeAccessors, KeepTheRegistersOfTheProgram) {
  const auto on = machine();
  const isa::Program program = storing_result(assembled(R"(
      mov %r6, 600
      mov %r7, 700
      mov %r8, 800
      ldxdw %r9, [%r1]
      ldxdw %r2, [%r1+8]
      mov %r1, %r9
      call divide_unsigned
      add %r0, %r6
      mul %r0, %r7
      sub %r0, %r8
      div %r9, %r0
      mod %r0, 1000
      xor %r0, %r9
      exit)"));
  ASSERT_EQ(prepare(*on, program), "");
  RegisterFile before = marked_registers();
  before[7] = 123'456'789'012'345;
  before[6] = 1'234;
  EXPECT_EQ(on->run(before), before);
  const uint64_t mixed = (before[7] / before[6] + 600) * 700 - 800;
  EXPECT_EQ(word_at(on->window(), kResultOffset), (mixed % 1000) ^ (before[7] / mixed));
}

TEST(NativeAccessors, TablesAndRecordsAreThoseOfTheInterpreter) {
  abi::RegionLayout layout = {};
  layout.size_log2 = 14;
  layout.table_count = 1;
  layout.tables[0] = {.offset = 4096, .entries_log2 = 4, .key_words = 1, .cell_words = 1};
  layout.records = {.offset = 8192, .records_log2 = 3, .payload_words = 1, .reserved = 0};
  const isa::Program program = assembled(R"(
      ldxdw %r6, [%r1]
      and %r6, 31
      stxdw [%r10-8], %r6
      mov %r1, 0
      mov %r2, %r10
      sub %r2, 8
      mov %r3, %r6
      mul %r3, 0x3C6EF372
      lsh %r3, 29
      call table_find
      jeq %r0, 0, full
      ldxdw %r2, [%r0]
      add %r2, 1
      stxdw [%r0], %r2
    full:
      mov %r1, %r6
      lsh %r1, 4
      add %r1, 0x10000
      call record_put
      jeq %r0, 0, done
      stxdw [%r0], %r6
    done:
      mov %r0, 0
      exit)");
  const auto on = machine();
  isa::RegionHost host(layout);
  on->set_host(&host);
  ASSERT_EQ(prepare(*on, program), "");
  std::vector<uint8_t> expected(on->window().size(), 0);
  for (uint64_t hit = 0; hit < 200; ++hit) {
    RegisterFile before = marked_registers();
    before[7] = hit * 7;
    ASSERT_EQ(on->run(before), before);
    const abi::Context context = context_of(before, PointKind::Entry, hit);
    isa::RegionHost reference(layout);
    const auto outcome =
        isa::interpret(program, {.window = expected, .context = &context, .host = &reference});
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  }
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), on->window().begin()));
}

TEST(NativeTime, GrowsAndTheCpuIsKnown) {
  const auto on = machine();
  ASSERT_EQ(prepare(*on, assembled(R"(
      mov %r6, %r1
      call time
      mov %r7, %r0
      call cpu
      lddw window %r2, 0x400
      stxdw [%r2], %r7
      stxdw [%r2+8], %r0
      ldxdw %r3, [%r6+16]
      stxdw [%r2+16], %r3
      mov %r0, 0
      exit)")),
            "");
  const RegisterFile before = marked_registers();
  ASSERT_EQ(on->run(before), before);
  const uint64_t first = word_at(on->window(), 0x400);
  ASSERT_EQ(on->run(before), before);
  EXPECT_GT(word_at(on->window(), 0x400), first);
  EXPECT_LT(word_at(on->window(), 0x408), 4096U);
  EXPECT_EQ(word_at(on->window(), 0x410), before[2]);  // rdx, which rdtsc writes.
}

}  // namespace
}  // namespace clew::native

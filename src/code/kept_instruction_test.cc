// SPDX-License-Identifier: Apache-2.0
#include "code/kept_instruction.h"

#include <vector>

#include <gtest/gtest.h>

namespace clew::code {
namespace {

using abi::Register;

struct Case {
  const char* text;
  std::vector<uint8_t> bytes;
  int32_t back_bytes = 0;
  Register moved = Register::Rsp;
};

TEST(KeptInstruction, CanBeTakenBackOrDoneAgain) {
  const Case cases[] = {
      {"push rbp", {0x55}, 8},
      {"push r15", {0x41, 0x57}, 8},
      {"push rsp", {0x54}, 8},
      {"sub rsp, 8", {0x48, 0x83, 0xec, 0x08}, 8},
      {"sub rsp, 0x1000", {0x48, 0x81, 0xec, 0x00, 0x10, 0x00, 0x00}, 0x1000},
      {"sub rdi, 16", {0x48, 0x83, 0xef, 0x10}, 16, Register::Rdi},
      {"add rdi, 0x100", {0x48, 0x81, 0xc7, 0x00, 0x01, 0x00, 0x00}, -0x100, Register::Rdi},
      {"add r8, -8", {0x49, 0x83, 0xc0, 0xf8}, 8, Register::R8},
      {"add r12, 8", {0x49, 0x83, 0xc4, 0x08}, -8, Register::R12},
      {"mov [rsp - 8], rdi", {0x48, 0x89, 0x7c, 0x24, 0xf8}},
      {"movsd [rsp - 8], xmm0", {0xf2, 0x0f, 0x11, 0x44, 0x24, 0xf8}},
      {"nop", {0x90}},
      {"nop [rax + rax]", {0x0f, 0x1f, 0x44, 0x00, 0x00}},
      {"xor eax, eax", {0x31, 0xc0}},
      {"mov rax, rdi", {0x48, 0x89, 0xf8}},
      {"mov rax, [rdi]", {0x48, 0x8b, 0x07}},
      {"mov eax, 7", {0xb8, 0x07, 0x00, 0x00, 0x00}},
      {"mov rax, fs:[0x28]", {0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0x00, 0x00, 0x00}},
      {"lea rax, [rip]", {0x48, 0x8d, 0x05, 0x00, 0x00, 0x00, 0x00}},
      {"lea r11, [rdi + 8]", {0x4c, 0x8d, 0x5f, 0x08}},
      {"movzx eax, byte [rdi]", {0x0f, 0xb6, 0x07}},
      {"test rdi, rdi", {0x48, 0x85, 0xff}},
      {"cmp rdi, rsi", {0x48, 0x39, 0xf7}},
      {"cmp dword [rdi], 5", {0x83, 0x3f, 0x05}},
  };
  for (const Case& one : cases) {
    const auto kept = kept_instruction(one.bytes);
    ASSERT_TRUE(kept.has_value()) << one.text;
    EXPECT_EQ(kept->length, one.bytes.size()) << one.text;
    EXPECT_EQ(kept->back_bytes, one.back_bytes) << one.text;
    if (one.back_bytes != 0) {
      EXPECT_EQ(kept->moved, one.moved) << one.text;
    }
  }
}

TEST(KeptInstruction, IsNoneThatChangesWhatItReadsOrWhatProbesSee) {
  const Case cases[] = {
      {"mov rdx, rdi", {0x48, 0x89, 0xfa}},
      {"mov rdi, [rdi]", {0x48, 0x8b, 0x3f}},
      {"mov [rdi], rax", {0x48, 0x89, 0x07}},
      {"lock add qword [rdi], 1", {0xf0, 0x48, 0x83, 0x07, 0x01}},
      {"add rax, rdi", {0x48, 0x01, 0xf8}},
      {"add rax, 1", {0x48, 0x83, 0xc0, 0x01}},
      {"mov rax, [rax]", {0x48, 0x8b, 0x00}},
      {"xor edi, edi", {0x31, 0xff}},
      {"xor eax, edi", {0x31, 0xf8}},
      {"cmovz rax, rdi", {0x48, 0x0f, 0x44, 0xc7}},
      {"sbb eax, eax", {0x19, 0xc0}},
      {"mov [rsp - 4], rdi", {0x48, 0x89, 0x7c, 0x24, 0xfc}},
      {"mov [rsp + rax - 8], rdi", {0x48, 0x89, 0x7c, 0x04, 0xf8}},
      {"add qword [rsp - 8], 1", {0x48, 0x83, 0x44, 0x24, 0xf8, 0x01}},
      {"add edi, 1", {0x83, 0xc7, 0x01}},
      {"add di, 1", {0x66, 0x83, 0xc7, 0x01}},
      {"add qword [rdi], 1", {0x48, 0x83, 0x07, 0x01}},
      {"adc rdi, 1", {0x48, 0x83, 0xd7, 0x01}},
      {"sub rsp, -128", {0x48, 0x83, 0xec, 0x80}},
      {"add rsp, 8", {0x48, 0x83, 0xc4, 0x08}},
      {"sub rsp, rax", {0x48, 0x29, 0xc4}},
      {"push 5", {0x6a, 0x05}},
      {"push qword [rdi]", {0xff, 0x37}},
      {"push di", {0x66, 0x57}},
      {"push fs", {0x0f, 0xa0}},
      {"pop rax", {0x58}},
      {"xchg rax, rdi", {0x48, 0x97}},
      {"jmp +0", {0xeb, 0x00}},
      {"call +0", {0xe8, 0x00, 0x00, 0x00, 0x00}},
      {"ret", {0xc3}},
      {"syscall", {0x0f, 0x05}},
      {"rdtsc", {0x0f, 0x31}},
      {"cpuid", {0x0f, 0xa2}},
      {"pxor xmm0, xmm0", {0x66, 0x0f, 0xef, 0xc0}},
      {"int3", {0xcc}},
      {"cld", {0xfc}},
      {"nothing", {}},
      {"half of one", {0x48, 0x83}},
  };
  for (const Case& one : cases)
    EXPECT_FALSE(kept_instruction(one.bytes).has_value()) << one.text;
}

TEST(KeptInstruction, IsTakenBackByAnLea) {
  const auto lea_of = [](Register moved) {
    const TakeBack lea = take_back({.length = 4, .back_bytes = 0x10, .moved = moved});
    return std::vector<uint8_t>(lea.bytes, lea.bytes + lea.size_bytes);
  };
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(lea_of(Register::Rdi), (Bytes{0x48, 0x8d, 0xbf, 0x10, 0, 0, 0}));
  EXPECT_EQ(lea_of(Register::Rsp), (Bytes{0x48, 0x8d, 0xa4, 0x24, 0x10, 0, 0, 0}));
  EXPECT_EQ(lea_of(Register::R9), (Bytes{0x4d, 0x8d, 0x89, 0x10, 0, 0, 0}));
  EXPECT_EQ(lea_of(Register::R12), (Bytes{0x4d, 0x8d, 0xa4, 0x24, 0x10, 0, 0, 0}));
}

// --- done once

ProbeReads registers(std::initializer_list<Register> all) {
  ProbeReads reads;
  for (const Register r : all)
    reads.registers.add(r);
  return reads;
}
const ProbeReads kStack = {.registers = {}, .stack = true};
const ProbeReads kMemory = {.registers = {}, .memory = true};

TEST(LeavesAlone, WhatAProbeDoesNotRead) {
  struct Alone {
    const char* text;
    std::vector<uint8_t> bytes;
    ProbeReads reads;
  };
  const Alone cases[] = {
      {"mov rdi, [rdi]", {0x48, 0x8b, 0x3f}, registers({Register::Rsi, Register::Rax})},
      {"lea rax, [rdi + 1]", {0x48, 0x8d, 0x47, 0x01}, kReadsEverything},
      {"mov esi, 1", {0xbe, 1, 0, 0, 0}, registers({Register::Rdi})},
      {"sub edi, 1", {0x83, 0xef, 0x01}, kMemory},
      {"mov [rdi], rax", {0x48, 0x89, 0x07}, registers({Register::Rdi, Register::Rax})},
      {"lock add qword [rip], 1", {0xf0, 0x48, 0x83, 0x05, 0, 0, 0, 0, 0x01}, kStack},
      {"mov [0], edi", {0x89, 0x3c, 0x25, 0, 0, 0, 0}, kStack},
      {"mov fs:[0], edi", {0x64, 0x89, 0x3c, 0x25, 0, 0, 0, 0}, kStack},
      {"test edi, edi", {0x85, 0xff}, kReadsEverything},
      {"cmp [rdi], esi", {0x39, 0x37}, kReadsEverything},
      {"pxor xmm0, xmm0",
       {0x66, 0x0f, 0xef, 0xc0},
       {.registers = abi::RegisterSet(0xffff), .vectors = 0xfffe}},
      {"ucomisd xmm0, xmm1", {0x66, 0x0f, 0x2e, 0xc1}, kReadsEverything},
      {"endbr64", {0xf3, 0x0f, 0x1e, 0xfa}, kReadsEverything},
  };
  for (const Alone& one : cases)
    EXPECT_TRUE(leaves_alone(one.bytes, one.reads)) << one.text;
}

TEST(LeavesAlone, IsFalseForWhatAProbeReads) {
  struct Changed {
    const char* text;
    std::vector<uint8_t> bytes;
    ProbeReads reads;
  };
  const Changed cases[] = {
      {"mov rdi, [rdi]", {0x48, 0x8b, 0x3f}, registers({Register::Rdi})},
      {"movsxd rdi, edi", {0x48, 0x63, 0xff}, registers({Register::Rdi})},
      {"mov dil, 1", {0x40, 0xb7, 0x01}, registers({Register::Rdi})},
      {"xchg rdi, rsi", {0x48, 0x87, 0xf7}, registers({Register::Rsi})},
      {"mov [rdi], rax", {0x48, 0x89, 0x07}, kMemory},
      {"mov [rdi], rax", {0x48, 0x89, 0x07}, kStack},
      {"mov [rsp + 8], rdi", {0x48, 0x89, 0x7c, 0x24, 0x08}, kStack},
      {"mov [rsp + rax - 8], rdi", {0x48, 0x89, 0x7c, 0x04, 0xf8}, kStack},
      {"mov fs:[rdi], eax", {0x64, 0x89, 0x07}, kStack},
      {"lock add qword [rip], 1", {0xf0, 0x48, 0x83, 0x05, 0, 0, 0, 0, 0x01}, kMemory},
      {"rep stosb", {0xf3, 0xaa}, registers({Register::Rcx})},
      {"pxor xmm0, xmm0", {0x66, 0x0f, 0xef, 0xc0}, {.registers = {}, .vectors = 1}},
      {"vpxor ymm1, ymm1, ymm1", {0xc5, 0xf5, 0xef, 0xc9}, {.registers = {}, .vectors = 2}},
  };
  for (const Changed& one : cases)
    EXPECT_FALSE(leaves_alone(one.bytes, one.reads)) << one.text;
}

TEST(LeavesAlone, IsFalseForWhatMovesTheStackOrGoesElsewhere) {
  const Case cases[] = {
      {"push rbp", {0x55}},
      {"mov [rsp - 8], rdi", {0x48, 0x89, 0x7c, 0x24, 0xf8}},  // Where stubs push.
      {"mov [rsp - 4], rdi", {0x48, 0x89, 0x7c, 0x24, 0xfc}},
      {"mov [rsp + rax], rdi", {0x48, 0x89, 0x3c, 0x04}},
      {"push 5", {0x6a, 0x05}},
      {"sub rsp, rax", {0x48, 0x29, 0xc4}},
      {"lea rsp, [rsp - 8]", {0x48, 0x8d, 0x64, 0x24, 0xf8}},
      {"enter 8, 0", {0xc8, 8, 0, 0}},
      {"std", {0xfd}},
      {"popfq", {0x9d}},
      {"vzeroall", {0xc5, 0xfc, 0x77}},
      {"xrstor [rdi]", {0x0f, 0xae, 0x2f}},
      {"wrgsbase rdi", {0xf3, 0x48, 0x0f, 0xae, 0xdf}},
      {"mov gs, edi", {0x8e, 0xef}},
      {"ldmxcsr [rdi]", {0x0f, 0xae, 0x17}},
      {"syscall", {0x0f, 0x05}},
      {"int3", {0xcc}},
      {"call +0", {0xe8, 0, 0, 0, 0}},
      {"jmp +0", {0xeb, 0x00}},
      {"jrcxz +0", {0xe3, 0x00}},
      {"jz +0", {0x74, 0x00}},
      {"xbegin +0", {0xc7, 0xf8, 0, 0, 0, 0}},
      {"ret", {0xc3}},
      {"nothing", {}},
  };
  for (const Case& one : cases)
    EXPECT_FALSE(leaves_alone(one.bytes, kReadsNothing)) << one.text;
}

}  // namespace
}  // namespace clew::code

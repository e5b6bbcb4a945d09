// SPDX-License-Identifier: Apache-2.0
#include "inline/kept_instruction.h"

#include <vector>

#include <gtest/gtest.h>

namespace clew::inline_ {
namespace {

struct Case {
  const char* text;
  std::vector<uint8_t> bytes;
  uint32_t stack_bytes = 0;
};

TEST(KeptInstruction, MovesTheStackOrCanBeDoneAgain) {
  const Case cases[] = {
      {"push rbp", {0x55}, 8},
      {"push r15", {0x41, 0x57}, 8},
      {"push rsp", {0x54}, 8},
      {"sub rsp, 8", {0x48, 0x83, 0xec, 0x08}, 8},
      {"sub rsp, 0x1000", {0x48, 0x81, 0xec, 0x00, 0x10, 0x00, 0x00}, 0x1000},
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
    EXPECT_EQ(kept->stack_bytes, one.stack_bytes) << one.text;
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

}  // namespace
}  // namespace clew::inline_

// SPDX-License-Identifier: Apache-2.0
#include "kernel/probe_suspects.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "kernel/attach_functions.h"

namespace clew::kernel {
namespace {

std::optional<InstructionClass> class_of(std::initializer_list<uint8_t> code) {
  std::array<uint8_t, 15> bytes = {};
  std::copy(code.begin(), code.end(), bytes.begin());
  return suspect_class(bytes);
}

TEST(ProbeSuspects, OrdinaryInstructionsAreNone) {
  EXPECT_FALSE(class_of({0xf3, 0x0f, 0x1e, 0xfa}));  // endbr64
  EXPECT_FALSE(class_of({0x55}));                    // push %rbp
  EXPECT_FALSE(class_of({0x41, 0x57}));              // push %r15
  EXPECT_FALSE(class_of({0x48, 0x89, 0xe5}));        // mov %rsp, %rbp
  EXPECT_FALSE(class_of({0x66, 0x90}));              // xchg %ax, %ax
  EXPECT_FALSE(class_of({0x0f, 0xb6, 0xc0}));        // movzbl %al, %eax
  EXPECT_FALSE(class_of({0xc5, 0xf8, 0x77}));        // vzeroupper
}

TEST(ProbeSuspects, AreByPrefixOpcodeAndEncoding) {
  const auto locked = class_of({0xf0, 0xff, 0x0f});  // lock decl (%rdi)
  ASSERT_TRUE(locked);
  EXPECT_EQ(class_of({0xf0, 0x48, 0x0f, 0xb1, 0x0f}), locked);
  EXPECT_NE(class_of({0x3e, 0xff, 0xe0}), locked);              // notrack jmp *%rax
  EXPECT_TRUE(class_of({0xf4}));                                // hlt
  EXPECT_TRUE(class_of({0x0f, 0x05}));                          // syscall
  EXPECT_TRUE(class_of({0x0f, 0x0b}));                          // ud2
  EXPECT_TRUE(class_of({0xc5, 0xf9, 0x6e, 0xc6}));              // vmovd %esi, %xmm0
  EXPECT_TRUE(class_of({0x62, 0xf1, 0x7d, 0x48, 0x6f, 0x07}));  // vmovdqa32 (%rdi), %zmm0
  EXPECT_TRUE(class_of({0x66, 0x0f, 0x38, 0x00, 0xc1}));        // pshufb %xmm1, %xmm0
  EXPECT_NE(class_of({0xc5, 0xf9, 0x6e, 0xc6}), class_of({0x6e}));
}

bool misread(std::initializer_list<uint8_t> code) {
  std::array<uint8_t, 15> bytes = {};
  std::copy(code.begin(), code.end(), bytes.begin());
  return is_misread(bytes);
}

TEST(ProbeSuspects, VectorInstructionsAreMisreadByTheirOpcodesAlone) {
  EXPECT_TRUE(misread({0x62, 0xe2, 0x7d, 0x28, 0x7a, 0xce}));  // vpbroadcastb %esi, %ymm17: jp
  EXPECT_TRUE(misread({0xc5, 0xfd, 0x74, 0xc1}));              // vpcmpeqb %ymm1, %ymm0: je
  EXPECT_TRUE(misread({0xc5, 0xfe, 0x7f, 0x07}));              // vmovdqu %ymm0, (%rdi): jg
  EXPECT_TRUE(misread({0xc5, 0xf8, 0xc2, 0xc1, 0x00}));        // vcmpeqps: ret
  EXPECT_FALSE(misread({0xc5, 0xfe, 0x6f, 0x07}));             // vmovdqu (%rdi), %ymm0
  EXPECT_FALSE(misread({0x7a, 0x02}));                         // jp
  EXPECT_FALSE(misread({0xc3}));                               // ret
}

TEST(ProbeSuspects, CutOffInstructionsAreNone) {
  for (size_t size = 0; size < 5; ++size) {
    const std::array<uint8_t, 5> code = {0xf0, 0xf0, 0xf0, 0xf0, 0xf0};
    EXPECT_FALSE(suspect_class(std::span(code).first(size)));
  }
}

// Where the kernel has no links for many, each place is attached by itself.
TEST(ProbeSuspects, ThatAreMisreadAreLeftOutOfPlacesThatAreAttachedSingly) {
  if (!event_type("uprobe")) GTEST_SKIP() << "NOT TESTED: this kernel has no uprobes";
  const std::string path = testing::TempDir() + "probe_suspects_" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << "\x62\xe2\x7d\x28\x7a\xce" << std::string(32, '\x90');
  const FileDescriptor no_program;
  Attachments attachments;
  const auto left_out = attach_user_singly(
      no_program, {.path = path, .places = {{.offset_bytes = 0, .cookie = 7}}}, attachments);
  ASSERT_TRUE(left_out) << left_out.error().message;
  EXPECT_EQ(*left_out, std::vector<uint64_t>{7});
  EXPECT_FALSE(attach_user_singly(
      no_program, {.path = path, .places = {{.offset_bytes = 6, .cookie = 8}}}, attachments));
  EXPECT_TRUE(attachments.empty());
  ASSERT_EQ(unlink(path.c_str()), 0);
}

}  // namespace
}  // namespace clew::kernel

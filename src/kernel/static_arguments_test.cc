// SPDX-License-Identifier: Apache-2.0
// Arguments of static probes: their texts, and a probe of the test itself, whose notes are written
// as the macros of <sys/sdt.h> would write them.
#include "kernel/static_arguments.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "kernel/session_testing.h"
#include "target/static_place.h"
#include "target/usdt.h"

extern "C" {
// Counted up by the kernel while somebody traces the probe.
[[gnu::section(".probes"), gnu::used]] volatile uint16_t clew_test_semaphore = 0;
}

namespace clew::kernel {

using target::parse_static_place;
namespace {

TEST(StaticPlaceTest, RegistersOfEachSizeAreTheSameWord) {
  for (const char* name : {"%rax", "%eax", "%ax", "%al"}) {
    const auto place = parse_static_place(name);
    ASSERT_TRUE(place && place->base) << name;
    EXPECT_EQ(place->base->word, 10);
    EXPECT_EQ(place->base->shift, 0);
    EXPECT_FALSE(place->is_memory);
  }
  EXPECT_EQ(parse_static_place("%bh")->base->word, 5);
  EXPECT_EQ(parse_static_place("%bh")->base->shift, 8);
  EXPECT_EQ(parse_static_place("%sil")->base->word, 13);
  EXPECT_EQ(parse_static_place("%edi")->base->word, 14);
  EXPECT_EQ(parse_static_place("%r8")->base->word, 9);
  EXPECT_EQ(parse_static_place("%r15d")->base->word, 0);
  EXPECT_EQ(parse_static_place("%r10b")->base->word, 7);
  EXPECT_EQ(parse_static_place("%rsp")->base->word, 19);
}

TEST(StaticPlaceTest, ConstantsHaveASign) {
  EXPECT_EQ(parse_static_place("$5")->offset, 5);
  EXPECT_EQ(parse_static_place("$-5")->offset, -5);
  EXPECT_EQ(parse_static_place("$0x10")->offset, 16);
  EXPECT_FALSE(parse_static_place("$5")->is_memory);
}

TEST(StaticPlaceTest, MemoryHasABaseAnIndexAndAScale) {
  const auto plain = parse_static_place("-20(%rbp)");
  ASSERT_TRUE(plain);
  EXPECT_TRUE(plain->is_memory);
  EXPECT_EQ(plain->offset, -20);
  EXPECT_EQ(plain->base->word, 4);
  const auto indexed = parse_static_place("8(%rax,%rbx,4)");
  ASSERT_TRUE(indexed && indexed->index);
  EXPECT_EQ(indexed->index->word, 5);
  EXPECT_EQ(indexed->scale, 4);
  const auto only_index = parse_static_place("16(,%rcx,8)");
  ASSERT_TRUE(only_index);
  EXPECT_FALSE(only_index->base);
  EXPECT_EQ(only_index->scale, 8);
  EXPECT_EQ(parse_static_place("(%rdi)")->offset, 0);
}

TEST(StaticPlaceTest, OtherFormsAreRefused) {
  for (const char* text : {"%xmm0", "name(%rip)", "%", "$", "8(%rax", "()", "4(%rax,%rbx,9)", "x"})
    EXPECT_FALSE(parse_static_place(text)) << text;
}

TEST(StaticPlaceTest, ArgumentsThatCannotBeReadAreTold) {
  EXPECT_EQ(unreadable_static_arguments(""), 0U);
  EXPECT_EQ(unreadable_static_arguments("8@%rdi -4@8(%rsi)"), 0U);
  EXPECT_EQ(unreadable_static_arguments("8@%rdi 8f@%xmm0 4@$1 4@name(%rip)"), 0b1010U);
  EXPECT_EQ(unreadable_static_arguments("8@%rdi z@%rax 8@%rdi"), 0b110U);
}

struct Numbers {
  int8_t bytes[4] = {1, -2, 3, -4};
  int32_t word = -77;
  uint64_t words[3] = {11, 22, 33};
};

// A probe `clew_test:place` with arguments in registers, in memory and as a constant.
[[gnu::noinline]] void hit(uint64_t number, const Numbers* numbers, uint64_t index) {
  asm volatile(
      "990: nop\n"
      ".pushsection .note.stapsdt,\"\",\"note\"\n"
      ".balign 4\n"
      ".4byte 992f-991f, 994f-993f, 3\n"
      "991: .asciz \"stapsdt\"\n"
      "992: .balign 4\n"
      "993: .8byte 990b\n"
      ".8byte _.stapsdt.base\n"
      ".8byte clew_test_semaphore\n"
      ".asciz \"clew_test\"\n"
      ".asciz \"place\"\n"
      ".asciz \"8@%%rdi -4@4(%%rsi) 8@$-5 -1@1(%%rsi,%%rdx) 1@3(%%rsi) 8@8(%%rsi,%%rdx,8) "
      "2@%%dil\"\n"
      "994: .balign 4\n"
      ".popsection\n"
      ".ifndef _.stapsdt.base\n"
      ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
      ".weak _.stapsdt.base\n"
      ".hidden _.stapsdt.base\n"
      "_.stapsdt.base: .space 1\n"
      ".size _.stapsdt.base, 1\n"
      ".popsection\n"
      ".endif\n"
      :
      : "D"(number), "S"(numbers), "d"(index)
      : "memory");
}

class StaticArgumentsTest : public SessionTest {};

TEST_F(StaticArgumentsTest, AProbeGivesItsArgumentsAndRaisesItsSemaphore) {
  const auto notes = target::read_static_probes("/proc/self/exe");
  ASSERT_TRUE(notes) << notes.error().message;
  ASSERT_EQ(notes->size(), 1U);
  const target::StaticProbe& note = (*notes)[0];
  ASSERT_NE(note.semaphore_offset, 0U);
  Probe p;
  p.id = 500;
  p.provider = "clew_test" + std::to_string(getpid());
  p.name = "place";
  p.kind = AttachKind::Usdt;
  p.path = "/proc/self/exe";
  p.offset_bytes = note.file_offset;
  p.semaphore_offset_bytes = note.semaphore_offset;
  p.usdt_arguments = note.arguments;
  p.pid = getpid();
  Clause c;
  for (uint32_t i = 0; i < 8; ++i)
    c.argument(i).record(i);
  c.commit(8);
  load(programs_of({c.finish()}), {{p, {0}}});
  const Expected<void> attached = session_->attach();
  ASSERT_TRUE(attached) << attached.error().message;
  ASSERT_TRUE(session_->begin());
  EXPECT_EQ(clew_test_semaphore, 1);
  const Numbers numbers;
  for (uint64_t i = 0; i < 3; ++i)
    hit(0xABCDEF12345678 + i, &numbers, i);
  ASSERT_TRUE(session_->end());
  read();
  ASSERT_EQ(records_.size(), 3U);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(records_[i].word(0), 0xABCDEF12345678 + i);
    EXPECT_EQ(records_[i].word(1), static_cast<uint64_t>(-77));
    EXPECT_EQ(records_[i].word(2), static_cast<uint64_t>(-5));
    EXPECT_EQ(records_[i].word(3), static_cast<uint64_t>(int64_t{numbers.bytes[i + 1]}));
    EXPECT_EQ(records_[i].word(4), 0xFCU);
    EXPECT_EQ(records_[i].word(5), numbers.words[i]);
    EXPECT_EQ(records_[i].word(6), 0x5678U + i);
    EXPECT_EQ(records_[i].word(7), 0U);
  }
  session_.reset();
  EXPECT_EQ(clew_test_semaphore, 0);
}

}  // namespace
}  // namespace clew::kernel

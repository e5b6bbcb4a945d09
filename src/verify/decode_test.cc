// SPDX-License-Identifier: Apache-2.0
// The two decoders against each other: what ours reads, Zydis reads alike.
#include <array>
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

#include "verify/instruction.h"

namespace clew::verify {
namespace {

using Text = std::array<uint8_t, 16>;

// Ours is the narrower one: it may refuse what Zydis takes, not the other way round.
void expect_agreement(const Text& text) {
  const auto ours = decode(text);
  if (!ours) return;
  const auto theirs = decode_by_zydis(text);
  const bool alike = theirs && *ours == *theirs;
  EXPECT_TRUE(alike) << testing::PrintToString(text);
}

TEST(Decoders, AgreeOnEveryOpcodeWithEveryModRm) {
  uint32_t accepted = 0;
  const std::array<Text, 12> prefixes = {{{},
                                          {0x48},
                                          {0x65},
                                          {0x65, 0x48},
                                          {0x66},
                                          {0x65, 0x66},
                                          {0xF0, 0x65},
                                          {0xF0, 0x65, 0x4D},
                                          {0x66, 0x48},
                                          {0x66, 0x49},
                                          {0x66, 0x4C},
                                          {0x65, 0x66, 0x48}}};
  const std::array<size_t, 12> lengths = {0, 1, 1, 2, 1, 2, 2, 3, 2, 2, 2, 3};
  for (size_t p = 0; p < prefixes.size(); ++p) {
    for (uint32_t map = 0; map < 2; ++map) {
      for (uint32_t code = 0; code < 65536; ++code) {
        Text text = prefixes[p];
        size_t at = lengths[p];
        if (map == 1) text[at++] = 0x0F;
        text[at++] = static_cast<uint8_t>(code >> 8);
        text[at++] = static_cast<uint8_t>(code);
        for (uint8_t fill = 0x25; at < text.size(); ++fill)
          text[at++] = fill;
        expect_agreement(text);
        if (decode(text)) ++accepted;
      }
    }
  }
  EXPECT_GT(accepted, 10'000U);
}

TEST(Decoders, TakeOneVectorInstructionOnly) {
  const auto taken = decode(Text{0x66, 0x49, 0x0F, 0x7E, 0xF9});  // movq r9, xmm7
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->operation, Operation::MoveFromVector);
  EXPECT_EQ(taken->first, (Operand{.kind = Operand::Kind::Register, .in = Register::R9}));
  EXPECT_EQ(taken->second, (Operand{.kind = Operand::Kind::Vector, .in = Register::Rdi}));
  EXPECT_EQ(taken->length_bytes, 5);
  const Text refused[] = {
      {0x66, 0x4C, 0x0F, 0x7E, 0xC0},        // movq rax, xmm8
      {0x66, 0x0F, 0x7E, 0xC0},              // movd eax, xmm0
      {0x48, 0x0F, 0x7E, 0xC0},              // movq rax, mm0
      {0x66, 0x48, 0x0F, 0x7E, 0x00},        // movq [rax], xmm0
      {0x66, 0x48, 0x0F, 0x6E, 0xC0},        // movq xmm0, rax
      {0x65, 0x66, 0x48, 0x0F, 0x7E, 0xC0},  // With a segment.
      {0xF3, 0x0F, 0x7E, 0xC0},              // movq xmm0, xmm0
  };
  for (const Text& text : refused) {
    EXPECT_FALSE(decode(text).has_value()) << testing::PrintToString(text);
  }
}

TEST(Decoders, AgreeOnEveryRexAndSib) {
  for (uint32_t rex = 0x40; rex < 0x50; ++rex) {
    for (uint32_t modrm = 0; modrm < 256; ++modrm) {
      for (uint32_t sib = 0; sib < 256; ++sib) {
        for (const int opcode : {0x8B, 0x89, 0x8D, 0x88}) {
          expect_agreement({0x65, static_cast<uint8_t>(rex), static_cast<uint8_t>(opcode),
                            static_cast<uint8_t>(modrm), static_cast<uint8_t>(sib), 0x11, 0x22,
                            0x33, 0x44});
        }
      }
    }
  }
}

TEST(Decoders, AgreeOnRandomBytes) {
  std::mt19937_64 random(20240229);
  for (uint32_t i = 0; i < 500'000; ++i) {
    Text text = {};
    for (uint8_t& byte : text)
      byte = static_cast<uint8_t>(random());
    expect_agreement(text);
  }
}

}  // namespace
}  // namespace clew::verify

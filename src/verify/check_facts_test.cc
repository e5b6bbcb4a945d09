// SPDX-License-Identifier: Apache-2.0
// What check() knows of values (rules R7 and R8), behind branches, labels and calls.
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verify/check_testing.h"

namespace clew::verify {
namespace {

TEST(VerifyR7, FactsFollowTheValue) {
  const Bytes store = store_indexed(kWindow);
  EXPECT_FINE(Bytes{0xB9} + word32(0x1000) + store);           // mov ecx, imm
  EXPECT_FINE(Bytes{0x0F, 0xB6, 0xC9} + store);                // movzx ecx, cl
  EXPECT_FINE(Bytes{0x48, 0xC1, 0xE9, 52} + store);            // shr rcx, 52
  EXPECT_FINE(kMaskEcx + Bytes{0x48, 0x83, 0xC1, 8} + store);  // add rcx, 8
  EXPECT_FINE(kMaskEcx + Bytes{0x48, 0x83, 0xC1, 8} + Bytes{0x48, 0x83, 0xE9, 8} + store);
  EXPECT_FINE(Bytes{0x83, 0xE1, 15} + Bytes{0x48, 0x6B, 0xC9, 24} + store);  // imul rcx, rcx, 24
  EXPECT_FINE(Bytes{0x83, 0xE1, 15} + Bytes{0x48, 0xC1, 0xE1, 3} + store);   // shl rcx, 3
  EXPECT_FINE(kMaskEcx + Bytes{0x48, 0x89, 0xCA} +                           // mov rdx, rcx
              Bytes{0x65, 0x48, 0x89, 0x82} + word32(kWindow));
}

TEST(VerifyR7, FactsEndWhereTheValueIsUnknown) {
  const Bytes store = store_indexed(kWindow);
  EXPECT_RULE("R6", mask_ecx(0xFFFF'FFFF) + store);                                // and ecx, -1
  EXPECT_RULE("R6", Bytes{0x48, 0x81, 0xE1} + word32(0xFFFF'F000) + store);        // and rcx, -4096
  EXPECT_RULE("R6", kMaskEcx + Bytes{0x48, 0x81, 0xC1} + word32(0x2000) + store);  // mask, add, use
  EXPECT_RULE("R6", kMaskEcx + Bytes{0x48, 0x83, 0xE9, 1} + store);  // may be negative
  EXPECT_RULE("R6", kMaskEcx + Bytes{0x83, 0xE9, 1} + store);
  EXPECT_RULE("R6", kMaskEcx + Bytes{0x48, 0xF7, 0xD9} + store);           // neg rcx
  EXPECT_RULE("R6", kMaskEcx + Bytes{0x48, 0x0F, 0xC9} + store);           // bswap rcx
  EXPECT_RULE("R6", kMaskEcx + Bytes{0x48, 0xC1, 0xC1, 8} + store);        // rol rcx, 8
  EXPECT_RULE("R6", kMaskEcx + Bytes{0x48, 0xC1, 0xE1, 60} + store);       // shl rcx, 60
  EXPECT_RULE("R6", kMaskEcx + Bytes{0x48, 0x6B, 0xC9, 0xFF} + store);     // imul rcx, rcx, -1
  EXPECT_RULE("R6", kMaskEcx + Bytes{0x48, 0x0F, 0xAF, 0xC8} + store);     // imul rcx, rax
  EXPECT_RULE("R6", kMaskEcx + Bytes{0x48, 0x0F, 0x44, 0xC8} + store);     // cmovz rcx, rax
  EXPECT_RULE("R6", kMaskEcx + Bytes{0x48, 0x0F, 0xBD, 0xC8} + store);     // bsr rcx, rax
  EXPECT_RULE("R6", kMaskEcx + Bytes{0x48, 0x8B, 0x4C, 0x24, 0} + store);  // load
  EXPECT_RULE("R6", kMaskEcx + Bytes{0x48, 0x8D, 0x4C, 0x24, 0} + store);  // lea rcx, [rsp]
  EXPECT_RULE("R6", kMaskEcx + Bytes{0xF0, 0x65, 0x48, 0x0F, 0xC1, 0x0C, 0x25} + word32(kWindow) +
                        store);  // lock xadd
  EXPECT_RULE("R6", kMaskEcx + Bytes{0x65, 0x48, 0x87, 0x0C, 0x25} + word32(kWindow) + store);
}

TEST(VerifyR7, RaxIsUnknownAfterACallAndACompareExchange) {
  const Bytes mask_eax = Bytes{0x25} + word32(0xFFF);
  const Bytes mask = Bytes{0x81, 0xE0} + word32(0xFFF);
  const Bytes store = Bytes{0x65, 0x48, 0x89, 0x88} + word32(kWindow);
  EXPECT_RULE("R2", mask_eax);  // The short form is not listed.
  EXPECT_FINE(mask + store);
  EXPECT_RULE("R6", mask + call(kAddress + 6, kEntry) + store);
  const Bytes exchange = Bytes{0xF0, 0x65, 0x48, 0x0F, 0xB1, 0x0C, 0x25} + word32(kWindow);
  EXPECT_RULE("R6", mask + exchange + store);
}

TEST(VerifyR8, NothingIsKnownAtALabel) {
  const Bytes store = store_indexed(kWindow);
  EXPECT_FINE(kMaskEcx + jump_short(kJz, 10) + Bytes{0x31, 0xC0} + store);
  EXPECT_RULE("R6", kMaskEcx + jump_short(kJz, 0) + store);  // Even if all edges know it.
  EXPECT_RULE("R6", jump_short(kJz, 6) + kMaskEcx + store);  // Mask jumped over.
  EXPECT_FINE(jump_short(kJz, 6) + kMaskEcx + kMaskEcx + store);
}

// cmp rcx, limit (64 bits)
Bytes compare_rcx(uint32_t limit) {
  return Bytes{0x48, 0x81, 0xF9} + word32(limit);
}
constexpr uint8_t kJa = 0x77;
constexpr uint8_t kJae = 0x73;
constexpr uint8_t kJb = 0x72;

TEST(VerifyR7, AComparisonBoundsWhatIsBehindItsBranch) {
  Policy guards = policy();
  guards.branch_guards = true;
  const Bytes store = store_indexed(kWindow);
  const auto over_store = [&](uint8_t jump) {
    return jump_short(jump, static_cast<int>(store.size()));
  };
  EXPECT_FINE(compare_rcx(0xFFF) + over_store(kJa) + store, guards);
  EXPECT_FINE(compare_rcx(0x1000) + over_store(kJae) + store, guards);
  EXPECT_RULE("R6",
              compare_rcx(0xFFF) + over_store(kJa) + store);  // Not without the policy's word.
  EXPECT_RULE("R6", compare_rcx(0xFFF) + over_store(kJb) + store, guards);
  EXPECT_RULE("R6", compare_rcx(0xFFF) + over_store(kJz) + store, guards);
  EXPECT_RULE("R6", compare_rcx(0x7FFF'FFFF) + over_store(kJa) + store, guards);
  EXPECT_RULE("R6", compare_rcx(0xFFFF'FFFF) + over_store(kJa) + store, guards);  // Signed: -1.
  // 32 bits of rcx say nothing of the others.
  EXPECT_RULE("R6", Bytes{0x81, 0xF9} + word32(0xFFF) + over_store(kJa) + store, guards);
  // Another register.
  EXPECT_RULE("R6", Bytes{0x48, 0x81, 0xFA} + word32(0xFFF) + over_store(kJa) + store, guards);
  // Something between the comparison and the branch, even if it leaves flags and rcx alone.
  EXPECT_RULE("R6", compare_rcx(0xFFF) + Bytes{0x89, 0xC8} + over_store(kJa) + store, guards);
  // A label between them: a jump goes over the comparison.
  EXPECT_RULE("R6", jump_short(kJz, 7) + compare_rcx(0xFFF) + over_store(kJa) + store, guards);
  // Where the branch is taken nothing is known.
  EXPECT_RULE("R6", compare_rcx(0xFFF) + jump_short(kJa, 0) + store, guards);
  // Written after the comparison.
  EXPECT_RULE("R6",
              compare_rcx(0xFFF) + jump_short(kJa, static_cast<int>(store.size()) + 3) +
                  Bytes{0x48, 0xFF - 0x76, 0xC1} + store,
              guards);  // mov rcx, rax
}

TEST(VerifyR8, DeclaredFactsHoldOnEveryWay) {
  // mov ecx, 8 ; jz label ; mov ecx, 16 ; label: mov gs:[rcx + window], rax
  const auto ways = [](uint32_t first, uint32_t second) {
    return Bytes{0xB9} + word32(first) + jump_short(kJz, 5) + Bytes{0xB9} + word32(second) +
           store_indexed(kWindow);
  };
  constexpr uint32_t kLabel = 12;
  const auto declaring = [](const std::vector<DeclaredFact>& facts) {
    Policy with = policy();
    with.facts = facts;
    return with;
  };
  const std::vector<DeclaredFact> sixteen = {{kLabel, abi::Register::Rcx, 16}};
  EXPECT_RULE("R6", ways(8, 16));
  EXPECT_FINE(ways(8, 16), declaring(sixteen));
  EXPECT_RULE("R8", ways(17, 16), declaring(sixteen));
  EXPECT_RULE("R8", ways(8, 17), declaring(sixteen));
  // Of another register, at another place, or for nothing.
  const std::vector<DeclaredFact> other = {{kLabel, abi::Register::Rdx, 16}};
  EXPECT_RULE("R8", ways(8, 16), declaring(other));
  const std::vector<DeclaredFact> elsewhere = {{kLabel + 1, abi::Register::Rcx, 16}};
  EXPECT_RULE("R6", ways(8, 16), declaring(elsewhere));
  const std::vector<DeclaredFact> too_high = {{kLabel, abi::Register::Rcx, 0xFFFF'FFFF}};
  EXPECT_RULE("R6", ways(8, 16), declaring(too_high));
  // At the beginning nothing holds that is only declared.
  const Bytes at_once = store_indexed(kWindow) + jump_short(kJz, 0);
  const std::vector<DeclaredFact> begin = {{0, abi::Register::Rcx, 16}};
  EXPECT_RULE("R6", at_once, declaring(begin));
  const std::vector<DeclaredFact> unsorted = {{kLabel, abi::Register::Rcx, 16},
                                              {0, abi::Register::Rcx, 16}};
  EXPECT_THAT(verdict(ways(8, 16), declaring(unsorted)), testing::HasSubstr("policy"));
}

// A fact at a loop's head may rest on itself, but must be true at first and stay so.
TEST(VerifyR8, DeclaredFactsHoldInEachTurn) {
  const auto turns = [](uint32_t begin, const Bytes& change) {
    const Bytes body = store_indexed(kWindow) + change;
    const auto back = -static_cast<int>(7 + 2 + body.size() + 2);
    return set_fuel(100) + Bytes{0xB9} + word32(begin) + charge(10) +
           jump_short(kJs, static_cast<int>(body.size()) + 2) + body + jump_short(kJz, back);
  };
  constexpr uint32_t kHead = 11;
  const std::vector<DeclaredFact> facts = {{kHead, abi::Register::Rcx, 0xFF8}};
  Policy with = policy();
  with.facts = facts;
  const Bytes masks = Bytes{0x48, 0x83, 0xC1, 8} + Bytes{0x81, 0xE1} + word32(0xFF8);
  EXPECT_FINE(turns(0, {}), with);
  EXPECT_FINE(turns(0, masks), with);
  EXPECT_RULE("R6", turns(0, masks));
  EXPECT_RULE("R8", turns(0x1000, masks), with);
  EXPECT_RULE("R8", turns(0, Bytes{0x48, 0x83, 0xC1, 8}), with);  // add rcx, 8
}

// Changes rax, rbx, r10, r11 and r12.
constexpr Callee kChanging[] = {{kEntry, abi::RegisterSet(0x1C09)}};

// mov gs:[r + displacement], rax, of rbx, r10, r11 and r12, behind a mask of r and a call.
TEST(VerifyR7, NothingIsKnownOfWhatACallMayChange) {
  Policy changing = policy();
  changing.callees = kChanging;
  const std::pair<Bytes, Bytes> kOf[] = {
      {Bytes{0x81, 0xE3} + word32(0xFF8), Bytes{0x65, 0x48, 0x89, 0x83} + word32(kWindow)},
      {Bytes{0x41, 0x81, 0xE2} + word32(0xFF8), Bytes{0x65, 0x49, 0x89, 0x82} + word32(kWindow)},
      {Bytes{0x41, 0x81, 0xE3} + word32(0xFF8), Bytes{0x65, 0x49, 0x89, 0x83} + word32(kWindow)},
      {Bytes{0x41, 0x81, 0xE4} + word32(0xFF8),
       Bytes{0x65, 0x49, 0x89, 0x84, 0x24} + word32(kWindow)}};
  for (const auto& [mask, store] : kOf) {
    const Bytes code = mask + call(kAddress + mask.size(), kEntry) + store;
    EXPECT_FINE(code);
    EXPECT_RULE("R6", code, changing);
  }
}

TEST(VerifyR15, ACallNeedsWhatItMayChangeToBeSaved) {
  for (const auto left_out : {abi::Register::Rbx, abi::Register::R11, abi::Register::R12}) {
    Policy with = policy();
    with.clobbers =
        abi::RegisterSet(static_cast<uint16_t>(0xFFEF & ~(1U << static_cast<unsigned>(left_out))));
    EXPECT_FINE(call(kAddress, kEntry), with);
    with.callees = kChanging;
    EXPECT_RULE("R15", call(kAddress, kEntry), with);
  }
}

}  // namespace
}  // namespace clew::verify

// SPDX-License-Identifier: Apache-2.0
// Each rule of check.cc has bodies that break only it, next to a harmless twin; then the hostile
// machine code of the safety notes. The rules on values have check_facts_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "abi/calling.h"
#include "verify/check_testing.h"

namespace clew::verify {
namespace {

using testing::HasSubstr;

TEST(Verify, AcceptsAnEmptyBodyAndACounter) {
  EXPECT_FINE({});
  EXPECT_FINE(Bytes{0x65, 0x48, 0x83, 0x04, 0x25} + word32(kWindow + 8) + Bytes{1});
}

TEST(Verify, KeepsAddressAndBytesOfWhatItAccepts) {
  const Bytes bytes = load_window(kWindow);
  const auto code = check(bytes, policy());
  ASSERT_TRUE(code.has_value());
  EXPECT_EQ(code->address(), kAddress);
  EXPECT_EQ(Bytes(code->bytes().begin(), code->bytes().end()), bytes);
}

TEST(Verify, RefusesAPolicyOutOfRange) {
  Policy wide = policy();
  wide.window_size_log2 = 31;
  EXPECT_THAT(verdict({}, wide), HasSubstr("policy"));
  Policy overlapping = policy();
  overlapping.slot_address = kWindow + 256;
  EXPECT_THAT(verdict({}, overlapping), HasSubstr("policy"));
}

TEST(VerifyR1, RefusesCutInstructionsAndLongBodies) {
  EXPECT_RULE("R2", Bytes{0x65, 0x48, 0x89});
  Bytes cut = load_window(kWindow);
  cut.pop_back();
  EXPECT_RULE("R2", cut);
  Bytes longest;
  while (longest.size() < 65536)
    longest = longest + Bytes{0x31, 0xC0};
  EXPECT_FINE(longest);
  EXPECT_RULE("R1", longest + Bytes{0x31, 0xC0});
}

TEST(VerifyR2, RefusesEveryInstructionThatIsNotListed) {
  const Bytes forbidden[] = {
      {0x0F, 0x05},                    // syscall
      {0x0F, 0x34},                    // sysenter
      {0xCD, 0x80},                    // int 0x80
      {0xCC},                          // int3
      {0x0F, 0x0B},                    // ud2
      {0xF4},                          // hlt
      {0xC3},                          // ret
      {0xC2, 8, 0},                    // ret 8
      {0xCB},                          // retf
      {0xCF},                          // iret
      {0xFF, 0xE0},                    // jmp rax
      {0xFF, 0xD0},                    // call rax
      {0xFF, 0x24, 0x25, 0, 0, 0, 0},  // jmp [0]
      {0x50},                          // push rax
      {0x58},                          // pop rax
      {0x41, 0x56},                    // push r14
      {0xC8, 0, 0, 0},                 // enter
      {0xC9},                          // leave
      {0xA4},                          // movsb
      {0xF3, 0xAA},                    // rep stosb
      {0xFD},                          // std
      {0x9D},                          // popf
      {0x9C},                          // pushf
      {0x48, 0xF7, 0xF1},              // div rcx
      {0x48, 0xF7, 0xF9},              // idiv rcx
      {0x48, 0xF7, 0xE1},              // mul rcx
      {0x48, 0xF7, 0xE9},              // imul rcx
      {0xD8, 0xC0},                    // fadd
      {0x0F, 0x58, 0xC1},              // addps
      {0xC5, 0xF8, 0x58, 0xC1},        // vaddps
      {0x0F, 0xAE, 0x10},              // ldmxcsr
      {0x0F, 0x01, 0xEF},              // wrpkru
      {0x0F, 0x01, 0xD0},              // xgetbv
      {0x0F, 0xAE, 0x28},              // xrstor
      {0xF3, 0x48, 0x0F, 0xAE, 0xD8},  // wrgsbase rax
      {0xF3, 0x48, 0x0F, 0xAE, 0xC8},  // rdgsbase rax
      {0x8E, 0xE8},                    // mov gs, eax
      {0x0F, 0xA2},                    // cpuid
      {0x0F, 0xC7, 0xF0},              // rdrand
      {0x0F, 0xAE, 0x38},              // clflush
      {0xC7, 0xF8, 0, 0, 0, 0},        // xbegin
      {0xD7},                          // xlat
      {0xE2, 0xFE},                    // loop
      {0xE3, 0xFE},                    // jrcxz
      {0x90},                          // nop
      {0x0F, 0x1F, 0x00},              // nop [rax]
      {0x86, 0xC1},                    // xchg cl, al
      {0x48, 0x87, 0xC8},              // xchg rax, rcx
      {0x48, 0x0F, 0xC7, 0x08},        // cmpxchg16b
      {0xA1, 0, 0, 0, 0, 0, 0, 0, 0},  // mov eax, moffs
      {0xD4, 0x0A},                    // aam, not in 64-bit mode
      {0x66, 0x90},
      {0x24, 0x0F},              // and al, 15
      {0x80, 0xE1, 0x0F},        // and cl, 15
      {0x66, 0x83, 0xE1, 0x0F},  // and cx, 15
  };
  for (const Bytes& bytes : forbidden) {
    EXPECT_RULE("R2", bytes) << testing::PrintToString(bytes);
  }
}

TEST(VerifyR2, TheTimeIsReadOnlyWhereItMayBe) {
  const Bytes reads_time = {0x0F, 0x31};
  Policy forbidden = policy();
  forbidden.time_is_readable = false;
  EXPECT_FINE(reads_time);
  EXPECT_RULE("R2", reads_time, forbidden);
  EXPECT_FALSE(Policy{}.time_is_readable);
}

TEST(VerifyR2, TheProcessorsNumberIsReadOnlyWhereItMayBe) {
  const Bytes reads_time_and_cpu = {0x0F, 0x01, 0xF9};
  Policy forbidden = policy();
  forbidden.cpu_is_readable = false;
  EXPECT_FINE(reads_time_and_cpu);
  EXPECT_RULE("R2", reads_time_and_cpu, forbidden);
  EXPECT_FALSE(Policy{}.cpu_is_readable);
}

TEST(VerifyR3, RefusesPrefixesThatAreNotPartOfAListedForm) {
  const Bytes store = store_window(kWindow);
  EXPECT_FINE(store);
  for (const uint8_t prefix : Bytes{0x67, 0xF2, 0xF3, 0x2E, 0x36, 0x3E, 0x26, 0x64, 0x65, 0x66}) {
    EXPECT_RULE("R2", Bytes{prefix} + store) << unsigned{prefix};
  }
  EXPECT_RULE("R2", Bytes{0xF0, 0x01, 0xC8});        // lock add eax, ecx
  EXPECT_RULE("R2", Bytes{0x66, 0xEB, 0x00});        // 16-bit jump
  EXPECT_RULE("R2", Bytes{0x48, 0xEB, 0x00});        // jump with REX
  EXPECT_RULE("R2", Bytes{0x40, 0x01, 0xC8});        // REX without effect
  EXPECT_RULE("R2", Bytes{0x42, 0x01, 0xC8});        // REX.X without an index
  EXPECT_RULE("R2", Bytes{0x48, 0x48, 0x01, 0xC8});  // two REX
  EXPECT_RULE("R2", Bytes{0x65, 0x01, 0xC8});        // gs without memory
  EXPECT_RULE("R2", Bytes{0xF0} + store);            // lock mov
  EXPECT_RULE("R2", Bytes{0x66, 0x48, 0x89, 0xC8});  // 66 with REX.W
}

TEST(VerifyR4, BranchesReachInstructionStartsOrTheEnd) {
  const Bytes two = {0x31, 0xC0, 0x31, 0xC9};
  EXPECT_FINE(jump_short(kJz, 2) + two);
  EXPECT_FINE(jump_short(kJz, 4) + two);
  EXPECT_RULE("R4", jump_short(kJz, 1) + two);
  EXPECT_RULE("R4", jump_short(kJz, 5) + two);   // One past the end.
  EXPECT_RULE("R4", jump_short(kJz, -3) + two);  // Before the start.
  EXPECT_RULE("R4", Bytes{0xE9} + word32(0x7FFF'FFF0));
  // mov eax, imm that contains a syscall, and a jump into it.
  EXPECT_RULE("R4", Bytes{0xB8, 0x0F, 0x05, 0, 0} + jump_short(kJz, -6));
}

TEST(VerifyR6, ConstantWindowAddressesStayInWindowAndSlack) {
  const uint32_t end = kWindow + (1U << kLog2) + 4096;
  EXPECT_FINE(store_window(kWindow));
  EXPECT_FINE(store_window(end - 4));
  EXPECT_RULE("R6", store_window(end - 3));
  EXPECT_RULE("R6", store_window(kWindow - 1));
  EXPECT_RULE("R6", store_window(0x7FFF'FFFF));
  EXPECT_RULE("R6", store_window(0x8000'0000));
  EXPECT_RULE("R6", store_window(0xFFFF'FFFF));
}

TEST(VerifyR6, IndexedWindowAddressesNeedARange) {
  EXPECT_FINE(kMaskEcx + store_indexed(kWindow));
  EXPECT_RULE("R6", store_indexed(kWindow));
  EXPECT_FINE(kMaskEcx + store_indexed(kWindow + 4096 - 7));
  EXPECT_RULE("R6", kMaskEcx + store_indexed(kWindow + 4096 - 6));
  EXPECT_RULE("R6", kMaskEcx + store_indexed(kWindow - 1));
  EXPECT_RULE("R6", Bytes{0x89, 0xC9} + store_indexed(kWindow));  // mov ecx, ecx: 4 GiB
}

TEST(VerifyR6, ScaledWindowAddressesCountTheScale) {
  const Bytes mask = mask_ecx(0x3FF);
  EXPECT_FINE(mask + store_scaled(0, kWindow));
  EXPECT_FINE(mask + store_scaled(3, kWindow));
  EXPECT_RULE("R6", mask_ecx(0x7FF) + store_scaled(3, kWindow));
  EXPECT_RULE("R6", mask_ecx(0x7FFF'FFFF) + store_scaled(3, kWindow));  // hi*8 overflows 32 bits
}

TEST(VerifyR6, RefusesOtherMemoryOperands) {
  EXPECT_RULE("R6", Bytes{0x48, 0x89, 0x08});                               // [rax]
  EXPECT_RULE("R6", kMaskEcx + Bytes{0x48, 0x89, 0x81} + word32(kWindow));  // without gs
  EXPECT_RULE("R2", Bytes{0x48, 0x89, 0x05, 0, 0, 0, 0});                   // [rip]
  EXPECT_RULE("R6", kMaskEcx + Bytes{0x65, 0x48, 0x89, 0x84, 0x09} + word32(kWindow));  // 2 regs
  EXPECT_RULE("R6", Bytes{0x89, 0x04, 0x25} + word32(kWindow));        // absolute store
  EXPECT_RULE("R2", Bytes{0x64, 0x89, 0x04, 0x25} + word32(kWindow));  // fs
}

TEST(VerifyR6, TheStackIsReadWithinItsLimit) {
  EXPECT_FINE(Bytes{0x48, 0x8B, 0x44, 0x24, 56});
  EXPECT_RULE("R6", Bytes{0x48, 0x8B, 0x44, 0x24, 57});
  EXPECT_RULE("R6", Bytes{0x48, 0x8B, 0x44, 0x24, 0xF8});  // below rsp
  EXPECT_RULE("R6", Bytes{0x48, 0x89, 0x44, 0x24, 8});     // store
  EXPECT_RULE("R6", Bytes{0x48, 0x01, 0x44, 0x24, 8});     // add [rsp + 8], rax
  EXPECT_RULE("R6", Bytes{0x48, 0x8B, 0x44, 0x0C, 8});     // [rsp + rcx + 8]
  EXPECT_FINE(Bytes{0x48, 0x8D, 0x44, 0x24, 0x40});        // lea reads nothing
}

// lea rcx, [rsp + k] ; mov rax, rcx ; and eax, 0xFFF ; cmp rax, imm ; ja over the load ;
// mov rax, [rsp + 64]
struct PageCheck {
  uint8_t k = 16;
  uint32_t mask = 0xFFF;
  uint32_t imm = 4096 - 56;  // 8 bytes at 64 are 56 behind rsp + 16.
  uint8_t jump = 0x77;       // ja
  Bytes between = {};        // In front of the load.
};

Bytes read_behind(const PageCheck& check) {
  return Bytes{0x48, 0x8D, 0x4C, 0x24, check.k} + Bytes{0x48, 0x89, 0xC8} + Bytes{0x81, 0xE0} +
         word32(check.mask) + Bytes{0x48, 0x81, 0xF8} + word32(check.imm) +
         jump_short(check.jump, 5 + static_cast<int>(check.between.size())) + check.between +
         Bytes{0x48, 0x8B, 0x44, 0x24, 64};
}

TEST(VerifyR6, StackWordsThatMayNotBeThereNeedTheCheckOfTheirPage) {
  Policy entry = policy();
  entry.stack_readable_bytes = 96;
  entry.stack_mapped_bytes = 24;
  EXPECT_FINE(Bytes{0x48, 0x8B, 0x44, 0x24, 16}, entry);
  EXPECT_RULE("R6", Bytes{0x48, 0x8B, 0x44, 0x24, 17}, entry);
  EXPECT_FINE(read_behind({}), entry);
  EXPECT_RULE("R6", read_behind({.imm = 4096 - 55}), entry);
  EXPECT_FINE(read_behind({.imm = 4096 - 55, .jump = 0x73}), entry);  // jae
  EXPECT_RULE("R6", read_behind({.imm = 4096 - 54, .jump = 0x73}), entry);
  EXPECT_RULE("R6", read_behind({.jump = 0x72}), entry);  // jb
  EXPECT_RULE("R6", read_behind({.jump = 0x7F}), entry);  // jg: with a sign
  EXPECT_RULE("R6", read_behind({.imm = 0xFFFF'FFFF}), entry);
  EXPECT_RULE("R6", read_behind({.mask = 0x7FF}), entry);
  // A word that is there for sure must stand at the page's begin, and none behind the load.
  EXPECT_FINE(read_behind({.k = 23, .imm = 4096 - 49}), entry);
  EXPECT_RULE("R6", read_behind({.k = 24, .imm = 4096 - 48}), entry);
  EXPECT_RULE("R6", read_behind({.k = 0xF8, .imm = 0}), entry);  // Below rsp.
  // Another register between leaves what is known; a change of the checked one, in time, does not.
  EXPECT_FINE(read_behind({.between = {0x31, 0xD2}}), entry);
  Bytes changed = read_behind({});
  changed[6] = 0x31;  // xor rax, rcx instead of mov.
  EXPECT_RULE("R6", changed, entry);
  // A jump goes over the check.
  EXPECT_RULE("R6", jump_short(kJz, 23) + read_behind({}), entry);
  // Not behind the other side of the branch.
  Bytes taken = read_behind({});
  taken[22] = 0;
  EXPECT_RULE("R6", taken, entry);
  Policy none = entry;
  none.stack_mapped_bytes = 97;
  EXPECT_THAT(verdict({}, none), HasSubstr("policy"));
}

TEST(VerifyR6, TheSlotIsReadOnly) {
  EXPECT_FINE(load_window(kSlot + 16));
  EXPECT_FINE(load_window(kSlot + 252));
  EXPECT_RULE("R6", load_window(kSlot + 253));
  EXPECT_RULE("R6", load_window(kSlot - 1));
  EXPECT_RULE("R6", store_window(kSlot + 16));
  EXPECT_RULE("R6", Bytes{0x65, 0x48, 0x87, 0x04, 0x25} + word32(kSlot + 16));  // xchg
}

TEST(VerifyR6, TheGenerationIsOneLoad) {
  EXPECT_FINE(Bytes{0x8B, 0x04, 0x25} + word32(kGeneration));
  EXPECT_RULE("R6", Bytes{0x8B, 0x04, 0x25} + word32(kGeneration + 4));
  EXPECT_RULE("R6", Bytes{0x48, 0x8B, 0x04, 0x25} + word32(kGeneration));
  EXPECT_RULE("R6", Bytes{0x89, 0x04, 0x25} + word32(kGeneration));
  Policy without = policy();
  without.generation_address = 0;
  EXPECT_RULE("R6", Bytes{0x8B, 0x04, 0x25} + word32(0), without);
}

TEST(VerifyR6, GlobalsAreReachedByConstantAddressesInside) {
  constexpr uint32_t kGlobals = 0x2000'0000;
  constexpr uint32_t kBytes = 24;
  Policy with = policy();
  with.globals_address = kGlobals;
  with.globals_bytes = kBytes;
  const Bytes load = {0x48, 0x8B, 0x04, 0x25};   // mov rax, [d]
  const Bytes store = {0x48, 0x89, 0x04, 0x25};  // mov [d], rax
  for (const Bytes& access : {load, store}) {
    EXPECT_FINE(access + word32(kGlobals), with);
    EXPECT_FINE(access + word32(kGlobals + kBytes - 8), with);
    EXPECT_RULE("R6", access + word32(kGlobals - 1), with);
    EXPECT_RULE("R6", access + word32(kGlobals + kBytes - 7), with);
    EXPECT_RULE("R6", access + word32(0xFFFF'FFFF), with);
    EXPECT_RULE("R6", access + word32(kGlobals));  // A session without globals.
    EXPECT_RULE("R6", Bytes{0x65} + access + word32(kGlobals), with);
  }
  EXPECT_FINE(Bytes{0x0F, 0xB6, 0x04, 0x25} + word32(kGlobals + kBytes - 1),
              with);  // movzx: 1 byte
  EXPECT_RULE("R6", Bytes{0x0F, 0xB7, 0x04, 0x25} + word32(kGlobals + kBytes - 1), with);
  // [rcx + d], whatever is known of rcx.
  EXPECT_RULE("R6", Bytes{0x83, 0xE1, 0x07, 0x48, 0x89, 0x81} + word32(kGlobals), with);
  // lock add [d], rax
  EXPECT_FINE(Bytes{0xF0, 0x48, 0x01, 0x04, 0x25} + word32(kGlobals + 8), with);
  EXPECT_RULE("R13", Bytes{0xF0, 0x48, 0x01, 0x04, 0x25} + word32(kGlobals + 4), with);
}

TEST(Verify, RefusesGlobalsOutOfReach) {
  Policy with = policy();
  with.globals_address = 0x7FFF'FFF0;
  with.globals_bytes = 16;
  EXPECT_THAT(verdict({}, with), HasSubstr("policy"));
  with.globals_address = 0;
  EXPECT_THAT(verdict({}, with), HasSubstr("policy"));
}

TEST(VerifyR9, RspIsNoOperand) {
  EXPECT_RULE("R9", Bytes{0x48, 0x83, 0xEC, 8});                             // sub rsp, 8
  EXPECT_RULE("R9", Bytes{0x48, 0x89, 0xE0});                                // mov rax, rsp
  EXPECT_RULE("R9", Bytes{0x48, 0x89, 0xC4});                                // mov rsp, rax
  EXPECT_RULE("R9", Bytes{0x48, 0x8D, 0x64, 0x24, 8});                       // lea rsp, [rsp + 8]
  EXPECT_RULE("R9", Bytes{0x0F, 0xCC});                                      // bswap esp
  EXPECT_RULE("R9", Bytes{0x65, 0x40, 0x88, 0x24, 0x25} + word32(kWindow));  // mov gs:[..], spl
  EXPECT_RULE("R9", Bytes{0x65, 0x48, 0x89, 0x84, 0x24} + word32(kWindow));  // gs:[rsp + ..]
}

TEST(VerifyR10, ALoopIsChargedEnough) {
  EXPECT_FINE(loop(3));
  EXPECT_FINE(loop(1000));
  EXPECT_RULE("R10", loop(2));
  EXPECT_RULE("R10", loop(0));
  EXPECT_RULE("R10", loop(0xFFFF'FFFF));
  const Bytes with_call = set_fuel(100) + charge(67) + jump_short(kJs, 7) +
                          call(kAddress + 15, kEntry) + jump_short(kJz, -16);
  EXPECT_FINE(with_call);
  Bytes cheap_call = with_call;
  cheap_call[9] = 66;
  EXPECT_RULE("R10", cheap_call);
}

TEST(VerifyR10, TheFuelIsSetOnceAndBounded) {
  EXPECT_RULE("R10", charge(3) + jump_short(kJs, 2) + jump_short(kJz, -11));
  Bytes rich = loop(3);
  rich[3] = 0x10;  // 4196
  EXPECT_RULE("R10", rich);
  EXPECT_RULE(
      "R10", set_fuel(100) + set_fuel(100) + charge(3) + jump_short(kJs, 2) + jump_short(kJz, -11));
  const Bytes refill = {0x4D, 0x31, 0xED};  // xor r13, r13
  EXPECT_RULE("R10",
              set_fuel(100) + charge(4) + jump_short(kJs, 5) + refill + jump_short(kJz, -14));
  EXPECT_RULE("R10", set_fuel(100) + jump_short(kJz, -8));  // Back to the refill.
}

TEST(VerifyR10, TheChargeIsFollowedByItsTest) {
  EXPECT_RULE("R10", set_fuel(100) + charge(3) + jump_short(kJns, 2) + jump_short(kJz, -11));
  EXPECT_RULE("R10", set_fuel(100) + charge(3) + jump_short(kJz, -9));
  EXPECT_RULE("R10", set_fuel(100) + Bytes{0x31, 0xC0} + jump_short(kJz, -4));
  // A branch to the js, past the charge.
  EXPECT_RULE("R10", set_fuel(100) + jump_short(kJz, 7) + charge(3) + jump_short(kJs, 2) +
                         jump_short(kJz, -11));
  // The way out leads back into the loop.
  EXPECT_RULE("R10", set_fuel(100) + charge(3) + jump_short(kJs, 0) + jump_short(kJz, -11));
}

TEST(VerifyR10, R13IsFreeInBodiesWithoutLoops) {
  EXPECT_FINE(Bytes{0x4D, 0x31, 0xED} + jump_short(kJz, 0));
}

TEST(VerifyR12, CallsReachExactEntries) {
  EXPECT_FINE(call(kAddress, kEntry));
  EXPECT_RULE("R12", call(kAddress, kEntry + 3));
  EXPECT_RULE("R12", call(kAddress, kEntry - 1));
  EXPECT_RULE("R12", call(kAddress, kAddress));
  Policy none = policy();
  none.callees = {};
  EXPECT_RULE("R12", call(kAddress, kEntry), none);
}

// r10 is saved in any case.
TEST(VerifyR12, WhatReadsSavedRegistersWantsThemSaved) {
  const Callee reader[] = {{kEntry, abi::RegisterSet(0x0001), abi::kAllSaved}};
  Policy with = policy();
  with.callees = reader;
  with.clobbers = abi::kAllSaved;
  EXPECT_EQ(verdict(call(kAddress, kEntry), with), "");
  with.clobbers.add(abi::Register::R10);
  EXPECT_EQ(verdict(call(kAddress, kEntry), with), "");
  abi::RegisterSet more = abi::kAllSaved;
  more.add(abi::Register::Rbp);
  abi::RegisterSet flags = abi::kAllSaved;
  flags.add(abi::kSavedFlags);
  for (const abi::RegisterSet other :
       {more, flags, abi::RegisterSet(0xFBCE), abi::RegisterSet(1)}) {
    with.clobbers = other;
    EXPECT_RULE("R12", call(kAddress, kEntry), with);
  }
}

TEST(VerifyR13, LockedOperandsAreAligned) {
  const auto locked = [](uint32_t displacement) {
    return Bytes{0xF0, 0x65, 0x48, 0x01, 0x04, 0x25} + word32(displacement);
  };
  EXPECT_FINE(locked(kWindow + 8));
  EXPECT_RULE("R13", locked(kWindow + 4));
  const auto exchange = [](uint32_t displacement) {
    return Bytes{0x65, 0x48, 0x87, 0x04, 0x25} + word32(displacement);
  };
  EXPECT_FINE(exchange(kWindow + 8));
  EXPECT_RULE("R13", exchange(kWindow + 1));
  const Bytes indexed = Bytes{0xF0, 0x65, 0x48, 0x01, 0x81} + word32(kWindow);
  EXPECT_FINE(mask_ecx(0xFF8) + indexed);
  EXPECT_RULE("R13", mask_ecx(0xFFC) + indexed);
  EXPECT_RULE("R13", mask_ecx(0xFF8) + Bytes{0x48, 0x83, 0xC1, 4} + indexed);
  EXPECT_FINE(store_window(kWindow + 1));  // Plain accesses may be misaligned.
}

TEST(VerifyR15, OnlySavedRegistersAreWritten) {
  Policy narrow = policy();
  narrow.clobbers = abi::RegisterSet(0x0001);  // rax
  EXPECT_FINE(Bytes{0x31, 0xC0}, narrow);
  EXPECT_FINE(Bytes{0x45, 0x31, 0xD2}, narrow);  // r10 is always saved.
  EXPECT_RULE("R15", Bytes{0x31, 0xC9}, narrow);
  EXPECT_RULE("R15", Bytes{0x45, 0x31, 0xF6}, narrow);  // xor r14d, r14d
  EXPECT_RULE("R15", Bytes{0x0F, 0x31}, narrow);        // rdtsc writes rdx
  EXPECT_RULE("R15", Bytes{0x65, 0x48, 0x87, 0x0C, 0x25} + word32(kWindow), narrow);
  EXPECT_RULE("R15", Bytes{0xF0, 0x65, 0x48, 0x0F, 0xC1, 0x0C, 0x25} + word32(kWindow), narrow);
  EXPECT_FINE(Bytes{0x39, 0xC8}, narrow);  // cmp eax, ecx
  EXPECT_FINE(Bytes{0x85, 0xC9}, narrow);  // test ecx, ecx
  narrow.clobbers = abi::RegisterSet(0x0002);
  EXPECT_RULE("R15", call(kAddress, kEntry), narrow);  // A result comes back in rax.
  EXPECT_RULE("R15", Bytes{0xF0, 0x65, 0x48, 0x0F, 0xB1, 0x0C, 0x25} + word32(kWindow), narrow);
}

TEST(Verify, MessagesNameByteAndRule) {
  EXPECT_EQ(verdict(Bytes{0x31, 0xC0} + store_window(0)),
            "verify: byte 0x2: R6: store outside the window");
}

TEST(VerifyHostile, OverlappingDecodingIsRefused) {
  // A jump into a REX-prefixed instruction that hides another.
  EXPECT_RULE("R4", jump_short(kJz, 1) + Bytes{0x48, 0xB8, 0x0F, 0x05, 0, 0, 0, 0, 0, 0});
  EXPECT_RULE("R2", Bytes(15, 0x66) + Bytes{0x89, 0xC8});
  EXPECT_RULE("R2", Bytes(14, 0x48) + Bytes{0x89, 0xC8});
}

// Registers by parts, and instructions with a second destination (docs/hostile-cases.md, 9 and 10).
TEST(VerifyHostile, NoRegisterIsWrittenUnseen) {
  Policy narrow = policy();
  narrow.clobbers = abi::RegisterSet(0x0003);                 // rax, rcx
  EXPECT_RULE("R2", Bytes{0x41, 0xB6, 0x01}, narrow);         // mov r14b, 1
  EXPECT_RULE("R2", Bytes{0x66, 0x41, 0xBE, 1, 0}, narrow);   // mov r14w, 1
  EXPECT_RULE("R15", Bytes{0x41, 0xBE, 1, 0, 0, 0}, narrow);  // mov r14d, 1
  EXPECT_RULE("R2", Bytes{0xB4, 0x01}, narrow);               // mov ah, 1
  EXPECT_RULE("R2", Bytes{0x49, 0x97}, narrow);               // xchg rax, r15
  EXPECT_RULE("R2", Bytes{0x4C, 0x87, 0xF8}, narrow);         // xchg rax, r15
  EXPECT_RULE("R2", Bytes{0x49, 0x0F, 0xB1, 0xCD}, narrow);   // cmpxchg r13, rcx
  EXPECT_RULE("R2", Bytes{0x4C, 0x0F, 0xC1, 0xE9}, narrow);   // xadd rcx, r13
  EXPECT_RULE("R15", Bytes{0xF0, 0x65, 0x4C, 0x0F, 0xC1, 0x2C, 0x25} + word32(kWindow), narrow);
  EXPECT_RULE("R15", Bytes{0x65, 0x4C, 0x87, 0x2C, 0x25} + word32(kWindow), narrow);
  EXPECT_RULE("R9", Bytes{0x48, 0x89, 0xC4});              // mov rsp, rax
  EXPECT_RULE("R9", Bytes{0x48, 0x8D, 0x64, 0x24, 0x08});  // lea rsp, [rsp + 8]
  EXPECT_RULE("R9", Bytes{0x48, 0x0F, 0x44, 0xE0});        // cmovz rsp, rax
}

// Case 17 and 18: sums at the ends of what a displacement can say, and absolute addresses.
TEST(VerifyHostile, NoAddressWrapsOrIsAbsolute) {
  for (const uint32_t displacement : {0x8000'0000U, 0x8000'0001U, 0xFFFF'FFF8U, 0x7FFF'FFF8U}) {
    EXPECT_RULE("R6", kMaskEcx + store_indexed(displacement));
    EXPECT_RULE("R6", kMaskEcx + store_scaled(3, displacement));
    EXPECT_RULE("R6", Bytes{0x48, 0x89, 0x04, 0x25} + word32(displacement));
  }
  // 8 * 0x20000000 is 2^32: it must not come back to 0.
  EXPECT_RULE("R6", mask_ecx(0x2000'0000) + store_scaled(3, kWindow));
  for (const uint8_t opcode : Bytes{0xA0, 0xA1, 0xA2, 0xA3})
    EXPECT_RULE("R2", Bytes{opcode} + word32(kWindow) + word32(0));
}

// Case 21: what a charge must not be.
TEST(VerifyHostile, NoChargeIsNothingOrNegative) {
  for (const uint32_t cost : {0U, 1U, 2U, 0x8000'0000U, 0xFFFF'FFFDU, 0xFFFF'FFFFU})
    EXPECT_RULE("R10", loop(cost));
  EXPECT_FINE(loop(3));
  // add r13d, 3 instead, and sub r13, 3 with 64 bits.
  EXPECT_RULE("R10", set_fuel(100) + Bytes{0x41, 0x81, 0xC5} + word32(3) + jump_short(kJs, 2) +
                         jump_short(kJz, -11));
  EXPECT_RULE("R10", set_fuel(100) + Bytes{0x49, 0x81, 0xED} + word32(3) + jump_short(kJs, 2) +
                         jump_short(kJz, -11));
}

}  // namespace
}  // namespace clew::verify

// SPDX-License-Identifier: Apache-2.0
// The accessors of contexts: what a thread takes is what somebody put, whole, or nothing.
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "abi/arena.h"
#include "runtime/blob_testing.h"

namespace clew::runtime {
namespace {

using abi::ContextAct;
using abi::ContextOutcome;

constexpr uint32_t kContext = 4096;
constexpr uint32_t kBlocks = 8;
constexpr uint32_t kFirst = abi::kContextBags;  // The word of the first bag's number.

class RuntimeContexts : public RuntimeBlob {
 protected:
  void SetUp() override {
    RuntimeBlob::SetUp();
    session().layout.contexts = {
        .offset = kContext, .blocks_offset = 5120, .blocks_log2 = 3, .bags = 2, .bag_words = 3};
    ASSERT_TRUE(stub(StubCall::Claim));
  }

  uint64_t open() { return access(Accessor::ContextOpen, 0); }
  ContextOutcome act(ContextAct what, uint64_t object = 0, uint64_t kinds = 0) {
    return static_cast<ContextOutcome>(
        access(Accessor::ContextAct, static_cast<uint64_t>(what), object, kinds));
  }
  bool is_in_one() { return open() == kContext; }
  uint64_t* context() { return reinterpret_cast<uint64_t*>(own_region() + kContext); }
  // As a program packs it.
  void pack(uint32_t bag, uint64_t number, uint64_t value) {
    uint64_t* const words = context() + kFirst + 3 * bag;
    words[0] = number;
    words[1] = 0;
    words[2] = value;
  }
  uint64_t packed(uint32_t bag) { return context()[kFirst + 3 * bag + 2]; }
  // In a thread of its own, with a slot of its own.
  template <typename Function>
  void elsewhere(const Function& function) {
    std::thread([&] {
      ASSERT_TRUE(stub(StubCall::Claim));
      function();
      set_own_gs_base(0);
    }).join();
  }
};

TEST_F(RuntimeContexts, AThreadIsInNoRequestUntilOneBegins) {
  EXPECT_EQ(open(), 0U);
  act(ContextAct::Put, 7);
  EXPECT_EQ(open(), 0U);
  act(ContextAct::Begin);
  EXPECT_EQ(open(), kContext);
  act(ContextAct::End);
  EXPECT_EQ(open(), 0U);
  EXPECT_TRUE(kept_);
}

TEST_F(RuntimeContexts, WhoTakesGoesOnFromWhereItWasPut) {
  act(ContextAct::Begin);
  pack(0, 1, 41);
  act(ContextAct::Put, 7);
  pack(0, 2, 42);  // Behind it.
  const uint64_t request = context()[abi::kContextRequest];
  elsewhere([&] {
    EXPECT_EQ(act(ContextAct::Take, 8), ContextOutcome::Nothing);
    EXPECT_EQ(act(ContextAct::Take, 7), ContextOutcome::Done);
    EXPECT_EQ(packed(0), 41U);
    EXPECT_EQ(context()[abi::kContextRequest], request);
  });
  EXPECT_EQ(packed(0), 42U);
}

TEST_F(RuntimeContexts, APutWithoutARequestForgetsTheLastOne) {
  act(ContextAct::Begin);
  act(ContextAct::Put, 7);
  act(ContextAct::End);
  act(ContextAct::Put, 7);
  EXPECT_EQ(act(ContextAct::Take, 7), ContextOutcome::Nothing);
  act(ContextAct::Begin);
  EXPECT_EQ(act(ContextAct::Join, 7), ContextOutcome::Nothing);
  EXPECT_TRUE(is_in_one());  // It is known that nothing was put.
}

TEST_F(RuntimeContexts, JoinedBagsAreTheEarliestOrTheLatest) {
  act(ContextAct::Begin);
  act(ContextAct::Put, 1);
  pack(0, 5, 50);
  pack(1, 5, 51);
  context()[abi::kContextNumber] = 5;
  act(ContextAct::Put, 2);
  elsewhere([&] {
    act(ContextAct::Take, 1);
    pack(0, 3, 30);
    pack(1, 3, 31);
    context()[abi::kContextNumber] = 3;
    EXPECT_EQ(act(ContextAct::Join, 2, 0b0100), ContextOutcome::Done);
    EXPECT_EQ(packed(0), 30U);
    EXPECT_EQ(packed(1), 51U);
    EXPECT_EQ(context()[abi::kContextNumber], 5U);
    act(ContextAct::Begin);  // Another request stays what it is.
    pack(0, 1, 10);
    EXPECT_EQ(act(ContextAct::Join, 2, 0b0100), ContextOutcome::Other);
    EXPECT_EQ(packed(0), 10U);
    EXPECT_TRUE(is_in_one());
  });
}

// Cells: how many, which was the last one, and a sum.
TEST_F(RuntimeContexts, JoinedCellsAreThoseOfOneSideOrUnknown) {
  constexpr auto kCells = static_cast<uint64_t>(abi::BagKind::Cells);
  const auto count = [this](uint64_t number, uint64_t last, uint64_t sum) {
    pack(0, number, sum);
    context()[kFirst + 1] = last;
  };
  act(ContextAct::Begin);
  act(ContextAct::Put, 1);  // Nothing was counted here,
  count(2, 77, 20);
  act(ContextAct::Put, 2);  // two here,
  count(3, 78, 25);
  act(ContextAct::Put, 3);  // and one more here.
  elsewhere([&] {
    act(ContextAct::Take, 1);
    EXPECT_EQ(act(ContextAct::Join, 2, kCells), ContextOutcome::Done);
    EXPECT_EQ(packed(0), 20U);
    EXPECT_EQ(act(ContextAct::Join, 2, kCells), ContextOutcome::Done);  // The same.
    EXPECT_EQ(act(ContextAct::Join, 1, kCells), ContextOutcome::Done);
    EXPECT_EQ(packed(0), 20U);
    EXPECT_EQ(act(ContextAct::Join, 3, kCells), ContextOutcome::Overlap);
    EXPECT_FALSE(is_in_one());
  });
}

// What it has done is before whatever it is joined with, and nobody knows what that was.
TEST_F(RuntimeContexts, WhoIsNowhereKnownStaysSoUntilItBeginsOrTakes) {
  act(ContextAct::Begin);
  act(ContextAct::Put, 1);
  act(ContextAct::Doubt, 7);
  EXPECT_EQ(act(ContextAct::Join, 7), ContextOutcome::Nothing);
  EXPECT_EQ(act(ContextAct::Join, 1), ContextOutcome::InDoubt);
  EXPECT_FALSE(is_in_one());
  act(ContextAct::Put, 2);
  elsewhere([&] {
    act(ContextAct::Take, 1);
    EXPECT_TRUE(is_in_one());
    EXPECT_EQ(act(ContextAct::Join, 2), ContextOutcome::Nothing);
    EXPECT_FALSE(is_in_one());
  });
  EXPECT_EQ(act(ContextAct::Take, 1), ContextOutcome::Done);
  EXPECT_TRUE(is_in_one());
  act(ContextAct::Join, 7);
  act(ContextAct::End);  // Its own part is over.
  EXPECT_EQ(act(ContextAct::Join, 1), ContextOutcome::Done);
  EXPECT_TRUE(is_in_one());
}

// Also where something was lost before.
TEST_F(RuntimeContexts, WhoIsNowhereKnownStaysSoBehindALoss) {
  act(ContextAct::Put, 9);
  act(ContextAct::Lose);
  elsewhere([&] {
    act(ContextAct::Begin);
    act(ContextAct::Put, 8);
  });
  act(ContextAct::Doubt, 7);
  EXPECT_EQ(act(ContextAct::Join, 7), ContextOutcome::Nothing);
  EXPECT_EQ(act(ContextAct::Join, 8), ContextOutcome::InDoubt);
  EXPECT_FALSE(is_in_one());
  EXPECT_EQ(act(ContextAct::Take, 8), ContextOutcome::Done);
}

// Who joins what is not known any more does not know what came first.
TEST_F(RuntimeContexts, ABlockThatWasWrittenAnewIsUnknown) {
  act(ContextAct::Begin);
  act(ContextAct::Put, 100);
  for (uint64_t i = 1; i < kBlocks; ++i)
    act(ContextAct::Put, 100 + i);
  EXPECT_EQ(act(ContextAct::Take, 100), ContextOutcome::Done);
  act(ContextAct::Put, 200);
  EXPECT_EQ(act(ContextAct::Join, 101), ContextOutcome::Done);
  EXPECT_EQ(act(ContextAct::Join, 100), ContextOutcome::Nothing);
  EXPECT_FALSE(is_in_one());
}

TEST_F(RuntimeContexts, WhatIsPutInDoubtIsUnknown) {
  act(ContextAct::Begin);
  act(ContextAct::Doubt, 7);
  EXPECT_EQ(act(ContextAct::Join, 7), ContextOutcome::Nothing);
  EXPECT_FALSE(is_in_one());
  EXPECT_EQ(act(ContextAct::Take, 7), ContextOutcome::Nothing);
}

// More objects than there are places: none is taken for another, and once one was forgotten,
// nobody knows of any that is not there whether it was put.
TEST_F(RuntimeContexts, AnObjectThatWasForgottenForOthersIsUnknown) {
  constexpr uint64_t kObjects = 200'000;
  act(ContextAct::Begin);
  EXPECT_EQ(act(ContextAct::Join, 1), ContextOutcome::Nothing);
  EXPECT_TRUE(is_in_one());
  for (uint64_t object = 1; object <= kObjects; ++object) {
    pack(0, 1, object);
    act(ContextAct::Put, object);
    if (object % 8 != 0) continue;
    const uint64_t before = object - 3;
    if (act(ContextAct::Take, before) == ContextOutcome::Done) {
      ASSERT_EQ(packed(0), before);
    } else {
      act(ContextAct::Begin);
    }
  }
  EXPECT_GT(target_page().objects_evicted[kSession], kObjects / 10);
  act(ContextAct::Begin);
  EXPECT_EQ(act(ContextAct::Join, kObjects + 1), ContextOutcome::Nothing);
  EXPECT_FALSE(is_in_one());
}

TEST_F(RuntimeContexts, AMissedProbeMakesAllThatWasUnknown) {
  act(ContextAct::Begin);
  act(ContextAct::Put, 7);
  // Of a probe that is under way on this stack.
  slot(static_cast<uint32_t>(own_index())).busy =
      reinterpret_cast<uint64_t>(__builtin_frame_address(0)) + 256;
  EXPECT_FALSE(stub(StubCall::Busy));
  EXPECT_EQ(open(), 0U);
  act(ContextAct::Begin);
  EXPECT_EQ(act(ContextAct::Join, 7), ContextOutcome::Nothing);
  EXPECT_FALSE(is_in_one());
  act(ContextAct::Begin);
  EXPECT_TRUE(is_in_one());
  act(ContextAct::Lose);
  EXPECT_FALSE(is_in_one());
  EXPECT_EQ(target_page().contexts_lost[kSession], 2U);
  target_page().contexts_lost[kSession] |= abi::kContextsForbidden;
  act(ContextAct::Begin);
  EXPECT_FALSE(is_in_one());
}

TEST_F(RuntimeContexts, ProcessesDoNotTakeWhatOthersHavePut) {
  act(ContextAct::Begin);
  act(ContextAct::Put, 7);
  slot(static_cast<uint32_t>(own_index())).process = 1;
  EXPECT_EQ(act(ContextAct::Take, 7), ContextOutcome::Nothing);
  slot(static_cast<uint32_t>(own_index())).process = 0;
  EXPECT_EQ(act(ContextAct::Take, 7), ContextOutcome::Done);
}

TEST_F(RuntimeContexts, WhoGetsASlotIsNotInItsPredecessorsRequest) {
  act(ContextAct::Begin);
  abi::SlotControl& mine = slot(static_cast<uint32_t>(own_index()));
  mine.owner = 0;
  mine.tid = 0;
  set_own_gs_base(0);
  ASSERT_TRUE(stub(StubCall::Claim));
  EXPECT_EQ(&slot(static_cast<uint32_t>(own_index())), &mine);
  EXPECT_EQ(open(), 0U);
}

// All words of a context are of one put, whoever writes beside.
TEST_F(RuntimeContexts, NobodyTakesHalfAContext) {
  constexpr uint64_t kRounds = 300'000;
  std::atomic<uint64_t> taken = 0;
  std::atomic<uint64_t> torn = 0;
  const auto work = [&](uint64_t seed) {
    ASSERT_TRUE(stub(StubCall::Claim));
    std::mt19937_64 random(seed);
    for (uint64_t round = 1; round <= kRounds; ++round) {
      const uint64_t object = 1 + random() % 5;
      if (random() % 2 == 0) {
        act(ContextAct::Begin);
        const uint64_t value = seed << 32 | round;
        pack(0, object, value);
        pack(1, object, value);
        act(ContextAct::Put, object);
      } else if (act(ContextAct::Take, object) == ContextOutcome::Done) {
        ++taken;
        const bool is_whole = packed(0) == packed(1) && context()[kFirst] == object;
        torn += is_whole ? 0 : 1;
      }
    }
    set_own_gs_base(0);
  };
  std::thread one(work, 1);
  std::thread two(work, 2);
  work(3);
  one.join();
  two.join();
  EXPECT_EQ(torn, 0U);
  EXPECT_GT(taken, kRounds / 10);
}

// Whatever the program writes over the shared memory.
TEST_F(RuntimeContexts, GarbageLeadsNowhereElse) {
  constexpr uint64_t kRegionEnd = (uint64_t{1} << 13) + abi::kWindowSlackBytes;
  std::mt19937_64 random(11);
  const auto outside = [&] {
    std::vector<uint8_t> bytes(slots_, slots_ + kSlots * kStride);
    std::memset(bytes.data() + (own_region() - slots_), 0, kRegionEnd);
    bytes.insert(bytes.end(), shared_, shared_ + (abi::kTargetPageOffset - abi::kPrivateSizeBytes));
    return bytes;
  };
  const std::vector<uint8_t> before = outside();
  for (int round = 0; round < 100'000; ++round) {
    if (round % 200 == 0) {
      for (uint64_t at = 0; at + 8 <= kRegionEnd; at += 8)
        *reinterpret_cast<uint64_t*>(own_region() + at) = random() % 3 == 0 ? random() : 0;
      for (abi::ObjectEntry& each : target_page().objects[kSession])
        each = {.tag = random() % 4 == 0 ? random() : each.tag, .block = random()};
    }
    const uint64_t object = random() % 64;
    (void)act(static_cast<ContextAct>(random() % 9), object, random());
    ASSERT_TRUE(kept_);
  }
  EXPECT_TRUE(outside() == before);
}

}  // namespace
}  // namespace clew::runtime

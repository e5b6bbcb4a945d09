// SPDX-License-Identifier: Apache-2.0
// What the blob does for the bodies and stubs that call it.
#include "runtime/blob.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/arena.h"
#include "runtime/blob_testing.h"

namespace clew::runtime {
namespace {

TEST_F(RuntimeBlob, DividesWithDefinedResultsForZeroAndOverflow) {
  const auto least = static_cast<uint64_t>(std::numeric_limits<int64_t>::min());
  const auto minus = [](int64_t v) { return static_cast<uint64_t>(v); };
  EXPECT_EQ(access(Accessor::DivideUnsigned, 100, 7), 14U);
  EXPECT_EQ(access(Accessor::DivideUnsigned, 100, 0), 0U);
  EXPECT_EQ(access(Accessor::ModuloUnsigned, 100, 7), 2U);
  EXPECT_EQ(access(Accessor::ModuloUnsigned, 100, 0), 100U);
  EXPECT_EQ(access(Accessor::DivideSigned, minus(-100), 7), minus(-14));
  EXPECT_EQ(access(Accessor::DivideSigned, least, minus(-1)), least);
  EXPECT_EQ(access(Accessor::DivideSigned, 5, 0), 0U);
  EXPECT_EQ(access(Accessor::ModuloSigned, minus(-100), 7), minus(-2));
  EXPECT_EQ(access(Accessor::ModuloSigned, least, minus(-1)), 0U);
  EXPECT_EQ(access(Accessor::ModuloSigned, 5, 0), 5U);
  EXPECT_TRUE(kept_);
}

TEST_F(RuntimeBlob, AThreadClaimsOneSlotAndFindsItAgain) {
  ASSERT_TRUE(stub(StubCall::Claim));
  const abi::SlotControl* mine = nullptr;
  for (uint32_t i = 0; i < kSlots; ++i) {
    if (directory()[i] != 0) mine = &slot(i);
  }
  ASSERT_NE(mine, nullptr);
  EXPECT_EQ(mine->tid, static_cast<uint32_t>(gettid()));
  EXPECT_EQ(mine->owner >> 48, 1U);
  EXPECT_EQ(mine->claims, 1U);
  set_own_gs_base(0);
  ASSERT_TRUE(stub(StubCall::Claim));
  EXPECT_EQ(mine->claims, 2U);
}

TEST_F(RuntimeBlob, AThreadThatHasTakenGsForItselfKeepsIt) {
  const auto own = reinterpret_cast<uint64_t>(shared_) - kLowAddress;  // No slot.
  set_own_gs_base(own);
  EXPECT_FALSE(stub(StubCall::Claim));
  const uint64_t base = own_gs_base();
  EXPECT_EQ(base, own);
  EXPECT_EQ(target_page().missed_no_slot[kSession], 1U);
}

// As on a machine whose kernel does not allow the instructions.
TEST_F(RuntimeBlob, AThreadThatMustAskTheKernelForItsBasesClaimsASlot) {
  header().bases = abi::SegmentBases::SystemCall;
  ASSERT_TRUE(stub(StubCall::Claim));
  const auto mine = static_cast<uint32_t>(own_index());
  EXPECT_EQ(slot(mine).tid, static_cast<uint32_t>(gettid()));
  EXPECT_EQ(slot(mine).index, mine);
  EXPECT_EQ(own_gs_base(), reinterpret_cast<uint64_t>(&slot(mine)) - kLowAddress);
}

TEST_F(RuntimeBlob, AThreadThatHasTakenGsKeepsItWhereTheKernelIsAsked) {
  header().bases = abi::SegmentBases::SystemCall;
  const auto own = reinterpret_cast<uint64_t>(shared_) - kLowAddress;
  set_own_gs_base(own);
  EXPECT_FALSE(stub(StubCall::Claim));
  EXPECT_EQ(own_gs_base(), own);
  EXPECT_EQ(target_page().missed_no_slot[kSession], 1U);
}

// Without a self pointer the stub comes at each hit.
TEST_F(RuntimeBlob, AThreadWithoutASelfPointerFindsItsSlotByAskingTheKernel) {
  header().bases = abi::SegmentBases::SystemCall;
  header().keeps_self_pointer = 0;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(stub(StubCall::Claim));
  EXPECT_EQ(slot(static_cast<uint32_t>(own_index())).claims, 1U);
  // A thread that it made, with a thread pointer of its own and its parent's gs.
  const uint64_t gs = own_gs_base();
  std::thread([&] {
    set_own_gs_base(gs);
    EXPECT_TRUE(stub(StubCall::Claim));
    EXPECT_NE(own_gs_base(), gs);
    EXPECT_EQ(slot(static_cast<uint32_t>(own_index())).tid, static_cast<uint32_t>(gettid()));
    set_own_gs_base(0);
  }).join();
}

TEST_F(RuntimeBlob, WhereOnlyTheTracerSetsBasesALaterThreadIsCountedAndSkipped) {
  header().bases = abi::SegmentBases::Tracer;
  EXPECT_FALSE(stub(StubCall::Claim));
  EXPECT_EQ(target_page().missed_no_slot[kSession], 1U);
  EXPECT_EQ(own_gs_base(), 0U);
  EXPECT_EQ(directory()[0], 0U);
}

// A filter that came after the attach and lets the call fail.
TEST_F(RuntimeBlob, AClaimWhoseSystemCallFailsGivesTheSlotBack) {
  header().bases = abi::SegmentBases::SystemCall;
  const pid_t child = fork();
  if (child == 0) {
    page().cookie = uint64_t{1} << 48;
    sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 1),
                            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program = {.len = std::size(filter), .filter = filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    const bool claimed = stub(StubCall::Claim) || stub(StubCall::Claim);
    _exit(claimed ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(target_page().missed_no_slot[kSession], 2U);
  for (uint32_t i = 0; i < kSlots; ++i) {
    EXPECT_EQ(slot(i).tid, 0U);
    EXPECT_EQ(slot(i).owner, 0U);
  }
}

// A program that writes over slots may lead an accessor to another slot, never out of them.
TEST_F(RuntimeBlob, ASlotThatLiesAboutItsIndexIsTakenForTheFirst) {
  ASSERT_TRUE(stub(StubCall::Claim));
  abi::SlotControl& mine = slot(static_cast<uint32_t>(own_index()));
  mine.index = 0x7FFF'FFFF;
  EXPECT_EQ(access(Accessor::RecordTake, 0x7000), 0U);
  EXPECT_TRUE(kept_);
}

TEST_F(RuntimeBlob, AHitWithoutAFreeSlotIsCountedAndSkipped) {
  for (uint32_t i = 0; i < kSlots; ++i) {
    directory()[i] = 99;
    slot(i).tid = 7;
  }
  EXPECT_FALSE(stub(StubCall::Claim));
  EXPECT_FALSE(stub(StubCall::Claim));
  EXPECT_EQ(target_page().missed_no_slot[kSession], 2U);
  slot(2).tid = 0;  // The collector frees one.
  EXPECT_TRUE(stub(StubCall::Claim));
  EXPECT_EQ(slot(2).tid, static_cast<uint32_t>(gettid()));
}

// Different owners, as many threads would be: the cookie is a part of the owner.
TEST_F(RuntimeBlob, FewThreadsShareOnePageOfTheDirectoryAndManyTakeAll) {
  constexpr uint64_t kSmallStride = 4096;
  constexpr uint32_t kPageWords = 512;
  uint8_t* const many = map_at(0, abi::kSlotsMax * kSmallStride, MAP_SHARED | MAP_NORESERVE);
  ASSERT_NE(many, nullptr);
  header().slots_address = reinterpret_cast<uint64_t>(many);
  header().slot_stride = kSmallStride;
  header().slot_count = abi::kSlotsMax;
  const auto claims = [&](uint64_t first, uint64_t end) {
    uint64_t taken = 0;
    for (uint64_t i = first; i < end; ++i) {
      page().cookie = (i + 1) << 48;
      taken += stub(StubCall::Claim) ? 1 : 0;
    }
    return taken;
  };
  const auto words = [&](uint32_t first, uint32_t end) {
    return (end - first) - std::count(directory() + first, directory() + end, uint64_t{0});
  };
  EXPECT_EQ(claims(0, 200), 200U);
  EXPECT_EQ(words(0, kPageWords), 200);
  EXPECT_EQ(words(kPageWords, abi::kSlotsMax), 0);
  EXPECT_EQ(claims(200, 3900), 3700U);
  EXPECT_EQ(words(0, abi::kSlotsMax), 3900);
  munmap(many, abi::kSlotsMax * kSmallStride);
}

TEST_F(RuntimeBlob, AForkedChildIsMutedOnceAndSkipsForEver) {
  ASSERT_TRUE(stub(StubCall::Claim));
  const pid_t child = fork();
  if (child == 0) _exit(!stub(StubCall::Claim) && !stub(StubCall::Claim) ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(target_page().forks_muted, 1U);
}

TEST_F(RuntimeBlob, AFollowedChildGetsASlotAndAnIndexOfItsOwn) {
  header().fork_policy = abi::ForkPolicy::Follow;
  ASSERT_TRUE(stub(StubCall::Claim));
  const pid_t child = fork();
  if (child == 0) _exit(stub(StubCall::Claim) ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(target_page().process_count, 2U);
  EXPECT_EQ(target_page().processes[1].pid, static_cast<uint32_t>(child));
  EXPECT_EQ(target_page().processes[1].parent, static_cast<uint32_t>(getpid()));
  uint32_t owned = 0;
  for (uint32_t i = 0; i < kSlots; ++i)
    owned += directory()[i] >> 48 == 2 ? 1U : 0U;
  EXPECT_EQ(owned, 1U);
}

// Children must not count for ever: at the end of its range the count would begin at indices that
// are others'.
TEST_F(RuntimeBlob, AChildBeyondTheLastIndexIsMutedAndLeavesTheCount) {
  header().fork_policy = abi::ForkPolicy::Follow;
  for (const uint32_t full : {uint32_t{abi::kProcessesMax}, UINT32_MAX}) {
    target_page().process_count = full;
    const uint32_t muted = target_page().forks_muted;
    const pid_t child = fork();
    if (child == 0) _exit(!stub(StubCall::Claim) && !stub(StubCall::Claim) ? 0 : 1);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(target_page().process_count, full);
    EXPECT_EQ(target_page().forks_muted, muted + 1);
  }
}

TEST_F(RuntimeBlob, ANestedProbeIsMissedAndAnAbandonedOneIsCleared) {
  ASSERT_TRUE(stub(StubCall::Claim));
  const uint64_t gs = own_gs_base();
  auto& mine = *reinterpret_cast<abi::SlotControl*>(gs + kLowAddress);
  const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  mine.busy = here + 4096;  // A probe of a caller runs: this hit comes from a signal handler.
  EXPECT_FALSE(stub(StubCall::Busy));
  EXPECT_EQ(counters().missed_reentry, 1U);
  mine.busy = here - 65536;  // The stack was cut back above that probe.
  EXPECT_TRUE(stub(StubCall::Busy));
  EXPECT_EQ(counters().missed_abandoned, 1U);
  EXPECT_EQ(mine.busy, 0U);
}

TEST_F(RuntimeBlob, TheTableFindsInsertsAndCountsWhatDoesNotFit) {
  ASSERT_TRUE(stub(StubCall::Claim));
  uint64_t key[2] = {7, 0};
  const auto find = [&](uint64_t second, uint64_t hash) {
    key[1] = second;
    std::memcpy(own_region() + 512, key, sizeof key);
    return access(Accessor::TableFind, 0, 512, hash << 61);
  };
  const uint64_t first = find(1, 5);
  ASSERT_NE(first, 0U);
  EXPECT_TRUE(kept_);
  EXPECT_EQ(find(1, 5), first);
  EXPECT_EQ(first, 1024 + 5 * 32 + 24U);
  EXPECT_NE(find(2, 5), first);  // The same hash, another key.
  for (uint64_t i = 3; i < 9; ++i)
    EXPECT_NE(find(i, i), 0U);
  EXPECT_EQ(counters().table_half[0], 0U);
  EXPECT_EQ(find(100, 1), 1024 + (8 + 1) * 32 + 24U);  // The first half is full.
  EXPECT_EQ(counters().table_half[0], uint64_t{1} << 63);
  for (uint64_t i = 101; i < 108; ++i)
    EXPECT_NE(find(i, i), 0U);
  EXPECT_EQ(find(108, 1), 0U);
  EXPECT_EQ(counters().dropped_table[0], 1U);
  std::memset(own_region() + 1024, 0, 8 * 32);
  counters().tables_drained = 1;
  EXPECT_EQ(find(108, 1), 1024 + 1 * 32 + 24U);
  EXPECT_EQ(counters().table_half[0], 0U);
  EXPECT_EQ(counters().dropped_table[0], 1U);
}

TEST_F(RuntimeBlob, RecordsPairByKeyAndDeadFramesMakeRoom) {
  ASSERT_TRUE(stub(StubCall::Claim));
  const uint64_t frame = 0x7fff'0000'0000;
  const uint64_t put = access(Accessor::RecordPut, frame | uint64_t{9} << 47);
  ASSERT_NE(put, 0U);
  EXPECT_EQ(access(Accessor::RecordTake, frame | uint64_t{8} << 47), 0U);
  EXPECT_EQ(access(Accessor::RecordTake, frame | uint64_t{9} << 47), put);
  EXPECT_EQ(access(Accessor::RecordTake, frame | uint64_t{9} << 47), 0U);
  EXPECT_EQ(counters().missed_unpaired, 2U);
  for (uint64_t i = 0; i < 8; ++i)
    EXPECT_NE(access(Accessor::RecordPut, frame + 16 * i), 0U);
  EXPECT_EQ(access(Accessor::RecordPut, frame - 64), 0U);  // All open calls are outer ones.
  EXPECT_EQ(counters().missed_records, 1U);
  EXPECT_NE(access(Accessor::RecordPut, frame + 4096), 0U);  // All open calls are over.
}

TEST_F(RuntimeBlob, ADroppedRecordIsNoLoss) {
  ASSERT_TRUE(stub(StubCall::Claim));
  const uint64_t key = 0x7fff'0000'0000 | uint64_t{9} << 47;
  ASSERT_NE(access(Accessor::RecordPut, key), 0U);
  EXPECT_EQ(access(Accessor::RecordDrop, key), 1U);
  EXPECT_EQ(access(Accessor::RecordDrop, key), 0U);
  EXPECT_EQ(counters().missed_unpaired, 0U);
  EXPECT_EQ(access(Accessor::RecordTake, key), 0U);
}

// Near calls, whose records are in order, and far ones, which share places.
TEST_F(RuntimeBlob, CallsThatAreLeftAreTakenInnermostFirst) {
  ASSERT_TRUE(stub(StubCall::Claim));
  header().sessions[kSession].layout.records.records_log2 = 7;
  constexpr uint64_t kFrame = 0x7fff'0000'0008;
  for (const uint64_t distance : {16, 48, 8192, 1 << 20}) {
    std::map<uint64_t, uint64_t> payloads;  // By frame.
    for (const uint64_t i : {3, 0, 5, 1, 4, 2}) {
      const uint64_t frame = kFrame + i * distance;
      payloads[frame] = access(Accessor::RecordPut, frame | (i + 1) << 47);
      ASSERT_NE(payloads[frame], 0U);
    }
    counters().unwind_from = kFrame + distance;
    for (const uint64_t i : {1, 2, 3}) {
      EXPECT_EQ(access(Accessor::RecordTakeLeft, kFrame + 4 * distance),
                payloads[kFrame + i * distance])
          << distance << ' ' << i;
    }
    EXPECT_EQ(access(Accessor::RecordTakeLeft, kFrame + 4 * distance), 0U);
    EXPECT_EQ(counters().unwind_from, 0U);
    EXPECT_EQ(access(Accessor::RecordTakeLeft, kFrame + 8 * distance), 0U);  // Nobody unwinds.
    for (const uint64_t i : {0, 4, 5})  // Called by the unwinder, and not left.
      EXPECT_EQ(access(Accessor::RecordDrop, (kFrame + i * distance) | (i + 1) << 47), 1U);
  }
}

TEST_F(RuntimeBlob, UnwindingFromAnotherStackLeavesNothing) {
  ASSERT_TRUE(stub(StubCall::Claim));
  constexpr uint64_t kFrame = 0x7fff'0000'0008;
  ASSERT_NE(access(Accessor::RecordPut, kFrame), 0U);
  counters().unwind_from = kFrame - (uint64_t{2} << 30);
  EXPECT_EQ(access(Accessor::RecordTakeLeft, kFrame + 16), 0U);
  counters().unwind_from = kFrame + 4096;
  EXPECT_EQ(access(Accessor::RecordTakeLeft, kFrame + 16), 0U);
  EXPECT_EQ(access(Accessor::RecordDrop, kFrame), 1U);
}

TEST_F(RuntimeBlob, ReadsThatFailGiveZeroesAndNoSignal) {
  ASSERT_TRUE(stub(StubCall::Claim));
  uint8_t* const two = map_at(0, 8192, MAP_PRIVATE);
  ASSERT_EQ(mprotect(two + 4096, 4096, PROT_NONE), 0);
  std::strcpy(reinterpret_cast<char*>(two + 4090), "hello");
  const auto address = reinterpret_cast<uint64_t>(two);
  uint8_t* const to = own_region() + 512;
  EXPECT_EQ(access(Accessor::TryRead, 512, 6, address + 4090), 1U);
  EXPECT_STREQ(reinterpret_cast<char*>(to), "hello");
  EXPECT_EQ(access(Accessor::TryRead, 512, 7, address + 4090), 0U);
  EXPECT_EQ(to[0], 0);
  EXPECT_EQ(access(Accessor::TryReadString, 512, 64, address + 4090), 5U);
  EXPECT_STREQ(reinterpret_cast<char*>(to), "hello");
  two[4095] = '!';
  EXPECT_EQ(access(Accessor::TryReadString, 512, 64, address + 4090), ~uint64_t{0});
  EXPECT_EQ(access(Accessor::TryReadString, 512, 4, address + 4090), 3U);
  EXPECT_STREQ(reinterpret_cast<char*>(to), "hel");
  EXPECT_EQ(access(Accessor::TryRead, 512, 8, 0xFFFF'8000'0000'0000), 0U);
  EXPECT_EQ(access(Accessor::TryRead, 512, 8, 0x8000'0000'0000'0000), 0U);
  header().system_calls_allowed = 0;
  EXPECT_EQ(access(Accessor::TryRead, 512, 6, address + 4090), 0U);
  munmap(two, 8192);
}

// Where nothing can be read, whoever made it so.
class BadMemory {
 public:
  BadMemory() {
    file_ = memfd_create("short", 0);
    EXPECT_EQ(ftruncate(file_, 4096), 0);
    cut_ = static_cast<uint8_t*>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file_, 0));
    EXPECT_EQ(ftruncate(file_, 0), 0);  // A load is SIGBUS from here on.
    closed_ =
        static_cast<uint8_t*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    gone_ = map_at(0, 4096, MAP_PRIVATE);
    munmap(gone_, 4096);
  }
  BadMemory(const BadMemory&) = delete;
  BadMemory& operator=(const BadMemory&) = delete;
  ~BadMemory() {
    munmap(cut_, 4096);
    munmap(closed_, 4096);
    close(file_);
  }

  [[nodiscard]] std::vector<uint64_t> addresses() const {
    std::vector<uint64_t> all = {0,
                                 8,
                                 0x0000'7FFF'FFFF'F000,  // The last page below the hole,
                                 0x8000'0000'0000'0000,  // in the hole,
                                 0xFFFF'8000'0000'0000,  // the kernel's half,
                                 0xFFFF'FFFF'FF60'0000,  // vsyscall,
                                 ~uint64_t{0} - 3};      // and a sum that wraps.
    for (const uint8_t* page : {cut_, closed_, gone_})
      all.push_back(reinterpret_cast<uint64_t>(page));
    // Memory of the kernel's own: a time page that is no ordinary one.
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find("[vvar") != std::string::npos) all.push_back(std::stoull(line, nullptr, 16));
    }
    return all;
  }

 private:
  int file_ = -1;
  uint8_t* cut_ = nullptr;
  uint8_t* closed_ = nullptr;
  uint8_t* gone_ = nullptr;
};

volatile sig_atomic_t handled;
std::function<void()> in_handler;

void count_signal(int) {
  handled = handled + 1;
  if (in_handler) in_handler();
}

TEST_F(RuntimeBlob, TheSparingDoorsLeadToTheSameAccessors) {
  ASSERT_TRUE(stub(StubCall::Claim));
  const char text[] = "hello";
  const auto address = reinterpret_cast<uint64_t>(text);
  const char* const to = reinterpret_cast<const char*>(own_region()) + 512;
  EXPECT_EQ(access_sparingly(Accessor::TryRead, 512, sizeof text, address), 1U);
  EXPECT_STREQ(to, "hello");
  EXPECT_EQ(access_sparingly(Accessor::TryReadString, 512, 4, address), 3U);
  EXPECT_STREQ(to, "hel");
  const uint64_t cells = access_sparingly(Accessor::TableFind, 0, 512, uint64_t{5} << 61);
  EXPECT_NE(cells, 0U);
  EXPECT_EQ(access(Accessor::TableFind, 0, 512, uint64_t{5} << 61), cells);
  constexpr uint64_t kFrame = 0x7fff'0000'0008;
  const uint64_t record = access_sparingly(Accessor::RecordPut, kFrame);
  EXPECT_NE(record, 0U);
  EXPECT_EQ(access_sparingly(Accessor::RecordTake, kFrame), record);
  EXPECT_EQ(access_sparingly(Accessor::RecordDrop, kFrame), 0U);
  EXPECT_EQ(access(Accessor::RecordPut, kFrame), record);
  EXPECT_EQ(access_sparingly(Accessor::RecordDrop, kFrame), 1U);
}

TEST_F(RuntimeBlob, ReadsFromNowhereNeedNoHandlerAndRunNone) {
  ASSERT_TRUE(stub(StubCall::Claim));
  const BadMemory memory;
  const auto read_all = [&] {
    for (const uint64_t address : memory.addresses()) {
      EXPECT_EQ(access(Accessor::TryRead, 512, 8, address), 0U) << std::hex << address;
      EXPECT_EQ(access(Accessor::TryReadString, 512, 8, address), ~uint64_t{0});
    }
  };
  // With the program's own handlers, with the signals blocked, and inside a handler.
  struct sigaction action {};
  action.sa_handler = count_signal;
  std::array<struct sigaction, 2> before{};
  sigaction(SIGSEGV, &action, &before[0]);
  sigaction(SIGBUS, &action, &before[1]);
  read_all();
  sigset_t both;
  sigset_t old;
  sigemptyset(&both);
  sigaddset(&both, SIGSEGV);
  sigaddset(&both, SIGBUS);
  sigprocmask(SIG_BLOCK, &both, &old);
  read_all();
  sigprocmask(SIG_SETMASK, &old, nullptr);
  EXPECT_EQ(handled, 0);
  in_handler = read_all;
  raise(SIGSEGV);
  in_handler = nullptr;
  EXPECT_EQ(handled, 1);
  sigaction(SIGSEGV, &before[0], nullptr);
  sigaction(SIGBUS, &before[1], nullptr);
}

TEST_F(RuntimeBlob, AReadOfAPageThatSomebodyUnmapsIsAllOrNothing) {
  ASSERT_TRUE(stub(StubCall::Claim));
  uint8_t* const page = map_at(0, 4096, MAP_PRIVATE);
  std::memset(page, 'x', 4096);
  std::atomic<bool> ends = false;
  std::thread other([&] {
    while (!ends) {
      munmap(page, 4096);
      (void)mmap(page, 4096, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0);
    }
  });
  uint64_t read = 0;
  for (int i = 0; i < 20'000; ++i)
    read += access(Accessor::TryRead, 512, 64, reinterpret_cast<uint64_t>(page));
  ends = true;
  other.join();
  EXPECT_LE(read, 20'000U);
  munmap(page, 4096);
}

// Arguments and window contents are a hostile body's: whatever they are, the accessors end, return,
// and write to the region and the slack behind it only.
TEST_F(RuntimeBlob, NoArgumentAndNoWindowLeadsAnAccessorOutOfItsRegion) {
  ASSERT_TRUE(stub(StubCall::Claim));
  constexpr uint64_t kRegionEnd = (uint64_t{1} << 13) + abi::kWindowSlackBytes;
  std::mt19937_64 random(5);
  const auto any = [&]() -> uint64_t {
    switch (random() % 6) {
      case 0:
        return random() % 20'000;
      case 1:
        return uint64_t{0} - random() % 5000;
      case 2:
        return (uint64_t{1} << (random() % 64)) - random() % 9;
      case 3:
        return reinterpret_cast<uint64_t>(own_region()) + random() % 30'000 - 10'000;
      default:
        return random();
    }
  };
  const auto outside = [&] {
    std::vector<uint8_t> bytes(slots_, slots_ + kSlots * kStride);
    const auto region = static_cast<size_t>(own_region() - slots_);
    std::memset(bytes.data() + region, 0, kRegionEnd);
    bytes.insert(bytes.end(), shared_,
                 shared_ + (abi::kLowBlockSizeBytes - abi::kPrivateSizeBytes));
    bytes.insert(bytes.end(), low_ + 8, low_ + abi::kPrivateSizeBytes);
    const size_t own = bytes.size() - abi::kReadingsSizeBytes + own_index() * sizeof(abi::Reading);
    std::memset(bytes.data() + own, 0, sizeof(abi::Reading));
    return bytes;
  };
  (void)access(Accessor::TryRead, 512, 1, 0);  // The process's number is looked up once.
  const std::vector<uint8_t> before = outside();
  for (int round = 0; round < 200'000; ++round) {
    if (round % 500 == 0) {
      for (uint64_t at = 0; at + 8 <= kRegionEnd; at += 8) {
        const uint64_t word = any();
        std::memcpy(own_region() + at, &word, 8);
      }
    }
    const auto accessor = static_cast<Accessor>(3 + random() % (abi::kAccessorCount - 3));
    const uint64_t r1 = any();
    const uint64_t r2 = any();
    (void)access(accessor, r1, r2, any());
    ASSERT_TRUE(kept_ || accessor == Accessor::WalkWithin) << static_cast<uint32_t>(accessor);
    if (round % 500 != 499) continue;
    ASSERT_TRUE(outside() == before) << "after " << round;
  }
}

TEST_F(RuntimeBlob, ALoaderWhoseTracerIsLateWaitsOnceAndTellsOfEachChange) {
  page().cookie = uint64_t{1} << 48;
  target_page().loader_sessions = 1U << kSession;
  header().loader_wait_ms = 5;
  stub(StubCall::Loader);
  EXPECT_EQ(target_page().loader_requests[kSession], 1U);
  EXPECT_EQ(target_page().loader_sessions, 0U);
  header().loader_wait_ms = 60'000;
  stub(StubCall::Loader);
  EXPECT_EQ(target_page().loader_requests[kSession], 2U);
  EXPECT_EQ(target_page().loader_sessions, 0U);
}

TEST_F(RuntimeBlob, AClaimTakesTheTidFromWhereTheArenaSays) {
  const auto tid_with = [&](uint64_t offset) {
    header().tid_offset = offset;
    std::memset(directory(), 0, abi::kDirectorySizeBytes);
    std::memset(slots_, 0, kSlots * kStride);
    EXPECT_TRUE(stub(StubCall::Claim));
    for (uint32_t i = 0; i < kSlots; ++i) {
      if (slot(i).tid != 0) return slot(i).tid;
    }
    return 0U;
  };
  EXPECT_EQ(tid_with(abi::kTidFromNobody), abi::kTidUnknown);
  EXPECT_EQ(tid_with(abi::kTidFromKernel), static_cast<uint32_t>(gettid()));
  uint32_t word = 0;
  asm volatile("mov %%fs:0x300, %0" : "=r"(word));
  EXPECT_EQ(tid_with(0x300), word == 0 ? abi::kTidUnknown : word);
}

TEST_F(RuntimeBlob, ALoaderThatIsAnsweredDoesNotWait) {
  target_page().loader_sessions = 1U << kSession;
  header().loader_wait_ms = 60'000;
  header().loader_answers[kSession] = 1;
  stub(StubCall::Loader);
  EXPECT_EQ(target_page().loader_sessions, 1U << kSession);
}

}  // namespace
}  // namespace clew::runtime

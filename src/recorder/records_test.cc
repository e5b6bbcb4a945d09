// SPDX-License-Identifier: Apache-2.0
// Time records as probes write them, into a ring of this process, and as they are read.
#include "recorder/records.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include <asm/prctl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include "base/assert.h"
#include "code/decode.h"
#include "recorder/time_probe.h"

namespace clew::recorder {
namespace {

constexpr uint32_t kDag = abi::dag_record(7);
constexpr uint32_t kLaterDag = abi::dag_record(8);
constexpr uint32_t kCursorField = 64;
constexpr code::Live kDead = {};
constexpr code::Live kLive = {abi::RegisterSet(0xffff), 0};

using Bytes = std::vector<uint8_t>;

uint32_t header(uint16_t low) {
  return abi::extended_word(abi::ExtendedRecord::Time, abi::kTimeWords, low);
}
std::vector<uint32_t> time_words(uint64_t ticks) {
  return {header(static_cast<uint16_t>(ticks)),
          abi::kExtendedBit | static_cast<uint32_t>(ticks >> 16 & 0x7fffffff),
          abi::kExtendedBit | static_cast<uint32_t>(ticks >> 47),
          abi::note_in_front(abi::Transfer::None, 0), header(static_cast<uint16_t>(ticks))};
}

template <typename Word>
void put(Bytes& to, Word word) {
  const size_t at = to.size();
  to.resize(at + sizeof(word));
  std::memcpy(to.data() + at, &word, sizeof(word));
}
void put(Bytes& to, const Bytes& bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// What a head does that a handler of a signal runs: r10 alone is changed.
Bytes head(uint32_t record) {
  Bytes bytes = {0x65, 0x4c, 0x8b, 0x14, 0x25};  // mov r10, gs:[cursor]
  put(bytes, kCursorField);
  put(bytes, Bytes{0x66, 0x41, 0x83, 0xc2, 0x04});  // add r10w, 4
  put(bytes, Bytes{0x65, 0x4c, 0x89, 0x14, 0x25});  // mov gs:[cursor], r10
  put(bytes, kCursorField);
  put(bytes, Bytes{0x49, 0xc7, 0x02});  // mov qword [r10], …
  put(bytes, record);
  return bytes;
}

// A lobe, a head of its thread, and room for code. gs is free in this process.
class Ring {
 public:
  Ring() {
    constexpr int kAll = PROT_READ | PROT_WRITE | PROT_EXEC;
    void* const memory =
        mmap(nullptr, 4 * abi::kLobeStride, kAll, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CLEW_ASSERT(memory != MAP_FAILED);
    memory_ = static_cast<uint8_t*>(memory);
    const auto address = reinterpret_cast<uint64_t>(memory_);
    lobe_ = (address + abi::kLobeStride - 1) / abi::kLobeStride * abi::kLobeStride;
    code_ = lobe_ + abi::kLobeStride;
    gs_ = lobe_ + 2 * abi::kLobeStride - 4096;
    CLEW_ASSERT(syscall(SYS_arch_prctl, ARCH_SET_GS, gs_) == 0);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    (void)syscall(SYS_arch_prctl, ARCH_SET_GS, 0);
    (void)munmap(memory_, 4 * abi::kLobeStride);
  }

  // Full of records; the newest one is there.
  void fill(size_t newest) {
    std::vector<uint32_t> words(abi::kLobeWords, kDag);
    words[(newest + 1) % words.size()] = 0;
    std::memcpy(reinterpret_cast<void*>(lobe_), words.data(), abi::kLobeBytes);
    const uint64_t cursor = lobe_ + newest * abi::kRecordBytes;
    std::memcpy(reinterpret_cast<void*>(gs_ + kCursorField), &cursor, sizeof(cursor));
  }

  // With values in rax and rdx, which come back.
  void run(const Bytes& probe) {
    Bytes bytes = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0xb8};  // endbr64 ; mov rax, …
    put(bytes, kRax);
    put(bytes, Bytes{0x48, 0xba});  // mov rdx, …
    put(bytes, kRdx);
    put(bytes, probe);
    put(bytes, uint8_t{0xc3});
    std::memcpy(reinterpret_cast<void*>(code_), bytes.data(), bytes.size());
    struct Registers {
      uint64_t rax;
      uint64_t rdx;
    };
    using Code = Registers (*)();
    before = __rdtsc();
    const Registers registers = reinterpret_cast<Code>(code_)();
    after = __rdtsc();
    kept = registers.rax == kRax && registers.rdx == kRdx;
  }

  [[nodiscard]] Records read() const {
    uint64_t cursor = 0;
    std::memcpy(&cursor, reinterpret_cast<const void*>(gs_ + kCursorField), sizeof(cursor));
    const size_t newest = (cursor - lobe_) / abi::kRecordBytes;
    CLEW_ASSERT(newest < abi::kLobeWords);
    return read_records(
        unroll({reinterpret_cast<const uint32_t*>(lobe_), abi::kLobeWords}, newest));
  }

  // All that is told of times is true.
  [[nodiscard]] bool is_true(const Records& records) const {
    for (const Stamp& stamp : records.stamps)
      if (stamp.ticks < before || stamp.ticks > after) return false;
    return true;
  }

  uint64_t before = 0;
  uint64_t after = 0;
  bool kept = false;

  static constexpr uint64_t kRax = 0x1122334455667788;

 private:
  static constexpr uint64_t kRdx = 0x99aabbccddeeff00;
  uint8_t* memory_ = nullptr;
  uint64_t lobe_ = 0;
  uint64_t code_ = 0;
  uint64_t gs_ = 0;
};

std::vector<Bytes> instructions_of(const Bytes& bytes) {
  std::vector<Bytes> all;
  for (size_t at = 0; at < bytes.size();) {
    const auto one = code::decode(std::span(bytes).subspan(at));
    CLEW_ASSERT(one);
    const auto begin = bytes.begin() + static_cast<ptrdiff_t>(at);
    all.emplace_back(begin, begin + one->length);
    at += one->length;
  }
  return all;
}

TEST(TimeRecord, IsWhatTheProbeWritesAndWrapsWithTheRing) {
  Ring ring;
  for (size_t newest = abi::kLobeWords - 8; newest < abi::kLobeWords; ++newest) {
    for (const code::Live& live : {kDead, kLive}) {
      ring.fill(newest);
      Bytes code = time_probe(live, kCursorField);
      put(code, head(kLaterDag));
      ring.run(code);
      const Records read = ring.read();
      ASSERT_EQ(read.stamps.size(), 1U) << newest;
      EXPECT_TRUE(ring.is_true(read));
      EXPECT_TRUE(ring.kept || live == kDead);
      EXPECT_EQ(read.words.back(), kLaterDag);
      EXPECT_EQ(read.words.size(), read.stamps[0].record + 1);
      EXPECT_EQ(std::count(read.words.begin(), read.words.end(), kTorn), 0);
    }
  }
}

TEST(TimeRecord, NotesADescriptorInFrontOfACallAndItsResultBehindIt) {
  Ring ring;
  Bytes in_front = {0xbf, 0xef, 0xbe, 0xad, 0xf1};  // mov edi, 0xf1adbeef
  put(in_front, time_probe(kLive, kCursorField, {.in_front = abi::Transfer::Receives}));
  ring.fill(abi::kLobeWords - 4);
  ring.run(in_front);
  EXPECT_TRUE(ring.kept);
  const Records front = ring.read();
  ASSERT_EQ(front.notes.size(), 1U);
  EXPECT_EQ(abi::transfer_of(front.notes[0].note), abi::Transfer::Receives);
  EXPECT_EQ(abi::descriptor_of(front.notes[0].note), 0xadbeefU);
  code::Live all_but_flags = code::kAllLive;
  all_but_flags.flags = 0;
  for (const code::Live& live : {kDead, kLive, all_but_flags}) {
    ring.fill(abi::kLobeWords - 4);
    ring.run(time_probe(live, kCursorField, {.is_behind = true}));
    const Records behind = ring.read();
    ASSERT_EQ(behind.notes.size(), 1U);
    EXPECT_EQ(behind.notes[0].note, abi::note_behind(Ring::kRax & 0xffff'ffff));
    EXPECT_TRUE(ring.kept || live == kDead);
    EXPECT_TRUE(ring.is_true(behind));
  }
}

// The flags are in rcx, or in r8.
TEST(TimeRecord, NotesThatACallOnlyLooks) {
  constexpr uint8_t kPeek = 2;  // MSG_PEEK
  Ring ring;
  for (const abi::Register flags : {abi::Register::Rcx, abi::Register::R8}) {
    for (const uint8_t value : {uint8_t{0}, kPeek, uint8_t{0x41}, uint8_t{0xff}}) {
      Bytes code = {0xbf, 7, 0, 0, 0};  // mov edi, 7
      put(code, flags == abi::Register::R8 ? Bytes{0x41, 0xb8} : Bytes{0xb9});
      put(code, uint32_t{value});
      code::Live live = kLive;
      live.registers.add(abi::Register::Rcx);
      live.registers.add(abi::Register::R8);
      put(code,
          time_probe(live, kCursorField, {.in_front = abi::Transfer::Receives, .flags = flags}));
      ring.fill(abi::kLobeWords - 4);
      ring.run(code);
      const Records read = ring.read();
      ASSERT_EQ(read.notes.size(), 1U);
      const bool peeks = (value & kPeek) != 0;
      EXPECT_EQ(abi::transfer_of(read.notes[0].note),
                peeks ? abi::Transfer::Peeks : abi::Transfer::Receives);
      EXPECT_EQ(abi::descriptor_of(read.notes[0].note), 7U);
    }
  }
}

TEST(TimeRecord, SaysResultsWithTheirSign) {
  for (const int32_t result : {0, 1, 4096, (1 << 29) - 1, -1, -4095})
    EXPECT_EQ(abi::result_of(abi::note_behind(static_cast<uint32_t>(result))), result);
}

TEST(TimeRecord, IsNotWrittenWhereFlagsAreLive) {
  EXPECT_TRUE(time_probe(code::kAllLive, kCursorField).empty());
}

TEST(TimeRecord, OfAThreadThatIsKilledAtAnyInstructionIsThereOrIsNot) {
  Ring ring;
  const std::vector<Bytes> all = instructions_of(time_probe(kDead, kCursorField));
  size_t whole = 0;
  for (size_t killed = 0; killed <= all.size(); ++killed) {
    for (const size_t newest : {size_t{100}, size_t{abi::kLobeWords - 3}}) {
      Bytes code;
      for (size_t i = 0; i < killed; ++i)
        put(code, all[i]);
      ring.fill(newest);
      ring.run(code);
      const Records read = ring.read();
      EXPECT_TRUE(ring.is_true(read));
      EXPECT_LE(read.stamps.size(), 1U);
      EXPECT_EQ(std::count(read.words.begin(), read.words.end(), kDag),
                static_cast<ptrdiff_t>(read.words.size()))
          << "killed behind " << killed;
      whole += read.stamps.size();
    }
  }
  EXPECT_EQ(whole, 2U);  // Behind the last instruction.
}

TEST(TimeRecord, ThatAHandlerInterruptsNeverSaysAWrongTime) {
  Ring ring;
  const std::vector<Bytes> all = instructions_of(time_probe(kDead, kCursorField));
  code::Live but_r10 = kLive;
  but_r10.registers = abi::RegisterSet(0xffff & ~(1U << static_cast<unsigned>(abi::Register::R10)));
  for (size_t interrupted = 0; interrupted <= all.size(); ++interrupted) {
    for (size_t records = 0; records < 12; ++records) {
      Bytes code;
      for (size_t i = 0; i < interrupted; ++i)
        put(code, all[i]);
      for (size_t i = 0; i < records % 6; ++i)
        put(code, head(kLaterDag));
      if (records >= 6) put(code, time_probe(but_r10, kCursorField));
      for (size_t i = interrupted; i < all.size(); ++i)
        put(code, all[i]);
      put(code, head(kLaterDag));
      ring.fill(abi::kLobeWords - 4);
      ring.run(code);
      const Records read = ring.read();
      EXPECT_TRUE(ring.is_true(read)) << interrupted << ", " << records;
      EXPECT_EQ(read.words.back(), kLaterDag);
    }
  }
}

TEST(Records, OfAWholeTimeAreTheOthersAndAStamp) {
  std::vector<uint32_t> words = {kDag};
  for (const uint32_t word : time_words(0x123456789abcdef0))
    words.push_back(word);
  words.push_back(kLaterDag);
  const Records read = read_records(words);
  EXPECT_EQ(read.words, (std::vector<uint32_t>{kDag, kLaterDag}));
  EXPECT_EQ(read.stamps, (std::vector<Stamp>{{1, 0x123456789abcdef0}}));
}

TEST(Records, OfATornTimeAreAGap) {
  const std::vector<uint32_t> time = time_words(1 << 20);
  for (size_t lost = 0; lost < time.size(); ++lost) {
    std::vector<uint32_t> words = {kDag, kDag};
    for (size_t i = 0; i < time.size(); ++i)
      words.push_back(i == lost ? kLaterDag : time[i]);
    words.push_back(kDag);
    const Records read = read_records(words);
    EXPECT_TRUE(read.stamps.empty());
    EXPECT_GE(std::count(read.words.begin(), read.words.end(), kTorn), 1);
    EXPECT_EQ(std::count(read.words.begin(), read.words.end(), kLaterDag), 1);
  }
}

TEST(Records, OfARingThatHasLostAPartOfItsOldestHaveNoGapThere) {
  std::vector<uint32_t> words = time_words(1 << 20);
  words.push_back(kDag);
  for (size_t lost = 1; lost <= abi::kTimeWords; ++lost) {
    const Records read = read_records(std::span(words).subspan(lost));
    EXPECT_EQ(read.words, std::vector<uint32_t>{kDag});
    EXPECT_TRUE(read.stamps.empty());
  }
}

TEST(Records, BeginBehindTheThreadsStart) {
  const uint32_t start = abi::extended_word(abi::ExtendedRecord::Start, 2, 5);
  std::vector<uint32_t> words = {kLaterDag, start, start};
  for (const uint32_t word : time_words(99))
    words.push_back(word);
  words.push_back(kDag);
  const Records read = read_records(words);
  EXPECT_EQ(read.words, std::vector<uint32_t>{kDag});
  EXPECT_EQ(read.stamps, (std::vector<Stamp>{{0, 99}}));
}

TEST(Records, HaveNoTimeThatIsLaterThanALaterOne) {
  std::vector<uint32_t> words;
  for (const uint64_t ticks : {10U, 30U, 20U}) {
    for (const uint32_t word : time_words(ticks))
      words.push_back(word);
    words.push_back(kDag);
  }
  const Records read = read_records(words);
  EXPECT_EQ(read.words.size(), 3U);
  EXPECT_EQ(read.stamps, (std::vector<Stamp>{{0, 10}, {2, 20}}));
}

TEST(Records, OfHostileWordsAreBounded) {
  const std::vector<uint32_t> words(abi::kLobeWords, header(3));
  const Records read = read_records(words);
  EXPECT_LE(read.words.size(), words.size());
  EXPECT_TRUE(read.stamps.size() <= words.size() / abi::kTimeWords);
}

}  // namespace
}  // namespace clew::recorder

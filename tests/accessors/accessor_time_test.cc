// SPDX-License-Identifier: Apache-2.0
// The longest of each D accessor: instructions, counted by single steps, and system calls, whatever
// window and tables hold. Contents are tried by the clock, and the slowest are counted. A copy of
// many bytes is an instruction for each. Texts are short here, 256 bytes, and limits are for each
// byte: single steps take long.
#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <x86intrin.h>

#include "abi/machine/accessor.h"
#include "abi/machine/dynamic.h"
#include "blob_copy.h"
#include "hostile_session.h"

namespace clew::accessors {
namespace {

using abi::MachineAccessor;
using abi::MachineProcessAccessor;
using Arguments = std::array<uint64_t, 4>;

constexpr uint64_t kDst = 0x6000;
constexpr uint64_t kText = 0x8000;
constexpr uint64_t kOther = 0xA000;
constexpr uint64_t kTextBytes = 0x200;
constexpr uint64_t kNowhere = uint64_t{1} << 63;

template <typename Accessor>
constexpr uint32_t index_of(Accessor accessor) {
  return static_cast<uint32_t>(accessor) - abi::kMachineAccessorBase;
}

struct Cost {
  uint64_t instructions = 0;
  uint64_t system_calls = 0;
};

// Of the call that is stepped through, for the handler.
struct Stepped {
  uint64_t begin = 0;
  uint64_t end = 0;
  Cost cost;
};
Stepped stepped;

void count_step(int, siginfo_t*, void* raw) {
  constexpr uint8_t kSystemCall[] = {0x0F, 0x05};
  const auto& context = static_cast<ucontext_t*>(raw)->uc_mcontext;
  const auto at = static_cast<uint64_t>(context.gregs[REG_RIP]);
  if (at < stepped.begin || at >= stepped.end) return;
  ++stepped.cost.instructions;
  const bool calls = std::memcmp(reinterpret_cast<const void*>(at), kSystemCall, 2) == 0;
  stepped.cost.system_calls += calls ? 1 : 0;
}

// The trap flag, as popf sets it.
void set_stepping(bool on) {
  constexpr uint64_t kTrapFlag = 0x100;
  const uint64_t flags = __builtin_ia32_readeflags_u64() & ~kTrapFlag;
  __builtin_ia32_writeeflags_u64(on ? flags | kTrapFlag : flags);
}

class AccessorTime : public testing::Test {
 protected:
  void SetUp() override {
    struct sigaction action {};
    action.sa_sigaction = count_step;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, &before_);
  }
  void TearDown() override { sigaction(SIGTRAP, &before_, nullptr); }

  void begin(uint32_t shape) {
    code_.reset();
    session_.reset();
    session_ = std::make_unique<HostileSession>(shape);
    code_ = std::make_unique<BlobCopy>(*session_);
  }

  uint64_t cycles_of(uint32_t index, const Arguments& arguments) {
    const uint64_t begin = __rdtsc();
    (void)session_->call(index, arguments);
    return __rdtsc() - begin;
  }

  Cost cost_of(uint32_t index, const Arguments& arguments) {
    const auto begin = reinterpret_cast<uint64_t>(code_->code().data());
    stepped = {.begin = begin, .end = begin + code_->code().size(), .cost = {}};
    set_stepping(true);
    (void)session_->call(index, arguments);
    set_stepping(false);
    return stepped.cost;
  }

  // `pattern` again and again, and a NUL behind `length` bytes.
  void fill(uint64_t from, const std::string& pattern, uint64_t length) {
    uint8_t* const text = reinterpret_cast<uint8_t*>(&session_->window()) + from;
    for (uint64_t i = 0; i < kTextBytes; ++i)
      text[i] = static_cast<uint8_t>(i == length ? '\0' : pattern[i % pattern.size()]);
  }

  std::unique_ptr<HostileSession> session_;
  std::unique_ptr<BlobCopy> code_;
  struct sigaction before_ {};
};

// What makes loops in loops long: what is found nowhere, almost everywhere, or in steps of one.
std::vector<std::string> patterns() {
  std::vector<std::string> all;
  for (const char* one : {"a",       "/",    ".",    "/a",     "../",   "a/../",   "./",
                          "a/",      " ",    "0",    "\"",     "\\",    "[",       "{",
                          ",",       "[,",   "\\\"", "{\"\":", "\":1,", "\"\":1,", "{\"a\":1,",
                          "[[],[],", "-0x1", "\t\n", "ab,",    "\xFF",  "}"})
    all.emplace_back(one);
  all.emplace_back(127, 'a');
  all.back().back() = 'b';
  return all;
}

struct Case {
  uint64_t cycles = 0;
  std::string text;
  std::string other;
  uint64_t other_bytes = 0;
  Arguments arguments{};
};

// Of texts: each accessor with each pair of them, in each role.
TEST_F(AccessorTime, OfTextsIsLinear) {
  constexpr uint64_t kEachByte = 60;
  constexpr uint64_t kSystemCallsMax = 4;
  begin(0);
  const uint64_t of_text = 1000 + kEachByte * session_->process().string_bytes;
  const Arguments roles[] = {
      {kDst, kText, kOther, 0},
      {kText, kOther, kNowhere, 0},
      {kDst, kText, 0, kNowhere - 1},
      {kDst, abi::kMachineWindowTag | kText, 4096, 0},
      {kDst, reinterpret_cast<uint64_t>(&session_->window()) + kText, 4096, 1},
      {kText, 36, 0, 0}};
  std::map<uint32_t, Case> slowest;
  const auto is_of_texts = [](uint32_t index) {
    return index != index_of(MachineAccessor::Raise) && index != index_of(MachineAccessor::Chill);
  };
  const auto try_all = [&](const std::string& text, const std::string& other, uint64_t bytes) {
    for (uint32_t index = 0; index < kAccessorCount; ++index) {
      for (const Arguments& role : roles) {
        if (!is_of_texts(index)) continue;
        fill(kText, text, kTextBytes);
        fill(kOther, other, bytes);
        const uint64_t cycles = cycles_of(index, role);
        if (cycles > slowest[index].cycles) slowest[index] = {cycles, text, other, bytes, role};
      }
    }
  };
  for (const std::string& text : patterns()) {
    for (const std::string& other : patterns()) {
      try_all(text, other, kTextBytes);
      try_all(text, other, 127);
      try_all(text, other, 24);
    }
  }
  for (const auto& [index, worst] : slowest) {
    fill(kText, worst.text, kTextBytes);
    fill(kOther, worst.other, worst.other_bytes);
    const Cost cost = cost_of(index, worst.arguments);
    RecordProperty(std::to_string(index + abi::kMachineAccessorBase),
                   std::to_string(cost.instructions));
    // Two clear as much of the window as they are told.
    const bool clears = index == index_of(MachineAccessor::Alloca) ||
                        index == index_of(MachineProcessAccessor::Clear);
    EXPECT_LE(cost.instructions, of_text + (clears ? abi::kMachineWindowBytes : 0))
        << "accessor " << index + abi::kMachineAccessorBase << " of " << worst.text.substr(0, 16)
        << " and " << worst.other.substr(0, 16);
    EXPECT_LE(cost.system_calls, kSystemCallsMax)
        << "accessor " << index + abi::kMachineAccessorBase;
  }
}

// An entry of each way that is the wanted one but for the last word of its key, and one that is
// always being changed: nobody ever ends that.
TEST_F(AccessorTime, OfVariablesIsBoundedByTheirTries) {
  constexpr uint64_t kEachWord = 14;
  begin(0);
  const abi::MachineProcess& process = session_->process();
  const uint64_t limit = abi::kMachineTriesMax * abi::kMachineWays * (40 + kEachWord * 2);
  const std::span<uint8_t> table = session_->part(Part::Dynamic);
  const uint64_t bucket_bytes = abi::dynamic_bucket_bytes(process.dynamic_entry_bytes);
  for (uint64_t variable = 0; variable < process.variable_count; ++variable) {
    const abi::MachineVariable& described = session_->variables()[variable];
    const auto thread = static_cast<uint64_t>(described.is_thread != 0 ? gettid() : 0);
    for (const bool is_locked : {false, true}) {
      for (uint64_t way = 0; way < process.dynamic_buckets * abi::kMachineWays; ++way) {
        uint8_t* const bucket = &table[way / abi::kMachineWays * bucket_bytes];
        uint8_t* const entry = bucket + abi::kMachineBucketHeadBytes +
                               way % abi::kMachineWays * process.dynamic_entry_bytes;
        const bool is_last = way % abi::kMachineWays == abi::kMachineWays - 1;
        const abi::MachineEntryHead head{static_cast<uint64_t>(abi::MachineEntryState::Updating),
                                         (variable + 1) << 32 | thread};
        const uint64_t last_word = is_last && !is_locked ? 0 : 1;
        std::memcpy(entry, &head, sizeof head);
        if (described.key_bytes != 0) {
          std::memcpy(entry + sizeof head + described.key_bytes - 8, &last_word, 8);
        }
        *reinterpret_cast<uint64_t*>(bucket) = is_locked ? 1 : 0;
      }
      for (uint32_t index = index_of(MachineAccessor::VariableLoad);
           index <= index_of(MachineAccessor::VariableDelete); ++index) {
        const Cost cost = cost_of(index, {variable, kText, 0, 0});
        EXPECT_LE(cost.instructions, limit)
            << "variable " << variable << " accessor " << index + abi::kMachineAccessorBase;
      }
    }
  }
}

// All entries within reach have the key's hash, and its words but the last. The longest key's, and
// those of the most cells.
TEST_F(AccessorTime, OfAggregationsIsBoundedByTheirTries) {
  constexpr uint64_t kTakesMax = 8;  // Of runtime/kernel/aggregate.cc.
  constexpr uint64_t kEachWord = 10;
  constexpr uint64_t kUsed = 4 | static_cast<uint64_t>(abi::MachineAggregateState::Used);
  const auto aggregate = index_of(MachineAccessor::Aggregate);
  for (const auto& [shape, i] : {std::pair{3U, 2U}, {3U, 26U}, {5U, 21U}, {5U, 22U}}) {
    begin(shape);
    const std::span<uint8_t> all = session_->part(Part::Aggregates);
    const abi::MachineAggregationTable& t = session_->aggregations()[i];
    const uint64_t key_words = t.aggregation.key_bytes / 8;
    const uint64_t limit = 8 * t.aggregation.cell_words +
                           kTakesMax * abi::kMachineProbesMax * (60 + kEachWord * key_words);
    const Cost inserted = cost_of(aggregate, {i, 5, 1, 0});
    EXPECT_LE(inserted.instructions, limit) << "new entry, aggregation " << i;
    std::vector<uint64_t*> entries;
    for (uint64_t cpu = 0; cpu < session_->process().cpus; ++cpu) {
      uint8_t* at = &all[cpu * session_->process().aggregates_cpu_bytes + t.begin];
      for (uint64_t entry = 0; entry < t.entries; ++entry, at += t.entry_bytes)
        entries.push_back(reinterpret_cast<uint64_t*>(at));
    }
    uint64_t hash = 0;
    for (const uint64_t* entry : entries)
      hash = std::max(hash, entry[1]);
    for (uint64_t* entry : entries) {
      entry[0] = kUsed;
      entry[1] = hash;
      if (key_words != 0) entry[1 + key_words] = 1;
      entry[2 + key_words] = abi::kMachinePinMask | 1;
    }
    const Cost refused = cost_of(aggregate, {i, 5, 1, 0});
    EXPECT_GT(refused.instructions, key_words * abi::kMachineProbesMax) << "aggregation " << i;
    EXPECT_LE(refused.instructions, limit) << "aggregation " << i;
  }
}

// Frames on the border of two pages: each is two reads of a page that was not read last.
TEST_F(AccessorTime, OfStacksIsBoundedByTheirFrames) {
  constexpr uint64_t kFramesMax = 512;
  constexpr uint64_t kLimit = 100 * kFramesMax;
  begin(0);
  GuardedMemory stack(8192);
  uint64_t* const frame = stack.as<uint64_t>() + 4096 / 8 - 1;
  uint64_t* const other = frame - 1;
  frame[0] = reinterpret_cast<uint64_t>(other);
  frame[1] = 0x1234;
  other[0] = reinterpret_cast<uint64_t>(frame);
  auto* const registers = reinterpret_cast<uint64_t*>(session_->window().clock_stack);
  session_->window().header.registers = 1;
  registers[4] = reinterpret_cast<uint64_t>(frame);
  registers[19] = reinterpret_cast<uint64_t>(frame + 1);
  for (const Arguments& arguments : {Arguments{kDst, 600, 1, 0}, Arguments{1, 0, 0, 0}}) {
    for (const uint32_t index :
         {index_of(MachineAccessor::Stack), index_of(MachineAccessor::StackDepth)}) {
      const Cost cost = cost_of(index, arguments);
      EXPECT_LE(cost.instructions, kLimit);
      EXPECT_LE(cost.system_calls, 2 * kFramesMax + 4);
    }
  }
}

}  // namespace
}  // namespace clew::accessors

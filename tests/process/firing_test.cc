// SPDX-License-Identifier: Apache-2.0
// What clauses do in a process, from their text on.
#include <cstring>
#include <ctime>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "firing_testing.h"

namespace clew::process {
namespace {

using plan::d::FiringPoint;
using testing::ElementsAre;

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t cpu_time_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

TEST_F(ProcessFiring, CountsAndLeavesEveryRegister) {
  load("a:b:c:entry { @ = count(); }");
  if (machine_ == nullptr) return;
  const InstalledFiring firing = install({}, script_.clauses);
  RegisterFile before = {};
  for (uint64_t i = 0; i < before.size(); ++i)
    before[i] = 0x1111'1111'1111'1111 * i + 7;
  before[4] = 0;
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(machine_->fire(firing, before), before);
  const auto keys = machine_->aggregate(0);
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(keys[0].cells, std::vector<uint64_t>{5});
}

TEST_F(ProcessFiring, RecordsArgumentsAndBuiltins) {
  const uint64_t before = monotonic_ns();
  run("a:b:c:entry { printf(\"%d %d %d %d %s %s %d\", arg0, arg1, pid, tid, probefunc, "
      "execname, timestamp); }",
      [] {
        RegisterFile r = {};
        r[kRdi] = 42;
        r[kRsi] = static_cast<uint64_t>(-5);
        return r;
      }());
  if (machine_ == nullptr) return;
  EXPECT_EQ(field(0), 42U);
  EXPECT_EQ(field(1), static_cast<uint64_t>(-5));
  EXPECT_EQ(static_cast<pid_t>(field(2)), getpid());
  EXPECT_EQ(static_cast<pid_t>(field(3)), gettid());
  EXPECT_EQ(text_field(4), "charge_card");
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  EXPECT_EQ(text_field(5), name);
  EXPECT_GE(field(6), before);
  EXPECT_LE(field(6), monotonic_ns());
  EXPECT_EQ(records_[0].header.time_ns, field(6));
  EXPECT_EQ(records_[0].header.probe, 77U);
  EXPECT_EQ(records_[0].header.kind, abi::MachineRecordKind::Data);
}

TEST_F(ProcessFiring, ReturnsHaveTheirOffsetAndTheResult) {
  run("a:b:c:return { printf(\"%d %d\", arg0, arg1); }", with(kRax, 1234), FiringPoint::Return);
  if (machine_ == nullptr) return;
  EXPECT_EQ(field(0), 9U);
  EXPECT_EQ(field(1), 1234U);
}

TEST_F(ProcessFiring, ArgumentsOnTheStackAreRead) {
  load("a:b:c:entry { printf(\"%d %d %d\", arg2, arg6, arg9); }");
  if (machine_ == nullptr) return;
  const InstalledFiring firing = install({}, script_.clauses);
  const RegisterFile before = with(kRdx, 3);
  EXPECT_EQ(machine_->fire(firing, before, {60, 70, 80, 90}), before);
  records_ = machine_->read_records();
  EXPECT_EQ(field(0), 3U);
  EXPECT_EQ(field(1), 60U);
  EXPECT_EQ(field(2), 90U);
}

TEST_F(ProcessFiring, PredicatesDecide) {
  load("a:b:c:entry /arg0 == 7/ { trace(arg1); }");
  if (machine_ == nullptr) return;
  const InstalledFiring firing = install({}, script_.clauses);
  machine_->fire(firing, with(kRdi, 6));
  EXPECT_TRUE(machine_->read_records().empty());
  machine_->fire(firing, with(kRdi, 7));
  EXPECT_EQ(machine_->read_records().size(), 1U);
}

TEST_F(ProcessFiring, ThreadLocalVariablesPairEntryAndReturn) {
  load(
      "a:b:c:entry { self->ts = timestamp; self->n = arg0; }"
      "a:b:c:return /self->ts/ { trace(timestamp - self->ts); trace(self->n); self->ts = 0; }");
  if (machine_ == nullptr) return;
  const InstalledFiring entry = install({}, {0});
  const InstalledFiring exit = install({.point = FiringPoint::Return}, {1});
  machine_->fire(exit);
  EXPECT_TRUE(machine_->read_records().empty());
  const uint64_t begin = monotonic_ns();
  machine_->fire(entry, with(kRdi, 99));
  machine_->fire(exit);
  const uint64_t took = monotonic_ns() - begin;
  records_ = machine_->read_records();
  EXPECT_GT(field(0), 0U);
  EXPECT_LE(field(0), took);
  EXPECT_EQ(field(1), 99U);
  machine_->fire(exit);
  EXPECT_TRUE(machine_->read_records().empty());
}

TEST_F(ProcessFiring, GlobalsAreSharedMemory) {
  load("int n; string s; a:b:c:entry { n += arg0; s = strjoin(\"n\", lltostr(n)); trace(s); }");
  if (machine_ == nullptr) return;
  const InstalledFiring firing = install({}, script_.clauses);
  machine_->fire(firing, with(kRdi, 5));
  machine_->fire(firing, with(kRdi, 6));
  records_ = machine_->read_records();
  ASSERT_EQ(records_.size(), 2U);
  records_.erase(records_.begin());
  EXPECT_EQ(text_field(0), "n11");
  int seen = 0;
  std::memcpy(&seen, machine_->globals(), sizeof seen);
  EXPECT_EQ(seen, 11);
}

TEST_F(ProcessFiring, AssociativeArraysHaveTuples) {
  load(
      "int x[int, string]; a:b:c:entry { x[1, \"a\"] += 1; x[2, \"a\"] += arg0;"
      " trace(x[1, \"a\"]); trace(x[2, \"a\"]); trace(x[1, \"b\"]); }");
  if (machine_ == nullptr) return;
  const InstalledFiring firing = install({}, script_.clauses);
  machine_->fire(firing, with(kRdi, 5));
  static_cast<void>(machine_->read_records());
  machine_->fire(firing, with(kRdi, 6));
  records_ = machine_->read_records();
  EXPECT_EQ(field(0), 2U);
  EXPECT_EQ(field(1), 11U);
  EXPECT_EQ(field(2), 0U);
}

TEST_F(ProcessFiring, AggregatesByKey) {
  load(
      "a:b:c:entry { @c[arg0] = count(); @s[probefunc, arg0] = sum(arg1); @q = quantize(arg1);"
      " @m = max(arg1); @a = avg(arg1); }");
  if (machine_ == nullptr) return;
  const InstalledFiring firing = install({}, script_.clauses);
  for (uint64_t i = 0; i < 10; ++i) {
    RegisterFile r = {};
    r[kRdi] = i % 2;
    r[kRsi] = i;
    machine_->fire(firing, r);
  }
  std::map<uint64_t, uint64_t> counts;
  for (const auto& one : machine_->aggregate(0)) {
    uint64_t key = 0;
    std::memcpy(&key, one.key.data(), 8);
    counts[key] = one.cells.at(0);
  }
  EXPECT_EQ(counts, (std::map<uint64_t, uint64_t>{{0, 5}, {1, 5}}));
  std::map<std::string, uint64_t> sums;
  for (const auto& one : machine_->aggregate(1)) {
    uint64_t key = 0;
    std::memcpy(&key, one.key.data() + one.key.size() - 8, 8);
    uint64_t place = 0;  // probefunc's, in the names.
    std::memcpy(&place, one.key.data(), 8);
    sums[machine_->name_at(place) + std::to_string(key)] = one.cells.at(0);
  }
  EXPECT_EQ(sums, (std::map<std::string, uint64_t>{{"charge_card0", 20}, {"charge_card1", 25}}));
  EXPECT_EQ(machine_->aggregate(3).at(0).cells.at(0), 9U);
  EXPECT_EQ(machine_->aggregate(4).at(0).cells, (std::vector<uint64_t>{10, 45}));
  const auto buckets = machine_->aggregate(2).at(0).cells;
  EXPECT_EQ(buckets.at(63), 1U);  // 0
  EXPECT_EQ(buckets.at(64), 1U);  // 1
  EXPECT_EQ(buckets.at(65), 2U);  // 2, 3
  EXPECT_EQ(buckets.at(66), 4U);  // 4 to 7
  EXPECT_EQ(buckets.at(67), 2U);  // 8, 9
}

// A text of the longest strsize fills the key area to its last word.
TEST_F(ProcessFiring, KeysOfTheLongestTextAreToldApart) {
  load("#pragma D option strsize=4k\na:b:c:entry { @[copyinstr(arg0)] = count(); }");
  if (machine_ == nullptr) return;
  const InstalledFiring firing = install({}, script_.clauses);
  for (const char* text : {"one", "two", "two"})
    machine_->fire(firing, {0, 0, 0, 0, 0, 0, 0, reinterpret_cast<uint64_t>(text)});
  EXPECT_EQ(machine_->aggregate(0).size(), 2U);
}

TEST_F(ProcessFiring, UserMemoryIsReadAndBadAddressesAreFaults) {
  const char* const text = "a text in the process";
  load("a:b:c:entry { trace(copyinstr(arg0)); }");
  if (machine_ == nullptr) return;
  const InstalledFiring firing = install({}, script_.clauses);
  machine_->fire(firing, with(kRdi, reinterpret_cast<uint64_t>(text)));
  records_ = machine_->read_records();
  EXPECT_EQ(text_field(0), text);
  machine_->fire(firing, with(kRdi, 0x10));
  records_ = machine_->read_records();
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].header.kind, abi::MachineRecordKind::Error);
  EXPECT_EQ(records_[0].word(0), static_cast<uint64_t>(abi::MachineFault::BadAddress));
  EXPECT_EQ(records_[0].word(1), 0x10U);
}

// What a text that was made for it, or a window that somebody else fills, may cost. A search that
// compares at each place takes 1,700 us here, and the limit is far above what it takes now.
TEST_F(ProcessFiring, AccessorsEndSoonWhateverTheWindowHolds) {
  load("#pragma D option strsize=4k\na:b:c:entry { trace(1); }");
  if (machine_ == nullptr) return;
  machine_->fire(install({}, script_.clauses));
  constexpr uint64_t kText = 0x8000;
  constexpr uint64_t kOther = kText + 0x2000;
  const auto fill = [&](uint64_t from, uint64_t size, uint8_t byte) {
    std::memset(reinterpret_cast<uint8_t*>(&machine_->window()) + from, byte, size);
  };
  const auto took_ns = [&](abi::MachineAccessor accessor, uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t begin = cpu_time_ns();
    (void)machine_->call(accessor, a, b, c);
    return cpu_time_ns() - begin;
  };
  constexpr uint64_t kLimitNs = 700'000;
  fill(0x4000, 0x8000, ',');
  fill(kText, 1, '[');
  const std::string path = "[18446744073709551615]";
  std::memcpy(reinterpret_cast<uint8_t*>(&machine_->window()) + kOther, path.c_str(),
              path.size() + 1);
  EXPECT_LT(took_ns(abi::MachineAccessor::Json, 0x4000, kText, kOther), kLimitNs);
  fill(kText, 0x1000, 'a');
  fill(kText + 0xfff, 1, 0);
  fill(kOther, 0x7ff, 'a');
  fill(kOther + 0x7fe, 1, 'b');
  fill(kOther + 0x7ff, 1, 0);
  EXPECT_LT(took_ns(abi::MachineAccessor::FindString, kText, kOther, uint64_t{1} << 63), kLimitNs);
  EXPECT_LT(took_ns(abi::MachineAccessor::FindLastString, kText, kOther, uint64_t{1} << 63),
            kLimitNs);
}

TEST_F(ProcessFiring, LongTextsAreFoundWhereTheyAre) {
  load("#pragma D option strsize=4k\na:b:c:entry { trace(1); }");
  if (machine_ == nullptr) return;
  machine_->fire(install({}, script_.clauses));
  constexpr uint64_t kText = 0x8000;
  constexpr uint64_t kOther = kText + 0x2000;
  const auto put = [&](uint64_t at, const std::string& text) {
    std::memcpy(reinterpret_cast<uint8_t*>(&machine_->window()) + at, text.c_str(),
                text.size() + 1);
  };
  std::minstd_rand random(3);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (uint32_t i = 0; i < 100; ++i)
      text += random() % 8 == 0 ? 'b' : 'a';
    std::string needle = text.substr(random() % 60, 17 + random() % 40);
    if (round % 4 == 0) needle.back() = 'c';
    put(kText, text);
    put(kOther, needle);
    const uint64_t from = round % 2 == 0 ? uint64_t{1} << 63 : random() % 40;
    const size_t begin = from >> 63 != 0 ? 0 : from;
    EXPECT_EQ(machine_->call(abi::MachineAccessor::FindString, kText, kOther, from),
              uint64_t{text.find(needle, begin)});
    EXPECT_EQ(machine_->call(abi::MachineAccessor::FindLastString, kText, kOther, from),
              uint64_t{text.rfind(needle, from >> 63 != 0 ? text.npos : from)});
  }
}

TEST_F(ProcessFiring, WithoutSystemCallsMemoryIsAFault) {
  load("a:b:c:entry { trace(copyinstr(arg0)); }");
  if (machine_ == nullptr) return;
  machine_->header().system_calls_allowed = 0;
  const InstalledFiring firing = install({}, script_.clauses);
  machine_->fire(firing, with(kRdi, reinterpret_cast<uint64_t>("text")));
  records_ = machine_->read_records();
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].header.kind, abi::MachineRecordKind::Error);
}

TEST_F(ProcessFiring, ErrorClausesRunAndLaterClausesFollow) {
  run("a:b:c:entry { trace(1 / arg0); } a:b:c:entry { trace(arg1); }"
      "dtrace:::ERROR { printf(\"%d %d %s\", arg1, arg4, probename); }",
      with(kRsi, 8));
  if (machine_ == nullptr) return;
  ASSERT_EQ(records_.size(), 3U);
  EXPECT_EQ(records_[0].header.kind, abi::MachineRecordKind::Error);
  EXPECT_EQ(records_[0].word(0), static_cast<uint64_t>(abi::MachineFault::DivideByZero));
  EXPECT_EQ(records_[1].header.clause, 2U);
  EXPECT_EQ(records_[1].header.probe, 3U);
  EXPECT_EQ(records_[2].header.clause, 1U);
  EXPECT_EQ(records_[2].header.probe, 77U);
  const auto all = records_;
  records_ = {all[1]};
  EXPECT_EQ(field(0), 77U);
  EXPECT_EQ(field(1), static_cast<uint64_t>(abi::MachineFault::DivideByZero));
  EXPECT_EQ(text_field(2), "ERROR");
  records_ = {all[2]};
  EXPECT_EQ(field(0), 8U);
}

TEST_F(ProcessFiring, ExitEndsTheSessionAndLaterClauses) {
  load("a:b:c:entry { exit(3); } a:b:c:entry { trace(1); }");
  if (machine_ == nullptr) return;
  const InstalledFiring firing = install({}, script_.clauses);
  machine_->fire(firing);
  EXPECT_EQ(machine_->shared().activity, static_cast<uint64_t>(abi::MachineActivity::Draining));
  EXPECT_EQ(machine_->shared().exit_code, 3U);
  records_ = machine_->read_records();
  ASSERT_EQ(records_.size(), 2U);
  EXPECT_EQ(records_[0].header.kind, abi::MachineRecordKind::Data);
  EXPECT_EQ(records_[1].header.kind, abi::MachineRecordKind::Exit);
  machine_->fire(firing);
  EXPECT_TRUE(machine_->read_records().empty());
}

TEST_F(ProcessFiring, SpeculationsAreCommittedOrNot) {
  load(
      "a:b:c:entry { self->id = speculation(); }"
      "a:b:c:entry { speculate(self->id); trace(arg0); }"
      "a:b:c:entry /arg0 == 1/ { commit(self->id); }"
      "a:b:c:entry /arg0 == 2/ { discard(self->id); }");
  if (machine_ == nullptr) return;
  const InstalledFiring firing = install({}, script_.clauses);
  machine_->fire(firing, with(kRdi, 1));
  machine_->fire(firing, with(kRdi, 2));
  std::vector<abi::MachineRecordKind> kinds;
  for (const auto& record : machine_->read_records()) {
    if (record.header.speculation != 0) kinds.push_back(record.header.kind);
  }
  EXPECT_THAT(kinds, ElementsAre(abi::MachineRecordKind::Data, abi::MachineRecordKind::Commit,
                                 abi::MachineRecordKind::Data, abi::MachineRecordKind::Discard));
}

TEST_F(ProcessFiring, StringsAreTheKernelsOwn) {
  run("a:b:c:entry { this->s = \"/usr/lib/../bin/tool\"; printf(\"%s %s %s %d %s %s %s\","
      " basename(this->s), cleanpath(this->s), substr(this->s, 5, 3), strlen(this->s),"
      " strtok(this->s, \"/\"), strtok(0, \"/\"), toupper(\"abc\")); }");
  if (machine_ == nullptr) return;
  EXPECT_EQ(text_field(0), "tool");
  EXPECT_EQ(text_field(1), "/usr/bin/tool");
  EXPECT_EQ(text_field(2), "lib");
  EXPECT_EQ(field(3), 20U);
  EXPECT_EQ(text_field(4), "usr");
  EXPECT_EQ(text_field(5), "lib");
  EXPECT_EQ(text_field(6), "ABC");
}

TEST_F(ProcessFiring, ClauseLocalVariablesAreZeroInEachFiring) {
  load("a:b:c:entry { this->n++; trace(this->n); } a:b:c:entry { trace(this->n); }");
  if (machine_ == nullptr) return;
  const InstalledFiring firing = install({}, script_.clauses);
  for (int i = 0; i < 2; ++i) {
    machine_->fire(firing);
    const auto all = machine_->read_records();
    ASSERT_EQ(all.size(), 2U);
    records_ = {all[0]};
    EXPECT_EQ(field(0), 1U);
    records_ = {all[1]};
    EXPECT_EQ(field(0), 1U);
  }
}

// A function, of whose frames this program's call frame information knows.
[[gnu::noinline]] uint64_t known_function(uint64_t x) {
  asm volatile("" : "+r"(x));
  return x + 1;
}

// The code that fires has no such information, so that its frame is left by the frame pointer; what
// that leads to is no code at all.
TEST_F(ProcessFiring, StacksGoByCallFrameInformation) {
  load("a:b:c:entry { ustack(6); trace(ucaller); trace(ustackdepth); trace(uregs[0]); }");
  if (machine_ == nullptr) return;
  const auto known = reinterpret_cast<uint64_t>(&known_function);
  const InstalledFiring firing = install({.program_counter = known}, script_.clauses);
  ASSERT_TRUE(machine_->know_stacks());
  uint64_t outer[2] = {0, 0x3333};
  uint64_t inner[2] = {reinterpret_cast<uint64_t>(outer), 0x2222};
  RegisterFile r = with(kRbp, reinterpret_cast<uint64_t>(inner));
  r[15] = 0x1515;
  EXPECT_EQ(machine_->fire(firing, r), r);
  records_ = machine_->read_records();
  ASSERT_EQ(records_.size(), 1U);
  const auto& fields = script_.generated.records[0].actions[0].fields;
  uint64_t frames[8] = {};
  std::memcpy(frames, records_[0].bytes.data() + fields[0].offset_bytes, sizeof frames);
  EXPECT_THAT(frames,
              ElementsAre(static_cast<uint64_t>(getpid()), known, frames[2], 0x2222, 0, 0, 0, 0));
  EXPECT_EQ(field(1), frames[2]);
  EXPECT_EQ(field(2), 3U);
  EXPECT_EQ(field(3), 0x1515U);
  EXPECT_EQ(machine_->unknown_code(), 2U);  // ucaller goes no further than it needs.
}

TEST_F(ProcessFiring, StacksOfReturnsBeginAtTheCaller) {
  load("a:b:c:return { ustack(1); trace(ucaller); trace(uregs[19]); }");
  if (machine_ == nullptr) return;
  const auto known = reinterpret_cast<uint64_t>(&known_function);
  const InstalledFiring firing =
      install({.point = FiringPoint::Return, .program_counter = known}, script_.clauses);
  ASSERT_TRUE(machine_->know_stacks());
  machine_->fire(firing, {});
  records_ = machine_->read_records();
  ASSERT_EQ(records_.size(), 1U);
  const auto& fields = script_.generated.records[0].actions[0].fields;
  uint64_t frames[3] = {};
  std::memcpy(frames, records_[0].bytes.data() + fields[0].offset_bytes, sizeof frames);
  EXPECT_NE(frames[1], known);
  EXPECT_EQ(frames[2], 0U);
  EXPECT_EQ(field(2), machine_->frame() + 8);
}

// Nobody has told of the process.
TEST_F(ProcessFiring, StacksWithoutTablesAreEmpty) {
  run("a:b:c:entry { ustack(2); trace(ustackdepth); }");
  EXPECT_EQ(field(1), 0U);
}

TEST_F(ProcessFiring, OffsetsKeepFlagsAndRedZone) {
  run("a:b:c:10 { ustack(2); trace(arg0); trace(uregs[19]); }", with(kRdi, 5), FiringPoint::Offset);
  if (machine_ == nullptr) return;
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(field(1), 0U);
  EXPECT_EQ(field(2), machine_->frame());
}

// The last one cannot be read.
TEST_F(ProcessFiring, StaticProbesHaveTheirOperands) {
  load(
      "a:b:c:d { printf(\"%d %d %d %d %d %d %d %d\", arg0, arg1, arg2, arg3, arg4, arg5, arg6,"
      " arg7); }");
  if (machine_ == nullptr) return;
  const FiringSite site{
      .point = FiringPoint::Offset,
      .static_arguments = "8@%rdi -4@%esi 1@%ah 2@-8(%rbp) 4@(%rdi,%rax,8) -8@$-7 8@(%rbx)"};
  const InstalledFiring firing = install(site, script_.clauses);
  std::vector<uint64_t> memory(0x300, 0x1111'2222);
  RegisterFile r = {};
  r[kRax] = 0x201;
  memory[0x201] = 0xFFFF'FFFF'0000'0042;
  r[kRdi] = reinterpret_cast<uint64_t>(memory.data());
  r[kRsi] = 0xFFFF'FFFE;
  r[kRbp] = reinterpret_cast<uint64_t>(&memory[1]);
  r[3] = 0x10;  // rbx
  EXPECT_EQ(machine_->fire(firing, r), r);
  records_ = machine_->read_records();
  EXPECT_EQ(field(0), r[kRdi]);
  EXPECT_EQ(field(1), static_cast<uint64_t>(-2));
  EXPECT_EQ(field(2), 2U);
  EXPECT_EQ(field(3), 0x2222U);
  EXPECT_EQ(field(4), 0x42U);
  EXPECT_EQ(field(5), static_cast<uint64_t>(-7));
  EXPECT_EQ(field(6), 0U);
  EXPECT_EQ(field(7), 0U);
}

TEST_F(ProcessFiring, NothingRunsBeforeTracingBegins) {
  load("a:b:c:entry { @ = count(); }");
  if (machine_ == nullptr) return;
  const InstalledFiring firing = install({}, script_.clauses);
  machine_->shared().activity = static_cast<uint64_t>(abi::MachineActivity::Inactive);
  machine_->fire(firing);
  EXPECT_TRUE(machine_->aggregate(0).empty());
}

TEST_F(ProcessFiring, ClausesThatNeedTheKernelStayThere) {
  const auto runs = [](std::string_view text) {
    const auto script = DScript::compile(text);
    EXPECT_TRUE(script) << script.error().message;
    std::vector<plan::d::FiringClause> clauses;
    for (const uint32_t i : script->clauses)
      clauses.push_back({&script->generated.clauses[i], i, 0});
    return plan::d::runs_in_process(clauses, {});
  };
  EXPECT_TRUE(runs("a:b:c:entry { @[probefunc, ustack()] = quantize(arg0); }"));
  EXPECT_TRUE(runs("a:b:c:entry { trace(*(int *)copyin(arg0, 4)); }"));
  EXPECT_TRUE(runs("a:b:c:entry { self->p = arg0; } a:b:c:return { trace(self->p); }"));
  EXPECT_TRUE(runs("a:b:c:entry { trace(copyinstr(self->p)); self->p = 0; }"));
  EXPECT_TRUE(runs("a:b:c:entry { trace(-1000000); }"));
  EXPECT_FALSE(runs("a:b:c:entry { trace(curthread->pid); }"));
  EXPECT_FALSE(runs("a:b:c:entry { trace(execargs); }"));
  EXPECT_FALSE(runs("a:b:c:entry { trace(progenyof(1)); }"));
  EXPECT_FALSE(runs("int *p; a:b:c:entry { trace(*p); }"));
  EXPECT_FALSE(runs("a:b:c:entry { trace(((struct task_struct *)self->p)->pid); self->p = 0; }"));
}

}  // namespace
}  // namespace clew::process

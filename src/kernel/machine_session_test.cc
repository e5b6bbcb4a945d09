// SPDX-License-Identifier: Apache-2.0
// D sessions in the kernel: every test loads clauses written by hand and compares what they report
// with what the test itself knows.
#include <cerrno>
#include <cstdio>
#include <ctime>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/session_testing.h"

namespace clew::kernel {
namespace {

using abi::MachineAccessor;
using abi::MachineBuiltin;
using abi::MachineRecordKind;
using isa::Alu;
using isa::Register;
using isa::Size;

TEST_F(SessionTest, BeginFiresOnceAndItsRecordArrives) {
  Clause c;
  c.builtin(MachineBuiltin::Pid).record(0);
  c.code().move(Register::R0, 42);
  c.record(1).commit(2);
  run({c.finish()});
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].header.kind, MachineRecordKind::Data);
  EXPECT_EQ(records_[0].header.probe, kBeginProbe);
  EXPECT_EQ(records_[0].header.size_bytes, sizeof(abi::MachineRecordHeader) + 16);
  EXPECT_EQ(records_[0].word(0), static_cast<uint64_t>(getpid()));
  EXPECT_EQ(records_[0].word(1), 42U);
}

// if (pid == ours) ++globals[0]
isa::Program count_ours() {
  Clause c;
  const isa::Label other = c.code().label();
  c.builtin(MachineBuiltin::Pid);
  c.code()
      .jump_if(isa::Jump::NotEqual, Register::R0, static_cast<int32_t>(getpid()), other)
      .load_global(Register::R1, 0)
      .move(Register::R2, 1)
      .atomic(isa::Atomic::Add, Size::Double, Register::R1, 0, Register::R2)
      .bind(other);
  return c.finish();
}

TEST_F(SessionTest, SystemCallsAreCountedExactly) {
  Clause report;
  report.code().load_global(Register::R1, 0).load(Size::Double, Register::R0, Register::R1, 0);
  report.record(0).commit(1);
  MachinePrograms programs = programs_of({count_ours(), report.finish()});
  programs.globals.resize(8);
  load(std::move(programs), {{syscall_probe(SYS_getppid), {0}}, {end_probe(), {1}}});
  ASSERT_TRUE(session_->attach());
  for (int i = 0; i < 10; ++i)
    syscall(SYS_getppid);  // Not yet.
  ASSERT_TRUE(session_->begin());
  for (int i = 0; i < 1234; ++i)
    syscall(SYS_getppid);
  ASSERT_TRUE(session_->end());
  for (int i = 0; i < 10; ++i)
    syscall(SYS_getppid);  // No more.
  read();
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].word(0), 1234U);
}

isa::Program commit_number(uint64_t number) {
  Clause c;
  c.code().load_constant(Register::R0, number);
  c.record(0).commit(1);
  return c.finish();
}

TEST_F(SessionTest, ReadingEndsWhileProbesRecordMore) {
  Clause ours;
  const isa::Label other = ours.code().label();
  ours.only_ours(other).record(0).commit(1).code().bind(other);
  load(programs_of({ours.finish()}), {{syscall_probe(SYS_getppid), {0}}});
  ASSERT_TRUE(session_->attach());
  ASSERT_TRUE(session_->begin());
  constexpr uint64_t kCalls = 10;
  for (uint64_t i = 0; i < kCalls; ++i)
    syscall(SYS_getppid);
  const auto call = [](std::span<const uint8_t>) { syscall(SYS_getppid); };
  EXPECT_EQ(session_->read(call), kCalls);
  EXPECT_EQ(session_->read(call), kCalls);
}

TEST_F(SessionTest, ExitIsKnownWithoutItsRecord) {
  Clause exits;
  exits.call(MachineAccessor::Exit, {7});
  MachinePrograms programs = programs_of({exits.finish()});
  programs.principal_bytes = 4096;
  load(std::move(programs), {{begin_probe(), {0}}});
  ASSERT_NE(session_, nullptr);
  EXPECT_EQ(session_->shared().exit_called, 0U);
  ASSERT_TRUE(session_->begin());
  EXPECT_EQ(session_->shared().exit_called, 1U);
  EXPECT_EQ(session_->shared().exit_code, 7U);
}

TEST_F(SessionTest, ExitStopsLaterClausesAndProbesButNotItsOwnClauseNorEnd) {
  Clause exits;
  exits.call(MachineAccessor::Exit, {7});
  exits.code().move(Register::R0, 1);
  exits.record(0).commit(1);
  MachinePrograms programs =
      programs_of({exits.finish(), commit_number(2), commit_number(3), commit_number(4)});
  load(std::move(programs),
       {{begin_probe(), {0, 1}}, {syscall_probe(SYS_getppid), {2}}, {end_probe(), {3}}});
  ASSERT_NE(session_, nullptr);
  ASSERT_TRUE(session_->attach());
  ASSERT_TRUE(session_->begin());
  syscall(SYS_getppid);
  EXPECT_EQ(session_->shared().activity, static_cast<uint64_t>(abi::MachineActivity::Draining));
  EXPECT_EQ(session_->shared().exit_code, 7U);
  ASSERT_TRUE(session_->end());
  read();
  ASSERT_EQ(records_.size(), 3U);
  EXPECT_EQ(records_[0].word(0), 1U);
  EXPECT_EQ(records_[1].header.kind, MachineRecordKind::Exit);
  EXPECT_EQ(records_[2].word(0), 4U);
}

TEST_F(SessionTest, AFaultEndsItsClauseRunsErrorClausesAndGoesOn) {
  Clause bad;
  bad.call(MachineAccessor::Load, {0x18, 8, 0}).record(0).commit(1);
  Clause error;
  for (uint32_t i = 0; i < 6; ++i)
    error.argument(i).record(i);
  error.builtin(MachineBuiltin::Id).record(6).commit(7);
  MachinePrograms programs = programs_of({bad.finish(), commit_number(5), error.finish()});
  programs.error_clauses = {2};
  run(std::move(programs));
  ASSERT_EQ(records_.size(), 3U);
  EXPECT_EQ(records_[0].header.kind, MachineRecordKind::Error);
  EXPECT_EQ(records_[0].header.clause, 0U);
  EXPECT_EQ(records_[0].word(0), static_cast<uint64_t>(abi::MachineFault::BadAddress));
  EXPECT_EQ(records_[0].word(1), 0x18U);
  EXPECT_EQ(records_[1].header.clause, 2U);
  EXPECT_EQ(records_[1].word(1), kBeginProbe);
  EXPECT_EQ(records_[1].word(2), 0U);
  EXPECT_EQ(records_[1].word(3), records_[0].word(2));
  EXPECT_EQ(records_[1].word(4), static_cast<uint64_t>(abi::MachineFault::BadAddress));
  EXPECT_EQ(records_[1].word(5), 0x18U);
  EXPECT_EQ(records_[1].word(6), kErrorProbe);
  EXPECT_EQ(records_[2].word(0), 5U);
  EXPECT_EQ(records_[2].header.probe, kBeginProbe);
}

TEST_F(SessionTest, AFaultInAnErrorClauseIsOnlyCounted) {
  Clause bad;
  bad.call(MachineAccessor::Load, {0x18, 8, 0});
  Clause error;
  error.call(MachineAccessor::StringLength, {0});
  MachinePrograms programs = programs_of({bad.finish(), error.finish()});
  programs.error_clauses = {1};
  run(std::move(programs));
  EXPECT_EQ(records_.size(), 1U);
  EXPECT_EQ(session_->shared().losses.error_in_error, 1U);
}

TEST_F(SessionTest, MemoryIsReadWhereItIsAndFaultsWhereItIsNot) {
  const uint64_t value = 0x1122334455667788;
  const auto address = reinterpret_cast<uint64_t>(&value);
  Clause c;
  c.call(MachineAccessor::Load, {address, 4, 1}).record(0);
  c.call(MachineAccessor::Copy, {Clause::word_offset(1), address, 8, 1});
  c.commit(2);
  Clause kernel;
  kernel.call(MachineAccessor::Load, {address, 8, 0});  // Not an address of the kernel.
  run({c.finish(), kernel.finish()});
  ASSERT_EQ(records_.size(), 2U);
  EXPECT_EQ(records_[0].word(0), 0x55667788U);
  EXPECT_EQ(records_[0].word(1), value);
  EXPECT_EQ(records_[1].header.kind, MachineRecordKind::Error);
  EXPECT_EQ(records_[1].word(1), address);
}

TEST_F(SessionTest, ReturnsHaveTheResultAndErrno) {
  Clause c;
  c.builtin(MachineBuiltin::Pid);
  const isa::Label other = c.code().label();
  c.code().jump_if(isa::Jump::NotEqual, Register::R0, static_cast<int32_t>(getpid()), other);
  c.argument(1).record(0).builtin(MachineBuiltin::Errno).record(1).commit(2);
  c.code().bind(other);
  load(programs_of({c.finish()}), {{syscall_probe(SYS_close, true), {0}}});
  ASSERT_NE(session_, nullptr);
  ASSERT_TRUE(session_->attach());
  ASSERT_TRUE(session_->begin());
  const int fd = dup(0);
  close(fd);
  syscall(SYS_close, -1);
  ASSERT_TRUE(session_->end());
  read();
  ASSERT_EQ(records_.size(), 2U);
  EXPECT_EQ(records_[0].word(0), 0U);
  EXPECT_EQ(records_[0].word(1), 0U);
  EXPECT_EQ(records_[1].word(0), static_cast<uint64_t>(-EBADF));
  EXPECT_EQ(records_[1].word(1), static_cast<uint64_t>(EBADF));
}

TEST_F(SessionTest, ArgumentsOfSystemCallsAndTracepointsAgree) {
  Clause call;
  const isa::Label other = call.code().label();
  call.only_ours(other);
  for (uint32_t i = 0; i < 6; ++i)
    call.argument(i).record(i);
  call.commit(6);
  call.code().bind(other);
  Clause tracepoint;
  const isa::Label not_ours = tracepoint.code().label();
  tracepoint.only_ours(not_ours);
  tracepoint.argument(1);
  tracepoint.code().jump_if(isa::Jump::NotEqual, Register::R0, SYS_getxattr, not_ours);
  tracepoint.record(0).builtin(MachineBuiltin::Id).record(1).commit(2);
  tracepoint.code().bind(not_ours);
  Probe raw = syscall_probe(0);
  raw.kind = AttachKind::RawTracepoint;
  raw.symbol = "sys_enter";
  raw.id = 4242;
  load(programs_of({call.finish(), tracepoint.finish()}),
       {{syscall_probe(SYS_getxattr), {0}}, {raw, {1}}});
  ASSERT_NE(session_, nullptr);
  ASSERT_TRUE(session_->attach());
  ASSERT_TRUE(session_->begin());
  syscall(SYS_getxattr, 0L, 2L, 3L, 4L, 5L, 6L);  // Of an int half a register is anything.
  ASSERT_TRUE(session_->end());
  read();
  ASSERT_EQ(records_.size(), 2U);
  const bool is_call_first = records_[0].bytes.size() > records_[1].bytes.size();
  const Record& of_call = records_[is_call_first ? 0 : 1];
  const Record& of_tracepoint = records_[is_call_first ? 1 : 0];
  const uint64_t expected[] = {0, 2, 3, 4, 5, 6};
  for (uint32_t i = 0; i < 6; ++i)
    EXPECT_EQ(of_call.word(i), expected[i]) << i;
  EXPECT_EQ(of_tracepoint.word(0), static_cast<uint64_t>(SYS_getxattr));
  EXPECT_EQ(of_tracepoint.word(1), 4242U);
}

TEST_F(SessionTest, SpeculationsAreHeldCommittedAndGivenBack) {
  Clause c;
  c.call(MachineAccessor::Speculation).record(0).call(MachineAccessor::Speculation).record(1);
  c.call(MachineAccessor::Speculation).record(2).commit(3);
  Clause first;
  first.call(MachineAccessor::Speculate, {1}).commit(1);
  Clause inactive;
  inactive.call(MachineAccessor::Speculate, {0}).commit(1);
  Clause ends;
  ends.call(MachineAccessor::SpeculateCommit, {1}).call(MachineAccessor::SpeculateCommit, {1});
  ends.call(MachineAccessor::SpeculateDiscard, {2}).call(MachineAccessor::SpeculateDiscard, {0});
  ends.call(MachineAccessor::Speculation)
      .record(0)
      .call(MachineAccessor::Speculation)
      .record(1)
      .commit(2);
  Clause wrong;
  wrong.call(MachineAccessor::SpeculateCommit, {1024}).commit(1);
  MachinePrograms programs =
      programs_of({c.finish(), first.finish(), inactive.finish(), ends.finish(), wrong.finish()});
  programs.speculations = 2;
  run(std::move(programs));
  ASSERT_EQ(records_.size(), 6U);
  EXPECT_EQ(records_[0].word(0), 1U);
  EXPECT_EQ(records_[0].word(1), 2U);
  EXPECT_EQ(records_[0].word(2), 0U);
  EXPECT_EQ(records_[1].header.speculation, 1U);
  EXPECT_EQ(records_[1].header.clause, 1U);
  EXPECT_EQ(records_[2].header.kind, MachineRecordKind::Commit);
  EXPECT_EQ(records_[2].header.speculation, 1U);
  EXPECT_EQ(records_[3].header.kind, MachineRecordKind::Discard);
  EXPECT_EQ(records_[3].header.speculation, 2U);
  EXPECT_EQ(records_[4].word(0), 2U);  // Free again as soon as it is discarded.
  EXPECT_EQ(records_[4].word(1), 0U);
  EXPECT_EQ(session_->shared().speculations[1].generation, 1U);
  EXPECT_EQ(records_[5].header.kind, MachineRecordKind::Error);
  EXPECT_EQ(records_[5].word(0), static_cast<uint64_t>(abi::MachineFault::IllegalOperation));
  EXPECT_EQ(session_->shared().losses.speculation_unavailable, 1U);
  EXPECT_EQ(session_->shared().losses.speculation_busy, 1U);
  EXPECT_EQ(session_->shared().speculations[0].state, 2U);
  session_->free_speculation(1);
  EXPECT_EQ(session_->shared().speculations[0].state, 0U);
}

TEST_F(SessionTest, ASpeculationHoldsNoMoreThanItsSize) {
  std::vector<isa::Program> clauses;
  Clause c;
  c.call(MachineAccessor::Speculation);
  clauses.push_back(c.finish());
  for (int i = 0; i < 5; ++i) {
    Clause one;
    one.call(MachineAccessor::Speculate, {1}).commit(12);
    clauses.push_back(one.finish());
  }
  MachinePrograms programs = programs_of(std::move(clauses));
  programs.speculation_bytes = 3 * 128;
  run(std::move(programs));
  EXPECT_EQ(records_.size(), 3U);
  EXPECT_EQ(session_->shared().losses.speculative, 2U);
}

TEST_F(SessionTest, RecordsWithoutRoomAreCounted) {
  Clause c;
  const isa::Label other = c.code().label();
  c.only_ours(other);
  c.commit(60);
  c.code().bind(other);
  MachinePrograms programs = programs_of({c.finish()});
  programs.principal_bytes = 4096;
  load(std::move(programs), {{syscall_probe(SYS_getppid), {0}}});
  ASSERT_NE(session_, nullptr);
  ASSERT_TRUE(session_->attach());
  ASSERT_TRUE(session_->begin());
  constexpr uint64_t kCalls = 1000;
  for (uint64_t i = 0; i < kCalls; ++i)
    syscall(SYS_getppid);
  ASSERT_TRUE(session_->end());
  read();
  uint64_t lost = 0;
  for (const uint64_t one : session_->shared().losses.principal)
    lost += one;
  EXPECT_GT(lost, 0U);
  EXPECT_GT(records_.size(), 0U);
  EXPECT_EQ(records_.size() + lost, kCalls);
}

Probe clock_probe(AttachKind kind, uint64_t period_ns) {
  Probe p;
  p.id = 900;
  p.provider = "profile";
  p.name = kind == AttachKind::Tick ? "tick" : "profile";
  p.kind = kind;
  p.period_ns = period_ns;
  return p;
}

uint64_t time_of(clockid_t clock) {
  timespec time{};
  (void)clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t now_ns() {
  return time_of(CLOCK_MONOTONIC);
}

uint64_t cpu_time_ns() {
  return time_of(CLOCK_PROCESS_CPUTIME_ID);
}

TEST_F(SessionTest, TicksComeAtTheirRateOnOneCpu) {
  Clause c;
  c.argument(0).record(0).argument(1).record(1).commit(2);
  load(programs_of({c.finish()}), {{clock_probe(AttachKind::Tick, 5'000'000), {0}}});
  ASSERT_NE(session_, nullptr);
  ASSERT_TRUE(session_->attach());
  ASSERT_TRUE(session_->begin());
  const uint64_t begin = now_ns();
  while (records_.size() < 20 && now_ns() - begin < 2'000'000'000)
    read();
  const uint64_t elapsed = now_ns() - begin;
  ASSERT_TRUE(session_->end());
  ASSERT_GE(records_.size(), 20U);
  EXPECT_GE(elapsed, 19U * 5'000'000 - 5'000'000);
  for (const Record& one : records_) {
    EXPECT_EQ(one.header.cpu, records_[0].header.cpu);
    EXPECT_TRUE((one.word(0) == 0) != (one.word(1) == 0));
  }
}

TEST_F(SessionTest, ProfilesFireOnEveryCpuAndShowWhereTheyWere) {
  Clause c;
  c.argument(0).record(0).builtin(MachineBuiltin::Pid).record(1);
  c.call(MachineAccessor::Stack, {Clause::word_offset(2), 8, 0});
  c.call(MachineAccessor::Stack, {Clause::word_offset(11), 8, 1}).commit(21);
  load(programs_of({c.finish()}), {{clock_probe(AttachKind::Profile, 1'000'000), {0}}});
  ASSERT_NE(session_, nullptr);
  ASSERT_TRUE(session_->attach());
  ASSERT_TRUE(session_->begin());
  // The clock of a CPU sees this process while it runs there; a host that takes the CPU away takes
  // firings too, so that the time is bounded, and not the count.
  const auto in_our_code = [](const Record& one) {
    return one.word(1) == static_cast<uint64_t>(getpid()) && one.word(0) == 0;
  };
  const uint64_t begin = cpu_time_ns();
  while (std::count_if(records_.begin(), records_.end(), in_our_code) <= 20 &&
         cpu_time_ns() - begin < 2'000'000'000)
    read();
  ASSERT_TRUE(session_->end());
  EXPECT_GT(std::count_if(records_.begin(), records_.end(), in_our_code), 20);
  for (const Record& one : records_) {
    EXPECT_EQ(one.word(2), one.word(0));
    if (!in_our_code(one)) continue;
    EXPECT_EQ(one.word(11), one.word(1));
    EXPECT_NE(one.word(12), 0U);
  }
}

// A function of this test, and where it is in the file.
[[gnu::noinline]] int traced_function(int a, int b) {
  asm volatile("");
  return a * 10 + b;
}

uint64_t file_offset_of(const void* function) {
  const auto address = reinterpret_cast<uint64_t>(function);
  FILE* maps = fopen("/proc/self/maps", "re");
  uint64_t result = 0;
  char line[512];
  while (maps != nullptr && fgets(line, sizeof line, maps) != nullptr) {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t offset = 0;
    if (sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &offset) != 3) continue;
    if (address >= begin && address < end) result = address - begin + offset;
  }
  if (maps != nullptr) (void)fclose(maps);
  return result;
}

TEST_F(SessionTest, FunctionsOfProcessesHaveArgumentsAndResults) {
  Clause entry;
  entry.argument(0).record(0).argument(1).record(1).commit(2);
  Clause leave;
  leave.argument(1).record(0).commit(1);
  Probe probe;
  probe.id = 50;
  probe.kind = AttachKind::UserEntry;
  probe.path = "/proc/self/exe";
  probe.offset_bytes = file_offset_of(reinterpret_cast<const void*>(&traced_function));
  probe.pid = getpid();
  Probe leaving = probe;
  leaving.id = 51;
  leaving.kind = AttachKind::UserReturn;
  load(programs_of({entry.finish(), leave.finish()}), {{probe, {0}}, {leaving, {1}}});
  ASSERT_NE(session_, nullptr);
  const Expected<void> attached = session_->attach();
  ASSERT_TRUE(attached) << attached.error().message;
  ASSERT_TRUE(session_->begin());
  EXPECT_EQ(traced_function(4, 2), 42);
  ASSERT_TRUE(session_->end());
  read();
  ASSERT_EQ(records_.size(), 2U);
  EXPECT_EQ(records_[0].header.probe, 50U);
  EXPECT_EQ(records_[0].word(0), 4U);
  EXPECT_EQ(records_[0].word(1), 2U);
  EXPECT_EQ(records_[1].header.probe, 51U);
  EXPECT_EQ(records_[1].word(0), 42U);
}

TEST_F(SessionTest, LocalVariablesBeginAsZeroInEachFiring) {
  Clause c;
  const isa::Label other = c.code().label();
  c.builtin(MachineBuiltin::Pid);
  c.code()
      .jump_if(isa::Jump::NotEqual, Register::R0, static_cast<int32_t>(getpid()), other)
      .load_window(Register::R1, 0x7000)
      .load(Size::Double, Register::R0, Register::R1, 0);
  c.record(0);
  c.put(0x7000, 99).commit(1);
  c.code().bind(other);
  MachinePrograms programs = programs_of({c.finish()});
  programs.local_begin = 0x6000;
  programs.local_bytes = 0x1800;
  load(std::move(programs), {{syscall_probe(SYS_getppid), {0}}});
  ASSERT_NE(session_, nullptr);
  ASSERT_TRUE(session_->attach());
  ASSERT_TRUE(session_->begin());
  syscall(SYS_getppid);
  syscall(SYS_getppid);
  ASSERT_TRUE(session_->end());
  read();
  ASSERT_EQ(records_.size(), 2U);
  EXPECT_EQ(records_[0].word(0), 0U);
  EXPECT_EQ(records_[1].word(0), 0U);
}

TEST_F(SessionTest, AFilterAndAnArgumentMapShapeATracepoint) {
  Clause c;
  const isa::Label other = c.code().label();
  c.only_ours(other);
  c.argument(0).record(0).argument(1).record(1).commit(2);
  c.code().bind(other);
  Probe raw = syscall_probe(0);
  raw.kind = AttachKind::RawTracepoint;
  raw.symbol = "sys_enter";
  raw.argument_map = {1};
  raw.filter_argument = 1;
  raw.filter_mask = ~uint64_t{0};
  raw.filter_value = SYS_getppid;
  load(programs_of({c.finish()}), {{raw, {0}}});
  ASSERT_NE(session_, nullptr);
  ASSERT_TRUE(session_->attach());
  ASSERT_TRUE(session_->begin());
  syscall(SYS_getppid);
  syscall(SYS_getuid);
  ASSERT_TRUE(session_->end());
  read();
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].word(0), static_cast<uint64_t>(SYS_getppid));
  EXPECT_EQ(records_[0].word(1), 0U);
}

TEST_F(SessionTest, StacksOfSystemCallsBeginOutsideOfTheMachinery) {
  Clause c;
  const isa::Label other = c.code().label();
  c.only_ours(other);
  c.call(MachineAccessor::Stack, {Clause::word_offset(0), 16, 0});
  c.builtin(MachineBuiltin::Stackdepth).record(17).commit(18);
  c.code().bind(other);
  load(programs_of({c.finish()}), {{syscall_probe(SYS_getppid), {0}}});
  ASSERT_NE(session_, nullptr);
  ASSERT_TRUE(session_->attach());
  ASSERT_TRUE(session_->begin());
  syscall(SYS_getppid);
  ASSERT_TRUE(session_->end());
  read();
  ASSERT_EQ(records_.size(), 1U);
  uint64_t depth = 0;
  while (depth < 16 && records_[0].word(static_cast<uint32_t>(depth)) != 0)
    ++depth;
  EXPECT_EQ(depth, records_[0].word(17));
  EXPECT_GE(depth, 1U);
  EXPECT_LE(depth, 4U);
}

TEST_F(SessionTest, ArgumentsThatCannotBeReadAreRefused) {
  Clause c;
  c.argument(0).record(0).commit(1);
  Probe unknown = syscall_probe(0);
  unknown.kind = AttachKind::RawTracepoint;
  unknown.symbol = "no_such_tracepoint";
  const Expected<MachineSession> session =
      MachineSession::load(programs_of({c.finish()}), {{unknown, {0}}});
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, ErrorCode::Refused);
  EXPECT_NE(session.error().message.find("no_such_tracepoint"), std::string::npos);
}

TEST_F(SessionTest, WhatTheKernelRefusesNamesTheClauseAndKeepsTheLog) {
  Clause c;
  c.code().move(Register::R0, 1).load(Size::Double, Register::R0, Register::R0, 0);
  std::string log;
  const Expected<MachineSession> session =
      MachineSession::load(programs_of({c.finish()}), {{begin_probe(), {0}}}, &log);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, ErrorCode::Refused);
  EXPECT_NE(session.error().message.find("clause 0"), std::string::npos) << session.error().message;
  EXPECT_NE(log.find("R0 invalid mem access"), std::string::npos);
}

}  // namespace
}  // namespace clew::kernel

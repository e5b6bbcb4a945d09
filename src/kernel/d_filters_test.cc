// SPDX-License-Identifier: Apache-2.0
// What keeps a probe from firing, and what its arguments are made of.
#include <cerrno>
#include <thread>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/session_testing.h"

namespace clew::kernel {
namespace {

using isa::Register;

// Places in the struct pt_regs that sys_enter's first argument points to.
constexpr uint32_t kRsi = 104;
constexpr uint32_t kRdi = 112;

// sys_enter(registers, number)
Probe any_call() {
  Probe p;
  p.id = 900;
  p.provider = "rawtp";
  p.name = "sys_enter";
  p.kind = AttachKind::RawTracepoint;
  p.symbol = "sys_enter";
  return p;
}

// Our calls' first arguments, as records.
isa::Program record_arguments(uint32_t count) {
  Clause c;
  const isa::Label other = c.code().label();
  c.only_ours(other);
  for (uint32_t i = 0; i < count; ++i)
    c.argument(i).record(i);
  c.commit(count);
  c.code().bind(other);
  return c.finish();
}

class FilterTest : public SessionTest {
 protected:
  void start(isa::Program clause, const Probe& probe) {
    load(programs_of({std::move(clause)}), {{probe, {0}}});
    ASSERT_TRUE(session_);
    const Expected<void> attached = session_->attach();
    ASSERT_TRUE(attached) << attached.error().message;
    ASSERT_TRUE(session_->begin());
  }
  void stop() {
    ASSERT_TRUE(session_->end());
    read();
  }
};

TEST_F(FilterTest, ConditionsOnArgumentsAndOnTheMemoryTheyPointToMustAllHold) {
  Probe p = any_call();
  p.filter_argument = 1;
  p.filter_mask = ~uint64_t{0};
  p.filter_value = SYS_getppid;
  p.more_filters = {
      {.argument = 0, .load_bytes = 8, .load_offset_bytes = kRdi, .value = 7},
      {.argument = 0, .load_bytes = 4, .load_offset_bytes = kRsi, .is_inverted = true, .value = 3},
      {.argument = 0, .load_bytes = 1, .load_offset_bytes = kRsi, .mask = 1, .value = 1}};
  start(record_arguments(2), p);
  for (uint64_t i = 0; i < 10; ++i) {
    syscall(SYS_getppid, 7, i);
    syscall(SYS_getppid, 8, i);
    syscall(SYS_getuid, 7, i);
  }
  stop();
  EXPECT_EQ(records_.size(), 4U);  // 1, 5, 7, 9
  for (const Record& record : records_)
    EXPECT_EQ(record.word(1), uint64_t{SYS_getppid});
}

TEST_F(FilterTest, MemoryThatCannotBeReadIsZero) {
  Probe p = any_call();
  p.more_filters = {{.argument = 1, .value = SYS_getppid},
                    {.argument = 1, .load_bytes = 8, .load_offset_bytes = 8, .value = 0}};
  start(record_arguments(2), p);
  for (int i = 0; i < 5; ++i)
    syscall(SYS_getppid);
  stop();
  EXPECT_EQ(records_.size(), 5U);
}

TEST_F(FilterTest, ArgumentsAreMappedAlsoToTheTaskErrnoAndNumbers) {
  Probe p = syscall_probe(SYS_close, true);
  p.filter_argument = 1;
  p.filter_mask = uint64_t{1} << 63;
  p.filter_value = uint64_t{1} << 63;
  p.argument_map = {kArgumentErrno, kArgumentNumber + 3, 1, kArgumentTask, kArgumentNumber};
  Clause c;
  const isa::Label other = c.code().label();
  c.only_ours(other);
  for (uint32_t i = 0; i < 6; ++i)
    c.argument(i).record(i);
  c.builtin(abi::MachineBuiltin::Curthread).record(6).commit(7);
  c.code().bind(other);
  start(c.finish(), p);
  EXPECT_EQ(close(-1), -1);
  EXPECT_EQ(close(dup(0)), 0);
  stop();
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].word(0), uint64_t{EBADF});
  EXPECT_EQ(records_[0].word(1), 3U);
  EXPECT_EQ(records_[0].word(2), static_cast<uint64_t>(-EBADF));
  EXPECT_EQ(records_[0].word(3), records_[0].word(6));
  EXPECT_EQ(records_[0].word(4), 0U);
  EXPECT_EQ(records_[0].word(5), 0U);
}

TEST_F(FilterTest, AProbeOfFirstThreadsIsSilentInOthers) {
  Probe p = syscall_probe(SYS_getppid);
  p.is_first_thread_only = true;
  start(record_arguments(1), p);
  std::thread([] { syscall(SYS_getppid, 1); }).join();
  syscall(SYS_getppid, 2);
  stop();
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].word(0), 2U);
}

TEST_F(FilterTest, SystemCallsAreFilteredByTheirArguments) {
  Probe p = syscall_probe(SYS_getppid);
  p.more_filters = {{.argument = 5, .mask = 0xF0, .value = 0x20}};
  start(record_arguments(6), p);
  for (uint64_t i = 0; i < 64; ++i)
    syscall(SYS_getppid, 0, 0, 0, 0, 0, i);
  stop();
  ASSERT_EQ(records_.size(), 16U);
  EXPECT_EQ(records_[15].word(5), 0x2FU);
}

TEST_F(FilterTest, TooManyConditionsAreRefused) {
  Probe p = any_call();
  p.filter_mask = 1;
  p.more_filters.resize(kProbeFiltersMax + 1);
  const Expected<MachineSession> session =
      MachineSession::load(programs_of({record_arguments(1)}), {{p, {0}}});
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, ErrorCode::Limit);
}

}  // namespace
}  // namespace clew::kernel

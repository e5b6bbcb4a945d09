// SPDX-License-Identifier: Apache-2.0
#include "output/d/drops.h"

#include <memory>

#include <gtest/gtest.h>

namespace clew::output::d {
namespace {

TEST(DDrops, AreNamedInSingularAndPlural) {
  struct Case {
    Drop drop;
    std::string_view expected;
  };
  const Case cases[] = {
      {{DropKind::Principal, 1, 2}, "dtrace: 1 drop on CPU 2\n"},
      {{DropKind::Principal, 7, 0}, "dtrace: 7 drops on CPU 0\n"},
      {{DropKind::Aggregation, 1, 1}, "dtrace: 1 aggregation drop on CPU 1\n"},
      {{DropKind::Aggregation, 3, 0}, "dtrace: 3 aggregation drops on CPU 0\n"},
      {{DropKind::Dynamic, 1}, "dtrace: 1 dynamic variable drop\n"},
      {{DropKind::Dynamic, 2}, "dtrace: 2 dynamic variable drops\n"},
      {{DropKind::DynamicDirty, 1}, "dtrace: 1 dynamic variable drop with non-empty dirty list\n"},
      {{DropKind::DynamicDirty, 2}, "dtrace: 2 dynamic variable drops with non-empty dirty list\n"},
      {{DropKind::DynamicRinse, 1},
       "dtrace: 1 dynamic variable drop with non-empty rinsing list\n"},
      {{DropKind::DynamicRinse, 5},
       "dtrace: 5 dynamic variable drops with non-empty rinsing list\n"},
      {{DropKind::Speculative, 1}, "dtrace: 1 speculative drop\n"},
      {{DropKind::Speculative, 9}, "dtrace: 9 speculative drops\n"},
      {{DropKind::SpeculationBusy, 1},
       "dtrace: 1 failed speculation (available buffer(s) still busy)\n"},
      {{DropKind::SpeculationBusy, 2},
       "dtrace: 2 failed speculations (available buffer(s) still busy)\n"},
      {{DropKind::SpeculationUnavailable, 1},
       "dtrace: 1 failed speculation (no speculative buffer available)\n"},
      {{DropKind::SpeculationUnavailable, 2},
       "dtrace: 2 failed speculations (no speculative buffer available)\n"},
      {{DropKind::StackOverflow, 1}, "dtrace: 1 jstack()/ustack() string table overflow\n"},
      {{DropKind::StackOverflow, 2}, "dtrace: 2 jstack()/ustack() string table overflows\n"},
      {{DropKind::ErrorInError, 1}, "dtrace: 1 error in ERROR probe enabling\n"},
      {{DropKind::ErrorInError, 2}, "dtrace: 2 errors in ERROR probe enabling\n"},
  };
  for (const Case& each : cases)
    EXPECT_EQ(drop_text(each.drop, false), each.expected);
}

TEST(DDrops, HaveTagsWhenAskedFor) {
  EXPECT_EQ(drop_text({DropKind::Principal, 1, 2}, true),
            "dtrace: [DTRACEDROP_PRINCIPAL] 1 drop on CPU 2\n");
  EXPECT_EQ(drop_text({DropKind::Aggregation, 2, 0}, true),
            "dtrace: [DTRACEDROP_AGGREGATION] 2 aggregation drops on CPU 0\n");
  EXPECT_EQ(drop_text({DropKind::Dynamic, 1}, true),
            "dtrace: [DTRACEDROP_DYNAMIC] 1 dynamic variable drop\n");
  EXPECT_EQ(drop_text({DropKind::ErrorInError, 2}, true),
            "dtrace: [DTRACEDROP_DBLERROR] 2 errors in ERROR probe enabling\n");
}

TEST(DDrops, AreToldOnce) {
  const auto losses = std::make_unique<abi::MachineLosses>();
  DropReporter reporter(false);
  EXPECT_EQ(reporter.report(*losses), "");
  losses->principal[1] = 3;
  losses->dynamic = 1;
  EXPECT_EQ(reporter.report(*losses),
            "dtrace: 3 drops on CPU 1\ndtrace: 1 dynamic variable drop\n");
  EXPECT_EQ(reporter.report(*losses), "");
  losses->principal[1] = 4;
  losses->aggregation[0] = 2;
  losses->speculative = 5;
  losses->speculation_unavailable = 1;
  EXPECT_EQ(reporter.report(*losses),
            "dtrace: 2 aggregation drops on CPU 0\n"
            "dtrace: 1 drop on CPU 1\n"
            "dtrace: 5 speculative drops\n"
            "dtrace: 1 failed speculation (no speculative buffer available)\n");
}

constexpr ProbeNames kBeginProbe = {1, "dtrace", "", "", "BEGIN"};

abi::MachineErrorRecord record_of(abi::MachineFault fault, uint64_t value, uint64_t pc,
                                  uint32_t clause) {
  abi::MachineErrorRecord record{};
  record.header.clause = clause;
  record.fault = static_cast<uint64_t>(fault);
  record.value = value;
  record.pc = pc;
  return record;
}

TEST(DErrors, NameTheClauseTheProbeAndTheFault) {
  const std::string start = "dtrace: error in dt_clause_1 for probe ID 1 (dtrace:::BEGIN): ";
  struct Case {
    abi::MachineFault fault;
    uint64_t value;
    std::string_view expected;
  };
  const Case cases[] = {
      {abi::MachineFault::BadAddress, 0, "invalid address (0x0)"},
      {abi::MachineFault::BadAddress, 0xffff0000, "invalid address (0xffff0000)"},
      {abi::MachineFault::BadAlignment, 3, "invalid alignment (0x3)"},
      {abi::MachineFault::IllegalOperation, 0, "illegal operation"},
      {abi::MachineFault::DivideByZero, 0, "divide-by-zero"},
      {abi::MachineFault::NoScratch, 0, "out of scratch space"},
      {abi::MachineFault::KernelPrivilege, 16, "invalid kernel access (0x10)"},
      {abi::MachineFault::UserPrivilege, 16, "invalid user access (0x10)"},
      {abi::MachineFault::TupleOverflow, 0, "tuple stack overflow"},
      {abi::MachineFault::BadIndex, 5, "index out of bounds (5)"},
      {abi::MachineFault::None, 0, "unknown fault"},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(error_text(record_of(each.fault, each.value, 123, 1), kBeginProbe),
              start + std::string(each.expected) + " at BPF pc 123\n");
  }
}

TEST(DErrors, HaveAllFieldsOfTheProbe) {
  EXPECT_EQ(error_text(record_of(abi::MachineFault::DivideByZero, 0, 9, 0),
                       {88, "syscall", "vmlinux", "read", "entry"}),
            "dtrace: error in dt_clause_0 for probe ID 88 (syscall:vmlinux:read:entry): "
            "divide-by-zero at BPF pc 9\n");
}

}  // namespace
}  // namespace clew::output::d

// SPDX-License-Identifier: Apache-2.0
// Each accessor by itself: the kernel's verifier takes it, and how long that needs.
#include <chrono>

#include <gtest/gtest.h>

#include "kernel/session_testing.h"

namespace clew::kernel {
namespace {

using abi::MachineAccessor;
using abi::MachineBuiltin;

// A script with one of everything that accessors look at.
MachinePrograms with_everything(MachinePrograms programs) {
  using abi::AggregateFunction;
  programs.globals.resize(64);
  programs.variables = {{.key_bytes = 16, .value_bytes = 256, .is_thread = 0, .reserved = 0}};
  programs.aggregations = {{.function = AggregateFunction::Count,
                            .key_bytes = 16,
                            .cell_words = 2,
                            .reserved = 0,
                            .parameters = {},
                            .generation = 0}};
  return programs;
}

class EveryAccessor : public SessionTest, public testing::WithParamInterface<uint32_t> {
 protected:
  void expect_taken(MachineAccessor accessor, const std::vector<uint64_t>& arguments) {
    Clause c;
    c.call(accessor, arguments);
    load(with_everything(programs_of({c.finish()})), {{begin_probe(), {0}}});
  }
};

TEST_P(EveryAccessor, IsTakenByTheVerifier) {
  const auto accessor = static_cast<MachineAccessor>(GetParam());
  const bool is_builtin =
      accessor == MachineAccessor::BuiltinInteger || accessor == MachineAccessor::BuiltinString;
  if (!is_builtin && accessor != MachineAccessor::CopyOut) expect_taken(accessor, {0, 0, 0, 0});
}

// A kernel that is locked down says so when the program is loaded.
TEST_F(SessionTest, WritingToAProcessIsPossibleOrRefusedInWords) {
  Clause c;
  c.call(MachineAccessor::CopyOut, {0, kTestRoom, 8});
  const Expected<MachineSession> session =
      MachineSession::load(programs_of({c.finish()}), {{begin_probe(), {0}}});
  if (session) return;
  EXPECT_EQ(session.error().code, ErrorCode::Refused);
  EXPECT_EQ(session.error().message,
            "clause 0: copyout() and copyoutstr() are not possible: this kernel lets no program "
            "write to the memory of processes");
}

INSTANTIATE_TEST_SUITE_P(All, EveryAccessor,
                         testing::Range(abi::kMachineAccessorBase,
                                        static_cast<uint32_t>(MachineAccessor::End)));

using EveryBuiltin = EveryAccessor;

TEST_P(EveryBuiltin, IsTakenByTheVerifier) {
  constexpr uint32_t kNone[] = {11, 23, 39};  // args[], fds[], uregs[]
  if (std::count(std::begin(kNone), std::end(kNone), GetParam()) != 0) return;
  expect_taken(MachineAccessor::BuiltinString, {GetParam(), kTestRoom});
}

INSTANTIATE_TEST_SUITE_P(All, EveryBuiltin,
                         testing::Range(1U,
                                        static_cast<uint32_t>(MachineBuiltin::Walltimestamp) + 1));

}  // namespace
}  // namespace clew::kernel

// SPDX-License-Identifier: Apache-2.0
#include "kernel/features.h"

#include <gtest/gtest.h>

#include "kernel/attach_functions.h"
#include "kernel/bpf.h"
#include "kernel/session_testing.h"

namespace clew::kernel {
namespace {

// A kernel that has the newer has the older.
TEST_F(SessionTest, FeaturesComeInTheOrderOfTheirKernels) {
  const Features& found = features();
  EXPECT_TRUE(found.has_open_loops || !found.has_tracepoint_cookies);
  EXPECT_TRUE(found.has_user_probe_multi || !found.has_open_loops);
}

// Where it lets programs at its functions this is a probe, elsewhere a sentence.
TEST_F(SessionTest, AFunctionOfTheKernelIsProbedOrRefusedInWords) {
  Clause c;
  c.code().move(isa::Register::R0, 0);
  Probe probe;
  probe.id = 100;
  probe.provider = "fbt";
  probe.module = "vmlinux";
  probe.function = probe.symbol = "vfs_read";
  probe.name = "entry";
  probe.kind = AttachKind::FunctionEntry;
  Expected<MachineSession> session =
      MachineSession::load(programs_of({c.finish()}), {{probe, {0}}});
  ASSERT_TRUE(session) << session.error().message;
  const Expected<void> attached = session->attach();
  if (attached) return;
  EXPECT_EQ(attached.error().code, ErrorCode::Refused);
  EXPECT_TRUE(attached.error().message.starts_with(
      "vfs_read: this kernel lets no program at its functions: "))
      << attached.error().message;
}

TEST_F(SessionTest, AFunctionThatTheKernelHasNotIsRefusedByItsName) {
  const FunctionPlace place = {"vmlinux", "clew_has_no_such_function", 0};
  Attachments attachments;
  const auto attached = attach_functions(FileDescriptor(), {}, std::span(&place, 1), attachments);
  ASSERT_FALSE(attached);
  EXPECT_TRUE(attached.error().message.starts_with("clew_has_no_such_function: the kernel lists"))
      << attached.error().message;
}

}  // namespace
}  // namespace clew::kernel

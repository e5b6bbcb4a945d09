// SPDX-License-Identifier: Apache-2.0
#include "kernel/verifier_message.h"

#include <gtest/gtest.h>

namespace clew::kernel {
namespace {

TEST(VerifierMessage, IsTheReasonAndTheFunction) {
  EXPECT_EQ(verifier_message("Validating dt_clause_0() func#2...\n"
                             "0: (79) r0 = *(u64 *)(r0 +0)\n"
                             "R0 !read_ok\n"
                             "processed 3 insns (limit 1000000)\n"),
            "R0 !read_ok (in dt_clause_0)");
}

TEST(VerifierMessage, IsEmptyWithoutAReason) {
  EXPECT_EQ(verifier_message(""), "");
  EXPECT_EQ(verifier_message("processed 3 insns (limit 1000000)\n"), "");
}

TEST(VerifierMessage, NamesNoFunctionWhenTheLogHasNone) {
  EXPECT_EQ(verifier_message("unreachable insn 143\nprocessed 0 insns\n"), "unreachable insn 143");
}

}  // namespace
}  // namespace clew::kernel

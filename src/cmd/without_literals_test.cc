// SPDX-License-Identifier: Apache-2.0
#include "cmd/without_literals.h"

#include <gtest/gtest.h>

namespace clew::cmd {
namespace {

TEST(WithoutLiterals, WhatAQueryLooksForIsLeftOut) {
  EXPECT_EQ(without_literals(R"(entry("a!b").Where(e => e.x == "se\"cret" && e.y > 5))"),
            R"(entry("…").Where(e => e.x == "…" && e.y > 5))");
  EXPECT_EQ(without_literals("no process 'x'; `y`"), "no process '…'; `…`");
  EXPECT_EQ(without_literals(""), "");
}

TEST(WithoutLiterals, CommentsAreLeftOut) {
  EXPECT_EQ(without_literals("a /* \"secret\" */ b // secret\nc"), "a   b  \nc");
  EXPECT_EQ(without_literals("syscall:::entry /pid == 1/ { }"), "syscall:::entry /pid == 1/ { }");
}

TEST(WithoutLiterals, WhatHasNoEndIsLeftOut) {
  EXPECT_EQ(without_literals("f(\"secret"), "f(\"…\"");
  EXPECT_EQ(without_literals("f(\"secret\\"), "f(\"…\"");
  EXPECT_EQ(without_literals("f /* secret"), "f  ");
  EXPECT_EQ(without_literals("f // secret"), "f  ");
}

TEST(WithoutLiterals, WhatAVerbIsForStandsInFront) {
  EXPECT_EQ(without_head("// what\n// for\n\nfrom e\n// last\n"), "from e\n// last\n");
  EXPECT_EQ(without_head("from e"), "from e");
  EXPECT_EQ(without_head("// nothing else"), "// nothing else");
  EXPECT_EQ(without_head(""), "");
}

}  // namespace
}  // namespace clew::cmd

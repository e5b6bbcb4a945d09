// SPDX-License-Identifier: Apache-2.0
#include "query/d/explain.h"

#include <gtest/gtest.h>

#include "query/d/check_testing.h"

namespace clew::query::d {
namespace {

std::string explained(std::string_view text) {
  const auto script = compiled(text);
  return script ? "no error" : explain(text, script.error());
}

TEST(Explain, PutsACaretUnderTheError) {
  EXPECT_EQ(explained("BEGIN { trace(1 +); }"),
            "  BEGIN { trace(1 +); }\n"
            "                   ^\n");
}

TEST(Explain, ShowsTheLineOfTheError) {
  EXPECT_EQ(explained("BEGIN\n{\n\ttrace(1 / 0);\n}\n"),
            "  \ttrace(1 / 0);\n"
            "  \t      ^~~~~\n");
}

TEST(Explain, NamesTheNearestVariableFunctionAndMember) {
  EXPECT_EQ(explained("BEGIN { trace(execnam); }"),
            "  BEGIN { trace(execnam); }\n"
            "                ^~~~~~~ did you mean 'execname'?\n");
  EXPECT_EQ(explained("BEGIN { tracee(\"x\"); }"),
            "  BEGIN { tracee(\"x\"); }\n"
            "          ^~~~~~~~~~~ did you mean 'trace'?\n");
  EXPECT_EQ(explained("struct s { int value; }; struct s v; BEGIN { trace(v.valeu); }"),
            "  struct s { int value; }; struct s v; BEGIN { trace(v.valeu); }\n"
            "                                                     ^~~~~~~ did you mean 'value'?\n");
  EXPECT_EQ(explained("BEGIN { counter1 = 1; trace(conter1); }"),
            "  BEGIN { counter1 = 1; trace(conter1); }\n"
            "                              ^~~~~~~ did you mean 'counter1'?\n");
}

TEST(Explain, CutsLongLines) {
  const std::string text = "BEGIN { trace(" + std::string(500, '(') + ") }";
  const std::string shown = explained(text);
  EXPECT_LT(shown.size(), 400U);
  EXPECT_NE(shown.find('^'), std::string::npos);
}

TEST(Explain, SendsNoControlCharactersToTheTerminal) {
  EXPECT_EQ(explained("BEGIN { trace(\"\x1b[2J\" + 1); }").find('\x1b'), std::string::npos);
}

TEST(Explain, SaysNothingWithoutAPlace) {
  EXPECT_EQ(explain("BEGIN", {"D_X", "message", 0, {}, ""}), "");
}

TEST(Explain, ControlLinesNameFiles) {
  const std::string text = "a\n# 5 \"x.h\" 1\nb\n# 3 \"<stdin>\" 2\nc\n#line 7 \"y.d\"\nd #\n";
  EXPECT_EQ(named_file(text, 0), "");
  EXPECT_EQ(named_file(text, text.find('b')), "x.h");
  EXPECT_EQ(named_file(text, text.find('c')), "");
  EXPECT_EQ(named_file(text, text.rfind('#')), "y.d");
  EXPECT_EQ(named_file(text, 1000), "y.d");
}

}  // namespace
}  // namespace clew::query::d

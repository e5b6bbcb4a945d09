// SPDX-License-Identifier: Apache-2.0
#include "cmd/shown_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clew::cmd {
namespace {

TEST(ShownLines, HaveTheLastTwoOfWhatALoopMoves) {
  recorder::Snap snap;
  snap.streams = {{.own = "[::1]:1", .peer = "[::1]:2"}};
  recorder::ShownLine line;
  for (int i = 1; i <= 5; ++i)
    line.transfers.push_back({.transfer = abi::Transfer::Sends, .descriptor = 3, .result = i});
  line.transfers.back().stream = 0;
  recorder::ShownThread thread;
  thread.lines = {line};
  EXPECT_THAT(text_of_line(snap, thread, 0, 0).left,
              testing::HasSubstr(" (3 calls before) (sends 4 bytes to descriptor 3)"
                                 " (sends 5 bytes to [::1]:2)"));
}

recorder::ShownScript some_script() {
  return {.interpreter = "Python 3.11.2",
          .calls = {{.function = "open", .file = "/a/app.py", .line = 12, .text = "return f()"},
                    {.function = "main", .file = "/a/app.py"},
                    {.function = "<module>", .file = "/a/app.py", .line = 20}},
          .is_whole = false};
}

TEST(ShownLines, SayWhichCallOfAScriptTheyRun) {
  recorder::ShownThread thread;
  thread.scripts = {some_script()};
  thread.lines.resize(1);
  thread.lines[0].script_call = 0;
  EXPECT_THAT(text_of_line({}, thread, 0, 0).left, testing::HasSubstr(" (runs open at app.py:12)"));
}

TEST(ShownLines, HaveTheInnermostCallsOfAScript) {
  const std::vector<TextLine> text = text_of_script(some_script(), 2);
  ASSERT_EQ(text.size(), 5U);
  EXPECT_EQ(text[0].left, "   Python 3.11.2, the innermost call first:");
  EXPECT_EQ(text[1].left, "   #0   app.py:12               open");
  EXPECT_EQ(text[1].source, "return f()");
  EXPECT_EQ(text[2].left, "   #1   app.py                  main");
  EXPECT_EQ(text[3].left, "   and 1 more");
  EXPECT_EQ(text[4].left, "   callers unknown");
}

TEST(ShownLines, SayWhyCallsAreNotKnown) {
  EXPECT_EQ(text_of_problem({.name = "Perl", .problem = "only those of Python are"}),
            "calls of Perl are not known: only those of Python are");
  EXPECT_EQ(text_of_problem({.name = "Python 3.11.2", .problem = ""}), "");
}

}  // namespace
}  // namespace clew::cmd

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

}  // namespace
}  // namespace clew::cmd

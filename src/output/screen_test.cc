// SPDX-License-Identifier: Apache-2.0
#include "output/screen.h"

#include <cerrno>
#include <csignal>

#include <gtest/gtest.h>
#include <unistd.h>

#include "output/format.h"
#include "output/sinks.h"
#include "output/text_table.h"

namespace clew::output {
namespace {

using aggregate::Column;
using aggregate::ColumnType;
using aggregate::Value;

TEST(Screen, ReplacesTheLinesOfTheLastDrawing) {
  StringSink bytes;
  Screen screen(bytes);
  const ScreenSize size{.columns = 20, .rows = 10};
  screen.draw("one\ntwo\n", size);
  EXPECT_EQ(bytes.take(), "one\ntwo\n");
  screen.draw("three\n", size);
  EXPECT_EQ(bytes.take(), "\x1b[2A\r\x1b[Jthree\n");
  screen.erase(size);
  EXPECT_EQ(bytes.take(), "\x1b[1A\r\x1b[J");
}

TEST(Screen, CutsLinesAndRowsToTheWindow) {
  StringSink bytes;
  Screen screen(bytes);
  screen.draw("123456789\n\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc\nc\nd\ne\n",
              {.columns = 5, .rows = 4});
  EXPECT_EQ(bytes.take(), "12345\n\u00fc\u00fc\u00fc\u00fc\u00fc\n... 3\n");
}

TEST(Screen, GoesUpOverLinesThatANarrowerWindowHasFolded) {
  StringSink bytes;
  Screen screen(bytes);
  screen.draw("1234567890\nab\n", {.columns = 10, .rows = 20});
  bytes.take();
  screen.draw("x\n", {.columns = 4, .rows = 20});
  EXPECT_EQ(bytes.take(), "\x1b[4A\r\x1b[Jx\n");  // Three rows and one.
}

TEST(Screen, NeverGoesUpBeyondTheWindow) {
  StringSink bytes;
  Screen screen(bytes);
  screen.draw("a\nb\nc\nd\ne\n", {.columns = 10, .rows = 20});
  bytes.take();
  screen.draw("x\n", {.columns = 10, .rows = 3});
  EXPECT_EQ(bytes.take(), "\x1b[2A\r\x1b[Jx\n");
}

TEST(TextTable, RowsThatAreTooWideForATerminalAreBlocks) {
  const std::vector<Column> columns = {{.name = "function", .type = ColumnType::String},
                                       {.name = "n", .type = ColumnType::Unsigned}};
  const std::vector<std::vector<Value>> rows = {{std::string("a_long_name"), uint64_t{5}},
                                                {std::string("b"), uint64_t{12}}};
  const std::string table = "function      n\na_long_name   5\nb            12\n";
  EXPECT_EQ(format_table(columns, rows), table);
  EXPECT_EQ(format_table(columns, rows, 15), table);
  EXPECT_EQ(format_table(columns, rows, 14),
            "row 1\n  function  a_long_name\n  n         5\n"
            "\n"
            "row 2\n  function  b\n  n         12\n");
  EXPECT_EQ(format_table(columns, {}, 4), "function  n\n");
}

TEST(TextTable, ALiveTableThatIsTooWideLosesTheEndsOfItsTexts) {
  const std::vector<Column> columns = {{.name = "function", .type = ColumnType::String},
                                       {.name = "n", .type = ColumnType::Unsigned},
                                       {.name = "file", .type = ColumnType::String}};
  const std::vector<std::vector<Value>> rows = {
      {std::string("shop::charge_the_card"), uint64_t{5}, std::string("short.c")},
      {std::string("\u00fcber"), uint64_t{12}, std::string("a_path/that/is/long.c")}};
  EXPECT_EQ(format_cut_table(columns, rows, 80), format_table(columns, rows));
  EXPECT_EQ(format_cut_table(columns, rows, 40),
            "function        n  file\n"
            "shop::charge\u2026   5  short.c\n"
            "\u00fcber           12  a_path/that/is/long.c\n");
  // No less than a dozen columns, and numbers never.
  EXPECT_EQ(format_cut_table(columns, rows, 1),
            "function       n  file\n"
            "shop::charg\u2026   5  short.c\n"
            "\u00fcber          12  a_path/that\u2026\n");
}

TEST(TextSink, RedrawsIntervalsInPlaceAndLeavesTheLastOneWhole) {
  StringSink bytes;
  StringSink notes;
  const auto sink = make_sink({.redraw = true}, bytes, notes);
  const Column column{.name = "count", .type = ColumnType::Unsigned};
  sink->begin(std::span(&column, 1), RowMode::Table);
  for (uint64_t i = 1; i <= 2; ++i) {
    const Value value = i * 10;
    sink->row(std::span(&value, 1));
    sink->end_interval({.number = i});
  }
  sink->finish({});
  EXPECT_EQ(bytes.text(),
            "interval 1\ncount\n   10\n"
            "\x1b[3A\r\x1b[Jinterval 2\ncount\n   20\n"
            "\x1b[3A\r\x1b[Jinterval 2\ncount\n   20\n");
}

TEST(TextSink, AnIntervalThatTheEndCutsStandsBelowTheLastWholeOne) {
  StringSink bytes;
  StringSink notes;
  const auto sink = make_sink({.redraw = true}, bytes, notes);
  const Column column{.name = "count", .type = ColumnType::Unsigned};
  sink->begin(std::span(&column, 1), RowMode::Table);
  const Value whole = uint64_t{10};
  const Value part = uint64_t{5};
  sink->row(std::span(&whole, 1));
  sink->end_interval({.number = 1});
  sink->row(std::span(&part, 1));
  sink->end_interval({.number = 2, .partial = true});
  sink->finish({});
  EXPECT_EQ(bytes.text(),
            "interval 1\ncount\n   10\n"
            "\x1b[3A\r\x1b[Jinterval 1\ncount\n   10\n"
            "\ninterval 2 (partial)\ncount\n    5\n");
}

TEST(FileSink, ReportsAReaderThatWentAway) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(close(ends[0]), 0);
  const auto previous = signal(SIGPIPE, SIG_IGN);
  FileSink sink(ends[1]);
  sink.write("lost");
  EXPECT_FALSE(sink.failed());  // It is written with what follows.
  sink.flush();
  EXPECT_TRUE(sink.failed());
  EXPECT_EQ(sink.error(), EPIPE);
  (void)signal(SIGPIPE, previous);
  ASSERT_EQ(close(ends[1]), 0);
}

TEST(Printable, KeepsUtf8AndEscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("plain \u00e4 \u20ac \U0001F600"), "plain \u00e4 \u20ac \U0001F600");
  EXPECT_EQ(printable("\x1b[2J\x7f"), "\\x1b[2J\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");                    // C1: CSI in one character.
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");                    // No UTF-8.
  EXPECT_EQ(printable("\xe0\x80\x80"), "\\xe0\\x80\\x80");           // Overlong.
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // A surrogate.
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // Above U+10FFFF.
}

TEST(Bar, IsDrawnInEighthsOfAColumn) {
  EXPECT_EQ(format_bar(1, 1, 2), "\u2588\u2588");
  EXPECT_EQ(format_bar(9, 16, 2), "\u2588\u258f");
  EXPECT_EQ(format_bar(7, 16, 2), "\u2589");
  EXPECT_EQ(format_bar(0, 16, 2), "");
  EXPECT_EQ(format_bar(1, 0, 2), "");
  EXPECT_EQ(format_bar(5, 1, 2), "\u2588\u2588");
}

}  // namespace
}  // namespace clew::output

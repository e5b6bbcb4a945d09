// SPDX-License-Identifier: Apache-2.0
#include "ledger/entry.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ledger/one_line.h"
#include "ledger/system_log.h"

namespace clew::ledger {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr int64_t kTime = 1'764'525'258'123'456'000;  // 2025-11-30 17:54:18 UTC

Beginning a_beginning() {
  return {.session = "18-a",
          .time_ns = kTime,
          .verb = "run",
          .clew_pid = 10,
          .who = {.uid = 0, .user = "root", .login_uid = 1000, .login_user = "ann"},
          .processes = {{.pid = 7, .name = "shopd", .started_ns = kTime}},
          .process_count = 1,
          .is_kernel = true,
          .text = "entry(\"f\") select count()",
          .text_bytes = 25,
          .text_name = "query"};
}

Ending an_ending() {
  return {.session = "18-a",
          .time_ns = kTime + 1000,
          .status = Status::Failed,
          .reason = "no",
          .lasted_ns = 5,
          .rows = 3,
          .missed = 1,
          .dropped = 2};
}

// One that tries to end the line, to say something else in the next one, and to drive a terminal.
constexpr const char* kHostile =
    "f\"}\n{\"event\":\"end\",\"session\":\"18-a\",\"status\":\"ended\"}\r\x1b[2J\x07\xc2\x9b\xff";

TEST(Entry, LinesAreReadBackAsTheyWere) {
  const auto begun = parse_line(line_of(a_beginning()));
  ASSERT_TRUE(begun && begun->beginning);
  EXPECT_EQ(*begun->beginning, a_beginning());
  const auto ended = parse_line(line_of(an_ending()));
  ASSERT_TRUE(ended && ended->ending);
  EXPECT_EQ(*ended->ending, an_ending());
  const auto refused = parse_line(line_of_refused(a_beginning(), an_ending()));
  ASSERT_TRUE(refused && refused->ending && refused->beginning);
  EXPECT_EQ(refused->beginning->text, a_beginning().text);
  EXPECT_EQ(refused->ending->reason, "no");
}

TEST(Entry, NoTextCanEndItsLineOrDriveATerminal) {
  Beginning beginning = a_beginning();
  beginning.text = beginning.processes[0].name = beginning.who.sudo_user = kHostile;
  const std::string line = line_of(beginning);
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_EQ(line.back(), '\n');
  EXPECT_TRUE(
      std::all_of(line.begin(), line.end() - 1, [](char c) { return c >= ' ' && c < 127; }));
  const auto read = parse_line(line);
  ASSERT_TRUE(read && read->beginning);
  EXPECT_FALSE(read->ending);
  EXPECT_THAT(read->beginning->text, StartsWith("f\"}\n{\"event\""));
}

TEST(Entry, OfATextThatIsTooLongTheBeginningIsKept) {
  Beginning beginning = a_beginning();
  beginning.text = std::string(100'000, 'x');
  beginning.text_bytes = beginning.text.size();
  const auto read = parse_line(line_of(beginning));
  ASSERT_TRUE(read && read->beginning);
  EXPECT_EQ(read->beginning->text, std::string(kTextBytesMax, 'x'));
  EXPECT_EQ(read->beginning->text_bytes, 100'000U);
}

TEST(Entry, WhatIsNoLineIsNone) {
  for (const char* text : {"", "{", "null", "[]", "{\"event\":\"begin\"}", "{\"session\":\"x\"}",
                           "{\"session\":\"x\",\"event\":\"end\",\"status\":\"well\"}",
                           "{\"session\":[],\"event\":\"begin\"}", "\xff\xfe"})
    EXPECT_FALSE(parse_line(text)) << text;
  // Members of other types are as if they were missing.
  const auto odd = parse_line(R"({"session":"x","event":"begin","time":5,"uid":"no",
                                  "processes":[3,{"pid":{}}],"text":[]})");
  ASSERT_TRUE(odd && odd->beginning);
  EXPECT_EQ(odd->beginning->processes.size(), 1U);
}

TEST(Entry, TimesAreThoseOfTheClock) {
  EXPECT_EQ(time_text(kTime), "2025-11-30T17:54:18.123456Z");
  EXPECT_EQ(time_of("2025-11-30T17:54:18.123456Z"), kTime);
  EXPECT_EQ(time_of("yesterday"), 0);
  EXPECT_EQ(time_of("1905-01-01T00:00:00Z"), 0);
}

TEST(OneLine, ShowsTextsAndNoneOfWhatDrivesTerminals) {
  EXPECT_EQ(one_line("größe(\"f\")", 100), "größe(\"f\")");
  EXPECT_EQ(one_line("a\n\t\x1b[2J", 100), "a\\n\\t\\x1b[2J");
  EXPECT_EQ(one_line("\xc2\x9b"
                     "x\xe2\x80\xae",
                     100),
            "\\xc2\\x9bx\\xe2\\x80\\xae");
  EXPECT_EQ(one_line("\xff\xc0\x80\xe2\x82", 100), "\\xff\\xc0\\x80\\xe2\\x82");
  EXPECT_EQ(one_line("äöü", 2), "äö…");
}

TEST(SystemLog, AFieldOfTheJournalCannotBeEndedByItsValue) {
  Beginning beginning = a_beginning();
  beginning.text = "x\nCLEW_USER=root\nPRIORITY=0\n";
  const std::string datagram = journal_datagram(beginning, nullptr);
  // The size is in front of it: 28 bytes.
  EXPECT_THAT(datagram, HasSubstr("CLEW_TEXT\n" + std::string("\x1c\0\0\0\0\0\0\0", 8) +
                                  "x\nCLEW_USER=root\nPRIORITY=0\n\n"));
  EXPECT_THAT(datagram, HasSubstr("begins: x\\nCLEW_USER=root\\nPRIORITY=0\\n\n"));
}

TEST(SystemLog, SyslogGetsOneLine) {
  Beginning beginning = a_beginning();
  beginning.text = beginning.processes[0].name = kHostile;
  const Ending ending = an_ending();
  for (const std::string& text :
       {syslog_datagram(beginning, nullptr), syslog_datagram(beginning, &ending)}) {
    EXPECT_THAT(text, StartsWith("<8"));
    EXPECT_THAT(text, HasSubstr("clew[10]: ann as root: clew run of "));
    EXPECT_TRUE(std::none_of(text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; }))
        << text;
  }
  EXPECT_THAT(syslog_datagram(beginning, &ending), Not(HasSubstr("event\":\"end\"\n")));
}

TEST(SystemLog, ManyProcessesAreCounted) {
  Beginning beginning = a_beginning();
  beginning.processes = {{.pid = 1, .name = "a"}, {.pid = 2, .name = "b"}, {.pid = 3}};
  beginning.process_count = 9;
  EXPECT_EQ(shown_targets(beginning, 2), "a (1), b (2), 7 more processes, kernel");
  EXPECT_EQ(shown_targets(beginning, 9), "a (1), b (2), process 3, 6 more processes, kernel");
}

}  // namespace
}  // namespace clew::ledger

// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/completion.h"
#include "serve/diagnostics.h"
#include "serve/frame.h"
#include "serve/http_message.h"
#include "serve/lines.h"
#include "serve/session_request.h"
#include "serve/stream_lines.h"
#include "serve/task.h"

namespace clew::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// --- lines.h

std::vector<std::string> all_lines(const Lines& lines, uint64_t after) {
  LineCursor cursor(after);
  std::vector<std::string> all;
  for (SharedLine line = lines.next(cursor); line != nullptr; line = lines.next(cursor))
    all.push_back(line->substr(0, line->size() - 1));
  return all;
}

TEST(ServeLines, GoOnBehindTheOneThatAReaderHasHad) {
  Lines lines(1000);
  lines.add(1, LineKind::Plain, "\"a\":1");
  lines.add(2, LineKind::Plain, "\"b\":2");
  EXPECT_THAT(all_lines(lines, 0), ElementsAre(R"({"n":1,"a":1})", R"({"n":2,"b":2})"));
  EXPECT_THAT(all_lines(lines, 1), ElementsAre(R"({"n":2,"b":2})"));
  EXPECT_THAT(all_lines(lines, 2), IsEmpty());
}

TEST(ServeLines, ThatAreGoneAreCountedBySession) {
  Lines lines(40);  // Two of them.
  for (int i = 0; i < 3; ++i) {
    lines.add(1, LineKind::Plain, "\"line\":1");
    lines.add(2, LineKind::Plain, "\"line\":2");
  }
  EXPECT_THAT(all_lines(lines, 0), ElementsAre(R"({"n":4,"gap":{"id":"s1","lines":2}})",
                                               R"({"n":4,"gap":{"id":"s2","lines":2}})",
                                               R"({"n":5,"line":1})", R"({"n":6,"line":2})"));
  EXPECT_THAT(all_lines(lines, 3), ElementsAre(R"({"n":4,"gap":{"id":"s2","lines":1}})",
                                               R"({"n":5,"line":1})", R"({"n":6,"line":2})"));
}

TEST(ServeLines, ThatAPageNeedsAreKeptWhileTheirSessionIs) {
  Lines lines(20);
  lines.add(1, LineKind::State, "\"state\":\"starting\"");
  lines.add(1, LineKind::Pinned, "\"columns\":[]");
  lines.add(1, LineKind::State, "\"state\":\"running\"");
  lines.add(1, LineKind::Plain, "\"rows\":[1]");
  lines.add(1, LineKind::Plain, "\"rows\":[2]");
  EXPECT_THAT(all_lines(lines, 0),
              ElementsAre(R"({"n":2,"columns":[]})", R"({"n":3,"state":"running"})",
                          R"({"n":4,"gap":{"id":"s1","lines":1}})", R"({"n":5,"rows":[2]})"));
  lines.forget(1);
  EXPECT_THAT(all_lines(lines, 0),
              ElementsAre(R"({"n":4,"gap":{"id":"s1","lines":2}})", R"({"n":5,"rows":[2]})"));
}

TEST(ServeLines, AreGivenOrCountedOnceToAReaderOfAnySpeed) {
  Lines lines(2000);
  LineCursor cursor(0);
  uint64_t given = 0;
  uint64_t counted = 0;
  const auto read = [&](int most) {
    for (int i = 0; i < most; ++i) {
      const SharedLine line = lines.next(cursor);
      if (line == nullptr) return;
      const auto json = Json::parse(*line);
      given += json.contains("line") ? 1 : 0;
      if (json.contains("gap")) counted += json["gap"]["lines"].get<uint64_t>();
    }
  };
  constexpr int kLines = 5000;
  for (int i = 0; i < kLines; ++i) {
    lines.add(1 + static_cast<uint32_t>(i % 3), LineKind::Plain, "\"line\":0");
    if (i % 500 == 0) read(20);
  }
  read(kLines);
  EXPECT_EQ(given + counted, kLines);
  EXPECT_GT(given, 50U);
}

TEST(ServeLines, OfAnotherNumberingAreThoseFromNowOn) {
  Lines lines(1000);
  lines.add(1, LineKind::Plain, "\"line\":1");
  LineCursor cursor(UINT64_MAX - 1);
  EXPECT_EQ(lines.next(cursor), nullptr);
  lines.add(1, LineKind::Plain, "\"line\":2");
  EXPECT_NE(lines.next(cursor), nullptr);
}

// --- frame.h

TEST(ServeFrames, AreTakenAsTheyWereMadeHoweverTheyCome) {
  const std::string bytes =
      to_bytes({FrameKind::Start, 7, {"query", "text=x", ""}}) + to_bytes({FrameKind::Stop, 8, {}});
  FrameReader reader;
  std::vector<Frame> frames;
  for (const char c : bytes) {
    reader.add(std::string_view(&c, 1));
    auto frame = reader.take();
    ASSERT_TRUE(frame);
    if (*frame) frames.push_back(std::move(**frame));
  }
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].child, 7U);
  EXPECT_THAT(frames[0].fields, ElementsAre("query", "text=x", ""));
  EXPECT_EQ(frames[1].kind, FrameKind::Stop);
}

TEST(ServeFrames, OfWrongLengthsAreRefused) {
  const auto is_refused = [](std::string bytes) {
    FrameReader reader;
    reader.add(bytes);
    return !reader.take();
  };
  EXPECT_TRUE(is_refused(std::string(4, '\xff')));                  // Too long,
  EXPECT_TRUE(is_refused(std::string("\1\0\0\0\0", 5)));            // too short,
  EXPECT_TRUE(is_refused(std::string("\5\0\0\0\x09\0\0\0\0", 9)));  // of no kind,
  std::string field_too_long = to_bytes({FrameKind::Start, 1, {"abc"}});
  field_too_long[9] = 4;
  EXPECT_TRUE(is_refused(field_too_long));
  EXPECT_TRUE(is_refused(to_bytes({FrameKind::Start, 1, std::vector<std::string>(65)})));
}

// --- task.h

std::string words_of(const std::vector<std::string>& fields, bool commands_allowed = false) {
  const auto command = command_of(fields, {.commands_allowed = commands_allowed});
  if (!command) return "refused: " + command.error().message;
  std::string words;
  for (const std::string& word : command->words)
    words += word + "|";
  return words;
}

TEST(ServeTasks, TakeWordsOfStrangersAsValuesAlone) {
  EXPECT_EQ(words_of({"query", "text=--help", "pid=--command=id", "name=a b"}),
            "run|--format=stream|--quiet|--pid=--command=id|--name=a b|--|--help\n|");
  EXPECT_EQ(words_of({"functions", "pattern=--file=/etc/shadow"}),
            "list|--json|--|--file=/etc/shadow|");
}

TEST(ServeTasks, OfNoListAreRefused) {
  EXPECT_THAT(words_of({"record"}), HasSubstr("refused"));
  EXPECT_THAT(words_of({}), HasSubstr("refused"));
  EXPECT_THAT(words_of({"query", "output=/etc/passwd"}), HasSubstr("refused"));
  EXPECT_THAT(words_of({"query", std::string("text=a\0b", 8)}), HasSubstr("refused"));
}

TEST(ServeTasks, StartCommandsOnlyWhereThatIsAllowed) {
  const std::vector<std::string> fields = {"query", "text=x", "command=echo", "command=it's $HOME"};
  EXPECT_THAT(words_of(fields), HasSubstr("--allow-commands"));
  EXPECT_EQ(words_of(fields, true),
            "run|--format=stream|--quiet|--command='echo' 'it'\\''s $HOME'|--|x\n|");
  EXPECT_THAT(words_of({"d", "text=x"}), HasSubstr("--no-destructive"));
  EXPECT_THAT(words_of({"d", "text=x"}, true), Not(HasSubstr("--no-destructive")));
}

// --- http_message.h

int status_of(const HttpRequest& request) {
  const auto refused = refusal_of(request, "secret");
  return refused ? static_cast<int>(refused->status) : 0;
}

TEST(ServeRules, LetTheOwnPageInAndNobodyElse) {
  HttpRequest right{.path = "/api/v1/sessions",
                    .host = "127.0.0.1:80",
                    .origin = "http://127.0.0.1:80",
                    .authorization = "Bearer secret"};
  EXPECT_EQ(status_of(right), 0);
  for (const char* const host : {"localhost", "localhost:7417", "[::1]:1"}) {
    right.host = host;
    right.origin = std::string("http://") + host;
    EXPECT_EQ(status_of(right), 0) << host;
  }
  for (const char* const host : {"evil.example", "localhost.evil.example", "127.0.0.1.nip.io:80",
                                 "localhost:80@evil", "localhost:", "127.0.0.2", ""}) {
    HttpRequest foreign = right;
    foreign.host = host;
    EXPECT_EQ(status_of(foreign), 421) << host;
  }
  for (const char* const origin : {"null", "http://evil.example", "https://127.0.0.1:80", ""}) {
    HttpRequest foreign = right;
    foreign.origin = origin;
    EXPECT_EQ(status_of(foreign), 403) << origin;
  }
  for (const char* const given : {"Bearer secreT", "Bearer secre", "Bearer ", "secret", ""}) {
    HttpRequest stranger = right;
    stranger.authorization = given;
    EXPECT_EQ(status_of(stranger), 401) << given;
  }
}

TEST(ServeRules, WantNoTokenForThePage) {
  EXPECT_EQ(status_of({.path = "/app.js", .host = "localhost"}), 0);
  EXPECT_EQ(status_of({.path = "/app.js"}), 421);
}

// --- session_request.h

std::string understood(std::string_view body) {
  const auto request = session_request(body);
  if (!request) return "refused: " + request.error().message;
  std::string words = request->language;
  for (const std::string& word : request->words)
    words += "|" + word;
  return words;
}

TEST(ServeRequests, BecomeWordsOfATask) {
  EXPECT_EQ(understood(R"({"text":"t","targets":[{"pid":7},{"name":"a*"}],
                           "options":{"for":"1s","max_overhead":"3%","follow":true}})"),
            "query|text=t|pid=7|name=a*|for=1s|max-overhead=3%|follow=");
}

TEST(ServeRequests, ThatAreNotUnderstoodSayWhy) {
  EXPECT_THAT(understood("{"), HasSubstr("no JSON"));
  EXPECT_THAT(understood("[]"), HasSubstr("object"));
  EXPECT_THAT(understood("{}"), HasSubstr("'text'"));
  EXPECT_THAT(understood(R"({"text":"t","language":"sql"})"), HasSubstr("query or d"));
  EXPECT_THAT(understood(R"({"text":"t","targets":[{"pid":-1}]})"), HasSubstr("'pid'"));
  EXPECT_THAT(understood(R"({"text":"t","targets":[{"file":"x"}]})"), HasSubstr("target"));
  EXPECT_THAT(understood(std::string(60000, '[')), HasSubstr("no JSON"));
}

// --- stream_lines.h

std::vector<std::pair<LineWord, std::string>> lines_in(std::vector<std::string_view> parts) {
  std::vector<std::pair<LineWord, std::string>> all;
  const auto take = [&](const StreamLine& line) { all.emplace_back(line.word, line.text); };
  StreamLines lines;
  for (const std::string_view part : parts)
    lines.add(part, take);
  lines.finish(take);
  return all;
}

TEST(ServeStreams, AreTakenApartWhereverTheyAreCut) {
  const auto all = lines_in({R"({"seq":0,"sess)", "ion\":{}}\n{\"seq\":1,\"columns\":[]}\n",
                             R"({"seq":2,"rows":[["end"]]})", "\n{\"seq\":3,\"end\":{}}"});
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].first, LineWord::Session);
  EXPECT_EQ(all[0].second, R"({"seq":0,"session":{}})");
  EXPECT_EQ(all[1].first, LineWord::Columns);
  EXPECT_EQ(all[2].first, LineWord::Other);
  EXPECT_EQ(all[3].first, LineWord::End);
}

TEST(ServeStreams, LeaveOutWhatWouldBreakAnothers) {
  const auto all = lines_in({"hello\n{\"seq\":0,\"rows\":[\n", std::string(kLineBytesMax + 1, '{'),
                             "\n{\"seq\":1,\"rows\":[]}\n{\"seq\":2,\"ro"});
  ASSERT_EQ(all.size(), 5U);
  for (const size_t broken : {0, 1, 2, 4})
    EXPECT_EQ(all[broken].first, LineWord::Broken) << broken;
  EXPECT_EQ(all[3].first, LineWord::Other);
}

// --- diagnostics.h

TEST(ServeDiagnostics, HavePlacesInUnitsOfAnEditorAndAFix) {
  const std::string text = "from é😀 in x\n where c.functoin > 1";
  const auto list =
      diagnostics_of(text,
                     "query:2:10: error: x exports no 'functoin'; did you mean 'function'?\n"
                     " where c.functoin > 1\n         ^~~~~~~~\n");
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0]["line"], 2);
  EXPECT_EQ(list[0]["from"], 23);  // 14 units of the first line: é is one, the face is two.
  EXPECT_EQ(list[0]["to"], 31);
  EXPECT_EQ(list[0]["fix"]["insert"], "function");
  EXPECT_EQ(list[0]["fix"]["from"], 23);
}

TEST(ServeDiagnostics, OfScriptsArePlacedByTheirCaret) {
  const auto list = diagnostics_of(
      "BEGIN {\n trace(execnam); }",
      "dtrace: failed to compile script /dev/stdin: line 2: failed to resolve execnam: Unknown "
      "variable name\n   trace(execnam); }\n         ^~~~~~~ did you mean 'execname'?\n");
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0]["from"], 15);
  EXPECT_EQ(list[0]["to"], 22);
  EXPECT_EQ(list[0]["fix"]["insert"], "execname");
}

TEST(ServeDiagnostics, WithoutAPlaceAreToldAllTheSame) {
  const auto list = diagnostics_of("x", "clew: error: no process has the pid 4\n");
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0]["severity"], "info");
  EXPECT_EQ(list[0]["message"], "no process has the pid 4");
}

TEST(ServeDiagnostics, OfPlacesBehindTheTextStayInIt) {
  const auto list = diagnostics_of("ab", "query:9:9: error: x\n");
  EXPECT_EQ(list[0]["from"], 2);
  EXPECT_EQ(list[0]["to"], 2);
}

// --- completion.h

std::vector<std::string> labels(std::string_view text) {
  std::vector<std::string> all;
  for (const auto& item : word_items(place_in(text, text.size()), text))
    all.push_back(item["label"].get<std::string>());
  return all;
}

TEST(ServeCompletion, GivesTheWordsOfTheLanguage) {
  EXPECT_THAT(labels("fro"), ElementsAre("from"));
  EXPECT_THAT(labels("from c in ret"), ElementsAre("return"));
  EXPECT_THAT(labels("from c in entry(\"x\") select quantil"), ElementsAre("quantile"));
}

TEST(ServeCompletion, GivesTheFieldsThatAnEventHas) {
  EXPECT_THAT(labels("from c in return(\"x\") where c.elap"), ElementsAre("elapsed"));
  EXPECT_THAT(labels("from c in entry(\"x\") where c.elap"), IsEmpty());
}

TEST(ServeCompletion, KnowsWhichFunctionIsMeant) {
  const CompletionPlace place = place_in("from c in entry(\"redis-server!getC", 34);
  EXPECT_EQ(place.kind, CompletionPlace::Kind::Function);
  EXPECT_EQ(place.module, "redis-server");
  EXPECT_EQ(place.typed, "getC");
  const auto items = function_items(place, R"({"function":"getCommand","module":"redis-server"})"
                                           "\nno JSON\n"
                                           R"({"function":"setCommand","module":"redis-server"})");
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0]["label"], "getCommand");
}

}  // namespace
}  // namespace clew::serve

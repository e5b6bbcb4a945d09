// SPDX-License-Identifier: Apache-2.0
// What golden files cannot say: binding, places in long lines, limits, tables.
#include "query/query.h"

#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "query/check_beside.h"
#include "query/check_sources.h"
#include "query/diagnostic.h"
#include "query/fake_types.h"
#include "query/fields.h"
#include "query/parse.h"
#include "query/print.h"
#include "query/vocabulary.h"

namespace clew::query {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Expected<Query> parsed(const std::string& text) {
  return parse({.name = "query", .text = text}, {});
}

TEST(Query, BindGivesEachSourceItsOwnExpression) {
  const Expected<Query> query = parsed(
      "from e in entry(\"f\") { size = arg0 }, entry(\"g\") { size = arg1 * 2 } where e.size > 3");
  ASSERT_TRUE(query) << query.error().message;
  ASSERT_EQ(query->inputs.size(), 1U);
  EXPECT_EQ(query->inputs[0].name, "size");
  const Expression& condition = query->where[0];
  EXPECT_EQ(print(bind(condition, query->sources[0]), *query), "e.arg0 > 3l");
  EXPECT_EQ(print(bind(condition, query->sources[1]), *query), "e.arg1 * 2l > 3l");
}

TEST(Query, SpansPointIntoTheText) {
  const std::string text = "from e in entry(\"f\") where e.pid > 3";
  const Expected<Query> query = parsed(text);
  ASSERT_TRUE(query) << query.error().message;
  const Span where = query->where[0].span;
  EXPECT_EQ(text.substr(where.begin, where.end - where.begin), "e.pid > 3");
  const Span source = query->sources[0].span;
  EXPECT_EQ(text.substr(source.begin, source.end - source.begin), "entry(\"f\")");
}

TEST(Query, EqualityIgnoresPlaces) {
  const Expected<Query> one = parsed("from e in entry(\"f\") where e.pid > 3");
  const Expected<Query> two = parsed("\n\nfrom  event in  entry(\"f\")  where event.pid > 3");
  const Expected<Query> other = parsed("from e in entry(\"f\") where e.pid > 4");
  ASSERT_TRUE(one && two && other);
  EXPECT_TRUE(*one == *two);
  EXPECT_FALSE(*one == *other);
}

std::string source_error(const std::string& text) {
  Vocabulary vocabulary;
  EXPECT_TRUE(vocabulary.load_text(
      "test.toml", "[[tracepoint]]\nname = \"shop.pay\"\nfunction = \"shop!pay\"\n"));
  const auto checked = check_sources({.name = "query", .text = text}, vocabulary);
  return checked ? "" : checked.error().message;
}

std::string beside_error(const std::string& text) {
  const auto checked = check_beside({.name = "query", .text = text});
  return checked ? "" : checked.error().message;
}

TEST(Query, BesideARecorderAllSourcesAreOfTheKernel) {
  EXPECT_EQ(beside_error("from e in syscall(\"read\"), profile(1hz) select e.pid"), "");
  EXPECT_EQ(beside_error("var slow = from e in kernel_return(\"f\") where e.elapsed > 1s; "
                         "from s in slow select s.pid"),
            "");
  EXPECT_THAT(beside_error("entry(\"main\")"),
              StartsWith("query:1:1: error: 'entry' is no source of the kernel; "));
  EXPECT_THAT(beside_error("from e in syscall(\"read\"), usdt(\"a:b\")"),
              StartsWith("query:1:28: error: 'usdt' is no source of the kernel; "));
  EXPECT_THAT(beside_error("from e in (from a in tick(1s))"),
              HasSubstr("'tick' is no source of the kernel"));
  EXPECT_THAT(beside_error("from e in begin"), HasSubstr("'begin' is no source of the kernel"));
  EXPECT_THAT(beside_error("from e in redis.command"),
              HasSubstr("'redis.command' is no source of the kernel"));
  EXPECT_THAT(beside_error("from e in syscal(\"read\")"), HasSubstr("did you mean 'syscall'?"));
  EXPECT_THAT(beside_error("from e in"), StartsWith("query:1:10: error: "));
}

TEST(Query, BesideARecorderItIsKnownWhetherThereAreIntervals) {
  const Text once{.name = "query", .text = "from e in profile(1hz) select count()"};
  const Text often{.name = "query", .text = "from e in profile(1hz) select count() every 1s"};
  EXPECT_FALSE(check_beside(once)->has_intervals);
  EXPECT_TRUE(check_beside(often)->has_intervals);
}

// Before anybody looks for the processes that would have them.
TEST(Query, ASourceThatNobodyKnowsIsToldWithTheNearest) {
  EXPECT_THAT(source_error("from e in syscal(\"read\") select count()"),
              HasSubstr("no provider 'syscal'; did you mean 'syscall'?"));
  EXPECT_THAT(source_error("from e in shop.pya select count()"),
              HasSubstr("no tracepoint or query 'shop.pya'; did you mean 'shop.pay'?"));
  EXPECT_THAT(source_error("from e in probe(\"sycall::read:entry\") select count()"),
              HasSubstr("did you mean 'syscall'?"));
  EXPECT_EQ(source_error("from e in shop.pay, entry(\"f\") select count()"), "");
  EXPECT_EQ(source_error("var slow = from e in shop.pay where e.tid > 1; "
                         "from s in slow select count()"),
            "");
}

// A name alone does not say where it is.
TEST(Query, ATracepointOfAVocabularyIsInProcessesOrInTheKernel) {
  Vocabulary vocabulary;
  ASSERT_TRUE(vocabulary.load_text("v.toml",
                                   "[[tracepoint]]\nname = \"a.call\"\nsyscall = \"read\"\n"
                                   "[[tracepoint]]\nname = \"a.work\"\nfunction = \"app!work\"\n"));
  const auto places = [&](const std::string& text) {
    return *places_of_sources({.name = "query", .text = text}, &vocabulary);
  };
  EXPECT_TRUE(places("a.call.Count()").kernel);
  EXPECT_FALSE(places("a.call.Count()").process);
  EXPECT_FALSE(places("a.work.Count()").kernel);
  EXPECT_TRUE(places("a.work.Count()").process);
  EXPECT_TRUE(places("a.call.After(a.work, (c, w) => c.pid)").process);
}

bool joins_in(const std::string& text) {
  const auto places = places_of_sources({.name = "query", .text = text});
  EXPECT_TRUE(places.has_value()) << places.error().message;
  return places->joins;
}

// Those of queries that it goes on from are its own.
TEST(Query, ItIsKnownBeforehandWhetherItJoins) {
  const std::string named = "var q = entry(\"b\").After(entry(\"a\"), (b, a) => new { b, a });\n";
  EXPECT_TRUE(joins_in("from b in entry(\"b\") join a in entry(\"a\") on a -> b"));
  EXPECT_TRUE(joins_in(named + "q.Select(r => r.a.pid)"));
  EXPECT_TRUE(
      joins_in(named + "var r = from x in q where x.a.pid > 3; from y in r select y.b.pid"));
  EXPECT_TRUE(joins_in(
      "from r in (from b in entry(\"b\") join a in entry(\"a\") on a -> b) select count()"));
  EXPECT_FALSE(joins_in(named + "from b in entry(\"b\") select b.pid"));
  // By time.
  EXPECT_FALSE(
      joins_in("from b in entry(\"b\") join a in entry(\"a\") on a.tid equals b.tid "
               "within 1s"));
}

TEST(Query, ATextOverTheLimitIsRefused) {
  const Expected<Query> query = parsed(std::string(kTextMaxBytes + 1, ' '));
  ASSERT_FALSE(query);
  EXPECT_EQ(query.error().code, ErrorCode::Limit);
  EXPECT_EQ(query.error().message, "query: error: a query has at most 65536 bytes");
}

TEST(Query, NamesOfTheProgramNeedItsDebugInformation) {
  const Expected<Query> argument = parsed("from e in entry(\"f\") select e.args.size");
  ASSERT_FALSE(argument);
  EXPECT_THAT(argument.error().message,
              HasSubstr("names of arguments need debug information of a process"));
  const Expected<Query> type = parsed("from e in entry(\"f\") select ((struct x*)e.arg0)->y");
  ASSERT_FALSE(type);
  EXPECT_THAT(type.error().message,
              HasSubstr("no type 'struct x'; types of a program need its debug information"));
}

TEST(Query, SourcesMayDifferInABoundedNumberOfExpressions) {
  std::string one = "entry(\"f\") { x0 = arg0";
  std::string other = "entry(\"g\") { x0 = arg1";
  std::string where;
  for (int i = 0; i < 300; ++i) {
    one += ", x" + std::to_string(i + 1) + " = arg0 + " + std::to_string(i);
    other += ", x" + std::to_string(i + 1) + " = arg1 + " + std::to_string(i);
    where += i % 2 == 0 ? " where e.x" : " + e.x";
    where += std::to_string(i);
  }
  const Expected<Query> query = parsed("from e in " + one + " }, " + other + " }" + where);
  ASSERT_FALSE(query);
  EXPECT_THAT(query.error().message, HasSubstr("the sources differ in more than 256 expressions"));
}

// Each select doubles what the name stands for; 2^40 nodes must not be made.
TEST(Query, NamesThatDoubleAreStoppedByALimit) {
  std::string text = "entry(\"f\").Select(e => new { a = 1.5 * e.arg0 })";
  for (int i = 0; i < 40; ++i) {
    text += ".Select(r => new { a = r.a * r.a })";
  }
  const Expected<Query> query = parsed(text);
  ASSERT_FALSE(query);
  EXPECT_THAT(query.error().message, HasSubstr("more than 100000 operations"));
}

// A key has what its lets stand for.
TEST(Query, KeysThatDoubleAreStoppedByALimit) {
  std::string text = "from e in entry(\"f\") let x0 = e.arg0 + 1";
  for (int i = 1; i < 60; ++i)
    text += " let x" + std::to_string(i) + " = x" + std::to_string(i - 1) + " + x" +
            std::to_string(i - 1);
  text += " join b in entry(\"g\") on b.arg0 equals x59 within 1s select b.pid";
  const Expected<Query> query = parsed(text);
  ASSERT_FALSE(query.has_value());
  EXPECT_THAT(query.error().message, HasSubstr("more than 100000 operations"));
}

TEST(Query, JoinsThatDoubleAreStoppedByALimit) {
  std::string text = "q0: from e in entry(\"f\") select e.pid\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "q" + std::to_string(i - 1);
    text += "q" + std::to_string(i) + ": from e in entry(\"f\") join a in " + before +
            " on a -> e join b in " + before + " on b -> e select a.pid\n";
  }
  const Expected<Query> query = parsed(text);
  ASSERT_FALSE(query);
  EXPECT_THAT(query.error().message, HasSubstr("more than 2000 steps"));
}

struct Example {
  std::string text;
  bool is_later = false;  // Begins with "// later": not part of this version.
};

std::vector<Example> examples_of(const std::string& path) {
  std::vector<Example> examples;
  std::ifstream file(path);
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "```clew") {
      examples.emplace_back();
    } else if (inside && line != "```") {
      examples.back().is_later = examples.back().is_later || line == "// later";
      examples.back().text += line + "\n";
    }
    inside = line == "```clew" || (inside && line != "```");
  }
  return examples;
}

TEST(Reference, EveryExampleOfTheDocumentMeansSomething) {
  const std::string root = CLEW_SOURCE_DIR;
  Vocabulary vocabulary;
  ASSERT_TRUE(vocabulary.load(root + "/vocabulary"));
  const std::vector<Example> examples = examples_of(root + "/docs/query-language.md");
  EXPECT_GT(examples.size(), 10U);
  FakeTypes types;  // They have the kernel's events of the examples.
  for (const Example& example : examples) {
    const Expected<Query> query = parse({.name = "query-language.md", .text = example.text},
                                        {.vocabulary = &vocabulary, .types = &types});
    EXPECT_EQ(query.has_value(), !example.is_later) << example.text;
    if (!query && !example.is_later) ADD_FAILURE() << query.error().message;
    if (query) continue;
    EXPECT_THAT(query.error().message, HasSubstr("not part of this version yet"));
  }
}

// The reference lists every field, aggregate and function, so it cannot fall behind.
TEST(Reference, NamesEveryField) {
  std::ostringstream text;
  text << std::ifstream(std::string(CLEW_SOURCE_DIR) + "/docs/query-language.md").rdbuf();
  for (const FieldInfo& field : fields()) {
    const bool is_numbered = field.field == Field::Argument || field.field == Field::EntryArgument;
    EXPECT_THAT(text.str(), HasSubstr(fmt::format("`{}{}`", field.name, is_numbered ? "0" : "")));
  }
}

TEST(Diagnostic, KeepsTabsAndCountsBytes) {
  const Text text{.name = "f.clew", .text = "one\n\t\xC3\xA9 x\n"};
  EXPECT_EQ(render(text, {8, 9}, "no name 'x'"),
            "f.clew:2:5: error: no name 'x'\n\t\xC3\xA9 x\n\t  ^");
}

TEST(Diagnostic, ALongLineIsCutAroundThePlace) {
  const Text text{.name = "q", .text = std::string(1000, 'a') + "!" + std::string(1000, 'b')};
  const std::string message = render(text, {1000, 1001}, "here");
  EXPECT_LT(message.size(), 400U);
  EXPECT_THAT(message, HasSubstr("q:1:1001: error: here\n" + std::string(100, 'a') + "!"));
  EXPECT_TRUE(message.ends_with("\n" + std::string(100, ' ') + "^"));
}

TEST(Diagnostic, ControlCharactersAreNotPrinted) {
  const Text text{.name = "q", .text = "\x1B[31m red"};
  EXPECT_EQ(render(text, {0, 1}, "here"), "q:1:1: error: here\n?[31m red\n^");
}

TEST(Fields, TheTableIsInTheOrderOfItsEnumeration) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < fields().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(fields()[i].field), i);
    names.insert(fields()[i].name);
  }
  EXPECT_EQ(names.size(), fields().size());
  EXPECT_EQ(find_field("PROCNAME")->field, Field::ProcName);
  EXPECT_EQ(find_field("nothing"), nullptr);
}

TEST(Fields, HaveTheNamesOfPivotTracing) {
  for (const auto& [name, field] :
       {std::pair{"host", Field::Host}, std::pair{"timestamp", Field::Time},
        std::pair{"procid", Field::Pid}, std::pair{"procname", Field::ProcName},
        std::pair{"tracepoint", Field::Probe}}) {
    ASSERT_NE(find_field(name), nullptr) << name;
    EXPECT_EQ(find_field(name)->field, field);
  }
}

TEST(Fields, ExistWhereTheirSourcesHaveThem) {
  EXPECT_TRUE(has_field(SourceKind::Entry, Field::Argument));
  EXPECT_FALSE(has_field(SourceKind::Return, Field::Argument));
  EXPECT_TRUE(has_field(SourceKind::Return, Field::ReturnValue));
  EXPECT_FALSE(has_field(SourceKind::Exception, Field::ReturnValue));
  EXPECT_TRUE(has_field(SourceKind::Exception, Field::Elapsed));
  EXPECT_TRUE(has_field(SourceKind::Tick, Field::Time));
  EXPECT_FALSE(has_field(SourceKind::Tick, Field::Pid));
}

TEST(Duration, PrintsTheLargestUnitThatDivides) {
  EXPECT_EQ(print_duration(0), "0ns");
  EXPECT_EQ(print_duration(1'500'000), "1500us");
  EXPECT_EQ(print_duration(5'400'000'000'000), "90m");
}

}  // namespace
}  // namespace clew::query

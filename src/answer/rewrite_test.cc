// SPDX-License-Identifier: Apache-2.0
// Fay's rewrites change where work is done, never the answer: each query gives the same rows by the
// plain plan, by each rewrite alone and by all of them, on random streams of calls.
#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "answer/fake_machine.h"
#include "query/fake_types.h"
#include "query/parse.h"
#include "query/vocabulary.h"

namespace clew::answer {

using plan::make;
using plan::plain;
using plan::Plan;
using plan::print;
using plan::rewrite_aggregate;
using plan::rewrite_filter;
using plan::rewrite_group;
using plan::rewrite_select;
using plan::state_form;
using plan::StateForm;

namespace {

constexpr std::string_view kVocabulary = R"toml(
[[tracepoint]]
name = "app.key"
function = "app!work"
exports = { size = "arg2", name = "str(arg0)", place = "arg3 & 7" }
[[tracepoint]]
name = "app.key"
function = "app!walk"
exports = { size = "arg3 * 2", name = "str(arg1)", place = "arg2 % 5" }
[[tracepoint]]
name = "app.took"
function = "app!work"
at = "return"
exports = { took = "elapsed" }
[[tracepoint]]
name = "app.took"
function = "app!wait"
at = "return"
exports = { took = "elapsed / 2" }
[[tracepoint]]
name = "app.twice"
function = ["app!wait", "app!wa*"]
at = "return"
exports = { took = "elapsed" }
[[tracepoint]]
name = "app.names"
function = ["app!work", "app!wait"]
exports = { who = "comm" }
[[tracepoint]]
name = "app.states"
function = ["app!work", "app!wait"]
exports = { state = "(enum state)(arg2 & 3)", text = "str(arg0)" }
)toml";

Expected<query::Query> parse(std::string_view text) {
  query::Vocabulary vocabulary;
  CLEW_TRY(vocabulary.load_text("test.toml", std::string(kVocabulary)));
  query::FakeTypes types;
  return query::parse({.name = "query", .text = std::string(text)},
                      {.vocabulary = &vocabulary, .types = &types});
}

struct Case {
  std::string_view name;
  std::string_view text;
  StateForm form;  // Of the plan that runs.
};

void PrintTo(const Case& test, std::ostream* out) {
  *out << test.text;
}

constexpr auto kDense = StateForm::Dense;
constexpr auto kTable = StateForm::Table;
constexpr auto kEvents = StateForm::Events;

const std::vector<Case> kCases = {
    {"Count", "entry(\"app!work\").Count()", kDense},
    {"NothingPasses",
     "from e in entry(\"app!work\") where e.arg2 == 77777 select count(), max(e.arg3)", kDense},
    {"CountByFunction", "from e in entry(\"app!w*\") groupby e.function select e.function, count()",
     kDense},
    {"CountByPid",
     "from e in entry(\"app!wa*\") groupby e.pid, e.function select e.pid, e.function, sum(e.arg2)",
     kDense},
    {"FilterOnName",
     "from e in entry(\"app!w*\") where e.function != \"walk\" && e.arg2 > 1 groupby e.function "
     "select e.function, count()",
     kDense},
    {"AllIntegerAggregates",
     "from e in entry(\"app!work\") select count(), sum(e.arg2), min(e.arg3), max(e.arg3), "
     "avg(e.arg4), stddev(e.arg2), quantize(e.arg3), lquantize(e.arg4, -10, 50, 3), "
     "llquantize(e.arg5, 10, 0, 6, 20), distinct(e.arg2), quantile(e.arg3, .9)",
     kDense},
    {"UnsignedAggregates",
     "from e in entry(\"app!work\") groupby e.arg3 & 3 select sum((unsigned)e.arg2), min((unsigned "
     "long)e.arg3), max((unsigned char)e.arg3), stddev((unsigned long)e.arg2), quantize((unsigned "
     "long)e.arg3), quantile((unsigned long)e.arg4, .5)",
     kTable},
    {"TopK", "from e in entry(\"app!work\") select topk(e.arg2, 3)", kTable},
    {"TopKOfText",
     "from e in entry(\"app!work\") groupby e.tid select e.tid, topk(str(e.arg0, 16), 4)", kTable},
    {"DistinctText",
     "from e in entry(\"app!w*\") groupby e.function select e.function, distinct(str(e.arg0)), "
     "count()",
     kDense},
    {"KeyInteger",
     "from e in entry(\"app!work\") groupby e.arg2 select e.arg2, count(), sum(e.arg3)", kTable},
    {"KeyTuple",
     "from e in entry(\"app!work\") groupby e.arg2 % 3, e.tid, e.function select e.tid, "
     "e.function, count()",
     kTable},
    {"ChosenText",
     "from e in entry(\"app!work\") groupby e.arg2 > 2 ? str(e.arg0) : str(e.arg1, 16) as text, "
     "e.arg3 > 1 ? str(e.arg0, 9) : \"none\" as other select text, other, count()",
     kTable},
    {"KeyText",
     "from e in entry(\"app!work\") groupby str(e.arg0) select str(e.arg0), count(), max(e.arg2)",
     kTable},
    {"KeyBytes",
     "from e in entry(\"app!work\") groupby buf(e.arg1, 5) select buf(e.arg1, 5), count()", kTable},
    {"KeyCaller", "from e in entry(\"app!work\") groupby e.caller select e.caller, count()",
     kTable},
    {"KeyNames",
     "from e in entry(\"app!wa*\") groupby e.comm, e.procName, e.module, e.probe select e.comm, "
     "e.procName, e.probe, count()",
     kTable},
    {"KeyCpu", "from e in entry(\"app!work\") groupby e.cpu select e.cpu, count()", kTable},
    {"Let",
     "from e in entry(\"app!work\") let x = e.arg2 * 3 let y = x + e.arg3 where y > 4 || x == 0 "
     "groupby y & 7 select count(), sum(y), max(x)",
     kTable},
    {"LetText",
     "from e in entry(\"app!work\") let s = str(e.arg0, 20) where s != \"get\" groupby s select s, "
     "count(), distinct(s)",
     kTable},
    {"LetName", "from e in entry(\"app!w*\") let f = e.function groupby f select f, count()",
     kDense},
    {"Logic",
     "from e in entry(\"app!work\") where !(e.arg2 > 2 && e.arg3 < 4) || (e.arg4 ? e.arg5 == 1 : "
     "e.arg3 != 2) select count(), sum(e.arg2 > e.arg3)",
     kDense},
    {"Conditional",
     "from e in entry(\"app!work\") groupby (e.arg2 > 3 ? e.arg3 & 1 : -1) select count()", kTable},
    {"In",
     "from e in entry(\"app!work\") where e.arg2 in (1, 3, 4294967295, 9000000000) || !(e.arg3 in "
     "(0, 2)) select count()",
     kDense},
    {"InText",
     "from e in entry(\"app!work\") where str(e.arg0) in (\"get\", \"set\", \"12345678\") groupby "
     "str(e.arg0) select str(e.arg0), count()",
     kTable},
    {"TextEqual",
     "from e in entry(\"app!work\") where str(e.arg0) == \"getrange\" || str(e.arg1, 4) != \"get\" "
     "select count()",
     kDense},
    {"StartsWith",
     "from e in entry(\"app!work\") where startswith(str(e.arg0), \"get\") && "
     "!startswith(str(e.arg1), \"12345678\") select count(), sum(startswith(str(e.arg0), \"\"))",
     kDense},
    {"TextThatCannotBe",
     "from e in entry(\"app!work\") where str(e.arg0, 4) != \"far too long to be it\" && "
     "!(str(e.arg0, 4) == \"far too long to be it\") select count(), sum(str(e.arg1, 4) == \"far "
     "too long to be it\")",
     kDense},
    {"KeyPartOfName",
     "from e in entry(\"app!w*\") groupby substr(e.function, 0, 2) select substr(e.function, 0, "
     "2), count()",
     kDense},
    {"KeyInFrontOfMark",
     "from e in entry(\"app!work\") where before(str(e.arg0), \"t\") != \"ge\" groupby "
     "before(str(e.arg1), \"e\") select before(str(e.arg1), \"e\"), count(), "
     "distinct(before(str(e.arg0), \"t\"))",
     kEvents},
    {"KeyInFrontOfMarkOfName",
     "from e in entry(\"app!w*\") groupby before(e.function, \"r\") select count()", kDense},
    {"UnionOfNames", "from e in app.names groupby e.who select e.who, count()", kTable},
    {"EnumKey", "from e in app.states groupby e.state where e.state != 1 select e.state, count()",
     kTable},
    {"EnumBehindMerge",
     "from e in app.states where e.text like \"%e%\" groupby e.state where e.state != 1 select "
     "e.state, sum(e.state), distinct(e.state), max(e.state)",
     kEvents},
    {"TopKOfEnum", "from e in app.states select topk(e.state, 2)", kTable},
    {"Like",
     "from e in entry(\"app!work\") where str(e.arg0) like \"%t\" && e.arg2 > 0 groupby e.arg2 & 3 "
     "select count(), sum(e.arg3)",
     kEvents},
    {"LikeAndPlain",
     "from e in entry(\"app!work\") where str(e.arg0) like \"g%\" where e.arg2 in (0, 1, 2) select "
     "min(e.arg2), distinct(e.caller), distinct(str(e.arg1)), topk(e.arg3, 2)",
     kEvents},
    {"Widths",
     "from e in entry(\"app!work\") where (int)e.arg2 < 3 && (unsigned)e.arg3 > 2 groupby "
     "(char)e.arg2, (unsigned short)e.arg3 select sum((int)e.arg2 * (int)e.arg3), "
     "sum((unsigned)e.arg2 - (unsigned)e.arg3), count()",
     kTable},
    {"Shifts",
     "from e in entry(\"app!work\") select sum(e.arg2 << e.arg3), sum(e.arg2 >> e.arg3), "
     "sum((unsigned long)e.arg2 >> e.arg3), sum((int)e.arg2 << 31), sum((int)e.arg2 >> 2)",
     kDense},
    {"Division",
     "from e in entry(\"app!work\") select sum(e.arg2 / e.arg3), sum(e.arg2 % e.arg3), "
     "sum((unsigned)e.arg2 / (unsigned)e.arg3), sum((unsigned)e.arg2 % 7), sum((int)e.arg2 / -1), "
     "sum(e.arg4 / 3)",
     kDense},
    {"Functions",
     "from e in entry(\"app!work\") select sum(min(e.arg2, e.arg3)), sum(max((unsigned)e.arg2, "
     "(unsigned)e.arg3)), sum(abs(e.arg2)), sum(log2(e.arg3)), sum(hash(e.arg2) & 15), "
     "sum(hash(str(e.arg0)) & 31)",
     kDense},
    {"Sample", "from e in entry(\"app!work\") where sample(3) select count(), sum(e.arg2)", kDense},
    {"Memory",
     "from e in entry(\"app!work\") where e.arg0 != 0 select count(), sum(*(int *)e.arg0), "
     "sum(*(unsigned char *)e.arg1), min(*(short *)(e.arg1 + 2))",
     kDense},
    {"MemoryBehindCount",
     "from e in entry(\"app!work\") groupby e.arg2 & 3 select count(), sum(*(long *)e.arg0), "
     "topk(e.arg2 & 1, 2)",
     kTable},
    {"Return",
     "from e in return(\"app!work\") where e.retval != 0 groupby e.retval & 3 select count(), "
     "sum(e.retval)",
     kTable},
    {"Elapsed",
     "from e in return(\"app!work\") where e.elapsed > 1us select count(), sum(e.elapsed), "
     "quantize(e.elapsed)",
     kDense},
    {"EntryArguments",
     "from e in return(\"app!w*\") groupby e.entry.arg2 & 3, e.function select e.function, "
     "count(), avg(e.elapsed), max(e.entry.arg7)",
     kTable},
    {"Time", "from e in entry(\"app!work\") select max(e.time), min(e.time)", kDense},
    {"Union", "from e in app.key groupby e.name select e.name, count(), sum(e.size), max(e.place)",
     kTable},
    {"UnionLet",
     "from e in app.key let twice = e.size * 2 where twice > 3 groupby e.place select e.place, "
     "sum(twice)",
     kTable},
    {"UnionElapsed",
     "from e in app.took let t = e.took + 1 where t > 100 groupby e.function select e.function, "
     "sum(t), max(e.took)",
     kDense},
    {"UnionLike",
     "from e in app.key where e.name like \"%e%\" groupby e.place select e.place, sum(e.size)",
     kEvents},
    {"Events",
     "from e in entry(\"app!work\") where e.arg2 > 2 select e.time, e.tid, e.comm, e.caller, "
     "str(e.arg0), e.arg2 + 1, e.arg2 / 2.5",
     kEvents},
    {"EventsOfReturn",
     "from e in return(\"app!wa*\") where e.entry.arg2 < 5 select e.function, e.elapsed, e.retval, "
     "e.pid",
     kEvents},
    {"EventsLike",
     "from e in app.key where e.name like \"%t\" && e.size >= 0 select e.name, e.size", kEvents},
    {"Having",
     "from e in entry(\"app!work\") groupby e.arg2 & 15 as k where count() > 3 && k != 2 select k, "
     "count() orderby count() descending, k",
     kTable},
    {"FloatCondition",
     "from e in entry(\"app!work\") where e.arg2 / 2.0 > 0.7 groupby e.tid select e.tid, "
     "sum(e.arg3) * 1.5",
     kEvents},
    {"RealsOfMemory",
     "from e in entry(\"app!work\") where f64(e.arg0) > 1.0 || f32(e.arg1) < 0.5 select e.arg2, "
     "f64(e.arg0), f32(e.arg1) as small",
     kEvents},
    {"ForEvents",
     "from e in entry(\"app!work\") where e.arg2 > 0 groupby e.arg2 select e.arg2, count() for "
     "1000000 events",
     kTable},
    {"ByOwner",
     "from e in entry(\"app!w*\") groupby e.container, e.user, e.uid, e.function select "
     "e.container, "
     "e.user, e.uid, e.function, count()",
     kDense},
    {"OfOneOwner",
     "from e in entry(\"app!w*\") where e.container == \"box1\" && e.arg2 > 0 select count(), "
     "max(e.arg3), distinct(e.arg2)",
     kDense},
    {"OfOneOwnerByKey",
     "from e in entry(\"app!work\") where e.unit like \"%1\" && e.uid != 1000 groupby e.arg2 & 3, "
     "e.cgroup select e.cgroup, count(), topk(e.arg2, 2)",
     kTable},
    {"OfNobody", "from e in entry(\"app!work\") where e.user in (\"x\", \"?\") select count()",
     kDense},
    {"OfOneOwnerOrOthers",
     "from e in entry(\"app!work\") where e.container == \"box1\" || e.arg2 > 2 select count()",
     kEvents},
    {"EventsOfOneOwner",
     "from e in entry(\"app!work\") where e.container == \"box1\" select e.container, e.arg2",
     kEvents},
    {"CountDownOfOneOwner",
     "from e in entry(\"app!work\") where e.container == \"box1\" select count() for 1000000 "
     "events",
     kEvents},
    {"Intervals",
     "from e in entry(\"app!work\") groupby e.arg2 & 3 select max(e.arg3), count() every 1s",
     kTable},
    {"IntervalsDense",
     "from e in entry(\"app!w*\") groupby e.function select e.function, max(e.arg3), min(e.arg2) "
     "every 1s for 1000000 events",
     kDense},
};

using Rewrite = bool (*)(Plan&);

Plan rewritten(const query::Query& query, std::initializer_list<Rewrite> rewrites) {
  Plan plan = plain(query);
  for (const Rewrite rewrite : rewrites) {
    while (rewrite(plan)) {
    }
  }
  return plan;
}

struct Variant {
  std::string_view name;
  Plan plan;
};

// A group or an aggregate moves only behind its filters and selections.
std::vector<Variant> variants(const query::Query& query) {
  return {{"plain", plain(query)},
          {"filter", rewritten(query, {rewrite_filter})},
          {"select", rewritten(query, {rewrite_select})},
          {"group alone", rewritten(query, {rewrite_group})},
          {"aggregate alone", rewritten(query, {rewrite_aggregate})},
          {"group", rewritten(query, {rewrite_filter, rewrite_select, rewrite_group})},
          {"aggregate", rewritten(query, {rewrite_filter, rewrite_select, rewrite_aggregate})},
          {"all", make(query)}};
}

std::string show(const aggregate::Value& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return fmt::format("{}", *i);
  if (const auto* u = std::get_if<uint64_t>(&value)) return fmt::format("{}u", *u);
  if (const auto* d = std::get_if<double>(&value)) return fmt::format("{:.6g}", *d);
  if (const auto* s = std::get_if<std::string>(&value)) return fmt::format("'{}'", *s);
  if (std::holds_alternative<std::monostate>(value)) return "null";
  std::string text = "[";
  if (const auto* top = std::get_if<aggregate::TopList>(&value)) {
    for (const aggregate::TopItem& item : top->items) {
      text += fmt::format("{}={} ", aggregate::text_of(item.value), item.count);
    }
  }
  if (const auto* histogram = std::get_if<aggregate::Histogram>(&value)) {
    for (const aggregate::Bucket& bucket : histogram->buckets) {
      if (bucket.count != 0) text += fmt::format("{}:{} ", bucket.low, bucket.count);
    }
  }
  return text + "]";
}

std::string show(const std::vector<aggregate::Row>& rows) {
  std::string text;
  for (const aggregate::Row& row : rows) {
    for (const aggregate::Value& value : row) {
      text += show(value) + " ";
    }
    text += "\n";
  }
  return text;
}

class Rewrites : public testing::TestWithParam<Case> {};

TEST_P(Rewrites, GiveTheRowsOfThePlainPlan) {
  const Expected<query::Query> query = parse(GetParam().text);
  ASSERT_TRUE(query.has_value()) << query.error().message;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const std::vector<FakeThread> threads = random_threads(seed, 60);
    const FakeRun run{.generation = seed % 2};
    const Expected<FakeAnswer> expected = answer_of(plain(*query), threads, run);
    ASSERT_TRUE(expected.has_value()) << expected.error().message;
    EXPECT_FALSE(expected->rows.empty());
    for (const Variant& variant : variants(*query)) {
      const Expected<FakeAnswer> got = answer_of(variant.plan, threads, run);
      ASSERT_TRUE(got.has_value()) << variant.name << ": " << got.error().message;
      EXPECT_EQ(show(got->rows), show(expected->rows)) << variant.name << "\n"
                                                       << print(variant.plan);
      EXPECT_EQ(got->rows == expected->rows, true) << variant.name;
    }
  }
}

TEST_P(Rewrites, LeadToTheCheapestForm) {
  const Expected<query::Query> query = parse(GetParam().text);
  ASSERT_TRUE(query.has_value()) << query.error().message;
  EXPECT_EQ(state_form(make(*query)), GetParam().form) << print(make(*query));
  EXPECT_EQ(state_form(plain(*query)), StateForm::Events);
}

// The plain plan is judged by counting by hand.
TEST(PlainPlan, CountsWhatHappens) {
  const std::vector<FakeThread> threads = random_threads(9, 80);
  std::map<int64_t, std::pair<uint64_t, int64_t>> expected;
  for (const FakeThread& thread : threads) {
    for (const Hit& hit : thread.hits) {
      if (hit.at_exit || fake_function(hit.function) != "work") continue;
      const auto argument = [&](size_t i) {
        return static_cast<int64_t>(hit.context.arguments[i]);
      };
      if (argument(3) < 2) continue;
      auto& [count, largest] = expected[argument(2) & 3];
      largest = count++ == 0 ? argument(4) : std::max(largest, argument(4));
    }
  }
  std::vector<aggregate::Row> rows;
  for (const auto& [key, cells] : expected) {
    rows.push_back({key, cells.first, cells.second});
  }
  const Expected<query::Query> query = parse(
      "from e in entry(\"app!work\") where e.arg3 >= 2 groupby e.arg2 & 3 as k "
      "select k, count(), max(e.arg4)");
  ASSERT_TRUE(query.has_value()) << query.error().message;
  const Expected<FakeAnswer> got = answer_of(plain(*query), threads);
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(show(got->rows), show(rows));
}

uint64_t count_of(std::string_view text, std::span<const FakeThread> threads) {
  const Expected<query::Query> query = parse(text);
  EXPECT_TRUE(query.has_value()) << query.error().message;
  const Expected<FakeAnswer> got = answer_of(make(query.value_or(query::Query{})), threads);
  EXPECT_TRUE(got.has_value()) << got.error().message;
  return std::get<uint64_t>(got->rows.at(0).at(0));
}

// Each source of a union keeps its own record of a call.
TEST(PlainPlan, UnionsThatOverlapCountInEachSource) {
  const std::vector<FakeThread> threads = random_threads(12, 80);
  const uint64_t wait =
      count_of("from e in return(\"app!wait\") where e.elapsed >= 0 select count()", threads);
  const uint64_t both =
      count_of("from e in return(\"app!wa*\") where e.elapsed >= 0 select count()", threads);
  EXPECT_EQ(count_of("from e in app.twice where e.took >= 0 select count()", threads), wait + both);
}

TEST(PlainPlan, PairsExitsWithTheirEntries) {
  const std::vector<FakeThread> threads = random_threads(10, 80);
  uint64_t pairs = 0;
  int64_t elapsed_ns = 0;
  for (const FakeThread& thread : threads) {
    std::map<uint64_t, const Hit*> open;  // By frame: a call that is left replaces its record.
    for (const Hit& hit : thread.hits) {
      if (fake_function(hit.function) != "wait") continue;
      const Hit*& entry = open[hit.context.frame];
      if (hit.at_exit && entry != nullptr) {
        ++pairs;
        elapsed_ns += static_cast<int64_t>((hit.time - entry->time) * 3 >> 6);
      }
      entry = hit.at_exit ? nullptr : &hit;
    }
  }
  const Expected<query::Query> query =
      parse("from e in return(\"app!wait\") select count(), sum(e.elapsed)");
  ASSERT_TRUE(query.has_value()) << query.error().message;
  const Expected<FakeAnswer> got = answer_of(plain(*query), threads);
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(show(got->rows), show(std::vector<aggregate::Row>{{pairs, elapsed_ns}}));
}

TEST(PlainPlan, NamesEnumeratorsInColumnsOnly) {
  const Expected<query::Query> query =
      parse("from e in app.states groupby e.state where e.state != 1 select e.state, count()");
  ASSERT_TRUE(query.has_value()) << query.error().message;
  const Expected<FakeAnswer> got = answer_of(make(*query), random_threads(11, 80));
  ASSERT_TRUE(got.has_value()) << got.error().message;
  std::vector<std::string> states;
  for (const aggregate::Row& row : got->rows) {
    states.push_back(show(row[0]));
  }
  EXPECT_EQ(states, (std::vector<std::string>{"'OPEN'", "2", "3"}));
}

INSTANTIATE_TEST_SUITE_P(Plan, Rewrites, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace clew::answer

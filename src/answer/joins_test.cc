// SPDX-License-Identifier: Apache-2.0
// Joins by cause over events that are written down here, with rows that were worked out by hand:
// the meaning of each kind of join.
#include "answer/joins.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "answer/join_scene.h"
#include "plan/capture.h"
#include "plan/joined.h"
#include "query/cause.h"
#include "query/diagnostic.h"
#include "query/parse.h"
#include "query/vocabulary.h"

namespace clew::answer {
namespace {

// A system call carries many messages: what hands one over is no hit of what hands over another.
TEST(Joins, CarriersOfOneSystemCallHaveAProbeEach) {
  query::Vocabulary vocabulary;
  const auto put = [](const std::string& name, int size) {
    return fmt::format(
        "[[tracepoint]]\nname = \"{}\"\nsyscall = \"write\"\ncause = \"put n\"\n"
        "exports = {{ n = \"arg2 == {} ? u64(arg1) : 0\" }}\n",
        name, size);
  };
  ASSERT_TRUE(vocabulary.load_text("v.toml", put("one", 8) + put("other", 16) + put("again", 8)));
  const query::Text text{.name = "query",
                         .text = "from b in entry(\"app!b\") join a in entry(\"app!a\") on a -> b"};
  const auto query = query::parse(text, {});
  ASSERT_TRUE(query) << query.error().message;
  const auto carriers =
      query::carriers_of(vocabulary, nullptr, [](const query::Source&) { return true; });
  ASSERT_TRUE(carriers) << carriers.error().message;
  const auto joined = plan::separate(*query, *carriers, query::Reporter(text));
  ASSERT_TRUE(joined) << joined.error().message;
  Strings roles;
  for (size_t i = 0; i < joined->roles.size(); ++i) {
    if (!joined->is_stream(i)) roles.push_back(fmt::format("{}", joined->roles[i].size()));
  }
  EXPECT_EQ(roles, (Strings{"2", "1"}));  // Two tracepoints mean the same hits.
}

// --- each kind of join ---------------------------------------------------------------------------

std::string joined_as(const std::string& source) {
  return "from b in entry(\"app!b\") join a in " + source + " on a -> b select a.arg1, b.arg1";
}

// Three of a, then one of b; a fourth a is in a branch of which b knows nothing.
void run_four(Scene& scene) {
  const auto arg = [](int64_t value) { return Exports{{"arg1", value}}; };
  scene.begin(1);
  scene.hit(1, "a", arg(1));
  scene.hit(1, "a", arg(2));
  scene.branch(1, 2);
  scene.hit(2, "a", arg(4));
  scene.hit(1, "a", arg(3));
  scene.hit(1, "b", arg(9));
}

Strings four_joined_as(const std::string& source) {
  Scene scene(joined_as(source));
  run_four(scene);
  return scene.lines();
}

TEST(Joins, TakeAllThatHappenedBefore) {
  EXPECT_EQ(four_joined_as("entry(\"app!a\")"), (Strings{"1 9", "2 9", "3 9"}));
}

TEST(Joins, TakeTheFirst) {
  EXPECT_EQ(four_joined_as("First(entry(\"app!a\"))"), (Strings{"1 9"}));
  EXPECT_EQ(four_joined_as("FirstN(2, entry(\"app!a\"))"), (Strings{"1 9", "2 9"}));
  EXPECT_EQ(four_joined_as("FirstN(7, entry(\"app!a\"))"), (Strings{"1 9", "2 9", "3 9"}));
}

TEST(Joins, TakeTheMostRecent) {
  EXPECT_EQ(four_joined_as("MostRecent(entry(\"app!a\"))"), (Strings{"3 9"}));
  EXPECT_EQ(four_joined_as("MostRecentN(2, entry(\"app!a\"))"), (Strings{"2 9", "3 9"}));
}

// Two branches that know nothing of each other: the first has the smaller number, and of equal
// ones the one that came first. (Pivot's release kept two.)
TEST(Joins, HaveOneFirstOfTwoBranches) {
  Scene scene(joined_as("First(entry(\"app!a\"))"));
  scene.begin(1);
  scene.branch(1, 2);
  scene.hit(2, "a", {{"arg1", int64_t{2}}});
  scene.hit(1, "a", {{"arg1", int64_t{1}}});
  scene.put(2, 7);
  scene.join(1, 7);
  scene.hit(1, "b", {{"arg1", int64_t{9}}});
  EXPECT_EQ(scene.lines(), (Strings{"2 9"}));
}

TEST(Joins, OfTheLeftHaveARowWithoutAnything) {
  Scene scene(
      "from b in entry(\"app!b\") left join a in entry(\"app!a\") on a -> b "
      "select a.arg1, b.arg1");
  scene.hit(5, "b", {{"arg1", int64_t{5}}});
  run_four(scene);
  EXPECT_EQ(scene.lines(), (Strings{"1 9", "2 9", "3 9", "null 5"}));
}

TEST(Joins, OfTheLeftCountWithoutWhatIsNotThere) {
  Scene scene(
      "from b in entry(\"app!b\") left join a in MostRecent(entry(\"app!a\")) on a -> b "
      "groupby b.arg1 select b.arg1, count(), sum(a.arg1), min(a.arg1)");
  scene.hit(5, "b", {{"arg1", int64_t{9}}});
  scene.hit(5, "b", {{"arg1", int64_t{5}}});
  run_four(scene);
  EXPECT_EQ(scene.lines(), (Strings{"5 1 0 null", "9 2 3 3"}));
}

// One b without a request, then one in run_four(), whose first a has 0.
Strings selected_by(const std::string& join, const std::string& rest) {
  Scene scene("from b in entry(\"app!b\") " + join + " join a in entry(\"app!a\") on a -> b " +
              rest);
  scene.hit(5, "b", {{"arg1", int64_t{5}}});
  scene.begin(3);
  scene.hit(3, "a", {{"arg1", int64_t{0}}});
  scene.hit(3, "b", {{"arg1", int64_t{8}}});
  run_four(scene);
  return scene.lines();
}

TEST(Joins, OfTheLeftAreSelectedByWhatIsNotThere) {
  const auto left = [](const std::string& rest) { return selected_by("left", rest); };
  EXPECT_EQ(left("where a == null select a.arg1, b.arg1"), (Strings{"null 5"}));
  EXPECT_EQ(left("where null == a.arg1 select b.arg1"), (Strings{"5"}));
  EXPECT_EQ(left("where a != null select a.arg1, b.arg1"), (Strings{"0 8", "1 9", "2 9", "3 9"}));
  EXPECT_EQ(left("where a.arg1 == null || a.arg1 >= 3 select b.arg1"), (Strings{"5", "9"}));
  EXPECT_EQ(left("where !(a.arg1 * 2 != null) select b.arg1"), (Strings{"5"}));
  EXPECT_EQ(left("where a.arg1 == 0 select b.arg1"), (Strings{"8"}));
  EXPECT_EQ(left("let x = a.arg1 + 1 where x == null && x + x == null select b.arg1"),
            (Strings{"5"}));
}

TEST(Joins, OfTheLeftShowWhetherSomethingIsNotThere) {
  EXPECT_EQ(selected_by("left", "select b.arg1, a == null as missing"),
            (Strings{"5 1", "8 0", "9 0", "9 0", "9 0"}));
  EXPECT_EQ(selected_by("left", "select b.arg1, a.arg1 == null ? 7 : a.arg1 as x"),
            (Strings{"5 7", "8 0", "9 1", "9 2", "9 3"}));
}

// What is not there is a key of its own, beside 0; a row of it can be selected by the key, and by
// an aggregate of nothing.
TEST(Joins, OfTheLeftHaveAGroupOfWhatIsNotThere) {
  EXPECT_EQ(selected_by("left", "groupby a.arg1 select a.arg1, count(), max(a.arg1)"),
            (Strings{"0 1 0", "1 1 1", "2 1 2", "3 1 3", "null 1 null"}));
  EXPECT_EQ(selected_by("left", "groupby a.arg1 as x select x, count() as n where x == null"),
            (Strings{"null 1"}));
  EXPECT_EQ(selected_by("left", "groupby a == null as missing select missing, count()"),
            (Strings{"0 4", "1 1"}));
  EXPECT_EQ(selected_by("left", "groupby b.arg1 select b.arg1, count() where max(a.arg1) == null"),
            (Strings{"5 1"}));
  EXPECT_EQ(
      selected_by("left", "groupby b.arg1 select b.arg1, avg(a.arg1), p50(a.arg1), stddev(a.arg1)"),
      (Strings{"5 null null null", "8 0 0 0", "9 2 2 0.816496580927726"}));
  // A sum of nothing is 0.
  EXPECT_EQ(selected_by("left", "groupby b.arg1 select b.arg1, sum(a.arg1) as s where s != null"),
            (Strings{"5 0", "8 0", "9 6"}));
}

// There, `null` is the null pointer.
TEST(Joins, OfBothSidesHaveNothingThatIsNotThere) {
  EXPECT_EQ(selected_by("", "where a.arg1 == null select b.arg1"), (Strings{"8"}));
}

TEST(Joins, OfAQueryWithALeftJoinHaveWhatThatDidNotFind) {
  Scene scene(
      "var inner = entry(\"app!b\").LeftAfter(entry(\"app!a\"), (b, a) => new { b.arg1, x = a.arg1 "
      "}); entry(\"app!c\").After(inner, (c, i) => new { c.arg2, i.arg1, i.x }).Where(r => r.x == "
      "null)");
  scene.begin(1);
  scene.hit(1, "b", {{"arg1", int64_t{4}}});
  scene.hit(1, "a", {{"arg1", int64_t{0}}});
  scene.hit(1, "b", {{"arg1", int64_t{5}}});
  scene.hit(1, "c", {{"arg2", int64_t{6}}});
  EXPECT_EQ(scene.lines(), (Strings{"6 4 null"}));
}

// A query with groups, joined with b: those of what happened before each b.
Strings joined_with_groups(const std::string& join, const std::string& rest) {
  Scene scene("from b in entry(\"app!b\") " + join + " on q -> b " + rest);
  scene.hit(5, "b", {{"arg1", int64_t{5}}});
  run_four(scene);
  scene.hit(1, "a", {{"arg1", int64_t{10}}});
  scene.hit(1, "b", {{"arg1", int64_t{11}}});
  return scene.lines();
}

TEST(Joins, OfGroupsCountWhatHappenedBefore) {
  const std::string groups =
      "join q in (from a in entry(\"app!a\") groupby a.arg1 > 1 as big select big, count() as n, "
      "sum(a.arg1) as s, avg(a.arg1) as mean";
  EXPECT_EQ(joined_with_groups(groups + ")", "select b.arg1, q.big, q.n, q.s, q.mean"),
            (Strings{"11 0 1 1 1", "11 1 3 15 5", "9 0 1 1 1", "9 1 2 5 2.5"}));
  EXPECT_EQ(joined_with_groups(groups + " where n > 2)", "select b.arg1, q.n"), (Strings{"11 3"}));
  EXPECT_EQ(joined_with_groups("left " + groups + ")", "where q.n == null select b.arg1"),
            (Strings{"5"}));
  EXPECT_EQ(joined_with_groups(groups + ")", "groupby q.big select q.big, sum(q.n), max(q.s)"),
            (Strings{"0 2 1", "1 5 15"}));
}

TEST(Joins, OfOneGroupHaveARowWhereSomethingHappened) {
  EXPECT_EQ(joined_with_groups("join q in (entry(\"app!a\").Count())", "select b.arg1, q"),
            (Strings{"11 4", "9 3"}));
  EXPECT_EQ(joined_with_groups("left join q in (entry(\"app!a\").Max(a => a.arg1))",
                               "select b.arg1, q as most where b.arg1 < 10"),
            (Strings{"5 null", "9 3"}));
}

// The groups' own query joins, and a stream stands behind them.
TEST(Joins, OfGroupsStandBetweenOthers) {
  Scene scene(
      "var pairs = entry(\"app!b\").After(entry(\"app!a\"), (b, a) => new { b.arg1, a })"
      ".GroupBy(r => r.arg1).Select(g => new { g.Key, n = g.Count() });"
      "entry(\"app!c\").After(pairs, (c, p) => new { c, p.Key, p.n })"
      ".After(MostRecent(entry(\"app!b\")), r => r.c, (r, b) => new { r.Key, r.n, last = b.arg1 "
      "})");
  run_four(scene);
  scene.hit(1, "b", {{"arg1", int64_t{8}}});
  scene.hit(1, "c");
  EXPECT_EQ(scene.lines(), (Strings{"8 3 8", "9 3 8"}));
}

// The call before this one: an event does not happen before itself.
TEST(Joins, OfASourceWithItselfTakeTheOneBefore) {
  Scene scene(
      "from b in entry(\"app!a\") join a in MostRecent(entry(\"app!a\")) on a -> b "
      "select a.time, b.time");
  EXPECT_EQ(scene.joined().roles.size(), 7);
  // Both streams ask for the time, which is one column.
  scene.begin(1);
  for (const int64_t time : {1, 2, 3})
    scene.hit(1, "a", {{"time", time}});
  EXPECT_EQ(scene.lines(), (Strings{"1 2", "2 3"}));
}

// A condition on all that is joined stands in the probe. The first, if it passes, is not the first
// of those that pass.
TEST(Joins, HaveConditionsInFrontOfThemWhereThatIsTheSame) {
  const auto text = [](const char* source) {
    return std::string("from b in entry(\"app!b\") join a in ") + source +
           " on a -> b where a.arg1 > 1 select a.arg1, b.arg1";
  };
  Scene all(text("entry(\"app!a\")"));
  EXPECT_EQ(all.joined().events.where.size(), 1);
  EXPECT_TRUE(all.joined().stages[0].rest.where.empty());
  Scene first(text("First(entry(\"app!a\"))"));
  EXPECT_TRUE(first.joined().events.where.empty());
  run_four(first);
  EXPECT_EQ(first.lines(), Strings{});
}

TEST(Joins, CompareEventsWithEachOther) {
  Scene scene(
      "from b in entry(\"app!b\") join a in entry(\"app!a\") on a -> b "
      "where a.arg1 * 3 == b.arg1 select a.arg1, b.arg1");
  run_four(scene);
  EXPECT_EQ(scene.lines(), (Strings{"3 9"}));
}

// A text's part in front of a mark. Where no file was found there is none; A.txt has no B.
Strings file_names(const std::string& rest) {
  Scene scene(
      "from b in entry(\"app!b\") left join a in (from x in entry(\"app!a\") select str(x.arg1) as "
      "name) on a -> b " +
      rest);
  scene.begin(1);
  scene.hit(1, "b", {{"arg1", int64_t{1}}, {"arg2", int64_t{0}}});
  scene.hit(1, "a", {{"arg1", int64_t{1}}});
  scene.hit(1, "b", {{"arg1", int64_t{2}}, {"arg2", int64_t{1}}});
  scene.hit(1, "a", {{"arg1", int64_t{2}}});
  scene.hit(1, "b", {{"arg1", int64_t{1}}, {"arg2", int64_t{2}}});
  return scene.lines();
}

TEST(Joins, CutTextsInFrontOfAMark) {
  EXPECT_EQ(file_names("select b.arg2, before(a.name, \".\") as name"),
            (Strings{"0 null", "1 A", "2 A", "2 B"}));
  EXPECT_EQ(file_names("where before(a.name, \".\") == \"B\" select b.arg2, a.name"),
            (Strings{"2 B.txt"}));
  EXPECT_EQ(file_names("where before(a.name, \"A\") == null select b.arg2"), (Strings{"0"}));
  EXPECT_EQ(file_names("groupby before(a.name, \"B\") as n select count(), n"),
            (Strings{"1 ", "1 null", "2 A.txt"}));
}

// Such a condition stands behind the join; the events have what it is computed from.
TEST(Joins, SelectByWhatNoProbeComputes) {
  for (const char* condition :
       {"before(str(b.arg1), \"txt\") == \"A.\"", "str(b.arg1) like \"A%\"",
        "contains(str(b.arg1), \"A\")", "substr(str(b.arg1), 0, 1) == \"A\"",
        "len(str(b.arg1)) == 5 && b.arg2 != 1", "str(b.arg1) < \"B\""}) {
    SCOPED_TRACE(condition);
    Scene scene(
        std::string("from b in entry(\"app!b\") join a in entry(\"app!a\") on a -> b where ") +
        condition + " select b.arg2");
    EXPECT_TRUE(plan::capture(plan::make(scene.joined().events)).has_value());
    scene.begin(1);
    scene.hit(1, "a");
    for (const int64_t name : {1, 2, 1})
      scene.hit(1, "b", {{"arg1", name}, {"arg2", name - 1}});
    EXPECT_EQ(scene.lines(), (Strings{"0", "0"}));
  }
}

// One of a, then b in the same thread, in one that took over, and in one that may have done so.
Strings by_class(const std::string& clause, uint64_t weak) {
  const auto arg = [](int64_t value) { return Exports{{"arg1", value}}; };
  Scene scene("from b in entry(\"app!b\") join a in entry(\"app!a\") on a -> b " + clause +
              " select b.arg1");
  scene.begin(1);
  scene.hit(1, "a", arg(1));
  scene.hit(1, "b", arg(7));
  scene.branch(1, 2);
  scene.hit(2, "b", arg(8));
  scene.put(1, 5);
  scene.guess(3, 5);
  scene.hit(3, "b", arg(9));
  EXPECT_EQ(scene.counts().graph.weak, weak) << clause;
  return scene.lines();
}

TEST(Joins, BelieveRecipesWhereTheQueryDoesNotSay) {
  EXPECT_EQ(by_class("", 1), (Strings{"7", "8"}));
  EXPECT_EQ(by_class("with cause >= recipe", 1), (Strings{"7", "8"}));
}

TEST(Joins, BelieveWhatTheQuerySays) {
  EXPECT_EQ(by_class("with cause >= heuristic", 0), (Strings{"7", "8", "9"}));
  EXPECT_EQ(by_class("with cause >= sound", 1), Strings{});  // The request begins by a recipe.
}

TEST(Joins, ForgetRequestsThatHaveTooManyRows) {
  Scene scene(joined_as("entry(\"app!a\")"), {.kept = 3});
  scene.begin(5);
  scene.hit(5, "a", {{"arg1", int64_t{7}}});
  run_four(scene);  // Needs room for four; the last of them finds its own request alone.
  scene.hit(5, "b", {{"arg1", int64_t{8}}});
  EXPECT_EQ(scene.lines(), Strings{});
  EXPECT_EQ(scene.counts().graph.forgotten, 2);
}

TEST(Joins, CutWhatIsTooMuchForOneEvent) {
  Scene scene(joined_as("entry(\"app!a\")"), {.rows = 2});
  run_four(scene);
  EXPECT_EQ(scene.lines(), (Strings{"1 9", "2 9"}));
  EXPECT_EQ(scene.counts().cut, 1);
}

TEST(Joins, GiveRowsInParts) {
  Scene scene(joined_as("entry(\"app!a\")"), {.batch = 1});
  scene.begin(1);
  scene.hit(1, "a", {{"arg1", int64_t{1}}});
  scene.hit_at_once(1, "b", 3);
  EXPECT_EQ(scene.lines().size(), 3);
}

// What was lost may have been an edge: nothing goes on from before it.
TEST(Joins, KnowNothingBehindLostEvents) {
  Scene scene(joined_as("entry(\"app!a\")"));
  run_four(scene);
  scene.put(1, 5);
  scene.lose(3);
  scene.hit(1, "b", {{"arg1", int64_t{10}}});
  scene.take(2, 5);
  scene.hit(2, "b", {{"arg1", int64_t{11}}});
  run_four(scene);
  EXPECT_EQ(scene.lines().size(), 6);
  EXPECT_EQ(scene.counts().skipped, 3);
  EXPECT_EQ(scene.counts().graph.orphans, 2);
}

TEST(Joins, GiveBackTheRoomOfForgottenRequests) {
  Scene scene(joined_as("entry(\"app!a\")"), {.kept = 4, .graph = {.requests = 1}});
  run_four(scene);
  run_four(scene);
  EXPECT_EQ(scene.lines().size(), 6);
}

}  // namespace
}  // namespace clew::answer

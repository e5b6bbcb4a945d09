// SPDX-License-Identifier: Apache-2.0
// Rewrites of joins change where events are counted, never the answer: on random graphs of
// requests, each query gives the same rows as it is written and as it is rewritten.
#include "plan/rewrite_join.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ostream>
#include <random>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "answer/join_scene.h"

namespace clew::answer {
namespace {

struct JoinCase {
  std::string_view name;
  std::string_view text;
  std::vector<std::string_view> counted;  // The names whose groups are joined.
};

std::ostream& operator<<(std::ostream& stream, const JoinCase& each) {
  return stream << each.name;
}

const std::array kJoinCases = {
    JoinCase{"Counts", "from b in B join a in A on a -> b select count()", {"a"}},
    JoinCase{"Sums", "from b in B join a in A on a -> b select sum(a.arg1), sum(b.arg1)", {"a"}},
    JoinCase{"Extremes",
             "from b in B join a in A on a -> b groupby b.arg1 % 3 as k "
             "select k, min(a.arg1), max(a.arg1), min(b.arg2), max(b.arg2), count()",
             {"a"}},
    JoinCase{"Averages",
             "from b in B join a in A on a -> b groupby b.arg1 % 3 as k "
             "select k, avg(a.arg1), avg(b.arg2), avg((uint64_t)a.arg2) "
             "where avg(a.arg1) > 20 orderby avg(b.arg2) take 2",
             {"a"}},
    JoinCase{"Keys",
             "from b in B join a in A on a -> b groupby a.arg1 % 4 as k "
             "select k, count(), sum(b.arg2), sum(a.arg2), avg(a.arg2)",
             {"a"}},
    JoinCase{"KeysOfBoth",
             "from b in B join a in A on a -> b groupby a.arg1 % 4 as k, b.arg1 % 2 as m "
             "select k, m, count(), max(a.arg2) - min(b.arg2)",
             {"a"}},
    JoinCase{"Conditions",
             "from b in B join a in A on a -> b where a.arg1 > 20 where b.arg1 > 10 "
             "select count(), sum(a.arg1), distinct(b.arg1)",
             {"a"}},
    JoinCase{"Independent",
             "from b in B join a in A on a -> b join c in C on c -> b groupby c.arg1 % 2 as k "
             "select k, count(), sum(a.arg1), sum(b.arg1), sum(c.arg2), avg(b.arg1), avg(c.arg2)",
             {"a", "c"}},
    JoinCase{"BesideOne",
             "from b in B join a in A on a -> b join c in MostRecent(C) on c -> b "
             "groupby c.arg1 % 2 as k select k, count(), sum(a.arg1), sum(c.arg1)",
             {"a"}},
    JoinCase{"BehindAnother",
             "from b in B join c in C on c -> b join a in A on a -> c groupby b.arg1 % 2 as k "
             "select k, count(), sum(a.arg1), sum(c.arg1), max(b.arg1)",
             {"a"}},
    JoinCase{"OfItself",
             "from b in B join a in B on a -> b select count(), sum(a.arg1), avg(b.arg1)",
             {"a"}},
    JoinCase{"OfItselfWithAConditionOnOne",
             "from b in B join a in B on a -> b where a.arg1 % 3 == 0 "
             "select count(), sum(a.arg1), max(b.arg1)",
             {"a"}},
    JoinCase{"KeysOfTwo",
             "from b in B join a in A on a -> b join c in C on c -> b "
             "groupby a.arg1 % 2 as k, c.arg1 % 2 as m select k, m, count(), sum(b.arg1)",
             {"a", "c"}},
    JoinCase{"NarrowAndWrapping",
             "from b in B join a in A on a -> b select sum((int8_t)(a.arg1 * 5)), "
             "sum((uint8_t)(a.arg2)), sum(a.arg2 * 4611686018427387905), avg((int16_t)a.arg2), "
             "max((uint8_t)a.arg2), sum((uint64_t)b.arg2)",
             {"a"}},
    JoinCase{"SeveralSources",
             "from b in B, C join a in A, B on a -> b groupby b.arg1 % 3 as k "
             "select k, count(), sum(a.arg1), avg(b.arg2)",
             {"a"}},
    JoinCase{"BesideAQueryOfEvents",
             "from b in B join q in (from x in C left join c in First(A) on c -> x "
             "select c.arg1 as v) on q -> b join a in A on a -> b "
             "select count(), sum(q.v), min(q.v), avg(b.arg1)",
             {"q", "a"}},
    JoinCase{
        "BesideAQueryWithGroups",
        "from b in B join q in (from c in C groupby c.arg1 % 2 as k select k, count() as n) on "
        "q -> b join a in A on a -> b groupby q.k select q.k, count(), sum(q.n), sum(a.arg1)",
        {"q", "a"}},
    JoinCase{"Lets",
             "from b in B join a in A on a -> b let twice = a.arg1 * 2 let more = twice + 1 "
             "where more > 30 groupby b.arg1 % 2 as k select k, sum(more), sum(b.arg2)",
             {"a"}},
};

std::string with_sources(std::string_view text) {
  std::string made;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_alone = (i == 0 || !std::isalpha(text[i - 1])) && !std::isalpha(text[i + 1]);
    if (c >= 'A' && c <= 'C' && is_alone) {
      made += fmt::format("entry(\"app!{}\")", static_cast<char>(std::tolower(c)));
    } else {
      made += c;
    }
  }
  return made;
}

// A request that threads hand over to each other, take back and join, with events anywhere.
class Graph {
 public:
  Graph(std::vector<Scene*> scenes, std::mt19937& random)
      : scenes_(std::move(scenes)), random_(random) {}

  // `first`: of its threads and keys.
  void run(int64_t first) {
    first_ = first;
    threads_ = 1;
    keys_ = 0;
    each([&](Scene& scene) { scene.begin(first); });
    for (int step = 0; step < 24; ++step)
      this->step();
    for (int64_t thread = 0; thread < threads_; ++thread)
      each([&](Scene& scene) { scene.end(first_ + thread); });
  }

 private:
  template <typename Action>
  void each(const Action& action) {
    for (Scene* const scene : scenes_)
      action(*scene);
  }
  int64_t below(int64_t end) { return std::uniform_int_distribution<int64_t>(0, end - 1)(random_); }
  void step() {
    const int64_t thread = first_ + below(threads_);
    switch (below(8)) {
      case 0:
        if (threads_ == 4) return;
        return each([this, thread, to = first_ + threads_++](Scene& s) { s.branch(thread, to); });
      case 1:
        return each([thread, key = first_ + keys_++](Scene& s) { s.put(thread, key); });
      case 2:
        if (keys_ == 0) return;
        return each([thread, key = first_ + below(keys_)](Scene& s) { s.join(thread, key); });
      default:
        return hit(thread);
    }
  }
  void hit(int64_t thread) {
    const auto name = std::string(1, static_cast<char>('a' + below(3)));
    const Exports exports = {{"arg1", below(50)}, {"arg2", below(9) - 4}};
    each([&](Scene& scene) { scene.hit(thread, name, exports); });
  }

  std::vector<Scene*> scenes_;
  std::mt19937& random_;
  int64_t first_ = 0;
  int64_t threads_ = 1;
  int64_t keys_ = 0;
};

int64_t graphs() {
  const char* const asked = std::getenv("CLEW_RANDOM_GRAPHS");
  return asked != nullptr ? std::atoll(asked) : 10'000;
}

// Whether both give the same rows of each graph.
void compare(Scene& plain, Scene& other) {
  std::mt19937 random(testing::UnitTest::GetInstance()->random_seed());
  Graph graph({&plain, &other}, random);
  int64_t rows = 0;
  for (int64_t i = 0; i < graphs(); ++i) {
    graph.run(i * 1000);
    const Strings expected = plain.lines();
    ASSERT_EQ(other.lines(), expected) << "graph " << i;
    rows += static_cast<int64_t>(expected.size());
    plain.forget();
    other.forget();
  }
  EXPECT_GT(rows, graphs() / 2);
}

class JoinRewrites : public testing::TestWithParam<JoinCase> {};

INSTANTIATE_TEST_SUITE_P(Queries, JoinRewrites, testing::ValuesIn(kJoinCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(JoinRewrites, GiveTheSameRows) {
  const std::string text = with_sources(GetParam().text);
  Scene plain(text);
  Scene rewritten(text, {}, plan::rewrite_join);
  compare(plain, rewritten);
}

TEST_P(JoinRewrites, CountInFrontOfTheJoin) {
  const Scene scene(with_sources(GetParam().text), {}, plan::rewrite_join);
  std::vector<std::string_view> counted;
  for (const query::Join& join : scene.joined().stages[0].query.joins) {
    if (!join.subquery.empty()) counted.emplace_back(join.name);
  }
  EXPECT_EQ(counted, GetParam().counted);
}

// A condition on one event stands in the probe; on two, of which one makes no difference, behind
// the join.
TEST(JoinRewrites, HaveConditionsInProbesWhereThatIsTheSame) {
  for (const std::string_view join :
       {"join a in A on a -> b", "join a in First(A) on a -> b", "join a in FirstN(2, A) on a -> b",
        "join a in MostRecent(A) on a -> b"}) {
    for (const std::string_view side : {"a.arg1", "b.arg1"}) {
      const std::string query = fmt::format("from b in B {} where {} ", join, side);
      const std::string rest = " > 25 select a.arg1, b.arg1, a.arg2, b.arg2";
      Scene pushed(with_sources(query + rest));
      Scene behind(with_sources(query + " + 0 * a.arg2 + 0 * b.arg2" + rest));
      EXPECT_TRUE(behind.joined().stages[0].pushed.empty());
      const bool is_first = join.find('(') != std::string_view::npos;
      EXPECT_EQ(pushed.joined().stages[0].pushed.empty(), is_first && side == "a.arg1");
      compare(behind, pushed);
    }
  }
}

// Events are counted once, and not for each later one: this would be 2 * 10^8 rows. Branches that
// take turns see their own.
TEST(JoinRewrites, CountLongRequestsAndBranches) {
  constexpr int64_t kEvents = 20'000;
  Scene scene(with_sources("from b in B join a in A on a -> b select count(), sum(a.arg1)"), {},
              plan::rewrite_join);
  scene.begin(1);
  for (int64_t i = 0; i < kEvents; ++i) {
    scene.hit(1, "a", {{"arg1", int64_t{3}}});
    scene.hit(1, "b");
  }
  const int64_t rows = kEvents * (kEvents + 1) / 2;
  EXPECT_EQ(scene.lines(), (Strings{fmt::format("{} {}", rows, 3 * rows)}));
  scene.forget();
  scene.branch(1, 2);
  for (const int64_t thread : {1, 2, 1, 2}) {
    scene.hit(thread, "a", {{"arg1", int64_t{thread}}});
    scene.hit(thread, "b");
  }
  EXPECT_EQ(
      scene.lines(),
      (Strings{fmt::format("{} {}", 4 * kEvents + 1 + 1 + 2 + 2, 12 * kEvents + 1 + 2 + 2 + 4)}));
}

// Each needs the rows themselves.
TEST(JoinRewrites, LeaveOthersAlone) {
  for (const std::string_view text :
       {"from b in B join a in First(A) on a -> b select count()",
        "from b in B left join a in A on a -> b select count()",
        "from b in B join a in A on a -> b select a.arg1",
        "from b in B join a in A on a -> b where a.arg1 > b.arg1 select count()",
        "from b in B join a in A on a -> b select sum(a.arg1 * b.arg1)",
        "from b in B join a in A on a -> b groupby a.arg1 + b.arg1 as k select k, count()",
        "from b in B join a in A on a -> b select sum(a.arg1 / 2.0)",
        "from b in B join a in A on a -> b select quantize(b.arg1)",
        "from b in B join a in A on a -> b select stddev(a.arg1)",
        "from b in B join a in A on a -> b select distinct(a.arg1)",
        "from b in B join a in A on a -> b let x = a.arg1 + b.arg1 groupby x select x, count()",
        "from b in B join a in A on a -> b select count() for 3 events"}) {
    const Scene scene(with_sources(text), {}, plan::rewrite_join);
    for (const query::Join& join : scene.joined().stages[0].query.joins)
      EXPECT_TRUE(join.subquery.empty()) << text;
  }
  // An average of what may be nothing.
  const Scene scene(
      with_sources("from b in B join q in (from x in C left join c in First(A) on c -> x "
                   "select c.arg1 as v) on q -> b join a in A on a -> b select avg(q.v)"),
      {}, plan::rewrite_join);
  EXPECT_TRUE(scene.joined().stages[0].query.joins[1].subquery.empty());
}

// Events of a query of their own that it leaves out have no number, wherever it looks at them.
TEST(JoinRewrites, ChooseFromWhatAQueryHas) {
  const std::string query =
      "from b in B join q in First((from a in A {} where a.arg1 > 25 select a.arg1, a.arg2)) on q "
      "-> b join c in First(C) on c -> b select q.arg1, b.arg1, c.arg1";
  Scene pushed(with_sources(fmt::format(fmt::runtime(query), "")));
  Scene behind(with_sources(fmt::format(fmt::runtime(query),
                                        "left join x in First(C) on x -> a where x.arg1 + a.arg1 > "
                                        "-1 || x.arg1 == null")));
  EXPECT_FALSE(pushed.joined().stages[1].pushed.empty());
  compare(behind, pushed);
}

}  // namespace
}  // namespace clew::answer

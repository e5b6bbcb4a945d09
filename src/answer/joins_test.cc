// SPDX-License-Identifier: Apache-2.0
// Joins by cause over events that are written down here, with rows that were worked out by hand:
// the queries of the Pivot Tracing paper (sections 2 and 3), the execution of its figure 3, and the
// meaning of each kind of join.
#include "answer/joins.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "answer/answer.h"
#include "plan/evaluate.h"
#include "plan/joined.h"
#include "query/fake_types.h"
#include "query/fields.h"
#include "query/parse.h"
#include "query/vocabulary.h"

namespace clew::answer {
namespace {

namespace fs = std::filesystem;
using aggregate::Value;
using causal::EdgeClass;
using query::Act;

const fs::path kGoldens = fs::path(CLEW_SOURCE_DIR) / "tests/golden/query";

// Functions of every process that hand requests on.
query::Carrier carrier(const std::string& function, Act act, EdgeClass how = EdgeClass::Recipe) {
  query::Carrier made;
  made.cause.act = act;
  made.cause.how = how;
  made.source.module = "app";
  made.source.function = function;
  if (act == Act::Begin || act == Act::End) return made;
  query::Expression key;
  key.kind = query::ExpressionKind::Field;
  key.field = query::Field::Argument;
  made.key = std::move(key);
  return made;
}

std::string text_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  if (std::holds_alternative<std::monostate>(value)) return "null";
  return fmt::format("{}", static_cast<int64_t>(plan::bits_of(value)));
}

class Lines final : public Operator {
 public:
  void take(RowBatch& rows) override {
    for (size_t i = 0; i < rows.size(); ++i) {
      std::string line;
      for (const Value& value : rows.at(i))
        line += (line.empty() ? "" : " ") + text_of(value);
      lines.push_back(std::move(line));
    }
  }
  void finish() override {}

  std::vector<std::string> lines;
};

// What an event exports.
using Exports = std::map<std::string, Value>;

// What a probe computes. An address of text is the text's place in `kFileNames`.
const std::vector<std::string> kFileNames = {"", "A.txt", "B.txt"};

class EventBindings final : public plan::Bindings {
 public:
  EventBindings(const query::Source& source, const Exports& exports)
      : source_(source), exports_(exports) {}

  Value field(const query::Expression& expression) override {
    using query::Field;
    std::string name(query::info(expression.field).name);
    if (expression.field == Field::Argument)
      name = query::argument_name(Field::Argument, expression.index);
    const auto found = exports_.find(name);
    // What another stream asks of all events need not be said of this one.
    const bool is_asked = expression.field == Field::Argument;
    if (found == exports_.end() && is_asked) ADD_FAILURE() << "nothing is said of " << name;
    return found == exports_.end() ? Value{} : found->second;
  }
  Value input(uint16_t index) override { return plan::evaluate(source_.inputs[index], *this); }
  Value let(uint16_t) override { return {}; }
  Value value(uint16_t) override { return {}; }
  Value aggregate(uint16_t) override { return {}; }
  Value memory(const query::Expression&, uint64_t address) override {
    return kFileNames.at(address);
  }

 private:
  const query::Source& source_;
  const Exports& exports_;
};

class Scene {
 public:
  explicit Scene(const std::string& text, JoinLimits limits = {}) {
    query::Vocabulary vocabulary;
    EXPECT_TRUE(vocabulary.load(kGoldens / "vocabulary").has_value());
    query::FakeTypes types;
    const query::Text query_text{.name = "query", .text = text};
    auto query = query::parse(query_text, {.vocabulary = &vocabulary, .types = &types});
    EXPECT_TRUE(query.has_value()) << query.error().message;
    auto joined = plan::separate(
        *query,
        {carrier("begin", Act::Begin), carrier("end", Act::End), carrier("put", Act::Put),
         carrier("take", Act::Take), carrier("join", Act::Join),
         carrier("guess", Act::Take, EdgeClass::Heuristic)},
        query::Reporter(query_text));
    EXPECT_TRUE(joined.has_value()) << joined.error().message;
    joined_ = std::move(*joined);
    joins_ = std::make_unique<Joins>(joined_, limits);
    plan_ = plan::plain(joined_.stages[0].rest);
    rows_.emplace(plan_.query.values.size());
  }

  void begin(int64_t tid) { carry(tid, "begin", 0); }
  void end(int64_t tid) { carry(tid, "end", 0); }
  void put(int64_t tid, int64_t key) { carry(tid, "put", key); }
  void take(int64_t tid, int64_t key) { carry(tid, "take", key); }
  void join(int64_t tid, int64_t key) { carry(tid, "join", key); }
  // A take that is known by a heuristic.
  void guess(int64_t tid, int64_t key) { carry(tid, "guess", key); }
  // `from` hands over to `to`, which goes on beside it.
  void branch(int64_t from, int64_t to) {
    put(from, 1000 + to);
    take(to, 1000 + to);
  }
  // An event of a tracepoint or function in this thread, if the query asks for it.
  void hit(int64_t tid, const std::string& name, const Exports& exports = {}) {
    const std::optional<size_t> source = source_of(name);
    if (!source) return;
    std::vector<Value> row = empty_row(*source, tid);
    EventBindings bindings(joined_.events.sources[*source], exports);
    for (size_t i = plan::Joined::kOwnColumns; i < row.size(); ++i)
      row[i] = plan::evaluate(joined_.events.values[i].expression, bindings);
    for (const query::Expression& condition : joined_.events.where) {
      if (!plan::is_true(plan::evaluate(condition, bindings))) return;
    }
    give(row);
  }

  // So many events of a source in one batch, whose joined rows are taken away as they come.
  void hit_at_once(int64_t tid, const std::string& name, size_t count) {
    const size_t source = source_of(name).value();
    const std::vector<Value> row = empty_row(source, tid);
    RowBatch events(row.size());
    for (size_t i = 0; i < count; ++i)
      std::copy(row.begin(), row.end(), events.add().begin());
    size_t at = 0;
    while (at < events.size()) {
      const size_t before = rows_->size();
      RowBatch some(rows_->width());
      at = joins_->take(events, at, some);
      EXPECT_LE(some.size(), 1);
      for (size_t i = 0; i < some.size(); ++i)
        std::copy(some.at(i).begin(), some.at(i).end(), rows_->add().begin());
      EXPECT_EQ(rows_->size(), before + some.size());
    }
  }

  // Some events are lost beside so many.
  void lose(size_t events) {
    RowBatch rows(joined_.events.values.size());
    for (size_t i = 0; i < events; ++i)
      (void)rows.add();
    joins_->skip(rows);
  }

  // The answer.
  std::vector<std::string> lines() {
    Lines lines;
    Answer answer(plan_, 0, lines);
    if (plan_.query.shape == query::Shape::Groups) {
      answer.take(joins_->counted());
    } else {
      answer.take(*rows_);
    }
    std::sort(lines.lines.begin(), lines.lines.end());
    return lines.lines;
  }
  [[nodiscard]] JoinCounts counts() const { return joins_->counts(); }
  [[nodiscard]] const plan::Joined& joined() const { return joined_; }

 private:
  [[nodiscard]] std::optional<size_t> source_of(const std::string& name) const {
    for (size_t i = 0; i < joined_.events.sources.size(); ++i) {
      const query::Source& source = joined_.events.sources[i];
      if (source.label == name || source.function == name) return i;
    }
    return std::nullopt;
  }

  std::vector<Value> empty_row(size_t source, int64_t tid) {
    std::vector<Value> row(joined_.events.values.size());
    row[plan::Joined::kSource] = static_cast<int64_t>(source);
    row[plan::Joined::kPid] = int64_t{1};
    row[plan::Joined::kTid] = tid;
    return row;
  }

  void carry(int64_t tid, const std::string& function, int64_t key) {
    const size_t source = source_of(function).value();
    std::vector<Value> row = empty_row(source, tid);
    for (const plan::JoinRole& role : joined_.roles[source]) {
      if (role.carrier && role.carrier->key) row[role.key_column] = key;
    }
    give(row);
  }

  void give(const std::vector<Value>& row) {
    RowBatch events(row.size());
    std::copy(row.begin(), row.end(), events.add().begin());
    EXPECT_EQ(joins_->take(events, 0, *rows_), 1);
  }

  plan::Joined joined_;
  std::unique_ptr<Joins> joins_;
  plan::Plan plan_;
  std::optional<RowBatch> rows_;
};

using Strings = std::vector<std::string>;

// --- figure 3 of the paper -----------------------------------------------------------------------

// a1 and a2 happen before b2, b1 before c1 and c2, b2 before c2, and a3 before none of B.
void run_figure3(Scene& scene) {
  const auto at = [](int64_t time) { return Exports{{"time", time}}; };
  scene.begin(1);
  scene.branch(1, 2);
  scene.hit(1, "A", at(1));  // a1
  scene.branch(1, 3);
  scene.hit(2, "B", at(11));  // b1
  scene.put(2, 5);
  scene.hit(2, "C", at(21));  // c1
  scene.hit(2, "A", at(3));   // a3
  scene.hit(3, "A", at(2));   // a2
  scene.put(3, 6);
  scene.join(1, 6);
  scene.hit(1, "B", at(12));  // b2
  scene.join(1, 5);
  scene.hit(1, "C", at(22));  // c2
}

TEST(PivotFigure3, A) {
  Scene scene("from a in A left join c in C on c -> a select a.time");
  run_figure3(scene);
  EXPECT_EQ(scene.lines(), (Strings{"1", "2", "3"}));
}

TEST(PivotFigure3, AJoinedB) {
  Scene scene("from b in B join a in A on a -> b select a.time, b.time");
  run_figure3(scene);
  EXPECT_EQ(scene.lines(), (Strings{"1 12", "2 12"}));
}

TEST(PivotFigure3, BJoinedC) {
  Scene scene("from c in C join b in B on b -> c select b.time, c.time");
  run_figure3(scene);
  EXPECT_EQ(scene.lines(), (Strings{"11 21", "11 22", "12 22"}));
}

TEST(PivotFigure3, AJoinedBJoinedC) {
  Scene scene(
      "from c in C join b in B on b -> c join a in A on a -> b select a.time, b.time, "
      "c.time");
  run_figure3(scene);
  EXPECT_EQ(scene.lines(), (Strings{"1 12 22", "2 12 22"}));
}

// --- the queries of the paper --------------------------------------------------------------------

std::string golden(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(kGoldens / (name + ".clew"), std::ios::binary).rdbuf();
  return text.str();
}

TEST(PivotQueries, Q2SumsByTheFirstClient) {
  Scene scene(golden("pivot_q2"));
  const auto protocol = [](const char* name) { return Exports{{"procName", std::string(name)}}; };
  const auto read = [](int64_t bytes) { return Exports{{"arg1", bytes}}; };
  scene.begin(1);
  scene.hit(1, "ClientService", protocol("hbase"));
  scene.branch(1, 2);
  scene.hit(2, "DataTransferProtocol", protocol("hdfs"));  // The second one does not count.
  scene.hit(2, "DataNodeMetrics.incrBytesRead", read(100));
  scene.hit(2, "DataNodeMetrics.incrBytesRead", read(30));
  scene.begin(3);
  scene.hit(3, "DataTransferProtocol", protocol("hdfs"));
  scene.hit(3, "DataNodeMetrics.incrBytesRead", read(7));
  scene.hit(4, "DataNodeMetrics.incrBytesRead", read(1000));  // Of no request.
  EXPECT_EQ(scene.lines(), (Strings{"hbase 130", "hdfs 7"}));
  EXPECT_EQ(scene.counts().graph.orphans, 1);
}

// Two clients of hosts A and B ask the name node, then read from data nodes.
void run_reads(Scene& scene) {
  const auto client = [&](int64_t tid, const char* host) {
    scene.begin(tid);
    scene.hit(tid, "StressTest.DoNextOp", {{"host", std::string(host)}});
    scene.branch(tid, tid + 10);  // The name node answers,
    scene.hit(tid + 10, "NN.GetBlockLocations", {{"arg1", tid}, {"arg2", tid + 100}});
    scene.put(tid + 10, tid);
    scene.join(tid, tid);  // and its answer comes back.
  };
  const auto data_node = [&](int64_t tid, const char* host) {
    scene.hit(tid, "DN.DataTransferProtocol", {{"host", std::string(host)}});
  };
  client(1, "A");
  data_node(1, "C");
  data_node(1, "A");
  client(2, "B");
  data_node(2, "C");
  data_node(2, "C");
  data_node(3, "C");  // Of no request.
}

Strings answer_of(const std::string& name) {
  Scene scene(golden(name));
  run_reads(scene);
  return scene.lines();
}

TEST(PivotQueries, Q4CountsByClientAndFile) {
  EXPECT_EQ(answer_of("pivot_q4"), (Strings{"A A.txt 1", "B B.txt 1"}));
}

TEST(PivotQueries, Q5CountsByClientAndReplicas) {
  EXPECT_EQ(answer_of("pivot_q5"), (Strings{"A 101 1", "B 102 1"}));
}

TEST(PivotQueries, Q6CountsByClientAndDataNode) {
  EXPECT_EQ(answer_of("pivot_q6"), (Strings{"A A 1", "A C 1", "B C 2"}));
}

// Reads that were not local, by what the name node had said.
TEST(PivotQueries, Q7JoinsTwiceAndFilters) {
  EXPECT_EQ(answer_of("pivot_q7"), (Strings{"C 101 1", "C 102 2"}));
}

void serve(Scene& scene, int64_t tid, int64_t begin, int64_t end) {
  scene.hit(tid, "ReceiveRequest", {{"time", begin}});
  scene.hit(tid, "SendResponse", {{"time", end}});
}

TEST(PivotQueries, Q8TakesTheMostRecentRequest) {
  Scene scene(golden("pivot_q8"));
  scene.begin(1);
  serve(scene, 1, 100, 140);
  serve(scene, 1, 200, 207);
  scene.hit(2, "SendResponse", {{"time", int64_t{300}}});  // Without a request.
  EXPECT_EQ(scene.lines(), (Strings{"40", "7"}));
}

TEST(PivotQueries, Q9AveragesAnotherQueryByJob) {
  Scene scene(golden("pivot_q9"));
  for (const int64_t job : {1, 2}) {
    scene.begin(job);
    serve(scene, job, 0, 10 * job);
    scene.branch(job, job + 5);
    serve(scene, job + 5, 0, 30 * job);
    scene.put(job + 5, job);
    scene.join(job, job);
    scene.hit(job, "JobComplete", {{"arg0", job}});
  }
  EXPECT_EQ(scene.lines(), (Strings{"1 20", "2 40"}));
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

// SPDX-License-Identifier: Apache-2.0
// Requests that are written down here, and the pictures that were worked out by hand.
#include "session/request_recorder.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "answer/joins.h"
#include "query/parse.h"

namespace clew::session {
namespace {

using aggregate::Value;
using causal::Thread;
using output::GraphChoice;
using output::RequestGraph;
using query::Act;
using query::Field;
using Strings = std::vector<std::string>;

// Functions of every process that hand requests on.
query::Carrier carrier(const std::string& function, Act act) {
  query::Carrier made;
  made.cause.act = act;
  made.cause.how = act == Act::Fork ? causal::EdgeClass::Sound : causal::EdgeClass::Recipe;
  made.source.module = "app";
  made.source.function = function;
  made.source.label = "app." + function;
  if (act == Act::Begin || act == Act::End) return made;
  query::Expression key;
  key.kind = query::ExpressionKind::Field;
  key.field = Field::Argument;
  made.keys.push_back(key);
  if (act != Act::Fork) return made;
  key.index = 1;  // Whether it is a thread.
  made.keys.push_back(std::move(key));
  return made;
}

constexpr const char* kQuery =
    "from b in entry(\"app!b\") join a in First(entry(\"app!a\")) on a -> b "
    "select a.arg1 as first, b.arg1 as last, b.time as time";

class Scene {
 public:
  explicit Scene(GraphChoice choice = GraphChoice::Slowest, RecorderLimits limits = {},
                 const std::string& text = kQuery) {
    const query::Text query_text{.name = "query", .text = text};
    auto query = query::parse(query_text, {});
    EXPECT_TRUE(query.has_value()) << query.error().message;
    auto joined = plan::separate(
        *query,
        {carrier("begin", Act::Begin), carrier("end", Act::End), carrier("put", Act::Put),
         carrier("take", Act::Take), carrier("join", Act::Join), carrier("fork", Act::Fork),
         carrier("spawn", Act::Fork)},
        query::Reporter(query_text), RequestRecorder::fields());
    EXPECT_TRUE(joined.has_value()) << joined.error().message;
    joined_ = std::move(*joined);
    recorder_ = std::make_unique<RequestRecorder>(joined_, choice, limits);
    joins_ =
        std::make_unique<answer::Joins>(joined_, nullptr, answer::JoinLimits{}, recorder_.get());
  }

  // At this time, in this thread of process 1.
  void act(int64_t time, int64_t tid, const std::string& function, int64_t key = 0) {
    act_in(time, {1, tid}, function, key);
  }
  void act_in(int64_t time, Thread thread, const std::string& function, int64_t value = 0) {
    const size_t source = source_of(function);
    answer::RowBatch events(joined_.events.values.size());
    const std::span<Value> row = events.add();
    std::fill(row.begin(), row.end(), Value{});
    row[plan::Joined::kSource] = static_cast<int64_t>(source);
    row[plan::Joined::kPid] = thread.pid;
    row[plan::Joined::kTid] = thread.tid;
    row[*plan::column_of(joined_, Field::Time)] = time;
    row[*plan::column_of(joined_, Field::ProcName)] = fmt::format("app{}", thread.pid);
    row[*plan::column_of(joined_, Field::Comm)] = fmt::format("t{}", thread.tid);
    row[*plan::column_of(joined_, Field::Function)] = function;
    for (const plan::JoinRole& role : joined_.roles[source]) {
      if (role.carrier && !role.key_columns.empty()) row[role.key_columns[0]] = value;
      if (role.carrier && role.key_columns.size() > 1)
        row[role.key_columns[1]] = static_cast<int64_t>(function == "spawn");
      if (role.carrier) continue;
      const plan::JoinStage::Stream& stream = joined_.stages[role.stage].streams[role.stream];
      for (size_t i = 0; i < stream.columns.size(); ++i) {
        const std::string& name = joined_.stages[role.stage].rest.inputs[stream.begin + i].name;
        if (name.ends_with(".arg1")) row[stream.columns[i]] = value;
      }
    }
    EXPECT_EQ(joins_->take(events, {.begin = 0, .end = 1}, rows_), 1);
  }
  void lose() {
    answer::RowBatch rows(joined_.events.values.size());
    (void)rows.add();
    joins_->skip(rows);
  }
  // A request of one thread, with a row.
  void serve(int64_t begin, int64_t end, int64_t tid = 1) {
    act(begin, tid, "begin");
    act(begin, tid, "a");
    act(end, tid, "b");
    act(end, tid, "end");
  }
  RequestGraph finish() { return recorder_->finish(1'000'000); }
  [[nodiscard]] causal::GraphCounts counts() const { return joins_->counts().graph; }

 private:
  [[nodiscard]] size_t source_of(const std::string& function) const {
    for (size_t i = 0; i < joined_.events.sources.size(); ++i) {
      if (joined_.events.sources[i].function == function) return i;
    }
    ADD_FAILURE() << "no source " << function;
    return 0;
  }

  plan::Joined joined_;
  std::unique_ptr<RequestRecorder> recorder_;
  std::unique_ptr<answer::Joins> joins_;
  answer::RowBatch rows_{3};
};

Strings events_of(const RequestGraph& graph) {
  Strings all;
  for (const output::GraphEvent& event : graph.events) {
    std::string text = fmt::format("{}@{} in {}", event.function, event.ns, event.segment);
    for (const output::GraphValue& each : event.values)
      text += fmt::format(" {}={}", each.column.name, std::get<int64_t>(each.value));
    all.push_back(text + (event.rows == 0 ? "" : fmt::format(" gives {}", event.rows)));
  }
  return all;
}

Strings edges_of(const RequestGraph& graph) {
  Strings all;
  for (const output::GraphEdge& edge : graph.edges) {
    all.push_back(fmt::format("{}@{} -> {}@{} {} {} {}", edge.from, edge.from_ns, edge.to,
                              edge.to_ns, edge.how, edge.put, edge.take));
  }
  return all;
}

Strings lanes_of(const RequestGraph& graph) {
  Strings all;
  for (const output::GraphLane& lane : graph.lanes)
    all.push_back(fmt::format("{} {} {} {}", lane.pid, lane.tid, lane.process, lane.thread));
  return all;
}

TEST(RequestRecorder, DrawsWhatWasHandedOverAndWhatCameOfIt) {
  Scene scene;
  scene.act(100, 1, "begin");
  scene.act(110, 1, "a", 5);
  scene.act(120, 1, "put", 77);
  scene.act(125, 1, "a", 6);
  scene.act(130, 1, "end");
  scene.act(150, 2, "take", 77);
  scene.act(170, 2, "b", 9);
  scene.act(180, 2, "end");
  const RequestGraph graph = scene.finish();
  EXPECT_EQ(graph.number, 1);
  EXPECT_EQ(graph.begin_ns, 1'000'100);
  EXPECT_EQ(graph.duration_ns, 70);
  EXPECT_EQ(graph.begun_by, "app.begin");
  EXPECT_EQ(graph.rows, 1);
  EXPECT_TRUE(graph.is_over);
  EXPECT_EQ(lanes_of(graph), (Strings{"1 1 app1 t1", "1 2 app1 t2"}));
  EXPECT_EQ(events_of(graph),
            (Strings{"a@10 in 0 first=5", "a@25 in 0 first=6", "b@70 in 1 last=9 gives 1"}));
  EXPECT_EQ(edges_of(graph), (Strings{"0@20 -> 1@50 recipe app.put app.take"}));
  ASSERT_EQ(graph.segments.size(), 2);
  EXPECT_EQ(graph.segments[0].end_ns, 25);
  EXPECT_EQ(graph.segments[0].left_ns, 30);
  EXPECT_EQ(graph.segments[1].begin_ns, 50);
  EXPECT_EQ(graph.not_taken, 0);
}

TEST(RequestRecorder, DrawsAThreadThatGoesOnBehindBoth) {
  Scene scene;
  scene.act(0, 1, "begin");
  scene.act(1, 1, "a", 1);
  scene.act(2, 1, "put", 7);
  scene.act(3, 2, "take", 7);
  scene.act(4, 2, "put", 8);
  scene.act(5, 2, "end");
  scene.act(6, 1, "join", 8);
  scene.act(7, 1, "b", 2);
  scene.act(8, 1, "end");
  EXPECT_EQ(edges_of(scene.finish()),
            (Strings{"0@2 -> 1@3 recipe app.put app.take", "0@6 -> 2@6   ",
                     "1@4 -> 2@6 recipe app.put app.join"}));
}

TEST(RequestRecorder, DrawsAChildWhereItIs) {
  Scene scene;
  scene.act(0, 1, "begin");
  scene.act(1, 1, "a");
  scene.act(2, 1, "fork", 30);
  scene.act(3, 1, "spawn", 31);
  scene.act_in(5, {30, 30}, "b");
  scene.act_in(6, {1, 31}, "b");
  scene.act(7, 1, "end");
  scene.act_in(8, {30, 30}, "end");
  scene.act_in(9, {1, 31}, "end");
  const RequestGraph graph = scene.finish();
  EXPECT_EQ(lanes_of(graph), (Strings{"1 1 app1 t1", "1 31 app1 t31", "30 30 app30 t30"}));
  EXPECT_EQ(edges_of(graph),
            (Strings{"0@2 -> 1@2 sound  app.fork", "0@3 -> 2@3 sound  app.spawn"}));
  EXPECT_TRUE(graph.is_over);
}

TEST(RequestRecorder, TakesTheSlowestThatGaveARow) {
  Scene scene;
  scene.serve(0, 10);
  scene.serve(100, 150);
  scene.serve(200, 250);  // As slow.
  scene.act(300, 1, "begin");
  scene.act(900, 1, "a");  // Slower, and no row.
  scene.act(901, 1, "end");
  scene.serve(1000, 1020);
  const RequestGraph graph = scene.finish();
  EXPECT_EQ(graph.number, 2);
  EXPECT_EQ(graph.requests, 5);
  EXPECT_EQ(graph.with_rows, 4);
  EXPECT_EQ(graph.over, 4);
  EXPECT_EQ(describe(graph),
            "request 2, 50 ns: the slowest of 4 that gave the answer a row and were over, of 5 "
            "requests");
}

TEST(RequestRecorder, TakesTheFirstOrTheLastToBegin) {
  for (const auto& [choice, number] :
       {std::pair{GraphChoice::First, 1U}, std::pair{GraphChoice::Last, 3U}}) {
    Scene scene(choice);
    scene.act(0, 9, "begin");  // Is over behind the others.
    scene.serve(1, 3);
    scene.serve(5, 9);
    scene.act(10, 9, "a");
    scene.act(11, 9, "b");
    scene.act(12, 9, "end");
    EXPECT_EQ(scene.finish().number, number);
  }
}

TEST(RequestRecorder, TakesOneThatIsNotOverWhereNoOtherIs) {
  Scene scene;
  scene.act(0, 1, "begin");
  scene.act(1, 1, "a");
  scene.act(50, 1, "b");
  EXPECT_FALSE(Scene().finish().is_over);
  const RequestGraph open = scene.finish();
  EXPECT_EQ(open.number, 1);
  EXPECT_FALSE(open.is_over);
  Scene both;
  both.act(0, 1, "begin");
  both.act(1, 1, "a");
  both.act(50, 1, "b");
  both.serve(60, 61, 2);
  EXPECT_EQ(both.finish().number, 2);
}

// What was put and nobody took keeps a request, but no thread is in it.
TEST(RequestRecorder, CountsHandOversThatNobodyTook) {
  Scene scene;
  scene.act(0, 1, "begin");
  scene.act(1, 1, "a");
  scene.act(2, 1, "put", 7);
  scene.act(3, 1, "put", 7);
  scene.act(4, 1, "put", 8);
  scene.act(5, 1, "b");
  scene.act(6, 1, "end");
  const RequestGraph graph = scene.finish();
  EXPECT_TRUE(graph.is_over);
  EXPECT_EQ(graph.not_taken, 3);
}

TEST(RequestRecorder, HasNoneWhereNoneGaveARow) {
  Scene scene;
  scene.act(0, 1, "begin");
  scene.act(1, 1, "b");
  scene.act(2, 1, "end");
  const RequestGraph graph = scene.finish();
  EXPECT_EQ(graph.number, 0);
  EXPECT_TRUE(graph.lanes.empty());
  EXPECT_EQ(describe(graph), "none of 1 request gave the answer a row");
}

TEST(RequestRecorder, GivesUpWhatIsBesideALoss) {
  Scene scene;
  scene.act(0, 1, "begin");
  scene.act(1, 1, "a");
  scene.act(2, 1, "b");
  scene.lose();
  scene.act(3, 1, "end");
  const RequestGraph graph = scene.finish();
  EXPECT_EQ(graph.number, 0);
  EXPECT_EQ(graph.requests_left_out, 1);
}

TEST(RequestRecorder, CountsWhatIsTooMuchOfARequest) {
  Scene scene(GraphChoice::Slowest, {.events = 3, .segments = 2});
  scene.act(0, 1, "begin");
  scene.act(1, 1, "a");
  scene.act(2, 1, "put", 7);
  scene.act(3, 1, "put", 8);
  scene.act(4, 2, "take", 7);
  scene.act(5, 2, "b");
  scene.act(6, 3, "take", 8);  // The third segment.
  scene.act(7, 3, "b");
  scene.act(8, 2, "b");
  scene.act(9, 2, "b");
  for (const int64_t tid : {1, 2, 3})
    scene.act(10, tid, "end");
  const RequestGraph graph = scene.finish();
  EXPECT_EQ(graph.segments.size(), 2);
  EXPECT_EQ(graph.segments_left_out, 1);
  EXPECT_EQ(events_of(graph),
            (Strings{"a@1 in 0 first=0", "b@5 in 1 last=0 gives 1", "b@8 in 1 last=0 gives 1"}));
  EXPECT_EQ(graph.events_left_out, 2);
  EXPECT_EQ(graph.rows, 4);
  EXPECT_EQ(graph.duration_ns, 9);
  EXPECT_TRUE(graph.is_over);
}

// The oldest is decided about as it is: where threads are in it, it is no answer.
TEST(RequestRecorder, KeepsSoMuchOfAllRequests) {
  Scene scene(GraphChoice::Slowest, {.items = 60});
  scene.act(0, 1, "begin");
  scene.act(1, 1, "a");
  scene.act(900, 1, "put", 7);
  scene.act(901, 1, "b");
  scene.act(902, 1, "end");  // 7 keeps it.
  scene.act(1000, 2, "begin");
  scene.act(1001, 2, "a");
  for (int64_t i = 0; i < 20; ++i)
    scene.serve(2000 + 10 * i, 2001 + 10 * i, 5);
  const RequestGraph graph = scene.finish();
  EXPECT_EQ(graph.number, 1);
  EXPECT_TRUE(graph.is_over);
  EXPECT_EQ(graph.requests_left_out, 0);
  Scene inside(GraphChoice::Slowest, {.items = 60});
  inside.act(0, 1, "begin");
  inside.act(1, 1, "a");
  inside.act(900, 1, "b");
  for (int64_t tid = 2; tid < 10; ++tid) {
    inside.act(1000, tid, "begin");
    inside.act(1001, tid, "a");
    inside.act(1002, tid, "b");
  }
  inside.serve(2000, 2003, 20);
  const RequestGraph other = inside.finish();
  EXPECT_EQ(other.number, 10);
  EXPECT_GT(other.requests_left_out, 0);
}

// One hit that is of two streams is one event, with the values of both.
TEST(RequestRecorder, DrawsOneHitOnce) {
  Scene scene(GraphChoice::Slowest, {},
              "from b in entry(\"app!a\") join a in MostRecent(entry(\"app!a\")) on a -> b "
              "select a.arg1 as first, b.arg1 + b.arg2 as last, b.time as time");
  scene.act(0, 1, "begin");
  scene.act(1, 1, "a", 3);
  scene.act(2, 1, "a", 4);
  scene.act(3, 1, "end");
  const RequestGraph graph = scene.finish();
  EXPECT_EQ(events_of(graph), (Strings{"a@1 in 0 first=3", "a@2 in 0 first=4 gives 1"}));
}

}  // namespace
}  // namespace clew::session

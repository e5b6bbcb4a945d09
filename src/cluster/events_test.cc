// SPDX-License-Identifier: Apache-2.0
// Single events and joins between machines, on a bus without faults and on one with all of them:
// what whoever asks gets is compared with all events of all nodes, and their plain join.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregate/table.h"
#include "answer/event_table.h"
#include "answer/row_batch.h"
#include "cluster/answered_rows.h"
#include "cluster/bus_local.h"
#include "cluster/world_by_seed.h"
#include "cluster/world_testing.h"
#include "plan/joined.h"
#include "plan/spread.h"
#include "query/parse.h"

namespace clew::cluster {
namespace {

using aggregate::Row;
using aggregate::Value;
using query::Expression;
using query::Field;
using testing::HasSubstr;

constexpr int64_t kTurn = kSecond / 20;
constexpr int64_t kWidth = kSecond / 2;
constexpr int64_t kWithin = 700'000'000;

constexpr const char* kEventsText =
    "from e in cluster.Function(\"m!f\"), cluster.Function(\"m!g\") select e.host, e.tid, e.time";
constexpr const char* kJoinText =
    "from a in cluster.Function(\"m!f\") join b in cluster.Function(\"m!g\") on b.tid equals a.tid "
    "within 700ms select a.host, b.host as other, a.tid, a.time, b.time as when";
constexpr const char* kCountText =
    "from a in cluster.Function(\"m!f\") join b in cluster.Function(\"m!g\") on b.tid equals a.tid "
    "within 700ms groupby a.host select a.host, count() as n";

query::Query parsed(const std::string& text) {
  return query::parse_any({.name = "query", .text = text}, {}).value();
}

struct TestEvent {
  std::string host;
  uint64_t source = 0;  // f or g.
  int64_t tid = 0;
  int64_t time = 0;  // Of the time of day; no two have the same.
  auto operator<=>(const TestEvent&) const = default;
};
using Events = std::vector<TestEvent>;

Row row_of(const TestEvent& event) {
  return {event.host, event.tid, event.time};
}

// What a node sends of a query: as a session's tracer would have it.
class Sent {
 public:
  explicit Sent(const std::string& text) : query_(parsed(text)) {
    if (plan::joins_between_hosts(query_)) {
      const query::Text of{.name = "query", .text = text};
      query_ = plan::separate(query_, {}, query::Reporter(of)).value().events;
      layout_.time = plan::Joined::kTime;
    } else {
      layout_.time = 2;
    }
    layout_.width = query_.values.size();
    table_.emplace(query_, layout_, 0);
  }
  void add(const TestEvent& event) {
    answer::RowBatch rows(layout_.width);
    const std::span<Value> row = rows.add();
    for (size_t i = 0; i < row.size(); ++i)
      row[i] = value_of(query_.values[i].expression, event);
    table_->add(rows);
  }
  aggregate::Table take() { return table_->take(); }

 private:
  [[nodiscard]] Value value_of(const Expression& expression, const TestEvent& event) const {
    const Expression meaning = query::bind(expression, query_.sources[event.source]);
    if (meaning.kind == query::ExpressionKind::Integer) return meaning.integer;
    EXPECT_EQ(meaning.kind, query::ExpressionKind::Field);
    if (meaning.field == Field::Host) return event.host;
    if (meaning.field == Field::Time) return event.time;
    return meaning.field == Field::Tid ? event.tid : int64_t{7};
  }

  query::Query query_;
  answer::EventLayout layout_;
  std::optional<answer::EventTable> table_;
};

// A few events in each pane, of threads whose numbers all nodes have.
class EventSession final : public NodeSession {
 public:
  EventSession(std::string node, const SessionWant& want, const Clock& clock, Events& truth)
      : node_(std::move(node)),
        want_(want),
        clock_(clock),
        truth_(truth),
        sent_(want.text),
        pane_(pane_now()) {
    said_.push_back({.kind = FrameKind::Armed, .text = want.text});
  }

  [[nodiscard]] int descriptor() const override { return -1; }
  std::vector<Frame> take() override {
    for (const Pane now = pane_now(); pane_ < now; ++pane_)
      give();
    return std::exchange(said_, {});
  }
  void stop() override {
    for (const Pane now = pane_now(); pane_ <= now; ++pane_)
      give();
    said_.push_back({.kind = FrameKind::Ended});
  }

 private:
  [[nodiscard]] stream::Panes panes() const {
    return {.epoch_ns = want_.epoch_ns, .width_ns = want_.width_ns};
  }
  [[nodiscard]] Pane pane_now() const {
    return panes().number_of(clock_.monotonic_ns() + want_.offset_ns);
  }
  void give() {
    std::mt19937_64 random(static_cast<uint64_t>(pane_) * 31 + static_cast<uint8_t>(node_[0]));
    const uint64_t count = random() % 5;
    for (uint64_t i = 0; i < count; ++i) {
      const auto within = static_cast<int64_t>(random() % 400'000'000 / 1'000 * 1'000);
      const TestEvent event{.host = node_,
                            .source = random() % 2,
                            .tid = static_cast<int64_t>(random() % 3),
                            .time = panes().begin(pane_) + within + node_[0]};
      truth_.push_back(event);
      sent_.add(event);
    }
    said_.push_back({.kind = FrameKind::Pane, .pane = pane_, .bytes = to_bytes(sent_.take())});
  }

  std::string node_;
  SessionWant want_;
  const Clock& clock_;
  Events& truth_;
  Sent sent_;
  Pane pane_;
  std::vector<Frame> said_;
};

class EventSessions final : public NodeSessions {
 public:
  EventSessions(std::string node, const Clock& clock, Events& truth)
      : node_(std::move(node)), clock_(clock), truth_(truth) {}
  Expected<std::unique_ptr<NodeSession>> begin(const SessionWant& want) override {
    return std::make_unique<EventSession>(node_, want, clock_, truth_);
  }

 private:
  std::string node_;
  const Clock& clock_;
  Events& truth_;
};

struct EventNode {
  EventNode(std::unique_ptr<Bus> end, const std::string& name, const Clock& clock, Events& truth,
            uint64_t incarnation)
      : bus(std::move(end)),
        sessions(name, clock, truth),
        node(*bus, sessions, clock,
             {.name = name, .incarnation = {.boot_id = {}, .start_ns = incarnation}}) {}
  std::unique_ptr<Bus> bus;
  EventSessions sessions;
  Node node;
};

class KeptRows final : public output::RowSink {
 public:
  void begin(std::span<const aggregate::Column>, output::RowMode said) override { mode = said; }
  void row(std::span<const Value> row) override { rows.emplace_back(row.begin(), row.end()); }
  void end_interval(const output::Interval&) override {}
  void finish(const collect::Losses&) override {}
  output::RowMode mode = output::RowMode::Table;
  std::vector<Row> rows;
};

// Who asks, and makes rows of it as `clew run` does.
struct EventAsker {
  EventAsker(std::unique_ptr<Bus> end, const Clock& clock, const std::string& said, Gives gives)
      : bus(std::move(end)),
        text(said),
        rows(AnsweredRows::of(said, sink).value()),
        asker(*bus, clock, "default",
              Ask{.query = "q1", .asker = "a1", .text = said, .width_ns = kWidth, .gives = gives}) {
    sink.begin(rows->columns(), rows->mode());
  }

  void take() {
    const stream::Panes panes{.epoch_ns = 0, .width_ns = kWidth};
    for (const AnsweredPane& pane : asker.take()) {
      EXPECT_TRUE(came.insert(pane.pane).second) << "each pane comes once";
      for (const auto& [key, cells] : pane.table.cells())
        came_in.emplace(std::get<int64_t>(key[0]), pane.pane);
      EXPECT_TRUE(rows->take(
          pane.table,
          {.number = 1, .begin_ns = panes.begin(pane.pane), .end_ns = panes.end(pane.pane)}));
    }
  }

  std::unique_ptr<Bus> bus;
  std::string text;
  KeptRows sink;
  std::unique_ptr<AnsweredRows> rows;
  Asker asker;
  std::set<Pane> came;
  std::map<int64_t, Pane> came_in;  // By the time of an event.
};

// Each f with each g that is near it and has its thread.
std::vector<std::pair<TestEvent, TestEvent>> joined(const Events& events) {
  std::vector<std::pair<TestEvent, TestEvent>> pairs;
  for (const TestEvent& a : events) {
    for (const TestEvent& b : events) {
      const bool are_near = std::abs(a.time - b.time) <= kWithin;
      if (a.source == 0 && b.source == 1 && a.tid == b.tid && are_near) pairs.emplace_back(a, b);
    }
  }
  return pairs;
}

Row row_of(const std::pair<TestEvent, TestEvent>& pair) {
  const auto& [a, b] = pair;
  return {a.host, b.host, a.tid, a.time, b.time};
}

// What is written as text is the same whatever alternative a number has.
std::string text_of(const Row& row) {
  std::string text;
  for (const Value& value : row) {
    if (const auto* const word = std::get_if<std::string>(&value)) text += *word;
    if (const auto* const number = std::get_if<int64_t>(&value)) text += std::to_string(*number);
    if (const auto* const whole = std::get_if<uint64_t>(&value)) text += std::to_string(*whole);
    text += ' ';
  }
  return text;
}

// --- without faults ------------------------------------------------------------------------------

class ClusterEvents : public testing::Test {
 protected:
  void begin(const std::string& text, Gives gives) {
    root_ = std::make_unique<TestRoot>(hub_.connect(), "r1", clock_);
    ASSERT_TRUE(root_->root.begin());
    for (const char* name : {"a", "b", "c"}) {
      nodes_[name] = std::make_unique<EventNode>(hub_.connect(), name, clock_, truth_, 1);
      ASSERT_TRUE(nodes_[name]->node.begin());
    }
    asker_ = std::make_unique<EventAsker>(hub_.connect(), clock_, text, gives);
    ASSERT_TRUE(asker_->asker.begin());
  }
  void run(int64_t duration) {
    for (const int64_t end = clock_.now + duration; clock_.now < end; step()) {
    }
  }
  void finish() {
    asker_->asker.end();
    for (int i = 0; i < 1'200 && !asker_->asker.is_done(); ++i)
      step();
    ASSERT_TRUE(asker_->asker.is_done());
    asker_->rows->finish(losses_);
  }
  void step() {
    clock_.now += kTurn;
    root_->root.turn();
    for (auto& [name, each] : nodes_)
      each->node.turn();
    asker_->asker.turn();
    asker_->take();
  }
  void expect_rows(std::vector<Row> wanted) {
    std::vector<std::string> given;
    std::vector<std::string> texts;
    for (const Row& row : asker_->sink.rows)
      given.push_back(text_of(row));
    for (const Row& row : wanted)
      texts.push_back(text_of(row));
    EXPECT_THAT(given, testing::UnorderedElementsAreArray(texts));
    EXPECT_FALSE(texts.empty());
    EXPECT_EQ(losses_, collect::Losses{});
  }

  LocalHub hub_;
  TestClock clock_;
  Events truth_;
  std::unique_ptr<TestRoot> root_;
  std::map<std::string, std::unique_ptr<EventNode>> nodes_;
  std::unique_ptr<EventAsker> asker_;
  collect::Losses losses_;
};

TEST_F(ClusterEvents, AreRowsInTheOrderOfTheirTimes) {
  begin(kEventsText, Gives::Events);
  run(6 * kSecond);
  EXPECT_EQ(asker_->sink.mode, output::RowMode::Stream);
  EXPECT_GT(asker_->sink.rows.size(), 30U) << "while it runs";
  finish();
  std::vector<Row> wanted;
  wanted.reserve(truth_.size());
  for (const TestEvent& event : truth_)
    wanted.push_back(row_of(event));
  expect_rows(wanted);
  EXPECT_TRUE(std::is_sorted(
      asker_->sink.rows.begin(), asker_->sink.rows.end(),
      [](const Row& a, const Row& b) { return aggregate::compare(a[2], b[2]) < 0; }));
}

// What whoever asks takes for groups becomes rows as soon as nodes say what it is.
TEST_F(ClusterEvents, AreRowsThoughGroupsWereExpected) {
  for (const Gives gives : {Gives::AtEnd, Gives::Panes}) {
    nodes_.clear();
    truth_.clear();
    begin(kEventsText, gives);
    run(6 * kSecond);
    EXPECT_GT(asker_->sink.rows.size(), 30U) << "while it runs";
    finish();
    std::vector<Row> wanted;
    for (const TestEvent& event : truth_)
      wanted.push_back(row_of(event));
    expect_rows(wanted);
    EXPECT_EQ(root_->root.metrics().find("clew_q1"), std::string::npos);
    run(20 * kSecond);
  }
}

TEST_F(ClusterEvents, AreJoinedBetweenNodes) {
  begin(kJoinText, Gives::Events);
  run(6 * kSecond);
  EXPECT_GT(asker_->sink.rows.size(), 10U) << "while it runs";
  finish();
  std::vector<Row> wanted;
  for (const auto& pair : joined(truth_))
    wanted.push_back(row_of(pair));
  expect_rows(wanted);
}

TEST_F(ClusterEvents, AreCountedWhereTheyAreJoined) {
  begin(kCountText, Gives::AtEnd);
  run(6 * kSecond);
  finish();
  std::map<std::string, int64_t> counts;
  for (const auto& [a, b] : joined(truth_))
    ++counts[a.host];
  std::vector<Row> wanted;
  for (const auto& [host, count] : counts)
    wanted.push_back({host, count});
  expect_rows(wanted);
}

// The root has room for so much in a pane; what it leaves out is named.
TEST_F(ClusterEvents, AreLeftOutByNodeWhereThereAreTooMany) {
  Merge merge(Gives::Events);
  aggregate::TableSchema schema{.keys = {{.name = "text"}}, .aggregates = {}};
  for (const std::string node : {"a", "b", "c"}) {
    aggregate::Table table(schema);
    table.add({std::string(Merge::kEventBytesMax / 5 * 2, node[0])}, {});
    auto chunks = split(to_bytes(table)).value();
    for (Chunk& chunk : chunks)
      ASSERT_TRUE(merge.add({.query = "q", .node = node, .pane = 7, .table = chunk}, 1));
  }
  EXPECT_EQ(merge.take_left_out(),
            (std::vector<NodeGap>{{.node = "c", .panes = {.first = 7, .last = 7}}}));
  const std::vector<PaneTable> due = merge.take_due(7);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].table->size(), 2U);
  EXPECT_TRUE(merge.take_left_out().empty());
}

// Whatever a node says: its table is refused, or is joined, and is no more than rows.
TEST(ClusterEventsOfAnybody, AreRefusedOrJoined) {
  const query::Text text{.name = "query", .text = kJoinText};
  const plan::Joined made = plan::separate(parsed(kJoinText), {}, query::Reporter(text)).value();
  std::mt19937_64 random(1);
  const auto any_number = [&random]() -> uint64_t {
    constexpr uint64_t kEdges[] = {0,           1, 2, uint64_t{1} << 63, (uint64_t{1} << 63) - 1,
                                   ~uint64_t{0}};
    return random() % 2 == 0 ? kEdges[random() % std::size(kEdges)] : random() % 4;
  };
  const auto any_value = [&](const query::Type& type, bool is_any) -> Value {
    const uint64_t kind = is_any ? random() % 6 : type.kind == query::TypeKind::String ? 4 : 0;
    if (kind == 0) return static_cast<int64_t>(any_number());
    if (kind == 1) return any_number();
    if (kind == 2) return std::bit_cast<double>(random());
    if (kind == 3) return Value{};
    return kind == 4 ? Value(std::string(any_number() % 50, 'x')) : Value(aggregate::Stack{});
  };
  size_t refused = 0;
  size_t rows = 0;
  for (int round = 0; round < 300; ++round) {
    answer::EventTable events(made.events, {.width = made.events.values.size(), .time = {}}, 0);
    for (int i = 0; i < 20; ++i) {
      answer::RowBatch batch(made.events.values.size());
      const std::span<Value> row = batch.add();
      const bool is_any = round % 3 == 0 && random() % 8 == 0;
      for (size_t c = 0; c < row.size(); ++c)
        row[c] = any_value(made.events.values[c].expression.type, is_any);
      events.add(batch);
    }
    KeptRows sink;
    const auto answered = AnsweredRows::of(kJoinText, sink).value();
    const auto taken =
        answered->take(events.take(), {.number = 1,
                                       .begin_ns = static_cast<int64_t>(any_number()),
                                       .end_ns = static_cast<int64_t>(any_number())});
    refused += taken ? 0 : 1;
    collect::Losses losses;
    answered->finish(losses);
    rows += sink.rows.size();
  }
  EXPECT_GT(refused, 50U);
  EXPECT_LT(refused, 120U);
  EXPECT_GT(rows, 100U);
}

TEST(ClusterSpread, JoinsRunWhereTheirEventsAre) {
  const auto text = [](const std::string& keys) {
    return "from a in cluster.Function(\"m!f\") join b in cluster.Function(\"m!g\") on " + keys +
           " within 1s groupby a.tid select a.tid, count()";
  };
  const query::Query here = parsed(text("b.host equals a.host and b.tid equals a.tid"));
  EXPECT_TRUE(plan::joins_within_hosts(here));
  EXPECT_FALSE(plan::sends_events(here));
  const query::Query between = parsed(text("b.tid equals a.tid"));
  EXPECT_TRUE(plan::joins_between_hosts(between));
  EXPECT_TRUE(plan::sends_events(between));
  EXPECT_FALSE(plan::sends_events(
      parsed("from e in cluster.Function(\"m!f\") groupby e.host select e.host, count()")));
}

// --- with faults ---------------------------------------------------------------------------------

class FaultyEvents : public WorldBySeed<EventNode, EventAsker> {
 public:
  explicit FaultyEvents(uint64_t seed) : WorldBySeed(seed) {
    const bool is_join = seed % 2 == 1;
    begin_all(std::make_unique<EventAsker>(hub_.connect("asker"), clock_,
                                           is_join ? kJoinText : kEventsText, Gives::Events));
  }

  void end() {
    collect::Losses losses;
    asker_->rows->finish(losses);
    const auto late = losses.missed.find(collect::kMissedTooLate);
    late_ = late == losses.missed.end() ? 0 : late->second;
  }

  void check() const {
    EXPECT_EQ(asker_->asker.lost(), 0);
    std::map<std::string, const TestEvent*> events;
    for (const TestEvent& event : truth_) {
      events[text_of(row_of(event))] = &event;
      const bool has_come = asker_->came_in.contains(event.time);
      EXPECT_TRUE(has_come || is_in_gap(event)) << event.host << ' ' << event.time;
    }
    if (asker_->text == kEventsText) {
      check_rows(events, [this](const TestEvent& event) { return has_come(event); });
      return;
    }
    const auto pairs = joined(truth_);
    std::map<std::string, const std::pair<TestEvent, TestEvent>*> wanted;
    for (const auto& pair : pairs)
      wanted[text_of(row_of(pair))] = &pair;
    check_rows(wanted, [this](const auto& pair) {
      const auto& [a, b] = pair;
      if (!has_come(a) || !has_come(b)) return false;
      return late_ == 0 || !(is_late(a) || is_late(b));
    });
  }

 private:
  // Each row is one of these, and is there once; those that must be there are.
  template <typename T, typename Must>
  void check_rows(const std::map<std::string, T>& wanted, const Must& must_be_there) const {
    std::set<std::string> given;
    for (const Row& row : asker_->sink.rows) {
      const std::string text = text_of(row);
      EXPECT_TRUE(wanted.contains(text)) << text;
      EXPECT_TRUE(given.insert(text).second) << "twice: " << text;
    }
    for (const auto& [text, meaning] : wanted)
      EXPECT_TRUE(given.contains(text) || !must_be_there(*meaning)) << text;
  }

  [[nodiscard]] static Pane pane_of(const TestEvent& event) {
    return stream::Panes{.epoch_ns = 0, .width_ns = kWidth}.number_of(event.time);
  }
  [[nodiscard]] bool has_come(const TestEvent& event) const {
    return asker_->came_in.contains(event.time);
  }
  // By more than whoever joins waits.
  [[nodiscard]] bool is_late(const TestEvent& event) const {
    return asker_->came_in.at(event.time) > pane_of(event) + kSecond / kWidth;
  }
  // A node that was killed before anything of it came may have been there for nobody.
  [[nodiscard]] bool is_in_gap(const TestEvent& event) const {
    const auto is_of_it = [&](const TestEvent& each) {
      return each.host == event.host && has_come(each) && pane_of(each) <= pane_of(event);
    };
    const bool is_before_all = std::none_of(truth_.begin(), truth_.end(), is_of_it);
    if (killed_.contains(event.host) && is_before_all) return true;
    const std::vector<NodeGap> gaps = asker_->asker.gaps();
    return std::any_of(gaps.begin(), gaps.end(), [&](const NodeGap& gap) {
      return gap.node == event.host && gap.panes.first <= pane_of(event) &&
             pane_of(event) <= gap.panes.last;
    });
  }
  std::unique_ptr<EventNode> new_node(const std::string& name, uint64_t incarnation) override {
    return std::make_unique<EventNode>(hub_.connect(name), name, clock_, truth_, incarnation);
  }
  void happen() override {
    happen_to_root();
    happen_to_connections();
    if (chance(250)) kill_node_c();
  }

  Events truth_;
  uint64_t late_ = 0;
};

TEST(FaultyClusterEvents, AreThereOnceAndJoinedOnce) {
  const auto [first, last] = seeds();
  for (uint64_t seed = first; seed <= last; ++seed) {
    FaultyEvents world(seed);
    world.run(300);
    ASSERT_TRUE(world.finish(200)) << "seed " << seed;
    world.end();
    world.check();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace clew::cluster

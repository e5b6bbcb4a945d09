// SPDX-License-Identifier: Apache-2.0
// The operator against a plain evaluator, which knows every event and no panes.
#include "stream/window.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sanitized.h"

namespace clew::stream {
namespace {

using aggregate::AggregateFunction;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000 * kMs;

struct Event {
  int64_t time = 0;
  int64_t key = 0;
  int64_t value = 0;
};

// What is counted: the first and the last time, how many, their sum, the largest.
struct Counted {
  int64_t first = INT64_MAX;
  int64_t last = INT64_MIN;
  int64_t count = 0;
  int64_t sum = 0;
  int64_t largest = INT64_MIN;

  void add(const Event& event) {
    first = std::min(first, event.time);
    last = std::max(last, event.time);
    ++count;
    sum += event.value;
    largest = std::max(largest, event.value);
  }
  auto operator<=>(const Counted&) const = default;
};

constexpr std::array<AggregateFunction, 5> kFunctions = {
    AggregateFunction::Min, AggregateFunction::Max, AggregateFunction::Count,
    AggregateFunction::Sum, AggregateFunction::Max};

aggregate::TableSchema schema() {
  aggregate::TableSchema schema{.keys = {{.name = "pane"}, {.name = "key"}}};
  for (const AggregateFunction function : kFunctions)
    schema.aggregates.push_back({.name = "", .spec = {.function = function}});
  return schema;
}

void add_event(const Panes& panes, const Event& event, aggregate::Table& table) {
  const std::array<int64_t, 5> values = {event.time, event.time, 0, event.value, event.value};
  std::vector<uint64_t> cells(table.schema().cell_words());
  size_t word = 0;
  for (size_t i = 0; i < kFunctions.size(); ++i) {
    const aggregate::AggregateSpec& spec = table.schema().aggregates[i].spec;
    const size_t words = aggregate::cell_words(spec);
    aggregate::add(spec, std::span(cells).subspan(word, words), static_cast<uint64_t>(values[i]));
    word += words;
  }
  table.add({panes.number_of(event.time), event.key}, cells);
}

// A window's rows, as they were given last: by key and by the window's begin.
struct Row {
  Counted counted;
  uint64_t version = 0;
};
using Place = std::pair<int64_t, int64_t>;
using Rows = std::map<Place, Row>;

Counted counted_of(const aggregate::Row& row) {
  const auto number = [&row](size_t i) { return std::get<int64_t>(row[i]); };
  return {.first = number(2),
          .last = number(3),
          .count = static_cast<int64_t>(std::get<uint64_t>(row[4])),
          .sum = number(5),
          .largest = number(6)};
}

// Later rows replace earlier ones of their key within the window's bounds.
void take(const std::vector<Given>& all, bool is_session, Rows& rows) {
  for (const Given& given : all) {
    for (const aggregate::Row& row : given.table.rows()) {
      const Counted counted = counted_of(row);
      const int64_t begin = std::get<int64_t>(row[0]);
      const int64_t key = std::get<int64_t>(row[1]);
      const int64_t end = is_session ? counted.last : begin;
      auto at = rows.lower_bound({key, begin});
      while (at != rows.end() && at->first <= Place{key, end}) {
        EXPECT_GT(given.version, at->second.version) << begin << " of " << key;
        at = rows.erase(at);
      }
      rows[{key, begin}] = {.counted = counted, .version = given.version};
    }
  }
}

std::map<Place, Counted> without_versions(const Rows& rows) {
  std::map<Place, Counted> result;
  for (const auto& [place, row] : rows)
    result[place] = row.counted;
  return result;
}

// --- random streams ------------------------------------------------------------------------------

constexpr int64_t kKeys = 50;
constexpr int64_t kDelayUsual = 60 * kMs;  // What the watermark allows for.
constexpr int64_t kLate = 400 * kMs;

// In the order of their arrival. One in ten comes late, some about when it is too late, one in a
// hundred much too late.
std::vector<std::pair<int64_t, Event>> random_events() {
  std::mt19937_64 random(7);
  const auto below = [&random](int64_t limit) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  };
  std::vector<std::pair<int64_t, Event>> events;
  int64_t time = 1'000 * kSecond;
  const size_t count = wanted_steps(1'000'000);
  for (size_t i = 0; i < count; ++i) {
    time += below(2 * kMs);
    const int64_t kind = below(100);
    int64_t delay = below(kDelayUsual);
    if (kind < 10) delay += below(2 * kLate);
    if (kind < 1) delay += 4 * kLate;
    events.push_back({time + delay, {.time = time, .key = below(kKeys), .value = below(1'000)}});
  }
  std::sort(events.begin(), events.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return events;
}

const std::vector<std::pair<int64_t, Event>>& events_by_arrival() {
  static const std::vector<std::pair<int64_t, Event>> events = random_events();
  return events;
}

// Three members count side by side, and their partial tables are taken in pieces; `note` hears of
// the events of each with the watermark before it.
template <typename Note, typename Take>
void run(Windows& windows, const Panes& panes, const Note& note, const Take& took) {
  constexpr size_t kMembers = 3;
  constexpr size_t kPieceMax = 1'000;
  std::mt19937_64 random(9);
  const auto& events = events_by_arrival();
  int64_t watermark = INT64_MIN;
  for (size_t at = 0; at < events.size();) {
    const size_t end = std::min(events.size(), at + 1 + random() % kPieceMax);
    std::vector<aggregate::Table> parts(kMembers, aggregate::Table(schema()));
    std::vector<std::vector<Event>> of_member(kMembers);
    for (size_t i = at; i < end; ++i) {
      const size_t member = random() % kMembers;
      add_event(panes, events[i].second, parts[member]);
      of_member[member].push_back(events[i].second);
    }
    // Some members are merged before, others come by themselves.
    if (random() % 2 == 0) {
      ASSERT_TRUE(parts[0].merge(parts[1]));
      of_member[0].insert(of_member[0].end(), of_member[1].begin(), of_member[1].end());
      parts[1] = aggregate::Table(schema());
      of_member[1].clear();
    }
    for (size_t i = 0; i < kMembers; ++i) {
      note(of_member[i], watermark);
      windows.add(parts[i]);
    }
    watermark = events[end - 1].first - kDelayUsual;
    took(windows.advance(watermark));
    at = end;
  }
  took(windows.finish());
}

void check_hopping(int64_t size, int64_t step, int64_t width, int64_t epoch) {
  const Panes panes{.epoch_ns = epoch, .width_ns = width};
  const auto windows =
      Windows::make({.size_ns = size, .step_ns = step, .late_ns = kLate, .panes = panes}, schema());
  std::map<Place, Counted> expected;
  uint64_t late = 0;
  const auto note = [&](const std::vector<Event>& events, int64_t watermark) {
    std::set<std::pair<int64_t, int64_t>> late_now;
    for (const Event& event : events) {
      // The windows that hold it begin within `size` before it.
      int64_t begin = epoch + ((event.time - epoch) / step) * step;
      for (; begin > event.time - size; begin -= step) {
        const bool is_closed = watermark != INT64_MIN && begin + size + kLate <= watermark;
        if (is_closed) late_now.insert({(event.time - epoch) / width, event.key});
        if (!is_closed) expected[{event.key, begin}].add(event);
      }
    }
    late += late_now.size();
  };
  Rows rows;
  run(*windows, panes, note, [&](const auto& given) { take(given, false, rows); });
  EXPECT_EQ(without_versions(rows), expected);
  EXPECT_EQ(windows->late(), late);
  EXPECT_GT(late, 0U);
  EXPECT_TRUE(std::any_of(rows.begin(), rows.end(),
                          [](const auto& row) { return row.second.version > 1; }));
}

TEST(RandomWindows, TumblingOnesHaveWhatHappenedInThem) {
  check_hopping(kSecond, kSecond, kSecond, 0);
}

TEST(RandomWindows, HoppingOnesHaveWhatHappenedInThem) {
  check_hopping(kSecond, 400 * kMs, 200 * kMs, 17 * kMs);
}

TEST(RandomWindows, SessionsHaveWhatHappenedInThem) {
  constexpr int64_t kGap = 200 * kMs;
  const Panes panes{.epoch_ns = 5, .width_ns = 150 * kMs};
  const auto windows = Windows::make(
      {.kind = WindowShape::Kind::Session, .size_ns = kGap, .late_ns = kLate, .panes = panes},
      schema());
  std::map<int64_t, std::vector<Event>> wanted;  // By key.
  uint64_t late = 0;
  const auto note = [&](const std::vector<Event>& events, int64_t watermark) {
    // What one cell counts comes at once, and is late as a whole.
    std::map<std::pair<int64_t, int64_t>, std::vector<Event>> cells;
    for (const Event& event : events)
      cells[{panes.number_of(event.time), event.key}].push_back(event);
    for (const auto& [place, cell] : cells) {
      int64_t last = INT64_MIN;
      for (const Event& event : cell)
        last = std::max(last, event.time);
      const bool is_late = watermark != INT64_MIN && last + kGap + kLate <= watermark;
      late += is_late ? 1 : 0;
      auto& all = wanted[place.second];
      if (!is_late) all.insert(all.end(), cell.begin(), cell.end());
    }
  };
  Rows rows;
  run(*windows, panes, note, [&](const auto& given) { take(given, true, rows); });

  std::map<Place, Counted> expected;
  for (auto& [key, events] : wanted) {
    std::sort(events.begin(), events.end(),
              [](const Event& a, const Event& b) { return a.time < b.time; });
    Counted session;
    for (const Event& event : events) {
      if (session.count != 0 && event.time - session.last > kGap) {
        expected[{key, session.first}] = session;
        session = {};
      }
      session.add(event);
    }
    expected[{key, session.first}] = session;
  }
  EXPECT_GT(expected.size(), events_by_arrival().size() / 100);
  EXPECT_EQ(without_versions(rows), expected);
  EXPECT_EQ(windows->late(), late);
  EXPECT_GT(late, 0U);
}

// --- by hand -------------------------------------------------------------------------------------

class Stream {
 public:
  explicit Stream(WindowShape shape) : shape_(shape), windows_(Windows::make(shape, schema())) {}

  void event(int64_t time, int64_t key = 0) {
    aggregate::Table table(schema());
    add_event(shape_.panes, {.time = time, .key = key, .value = 1}, table);
    windows_->add(table);
  }
  // "begin-end vN: key x count …", each.
  std::vector<std::string> advance(int64_t time) { return texts(windows_->advance(time)); }
  std::vector<std::string> finish() { return texts(windows_->finish()); }
  [[nodiscard]] uint64_t late() const { return windows_->late(); }
  [[nodiscard]] uint64_t dropped() const { return windows_->dropped(); }

 private:
  static std::vector<std::string> texts(const std::vector<Given>& all) {
    std::vector<std::string> result;
    for (const Given& given : all) {
      std::string text = std::to_string(given.begin_ns) + "-" + std::to_string(given.end_ns) +
                         " v" + std::to_string(given.version) + (given.is_over ? ":" : " part:");
      for (const aggregate::Row& row : given.table.rows()) {
        text += " " + std::to_string(std::get<int64_t>(row[1])) + "x" +
                std::to_string(std::get<uint64_t>(row[4]));
      }
      result.push_back(std::move(text));
    }
    return result;
  }

  WindowShape shape_;
  std::unique_ptr<Windows> windows_;
};

WindowShape tumbling(int64_t size, int64_t late) {
  return {.size_ns = size, .step_ns = size, .late_ns = late, .panes = {.width_ns = size}};
}

TEST(TumblingWindow, IsGivenOnceItHasEnded) {
  Stream stream(tumbling(10, 0));
  stream.event(12);
  stream.event(19, 1);
  EXPECT_THAT(stream.advance(19), IsEmpty());
  EXPECT_THAT(stream.advance(20), ElementsAre("10-20 v1: 0x1 1x1"));
  EXPECT_THAT(stream.advance(30), IsEmpty());  // Nothing happened there.
}

TEST(TumblingWindow, IsGivenAgainWholeWhileItIsOpenForLateEvents) {
  Stream stream(tumbling(10, 5));
  stream.event(12);
  EXPECT_THAT(stream.advance(20), ElementsAre("10-20 v1: 0x1"));
  stream.event(13);
  stream.event(13, 4);
  EXPECT_THAT(stream.advance(24), ElementsAre("10-20 v2: 0x2 4x1"));
  EXPECT_THAT(stream.advance(25), IsEmpty());
  stream.event(14);
  EXPECT_THAT(stream.advance(26), IsEmpty());
  EXPECT_EQ(stream.late(), 1U);
}

TEST(TumblingWindow, ThatHasNotEndedIsGivenAtTheEnd) {
  Stream stream(tumbling(10, 5));
  stream.event(12);
  EXPECT_THAT(stream.advance(15), IsEmpty());
  EXPECT_THAT(stream.finish(), ElementsAre("10-20 v1 part: 0x1"));
}

TEST(HoppingWindow, ThatIsOpenCountsWhatIsTooLateForAnEarlierOne) {
  Stream stream({.size_ns = 20, .step_ns = 10, .late_ns = 0, .panes = {.width_ns = 10}});
  stream.event(25);
  EXPECT_THAT(stream.advance(31), ElementsAre("10-30 v1: 0x1"));
  stream.event(26);
  EXPECT_EQ(stream.late(), 1U);
  EXPECT_THAT(stream.advance(40), ElementsAre("20-40 v1: 0x2"));
}

TEST(SessionWindow, EndsWhereNothingFollowsWithinTheGap) {
  Stream stream(
      {.kind = WindowShape::Kind::Session, .size_ns = 10, .late_ns = 0, .panes = {.width_ns = 10}});
  stream.event(8);
  stream.event(18);
  stream.event(29, 1);
  EXPECT_THAT(stream.advance(28), IsEmpty());
  EXPECT_THAT(stream.advance(29), ElementsAre("8-18 v1: 0x2"));
  EXPECT_THAT(stream.finish(), ElementsAre("29-29 v1 part: 1x1"));
}

TEST(SessionWindow, TakesThePlaceOfThoseThatALateEventJoins) {
  Stream stream({.kind = WindowShape::Kind::Session,
                 .size_ns = 10,
                 .late_ns = 100,
                 .panes = {.width_ns = 10}});
  stream.event(10);
  stream.event(26);
  EXPECT_THAT(stream.advance(50), ElementsAre("10-26 v1: 0x1 0x1"));
  stream.event(18);
  EXPECT_THAT(stream.advance(51), ElementsAre("10-26 v2: 0x3"));
  EXPECT_EQ(stream.late(), 0U);
}

TEST(AnyWindow, CountsWhatIsTooMuch) {
  WindowShape shape = tumbling(10, 5);
  shape.rows_max = 2;
  Stream stream(shape);
  for (const int64_t key : {1, 2, 3, 1, 3})
    stream.event(12, key);
  EXPECT_EQ(stream.dropped(), 2U);
  EXPECT_THAT(stream.advance(25), ElementsAre("10-20 v1: 1x2 2x1"));
  stream.event(26, 3);  // There is room again.
  EXPECT_THAT(stream.finish(), ElementsAre("20-30 v1 part: 3x1"));

  shape.kind = WindowShape::Kind::Session;
  Stream sessions(shape);
  for (const int64_t key : {1, 2, 3, 1})
    sessions.event(12, key);
  EXPECT_EQ(sessions.dropped(), 1U);
  EXPECT_THAT(sessions.advance(100), ElementsAre("12-12 v1: 1x2 2x1"));
  sessions.event(100, 3);
  EXPECT_THAT(sessions.finish(), ElementsAre("100-100 v1 part: 3x1"));
}

TEST(AnyWindow, LeavesOutPanesOfNoTime) {
  Stream stream(tumbling(1, 0));
  stream.event(INT64_MAX);
  stream.event(INT64_MIN);
  EXPECT_THAT(stream.advance(INT64_MAX), IsEmpty());
  EXPECT_EQ(stream.late(), 2U);
}

}  // namespace
}  // namespace clew::stream

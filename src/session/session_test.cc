// SPDX-License-Identifier: Apache-2.0
#include "session/session.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "plan/evaluate.h"
#include "session/fake_source.h"
#include "session/recorded_file.h"

namespace clew::session {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

constexpr const char* kEvents = "from e in entry(\"a!f\") select e.arg0";
constexpr const char* kGroups = "from e in entry(\"a!f\") groupby e.arg0 as k select k, count()";

// Keeps what it gets, a line each.
class Lines final : public output::RowSink {
 public:
  void begin(std::span<const aggregate::Column> columns, output::RowMode) override {
    columns_ = columns.size();
  }
  void row(std::span<const aggregate::Value> values) override {
    EXPECT_EQ(values.size(), columns_);
    std::vector<uint64_t> numbers;
    for (const aggregate::Value& value : values)
      numbers.push_back(plan::bits_of(value));
    lines.push_back(fmt::format("{}", fmt::join(numbers, " ")));
    if (rows_before_wait > 0) --rows_before_wait;
  }
  [[nodiscard]] bool wants_losses() const override { return is_told_losses; }
  void losses_so_far(const collect::Losses& all) override {
    lines.push_back(fmt::format("dropped {}", all.dropped.at("ring_full")));
  }
  void end_interval(const output::Interval& interval) override {
    lines.push_back(fmt::format("interval {}{}", interval.number, interval.partial ? " part" : ""));
  }
  void finish(const collect::Losses& all) override { losses = all; }
  [[nodiscard]] bool ready() const override { return rows_before_wait != 0; }

  std::vector<std::string> lines;
  collect::Losses losses;
  bool is_told_losses = false;
  int rows_before_wait = -1;  // Then it takes none at once. -1: it takes all.

 private:
  size_t columns_ = 0;
};

// A session of two fake sources.
class Sessions : public testing::Test {
 protected:
  void ask(const std::string& text) {
    plan_ = std::make_unique<FakePlan>(text);
    first_ = std::make_unique<FakeSource>("first", *plan_, numbers_, story_);
    second_ = std::make_unique<FakeSource>("second", *plan_, numbers_, story_);
  }
  Input input() {
    return {.plan = plan_->plan,
            .sources = {first_.get(), second_.get()},
            .numbers = numbers_,
            .sink = sink_,
            .flow = flow_,
            .has_window = true};
  }
  Expected<void> run() { return run(input()); }
  Expected<void> run(Input what) {
    Session session(std::move(what));
    CLEW_TRY(session.begin());
    session.note(session.answer(stop_.get()));
    CLEW_TRY(session.stop());
    return session.finish();
  }

  FileDescriptor stop_{eventfd(0, EFD_CLOEXEC)};
  Numbers numbers_;
  EventFlow flow_;
  Lines sink_;
  std::vector<std::string> story_;
  std::unique_ptr<FakePlan> plan_;
  std::unique_ptr<FakeSource> first_;
  std::unique_ptr<FakeSource> second_;
};

TEST_F(Sessions, GiveTheEventsOfAllSourcesInTheOrderOfTheirTimes) {
  ask(kEvents);
  first_->give(10, {1});
  first_->give(40, {4});
  second_->give(30, {3});
  second_->give(20, {2});
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(sink_.lines, ElementsAre("1", "2", "3", "4"));
}

TEST_F(Sessions, HoldBackWhatAnEarlierEventMayStillPrecede) {
  ask(kEvents);
  first_->clock = 15;  // The round began before this event happened.
  first_->give(30, {3});
  second_->give(12, {1});
  second_->give(20, {2});  // Is read a round later.
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(sink_.lines, ElementsAre("1", "2", "3"));
}

TEST_F(Sessions, SayWhenAnEventCameTooLateForItsPlace) {
  ask(kEvents);
  first_->give(30, {3});
  first_->give(40, {4});
  first_->give(12, {1});  // Both are taken when it comes.
  std::string warnings;
  Input what = input();
  what.warn = [&warnings](std::string_view text) { warnings += text; };
  ASSERT_TRUE(run(std::move(what)).has_value());
  EXPECT_THAT(sink_.lines, ElementsAre("3", "4", "1"));
  EXPECT_EQ(warnings, "1 event came so late that later ones stand before it");
}

TEST_F(Sessions, TakeAsManyRowsAsAreAskedFor) {
  ask(std::string(kEvents) + " take 2");
  first_->ends = false;
  for (uint64_t i = 0; i < 5; ++i)
    first_->give(i, {i});
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(sink_.lines, ElementsAre("0", "1"));
}

TEST_F(Sessions, MergeTheCountsOfAllSources) {
  ask(kGroups);
  first_->give(1, {7});
  first_->give(2, {8});
  second_->give(3, {7});
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(sink_.lines, testing::UnorderedElementsAre("7 2", "8 1"));
}

TEST_F(Sessions, CloseIntervalsWithWhatIsInThemAndTheLastOneAsAPart) {
  ask(std::string(kGroups) + " every 3600s");
  first_->give(1, {7});
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(sink_.lines, ElementsAre("7 1", "interval 1 part"));
}

TEST_F(Sessions, TellLossesBeforeTheEndOfAnIntervalToASinkThatAsks) {
  ask(std::string(kGroups) + " every 3600s");
  first_->give(1, {7});
  second_->lost.dropped["ring_full"] = 3;
  sink_.is_told_losses = true;
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(sink_.lines, ElementsAre("7 1", "dropped 3", "interval 1 part"));
}

// Gives one event to each pane, and ends the session behind the third.
class Panes final : public PaneTaker {
 public:
  Panes(FakeSource& source, int stop) : source_(source), stop_(stop) {}
  Expected<void> take(int64_t pane, const aggregate::Table& table,
                      const collect::Losses& so_far) override {
    EXPECT_TRUE(numbers.empty() || pane > numbers.back());
    numbers.push_back(pane);
    rows.push_back(table.size());
    losses = so_far;
    if (numbers.size() == 3) eventfd_write(stop_, 1);
    source_.give(numbers.size(), {numbers.size()});
    return {};
  }

  std::vector<int64_t> numbers;
  std::vector<size_t> rows;
  collect::Losses losses;

 private:
  FakeSource& source_;
  int stop_;
};

TEST_F(Sessions, GiveAwayWhatWasCountedInEachPane) {
  ask(std::string(kGroups) + " every 3600s");
  first_->ends = false;
  second_->lost.dropped["ring_full"] = 3;
  Panes taker(*first_, stop_.get());
  Input what = input();
  what.panes = &taker;
  what.pane_clock = {.panes = {.epoch_ns = 0, .width_ns = 20'000'000}, .offset_ns = 1'000};
  ASSERT_TRUE(run(std::move(what)).has_value());
  EXPECT_THAT(taker.rows, ElementsAre(0, 1, 1, 1));
  EXPECT_EQ(taker.losses.dropped.at("ring_full"), 3);
  EXPECT_THAT(sink_.lines, IsEmpty());
}

TEST_F(Sessions, EndWhenTheyAreTold) {
  ask(kEvents);
  first_->ends = false;
  second_->ends = false;
  eventfd_write(stop_.get(), 1);
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(sink_.lines, IsEmpty());
}

// Who reads no answer may not read a message either, which would keep the probes where they are.
TEST_F(Sessions, SayWhyTheyAreIdleWhenAllIsLeft) {
  ask(kEvents);
  first_->ends = false;
  Input what = input();
  what.idle = IdleLimit{.time = std::chrono::nanoseconds(0), .is_unread = {}};
  what.warn = [this](std::string_view text) { story_.emplace_back(text); };
  ASSERT_TRUE(run(std::move(what)).has_value());
  ASSERT_GE(story_.size(), 3U);
  EXPECT_EQ(story_.back(), "nothing was answered for 0 s: the session ends (--idle)");
  EXPECT_EQ(std::count(story_.begin(), story_.end(), "second: detach"), 1);
}

TEST_F(Sessions, BeginAndEndTheWindowOfAllMembersTogether) {
  ask(kEvents);
  ASSERT_TRUE(run().has_value());
  EXPECT_THAT(story_, ElementsAre("first: begin_window", "second: begin_window",
                                  "first: start in a window", "second: start in a window",
                                  "first: settle_window", "second: settle_window", "second: stop",
                                  "first: stop", "first: detach", "second: detach"));
  EXPECT_GT(sink_.losses.window_ms, 0);
}

TEST_F(Sessions, HaveNoWindowWhenOneMemberIsTraced) {
  ask(kEvents);
  Input one = input();
  one.sources = {first_.get()};
  one.has_window = false;
  ASSERT_TRUE(run(std::move(one)).has_value());
  EXPECT_THAT(story_, ElementsAre("first: start", "first: detach"));
  EXPECT_EQ(sink_.losses.window_ms, 0);
}

TEST_F(Sessions, LeaveAllSourcesThoughOneCannotBeLeftAndAnswerAllTheSame) {
  ask(kEvents);
  first_->give(1, {1});
  first_->problem_at_detach = "it does not let go";
  const Expected<void> done = run();
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().message, "it does not let go");
  EXPECT_EQ(story_.back(), "second: detach");
  EXPECT_THAT(sink_.lines, ElementsAre("1"));
  EXPECT_THAT(sink_.losses.lost, ElementsAre("it does not let go"));
}

TEST_F(Sessions, RefuseEventsOfNobody) {
  ask(kEvents);
  first_->give(1, {1}, 2);  // There are members 0 and 1.
  const Expected<void> done = run();
  ASSERT_FALSE(done.has_value());
  EXPECT_THAT(done.error().message, HasSubstr("somebody else writes"));
}

TEST_F(Sessions, CountAChildOnceThatTwoSourcesSee) {
  ask(kEvents);
  first_->lost.missed[std::string(collect::kMissedForks)] = 2;
  first_->lost.missed[std::string(collect::kMissedReentry)] = 1;
  second_->lost.missed[std::string(collect::kMissedForks)] = 5;
  second_->lost.missed[std::string(collect::kMissedReentry)] = 1;
  ASSERT_TRUE(run().has_value());
  EXPECT_EQ(sink_.losses.missed[std::string(collect::kMissedForks)], 5U);
  EXPECT_EQ(sink_.losses.missed[std::string(collect::kMissedReentry)], 2U);
}

// --- windows of time -----------------------------------------------------------------------------

constexpr uint64_t kMs = 1'000'000;

class WindowSessions : public Sessions {
 protected:
  // Event times are ns here. The clock of the session is that of the first source.
  static void event(FakeSource& source, uint64_t ms, uint64_t key) { source.give(ms * kMs, {key}); }
  Expected<void> run_windows() {
    first_->clock = 0;
    first_->clock_follows = true;
    Input what = input();
    what.clock = plan_->lowered.clock;
    return run(std::move(what));
  }
};

TEST_F(WindowSessions, GiveAWindowOnceAWholeRoundHasBegunBehindIt) {
  ask("from e in entry(\"a!f\") groupby e.arg0 as k window tumbling 10ms "
      "select k, window.start, count()");
  event(*first_, 1, 7);
  event(*first_, 9, 7);
  event(*second_, 2, 8);
  event(*first_, 12, 7);
  event(*first_, 15, 7);
  event(*first_, 31, 7);
  ASSERT_TRUE(run_windows().has_value());
  // The session began with its clock at 0.
  EXPECT_THAT(sink_.lines, ElementsAre("7 0 2 1", "8 0 1 1", "interval 1",  //
                                       "7 10000000 2 1", "interval 2",      //
                                       "7 30000000 1 1", "interval 3 part"));
  EXPECT_TRUE(sink_.losses.dropped.empty());
}

TEST_F(WindowSessions, GiveAWindowAgainThatLateEventsChange) {
  ask("from e in entry(\"a!f\") window tumbling 10ms late 20ms select window.start, count()");
  for (const uint64_t ms : {1U, 12U, 15U, 18U, 3U, 26U, 34U, 45U, 55U, 4U, 65U})
    event(*first_, ms, 0);
  ASSERT_TRUE(run_windows().has_value());
  EXPECT_THAT(sink_.lines, ElementsAre("0 1 1", "interval 1",                  //
                                       "0 2 2", "10000000 3 1", "interval 2",  //
                                       "20000000 1 1", "interval 3", "30000000 1 1", "interval 4",
                                       "40000000 1 1", "interval 5", "50000000 1 1", "interval 6",
                                       "60000000 1 1", "interval 7 part"));
  EXPECT_EQ(sink_.losses.dropped.at("late"), 1U);  // The 4.
}

TEST_F(WindowSessions, TakeAndOrderTheRowsOfEachWindow) {
  ask("from e in entry(\"a!f\") groupby e.arg0 as k window hopping 20ms by 10ms "
      "select window.start, k orderby count() descending take 1");
  for (const uint64_t key : {5U, 6U, 6U})
    event(*first_, 15, key);
  for (const uint64_t key : {5U, 5U, 5U})
    event(*first_, 25, key);
  ASSERT_TRUE(run_windows().has_value());
  EXPECT_THAT(sink_.lines, ElementsAre("0 6 1", "interval 1", "10000000 5 1", "20000000 5 1",
                                       "interval 2 part"));
}

// --- joins by time -------------------------------------------------------------------------------

// The first source has events of a!f, the second one of a!g.
class TimeJoined : public Sessions {
 protected:
  void join(const std::string& rest) {
    text_ = "from a in entry(\"a!f\") " + rest;
    const query::Text text{.name = "query", .text = text_};
    joined_ = plan::separate(query::parse(text, {}).value(), {}, query::Reporter(text)).value();
    plan_ = std::make_unique<FakePlan>(text_, joined_.events);
    first_ = std::make_unique<FakeSource>("first", *plan_, numbers_, story_);
    second_ = std::make_unique<FakeSource>("second", *plan_, numbers_, story_);
  }
  // What an event has: the source's number, pid, tid, and its key.
  void f(uint64_t time, uint64_t key) { first_->give(time, {0, 41, 42, key}); }
  void g(uint64_t time, uint64_t key) { second_->give(time, {1, 41, 43, key}); }
  Input joining() {
    Input what = input();
    what.joined = &joined_;
    return what;
  }

  std::string text_;
  plan::Joined joined_;
};

constexpr const char* kPairs =
    "left join b in entry(\"a!g\") on b.arg0 equals a.arg0 within 20ns "
    "select a.time, b.time - a.time as later";

TEST_F(TimeJoined, HaveRowsOfSeveralSources) {
  join(kPairs);
  f(100, 1);
  f(110, 2);
  g(95, 2);
  f(130, 3);
  g(120, 1);
  g(151, 3);
  ASSERT_TRUE(run(joining()).has_value());
  EXPECT_THAT(sink_.lines,
              testing::UnorderedElementsAre(
                  "100 20", fmt::format("110 {}", static_cast<uint64_t>(-15)), "130 0"));
}

TEST_F(TimeJoined, AreCountedByGroups) {
  join(
      "join b in entry(\"a!g\") on b.arg0 equals a.arg0 within 20ns after "
      "groupby a.arg0 as key select key, count() every 3600s");
  for (const uint64_t time : {100U, 101U, 102U})
    f(time, 1);
  g(110, 1);
  g(121, 1);
  ASSERT_TRUE(run(joining()).has_value());
  EXPECT_THAT(sink_.lines, ElementsAre("1 5", "interval 1 part"));
}

// No event comes any more, and the session goes on: what waits is given as the clock says.
TEST_F(TimeJoined, GiveWhatHasNoPartnerAsTimePasses) {
  join(kPairs);
  f(100, 1);
  first_->ends = false;
  int64_t now = 0;
  Input what = joining();
  what.event_clock = [&] {
    now += 10'000'000;
    if (sink_.lines.size() == 1 || now > 1'000'000'000) eventfd_write(stop_.get(), 1);
    return now;
  };
  what.has_window = false;
  Session session(std::move(what));
  ASSERT_TRUE(session.begin().has_value());
  ASSERT_TRUE(session.answer(stop_.get()).has_value());
  EXPECT_THAT(sink_.lines, ElementsAre("100 0"));
  // 20 ns and a slack of 100 ms; of the round before the one that has seen it.
  EXPECT_LT(now, 150'000'000);
  EXPECT_GT(now, 100'000'000);
  ASSERT_TRUE(session.stop().has_value());
  ASSERT_TRUE(session.finish().has_value());
  EXPECT_THAT(sink_.lines, ElementsAre("100 0"));
}

TEST_F(TimeJoined, EndWithAsManyRowsAsAreAskedFor) {
  join(std::string(kPairs) + " take 2");
  for (const uint64_t time : {100U, 101U, 102U, 103U})
    f(time, time);
  ASSERT_TRUE(run(joining()).has_value());
  EXPECT_THAT(sink_.lines, ElementsAre("100 0", "101 0"));
}

TEST_F(TimeJoined, SayWhatTheyLeaveOut) {
  join(
      "join b in entry(\"a!g\") on b.arg0 equals a.arg0 within 20ns groupby a.arg1 as k select k, "
      "count()");
  for (uint64_t i = 0; i < 1'001; ++i)
    first_->give(100, {0, 41, 42, 1, 7});
  first_->give(110, {1, 41, 43, 1, 0});
  ASSERT_TRUE(run(joining()).has_value());
  EXPECT_THAT(sink_.lines, ElementsAre("7 1000"));
  EXPECT_EQ(sink_.losses.dropped[std::string(collect::kDroppedPartners)], 1);
  EXPECT_EQ(sink_.losses.missed.count(std::string(collect::kMissedTooLate)), 0);
}

// --- through a file ----------------------------------------------------------------------------

class Files : public Sessions {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path() const { return (folder_ / "events").string(); }
  [[nodiscard]] collect::SpillStart start() const {
    Recording recording = plan_->recording;
    recording.sources = {"entry(\"a!f\")"};
    return {.event_words = {{.least = 1, .most = 1}}, .note = note_of(recording)};
  }
  // The answer to `text` from the file.
  Expected<std::vector<std::string>> from_file(const std::string& text) const {
    const std::unique_ptr<RecordedFile> file = CLEW_TRY(RecordedFile::open(path()));
    const query::Text query{.name = "query", .text = text};
    const plan::Plan plan = plan::plain(CLEW_TRY(query::parse(query, {})));
    plan::Lowered lowered;
    lowered.form = plan::StateForm::Events;
    const plan::Grouping grouping;
    Numbers numbers;
    CLEW_TRY(file->prepare(plan, lowered, grouping, query::Reporter(query), numbers));
    Lines sink;
    EventFlow flow;
    Session session(
        {.plan = plan, .sources = {file.get()}, .numbers = numbers, .sink = sink, .flow = flow});
    CLEW_TRY(session.begin());
    CLEW_TRY(session.answer(stop_.get()));
    CLEW_TRY(session.stop());
    CLEW_TRY(session.finish());
    return sink.lines;
  }
  void write(const std::vector<collect::Event>& events, const collect::SpillStart& start) const {
    auto writer = collect::SpillWriter::create(path(), start);
    ASSERT_TRUE(writer.has_value());
    collect::EventBatch batch;
    for (const collect::Event& event : events)
      batch.push(event);
    ASSERT_TRUE(writer->write(batch, 0).has_value());
    ASSERT_TRUE(writer->finish().has_value());
  }

 private:
  fs::path folder_ = fs::temp_directory_path() / fmt::format("clew-session-{}", getpid());
};

TEST_F(Files, KeepWhatTheReaderDoesNotTakeYet) {
  ask(kEvents);
  ASSERT_TRUE(flow_.keep_in(path(), start()).has_value());
  sink_.rows_before_wait = 1;
  for (uint64_t i = 0; i < 4; ++i)
    first_->give(i, {i});
  Session session(input());
  ASSERT_TRUE(session.begin().has_value());
  ASSERT_TRUE(session.answer(stop_.get()).has_value());
  EXPECT_THAT(sink_.lines, ElementsAre("0"));
  ASSERT_TRUE(session.stop().has_value());
  EXPECT_THAT(sink_.lines, ElementsAre("0", "1", "2", "3"));
  ASSERT_TRUE(flow_.finish_file([this](uint64_t) { return start().note; }).has_value());
  EXPECT_THAT(from_file(kEvents).value(), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(from_file(std::string(kEvents) + " take 1").value(), ElementsAre("0"));
}

TEST_F(Files, AnswerOnlyFromWhatTheyHold) {
  ask(kEvents);
  write({}, start());
  const auto other = from_file("from e in entry(\"a!g\") select e.arg0");
  ASSERT_FALSE(other.has_value());
  EXPECT_THAT(other.error().message,
              HasSubstr("the file has no events of entry(\"a!g\"), only of entry(\"a!f\")"));
  EXPECT_FALSE(from_file("from e in entry(\"a!f\") select e.arg1").has_value());
}

TEST_F(Files, LeaveOutEventsOfProcessesThatTheyDoNotName) {
  ask(kEvents);
  const std::vector<uint64_t> words{5};
  write({{.process = 1U << collect::kMemberShift, .time = 1, .words = words},
         {.time = 2, .words = words}},
        start());
  EXPECT_THAT(from_file(kEvents).value(), ElementsAre("5"));
}

TEST_F(Files, ThatNameNoProcessOrTooManyAreRefused) {
  ask(kEvents);
  for (const size_t count : {size_t{0}, size_t{kMembersMax} + 1}) {
    plan_->recording.processes.resize(count);
    write({}, start());
    const auto answer = from_file(kEvents);
    ASSERT_FALSE(answer.has_value());
    EXPECT_THAT(answer.error().message, HasSubstr(fmt::format("it names {} processes", count)));
  }
}

}  // namespace
}  // namespace clew::session

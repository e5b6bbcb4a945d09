// SPDX-License-Identifier: Apache-2.0
// A source of a test: gives the events and counts that it is told to, and writes down what the
// session does with it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "answer/intake.h"
#include "plan/held.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "query/diagnostic.h"
#include "query/parse.h"
#include "session/numbers.h"
#include "session/recording.h"
#include "session/source.h"

namespace clew::session {

// A query whose events hold all that its text names, without any process behind it.
struct FakePlan {
  explicit FakePlan(const std::string& query_text)
      : FakePlan(query_text, query::parse({.name = "query", .text = query_text}, {}).value()) {}
  FakePlan(const std::string& query_text, query::Query query)
      : text{.name = "query", .text = query_text},
        plan(plan::plain(std::move(query))),
        held(plan::held_by(plan).value()),
        captured(plan::capture_held(plan, held, query::Reporter(text)).value()) {
    lowered.form = plan::StateForm::Events;
    lowered.clock = {.tick_multiplier = 1};
    recording.processes.resize(1);
    recording.processes[0].incarnations[0] = {.pid = 41, .name = "fake"};
    recording.host = "host";
    recording.held = held;
  }

  query::Text text;
  plan::Plan plan;
  plan::Lowered lowered;
  plan::Grouping grouping;
  std::vector<plan::HeldCapture> held;
  plan::Captured captured;
  Recording recording;
};

class FakeSource final : public Source {
 public:
  FakeSource(std::string name, const FakePlan& plan, Numbers& numbers,
             std::vector<std::string>& story)
      : name_(std::move(name)),
        number_(numbers.next(*this)),
        story_(story),
        names_(plan.recording, 0),
        intake_(plan.plan, plan.lowered, plan.grouping, names_, plan.captured) {}

  // One more round of reading finds this event; `words`: what the query's events hold.
  void give(uint64_t time, std::vector<uint64_t> words) { give(time, std::move(words), number_); }
  void give(uint64_t time, std::vector<uint64_t> words, uint32_t number) {
    rounds_.emplace_back();
    rounds_.back().push({.process = number << collect::kMemberShift, .time = time, .words = words});
  }
  // It is gone when it has given all.
  bool ends = true;
  std::string problem_at_detach;
  collect::Losses lost;
  uint64_t clock = 1'000'000;
  bool clock_follows = false;  // Its clock is then just behind the last event that was read.

  [[nodiscard]] bool gone() const override { return ends && rounds_.empty(); }
  void begin_window() override { note("begin_window"); }
  Expected<void> start(uint64_t begin_ticks) override {
    note(begin_ticks == 0 ? "start" : "start in a window");
    return {};
  }
  void settle_window() override { note("settle_window"); }
  void stop(uint64_t) override { note("stop"); }
  std::chrono::nanoseconds patience() override { return {}; }
  [[nodiscard]] bool has_events() const override { return true; }
  [[nodiscard]] uint64_t now() const override { return clock; }
  Expected<void> read_events(collect::EventBatch& round) override {
    if (rounds_.empty()) return {};
    if (clock_follows) clock = std::max(clock, rounds_.front().at(0).time + 1);
    round.append(rounds_.front());
    rounds_.pop_front();
    return {};
  }
  void take_events(const collect::EventBatch& events, collect::EventRange range,
                   answer::RowBatch& rows) override {
    intake_.take(events, range, rows);
  }
  uint64_t passed() override { return intake_.passed(); }
  Expected<aggregate::Table> interval() override {
    aggregate::Table table = intake_.counted();
    intake_.forget_counted();
    return table;
  }
  Expected<aggregate::Table> total() override { return intake_.counted(); }
  Expected<void> detach() override {
    note("detach");
    if (problem_at_detach.empty()) return {};
    return fail(ErrorCode::Io, problem_at_detach);
  }
  collect::Losses losses() override { return lost; }

 private:
  void note(const char* what) { story_.push_back(name_ + ": " + what); }

  std::string name_;
  uint32_t number_;
  std::vector<std::string>& story_;
  std::deque<collect::EventBatch> rounds_;
  RecordedNames names_;
  answer::Intake intake_;
};

}  // namespace clew::session

// SPDX-License-Identifier: Apache-2.0
// Moves over histories that are written down here, and over random runs of an installed program,
// whose calls are known.
#include "recorder/step.h"

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "recorder/simulator_testing.h"

namespace clew::recorder {
namespace {

// Moments that a test gives.
class Given final : public Moments {
 public:
  std::optional<Moment> at(size_t back) override {
    if (back >= moments_.size()) return std::nullopt;
    return moments_[moments_.size() - 1 - back];
  }
  [[nodiscard]] const Place& place(uint32_t number) const override { return places_[number]; }

  [[nodiscard]] size_t size() const { return moments_.size(); }
  void add(Moment moment, std::vector<Frame> frames) {
    const auto same = std::find_if(places_.begin(), places_.end(),
                                   [&](const Place& one) { return one.frames == frames; });
    moment.place = static_cast<uint32_t>(same - places_.begin());
    if (same == places_.end()) places_.push_back({"module", std::move(frames)});
    moments_.push_back(moment);
  }

 private:
  std::vector<Moment> moments_;
  std::vector<Place> places_;
};

// "main.5": line 5 of main, in main.c. "main.5 put.8": put is inlined into line 5, and at its own
// line 8. A space in front: a call deeper. Behind: "!" an activation begins, "?" uncertain, "#" a
// gap, "~" unwound.
void add_moment(Given& given, std::string_view text) {
  Moment moment;
  while (text.starts_with(' ')) {
    ++moment.depth;
    text.remove_prefix(1);
  }
  for (; text.find_last_of("!?#~") == text.size() - 1; text.remove_suffix(1)) {
    moment.is_entry = moment.is_entry || text.back() == '!';
    if (text.back() == '?') moment.marks |= kUncertain;
    if (text.back() == '#') moment.marks |= kGap;
    if (text.back() == '~') moment.marks |= kUnwound;
  }
  std::vector<Frame> frames;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    const std::string function(one.substr(0, one.find('.')));
    frames.insert(
        frames.begin(),
        {.function = function,
         .file = "src/" + function + ".c",
         .line = static_cast<uint32_t>(std::stoul(std::string(one.substr(one.find('.') + 1)))),
         .is_inlined = !frames.empty()});
  }
  given.add(moment, std::move(frames));
}

class Steps : public testing::Test {
 protected:
  void history(const std::vector<std::string_view>& moments) {
    for (const std::string_view one : moments)
      add_moment(given_, one);
    cursor_.emplace(given_);
  }
  // Counted from the oldest one: 0, 1, ….
  [[nodiscard]] size_t now() const { return given_.size() - 1 - cursor_->back(); }
  Cursor& at(size_t number) {
    EXPECT_TRUE(cursor_->go_to(given_.size() - 1 - number));
    return *cursor_;
  }
  size_t next(size_t from) { return moved(at(from).next(Direction::Forward)); }
  size_t reverse_next(size_t from) { return moved(at(from).next(Direction::Backward)); }
  size_t finish(size_t from) { return moved(at(from).finish(Direction::Forward)); }
  size_t reverse_finish(size_t from) { return moved(at(from).finish(Direction::Backward)); }
  size_t moved(const Move& move) {
    last_ = move;
    return now();
  }
  std::string stack(size_t from) {
    at(from);
    return stack();
  }
  std::string stack() {
    const Stack stack = cursor_->stack(100);
    std::string text;
    for (const StackFrame& one : stack.frames) {
      const Frame& frame = given_.place(given_.at(one.back)->place).frames[one.level];
      text += frame.function + "." + std::to_string(frame.line) + (one.is_certain ? " " : "? ");
    }
    return text + (stack.is_whole ? "whole" : "unknown");
  }
  std::vector<size_t> visits(const Location& location) {
    std::vector<size_t> found;
    for (const Visit& one : cursor_->visits(location))
      found.push_back(given_.size() - 1 - one.back);
    return found;
  }

  Given given_;
  std::optional<Cursor> cursor_;
  Move last_;
};

using Numbers = std::vector<size_t>;

TEST_F(Steps, NextGoesOverCallsAndReverseNextComesBack) {
  history({"main.1!", "main.2", " f.10!", " f.11", "main.2", "main.3"});
  EXPECT_EQ(next(0), 1U);
  EXPECT_EQ(next(1), 5U);
  EXPECT_EQ(next(4), 5U);
  EXPECT_EQ(reverse_next(5), 1U);
  EXPECT_EQ(reverse_next(4), 1U);  // To the statement's first moment.
  EXPECT_EQ(reverse_next(1), 0U);
  EXPECT_EQ(next(2), 3U);
}

TEST_F(Steps, NextLeavesAFunctionToWhereItWasCalled) {
  history({"main.1!", "main.2", " f.10!", " f.11", "main.2", "main.3"});
  EXPECT_EQ(next(3), 4U);
  EXPECT_EQ(reverse_next(2), 1U);
}

TEST_F(Steps, FinishGoesBehindTheCallAndReverseFinishInFrontOfIt) {
  history({"main.1!", "main.2", " f.10!", "  g.20!", " f.11", "main.2", "main.3"});
  EXPECT_EQ(finish(2), 5U);
  EXPECT_EQ(finish(3), 4U);
  EXPECT_EQ(reverse_finish(4), 1U);
  EXPECT_EQ(reverse_finish(3), 2U);
  EXPECT_EQ(finish(6), 6U);
  EXPECT_EQ(last_.end, MoveEnd::Newest);
  EXPECT_EQ(reverse_finish(1), 0U);
  EXPECT_EQ(last_.end, MoveEnd::Oldest);
}

TEST_F(Steps, RecursionAtOneLineIsNotOneStatement) {
  history({"f.1!", " f.1!", "  f.1!", "  f.2", " f.1", " f.2", "f.1", "f.2"});
  EXPECT_EQ(next(0), 7U);
  EXPECT_EQ(next(1), 5U);
  EXPECT_EQ(reverse_next(7), 0U);
  EXPECT_EQ(finish(2), 4U);
  EXPECT_EQ(stack(3), "f.2 f.1 f.1 unknown");
}

TEST_F(Steps, ACallBackIsAnotherActivationOfTheSameDepth) {
  history({"main.1!", " order.5!", " order.6", " order.5!", " order.6", "main.2"});
  EXPECT_EQ(next(2), 3U);
  EXPECT_EQ(finish(1), 3U);
  EXPECT_EQ(reverse_next(3), 2U);
  EXPECT_EQ(reverse_finish(4), 2U);
  EXPECT_EQ(stack(4), "order.6 main.1 unknown");
  EXPECT_EQ(next(0), 5U);
}

TEST_F(Steps, InlinedFunctionsAreFrames) {
  history({"main.1!", "main.2 put.8", "main.2 put.9", "main.2 put.9 up.30", "main.3"});
  EXPECT_EQ(next(0), 4U);  // No moment of line 2 is main's own.
  EXPECT_EQ(next(1), 2U);
  EXPECT_EQ(next(2), 4U);
  EXPECT_EQ(finish(1), 4U);
  EXPECT_EQ(finish(3), 4U);
  EXPECT_EQ(reverse_finish(3), 2U);
  EXPECT_EQ(reverse_finish(2), 0U);
  EXPECT_EQ(stack(3), "up.30 put.9 main.2 unknown");
}

TEST_F(Steps, NextGoesOverWhatIsInlinedIntoALine) {
  history({"main.1!", "main.2", "main.2 put.8", "main.2 put.9", "main.2", "main.3"});
  EXPECT_EQ(next(1), 5U);
  EXPECT_EQ(reverse_next(5), 1U);
  EXPECT_EQ(next(3), 4U);
}

TEST_F(Steps, TheSameFunctionInlinedAtAnotherLineIsAnotherFrame) {
  history({"main.1 put.8!", "main.2 put.8", "main.3"});
  EXPECT_EQ(next(0), 1U);
  EXPECT_EQ(finish(0), 1U);
  EXPECT_EQ(reverse_next(1), 0U);
}

TEST_F(Steps, MovesEndWhereSomethingMayBeMissing) {
  history({"main.1!", " f.5!", " f.6?", " f.7", "main.2", " g.9#", "main.3"});
  EXPECT_EQ(next(0), 2U);
  EXPECT_EQ(last_.end, MoveEnd::Missing);
  EXPECT_EQ(next(4), 5U);
  EXPECT_EQ(last_.end, MoveEnd::Missing);
  EXPECT_EQ(reverse_next(6), 5U);
  EXPECT_EQ(last_.end, MoveEnd::Missing);
  EXPECT_EQ(reverse_finish(3), 2U);
  EXPECT_EQ(last_.end, MoveEnd::Missing);
  EXPECT_EQ(reverse_next(5), 4U);
  EXPECT_EQ(last_.passed, kGap);
  EXPECT_EQ(reverse_finish(2), 1U);
  EXPECT_EQ(last_.passed, kUncertain);
}

TEST_F(Steps, WhatWasUnwoundIsPassedAndTold) {
  history({"main.1!", "main.2", " f.5!", "  g.6!", "main.2~", "main.3"});
  EXPECT_EQ(next(1), 5U);
  EXPECT_EQ(last_.passed, kUnwound);
  EXPECT_EQ(reverse_next(5), 1U);
  EXPECT_EQ(last_.passed, kUnwound);
  EXPECT_EQ(finish(3), 4U);
  EXPECT_EQ(last_.end, MoveEnd::Arrived);
  EXPECT_EQ(last_.passed, 0U);  // It ended there, and the moment says so.
}

TEST_F(Steps, UntilLeavesLoops) {
  history({"main.1!", "main.2", "main.3", "main.1", "main.2", "main.3", "main.4"});
  EXPECT_EQ(moved(at(2).until()), 6U);
  EXPECT_EQ(moved(at(1).until()), 2U);
}

TEST_F(Steps, AdvanceGoesToALineOrToTheFramesEnd) {
  history({"main.1!", " f.5!", " f.6", " f.7", "main.2", " f.5!", " f.7"});
  EXPECT_EQ(moved(at(1).advance({"", "f.c", 7})), 3U);
  EXPECT_EQ(moved(at(1).advance({"", "f.c", 9})), 4U);
  EXPECT_EQ(moved(at(0).advance({"f", "", 0})), 1U);
}

TEST_F(Steps, AVisitOfALineIsOneThoughItCalls) {
  history({"main.1!", "main.2", " f.5!", "main.2", "main.1", "main.2", "main.2 put.3", "main.1"});
  EXPECT_EQ(visits({"", "main.c", 2}), (Numbers{1, 5}));
  EXPECT_EQ(visits({"", "src/main.c", 2}), (Numbers{1, 5}));
  EXPECT_EQ(visits({"", "ain.c", 2}), Numbers());
  EXPECT_EQ(visits({"f", "", 0}), Numbers{2});
  EXPECT_EQ(visits({"put", "", 0}), Numbers{6});
  EXPECT_EQ(visits({"main", "", 0}), Numbers{0});
}

TEST_F(Steps, RunGoesFromVisitToVisitBothWays) {
  history({"main.1!", "main.2", " f.5!", "main.2", "main.1", "main.2", " f.5!", "main.3"});
  const std::vector<Location> aims = {{"f", "", 0}, {"", "main.c", 3}};
  EXPECT_EQ(moved(at(0).run(Direction::Forward, aims)), 2U);
  EXPECT_EQ(moved(at(2).run(Direction::Forward, aims)), 6U);
  EXPECT_EQ(moved(at(6).run(Direction::Forward, aims)), 7U);
  EXPECT_EQ(moved(at(7).run(Direction::Forward, aims)), 7U);
  EXPECT_EQ(moved(at(7).run(Direction::Backward, aims)), 6U);
  EXPECT_EQ(moved(at(6).run(Direction::Backward, aims)), 2U);
  EXPECT_EQ(moved(at(2).run(Direction::Backward, aims)), 0U);
  EXPECT_EQ(last_.end, MoveEnd::Oldest);
}

TEST_F(Steps, AVisitOfALineStandsInFrontOfWhatIsInlinedThere) {
  history({"main.1!", "main.2 put.8", "main.2 put.9 up.30", "main.2 put.9", "main.2", "main.3"});
  const std::vector<Location> line = {{"", "main.c", 2}};
  EXPECT_EQ(moved(at(0).run(Direction::Forward, line)), 1U);
  EXPECT_EQ(stack(), "main.2 unknown");
  EXPECT_EQ(moved(cursor_->step(Direction::Forward)), 1U);
  EXPECT_EQ(stack(), "put.8 main.2 unknown");
  EXPECT_EQ(moved(cursor_->step(Direction::Backward)), 0U);
  EXPECT_EQ(cursor_->visits(line.front()), (std::vector<Visit>{{4, 1}}));
  EXPECT_EQ(moved(at(5).run(Direction::Backward, line)), 1U);
  EXPECT_EQ(stack(), "main.2 unknown");
  EXPECT_EQ(moved(cursor_->next(Direction::Forward)), 5U);
  EXPECT_EQ(moved(at(0).advance(line.front())), 1U);
  EXPECT_EQ(stack(), "main.2 unknown");
  EXPECT_EQ(moved(cursor_->next(Direction::Backward)), 0U);
  EXPECT_EQ(moved(at(0).run(Direction::Forward, line)), 1U);
  EXPECT_EQ(moved(cursor_->finish(Direction::Forward)), 5U);
  EXPECT_EQ(last_.end, MoveEnd::Newest);
}

TEST_F(Steps, AVisitOfALineInAnInlinedFunctionStandsThere) {
  history({"main.1!", "main.2 put.9 up.30", "main.2 put.9", "main.3"});
  const std::vector<Location> both = {{"", "main.c", 2}, {"", "put.c", 9}};
  EXPECT_EQ(moved(at(0).run(Direction::Forward, std::span(both).subspan(1))), 1U);
  EXPECT_EQ(stack(), "put.9 main.2 unknown");
  EXPECT_EQ(moved(at(0).run(Direction::Forward, both)), 1U);
  EXPECT_EQ(stack(), "put.9 main.2 unknown");
}

TEST_F(Steps, WhatMayHaveBeenEnteredLongBeforeIsNotStoodInFrontOf) {
  history({"main.2 put.9", "main.3", "main.2 put.8?", "main.3"});
  EXPECT_EQ(cursor_->visits({"", "main.c", 2}), (std::vector<Visit>{{3, 0}, {1, 0}}));
}

TEST_F(Steps, ReverseFinishOfTheOutermostFunctionEndsAtItsBeginning) {
  history({"_start.1!", " main.5!", " main.6", "  f.7!", "  f.8", " main.6"});
  EXPECT_EQ(reverse_finish(4), 2U);
  EXPECT_EQ(last_.end, MoveEnd::Arrived);
  EXPECT_EQ(reverse_finish(2), 1U);
  EXPECT_EQ(last_.end, MoveEnd::Outermost);
  EXPECT_EQ(reverse_finish(1), 1U);
  EXPECT_EQ(last_.end, MoveEnd::Outermost);
  EXPECT_EQ(reverse_finish(0), 0U);
  EXPECT_EQ(last_.end, MoveEnd::Oldest);
}

TEST_F(Steps, ConstructorsAreNotCallersOfMain) {
  history({"_start.1!", " begin.3!", " begin.4", " main.5!", " main.6"});
  EXPECT_EQ(reverse_finish(4), 3U);
  EXPECT_EQ(last_.end, MoveEnd::Outermost);
  EXPECT_EQ(reverse_finish(2), 1U);
  EXPECT_EQ(last_.end, MoveEnd::Outermost);
}

TEST_F(Steps, WhoseCallerIsMissingIsNotOutermost) {
  history({"_start.1!", " begin.3?", " main.5!", " main.6"});
  EXPECT_EQ(reverse_finish(3), 1U);
  EXPECT_EQ(last_.end, MoveEnd::Arrived);
}

TEST_F(Steps, ReverseFinishOfWhatTheOutermostFunctionBeginsWithIsInFrontOfThat) {
  history({"_start.1!", " main.5 put.8!", " main.5 put.9", " main.6"});
  EXPECT_EQ(reverse_finish(2), 1U);
  EXPECT_EQ(last_.end, MoveEnd::Arrived);
  EXPECT_EQ(stack(), "main.5 _start.1 unknown");
  EXPECT_EQ(reverse_finish(3), 1U);
  EXPECT_EQ(last_.end, MoveEnd::Outermost);
}

TEST_F(Steps, AStackIsCertainUpToWhereSomethingMayBeMissing) {
  history({"main.1!", " f.5!", "  g.6!", "  g.7?", "   h.8!"});
  EXPECT_EQ(stack(2), "g.6 f.5 main.1 unknown");
  EXPECT_EQ(stack(3), "g.7 f.5? main.1? unknown");
  EXPECT_EQ(stack(4), "h.8 g.7 f.5? main.1? unknown");
}

TEST_F(Steps, AStackEndsWhereTheCallerIsNotRecorded) {
  history({"start.1!", "main.1!", " f.5!"});
  EXPECT_EQ(stack(2), "f.5 main.1 whole");
  EXPECT_EQ(stack(0), "start.1 unknown");
}

TEST(Locations, AreLinesOrFunctions) {
  const auto line = parse_location("a/b.c:12", "");
  EXPECT_EQ(line->file, "a/b.c");
  EXPECT_EQ(line->line, 12U);
  EXPECT_EQ(parse_location("7", "here.c")->file, "here.c");
  EXPECT_FALSE(parse_location("7", ""));
  EXPECT_EQ(parse_location("shop::Cart::add", "")->function, "shop::Cart::add");
  EXPECT_EQ(parse_location("99999999999999", "f")->function, "99999999999999");
  EXPECT_TRUE(is_at({.function = "shop::Cart::add(int)"}, {"add", "", 0}));
  EXPECT_TRUE(is_at({.function = "shop::Cart::add(int)"}, {"Cart::add", "", 0}));
  EXPECT_FALSE(is_at({.function = "shop::Cart::add(int)"}, {"dd", "", 0}));
  const Frame templated{.function = "shop::Cart<" + std::string(60, 'x') + ">::add(int)"};
  EXPECT_TRUE(is_at(templated, {"shop::Cart<...>::add", "", 0}));
  EXPECT_FALSE(is_at(templated, {"Cart<...>::ad", "", 0}));
}

// Random runs, as walk() gives them back. Each block is a line of its function.
class RandomRuns : public testing::Test {
 protected:
  static constexpr size_t kNobody = SIZE_MAX;

  void SetUp() override {
    auto image = target::ModuleImage::read("/bin/gzip");
    if (!image) GTEST_SKIP() << "gzip is not installed";
    image_.emplace(std::move(*image));
    auto facts = copy::Facts::of(*image_);
    ASSERT_TRUE(facts) << facts.error().message;
    facts_ = std::move(*facts);
    proof_ = copy::prove_module(*facts_);
    copied_.emplace(*facts_, proof_, Imports());
    tiling_ = tile_module(*facts_, proof_, *copied_, Loops::Once);
    paths_ = std::make_unique<ModulePaths>(*facts_, proof_, *copied_, tiling_);
  }

  // Runs, and finds the activation of each block, and its caller, by counting depths.
  void run(Simulator& simulator, std::mt19937_64& random) {
    const auto functions = static_cast<uint32_t>(proof_.proved.size());
    simulator.run(static_cast<uint32_t>(random() % functions), 1'500, random);
    const Walk walked =
        walk(*paths_, {.words = simulator.words(), .stopped_at = simulator.somewhere()});
    ASSERT_EQ(walked.steps.size(), simulator.ran().size());
    given_.emplace();
    activation_of_.clear();
    parents_.clear();
    std::vector<size_t> open;
    for (const Step& step : walked.steps) {
      ASSERT_EQ(step.marks, 0U);
      given_->add({.address = 0, .place = 0, .depth = step.depth, .is_entry = step.is_entry},
                  {{.function = std::to_string(step.function), .file = "", .line = step.block}});
      open.resize(static_cast<size_t>(step.depth) + (step.is_entry ? 0 : 1));
      if (step.is_entry) {
        parents_.push_back(open.empty() ? kNobody : open.back());
        open.push_back(parents_.size() - 1);
      }
      activation_of_.push_back(open.back());
    }
  }

  [[nodiscard]] bool is_within(size_t moment, size_t activation) const {
    size_t at = activation_of_[moment];
    while (at != kNobody && at != activation)
      at = parents_[at];
    return at == activation;
  }
  // The first moment behind it that is in no call of its activation's, nor in itself.
  [[nodiscard]] size_t end_of_activation(size_t moment) const {
    size_t at = moment;
    while (at < activation_of_.size() && is_within(at, activation_of_[moment]))
      ++at;
    return std::min(at, activation_of_.size() - 1);
  }
  [[nodiscard]] size_t call_of_activation(size_t moment) const {
    const auto first =
        std::find(activation_of_.begin(), activation_of_.end(), activation_of_[moment]);
    const auto at = static_cast<size_t>(first - activation_of_.begin());
    return at == 0 ? 0 : at - 1;
  }

  std::optional<target::ModuleImage> image_;
  std::unique_ptr<copy::Facts> facts_;
  copy::ModuleProof proof_;
  std::optional<Copied> copied_;
  ModuleTiling tiling_;
  std::unique_ptr<ModulePaths> paths_;
  std::optional<Given> given_;
  std::vector<size_t> activation_of_;  // By moment.
  std::vector<size_t> parents_;        // By activation.
};

TEST_F(RandomRuns, MovesAreWhatTheCallsSay) {
  Simulator simulator(*facts_, proof_, tiling_, *paths_);
  std::mt19937_64 random(7);
  size_t undone = 0;
  for (unsigned i = 0; i < 200 && !HasFatalFailure(); ++i) {
    run(simulator, random);
    if (HasFatalFailure()) return;
    const size_t count = given_->size();
    Cursor cursor(*given_);
    const auto go = [&](size_t number) { ASSERT_TRUE(cursor.go_to(count - 1 - number)); };
    const auto now = [&] { return count - 1 - cursor.back(); };
    const auto statement = [&](size_t number) {
      return std::pair(activation_of_[number], given_->at(count - 1 - number)->place);
    };
    for (size_t at = 0; at < count; ++at) {
      go(at);
      (void)cursor.step(Direction::Forward);
      ASSERT_EQ(now(), std::min(at + 1, count - 1));
      if (at + 1 < count) (void)cursor.step(Direction::Backward);
      ASSERT_EQ(now(), at);

      (void)cursor.finish(Direction::Forward);
      ASSERT_EQ(now(), end_of_activation(at));
      go(at);
      (void)cursor.finish(Direction::Backward);
      ASSERT_EQ(now(), call_of_activation(at));

      go(at);
      const Move next = cursor.next(Direction::Forward);
      const size_t behind = now();
      for (size_t over = at + 1; over < behind; ++over)
        ASSERT_TRUE(
            statement(over) == statement(at) ||
            (is_within(over, activation_of_[at]) && activation_of_[over] != activation_of_[at]));
      ASSERT_TRUE(next.end == MoveEnd::Newest || statement(behind) != statement(at));
      if (next.end == MoveEnd::Newest || activation_of_[behind] != activation_of_[at]) continue;
      // Back to the first moment of the statement, from which next leads there again.
      (void)cursor.next(Direction::Backward);
      const size_t first = now();
      ASSERT_LE(first, at);
      ASSERT_EQ(statement(first), statement(at));
      (void)cursor.next(Direction::Forward);
      ASSERT_EQ(now(), behind);
      (void)cursor.next(Direction::Backward);
      ASSERT_EQ(now(), first);
      ++undone;
    }
  }
  EXPECT_GT(undone, 5'000U);
}

TEST_F(RandomRuns, StacksAreTheCallsInProgress) {
  Simulator simulator(*facts_, proof_, tiling_, *paths_);
  std::mt19937_64 random(8);
  size_t frames = 0;
  for (unsigned i = 0; i < 200 && !HasFatalFailure(); ++i) {
    run(simulator, random);
    if (HasFatalFailure()) return;
    const size_t count = given_->size();
    Cursor cursor(*given_);
    for (size_t at = 0; at < count; at += 7) {
      ASSERT_TRUE(cursor.go_to(count - 1 - at));
      size_t activation = activation_of_[at];
      for (const StackFrame& frame : cursor.stack(SIZE_MAX).frames) {
        const size_t number = count - 1 - frame.back;
        ASSERT_EQ(activation_of_[number], activation);
        ASSERT_TRUE(frame.is_certain);
        activation = parents_[activation];
        ++frames;
      }
      ASSERT_EQ(activation, kNobody);
    }
  }
  EXPECT_GT(frames, 3'000U);
}

}  // namespace
}  // namespace clew::recorder

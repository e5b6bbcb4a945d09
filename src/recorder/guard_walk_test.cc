// SPDX-License-Identifier: Apache-2.0
// Random runs of functions with guards come back from what their guards have written: what is shown
// has run, and without a mark nothing is missing in between.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "recorder/guard_module_testing.h"
#include "recorder/signal_records.h"

namespace clew::recorder {
namespace {

struct GuardedBlock {
  uint32_t function = 0;
  uint32_t block = 0;
  int32_t depth = 0;     // So many activations that came to a guard are around it.
  bool is_rest = false;  // Behind a handler, which need not be told.
};

// A thread that goes a random way through the module, and writes as the guards' probe does.
class GuardedRun {
 public:
  GuardedRun(const GuardModule& module, bool has_signals, std::mt19937_64& random)
      : module_(module), random_(random), has_signals_(has_signals) {}

  // Of so many blocks, from the function's entry on; whenever that has returned, from another
  // one's. False: the depth of a stack is not known somewhere.
  bool run(uint32_t function, size_t blocks) {
    enter(function, kBottom);
    while (is_known_ && !is_done_ && ran_.size() < blocks) {
      if (stack_.empty()) {
        enter(any_function(), kBottom);
      } else if (has_signals_ && pick(32) == 0 && stack_.size() < kDeep) {
        interrupt();
      } else {
        leave();
      }
    }
    return is_known_;
  }

  // What guards can tell of: the blocks of activations that came to one.
  [[nodiscard]] std::vector<GuardedBlock> told() const {
    std::vector<GuardedBlock> told;
    for (const auto& [activation, block] : ran_) {
      if (!activations_[activation].has_hit) continue;
      told.push_back(block);
      for (uint32_t at = activations_[activation].caller; at != kNone; at = activations_[at].caller)
        told.back().depth += activations_[at].has_hit ? 1 : 0;
    }
    return told;
  }
  [[nodiscard]] const std::vector<uint32_t>& words() const { return words_; }
  // As the thread is now: at its last block's first instruction, if it has come to a guard there.
  [[nodiscard]] ThreadRecords stopped() {
    ThreadRecords records{.words = words_};
    const bool is_told = !is_done_ && !stack_.empty() && top().has_hit &&
                         !module_.guards->is_site(top().function, top().block);
    if (!is_told) return records;
    const uint64_t address = module_.guards->block(top().function, top().block).begin;
    const auto depth = module_.guards->depth_at(top().function, address);
    if (!depth) return records;
    records.stopped_at = address;
    records.stopped_stack = static_cast<uint64_t>(top().frame - *depth);
    return records;
  }

 private:
  static constexpr int64_t kBottom = int64_t{1} << 40;
  static constexpr size_t kDeep = 16;

  struct Activation {
    uint32_t function = 0;
    uint32_t caller = kNone;
    uint32_t block = kNone;
    int64_t frame = 0;
    bool has_hit = false;
    bool is_handler = false;
  };

  uint32_t any_function() { return static_cast<uint32_t>(pick(module_.functions())); }
  size_t pick(size_t count) { return static_cast<size_t>(random_() % count); }

  void enter(uint32_t function, int64_t frame) {
    const uint32_t caller = stack_.empty() ? kNone : stack_.back();
    stack_.push_back(static_cast<uint32_t>(activations_.size()));
    activations_.push_back({.function = function, .caller = caller, .frame = frame});
    go_to(module_.guards->flow(function).entry());
  }

  [[nodiscard]] Activation& top() { return activations_[stack_.back()]; }

  void go_to(uint32_t block) {
    Activation& top = this->top();
    top.block = block;
    ran_.push_back({stack_.back(), {.function = top.function, .block = block}});
    if (!module_.guards->is_site(top.function, block)) return;
    top.has_hit = true;
    const auto depth = module_.guards->depth_in(top.function, block);
    is_known_ = is_known_ && depth.has_value();
    words_.push_back(module_.word_of(top.function, block));
    words_.push_back(frame_word(top.frame - depth.value_or(0) - 8));
  }

  void leave() {
    const Activation top = this->top();
    const Flow& flow = module_.guards->flow(top.function);
    const Node& node = flow.nodes()[top.block];
    if (module_.guards->is_site(top.function, top.block)) return go_on();
    if (node.call != CallKind::None) return call(top, node);
    const auto ways = flow.ways_of(top.block);
    if (ways.empty()) return done();
    const Way& way = ways[pick(ways.size())];
    switch (way.kind) {
      case WayKind::Block:
        return go_to(way.block);
      case WayKind::Tail:
        stack_.pop_back();
        enter(way.function, top.frame);
        this->top().is_handler = top.is_handler;
        return;
      case WayKind::Return:
      case WayKind::TailOut:
        stack_.pop_back();
        if (top.is_handler) return come_back();
        if (!stack_.empty()) go_on();
    }
  }

  // A signal's handler: when it returns, the thread is where it was.
  void interrupt() {
    const uint64_t address = module_.guards->block(top().function, top().block).begin;
    const auto depth = module_.guards->depth_at(top().function, address);
    if (!depth) return;
    const auto signal = signal_record(1, address);
    words_.insert(words_.end(), signal.begin(), signal.end());
    enter(any_function(), top().frame - *depth - 16 * static_cast<int64_t>(60 + pick(1000)));
    top().is_handler = true;
  }

  // To the rest of what a handler has interrupted.
  void come_back() {
    ran_.push_back(
        {stack_.back(), {.function = top().function, .block = top().block, .is_rest = true}});
  }

  void call(const Activation& top, const Node& node) {
    const auto frame = module_.guards->callee_frame(top.function, top.block, top.frame);
    is_known_ = is_known_ && frame.has_value();
    if (!is_known_) return;
    if (node.call == CallKind::Copied) {
      if (stack_.size() < kDeep) return enter(node.callee, *frame);
      return done();
    }
    // What is called is not recorded, and may call back: from where no call of the module would.
    if (stack_.size() < kDeep && pick(2) == 0)
      return enter(any_function(), *frame - 16 * static_cast<int64_t>(1000 + pick(100'000)));
    go_on();
  }

  // Where nothing goes on, as behind exit(), and where it gets too deep for the test.
  void done() { is_done_ = true; }

  void go_on() {
    const Activation& top = this->top();
    const uint32_t behind = module_.guards->flow(top.function).nodes()[top.block].behind;
    if (behind == kNone) return done();
    go_to(behind);
  }

  const GuardModule& module_;
  std::mt19937_64& random_;
  bool has_signals_;
  std::vector<Activation> activations_;
  std::vector<uint32_t> stack_;
  std::vector<std::pair<uint32_t, GuardedBlock>> ran_;
  std::vector<uint32_t> words_;
  bool is_known_ = true;
  bool is_done_ = false;
};

// What may have run right in front of a block: the one before it, or what that is the rest of.
template <typename Test>
bool any_in_front(const std::vector<GuardedBlock>& ran, size_t at, Test test) {
  while (at-- > 0) {
    if (test(at)) return true;
    if (!ran[at].is_rest) return false;
  }
  return false;
}

// Where in `ran` each step may have been: the first one anywhere, and so one with a mark, behind
// those in front of it. The number of the first that was nowhere, or of all.
size_t shown_of(const std::vector<Step>& steps, const std::vector<GuardedBlock>& ran) {
  std::vector<bool> at(ran.size());  // The step in front may have been there.
  for (size_t i = 0; i < steps.size(); ++i) {
    std::vector<bool> next(ran.size());
    bool was_before = i == 0;
    for (size_t j = 0; j < ran.size(); ++j) {
      const bool is_same = ran[j].function == steps[i].function && ran[j].block == steps[i].block;
      const bool is_marked = i == 0 || (steps[i].marks & kMissing) != 0;
      const auto is_in_front = [&](size_t k) {
        return at[k] && ran[j].depth - ran[k].depth == steps[i].depth - steps[i - 1].depth;
      };
      next[j] = is_same && (is_marked ? was_before : any_in_front(ran, j, is_in_front));
      was_before = was_before || at[j];
    }
    if (std::find(next.begin(), next.end(), true) == next.end()) return i;
    at = std::move(next);
  }
  return steps.size();
}

class GuardedFiles : public testing::TestWithParam<const char*> {};

std::string text_of(const GuardModule& module, const std::vector<Step>& steps) {
  std::string text;
  for (const Step& step : steps)
    text += fmt::format("{}{}:{:x}/{} ", (step.marks & kMissing) != 0 ? "? " : "", step.function,
                        module.guards->block(step.function, step.block).begin, step.depth);
  return text;
}

std::string text_of(const GuardModule& module, const std::vector<GuardedBlock>& ran) {
  std::string text;
  for (const GuardedBlock& one : ran)
    text += fmt::format("{}:{:x}/{} ", one.function,
                        module.guards->block(one.function, one.block).begin, one.depth);
  return text;
}

struct Told {
  size_t ran = 0;
  size_t shown = 0;
  size_t stops = 0;  // Whose last block is shown as that where the thread stands.
};

// tools/soak asks for more of them, and others.
size_t asked_for(const char* name, size_t otherwise) {
  const char* const asked = std::getenv(name);
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : otherwise;
}

// Of so many runs, with and without the place where the thread stands at the end.
Told tell(const GuardModule& module, size_t runs) {
  const WalkedModule walked = module.walked();
  std::mt19937_64 random(asked_for("CLEW_SEED", 1));
  Told told;
  for (size_t i = 0; i < runs && !testing::Test::HasFailure(); ++i) {
    GuardedRun run(module, i % 4 >= 2, random);
    if (!run.run(static_cast<uint32_t>(i) % module.functions(), 1 + random() % 400)) continue;
    const std::vector<GuardedBlock> ran = run.told();
    const ThreadRecords records = i % 2 == 0 ? run.stopped() : ThreadRecords{.words = run.words()};
    const Walk walk = walk_guards({&walked, 1}, records);
    told.ran += ran.size();
    told.shown += walk.steps.size();
    EXPECT_EQ(walk.gaps, 0U);
    EXPECT_EQ(shown_of(walk.steps, ran), walk.steps.size())
        << "run " << i << "\nshown " << text_of(module, walk.steps) << "\nran   "
        << text_of(module, ran);
    if (walk.end != PathEnd::Stopped) continue;
    ++told.stops;
    EXPECT_TRUE(records.stopped_at);
    EXPECT_EQ(walk.steps.back().block, ran.back().block) << "run " << i;
    EXPECT_EQ(walk.steps.back().function, ran.back().function) << "run " << i;
  }
  return told;
}

TEST_P(GuardedFiles, ShowNothingThatHasNotRun) {
  const size_t runs = asked_for("CLEW_RUNS", 2'000);
  auto module = GuardModule::read(GetParam());
  ASSERT_TRUE(module) << module.error().message;
  const Told told = tell(*module, runs);
  fmt::print("{}: of {} blocks that ran {} are shown, of {} runs {} where they stand\n", GetParam(),
             told.ran, told.shown, runs, told.stops);
  EXPECT_GT(told.ran, 50 * runs);
  EXPECT_GT(10 * told.shown, 6 * told.ran);
  EXPECT_GT(told.stops, runs / 10);
}

INSTANTIATE_TEST_SUITE_P(ByHand, GuardedFiles,
                         testing::Values(GUARDED_O0, GUARDED_O2, GUARDED_ALL));

}  // namespace
}  // namespace clew::recorder

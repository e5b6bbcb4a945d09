// SPDX-License-Identifier: Apache-2.0
// Stamps against the run that their paper works out, and against the laws that it proves.
#include "causal/stamp.h"

#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace clew::causal {
namespace {

constexpr uint64_t kHalf = kLineEnd / 2;
constexpr uint64_t kQuarter = kLineEnd / 4;

Id id_of(const std::vector<Interval>& intervals) {
  Id id;
  for (const Interval& interval : intervals)
    EXPECT_TRUE(id.append(interval));
  return id;
}

Heights heights_of(const std::vector<Step>& steps) {
  Heights heights;
  for (const Step& step : steps)
    EXPECT_TRUE(heights.append(step));
  return heights;
}

bool is_before(const Stamp& a, const Stamp& b) {
  return a.heights.is_within(b.heights);
}

// Section 5.1 of the paper. Its trees stand beside the lists that are the same.
TEST(Stamps, DoTheRunOfThePaper) {
  Stamp a = Stamp::seed();
  Stamp b = a.fork();
  EXPECT_EQ(a, (Stamp{id_of({{0, 1}}), {}}));      // ((1, 0), 0)
  EXPECT_EQ(b, (Stamp{id_of({{kHalf, 1}}), {}}));  // ((0, 1), 0)

  ASSERT_TRUE(a.event());
  ASSERT_TRUE(b.event());
  EXPECT_EQ(a.heights, heights_of({{0, 1}, {kHalf, 0}}));  // (0, 1, 0)
  EXPECT_EQ(b.heights, heights_of({{kHalf, 1}}));          // (0, 0, 1)

  Stamp c = a.fork();
  ASSERT_TRUE(b.event());
  EXPECT_EQ(a.id, id_of({{0, 2}}));                // ((1, 0), 0)
  EXPECT_EQ(c.id, id_of({{kQuarter, 2}}));         // ((0, 1), 0)
  EXPECT_EQ(b.heights, heights_of({{kHalf, 2}}));  // (0, 0, 2)

  ASSERT_TRUE(a.event());
  EXPECT_EQ(a.heights, heights_of({{0, 2}, {kQuarter, 1}, {kHalf, 0}}));  // (0, (1, 1, 0), 0)
  ASSERT_TRUE(b.join(c));
  EXPECT_EQ(b.id, id_of({{kQuarter, 2}, {kHalf, 1}}));     // ((0, 1), 1)
  EXPECT_EQ(b.heights, heights_of({{0, 1}, {kHalf, 2}}));  // (1, 0, 1)

  const Stamp d = std::exchange(b, b.fork());
  EXPECT_EQ(b.id, id_of({{kQuarter, 2}}));  // ((0, 1), 0)

  ASSERT_TRUE(a.join(b));
  EXPECT_EQ(a.id, id_of({{0, 1}}));                                       // (1, 0)
  EXPECT_EQ(a.heights, heights_of({{0, 2}, {kQuarter, 1}, {kHalf, 2}}));  // (1, (0, 1, 0), 1)
  ASSERT_TRUE(a.event());
  EXPECT_EQ(a.heights, heights_of({{0, 2}}));  // 2: the event fills what was lower.
  EXPECT_TRUE(is_before(d, a));
  EXPECT_FALSE(is_before(a, d));
}

// Some branches of one request, after random steps.
std::vector<Stamp> random_branches(std::mt19937_64& random, size_t steps) {
  std::vector<Stamp> branches = {Stamp::seed()};
  for (size_t step = 0; step < steps; ++step) {
    Stamp& branch = branches[random() % branches.size()];
    const uint64_t choice = random() % 4;
    if (choice == 0 && branches.size() < 8) {
      Stamp other = branch.fork();
      if (!other.id.is_anonymous()) branches.push_back(other);
    } else if (choice == 1 && branches.size() > 1 && &branch != &branches.back()) {
      if (branch.join(branches.back())) branches.pop_back();
    } else {
      (void)branch.event();
    }
  }
  return branches;
}

TEST(Stamps, KeepTheLawsOfIds) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 2000; ++run) {
    const std::vector<Stamp> branches = random_branches(random, 60);
    for (size_t i = 0; i < branches.size(); ++i) {
      for (size_t j = 0; j < i; ++j)
        EXPECT_FALSE(branches[i].id.overlaps(branches[j].id));
      EXPECT_TRUE(branches[i].id.overlaps(branches[i].id));
      Id kept = branches[i].id;
      const Id given = kept.split();
      if (given.is_anonymous()) continue;
      EXPECT_FALSE(kept.overlaps(given));
      Id sum = given;
      sum.unite(kept);
      EXPECT_EQ(sum, branches[i].id);
    }
  }
}

TEST(Stamps, AddUpToTheWholeAgain) {
  std::mt19937_64 random(2);
  size_t whole = 0;
  for (int run = 0; run < 500; ++run) {
    std::vector<Stamp> branches = random_branches(random, 100);
    Id sum;
    for (const Stamp& branch : branches)
      sum.unite(branch.id);
    whole += sum == Id::whole() ? 1 : 0;
  }
  EXPECT_EQ(whole, 500U);
}

TEST(Stamps, KeepTheLawsOfJoins) {
  std::mt19937_64 random(3);
  for (int run = 0; run < 1000; ++run) {
    const std::vector<Stamp> branches = random_branches(random, 40);
    const Heights& a = branches[random() % branches.size()].heights;
    const Heights& b = branches[random() % branches.size()].heights;
    const Heights& c = branches[random() % branches.size()].heights;
    const auto joined = [](Heights left, const Heights& right) {
      EXPECT_TRUE(left.join(right));
      return left;
    };
    EXPECT_EQ(joined(a, b), joined(b, a));
    EXPECT_EQ(joined(joined(a, b), c), joined(a, joined(b, c)));
    EXPECT_EQ(joined(a, a), a);
    EXPECT_TRUE(a.is_within(joined(a, b)));
    EXPECT_TRUE(a.is_within(a));
    EXPECT_EQ(a.is_within(b) && b.is_within(a), a == b);
    EXPECT_TRUE(!a.is_within(b) || !b.is_within(c) || a.is_within(c));
  }
}

TEST(Stamps, AnEventIsSeenByNobodyBefore) {
  std::mt19937_64 random(4);
  for (int run = 0; run < 1000; ++run) {
    std::vector<Stamp> branches = random_branches(random, 50);
    Stamp& branch = branches[random() % branches.size()];
    const Interval first = branch.id.first();
    const std::vector<Stamp> before = branches;
    if (!branch.event()) continue;
    for (const Stamp& other : before) {
      EXPECT_FALSE(is_before(branch, other));
      EXPECT_LT(other.heights.lowest(first), branch.heights.lowest(first));
    }
  }
}

TEST(Stamps, OfAPeekSeeAllAndOwnNothing) {
  Stamp stamp = Stamp::seed();
  ASSERT_TRUE(stamp.event());
  const Stamp peek = stamp.peek();
  EXPECT_TRUE(peek.id.is_anonymous());
  EXPECT_EQ(peek.heights, stamp.heights);
  const Stamp before = stamp;
  ASSERT_TRUE(stamp.join(peek));
  EXPECT_EQ(stamp, before);
}

TEST(Stamps, EndAtTheirDepth) {
  Stamp stamp = Stamp::seed();
  for (unsigned depth = 1; depth <= kDepthMax; ++depth)
    ASSERT_FALSE(stamp.fork().id.is_anonymous()) << depth;
  const Stamp before = stamp;
  EXPECT_TRUE(stamp.fork().id.is_anonymous());
  EXPECT_EQ(stamp, before);
}

TEST(Stamps, GiveSmallerPartsIfTheyAreToldTo) {
  Id id = Id::whole();
  EXPECT_EQ(id.split(3), id_of({{kLineEnd / 8 * 7, 3}}));
  EXPECT_EQ(id, id_of({{0, 1}, {kHalf, 2}, {kLineEnd / 4 * 3, 3}}));
  // What is left of it goes next, before the largest is cut again.
  EXPECT_EQ(id.split(3), id_of({{kLineEnd / 4 * 3, 3}}));
  EXPECT_EQ(id.split(3), id_of({{kHalf, 2}}));
  EXPECT_EQ(id.split(3), id_of({{kLineEnd / 16 * 7, 4}}));
}

// Every second piece of the line, as many as an id can have, and then one more.
TEST(Stamps, LoseTheSmallestOfTooManyIntervals) {
  Id many;
  for (size_t i = 0; i < kIntervalsMax; ++i)
    ASSERT_TRUE(many.append({.start = 2 * i * (kLineEnd >> 6), .depth = 6}));
  EXPECT_FALSE(many.append({.start = kLineEnd - (kLineEnd >> 6), .depth = 6}));
  Id more = many;
  more.unite(id_of({{kLineEnd - (kLineEnd >> 7), 7}}));
  EXPECT_EQ(more, many);
  // But those between them make fewer of it, though there are more for a moment.
  Id others;
  for (size_t i = 0; i < kIntervalsMax; ++i)
    ASSERT_TRUE(others.append({.start = (2 * i + 1) * (kLineEnd >> 6), .depth = 6}));
  many.unite(others);
  EXPECT_EQ(many, id_of({{0, 1}}));
}

TEST(Stamps, EndAtTheirSteps) {
  Stamp stamp = Stamp::seed();
  size_t events = 0;
  while (stamp.event() && events < 100) {
    ++events;
    (void)stamp.fork();
  }
  EXPECT_EQ(events, kStepsMax);
  EXPECT_EQ(stamp.heights.steps().size(), kStepsMax);
}

TEST(Stamps, EndAtTheirHeight) {
  Heights high = heights_of({{0, kHeightMax}});
  const Heights before = high;
  EXPECT_FALSE(high.raise({.start = 0, .depth = 0}));
  EXPECT_EQ(high, before);
}

TEST(Stamps, AreReadOnlyInTheirNormalForm) {
  EXPECT_FALSE(Id().append({.start = 0, .depth = kDepthMax + 1}));
  EXPECT_FALSE(Id().append({.start = 0, .depth = 255}));
  EXPECT_FALSE(Id().append({.start = kQuarter, .depth = 1}));
  EXPECT_FALSE(Id().append({.start = kLineEnd, .depth = 1}));
  EXPECT_FALSE(id_of({{0, 2}}).append({.start = kQuarter, .depth = 2}));  // Halves.
  EXPECT_FALSE(id_of({{kHalf, 1}}).append({.start = 0, .depth = 2}));     // Not sorted.
  EXPECT_FALSE(id_of({{0, 1}}).append({.start = kQuarter, .depth = 2}));  // Overlapping.
  EXPECT_FALSE(Heights().append({.start = 0, .height = 0}));
  EXPECT_FALSE(Heights().append({.start = kLineEnd, .height = 1}));
  EXPECT_FALSE(heights_of({{0, 1}}).append({.start = kHalf, .height = 1}));
  EXPECT_FALSE(heights_of({{kHalf, 1}}).append({.start = kHalf, .height = 2}));
}

}  // namespace
}  // namespace clew::causal

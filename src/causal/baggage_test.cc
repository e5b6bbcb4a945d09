// SPDX-License-Identifier: Apache-2.0
// What baggage does in cases that can be told; history_test.cc has those that cannot.
#include "causal/baggage.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "causal/causal_testing.h"

namespace clew::causal {
namespace {

// --- what Pivot Tracing's release gets wrong -----------------------------------------------------
// brownsys/tracing-framework gives versions random names, never merges what a branch has archived,
// and drops from several copies those that are alike byte by byte.

TEST(PivotsFaults, AnOlderTupleDoesNotComeBackAtAJoin) {
  TestRequest request;
  request.pack(request.root, kRecentBag, 1, "old");
  Baggage other = request.root.branch(request.faults);  // It has the old one, too.
  request.pack(request.root, kRecentBag, 2, "new");
  request.root.join(other, request.faults);
  EXPECT_EQ(tuples_in(request.root, kRecentBag.name), "2:new");
}

TEST(PivotsFaults, BranchesHaveOneFirstTupleBetweenThem) {
  TestRequest request;
  Baggage other = request.root.branch(request.faults);
  request.pack(request.root, kFirstBag, 1, "here");
  request.pack(other, kFirstBag, 2, "there");
  Baggage both_ways = request.root;
  Baggage reversed = other;
  both_ways.receive(other, request.faults);
  reversed.receive(request.root, request.faults);
  EXPECT_EQ(tuples_in(both_ways, kFirstBag.name), "1:here");
  EXPECT_EQ(tuples_in(reversed, kFirstBag.name), "1:here");
}

TEST(PivotsFaults, BranchesThatPackDoNotMakeItGrow) {
  TestRequest request;
  size_t early_bytes = 0;
  for (int64_t i = 0; i < 20'000; ++i) {
    Baggage other = request.root.branch(request.faults);
    for (Baggage* const branch : {&request.root, &other}) {
      request.pack(*branch, kRecentBag, i % 50);
      request.add(*branch, kSumBag, 1);
    }
    request.root.join(other, request.faults);
    ASSERT_EQ(groups_in(request.root, kSumBag.name), fmt::format(":{}", 2 * (i + 1)));
    if (i == 5) early_bytes = request.root.size_bytes();
  }
  // The numbers have more digits now: n twice, two heights and the cell, up to two bytes each.
  EXPECT_LE(request.root.size_bytes(), early_bytes + 10);
  EXPECT_EQ(request.faults, Faults());
}

TEST(PivotsFaults, BranchesThatAreDroppedLeaveNothingBehind) {
  TestRequest request;
  for (int64_t i = 0; i < 30; ++i) {
    Baggage other = request.root.branch(request.faults);
    request.add(request.root, kSumBag, 1);
    request.add(other, kSumBag, 100);
  }
  EXPECT_EQ(groups_in(request.root, kSumBag.name), ":30");
  // One instance: words, operation, instances, height, groups, size, the cell.
  const Bags& bags = request.root.contents().bags;
  EXPECT_EQ(bags.body(bags.find(kSumBag.name)).size(), 7U);
}

TEST(PivotsFaults, TwoWritingsOfABagCountOnce) {
  TestRequest request;
  request.pack(request.root, kAllBag, 1, "tuple");
  request.add(request.root, kSumBag, 7);
  Baggage left = request.root.branch(request.faults);
  Baggage right = request.root.branch(request.faults);
  const std::string written = wire_text(left);
  ASSERT_EQ(read_text(written, left), Refusal::None);
  EXPECT_EQ(wire_text(left), written);  // There is no other way to write it.
  right.join(left, request.faults);
  request.root.join(right, request.faults);
  EXPECT_EQ(tuples_in(request.root, kAllBag.name), "1:tuple");
  EXPECT_EQ(groups_in(request.root, kSumBag.name), ":7");
}

// --- kinds of bags -------------------------------------------------------------------------------

TEST(Bags, KeepWhatTheirKindSays) {
  TestRequest request(false);
  const std::array numbers = {5, 3, 9, 3};
  for (const Bag& bag :
       {kFirstBag, kFirstTwoBag, kRecentBag, kRecentTwoBag, kAllBag, kLeastBag, kGreatestBag}) {
    for (const int number : numbers)
      ASSERT_EQ(request.pack(request.root, bag, number), Outcome::Done);
  }
  EXPECT_EQ(tuples_in(request.root, kFirstBag.name), "5:");
  EXPECT_EQ(tuples_in(request.root, kFirstTwoBag.name), "5: 3:");
  EXPECT_EQ(tuples_in(request.root, kRecentBag.name), "3:");
  EXPECT_EQ(tuples_in(request.root, kRecentTwoBag.name), "9: 3:");
  EXPECT_EQ(tuples_in(request.root, kAllBag.name), "5: 3: 9: 3:");
  EXPECT_EQ(tuples_in(request.root, kLeastBag.name), "3:");
  EXPECT_EQ(tuples_in(request.root, kGreatestBag.name), "9:");
}

TEST(Bags, HaveAnExtremeForEachKey) {
  TestRequest request(false);
  Baggage other = request.root.branch(request.faults);
  request.pack(request.root, kLeastBag, 5, "b");
  request.pack(request.root, kLeastBag, 7, "a");
  request.pack(other, kLeastBag, -4, "b");
  request.pack(other, kLeastBag, 8, "a");
  request.pack(other, kLeastBag, 0, "c");
  request.root.join(other, request.faults);
  EXPECT_EQ(tuples_in(request.root, kLeastBag.name), "7:a -4:b 0:c");
}

TEST(Bags, CombineCellsByTheirOperations) {
  TestRequest request;
  const std::array operations = {CellOperation::Add, CellOperation::Least, CellOperation::Greatest,
                                 CellOperation::Or};
  const auto add = [&](Baggage& branch, int64_t value) {
    const std::array cells = {value, value, value, value};
    EXPECT_EQ(branch.add(kSumBag, operations, {.key = {}, .cells = cells}, request.faults),
              Outcome::Done);
  };
  add(request.root, 1);
  Baggage other = request.root.branch(request.faults);
  add(request.root, -6);
  add(other, 2);
  EXPECT_EQ(groups_in(other, kSumBag.name), ":3,1,2,3");
  request.root.join(other, request.faults);
  EXPECT_EQ(groups_in(request.root, kSumBag.name), ":-3,-6,2,-5");
}

TEST(Bags, OfAnEmptyBaggageAreEmpty) {
  const Baggage empty;
  EXPECT_TRUE(empty.is_empty());
  EXPECT_EQ(empty.size_bytes(), 0U);
  EXPECT_EQ(tuples_in(empty, kAllBag.name), "");
  EXPECT_EQ(groups_in(empty, kSumBag.name), "");
}

TEST(Bags, OfOneNameAndTwoShapesOverflow) {
  TestRequest request;
  Baggage other = request.root.branch(request.faults);
  Bag first_two = kFirstBag;
  first_two.keep = 2;
  request.pack(request.root, kFirstBag, 1);
  request.pack(other, first_two, 2);
  request.root.join(other, request.faults);
  EXPECT_EQ(tuples_in(request.root, kFirstBag.name), "emit");
  EXPECT_EQ(request.faults.overflowed, 1U);
}

TEST(Bags, OfPlansOfAQueryAreApart) {
  TestRequest request(false);
  Bag newer = kAllBag;
  newer.name.plan = 1;
  request.pack(request.root, kAllBag, 1);
  request.pack(request.root, newer, 2);
  EXPECT_EQ(tuples_in(request.root, kAllBag.name), "1:");
  EXPECT_EQ(tuples_in(request.root, newer.name), "2:");
}

// --- branches ------------------------------------------------------------------------------------

TEST(Branches, SeeWhatWasPackedBeforeAndNothingElse) {
  TestRequest request;
  request.pack(request.root, kAllBag, 1);
  request.add(request.root, kSumBag, 1);
  Baggage other = request.root.branch(request.faults);
  request.pack(request.root, kAllBag, 2);
  request.add(request.root, kSumBag, 10);
  request.pack(other, kAllBag, 3);
  request.add(other, kSumBag, 100);
  EXPECT_EQ(tuples_in(request.root, kAllBag.name), "1: 2:");
  EXPECT_EQ(tuples_in(other, kAllBag.name), "1: 3:");
  EXPECT_EQ(groups_in(request.root, kSumBag.name), ":11");
  EXPECT_EQ(groups_in(other, kSumBag.name), ":101");
  request.root.join(other, request.faults);
  EXPECT_EQ(tuples_in(request.root, kAllBag.name), "1: 2: 3:");
  EXPECT_EQ(groups_in(request.root, kSumBag.name), ":111");
  EXPECT_TRUE(other.is_empty());
  EXPECT_EQ(request.root.contents().stamp.id, Id::whole());
}

// Figure 3 of the paper: a1 and a2 each before b1, b2 and c1, c2 where its arrows lead.
TEST(Branches, AreThoseOfPivotsFigure) {
  const Bag of_a{.name = {1, 0}, .kind = BagKind::All};
  const Bag of_b{.name = {2, 0}, .kind = BagKind::All};
  TestRequest request;
  Baggage upper = request.root.branch(request.faults);
  request.pack(upper, of_a, 1, "a");
  Baggage lower = upper.branch(request.faults);
  request.pack(lower, of_b, 1, "b");
  request.pack(upper, of_a, 2, "a");
  EXPECT_EQ(tuples_in(lower, of_a.name), "1:a");
  upper.join(lower, request.faults);
  request.pack(upper, of_b, 2, "b");
  EXPECT_EQ(tuples_in(upper, of_a.name), "1:a 2:a");
  EXPECT_EQ(tuples_in(upper, of_b.name), "1:b 2:b");
  EXPECT_EQ(tuples_in(request.root, of_a.name), "");
}

TEST(Branches, ThatComeTwiceChangeNothing) {
  TestRequest request;
  request.add(request.root, kSumBag, 1);
  Baggage other = request.root.branch(request.faults);
  request.add(other, kSumBag, 10);
  const Baggage message = other.hand_over(request.faults);
  request.root.receive(message, request.faults);
  // Also when the branch has given away what came with it.
  Baggage third = request.root.branch(request.faults);
  const std::string before = wire_text(request.root);
  request.root.receive(message, request.faults);
  EXPECT_EQ(wire_text(request.root), before);
  EXPECT_EQ(request.faults.stale, 1U);
  request.root.join(third, request.faults);
  EXPECT_EQ(groups_in(request.root, kSumBag.name), ":11");
}

// One of them has also made a branch.
TEST(Branches, ThatRunTwiceAreSaid) {
  TestRequest request;
  const Baggage message = request.root.branch(request.faults);
  Baggage one = message;
  Baggage two = message;
  two.branch(request.faults).discard();
  request.add(one, kSumBag, 1);
  request.add(two, kSumBag, 10);
  request.pack(one, kAllBag, 1);
  request.pack(two, kAllBag, 2);
  request.root.join(one, request.faults);
  request.root.join(two, request.faults);
  EXPECT_EQ(tuples_in(request.root, kAllBag.name), "1: 2:");
  EXPECT_EQ(groups_in(request.root, kSumBag.name), ":1");  // Ours stays.
  EXPECT_TRUE(request.root.contents().ran_twice);
  EXPECT_EQ(request.faults.ran_twice, 1U);
}

// With as many events they look like one that came twice; ours stays, and the tuples of both.
TEST(Branches, ThatRunTwiceAlikeAreStale) {
  TestRequest request;
  const Baggage message = request.root.branch(request.faults);
  Baggage one = message;
  Baggage two = message;
  request.add(one, kSumBag, 1);
  request.add(two, kSumBag, 10);
  request.pack(one, kAllBag, 1);
  request.pack(two, kAllBag, 2);
  request.root.join(one, request.faults);
  request.root.join(two, request.faults);
  EXPECT_EQ(tuples_in(request.root, kAllBag.name), "1: 2:");
  EXPECT_EQ(groups_in(request.root, kSumBag.name), ":1");
  EXPECT_EQ(request.faults.stale, 1U);
}

TEST(Branches, OfAnotherRequestAreNotJoined) {
  TestRequest request;
  Baggage stranger({.id = 5, .expires_s = 1000});
  request.pack(stranger, kAllBag, 1);
  const std::string before = wire_text(request.root);
  request.root.join(stranger, request.faults);
  EXPECT_EQ(wire_text(request.root), before);
  EXPECT_EQ(request.faults.other_request, 1U);
}

TEST(Branches, GoOnWhereNothingWas) {
  TestRequest request;
  request.pack(request.root, kAllBag, 1);
  Baggage empty;
  request.root.join(empty, request.faults);
  EXPECT_EQ(tuples_in(request.root, kAllBag.name), "1:");
  empty.join(request.root, request.faults);
  EXPECT_EQ(tuples_in(empty, kAllBag.name), "1:");
  EXPECT_TRUE(request.root.is_empty());
}

// --- room ----------------------------------------------------------------------------------------

// Makes a bag overflow.
void pack_too_much(TestRequest& request, Baggage& branch, const Bag& bag) {
  const std::string text(100, 'x');
  for (int i = 0; i < 3; ++i)
    request.pack(branch, bag, i, text);
}

TEST(Rooms, OfABagHaveAnEnd) {
  TestRequest request(false);
  pack_too_much(request, request.root, kAllBag);
  EXPECT_EQ(tuples_in(request.root, kAllBag.name), "emit");
  EXPECT_EQ(request.pack(request.root, kAllBag, 1), Outcome::EmitOnly);
  EXPECT_EQ(request.faults.overflowed, 1U);
  EXPECT_EQ(request.root.contents().n, 4U);  // Tuples that are emitted have numbers, too.
}

TEST(Rooms, OfASetHaveSixtyFourTuples) {
  TestRequest request(false);
  // Tuples without fields: 6 bytes each, so 256 bytes come first.
  for (size_t i = 0; i < 42; ++i)
    ASSERT_EQ(request.root.pack(kAllBag, 1, {}, request.faults), Outcome::Done) << i;
  EXPECT_EQ(request.root.pack(kAllBag, 1, {}, request.faults), Outcome::EmitOnly);
}

TEST(Rooms, OfASumHaveAnEnd) {
  TestRequest request;
  size_t groups = 0;
  while (request.add(request.root, kSumBag, 1, fmt::format("{:03}", groups)) == Outcome::Done &&
         groups < 100)
    ++groups;
  EXPECT_EQ(groups, 50U);  // 5 bytes each behind the first 5.
  EXPECT_EQ(groups_in(request.root, kSumBag.name), "emit");
}

// On each of five hops, in each way that a bag can overflow: what comes behind knows, and so does
// the beginning when all come back. The other bags are right.
TEST(Rooms, ThatEndOnAnyHopAreKnownBehindIt) {
  constexpr int kHops = 5;
  const auto overflow = [](TestRequest& request, Baggage& branch, int way) {
    if (way == 0) pack_too_much(request, branch, kAllBag);
    if (way == 1) branch.trim({.soft_bytes = 0, .hard_bytes = 4096}, request.faults);
    if (way == 2) {
      Baggage other = branch.branch(request.faults);
      pack_too_much(request, other, kAllBag);
      branch.join(other, request.faults);
    }
  };
  Bag kept = kFirstBag;
  kept.priority = kHighPriority;
  for (int way = 0; way < 3; ++way) {
    for (int hop = 0; hop < kHops; ++hop) {
      TestRequest request;
      request.pack(request.root, kept, 42);
      std::vector<Baggage> branches = {request.root.hand_over(request.faults)};
      for (int i = 0; i < kHops; ++i) {
        request.pack(branches.back(), kAllBag, i);
        if (i == hop) overflow(request, branches.back(), way);
        EXPECT_EQ(tuples_in(branches.back(), kAllBag.name) == "emit", i >= hop);
        Baggage next;
        ASSERT_EQ(read_text(wire_text(branches.back().branch(request.faults)), next),
                  Refusal::None);
        branches.push_back(next);
      }
      for (; branches.size() > 1; branches.pop_back())
        branches[branches.size() - 2].join(branches.back(), request.faults);
      EXPECT_EQ(tuples_in(branches[0], kAllBag.name), "emit") << way << " " << hop;
      EXPECT_EQ(tuples_in(branches[0], kept.name), "42:");
    }
  }
}

TEST(Rooms, AreMadeByTheLowestPriority) {
  TestRequest request(false);
  const std::string text(200, 'x');
  // 225 bytes each.
  for (const uint32_t number : {1U, 2U, 3U, 4U, 5U}) {
    const auto priority = static_cast<uint8_t>(number == 3 ? 10 : 20);
    const Bag bag{.name = {number, 0}, .kind = BagKind::All, .priority = priority};
    request.pack(request.root, bag, number, text);
  }
  const size_t before = request.root.size_bytes();
  request.root.trim({.soft_bytes = before - 1}, request.faults);
  EXPECT_EQ(tuples_in(request.root, {3, 0}), "emit");
  EXPECT_EQ(request.faults.overflowed, 1U);
  request.root.trim({.soft_bytes = request.root.size_bytes() - 1}, request.faults);
  EXPECT_EQ(tuples_in(request.root, {5, 0}), "emit");  // Of equal ones the last.
  EXPECT_EQ(tuples_in(request.root, {1, 0}), "1:" + text);
}

TEST(Rooms, OfHighPriorityAreLarger) {
  TestRequest request(false);
  const std::string text(200, 'x');
  for (uint32_t number = 0; number < 8; ++number) {
    const Bag bag{.name = {number, 0}, .kind = BagKind::All, .priority = kHighPriority};
    request.pack(request.root, bag, 1, text);
  }
  const std::string before = wire_text(request.root);
  EXPECT_GT(before.size(), kBaggageBytesSoft);
  request.root.trim({}, request.faults);
  EXPECT_EQ(wire_text(request.root), before);
  request.root.trim({.hard_bytes = before.size() - 1}, request.faults);
  EXPECT_EQ(request.faults.overflowed, 1U);
}

TEST(Rooms, OfAllBagsHaveAnEnd) {
  TestRequest request(false);
  const std::string text(200, 'x');
  for (uint32_t number = 0; number < 40; ++number) {
    const Bag bag{.name = {number, 0}, .kind = BagKind::All, .priority = 200};
    request.pack(request.root, bag, 1, text);
    EXPECT_LE(request.root.size_bytes(), kBaggageBytesMax);
  }
  EXPECT_EQ(tuples_in(request.root, {0, 0}), "1:" + text);
  EXPECT_EQ(tuples_in(request.root, {39, 0}), "emit");
}

TEST(Rooms, OfTwoBranchesAreThoseOfOneInTheEnd) {
  TestRequest request(false);
  const std::string text(200, 'x');
  Baggage other = request.root.branch(request.faults);
  for (uint32_t number = 0; number < 36; ++number) {
    const Bag bag{.name = {number, 0}, .kind = BagKind::All, .priority = 200};
    request.pack(number % 2 == 0 ? request.root : other, bag, 1, text);
  }
  request.root.join(other, request.faults);
  EXPECT_LE(request.root.size_bytes(), kBaggageBytesMax);
  EXPECT_GT(request.root.size_bytes(), kBaggageBytesMax - 250);
}

// Nobody knows whose head is missing, so whoever finds none is told to emit.
TEST(Rooms, ForHeadsHaveAnEndThatIsSaid) {
  TestRequest request(false);
  for (uint32_t number = 0; number <= kBagsMax; ++number) {
    const Bag bag{.name = {number, 0}, .kind = BagKind::First, .keep = 1};
    request.pack(request.root, bag, 1);
  }
  EXPECT_EQ(request.root.contents().bags.count(), kBagsMax);
  EXPECT_TRUE(request.root.contents().lost_bags);
  EXPECT_EQ(tuples_in(request.root, {0, 0}), "1:");
  EXPECT_EQ(tuples_in(request.root, {kBagsMax, 0}), "emit");
  EXPECT_EQ(tuples_in(request.root, {1000, 0}), "emit");
  // And what a branch has that is missing there cannot be all.
  Baggage other({.id = request.root.contents().request, .expires_s = 1000, .has_sums = false});
  request.pack(other, {.name = {2000, 0}, .kind = BagKind::All}, 1);
  other.join(request.root, request.faults);
  EXPECT_EQ(tuples_in(other, {2000, 0}), "emit");
  EXPECT_EQ(tuples_in(other, {0, 0}), "1:");
}

// --- sums that go emit-only ----------------------------------------------------------------------

TEST(Sums, BelowTheLastDepthAreEmitted) {
  TestRequest request;
  request.add(request.root, kSumBag, 1);
  Baggage deepest = request.root.branch(request.faults);
  unsigned depth = 1;
  for (; !deepest.contents().emits_sums && depth < 100; ++depth) {
    request.pack(deepest, kRecentBag, depth);
    deepest = deepest.branch(request.faults);
  }
  EXPECT_EQ(depth, kStepsMax);  // The events of so many branches need one step more than there are.
  EXPECT_EQ(groups_in(deepest, kSumBag.name), "emit");
  EXPECT_EQ(request.add(deepest, kSumBag, 1), Outcome::EmitOnly);
  EXPECT_EQ(tuples_in(deepest, kRecentBag.name), "47:");  // Sets go on.
  EXPECT_EQ(groups_in(request.root, kSumBag.name), ":1");
  request.root.join(deepest, request.faults);
  EXPECT_EQ(groups_in(request.root, kSumBag.name), "emit");
  EXPECT_EQ(tuples_in(request.root, kRecentBag.name), "47:");
}

TEST(Sums, WithoutStampsAreEmitted) {
  TestRequest request(false);
  EXPECT_EQ(request.add(request.root, kSumBag, 1), Outcome::EmitOnly);
  EXPECT_EQ(groups_in(request.root, kSumBag.name), "emit");
}

// A chain of branches that all add: each hands on what it has, frozen, until the bag is full.
TEST(Sums, OfTooManyInstancesAreEmitted) {
  TestRequest request;
  Baggage last = request.root.branch(request.faults);
  int64_t added = 0;
  for (; added < 40; ++added) {
    if (request.add(last, kSumBag, 1) == Outcome::EmitOnly) break;
    EXPECT_EQ(groups_in(last, kSumBag.name), fmt::format(":{}", added + 1));
    last = last.branch(request.faults);
  }
  EXPECT_GT(added, 20);
  EXPECT_EQ(groups_in(last, kSumBag.name), "emit");
  EXPECT_FALSE(last.contents().emits_sums);  // Others can still be added to.
}

// A search that asks forty others, which answer as they like.
TEST(Sums, OfManyBranchesAtOnceAreThere) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 20; ++run) {
    TestRequest request;
    std::vector<Baggage> branches;
    for (int i = 0; i < 40; ++i) {
      branches.push_back(request.root.branch(request.faults));
      request.add(branches.back(), kSumBag, 1);
    }
    std::shuffle(branches.begin(), branches.end(), random);
    for (Baggage& branch : branches)
      request.root.join(branch, request.faults);
    EXPECT_EQ(groups_in(request.root, kSumBag.name), ":40");
  }
}

TEST(Sums, OfManyMessagesAreThere) {
  TestRequest request;
  for (int i = 0; i < 300; ++i) {
    Baggage message = request.root.branch(request.faults);
    ASSERT_EQ(request.add(message, kSumBag, 1), Outcome::Done) << i;
  }
  EXPECT_EQ(request.add(request.root, kSumBag, 1), Outcome::Done);
}

// --- what the paper says about sizes -------------------------------------------------------------

// Q7 (section 6.1): the host of the client, and for the block where its three replicas are.
TEST(Sizes, OfPivotsQ7AreSmallerThanPivots) {
  const Bag client{.name = {71, 0}, .kind = BagKind::All};
  const Bag replicas{.name = {72, 0}, .kind = BagKind::All};
  TestRequest request(false);
  request.root.pack(client, 0x11111111, as_bytes_of("\007hostA01"), request.faults);
  for (const std::string_view host : {"\007hostB02", "\007hostC03", "\007hostD04"})
    request.root.pack(replicas, 0x11111111, as_bytes_of(host), request.faults);
  constexpr size_t kAuthenticated = 16;
  EXPECT_LE(request.root.size_bytes() + kAuthenticated, 137U);
  RecordProperty("Q7Bytes", static_cast<int>(request.root.size_bytes()));
}

TEST(Sizes, OfSixtyTuplesAreThoseOfThePaper) {
  TestRequest request(false);
  for (uint32_t i = 0; i < 60; ++i) {
    const Bag bag{.name = {i / 12, 0}, .kind = BagKind::All, .priority = kHighPriority};
    ASSERT_EQ(request.root.pack(bag, i, as_bytes_of("\010hostA123"), request.faults),
              Outcome::Done);
  }
  EXPECT_LE(request.root.size_bytes(), 1200U);
  RecordProperty("SixtyTuplesBytes", static_cast<int>(request.root.size_bytes()));
}

}  // namespace
}  // namespace clew::causal

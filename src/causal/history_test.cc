// SPDX-License-Identifier: Apache-2.0
// Baggage against causal histories: each branch of a random request also has the set of all that
// was packed before, by cause, as a set. What a query unpacks must follow from that set alone.
// CLEW_STEPS=N asks for more steps than a million.
#include <algorithm>
#include <array>
#include <bitset>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/sanitized.h"
#include "causal/baggage.h"
#include "causal/wire.h"

namespace clew::causal {
namespace {

constexpr size_t kPacksMax = 256;     // Of one request.
constexpr size_t kMessagesMax = 128;  // Of one request.

constexpr std::array kBags = {
    Bag{.name = {1, 0}, .kind = BagKind::First, .keep = 1},
    Bag{.name = {1, 1}, .kind = BagKind::First, .keep = 3},
    Bag{.name = {2, 0}, .kind = BagKind::MostRecent, .keep = 1},
    Bag{.name = {3, 0}, .kind = BagKind::MostRecent, .keep = 3},
    Bag{.name = {4, 0}, .kind = BagKind::All},
    Bag{.name = {5, 0}, .kind = BagKind::Least},
    Bag{.name = {6, 0}, .kind = BagKind::Greatest},
    Bag{.name = {7, 0}, .kind = BagKind::Sum},
    Bag{.name = {8, 0}, .kind = BagKind::Sum},
};
constexpr std::array kCount = {CellOperation::Add};
constexpr std::array kEverything = {CellOperation::Add, CellOperation::Least,
                                    CellOperation::Greatest, CellOperation::Or};

std::span<const CellOperation> operations_of(const Bag& bag) {
  if (bag.name.query == 7) return kCount;
  return kEverything;
}

// --- what is true --------------------------------------------------------------------------------

struct Packed {
  size_t bag;  // Of kBags.
  uint64_t n;
  uint32_t tie;
  int64_t value;
  std::string key;
};

// Of one request: all that was packed anywhere.
using Story = std::vector<Packed>;

struct History {
  std::bitset<kPacksMax> packed;
  std::bitset<kMessagesMax> messages;  // That have arrived.

  void join(const History& other) {
    packed |= other.packed;
    messages |= other.messages;
  }
};

std::vector<Packed> of_bag(const Story& story, const History& history, size_t bag) {
  std::vector<Packed> all;
  for (size_t i = 0; i < story.size(); ++i) {
    if (history.packed[i] && story[i].bag == bag) all.push_back(story[i]);
  }
  std::sort(all.begin(), all.end(), [](const Packed& a, const Packed& b) {
    return std::tuple(a.n, a.tie) < std::tuple(b.n, b.tie);
  });
  return all;
}

// One line for each tuple.
using Lines = std::vector<std::string>;

std::string line_of(const Packed& packed) {
  return fmt::format("{} {} {} {}", packed.n, packed.tie, packed.value, packed.key);
}

Lines true_extremes(const std::vector<Packed>& all, bool greatest) {
  std::map<std::string, Packed> best;
  for (const Packed& packed : all) {
    const auto [at, is_new] = best.try_emplace(packed.key, packed);
    const int64_t old = at->second.value;
    if (!is_new && (greatest ? packed.value > old : packed.value < old)) at->second = packed;
  }
  Lines lines;
  for (const auto& [key, packed] : best)
    lines.push_back(line_of(packed));
  return lines;
}

Lines true_sums(const std::vector<Packed>& all, const Bag& bag) {
  std::map<std::string, std::vector<int64_t>> cells;
  for (const Packed& packed : all) {
    const int64_t value = packed.value;
    const bool is_count = operations_of(bag).size() == 1;
    const auto [at, is_new] =
        cells.try_emplace(packed.key, is_count ? std::vector<int64_t>{value}
                                               : std::vector<int64_t>{value, value, value, value});
    if (is_new) continue;
    std::vector<int64_t>& cell = at->second;
    cell[0] += value;
    if (is_count) continue;
    cell[1] = std::min(cell[1], value);
    cell[2] = std::max(cell[2], value);
    cell[3] |= value;
  }
  Lines lines;
  for (const auto& [key, values] : cells)
    lines.push_back(fmt::format("{} {}", key, fmt::join(values, " ")));
  return lines;
}

Lines truth(const Story& story, const History& history, size_t bag_index) {
  const Bag& bag = kBags[bag_index];
  std::vector<Packed> all = of_bag(story, history, bag_index);
  const size_t kept = bag.keep == 0 ? all.size() : std::min<size_t>(bag.keep, all.size());
  switch (bag.kind) {
    case BagKind::First:
      all.resize(kept);
      break;
    case BagKind::MostRecent:
      all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(kept));
      break;
    case BagKind::All:
      break;
    case BagKind::Least:
      return true_extremes(all, false);
    case BagKind::Greatest:
      return true_extremes(all, true);
    case BagKind::Sum:
      return true_sums(all, bag);
  }
  Lines lines;
  for (const Packed& packed : all)
    lines.push_back(line_of(packed));
  return lines;
}

// --- what baggage says ---------------------------------------------------------------------------

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// False: the query is emit-only.
bool unpacked(const Baggage& baggage, const Bag& bag, Lines& lines) {
  if (bag.kind == BagKind::Sum) {
    Groups value;
    if (baggage.unpack(bag.name, value) == Outcome::EmitOnly) return false;
    for (const Group& group : value.groups())
      lines.push_back(fmt::format("{} {}", text_of(group.key), fmt::join(group.cells, " ")));
    return true;
  }
  TupleReader tuples;
  if (baggage.unpack(bag.name, tuples) == Outcome::EmitOnly) return false;
  for (Tuple tuple; tuples.next(tuple);) {
    ByteReader reader(tuple.fields);
    const int64_t value = take_number(reader);
    const std::string key = text_of(take_text(reader));
    lines.push_back(line_of({0, tuple.n, tuple.tie, value, key}));
  }
  EXPECT_FALSE(tuples.is_damaged());
  return true;
}

std::string wire_of(const Baggage& baggage) {
  std::string bytes(kBaggageBytesMax, 0);
  bytes.resize(write_wire(baggage, 0, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

// --- random requests -----------------------------------------------------------------------------

struct Branch {
  Baggage baggage;
  History history;
  uint32_t tie = 0;
};

struct Message {
  Branch branch;
  size_t number = 0;
};

struct Tally {
  size_t steps = 0;
  size_t compared = 0;
  size_t emit_only = 0;
  size_t duplicates = 0;
  size_t differences = 0;
  Faults faults{};
};

// What a random request may do besides.
struct Options {
  // Messages are run by branches that do not know of each other: sums are not looked at.
  bool runs_twice = false;
  bool has_sums = true;
  // At a time.
  size_t branches_max = 8;
  size_t steps_min = 50;
};

class RandomRequest {
 public:
  RandomRequest(uint64_t seed, const Options& options, Tally& tally)
      : random_(seed), options_(options), tally_(tally) {
    const Baggage root({.id = seed + 1, .expires_s = 1, .has_sums = options.has_sums});
    branches_.push_back({root, {}, next_tie_++});
  }

  void run(size_t steps) {
    for (size_t i = 0; i < steps; ++i)
      step();
    for (const Branch& branch : branches_) {
      for (size_t bag = 0; bag < kBags.size(); ++bag)
        compare(branch, bag);
    }
    tally_.steps += steps;
  }

 private:
  void step() {
    Branch& branch = branches_[random_() % branches_.size()];
    const uint64_t choice = random_() % 100;
    if (choice < 45) {
      pack(branch);
    } else if (choice < 65) {
      if (branches_.size() < options_.branches_max) make_branch(branch);
    } else if (choice < 70) {
      send(branch, branches_[random_() % branches_.size()]);
    } else if (choice < 83) {
      if (&branch != &branches_.back()) join_last(branch);
    } else if (choice < 86) {
      if (branches_.size() > 1) branches_.pop_back();
    } else if (choice < 95) {
      if (!messages_.empty()) deliver_again(branch);
    } else {
      through_the_wire(branch);
    }
    // Those behind a branch that is gone are other ones now.
    const Branch& any = branches_[random_() % branches_.size()];
    compare(any, random_() % kBags.size());
  }

  void pack(Branch& branch) {
    if (story_.size() == kPacksMax) return;
    const size_t index = random_() % (options_.has_sums ? kBags.size() : kBags.size() - 2);
    const Bag& bag = kBags[index];
    const std::string key(1, static_cast<char>('a' + random_() % 3));
    const auto value = static_cast<int64_t>(random_() % 100) - 50;
    uint64_t n = 0;
    if (bag.kind == BagKind::Sum) {
      const std::vector<int64_t> cells(operations_of(bag).size(), value);
      (void)branch.baggage.add(bag, operations_of(bag), {bytes_of(key), cells}, tally_.faults);
    } else {
      n = 1 + last_n(branch.history);
      std::array<std::byte, 32> room;
      ByteWriter writer(room);
      ASSERT_TRUE(put_number(writer, value) && put_text(writer, bytes_of(key)));
      (void)branch.baggage.pack(bag, branch.tie, std::span(room).first(writer.size()),
                                tally_.faults);
    }
    branch.history.packed.set(story_.size());
    story_.push_back({index, n, branch.tie, value, key});
  }

  uint64_t last_n(const History& history) const {
    uint64_t last = 0;
    for (size_t i = 0; i < story_.size(); ++i) {
      if (history.packed[i]) last = std::max(last, story_[i].n);
    }
    return last;
  }

  void make_branch(Branch& branch) {
    const Branch child{branch.baggage.branch(tally_.faults), branch.history, next_tie_++};
    branches_.push_back(child);
    std::swap(branches_.back(), branches_[random_() % branches_.size()]);
  }

  void join_last(Branch& branch) {
    Branch& last = branches_.back();
    deliver({last.baggage.hand_over(tally_.faults), last.history, last.tie}, branch);
    branches_.pop_back();
  }

  // A branch that is only a message.
  void send(Branch& from, Branch& to) {
    const Branch message{from.baggage.branch(tally_.faults), from.history, 0};
    if (&from != &to) deliver(message, to);
  }

  void deliver(const Branch& sent, Branch& to) {
    Message message{sent, messages_.size()};
    if (messages_.size() < kMessagesMax) {
      message.branch.history.messages.set(message.number);
      messages_.push_back(message);
    }
    to.baggage.receive(message.branch.baggage, tally_.faults);
    to.history.join(message.branch.history);
  }

  // To a branch that has seen it before, or to any.
  void deliver_again(Branch& branch) {
    const Message& message = messages_[random_() % messages_.size()];
    const bool is_known = branch.history.messages[message.number];
    if (!is_known && !options_.runs_twice) return;
    ++tally_.duplicates;
    const std::string before = wire_of(branch.baggage);
    branch.baggage.receive(message.branch.baggage, tally_.faults);
    branch.history.join(message.branch.history);
    if (is_known && !options_.runs_twice && wire_of(branch.baggage) != before) ++tally_.differences;
  }

  void through_the_wire(Branch& branch) {
    const std::string bytes = wire_of(branch.baggage);
    if (bytes.size() != branch.baggage.size_bytes()) ++tally_.differences;
    Baggage read;
    if (read_wire(bytes_of(bytes), read) != Refusal::None) ++tally_.differences;
    if (wire_of(read) != bytes) ++tally_.differences;
    branch.baggage = read;
  }

  void compare(const Branch& branch, size_t bag) {
    if (kBags[bag].kind == BagKind::Sum && (options_.runs_twice || !options_.has_sums)) return;
    Lines lines;
    if (!unpacked(branch.baggage, kBags[bag], lines)) {
      ++tally_.emit_only;
      return;
    }
    ++tally_.compared;
    const Lines expected = truth(story_, branch.history, bag);
    if (lines == expected) return;
    ++tally_.differences;
    if (tally_.differences < 5) {
      ADD_FAILURE() << "bag " << bag << " has\n"
                    << fmt::format("{}\nand not\n{}", fmt::join(lines, "\n"),
                                   fmt::join(expected, "\n"));
    }
  }

  std::mt19937_64 random_;
  Options options_;
  Tally& tally_;
  Story story_;
  std::vector<Branch> branches_;
  std::vector<Message> messages_;
  uint32_t next_tie_ = 1;
};

Tally run_requests(const Options& options, size_t steps) {
  Tally tally;
  for (uint64_t seed = 0; tally.steps < steps; ++seed)
    RandomRequest(seed, options, tally).run(options.steps_min + seed * 37 % 400);
  fmt::print("{} steps, {} compared, {} emit-only, {} duplicates, {} stale, {} ran twice\n",
             tally.steps, tally.compared, tally.emit_only, tally.duplicates, tally.faults.stale,
             tally.faults.ran_twice);
  return tally;
}

TEST(Histories, AreWhatBaggageUnpacks) {
  const Tally tally = run_requests({}, wanted_steps(1'000'000));
  EXPECT_EQ(tally.differences, 0U);
  EXPECT_LE(tally.faults.stale, tally.duplicates);  // Less where there are no stamps any more.
  EXPECT_GT(tally.faults.stale, tally.duplicates * 99 / 100);
  EXPECT_EQ(tally.faults.ran_twice, 0U);
  EXPECT_GT(tally.compared, 10 * tally.emit_only);
}

TEST(Histories, HoldWhereStampsPassTheirLimits) {
  const Tally tally = run_requests({.branches_max = 60, .steps_min = 1000}, wanted_steps(100'000));
  EXPECT_EQ(tally.differences, 0U);
  EXPECT_GT(tally.emit_only, tally.steps / 100);
  EXPECT_GT(tally.compared, tally.emit_only);
}

TEST(Histories, OfSetsHoldWhereMessagesRunTwice) {
  const Tally tally = run_requests({.runs_twice = true}, wanted_steps(200'000));
  EXPECT_EQ(tally.differences, 0U);
  EXPECT_GT(tally.faults.ran_twice, tally.steps / 200);
}

TEST(Histories, OfSetsNeedNoStamps) {
  const Tally tally = run_requests({.runs_twice = true, .has_sums = false}, wanted_steps(200'000));
  EXPECT_EQ(tally.differences, 0U);
  EXPECT_EQ(tally.faults.ran_twice, 0U);
}

}  // namespace
}  // namespace clew::causal

// SPDX-License-Identifier: Apache-2.0
// What a node keeps: in memory, in files, as fewer intervals, and what it drops.
#include "cluster/spill.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include "aggregate/table.h"
#include "aggregate/table_bytes.h"
#include "cluster/cluster_testing.h"
#include "cluster/world_testing.h"

namespace clew::cluster {
namespace {

namespace fs = std::filesystem;

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kMost = 1 << 20;

aggregate::Table table_of(const std::string& key, uint64_t count) {
  aggregate::Table table(counts_by_node());
  table.add({aggregate::Value(key)}, std::vector<uint64_t>{count});
  return table;
}

// As many hits as the pane's number says.
Bytes partial(Pane pane, const std::string& key = "a") {
  return aggregate::to_bytes(table_of(key, static_cast<uint64_t>(pane)));
}

uint64_t total_of(const Bytes& bytes) {
  const auto table = aggregate::table_of(bytes);
  uint64_t total = 0;
  for (const auto& [key, cells] : table->cells())
    total += cells[0];
  return total;
}

// The node says it to roots that may not have it.
TEST(Spill, KnowsUpToWhereItWasSafe) {
  Spill spill({.tenant = "t", .node = "n", .query = "q1", .revision = 2}, kMost, nullptr);
  for (Pane pane = 3; pane <= 6; ++pane)
    spill.add(pane, partial(pane));
  spill.forget(2);
  EXPECT_EQ(spill.safe(), kNoPane);
  spill.forget(4);
  EXPECT_EQ(spill.safe(), 4);
  spill.forget(9);
  EXPECT_EQ(spill.safe(), 6);
}

class Spills : public testing::Test {
 protected:
  void open(uint64_t bytes_max = kMost) {
    files_.reset();
    files_ = SpillFolder::open(folder_.path(), bytes_max).value();
  }
  [[nodiscard]] Spill make(size_t bytes_max) {
    return {{.tenant = "t",
             .node = "n",
             .query = "q1",
             .revision = 2,
             .incarnation = {.boot_id = {}, .start_ns = 7}},
            bytes_max,
            files_.get()};
  }
  // All that is there, in the order in which it is sent.
  static std::vector<std::pair<Pane, uint64_t>> send_all(Spill& spill) {
    std::vector<std::pair<Pane, uint64_t>> sent;
    while (Spill::Kept* const kept = spill.next()) {
      sent.emplace_back(kept->pane, total_of(Spill::table_of(*kept).value()));
      kept->is_sent = true;
    }
    return sent;
  }
  [[nodiscard]] std::vector<LeftFile> left() { return files_->take_left().value(); }
  [[nodiscard]] size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

  TestFolder folder_;
  std::unique_ptr<SpillFolder> files_;
};

std::vector<std::pair<Pane, uint64_t>> panes_up_to(Pane last) {
  std::vector<std::pair<Pane, uint64_t>> panes;
  for (Pane pane = 1; pane <= last; ++pane)
    panes.emplace_back(pane, static_cast<uint64_t>(pane));
  return panes;
}

TEST_F(Spills, GoToFilesAndComeBackInOrder) {
  open();
  const size_t one = partial(1).size();
  Spill spill = make(4 * one);
  for (Pane pane = 1; pane <= 50; ++pane)
    spill.add(pane, partial(pane));
  EXPECT_LE(spill.bytes(), 4 * one);
  EXPECT_GT(files(), 10U);
  EXPECT_EQ(send_all(spill), panes_up_to(50));
  EXPECT_TRUE(spill.lost().empty());
  spill.forget(49);
  EXPECT_EQ(files_->bytes(), 0);
  EXPECT_EQ(files(), 0);
}

TEST_F(Spills, BecomeFewerPanesWhenTheFilesAreFull) {
  const size_t one = partial(1).size();
  open(10 * one);
  Spill spill = make(4 * one);
  uint64_t total = 0;
  for (Pane pane = 1; pane <= 200; ++pane) {
    spill.add(pane, partial(pane));
    total += static_cast<uint64_t>(pane);
  }
  EXPECT_THAT(spill.take_problem(), HasSubstr("may not have more"));
  EXPECT_LE(spill.bytes(), 4 * one);
  EXPECT_LE(files_->bytes(), 10 * one);
  uint64_t sent = 0;
  for (const auto& [pane, count] : send_all(spill)) {
    uint64_t expected = static_cast<uint64_t>(pane);
    for (const PaneRange& range : spill.merged()) {
      if (range.last != pane) continue;
      for (Pane each = range.first; each < pane; ++each)
        expected += static_cast<uint64_t>(each);
    }
    EXPECT_EQ(count, expected) << pane;
    sent += count;
  }
  EXPECT_EQ(sent, total);
  EXPECT_FALSE(spill.merged().empty());
  EXPECT_TRUE(spill.lost().empty());
}

// Each pane has a key of its own.
TEST_F(Spills, AreDroppedAndNamedWhereNothingIsGained) {
  const std::string key(10'000, 'k');
  Spill spill = make(4 * key.size());
  for (Pane pane = 1; pane <= 20; ++pane)
    spill.add(pane, partial(pane, key + std::to_string(pane)));
  ASSERT_EQ(spill.lost().size(), 1U);
  EXPECT_EQ(spill.lost()[0].first, 1);
  const auto sent = send_all(spill);
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(spill.lost()[0].last + 1, sent.front().first);
  EXPECT_EQ(sent.back().first, 20);
}

// What was sent is held until it is safe; what there was no room for is lost where it is asked for
// again, and not before.
TEST_F(Spills, NameWhatWasSentAndDroppedWhenItIsWantedAgain) {
  const std::string key(10'000, 'k');
  Spill spill = make(4 * key.size());
  spill.add(1, partial(1, key + "1"));
  spill.add(3, partial(3, key + "3"));
  EXPECT_EQ(spill.last_sent(), kNoPane);
  EXPECT_EQ(send_all(spill).size(), 2U);
  EXPECT_EQ(spill.last_sent(), 3);
  for (Pane pane = 4; pane <= 8; ++pane)
    spill.add(pane, partial(pane, key + std::to_string(pane)));
  EXPECT_EQ(spill.lost(), (std::vector<PaneRange>{{.first = 4, .last = 5}}));
  EXPECT_EQ(spill.last_sent(), 3);
  EXPECT_EQ(spill.previous_of(*spill.next()), 3) << "whoever lacks that one is to ask";
  spill.send_again({{.first = 2, .last = 9}});
  EXPECT_EQ(spill.lost(), (std::vector<PaneRange>{{.first = 1, .last = 5}}));
  EXPECT_EQ(spill.previous_of(*spill.next()), kNoPane);
  EXPECT_EQ(spill.last_sent(), kNoPane);
  EXPECT_EQ(send_all(spill).size(), 3U);
  spill.forget(7);
  EXPECT_EQ(spill.last_sent(), 8);
}

// What was sent and not confirmed may be in the log, under its own number.
TEST_F(Spills, KeepApartWhatMayHaveArrived) {
  const size_t one = partial(1).size();
  Spill spill = make(4 * one);
  spill.add(1, partial(1));
  spill.next()->was_tried = true;
  for (Pane pane = 2; pane <= 20; ++pane)
    spill.add(pane, partial(pane));
  EXPECT_FALSE(spill.merged().empty());
  EXPECT_EQ(send_all(spill).front(), std::make_pair(Pane{1}, uint64_t{1}));
  for (const PaneRange& range : spill.merged())
    EXPECT_GT(range.first, 1);
}

TEST_F(Spills, OutliveTheirNode) {
  open();
  const size_t one = partial(1).size();
  {
    Spill spill = make(4 * one);
    for (Pane pane = 1; pane <= 21; ++pane)
      spill.add(pane, partial(pane));
    spill.forget(5);
    spill.write_all();
    EXPECT_EQ(spill.bytes(), 0);
  }
  open();
  Spill spill = make(4 * one);
  for (const LeftFile& file : left()) {
    EXPECT_EQ(file.owner.query, "q1");
    EXPECT_EQ(file.owner.revision, 2);
    EXPECT_EQ(file.owner.incarnation.start_ns, 7);
    spill.add(file);
  }
  auto expected = panes_up_to(21);
  expected.erase(expected.begin(), expected.begin() + 5);
  EXPECT_EQ(send_all(spill), expected);
}

// Two panes that have become one in memory are not found in the files as two.
TEST_F(Spills, AreNeverFoundTwice) {
  const size_t one = partial(1).size();
  open(10 * one);
  uint64_t total = 0;
  {
    Spill spill = make(4 * one);
    for (Pane pane = 1; pane <= 60; ++pane)
      spill.add(pane, partial(pane));
    for (const auto& [pane, count] : send_all(spill))
      total += count;
  }
  open();
  uint64_t found = 0;
  std::set<Pane> panes;
  for (const LeftFile& file : left()) {
    for (const SpilledAt& at : file.partials) {
      EXPECT_TRUE(panes.insert(at.pane).second) << at.pane;
      found += total_of(file.file->table_at(at.offset).value());
    }
  }
  EXPECT_GT(found, 0);
  EXPECT_LT(found, total) << "what was in memory has gone";
}

// Of a file that was damaged what is whole in front of that is there, and nothing else.
TEST_F(Spills, AreWhatIsWholeInDamagedFiles) {
  open();
  {
    Spill spill = make(1 << 20);
    for (Pane pane = 1; pane <= 6; ++pane)
      spill.add(pane, partial(pane));
    spill.write_all();
  }
  const fs::path path = fs::directory_iterator(folder_.path())->path();
  const auto size = fs::file_size(path);
  std::ifstream in(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (size_t at = 0; at < size; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x15);
    std::ofstream(path, std::ios::binary) << damaged;
    open();
    for (const LeftFile& file : left()) {
      for (const SpilledAt& each : file.partials) {
        const auto table = file.file->table_at(each.offset);
        ASSERT_TRUE(table) << at;
        EXPECT_EQ(total_of(*table), static_cast<uint64_t>(each.pane)) << at;
      }
    }
  }
  for (size_t length = 0; length < size; ++length) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, length);
    open();
    for (const LeftFile& file : left())
      EXPECT_LT(file.partials.size(), 6U) << length;
  }
}

TEST_F(Spills, HaveOneNode) {
  open();
  const auto second = SpillFolder::open(folder_.path(), kMost);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("another node has"));
}

// The fault table of the design: a node's disk is full while the server takes nothing. That is told
// once, and what there is no room for becomes one with its neighbours.
TEST_F(Cluster, LosesNothingOfANodeWhoseDiskIsFull) {
  if (getuid() != 0) GTEST_SKIP() << "NOT TESTED: a small disk needs root";
  const TestFolder folder;
  ASSERT_EQ(mount("none", folder.path().c_str(), "tmpfs", 0, "size=16k"), 0);
  add_root("r1");
  add_node("a", {}, 1, folder.path());
  ask(Gives::AtEnd);
  run(3 * kSecond);
  for (const char* time : {"the first", "the second"}) {
    hub().set_log_full(true);
    run(20 * kSecond);
    EXPECT_THAT(nodes_["a"]->node.take_notes(),
                Contains(HasSubstr(".spill: No space left on device: what is too much")).Times(1))
        << time;
    hub().set_log_full(false);
    run(5 * kSecond);
  }
  ASSERT_TRUE(finish());
  EXPECT_EQ(asker_->rows, sums());
  EXPECT_THAT(asker_->asker.gaps(), IsEmpty());
  EXPECT_THAT(status().lost, ElementsAre(HasSubstr("are counted in the last one of each")));
  nodes_.clear();
  EXPECT_EQ(umount2(folder.path().c_str(), MNT_DETACH), 0);
}

}  // namespace
}  // namespace clew::cluster

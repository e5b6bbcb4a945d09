// SPDX-License-Identifier: Apache-2.0
// Nodes whose bus takes what they send slowly, or not at all: that they are there is told all the
// same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/bus_local.h"
#include "cluster/world_testing.h"

namespace clew::cluster {
namespace {

// Appending takes as long as it takes a server that answers late, or that does not answer.
class SlowBus final : public Bus {
 public:
  SlowBus(std::unique_ptr<Bus> bus, TestClock& clock) : bus_(std::move(bus)), clock_(clock) {}

  [[nodiscard]] int descriptor() const override { return bus_->descriptor(); }
  [[nodiscard]] bool is_connected() const override { return bus_->is_connected(); }
  std::vector<std::string> take_complaints() override { return bus_->take_complaints(); }
  [[nodiscard]] uint64_t dropped() const override { return bus_->dropped(); }
  Expected<void> publish(std::string_view subject, std::span<const std::byte> bytes,
                         std::string_view reply) override {
    if (subject == Subjects("default").beat("n")) {
      longest_silence = std::max(longest_silence, clock_.now - beat_ns_);
      beat_ns_ = clock_.now;
    }
    return bus_->publish(subject, bytes, reply);
  }
  Expected<void> subscribe(std::string_view pattern, std::string_view group) override {
    return bus_->subscribe(pattern, group);
  }
  Expected<void> unsubscribe(std::string_view pattern) override {
    return bus_->unsubscribe(pattern);
  }
  std::optional<Message> next() override { return bus_->next(); }
  [[nodiscard]] std::string inbox() const override { return bus_->inbox(); }
  Expected<void> make_log(std::string_view log, std::string_view pattern,
                          uint64_t most_bytes) override {
    return bus_->make_log(log, pattern, most_bytes);
  }
  Expected<uint64_t> append(std::string_view subject, std::string_view id,
                            std::span<const std::byte> bytes) override {
    clock_.now += append_ns;
    if (fails) return fail(ErrorCode::Io, "no answer");
    return bus_->append(subject, id, bytes);
  }
  Expected<std::vector<Entry>> read(std::string_view log, uint64_t after, size_t most) override {
    return bus_->read(log, after, most);
  }
  Expected<LogEnds> ends(std::string_view log) override { return bus_->ends(log); }
  Expected<void> forget(std::string_view log, uint64_t up_to) override {
    return bus_->forget(log, up_to);
  }
  Expected<std::optional<Revised>> get(std::string_view bucket, std::string_view key) override {
    return bus_->get(bucket, key);
  }
  Expected<uint64_t> put(std::string_view bucket, std::string_view key,
                         std::span<const std::byte> bytes, uint64_t revision) override {
    return bus_->put(bucket, key, bytes, revision);
  }

  int64_t append_ns = 0;
  bool fails = false;
  int64_t longest_silence = 0;

 private:
  std::unique_ptr<Bus> bus_;
  TestClock& clock_;
  int64_t beat_ns_ = clock_.now;
};

class SlowSending : public testing::Test {
 protected:
  static constexpr size_t kQueries = 20;

  SlowSending() {
    auto bus = std::make_unique<SlowBus>(hub_.connect(), clock_);
    bus_ = bus.get();
    EXPECT_TRUE(root_.root.begin());
    node_ = std::make_unique<TestNode>(std::move(bus), "n", clock_, truth_);
    EXPECT_TRUE(node_->node.begin());
    for (size_t i = 0; i < kQueries; ++i) {
      askers_.push_back(std::make_unique<TestAsker>(
          hub_.connect(), clock_,
          Ask{.query = "q" + std::to_string(i), .text = kFakeText, .width_ns = kSecond}));
      EXPECT_TRUE(askers_.back()->asker.begin());
    }
    run(3 * kSecond);
  }
  void run(int64_t duration) {
    for (const int64_t end = clock_.now + duration; clock_.now < end;) {
      clock_.now += kSecond / 20;
      root_.root.turn();
      node_->node.turn();
      root_.root.turn();
      for (const auto& asker : askers_) {
        asker->asker.turn();
        asker->take();
      }
    }
  }

  LocalHub hub_;
  TestClock clock_;
  Truth truth_;  // Of all queries together.
  SlowBus* bus_ = nullptr;
  TestRoot root_{hub_.connect(), "r1", clock_};
  std::unique_ptr<TestNode> node_;
  std::vector<std::unique_ptr<TestAsker>> askers_;
};

TEST_F(SlowSending, DoesNotMakeANodeSilent) {
  bus_->longest_silence = 0;
  bus_->append_ns = 2 * kSecond;
  bus_->fails = true;
  run(30 * kSecond);
  EXPECT_LT(bus_->longest_silence, RootOptions{}.silent_ns);
  // It is there again, and slow.
  bus_->append_ns = kSecond / 10;
  bus_->fails = false;
  bus_->longest_silence = 0;
  run(60 * kSecond);
  EXPECT_LT(bus_->longest_silence, 2 * kSecond);
}

TEST_F(SlowSending, GoesRound) {
  bus_->append_ns = kSecond / 4;  // More than a turn has.
  std::vector<size_t> rows;
  for (const auto& asker : askers_)
    rows.push_back(asker->rows.size());
  run(40 * kSecond);
  for (size_t i = 0; i < askers_.size(); ++i)
    EXPECT_GE(askers_[i]->rows.size(), rows[i] + 4) << i;
}

TEST_F(SlowSending, SendsAllOnceItMay) {
  bus_->append_ns = 2 * kSecond;
  bus_->fails = true;
  run(20 * kSecond);
  bus_->append_ns = 0;
  bus_->fails = false;
  run(10 * kSecond);
  for (const auto& asker : askers_)
    asker->asker.end();
  run(10 * kSecond);
  uint64_t counted = 0;
  for (const auto& [where, count] : truth_)
    counted += count;
  uint64_t given = 0;
  for (const auto& asker : askers_) {
    EXPECT_TRUE(asker->asker.is_done());
    EXPECT_THAT(asker->asker.gaps(), testing::IsEmpty());
    for (const auto& [where, count] : asker->rows)
      given += count;
  }
  EXPECT_EQ(given, counted);
}

}  // namespace
}  // namespace clew::cluster

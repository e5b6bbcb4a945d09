// SPDX-License-Identifier: Apache-2.0
// What a cluster costs its root, with nodes that have no processes: a query until all of them have
// armed it and until all have ended it, 1 % of them slow and 1 % dead; and intervals of so many
// keys until their rows are committed and told. On the local bus, all members in one thread, so
// the nodes' own work is in it; the store is on a disk.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cluster/bus_local.h"
#include "cluster/world_testing.h"

namespace clew::cluster {
namespace {

constexpr size_t kRepetitions = 3;

double seconds_since(int64_t begin_ns) {
  return static_cast<double>(clock_ns(CLOCK_MONOTONIC) - begin_ns) / 1e9;
}

// The machine's, with jumps.
class JumpingClock final : public Clock {
 public:
  [[nodiscard]] int64_t monotonic_ns() const override {
    return clock_ns(CLOCK_MONOTONIC) + ahead_ns;
  }
  [[nodiscard]] int64_t realtime_ns() const override { return clock_ns(CLOCK_REALTIME) + ahead_ns; }
  int64_t ahead_ns = 0;
};

// --- installing ----------------------------------------------------------------------------------

class IdleSession final : public NodeSession {
 public:
  explicit IdleSession(const std::string& answers) {
    said_.push_back({.kind = FrameKind::Armed, .text = answers});
  }
  [[nodiscard]] int descriptor() const override { return -1; }
  std::vector<Frame> take() override { return std::exchange(said_, {}); }
  void stop() override { said_.push_back({.kind = FrameKind::Ended}); }

 private:
  std::vector<Frame> said_;
};

class IdleSessions final : public NodeSessions {
 public:
  Expected<std::unique_ptr<NodeSession>> begin(const SessionWant& want) override {
    return std::make_unique<IdleSession>(want.text);
  }
};

class Crowd {
 public:
  explicit Crowd(size_t count)
      : root_bus_(hub_.connect()), root_(*root_bus_, clock_, {.name = "r"}) {
    (void)root_.begin();
    for (size_t i = 0; i < count; ++i) {
      buses_.push_back(hub_.connect());
      const std::string name = fmt::format("n{}", i);
      nodes_.push_back(
          std::make_unique<Node>(*buses_.back(), sessions_, clock_, NodeOptions{.name = name}));
      (void)nodes_.back()->begin();
    }
    root_.turn();
    // The dead ones were heard once, and never again.
    clock_.ahead_ns += 4 * kSecond;
    for (int i = 0; i < 3; ++i)
      turn(true);
  }
  [[nodiscard]] size_t alive() const { return nodes_.size() - nodes_.size() / 100; }

  // Until all that live count, and until none does.
  std::pair<double, double> ask(uint64_t number) {
    TestAsker asker(hub_.connect(), clock_,
                    {.query = fmt::format("q{}", number),
                     .text = std::string(kFakeText) + std::string(2'000, ' '),
                     .width_ns = kSecond});
    const int64_t begin = clock_ns(CLOCK_MONOTONIC);
    (void)asker.asker.begin();
    const auto armed = [&] { return asker.asker.status() ? asker.asker.status()->armed : 0; };
    while (armed() < alive())
      turn(asker);
    const double installed = seconds_since(begin);
    const int64_t ending = clock_ns(CLOCK_MONOTONIC);
    asker.asker.end();
    while (!asker.asker.is_done())
      turn(asker);
    return {installed, seconds_since(ending)};
  }

 private:
  void turn(TestAsker& asker) {
    asker.asker.turn();
    turn(false);
  }
  void turn(bool all) {
    const bool is_slow_turn = all || clock_.monotonic_ns() >= next_slow_ns_;
    if (is_slow_turn) next_slow_ns_ = clock_.monotonic_ns() + kSecond / 2;
    const size_t dead = nodes_.size() / 100;
    for (size_t i = dead; i < nodes_.size(); ++i) {
      if (i >= 2 * dead || is_slow_turn) nodes_[i]->turn();
    }
    root_.turn();
  }

  JumpingClock clock_;
  LocalHub hub_;
  IdleSessions sessions_;
  std::unique_ptr<Bus> root_bus_;
  Root root_;
  std::vector<std::unique_ptr<Bus>> buses_;
  std::vector<std::unique_ptr<Node>> nodes_;
  int64_t next_slow_ns_ = 0;
};

void install(size_t nodes) {
  Crowd crowd(nodes);
  std::vector<double> armed;
  std::vector<double> ended;
  for (uint64_t number = 1; number <= kRepetitions; ++number) {
    const auto [installed, uninstalled] = crowd.ask(number);
    armed.push_back(installed);
    ended.push_back(uninstalled);
  }
  fmt::print("{{\"what\": \"install\", \"nodes\": {}, \"armed\": {}, \"ended\": {}}}\n", nodes,
             armed, ended);
}

// --- merging -------------------------------------------------------------------------------------

// A pane with so many keys, whenever it is told to.
class LoadSession final : public NodeSession {
 public:
  LoadSession(const std::string& answers, const Bytes& table) : table_(table) {
    said_.push_back({.kind = FrameKind::Armed, .text = answers});
  }
  [[nodiscard]] int descriptor() const override { return -1; }
  std::vector<Frame> take() override { return std::exchange(said_, {}); }
  void stop() override { said_.push_back({.kind = FrameKind::Ended}); }
  void give(Pane pane) {
    said_.push_back({.kind = FrameKind::Pane, .pane = pane, .bytes = table_});
  }

 private:
  const Bytes& table_;
  std::vector<Frame> said_;
};

class LoadSessions final : public NodeSessions {
 public:
  explicit LoadSessions(Bytes table) : table_(std::move(table)) {}
  Expected<std::unique_ptr<NodeSession>> begin(const SessionWant& want) override {
    auto session = std::make_unique<LoadSession>(want.text, table_);
    last = session.get();
    return session;
  }
  LoadSession* last = nullptr;

 private:
  Bytes table_;
};

// The same keys on all nodes, as functions or hosts' programs are.
Bytes table_with(size_t keys) {
  aggregate::Table table(counts_by_node());
  for (size_t i = 0; i < keys; ++i) {
    const std::vector<uint64_t> cells = {i + 1};
    table.add({aggregate::Value(fmt::format("function_{}", i))}, cells);
  }
  return aggregate::to_bytes(table);
}

class Load {
 public:
  Load(size_t nodes, size_t keys)
      : store_(Store::open(folder_.path()).value()),
        root_bus_(hub_.connect()),
        root_(*root_bus_, clock_, {.name = "r"}, store_.get()),
        asker_(hub_.connect(), clock_, {.query = "q", .text = kFakeText, .width_ns = kSecond}) {
    (void)root_.begin();
    for (size_t i = 0; i < nodes; ++i) {
      buses_.push_back(hub_.connect());
      sessions_.push_back(std::make_unique<LoadSessions>(table_with(keys)));
      nodes_.push_back(std::make_unique<Node>(*buses_.back(), *sessions_.back(), clock_,
                                              NodeOptions{.name = fmt::format("n{}", i)}));
      (void)nodes_.back()->begin();
    }
    (void)asker_.asker.begin();
    while (!asker_.asker.status() || asker_.asker.status()->armed < nodes)
      turn();
  }

  // Until whoever asked has the rows.
  void give_pane() {
    clock_.now += kSecond;
    const Pane pane = clock_.realtime_ns() / kSecond - 1;
    for (const auto& sessions : sessions_)
      sessions->last->give(pane);
    while (asker_.asker.take().empty())
      turn();
  }

 private:
  void turn() {
    for (const auto& node : nodes_)
      node->turn();
    root_.turn();
    asker_.asker.turn();
    clock_.now += kSecond / 1'000;
  }

  TestFolder folder_{"/var/tmp"};
  TestClock clock_;
  LocalHub hub_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Bus> root_bus_;
  Root root_;
  TestAsker asker_;
  std::vector<std::unique_ptr<Bus>> buses_;
  std::vector<std::unique_ptr<LoadSessions>> sessions_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

void merge(size_t nodes, size_t keys) {
  Load load(nodes, keys);
  load.give_pane();
  std::vector<double> rates;
  for (size_t i = 0; i < kRepetitions; ++i) {
    const int64_t begin = clock_ns(CLOCK_MONOTONIC);
    uint64_t panes = 0;
    while (panes == 0 || seconds_since(begin) < 0.5) {
      load.give_pane();
      ++panes;
    }
    rates.push_back(static_cast<double>(panes * keys * nodes) / seconds_since(begin));
  }
  fmt::print("{{\"what\": \"merge\", \"nodes\": {}, \"keys\": {}, \"rates\": {}}}\n", nodes, keys,
             rates);
}

}  // namespace
}  // namespace clew::cluster

int main() {
  for (const size_t nodes : {10, 100, 1'000, 10'000})
    clew::cluster::install(nodes);
  for (const size_t keys : {100, 1'000, 10'000, 100'000})
    clew::cluster::merge(10, keys);
  clew::cluster::merge(2, 1'000'000);
  clew::cluster::merge(100, 1'000);
  clew::cluster::merge(1'000, 100);
  clew::cluster::merge(10'000, 10);
}

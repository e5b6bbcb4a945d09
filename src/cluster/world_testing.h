// SPDX-License-Identifier: Apache-2.0
// A cluster within a test: nodes whose sessions count by a rule, a root and an asker, on a bus, and
// a time that goes when the test says so.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "aggregate/table_bytes.h"
#include "cluster/asker.h"
#include "cluster/bus.h"
#include "cluster/clock.h"
#include "cluster/digest.h"
#include "cluster/gap_texts.h"
#include "cluster/node.h"
#include "cluster/root.h"
#include "stream/pane.h"

namespace clew::cluster {

class TestClock final : public Clock {
 public:
  [[nodiscard]] int64_t monotonic_ns() const override { return now; }
  [[nodiscard]] int64_t realtime_ns() const override { return now + offset; }
  int64_t now = 1'000 * kSecond;
  int64_t offset = 1'700'000'000 * kSecond;
};

inline aggregate::TableSchema counts_by_node() {
  return {.keys = {{.name = "node", .type = aggregate::ColumnType::String}},
          .aggregates = {{.name = "count", .spec = {.is_signed = false}}}};
}

inline constexpr const char* kFakeText =
    "from e in cluster.Function(\"a!f\") groupby e.host select e.host, count()";

// What was counted, by pane and node.
using Truth = std::map<std::pair<Pane, std::string>, uint64_t>;

// Counts as many hits in a pane as its number's last two digits, and one.
class FakeSession final : public NodeSession {
 public:
  // `place`: points to it while it is there.
  FakeSession(std::string node, const SessionWant& want, const Clock& clock, Truth& truth,
              FakeSession*& place)
      : node_(std::move(node)),
        want_(want),
        clock_(clock),
        truth_(truth),
        pane_(pane_now()),
        place_(place) {
    place_ = this;
    said_.push_back({.kind = FrameKind::Armed, .text = want.text});
  }
  FakeSession(const FakeSession&) = delete;
  FakeSession& operator=(const FakeSession&) = delete;
  ~FakeSession() override {
    if (place_ == this) place_ = nullptr;
  }

  [[nodiscard]] int descriptor() const override { return -1; }
  std::vector<Frame> take() override {
    catch_up();
    return std::exchange(said_, {});
  }
  void stop() override {
    if (is_killed_) return;
    catch_up();
    give();
    said_.push_back({.kind = FrameKind::Ended});
  }
  // What it has counted in its pane is gone.
  void kill() {
    catch_up();
    is_killed_ = true;
    said_.push_back({.kind = FrameKind::Failed, .text = "the session's process was killed"});
  }

 private:
  [[nodiscard]] Pane pane_now() const {
    const stream::Panes panes{.epoch_ns = want_.epoch_ns, .width_ns = want_.width_ns};
    return panes.number_of(clock_.monotonic_ns() + want_.offset_ns);
  }
  void catch_up() {
    for (const Pane now = pane_now(); pane_ < now && !is_killed_; ++pane_)
      give();
  }
  void give() {
    aggregate::Table table(counts_by_node());
    const uint64_t count = static_cast<uint64_t>(pane_ % 100) + 1;
    table.add({aggregate::Value(node_)}, std::vector<uint64_t>{count});
    truth_[{pane_, node_}] += count;
    said_.push_back({.kind = FrameKind::Pane, .pane = pane_, .bytes = to_bytes(table)});
  }

  std::string node_;
  SessionWant want_;
  const Clock& clock_;
  Truth& truth_;
  Pane pane_;
  FakeSession*& place_;
  bool is_killed_ = false;
  std::vector<Frame> said_;
};

class FakeSessions final : public NodeSessions {
 public:
  FakeSessions(std::string node, const Clock& clock, Truth& truth)
      : node_(std::move(node)), clock_(clock), truth_(truth) {}
  Expected<std::unique_ptr<NodeSession>> begin(const SessionWant& want) override {
    if (!refusal.empty()) return fail(ErrorCode::Refused, refusal);
    last = want;
    ++begun;
    return std::make_unique<FakeSession>(node_, want, clock_, truth_, running);
  }
  std::string refusal;
  SessionWant last{};
  FakeSession* running = nullptr;  // The one that was begun last.
  int begun = 0;

 private:
  std::string node_;
  const Clock& clock_;
  Truth& truth_;
};

// A folder for a store, which goes with it. In memory: what is written there is tested, and not how
// fast a disk takes it.
class TestFolder {
 public:
  explicit TestFolder(const std::string& place = "/dev/shm") {
    std::string name = place + "/clew-root-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A node and its end of the bus. To destroy it is to kill it.
struct TestNode {
  TestNode(std::unique_ptr<Bus> end, const std::string& name, const Clock& clock, Truth& truth,
           Labels labels = {}, uint64_t incarnation = 1, const Roles* roles = nullptr,
           const std::string& spill = {})
      : bus(std::move(end)),
        files(spill.empty() ? nullptr : SpillFolder::open(spill, 1 << 20).value()),
        sessions(name, clock, truth),
        node(*bus, sessions, clock,
             {.name = name,
              .labels = std::move(labels),
              .incarnation = {.boot_id = {}, .start_ns = incarnation},
              // With files, these have all but a lone partial.
              .spill_bytes_max = spill.empty() ? size_t{16} << 20 : 1,
              .roles = roles},
             files.get()) {}
  std::unique_ptr<Bus> bus;
  std::unique_ptr<SpillFolder> files;
  FakeSessions sessions;
  Node node;
};

struct TestRoot {
  TestRoot(std::unique_ptr<Bus> end, const std::string& name, const Clock& clock,
           Store* store = nullptr, const Roles* roles = nullptr)
      : bus(std::move(end)), root(*bus, clock, {.name = name, .roles = roles}, store) {}
  std::unique_ptr<Bus> bus;
  Root root;
};

struct TestAsker {
  TestAsker(std::unique_ptr<Bus> end, const Clock& clock, Ask question,
            const SigningKey* key = nullptr)
      : bus(std::move(end)), asker(*bus, clock, "default", std::move(question), key) {}

  void take() {
    for (AnsweredPane& pane : asker.take()) {
      uint64_t& version = versions[pane.pane];
      if (pane.version <= version) ++stale;
      version = pane.version;
      if (pane.lacks_nodes) partial.insert(pane.pane);
      std::erase_if(rows, [&pane](const auto& row) { return row.first.first == pane.pane; });
      for (const aggregate::Row& row : pane.table.rows())
        rows[{pane.pane, std::get<std::string>(row[0])}] = std::get<uint64_t>(row[1]);
    }
  }

  std::unique_ptr<Bus> bus;
  Asker asker;
  Truth rows;  // As they were given last.
  std::map<Pane, uint64_t> versions;
  std::set<Pane> partial;  // That were known to lack a node as they came.
  uint64_t stale = 0;      // Versions that came behind higher ones.
};

// For worlds that are made of one. More of them, or one: CLEW_SEEDS=FIRST-LAST.
inline std::pair<uint64_t, uint64_t> seeds(uint64_t last = 999) {
  const char* const said = std::getenv("CLEW_SEEDS");
  if (said == nullptr) return {0, last};
  char* end = nullptr;
  const uint64_t first = std::strtoull(said, &end, 10);
  return {first, *end == '-' ? std::strtoull(end + 1, nullptr, 10) : first};
}

}  // namespace clew::cluster

// SPDX-License-Identifier: Apache-2.0
// Roots and nodes that ask who asks: on a bus inside one process, with somebody else on it.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/bus_local.h"
#include "cluster/chunks.h"
#include "cluster/names.h"
#include "cluster/world_testing.h"

namespace clew::cluster {
namespace {

using testing::HasSubstr;

class Signed : public testing::Test {
 protected:
  static constexpr int64_t kStep = kSecond / 20;

  Signed()
      : alice_(SigningKey::make().value()),
        mallory_(SigningKey::make().value()),
        roles_(Roles::parse("[keys.alice]\nkey = \"" + text_of(alice_.public_key()) +
                                "\"\nrole = \"web\"\n[roles.web]\nsources = [\"a!*\"]\n"
                                "processes = [\"a\"]\n",
                            "roles.toml")
                   .value()),
        other_(hub_.connect()) {}

  void begin(const Roles* of_root, const Roles* of_node) {
    root_ = std::make_unique<TestRoot>(hub_.connect(), "r1", clock_, nullptr, of_root);
    ASSERT_TRUE(root_->root.begin());
    node_ = std::make_unique<TestNode>(hub_.connect(), "n1", clock_, truth_, Labels{}, 1, of_node);
    ASSERT_TRUE(node_->node.begin());
  }
  static Ask question(const std::string& text = kFakeText) {
    return {.query = "q1", .text = text, .width_ns = kSecond};
  }
  void ask(const SigningKey* key, const std::string& text = kFakeText) {
    asker_ = std::make_unique<TestAsker>(hub_.connect(), clock_, question(text), key);
    ASSERT_TRUE(asker_->asker.begin());
  }
  void step() {
    clock_.now += kStep;
    if (root_) root_->root.turn();
    if (node_) node_->node.turn();
    if (root_) root_->root.turn();
    if (!asker_) return;
    asker_->asker.turn();
    asker_->take();
  }
  void run(int64_t duration) {
    for (const int64_t end = clock_.now + duration; clock_.now < end;)
      step();
  }
  [[nodiscard]] const Status& status() const { return asker_->asker.status().value(); }
  [[nodiscard]] std::string refusal() const {
    const Status& said = status();
    if (said.phase == Phase::Failed) return "root: " + said.reason;
    return said.refusals.empty() ? "" : said.refusals[0].node + ": " + said.refusals[0].reason;
  }
  [[nodiscard]] bool is_armed() const { return !node_->sessions.last.text.empty(); }
  // What a root sends to all nodes; this one may be anybody's.
  void publish(const Control& want) {
    ASSERT_TRUE(other_->publish(Subjects("default").control_of_all(), to_bytes(want)));
  }
  // As it stands in the keys, which all nodes read.
  [[nodiscard]] Control stored() {
    const auto found = other_->get(bucket_of("default"), want_key("q1"));
    return read_as<Control>((*found)->bytes).value();
  }

  LocalHub hub_;
  TestClock clock_;
  Truth truth_;
  SigningKey alice_;
  SigningKey mallory_;
  Roles roles_;
  std::unique_ptr<Bus> other_;
  std::unique_ptr<TestNode> node_;
  std::unique_ptr<TestRoot> root_;
  std::unique_ptr<TestAsker> asker_;
};

TEST_F(Signed, QueriesAreAnsweredForAsLongAsTheirAskerListens) {
  begin(&roles_, &roles_);
  ask(&alice_);
  // Longer than three signatures hold.
  run(3 * kSignedForNs);
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(status().armed, 1);
  EXPECT_EQ(node_->sessions.last.role->name, "web");
  asker_->asker.end();
  run(8 * kSecond);
  EXPECT_TRUE(asker_->asker.is_done());
  EXPECT_EQ(asker_->rows, truth_);
}

TEST_F(Signed, QueriesOfNobodyAreRefusedByTheRootAndByNodes) {
  begin(&roles_, &roles_);
  ask(nullptr);
  run(2 * kSecond);
  EXPECT_THAT(refusal(), HasSubstr("root: the query is not signed"));
  begin(nullptr, &roles_);
  ask(nullptr);
  run(2 * kSecond);
  EXPECT_THAT(refusal(), HasSubstr("n1: the query is not signed"));
  EXPECT_FALSE(is_armed());
}

TEST_F(Signed, QueriesOfAStrangerAreRefusedByTheRootAndByNodes) {
  begin(&roles_, &roles_);
  ask(&mallory_);
  run(2 * kSecond);
  EXPECT_THAT(refusal(), HasSubstr("has no role here"));
  begin(nullptr, &roles_);
  ask(&mallory_);
  run(2 * kSecond);
  EXPECT_THAT(refusal(), HasSubstr("n1: the key"));
  EXPECT_FALSE(is_armed());
}

// Of `who`: of the root, or of a node whose root has no such file.
class Limited : public Signed {
 protected:
  void expect_limits(bool is_by_root) {
    const Roles limited = Roles::parse("[keys.alice]\nkey = \"" + text_of(alice_.public_key()) +
                                           "\"\nrole = \"web\"\n[roles.web]\nsources = [\"a!*\"]\n"
                                           "processes = [\"a\"]\nqueries = 1\ninterval_ms = 1000\n",
                                       "roles.toml")
                              .value();
    begin(is_by_root ? &limited : nullptr, &limited);
    const std::string who = is_by_root ? "root: " : "n1: ";
    Ask fast = question();
    fast.width_ns = kSecond / 100;
    EXPECT_EQ(refusal_of(fast), who +
                                    "role 'web' may ask for intervals of 1000 ms and longer, and "
                                    "not of 10 ms");
    Ask first = question();
    first.query = "q2";
    EXPECT_EQ(refusal_of(first), "");
    const auto running = std::exchange(asker_, nullptr);
    Ask second = question();
    second.query = "q3";
    EXPECT_EQ(refusal_of(second),
              who + "role 'web' may ask 1 query at once, and 1 of this key runs");
  }

 private:
  std::string refusal_of(Ask asked) {
    asker_ = std::make_unique<TestAsker>(hub_.connect(), clock_, std::move(asked), &alice_);
    EXPECT_TRUE(asker_->asker.begin());
    run(2 * kSecond);
    return refusal();
  }
};

TEST_F(Limited, QueriesAreRefusedByTheRoot) {
  expect_limits(true);
}

TEST_F(Limited, QueriesAreRefusedByNodes) {
  expect_limits(false);
}

// One line for each, with the name that the file of roles has.
TEST_F(Signed, QueriesAreLoggedWithWhoAsks) {
  begin(&roles_, &roles_);
  ask(&alice_, std::string(kFakeText) + "\n\t ");
  run(2 * kSecond);
  ask(&mallory_);
  run(2 * kSecond);
  const auto of_root = root_->root.take_notes();
  EXPECT_THAT(of_root, testing::Contains("query q1 is asked by alice (role web): " +
                                         std::string(kFakeText)));
  EXPECT_THAT(
      node_->node.take_notes(),
      testing::Contains("query q1 is wanted by alice (role web): " + std::string(kFakeText)));
}

TEST_F(Signed, QueriesBeyondTheRoleAreRefusedByTheRootAndByNodes) {
  const std::string text = "from e in cluster.Function(\"sshd!*\") groupby e.host select count()";
  begin(&roles_, &roles_);
  ask(&alice_, text);
  run(2 * kSecond);
  EXPECT_THAT(refusal(), HasSubstr("query:1:11: error: role 'web' may not trace 'sshd!*'"));
  begin(nullptr, &roles_);
  ask(&alice_, text);
  run(2 * kSecond);
  EXPECT_THAT(refusal(), HasSubstr("n1: query:1:11: error: role 'web' may not trace 'sshd!*'"));
  EXPECT_FALSE(is_armed());
}

// A root that is somebody else's cannot make nodes do what nobody has signed.
TEST_F(Signed, NodesDoNotBelieveARoot) {
  begin(&roles_, nullptr);
  ask(&alice_);
  run(3 * kSecond);
  const Control right = stored();
  const std::vector<std::function<void(Control&)>> changes = {
      [](Control& want) {
        want.text = "from e in cluster.Function(\"a!other\") groupby e.host select count()";
        want.digest = digest_of(want.text);
      },
      [](Control& want) { want.name_patterns = {"a"}; },
      [](Control& want) { want.query = "q2"; },
      [](Control& want) { want.width_ns = 1'000'000; },
      [](Control& want) { want.signature.expires_ns += 3600 * kSecond; },
      [](Control& want) { want.signature = {}; },
  };
  for (const auto& change : changes) {
    TestNode node(hub_.connect(), "n2", clock_, truth_, {{"zone", "x"}}, 1, &roles_);
    ASSERT_TRUE(other_->put(bucket_of("default"), kWantKey, to_bytes(Want{.revision = 1}),
                            other_->get(bucket_of("default"), kWantKey).value()->revision));
    ASSERT_TRUE(node.node.begin());
    Control wrong = right;
    change(wrong);
    wrong.want_revision = 2;
    publish(wrong);
    node.node.turn();
    EXPECT_EQ(node.sessions.last.text, "");
    publish(right);
  }
  TestNode node(hub_.connect(), "n2", clock_, truth_, {}, 1, &roles_);
  ASSERT_TRUE(node.node.begin());
  Control again = right;
  again.want_revision = 2;
  publish(again);
  node.node.turn();
  EXPECT_EQ(node.sessions.last.text, kFakeText) << "as it was signed";
}

TEST_F(Signed, QueriesThatHaveEndedDoNotBeginAgain) {
  begin(&roles_, &roles_);
  ask(&alice_);
  run(3 * kSecond);
  const Control kept = stored();
  Ask asked = question();
  sign(asked, "default", alice_, clock_.realtime_ns());
  asker_->asker.end();
  run(40 * kSecond);
  ASSERT_TRUE(node_->node.is_done());
  node_->sessions.last = {};
  // By a false root,
  Control again = kept;
  again.want_revision = stored().want_revision;
  publish(again);
  node_->node.turn();
  EXPECT_FALSE(is_armed());
  // and by one who asks.
  ASSERT_TRUE(other_->publish(Subjects("default").ask(), to_bytes(asked)));
  run(3 * kSecond);
  EXPECT_FALSE(is_armed());
}

TEST_F(Signed, QueriesEndWithTheirSignature) {
  begin(nullptr, &roles_);
  ask(&alice_);
  run(3 * kSecond);
  ASSERT_TRUE(is_armed());
  const Control kept = stored();
  // Somebody goes on in the asker's and the root's name, and has no key.
  asker_.reset();
  root_.reset();
  for (int64_t past = 0; past < kSignedForNs + kSecond && !node_->node.is_done(); past += kStep) {
    clock_.now += kStep;
    Control again = kept;
    again.signature.expires_ns += kSecond;
    publish(again);
    node_->node.turn();
  }
  EXPECT_TRUE(node_->node.is_done());
  const int64_t held = clock_.realtime_ns() - kept.signature.issued_ns;
  EXPECT_NEAR(static_cast<double>(held), static_cast<double>(kSignedForNs), 1e9);
}

TEST_F(Signed, QueriesEndWhenTheirKeyHasNoRoleAnyMore) {
  begin(nullptr, &roles_);
  ask(&alice_);
  run(3 * kSecond);
  ASSERT_EQ(status().armed, 1);
  roles_ = Roles();
  run(3 * kSecond);
  EXPECT_TRUE(node_->node.is_done());
  EXPECT_THAT(refusal(), HasSubstr("n1: the key"));
  EXPECT_THAT(refusal(), HasSubstr("has no role here any more"));
}

TEST_F(Signed, QueriesAreTheirAskersAlone) {
  begin(&roles_, &roles_);
  ask(&alice_);
  run(3 * kSecond);
  ASSERT_EQ(status().armed, 1);
  // To end it, to make the root forget rows: by others, and by what the asker said before.
  for (const SigningKey* const key :
       {static_cast<const SigningKey*>(nullptr), static_cast<const SigningKey*>(&mallory_)}) {
    Ask false_ask = question();
    false_ask.is_wanted = false;
    false_ask.root = "r1";
    false_ask.has_rows = 1000;
    if (key != nullptr) sign(false_ask, "default", *key, clock_.realtime_ns());
    ASSERT_TRUE(other_->publish(Subjects("default").ask(), to_bytes(false_ask)));
    run(kSecond);
  }
  EXPECT_EQ(status().phase, Phase::Running);
  asker_->asker.end();
  run(8 * kSecond);
  ASSERT_TRUE(asker_->asker.is_done());
  EXPECT_EQ(asker_->rows, truth_);
  EXPECT_EQ(asker_->asker.lost(), 0U);
}

// As if a server had let it through.
TEST_F(Signed, NodesDoNotSpeakForOthers) {
  begin(nullptr, nullptr);
  ask(nullptr);
  run(3 * kSecond);
  const Subjects subjects("default");
  Partial partial{.query = "q1", .revision = 1, .node = "n1", .pane = 1'700'001'003};
  aggregate::Table table(counts_by_node());
  table.add({aggregate::Value(std::string("n1"))}, std::vector<uint64_t>{1'000'000});
  const Bytes bytes = aggregate::to_bytes(table);
  partial.table = split(bytes).value()[0];
  partial.incarnation.start_ns = 77;
  ASSERT_TRUE(other_->append(subjects.partial("q1", "0", "n2"), "id", to_bytes(partial)));
  ASSERT_TRUE(other_->publish(subjects.beat("n2"), to_bytes(Beat{.node = "n1"})));
  run(3 * kSecond);
  EXPECT_THAT(refusal(), HasSubstr("n2: it speaks in the name of node n1, and is not heard"));
  EXPECT_EQ(status().nodes, 1U);
  asker_->asker.end();
  run(8 * kSecond);
  ASSERT_TRUE(asker_->asker.is_done());
  EXPECT_EQ(asker_->rows, truth_);
}

TEST_F(Signed, QueriesMeanNothingToWhoDoesNotAskForIt) {
  begin(nullptr, nullptr);
  ask(&mallory_, "from e in cluster.Function(\"sshd!*\") groupby e.host select count()");
  run(2 * kSecond);
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(status().armed, 1);
}

}  // namespace
}  // namespace clew::cluster

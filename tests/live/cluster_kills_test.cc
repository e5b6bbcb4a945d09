// SPDX-License-Identifier: Apache-2.0
// A cluster of real processes under load, each of which is killed with -9 at random moments and
// begun anew: servers, roots, nodes, their sessions, whoever asks. Of each batch of calls that a
// victim has made, each node has counted all, and no call twice; but for those of intervals that
// the losses name. CLEW_KILLS says how many kills (tools/soak: 1,000), CLEW_SEED which.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cluster/nats_server.h"
#include "live/batches.h"
#include "live/child.h"
#include "live/server.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;

// A root takes over behind one that is killed within 5 s. The one of `clew run`, which would behind
// twice that, has no store, and does not know what was there before.
constexpr int64_t kRootPauseNs = 7'000'000'000;

struct Kills {
  uint64_t servers = 0;
  uint64_t roots = 0;
  uint64_t nodes = 0;
  uint64_t sessions = 0;
  uint64_t askers = 0;
};

class KilledCluster {
 public:
  KilledCluster(bool has_three, uint64_t seed)
      : random_(seed), has_three_(has_three), victim_name_(fmt::format("kills_{}", getpid())) {
    fs::copy_file(victim_path("batches"), victim_path(victim_name_),
                  fs::copy_options::overwrite_existing);
    victim_ = std::make_unique<Victim>(victim_name_);
    if (has_three_) {
      three_.start();
    } else {
      one_.start();
    }
    add("root", {CLEW_COMMAND, "root", "--store", folder_.file("store"), "--name", "owner"});
    // With the same store: it ends at once while the other one is there, and is begun anew.
    if (has_three_)
      add("standby", {CLEW_COMMAND, "root", "--store", folder_.file("store"), "--name", "standby"});
    for (const std::string name : kNodes)
      add(name, on_machine(name, {CLEW_COMMAND, "node", "--name", name}));
    for (auto& [name, process] : processes_) {
      process->start();
      if (name == "standby") continue;
      EXPECT_TRUE(process->has_said(" is there for ")) << name << text_of_file(process->errors());
    }
    for (const std::string name : kNodes)
      EXPECT_TRUE(processes_.at("root")->has_said("node " + name + " is there")) << said_by_all();
    ask();
    EXPECT_TRUE(asker_->has_said("tracing on")) << said_by_all();
    (void)victim_->ask("begin " + std::to_string(kCallsOfBatch));
  }
  ~KilledCluster() { fs::remove(victim_path(victim_name_)); }
  KilledCluster(const KilledCluster&) = delete;
  KilledCluster& operator=(const KilledCluster&) = delete;

  // Kills so many, one after the other, at random moments.
  void run(uint64_t kills) {
    for (uint64_t i = 0; i < kills; ++i) {
      pass_ms(static_cast<int>(random_() % 400));
      kill_one();
    }
  }
  // All go on for a while, and the question ends.
  void finish() {
    // Twice: the batch with which a node begins is not compared.
    count_on();
    count_on();
    end_ns_ = static_cast<uint64_t>(wall_clock_ns());
    asker_->child().signal(SIGINT);
    EXPECT_EQ(asker_->child().wait_for_end().status, 0) << text_of_file(asker_->errors());
    truth_ = victim_->ask("end");
  }
  void check() const {
    const BatchAnswer answer(text_of_file(asker_->said()));
    const BatchSums sums = check_batches(answer, truth_, end_ns_, said_by_all());
    for (const std::string& lost : answer.lost)
      std::cout << "  lost: " << lost << "\n";
    std::cout << fmt::format("{} batches whole, {} in intervals that are named\n", sums.whole,
                             sums.named);
  }
  [[nodiscard]] const Kills& kills() const { return kills_; }

 private:
  [[nodiscard]] std::string url() const {
    return has_three_ ? three_.url() : "nats://" + one_.place();
  }
  std::unique_ptr<Process> made(const std::string& name, std::vector<std::string> command) {
    command.insert(command.end(), {"--cluster", url(), "--replicas", has_three_ ? "3" : "1"});
    return std::make_unique<Process>(std::move(command), folder_.file(name));
  }
  void add(const std::string& name, std::vector<std::string> command) {
    processes_[name] = made(name, std::move(command));
  }
  void ask() {
    asker_ = made(fmt::format("asker{}", askers_++),
                  {CLEW_COMMAND, "run", question_of_batches(victim_name_), "--json"});
    asker_->start();
  }

  // Until each has told of a whole batch from now on.
  void count_on() {
    begin_all();
    const int64_t begin_ns = wall_clock_ns();
    const auto patience = std::chrono::steady_clock::now() + 2 * kPatience;
    while (!all_count_since(text_of_file(asker_->said()), begin_ns)) {
      pass_ms(250);
      begin_all();  // A root that has found the store taken has ended.
      if (std::chrono::steady_clock::now() < patience) continue;
      ADD_FAILURE() << "not all of them count again\n" << said_by_all();
      return;
    }
  }
  void begin_all() {
    if (down_) server(*down_).start();
    down_.reset();
    if (!asker_->runs()) ask();
    for (auto& [name, process] : processes_) {
      if (!process->runs()) process->start();
    }
  }

  cluster::NatsServer& server(size_t i) { return has_three_ ? three_.server(i) : one_; }

  // Whom, by weight; it is begun anew at once, or at the next kill.
  void kill_one() {
    const bool is_left = random_() % 3 == 0;
    begin_all();
    const uint64_t which = random_() % 100;
    if (which < (has_three_ ? 15 : 25)) {
      down_ = random_() % 3;
      server(*down_).kill();
      ++kills_.servers;
    } else if (which < 45 && wall_clock_ns() - root_killed_ns_ > kRootPauseNs) {
      root_killed_ns_ = wall_clock_ns();
      kill(has_three_ && random_() % 2 == 0 ? "standby" : "root");
      ++kills_.roots;
    } else if (which >= 45 && which < 50) {
      asker_->kill();
      ++kills_.askers;
    } else {
      kill_node(kNodes[random_() % 3], which < 60);
    }
    if (!is_left) begin_all();
  }
  void kill(const std::string& name) { processes_.at(name)->kill(); }
  void kill_node(const std::string& name, bool only_its_session) {
    const pid_t session = session_of_node(processes_.at(name)->child().pid());
    if (only_its_session && session > 0) {
      (void)::kill(session, SIGKILL);
      ++kills_.sessions;
    } else {
      kill(name);
      ++kills_.nodes;
    }
  }

  [[nodiscard]] std::string said_by_all() const {
    std::string all = asker_ ? text_of_file(asker_->errors()) : "";
    for (const auto& [name, process] : processes_)
      all += name + ":\n" + text_of_file(process->errors());
    return all;
  }

  std::mt19937_64 random_;
  bool has_three_;
  std::string victim_name_;
  TemporaryFolder folder_;
  cluster::NatsServer one_{""};
  cluster::NatsCluster three_;
  std::unique_ptr<Victim> victim_;
  std::map<std::string, std::unique_ptr<Process>> processes_;
  std::unique_ptr<Process> asker_;
  int askers_ = 0;
  int64_t root_killed_ns_ = 0;
  std::optional<size_t> down_;
  Kills kills_;
  Numbers truth_;
  uint64_t end_ns_ = 0;
};

uint64_t number_of(const char* name, uint64_t otherwise) {
  const char* const said = std::getenv(name);
  return said == nullptr ? otherwise : std::strtoull(said, nullptr, 10);
}

void kill_all_kinds(bool has_three, uint64_t at_once) {
  if (!cluster::NatsServer::is_installed()) GTEST_SKIP() << "nats-server is not installed";
  if (getuid() != 0) GTEST_SKIP() << "names of hosts need root";
  const uint64_t kills = number_of("CLEW_KILLS", at_once);
  uint64_t seed = number_of("CLEW_SEED", 1);
  for (uint64_t killed = 0; killed < kills; killed += at_once, ++seed) {
    const auto begin = std::chrono::steady_clock::now();
    KilledCluster cluster(has_three, seed);
    cluster.run(at_once);
    cluster.finish();
    cluster.check();
    const Kills& each = cluster.kills();
    std::cout << fmt::format(
        "seed {}: killed {} servers, {} roots, {} nodes, {} sessions, {} askers in {} s\n", seed,
        each.servers, each.roots, each.nodes, each.sessions, each.askers,
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin)
            .count());
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

// A node whose machine has no name of its own is none: its counts would be another one's.
TEST(ClusterKillsOfNodes, LeaveNoneUnderAnotherName) {
  if (getuid() != 0) GTEST_SKIP() << "names of hosts need root";
  const TemporaryFolder folder;
  const std::string hostname = folder.file("hostname");
  std::ofstream(hostname) << "#!/bin/sh\nkill -9 $$\n";
  fs::permissions(hostname, fs::perms::owner_all);
  std::vector<std::string> words = on_machine("a", {"echo", "counts"});
  words.insert(words.begin(), {"env", "PATH=" + folder.path() + ":/usr/bin:/bin"});
  Child node({.arguments = words});
  const Child::End end = node.wait_for_end();
  EXPECT_NE(end.status, 0);
  EXPECT_EQ(end.output, "");
}

TEST(ClusterKillsOfNodes, AreJudgedByName) {
  std::string text;
  for (const char* host : {"a", "b", "elsewhere"}) {
    text += fmt::format(R"({{"interval_begin":7,"interval":1,"host":"{}","batch":3,"calls":{}}})"
                        "\n",
                        host, kCallsOfBatch);
  }
  EXPECT_FALSE(all_count_since(text, 6));
  const std::string third = std::string(text).replace(text.find("elsewhere"), 9, "c");
  EXPECT_TRUE(all_count_since(third, 6));
  EXPECT_FALSE(all_count_since(third, 7));
}

TEST(ClusterKills, LoseNothingButWhatIsNamed) {
  kill_all_kinds(false, 20);
}

TEST(ClusterKills, LoseNothingButWhatIsNamedOnThreeServers) {
  kill_all_kinds(true, 12);
}

}  // namespace
}  // namespace clew::live

// SPDX-License-Identifier: Apache-2.0
// A cluster of real processes, one of which is in a network of its own, with a cable that is pulled
// for a while: a node, a root, one server of three. Nothing is lost but what is named, and nothing
// is counted twice.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/run_program.h"
#include "cluster/nats_server.h"
#include "live/batches.h"
#include "live/child.h"
#include "live/server.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;

bool ran_ip(const std::string& commands) {
  const auto done = run_program({"ip", "-batch", "-"}, commands);
  return done && done->succeeded;
}

// A machine of its own, as far as the network is concerned. It goes with its first process, and
// that with us.
class Island {
 public:
  Island()
      : cable_(fmt::format("vclew{}", getpid())),
        first_({.arguments = {"unshare", "--net", "sh", "-c", "echo ready; exec cat"}}) {
    EXPECT_EQ(first_.read_line().value_or(""), "ready");
    is_there_ = ran_ip(fmt::format("link add {0} type veth peer name eth0 netns {1}\n"
                                   "addr add {2}/24 dev {0}\n"
                                   "link set {0} up\n",
                                   cable_, first_.pid(), ours())) &&
                run_program({"nsenter", "--net=" + network(), "sh", "-c",
                             fmt::format("ip link set lo up && ip addr add {}/24 dev eth0 && "
                                         "ip link set eth0 up",
                                         its())},
                            "")
                    ->succeeded;
  }
  [[nodiscard]] bool is_there() const { return is_there_; }
  static std::string ours() { return "10.78.9.1"; }
  static std::string its() { return "10.78.9.2"; }
  [[nodiscard]] std::string network() const { return fmt::format("/proc/{}/ns/net", first_.pid()); }
  void plug(bool is_in) const {
    EXPECT_TRUE(ran_ip(fmt::format("link set {} {}\n", cable_, is_in ? "up" : "down")));
  }

 private:
  std::string cable_;
  Child first_;
  bool is_there_ = false;
};

class RealCluster : public testing::Test {
 protected:
  RealCluster() : victim_name_(fmt::format("faults_{}", getpid())) {
    fs::copy_file(victim_path("batches"), victim_path(victim_name_),
                  fs::copy_options::overwrite_existing);
  }
  ~RealCluster() override {
    processes_.clear();
    fs::remove(victim_path(victim_name_));
  }
  void SetUp() override {
    if (!cluster::NatsServer::is_installed()) GTEST_SKIP() << "nats-server is not installed";
    if (getuid() != 0) GTEST_SKIP() << "NOT TESTED: networks need root";
    victim_ = std::make_unique<Victim>(victim_name_);
  }

  // `beyond`: who is on the island; of a server, all but it are here.
  void begin(const std::string& beyond, const std::string& lease, bool has_three = false) {
    has_three ? begin_three_servers() : begin_server();
    add("root", beyond == "root",
        {CLEW_COMMAND, "root", "--store", folder_.file("store"), "--lease", lease});
    for (const std::string name : kNodes)
      add(name, beyond == name, on_machine(name, {CLEW_COMMAND, "node", "--name", name}));
    for (auto& [name, process] : processes_) {
      process->start();
      ASSERT_TRUE(process->has_said(" is there for ")) << said_by_all();
    }
    for (const std::string name : kNodes)
      ASSERT_TRUE(processes_.at("root")->has_said("node " + name + " is there")) << said_by_all();
    add("asker", false, {CLEW_COMMAND, "run", question_of_batches(victim_name_), "--json"});
    asker().start();
    ASSERT_TRUE(asker().has_said("tracing on")) << said_by_all();
    (void)victim_->ask("begin " + std::to_string(kCallsOfBatch));
    all_count();
  }

  // From now on.
  void all_count() {
    const int64_t begin_ns = wall_clock_ns();
    EXPECT_TRUE(waits_for([&] { return all_count_since(text_of_file(asker().said()), begin_ns); }))
        << said_by_all();
  }
  template <typename Condition>
  static bool waits_for(const Condition& is_so) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!is_so()) {
      if (std::chrono::steady_clock::now() > end) return false;
      pass_ms(50);
    }
    return true;
  }
  BatchAnswer finish() {
    const auto end_ns = static_cast<uint64_t>(wall_clock_ns());
    asker().child().signal(SIGINT);
    EXPECT_EQ(asker().child().wait_for_end().status, 0) << said_by_all();
    BatchAnswer answer(text_of_file(asker().said()));
    sums_ = check_batches(answer, victim_->ask("end"), end_ns, said_by_all());
    return answer;
  }
  void expect_nothing_lost(const BatchAnswer& answer) const {
    EXPECT_EQ(answer.lost, std::vector<std::string>()) << said_by_all();
    EXPECT_EQ(sums_.named, 0U);
  }

  [[nodiscard]] Process& asker() { return *processes_.at("asker"); }
  [[nodiscard]] std::string said_by_all() const {
    std::string all;
    for (const auto& [name, process] : processes_)
      all += name + ":\n" + text_of_file(process->errors());
    return all;
  }

  std::unique_ptr<Island> island_;
  std::map<std::string, std::unique_ptr<Process>> processes_;
  BatchSums sums_;

 private:
  void begin_server() {
    servers_.push_back(std::make_unique<cluster::NatsServer>(""));
    servers_[0]->listen_on("0.0.0.0");
    servers_[0]->start();
    url_ = "nats://" + servers_[0]->place(Island::ours());
  }
  // The last one is on the island.
  void begin_three_servers() {
    std::vector<int> ports;
    std::vector<std::string> routes;
    std::vector<std::string> urls;
    for (size_t i = 0; i < 3; ++i) {
      servers_.push_back(std::make_unique<cluster::NatsServer>(""));
      const std::string host = i == 2 ? Island::its() : Island::ours();
      ports.push_back(cluster::NatsServer::free_port());
      routes.push_back(fmt::format("nats-route://{}:{}", host, ports[i]));
      urls.push_back("nats://" + servers_[i]->place(host));
    }
    for (size_t i = 0; i < 3; ++i) {
      servers_[i]->listen_on("0.0.0.0");
      if (i == 2) servers_[i]->run_in(island_->network());
      servers_[i]->configure(
          fmt::format("server_name: s{}\nping_interval: \"1s\"\nping_max: 2\n"
                      "cluster {{ name: test, listen: \"0.0.0.0:{}\", no_advertise: true, "
                      "routes: [{}] }}\n",
                      i, ports[i], fmt::join(routes, ", ")));
      servers_[i]->start();
    }
    url_ = fmt::format("{}", fmt::join(urls, ","));
    replicas_ = "3";
  }
  void add(const std::string& name, bool is_beyond, std::vector<std::string> command) {
    if (is_beyond) command.insert(command.begin(), {"nsenter", "--net=" + island_->network()});
    command.insert(command.end(), {"--cluster", url_, "--replicas", replicas_});
    processes_[name] = std::make_unique<Process>(std::move(command), folder_.file(name));
  }

  std::string victim_name_;
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<cluster::NatsServer>> servers_;
  std::string url_;
  std::string replicas_ = "1";
  std::unique_ptr<Victim> victim_;
};

class ClusterPartitions : public RealCluster {
 protected:
  void SetUp() override {
    RealCluster::SetUp();
    if (IsSkipped()) return;
    island_ = std::make_unique<Island>();
    if (!island_->is_there()) GTEST_SKIP() << "NOT TESTED: there are no networks of one's own";
  }
};

TEST_F(ClusterPartitions, LoseNothingOfANodeThatIsCutOffForLessThanItsLease) {
  begin("a", "60s");
  island_->plug(false);
  pass_ms(2'000);
  island_->plug(true);
  all_count();
  expect_nothing_lost(finish());
}

// The probes are out meanwhile; what it had counted before comes.
TEST_F(ClusterPartitions, NameTheIntervalsOfANodeThatIsCutOffForLongerThanItsLease) {
  begin("a", "2s");
  island_->plug(false);
  EXPECT_TRUE(processes_.at("a")->has_said("its probes are taken out")) << said_by_all();
  island_->plug(true);
  all_count();
  const BatchAnswer answer = finish();
  EXPECT_GT(sums_.named, 0U);
  EXPECT_TRUE(answer.gaps.contains("a")) << said_by_all();
  EXPECT_EQ(answer.gaps.size(), 1U) << "the others were reached all the time";
}

TEST_F(ClusterPartitions, LoseNothingWhenTheRootIsCutOff) {
  begin("root", "60s");
  island_->plug(false);
  pass_ms(2'000);
  island_->plug(true);
  all_count();
  expect_nothing_lost(finish());
}

// Whoever was connected to it goes to another one; if it led, the others elect. When it is back
// they elect once more, and what is not sent by the end of the question may be of that time.
TEST_F(ClusterPartitions, LoseNothingWhileOneServerOfThreeIsCutOff) {
  if (std::getenv("CLEW_KILLS") == nullptr)
    GTEST_SKIP() << "only with CLEW_KILLS, as tools/soak: elections take up to a minute";
  begin("", "60s", true);
  island_->plug(false);
  all_count();
  const int64_t plugged_ns = wall_clock_ns();
  island_->plug(true);
  all_count();
  const BatchAnswer answer = finish();
  for (const auto& [host, gaps] : answer.gaps) {
    for (const BatchGap& gap : gaps)
      EXPECT_GT(gap.end_ns, plugged_ns) << host << "\n" << said_by_all();
  }
}

}  // namespace
}  // namespace clew::live

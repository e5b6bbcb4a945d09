// SPDX-License-Identifier: Apache-2.0
// A cluster of real processes under load, each of which is killed with -9 at random moments and
// begun anew: servers, roots, nodes, their sessions, whoever asks. Of each batch of calls that a
// victim has made, each node has counted all, and no call twice; but for those of intervals that
// the losses name. CLEW_KILLS says how many kills (tools/soak: 1,000), CLEW_SEED which.
#include <algorithm>
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
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

#include "base/clock_ns.h"
#include "cluster/nats_server.h"
#include "live/child.h"
#include "live/server.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kCallsOfBatch = 40;
constexpr int64_t kWidthNs = 250'000'000;

// A root takes over behind one that is killed within 5 s. The one of `clew run`, which would behind
// twice that, has no store, and does not know what was there before.
constexpr int64_t kRootPauseNs = 7'000'000'000;

int64_t now_ns() {
  return clock_ns(CLOCK_REALTIME);
}

void pass_ms(int duration) {
  (void)poll(nullptr, 0, duration);
}

std::string text_of_file(const std::string& name) {
  std::ifstream file(name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A process of the cluster. What it says is in files, as nobody reads it meanwhile.
class Process {
 public:
  Process(std::vector<std::string> command, const std::string& name)
      : command_(std::move(command)), name_(name) {}

  void start() {
    std::vector<std::string> words = {
        "sh", "-c", R"(exec "$@" >>")" + said() + R"(" 2>>")" + errors() + "\"", "sh"};
    words.insert(words.end(), command_.begin(), command_.end());
    child_ = std::make_unique<Child>(ChildOptions{.arguments = std::move(words)});
  }
  void kill() { child_.reset(); }  // With -9.
  [[nodiscard]] bool runs() const { return child_ != nullptr && child_->running(); }
  [[nodiscard]] Child& child() { return *child_; }
  [[nodiscard]] std::string said() const { return name_ + ".out"; }
  [[nodiscard]] std::string errors() const { return name_ + ".err"; }
  // Until it says so.
  [[nodiscard]] bool has_said(const std::string& text) const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (text_of_file(errors()).find(text) == std::string::npos) {
      if (std::chrono::steady_clock::now() > end) return false;
      pass_ms(5);
    }
    return true;
  }

 private:
  std::vector<std::string> command_;
  std::string name_;
  std::unique_ptr<Child> child_;
};

struct Gap {
  int64_t begin_ns;
  int64_t end_ns;
};

// What was answered: how many calls of each batch, and which intervals of a node are named as lost.
struct Answer {
  std::map<std::pair<std::string, uint64_t>, uint64_t> calls;  // By host and batch.
  std::map<std::string, std::vector<Gap>> gaps;                // By host.
  bool has_end = false;
  std::vector<std::string> lost;
};

struct Row {
  int64_t begin_ns;  // Of its interval,
  int64_t interval;  // which has this number.
  std::string host;
  uint64_t batch;
  uint64_t calls;
};

// As they were given; and the words behind them, once they are there.
std::vector<Row> rows_of(const std::string& text, std::optional<json>* summary = nullptr) {
  std::vector<Row> rows;
  size_t at = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
    const json line = json::parse(text.substr(at, end - at));
    at = end + 1;
    if (line.contains("summary")) {
      if (summary != nullptr) *summary = line.at("summary");
      continue;
    }
    rows.push_back({.begin_ns = line.at("interval_begin").get<int64_t>(),
                    .interval = line.at("interval").get<int64_t>(),
                    .host = line.at("host").get<std::string>(),
                    .batch = line.at("batch").get<uint64_t>(),
                    .calls = line.at("calls").get<uint64_t>()});
  }
  return rows;
}

// Of an interval that was given again the last rows hold.
Answer answer_of(const std::string& text) {
  Answer answer;
  std::map<std::tuple<int64_t, std::string, uint64_t>, uint64_t> rows;
  int64_t first_ns = 0;
  std::optional<json> summary;
  for (const Row& row : rows_of(text, &summary)) {
    first_ns = row.begin_ns - (row.interval - 1) * kWidthNs;
    rows[{row.begin_ns, row.host, row.batch}] = row.calls;
  }
  answer.has_end = summary.has_value();
  if (summary) answer.lost = summary->at("lost").get<std::vector<std::string>>();
  for (const auto& [where, calls] : rows)
    answer.calls[{std::get<1>(where), std::get<2>(where)}] += calls;
  static const std::regex kNamed("node (\\w+) lacks intervals? (\\d+)(?: to (\\d+))?");
  for (const std::string& lost : answer.lost) {
    std::smatch found;
    if (!std::regex_search(lost, found, kNamed)) continue;
    const int64_t first = std::stoll(found[2]);
    const int64_t last = found[3].matched ? std::stoll(found[3]) : first;
    answer.gaps[found[1]].push_back(
        {.begin_ns = first_ns + (first - 1) * kWidthNs, .end_ns = first_ns + last * kWidthNs});
  }
  return answer;
}

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
    for (const std::string name : {"a", "b", "c"}) {
      add(name, {"unshare", "--uts", "sh", "-c", "hostname " + name + R"(; exec "$@")", "sh",
                 CLEW_COMMAND, "node", "--name", name});
    }
    for (auto& [name, process] : processes_) {
      process->start();
      if (name == "standby") continue;
      EXPECT_TRUE(process->has_said(" is there for ")) << name << text_of_file(process->errors());
    }
    for (const std::string name : {"a", "b", "c"})
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
    begin_all();
    const int64_t begin_ns = now_ns();
    const auto patience = std::chrono::steady_clock::now() + 2 * kPatience;
    while (!all_count_since(begin_ns)) {
      pass_ms(250);
      begin_all();  // A root that has found the store taken has ended.
      if (std::chrono::steady_clock::now() < patience) continue;
      ADD_FAILURE() << "not all of them count again\n" << said_by_all();
      break;
    }
    end_ns_ = static_cast<uint64_t>(now_ns());
    asker_->child().signal(SIGINT);
    EXPECT_EQ(asker_->child().wait_for_end().status, 0) << text_of_file(asker_->errors());
    truth_ = victim_->ask("end");
  }
  void check() { check_answer(answer_of(text_of_file(asker_->said())), "the asker"); }
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
    const std::string query = "from e in cluster.Function(\"" + victim_name_ +
                              "!batch_call\") group by e.host, e.arg0 select new { host = "
                              "e.host, batch = e.arg0, calls = count() } every 250ms";
    asker_ = made(fmt::format("asker{}", askers_++), {CLEW_COMMAND, "run", query, "--json"});
    asker_->start();
  }

  // Each has told of a whole batch of this time.
  [[nodiscard]] bool all_count_since(int64_t begin_ns) const {
    std::set<std::string> hosts;
    for (const Row& row : rows_of(text_of_file(asker_->said()))) {
      if (row.begin_ns > begin_ns && row.calls == kCallsOfBatch) hosts.insert(row.host);
    }
    return hosts.size() == 3;
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
    } else if (which < 45 && now_ns() - root_killed_ns_ > kRootPauseNs) {
      root_killed_ns_ = now_ns();
      kill(has_three_ && random_() % 2 == 0 ? "standby" : "root");
      ++kills_.roots;
    } else if (which >= 45 && which < 50) {
      asker_->kill();
      ++kills_.askers;
    } else {
      kill_node(std::string(1, static_cast<char>('a' + random_() % 3)), which < 60);
    }
    if (!is_left) begin_all();
  }
  void kill(const std::string& name) { processes_.at(name)->kill(); }
  void kill_node(const std::string& name, bool only_its_session) {
    const pid_t session = only_child_of(processes_.at(name)->child().pid());
    if (only_its_session && session > 0) {
      (void)::kill(session, SIGKILL);
      ++kills_.sessions;
    } else {
      kill(name);
      ++kills_.nodes;
    }
  }

  void check_answer(const Answer& answer, const std::string& who) {
    uint64_t whole = 0;
    uint64_t named = 0;
    uint64_t last = truth_.size() - 1;  // In which the question ended.
    while (last > 0 && truth_.at(std::to_string(last)) > end_ns_)
      --last;
    for (const std::string host : {"a", "b", "c"}) {
      std::vector<std::string> wrong;
      const uint64_t whole_before = whole;
      for (uint64_t batch = first_batch_of(answer, host); batch < last; ++batch) {
        const auto found = answer.calls.find({host, batch});
        const uint64_t calls = found == answer.calls.end() ? 0 : found->second;
        const bool is_named = calls < kCallsOfBatch && is_lost(answer, host, batch);
        whole += calls == kCallsOfBatch ? 1 : 0;
        named += is_named ? 1 : 0;
        if (calls != kCallsOfBatch && !is_named)
          wrong.push_back(fmt::format("{} of {}", calls, batch));
      }
      EXPECT_GT(whole, whole_before) << who << ": node " << host << "\n" << said_by_all();
      if (wrong.empty()) continue;
      ADD_FAILURE() << who << ": node " << host << ": " << wrong.size() << " of " << last
                    << " batches have wrong counts: " << wrong.front() << " to " << wrong.back()
                    << ", at " << truth_.at(wrong.front().substr(wrong.front().rfind(' ') + 1))
                    << "\n"
                    << said_by_all();
    }
    for (const std::string& lost : answer.lost)
      std::cout << "  lost: " << lost << "\n";
    std::cout << fmt::format("{}: {} batches whole, {} in intervals that are named\n", who, whole,
                             named);
  }
  // Behind the batch with which it began: it may have heard late of the question.
  [[nodiscard]] uint64_t first_batch_of(const Answer& answer, const std::string& host) const {
    const auto found = answer.calls.lower_bound({host, 0});
    return found == answer.calls.end() || found->first.first != host ? truth_.size()
                                                                     : found->first.second + 1;
  }
  [[nodiscard]] std::string said_by_all() const {
    std::string all = asker_ ? text_of_file(asker_->errors()) : "";
    for (const auto& [name, process] : processes_)
      all += name + ":\n" + text_of_file(process->errors());
    return all;
  }

  // Within an interval that is named, or one beside it: what is counted near the end of one may be
  // in the next one.
  [[nodiscard]] bool is_lost(const Answer& answer, const std::string& host, uint64_t batch) const {
    const auto begin = static_cast<int64_t>(truth_.at(std::to_string(batch)));
    const auto next = truth_.find(std::to_string(batch + 1));
    const int64_t end = next == truth_.end() ? begin : static_cast<int64_t>(next->second);
    const auto gaps = answer.gaps.find(host);
    if (gaps == answer.gaps.end()) return false;
    return std::any_of(gaps->second.begin(), gaps->second.end(), [&](const Gap& gap) {
      return end >= gap.begin_ns - kWidthNs && begin <= gap.end_ns + kWidthNs;
    });
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

TEST(ClusterKills, LoseNothingButWhatIsNamed) {
  kill_all_kinds(false, 20);
}

TEST(ClusterKills, LoseNothingButWhatIsNamedOnThreeServers) {
  kill_all_kinds(true, 20);
}

}  // namespace
}  // namespace clew::live

// SPDX-License-Identifier: Apache-2.0
// Single events and joins by time over a cluster: real nodes, each a machine of its own name, over
// Debian's NATS server. Both see the same program, so each event is there once for each machine.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cluster/nats_server.h"
#include "live/child.h"
#include "live/server.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;

using nlohmann::json;
using testing::HasSubstr;

constexpr uint64_t kOfEach = 100;  // Requests of each of the three clients of `relay`.

class ClusterEvents : public testing::Test {
 protected:
  ClusterEvents() : name_("cluster_events_" + std::to_string(getpid())) {
    fs::copy_file(victim_path("relay"), victim_path(name_));
  }
  ~ClusterEvents() override { fs::remove(victim_path(name_)); }

  void SetUp() override {
    if (!cluster::NatsServer::is_installed()) GTEST_SKIP() << "nats-server is not installed";
    if (getuid() != 0) GTEST_SKIP() << "NOT TESTED: a machine of another name needs root";
    server_ = std::make_unique<cluster::NatsServer>("jetstream { store_dir: FOLDER/js }\n");
    server_->start();
    victim_ = std::make_unique<Victim>(name_);
  }

  [[nodiscard]] std::string url() const { return "nats://" + server_->place(); }
  // Of a machine with this name.
  [[nodiscard]] Child node(const std::string& name) const {
    Child child({.arguments = {"unshare", "--uts", "sh", "-c",
                               fmt::format("hostname {} && exec {} node --name {} --cluster {}",
                                           name, CLEW_COMMAND, name, url())}});
    EXPECT_THAT(child.read_error_line().value_or(""), HasSubstr("node " + name + " is there"));
    return child;
  }
  [[nodiscard]] std::string at(const std::string& function) const {
    return "cluster.Function(\"" + name_ + "!" + function + "\")";
  }
  [[nodiscard]] Tracer trace(const std::string& query) const {
    return Tracer::start(query, {"--cluster", url(), "--wait", "30s"});
  }
  void work() { victim_->ask(fmt::format("run {}", kOfEach)); }
  static std::set<uint64_t> requests() {
    std::set<uint64_t> all;
    for (uint64_t client = 1; client <= 3; ++client) {
      for (uint64_t i = 0; i < kOfEach; ++i)
        all.insert(1'000'000 * client + i);
    }
    return all;
  }
  // Each request once, of the rows of this machine.
  static void expect_requests(const Report& report, const std::string& host) {
    std::set<uint64_t> missing = requests();
    for (const json& row : report.rows) {
      if (row.at("host") != host) continue;
      EXPECT_EQ(missing.erase(row.at("request").get<uint64_t>()), 1U) << row;
    }
    EXPECT_TRUE(missing.empty()) << host << " lacks " << missing.size();
  }
  static void expect_whole(const Report& report, size_t rows) {
    EXPECT_EQ(report.status, 0) << report.error;
    EXPECT_EQ(report.lost(), 0U) << report.summary;
    EXPECT_EQ(report.rows.size(), rows);
  }

  std::string name_;
  std::unique_ptr<cluster::NatsServer> server_;
  std::unique_ptr<Victim> victim_;
};

TEST_F(ClusterEvents, AreRowsOfAllMachines) {
  const Child front = node("front");
  const Child back = node("back");
  Tracer tracer = trace("from e in " + at("front_request") +
                        " select e.host, request = e.arg0, e.time, name = e.function");
  const auto begin = std::chrono::system_clock::now().time_since_epoch();
  work();
  const Report report = tracer.finish();
  expect_whole(report, 2 * requests().size());
  expect_requests(report, "front");
  expect_requests(report, "back");
  int64_t before = 0;
  size_t backwards = 0;
  for (const json& row : report.rows) {
    EXPECT_EQ(row.at("name"), "front_request");
    const int64_t time = row.at("time").get<int64_t>();
    EXPECT_LT(std::chrono::abs(std::chrono::nanoseconds(time) - begin), std::chrono::seconds(30));
    backwards += time < before ? 1 : 0;
    before = time;
  }
  // Where one interval ends and the next one begins.
  EXPECT_LT(backwards, report.rows.size() / 20);
}

// They come while the query goes on, and end it when there are enough.
TEST_F(ClusterEvents, EndWithAsManyAsAreTaken) {
  const Child only = node("front");
  Tracer tracer =
      trace("from e in " + at("front_request") + " select e.host, request = e.arg0 take 7");
  work();
  const Report report = tracer.wait();
  expect_whole(report, 7);
  EXPECT_THAT(report.error, HasSubstr("tracing on 1 of 1 node"));
}

TEST_F(ClusterEvents, AreThereOnceThoughTheServerIsKilled) {
  const Child front = node("front");
  const Child back = node("back");
  Tracer tracer = trace("from e in " + at("front_request") + " select e.host, request = e.arg0");
  work();
  server_->kill();
  server_->start();
  const Report report = tracer.finish();
  expect_whole(report, 2 * requests().size());
  expect_requests(report, "front");
  expect_requests(report, "back");
}

// What stacks are made of is known where the program runs alone.
TEST_F(ClusterEvents, HaveStacksWithNames) {
  const Child only = node("front");
  Tracer tracer = trace("from e in " + at("front_request") +
                        " where e.arg0 == 1000000 select e.host, stack = e.ustack");
  work();
  const Report report = tracer.finish();
  expect_whole(report, 1);
  EXPECT_THAT(report.rows.at(0).at("stack").dump(), HasSubstr("front_request"));
}

// Following work across machines (Fay, 5.2.4): what the first server has asked the second one for,
// by the request's number. Each has a machine of its own.
TEST_F(ClusterEvents, AreJoinedBetweenMachines) {
  const Child front = node("front");
  const Child back = node("back");
  Tracer tracer =
      trace("from f in " + at("front_request") + " join b in " + at("back_request") +
            " on b.arg0 equals f.arg0 within 30s after join a in " + at("front_answer") +
            " on a.arg0 equals b.arg0 within 30s after "
            "where f.host == \"front\" && b.host == \"back\" && a.host == \"front\" "
            "select f.host, other = b.host, request = f.arg0, there = b.time - f.time, "
            "whole = a.time - f.time");
  work();
  const Report report = tracer.finish();
  expect_whole(report, requests().size());
  expect_requests(report, "front");
  for (const json& row : report.rows) {
    EXPECT_EQ(row.at("other"), "back");
    EXPECT_GE(row.at("there").get<int64_t>(), 0) << row;
    EXPECT_GE(row.at("whole").get<int64_t>(), row.at("there").get<int64_t>()) << row;
  }
}

// Pairs of both machines where any may be joined, those of each where they are joined there.
TEST_F(ClusterEvents, AreCountedWhereTheyAreJoined) {
  const Child front = node("front");
  const Child back = node("back");
  const auto pairs = [this](const std::string& keys) {
    Tracer tracer = trace("from f in " + at("front_request") + " join b in " + at("back_request") +
                          " on " + keys +
                          " within 30s groupby f.host select f.host, n = count(), late = "
                          "max(b.time - f.time) ");
    work();
    const Report report = tracer.finish();
    expect_whole(report, 2);
    std::map<std::string, uint64_t> counts;
    for (const json& row : report.rows) {
      counts[row.at("host").get<std::string>()] = row.at("n").get<uint64_t>();
      EXPECT_LT(row.at("late").get<int64_t>(), int64_t{30'000'000'000}) << row;
    }
    return counts;
  };
  const uint64_t all = requests().size();
  EXPECT_EQ(pairs("b.arg0 equals f.arg0"),
            (std::map<std::string, uint64_t>{{"front", 2 * all}, {"back", 2 * all}}));
  EXPECT_EQ(pairs("b.host equals f.host and b.arg0 equals f.arg0"),
            (std::map<std::string, uint64_t>{{"front", all}, {"back", all}}));
}

TEST_F(ClusterEvents, SayWhatDoesNotGo) {
  const Child only = node("front");
  const auto error_of = [this](const std::string& text, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"run", text, "--cluster", url()});
    const Report report = run_clew(more);
    EXPECT_EQ(report.status, 1) << text;
    return report.error;
  };
  EXPECT_THAT(error_of("from b in " + at("back_request") + " join f in " + at("front_request") +
                       " on f -> b select f.arg0"),
              HasSubstr("joins by cause do not go through a cluster yet"));
  EXPECT_THAT(error_of("from f in " + at("front_request") + " select f.arg0 for 3 events"),
              HasSubstr("'for N events' is counted by one session"));
  const Child root({.arguments = {CLEW_COMMAND, "root", "--cluster", url()}});
  EXPECT_THAT(error_of("from f in " + at("front_request") + " select f.arg0", {"--stand", "mine"}),
              HasSubstr("a query that stands gives groups"));
}

}  // namespace
}  // namespace clew::live

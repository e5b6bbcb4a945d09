// SPDX-License-Identifier: Apache-2.0
// Queries of a cluster that stand: they go on without who asked, and what they count is read later,
// fetched by Prometheus, and pushed by OTLP.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "live/child.h"
#include "live/clusters.h"
#include "live/server.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::HasSubstr;

// By the function.
Numbers metrics_in(const std::string& text) {
  Numbers found;
  const std::string begin = "clew_mine_calls_total{name=\"";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(begin)) continue;
    const size_t end = line.find('"', begin.size());
    found[line.substr(begin.size(), end - begin.size())] = std::stoull(line.substr(end + 2));
  }
  return found;
}
// By the function, of requests that a receiver took: one a line.
Numbers pushed_in(const std::string& file) {
  Numbers found;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const auto body = nlohmann::json::parse(line);
    const auto& metric = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0];
    EXPECT_EQ(metric["name"], "clew.mine.calls");
    for (const auto& point : metric["sum"]["dataPoints"]) {
      const std::string name = point["attributes"][0]["value"]["stringValue"];
      found[name] += std::stoull(point["asInt"].get<std::string>());
    }
  }
  return found;
}

// As systemd begins the services that come with Clew; and, where it is installed, what it thinks of
// what they say.
TEST_F(Clusters, AreServicesOfSystemd) {
  const TemporaryFolder folder;
  for (const std::string member : {"root", "node"}) {
    const std::string path = CLEW_EXAMPLES "/cluster/clew-" + member + ".service";
    std::ifstream file(path);
    std::string command;
    while (std::getline(file, command) && !command.starts_with("ExecStart=clew ")) {
    }
    ASSERT_FALSE(command.empty());
    std::filesystem::create_directory(folder.file(member));  // As StateDirectory= does.
    command.replace(0, sizeof "ExecStart=clew", "exec " CLEW_COMMAND " ");
    Child child({.arguments = {"sh", "-c", command},
                 .environment = {"CLEW_CLUSTER=" + url(), "STATE_DIRECTORY=" + folder.file(member),
                                 "CLEW_NODE_OPTIONS=--name n1 --label zone=a"}});
    EXPECT_THAT(child.read_error_line().value_or(""), HasSubstr(" is there for "));
    child.signal(SIGTERM);
    EXPECT_EQ(child.wait_for_end().status, 0);
    if (!present("/usr/bin/systemd-analyze")) continue;
    const Child::End judged =
        Child({.arguments = {"systemd-analyze", "verify", path}}).wait_for_end();
    EXPECT_THAT(judged.error, testing::Not(HasSubstr("ignoring")));
  }
}

// What it gives is read over the bus, from a store or from the root's memory, until it is ended.
TEST_F(Clusters, AStandingQueryGoesOnWithoutWhoAskedIt) {
  const TemporaryFolder folder;
  const Child only = node("n1", "a");
  for (const bool has_store : {true, false}) {
    std::optional<Child> owner(has_store ? root(folder.file("store"))
                                         : begin({"root"}, "is there"));
    // Refused before it is armed, and its name is free.
    const Report events =
        ask("from e in cluster.Function(\"" + name_ + "!*\") select e.pid", {"--stand", "mine"});
    EXPECT_THAT(events.error, HasSubstr("a query that stands gives groups"));
    const Report stood = ask(query(), {"--stand", "mine", "--every", "100ms"});
    EXPECT_THAT(stood.error, HasSubstr("query mine stands on 1 of 1 node"));
    EXPECT_THAT(ask(query(), {"--stand", "mine"}).error,
                HasSubstr("a query 'mine' is there already"));
    const Numbers start = victim_->counts();
    victim_->run(10);
    const auto results = [this](std::vector<std::string> more) {
      more.insert(more.begin(), "results");
      more.insert(more.end(), {"--cluster", url()});
      return run_clew(more);
    };
    const Report listed = results({"--json"});
    ASSERT_EQ(listed.rows.size(), 1U) << listed.error;
    EXPECT_EQ(listed.rows[0].at("state"), "standing");
    EXPECT_THAT(results({"mime"}).error, HasSubstr("did you mean 'mine'?"));
    const Report ended = results({"mine", "--end"});
    EXPECT_EQ(ended.status, 0);
    EXPECT_THAT(ended.error, HasSubstr("query mine has ended with "));
    EXPECT_THAT(results({"mine", "--end"}).error, HasSubstr("query mine had ended before"));
    const Numbers truth = difference(start, victim_->counts());
    victim_->run(10);
    const Report all = results({"mine", "--json"});
    expect_times(all, truth, 1);
    EXPECT_THAT(results({"mine", "--interval", "100000"}).error,
                HasSubstr("interval 100000 of 'mine' is not there: 1 to "));
    Report parts = results({"mine", "--json", "--interval", "1..2"});
    const Report rest = results({"mine", "--json", "--interval", "3.."});
    parts.rows.insert(parts.rows.end(), rest.rows.begin(), rest.rows.end());
    EXPECT_EQ(parts.rows, all.rows);
    EXPECT_THAT(results({"mine", "--interval", "3..2"}).error, HasSubstr("'3..2'"));
    // The next one need not wait for it.
    owner->signal(SIGTERM);
    (void)owner->wait_for_end();
  }
  EXPECT_THAT(ask(query(), {"--stand", "other"}).error, HasSubstr("no root answers at " + url()));
}

TEST_F(Clusters, AreFetchedByPrometheus) {
  const Child only = node("n1", "a");
  Child owner(
      {.arguments = {CLEW_COMMAND, "root", "--cluster", url(), "--prometheus", "127.0.0.1:0"}});
  (void)owner.read_error_line();
  const std::string line = owner.read_error_line().value_or("");
  ASSERT_THAT(line, HasSubstr("metrics are at http://127.0.0.1:"));
  const std::string url_of_metrics = line.substr(line.find("http://"));
  EXPECT_EQ(ask(query(), {"--stand", "mine", "--every", "100ms"}).status, 0);
  const Numbers start = victim_->counts();
  victim_->run(20);
  EXPECT_EQ(run_clew({"results", "mine", "--end", "--cluster", url()}).status, 0);
  const Numbers truth = difference(start, victim_->counts());
  const Child::End fetched =
      Child({.arguments = {"python3", "-c",
                           "import sys, urllib.request\n"
                           "print(urllib.request.urlopen(sys.argv[1]).read().decode())",
                           url_of_metrics}})
          .wait_for_end();
  const Numbers counters = metrics_in(fetched.output);
  size_t compared = 0;
  for (const auto& [name, count] : truth) {
    if (!counters.contains(name)) continue;
    ++compared;
    EXPECT_EQ(counters.at(name), count) << name;
  }
  EXPECT_GT(compared, 10U) << fetched.output;
}

// Each call once, though the receiver refuses, closes connections and is slow.
TEST_F(Clusters, ArePushedToAReceiverOfOtlp) {
  const TemporaryFolder folder;
  const std::string file = folder.file("requests");
  Child receiver({.arguments = {"/usr/bin/python3", CLEW_EXAMPLES "/../tests/otlp/receiver", file,
                                "busy", "gone", "slow", "busy"}});
  const std::string place = "http://127.0.0.1:" + receiver.read_error_line().value_or("");
  Child owner = begin({"root", "--store", folder.file("store"), "--keep", "1h", "--otlp", place,
                       "--otlp-header", "x-tenant=blue"},
                      "a root is there");
  const Child only = node("n1", "a");
  EXPECT_EQ(ask(query(), {"--stand", "mine", "--every", "100ms"}).status, 0);
  const Numbers start = victim_->counts();
  victim_->run(20);
  EXPECT_EQ(run_clew({"results", "mine", "--end", "--cluster", url()}).status, 0);
  const Numbers truth = difference(start, victim_->counts());
  const Report listed = run_clew({"results", "--cluster", url(), "--json"});
  ASSERT_EQ(listed.rows.size(), 1U) << listed.error;
  EXPECT_THAT(listed.rows[0].at("from").get<std::string>(), HasSubstr("-"));
  owner.signal(SIGTERM);
  const Child::End end = owner.wait_for_end();
  EXPECT_EQ(end.status, 0) << end.error;
  const Numbers pushed = pushed_in(file);
  size_t compared = 0;
  for (const auto& [name, count] : truth) {
    if (!pushed.contains(name)) continue;
    ++compared;
    EXPECT_EQ(pushed.at(name), count) << name;
  }
  EXPECT_GT(compared, 10U);
}

}  // namespace
}  // namespace clew::live

// SPDX-License-Identifier: Apache-2.0
// Clusters: real nodes, roots and askers over Debian's NATS server, on one machine. Each node
// traces all of it, so what they count together is known from the victim's own counts.
#include "live/clusters.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "base/run_program.h"
#include "cluster/nats_server.h"
#include "live/child.h"
#include "live/process_state.h"
#include "live/server.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

TEST_F(Clusters, CountWhatAllNodesSee) {
  const ProcessState before = ProcessState::of(victim_->pid());
  const Child first = node("n1", "a");
  const Child second = node("n2", "b");
  Tracer tracer = trace();
  const Numbers start = victim_->counts();
  victim_->run(20);
  const Numbers truth = difference(start, victim_->counts());
  expect_times(tracer.finish(), truth, 2);
  expect_text_equals_file(victim_->pid());
  expect_no_residue(before, victim_->pid());
}

// The fault table of the design: what it has counted is in memory that is not its alone.
TEST_F(Clusters, KeepWhatAProcessThatIsKilledHasCounted) {
  const Child only = node("n1", "a");
  Tracer tracer = trace();
  const Numbers start = victim_->counts();
  victim_->run(20);
  const Numbers truth = difference(start, victim_->counts());
  victim_->child().signal(SIGKILL);
  EXPECT_EQ(victim_->child().wait_for_end().status, 128 + SIGKILL);
  expect_times(tracer.finish(), truth, 1);
}

// A maximum cannot be taken apart again: each interval begins with fresh cells.
TEST_F(Clusters, TellTheMostOfEach) {
  const Child only = node("n1", "a");
  Tracer tracer = Tracer::start("from e in cluster.Function(\"" + name_ +
                                    "!*\") group by e.function select new { name = e.function, "
                                    "calls = count(), most = max(e.tid), least = min(e.tid) }",
                                {"--cluster", url()});
  const Numbers start = victim_->counts();
  victim_->run(20);
  const Numbers truth = difference(start, victim_->counts());
  const Report report = tracer.finish();
  expect_times(report, truth, 1);
  for (const nlohmann::json& row : report.rows)
    EXPECT_EQ(row.at("most"), row.at("least")) << row;
}

// Report::calls() adds them up.
TEST_F(Clusters, GiveEachIntervalOnce) {
  const Child first = node("n1", "a");
  const Child second = node("n2", "b");
  Tracer tracer = trace({"--every", "100ms"});
  const Numbers start = victim_->counts();
  // Two intervals and a bit.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(220);
  while (std::chrono::steady_clock::now() < end)
    victim_->run(5);
  const Numbers truth = difference(start, victim_->counts());
  const Report report = tracer.finish();
  expect_times(report, truth, 2);
  EXPECT_GT(report.rows.back().at("interval"), 1);
}

// An event belongs to the window of its own time, whichever interval its node was in; a window that
// comes again takes the place of the one before.
TEST_F(Clusters, GiveWindowsOfTheTimeOfEvents) {
  const TemporaryFolder folder;
  const Child owner = root(folder.file("store"));
  const Child first = node("n1", "a");
  const Child second = node("n2", "b");
  for (const std::string window : {"tumbling 200ms", "hopping 400ms by 200ms", "session 300ms"}) {
    const uint64_t times = window.starts_with("hopping") ? 2 : 1;
    Tracer tracer = Tracer::start("from e in cluster.Function(\"" + name_ +
                                      "!*\") group by e.function window " + window +
                                      " select new { name = e.function, w = window.start, calls = "
                                      "count(), last = max(e.time) }",
                                  {"--cluster", url(), "--wait", "30s"});
    const Numbers start = victim_->counts();
    const auto begin = std::chrono::system_clock::now().time_since_epoch();
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (std::chrono::steady_clock::now() < end)
      victim_->run(5);
    const Numbers truth = difference(start, victim_->counts());
    Report report = tracer.finish();
    keep_last_versions(report);
    expect_times(report, truth, 2 * times);
    for (const nlohmann::json& row : report.rows) {
      const std::chrono::nanoseconds last(row.at("last").get<int64_t>());
      EXPECT_LT(std::chrono::abs(last - begin), std::chrono::seconds(2)) << row;
      EXPECT_LE(row.at("w").get<int64_t>(), last.count()) << row;
    }
    Report stored = results_of(report, folder.file("store"));
    keep_last_versions(stored);
    expect_times(stored, truth, 2 * times);
  }
}

// The one that has brought the root ends first, and leaves the lead to the other one's.
TEST_F(Clusters, AnswerTwoAtOnce) {
  const Child only = node("n1", "a");
  Tracer first = trace({"--every", "100ms"});
  Tracer second = trace({"--every", "100ms"});
  const Numbers start = victim_->counts();
  victim_->run(10);
  const Numbers middle = victim_->counts();
  expect_times(first.finish(), difference(start, middle), 1);
  victim_->run(10);
  const Numbers truth = difference(start, victim_->counts());
  expect_times(second.finish(), truth, 1);
}

// Each function is called by the one victim alone: all are of one kind, on every machine.
TEST_F(Clusters, TellKindsOfWhatAllNodesSee) {
  const Child first = node("n1", "a");
  const Child second = node("n2", "b");
  Tracer tracer = Tracer::start("var calls = from e in cluster.Function(\"" + name_ +
                                    "!*\") group by e.function, e.pid window tumbling 100ms "
                                    "select e.function, e.pid, window.start, n = count();\n"
                                    "from c in kmeans(3, calls, by function, of pid, value n)",
                                {"--cluster", url(), "--wait", "30s"});
  const Numbers start = victim_->counts();
  victim_->run(20);
  const Numbers truth = difference(start, victim_->counts());
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  size_t compared = 0;
  for (const nlohmann::json& row : report.rows) {
    EXPECT_EQ(row.at("cluster"), 1) << row;
    EXPECT_EQ(row.at("distance"), 0) << row;
    EXPECT_EQ(row.at("centre"), std::to_string(victim_->pid()) + " 100%") << row;
    compared += truth.contains(row.at("function").get<std::string>()) ? 1 : 0;
  }
  EXPECT_GT(compared, 10U);
}

TEST_F(Clusters, AskTheNodesThatHaveTheLabel) {
  const Child first = node("n1", "a");
  const Child second = node("n2", "b");
  Tracer tracer = trace({"--on", "zone=b"});
  const Numbers start = victim_->counts();
  victim_->run(20);
  const Numbers truth = difference(start, victim_->counts());
  expect_times(tracer.finish(), truth, 1);
}

// Its session ends without it, and what the other one counts is there.
TEST_F(Clusters, ANodeThatIsKilledLeavesNothingBehind) {
  const ProcessState before = ProcessState::of(victim_->pid());
  const Child first = node("n1", "a");
  const Child second = node("n2", "b");
  Tracer tracer = trace();
  const FileDescriptor session = session_of(second);
  second.signal(SIGKILL);
  ASSERT_TRUE(ends(session)) << "its session";
  const Numbers start = victim_->counts();
  victim_->run(20);
  const Numbers truth = difference(start, victim_->counts());
  expect_times(tracer.finish(), truth, 1);
  expect_text_equals_file(victim_->pid());
  expect_no_residue(before, victim_->pid());
}

// What is counted meanwhile waits in the nodes.
TEST_F(Clusters, LoseNothingWhenTheServerIsKilled) {
  const Child first = node("n1", "a");
  const Child second = node("n2", "b");
  Tracer tracer = trace();
  const Numbers start = victim_->counts();
  victim_->run(10);
  server_->kill();
  victim_->run(10);
  server_->start();
  victim_->run(10);
  const Numbers truth = difference(start, victim_->counts());
  expect_times(tracer.finish(), truth, 2);
}

TEST_F(Clusters, LoseNothingWhenTheRootIsKilled) {
  const TemporaryFolder folder;
  std::optional<Child> owner(root(folder.file("store")));
  const Child first = node("n1", "a");
  const Child second = node("n2", "b");
  Tracer tracer = trace();
  const Numbers start = victim_->counts();
  victim_->run(10);
  owner->signal(SIGKILL);
  (void)owner->wait_for_end();
  victim_->run(10);
  owner.emplace(root(folder.file("store")));
  victim_->run(10);
  const Numbers truth = difference(start, victim_->counts());
  const Report report = tracer.finish();
  expect_times(report, truth, 2);
  // And later, from the store.
  const std::string store = folder.file("store");
  const std::string name = name_in(report);
  expect_times(results_of(report, store), truth, 2);
  const Report all = run_clew({"results", "--store", store, "--json"});
  ASSERT_EQ(all.rows.size(), 1U) << all.error;
  EXPECT_EQ(all.rows[0].at("query"), name);
  EXPECT_EQ(all.rows[0].at("state"), "done");
  EXPECT_THAT(run_clew({"results", name + "x", "--store", store}).error,
              HasSubstr("did you mean '" + name + "'?"));
}

// Without JetStream, which an old server may not have either.
TEST_F(Clusters, SayThatTheServerKeepsNothing) {
  cluster::NatsServer plain("", cluster::NatsServer::Keeps::Nothing);
  plain.start();
  const std::string at = "nats://" + plain.place();
  const TemporaryFolder folder;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"run", query(), "--cluster", at},
        {"root", "--store", folder.path(), "--cluster", at}}) {
    const Report report = run_clew(command);
    EXPECT_EQ(report.status, 1);
    EXPECT_THAT(report.error, HasSubstr("need 'jetstream' in their configuration"));
  }
  Child node({.arguments = {CLEW_COMMAND, "node", "--name", "n1", "--cluster", at}});
  (void)node.read_error_line();
  EXPECT_THAT(node.read_error_line().value_or(""),
              HasSubstr("need 'jetstream' in their configuration"));
}

// The fault table of the design: the root's disk. What does not fit is told, and waits in the nodes
// until there is room.
TEST_F(Clusters, LoseNothingWhenTheRootsDiskIsFull) {
  if (getuid() != 0) GTEST_SKIP() << "a small disk needs root";
  const TemporaryFolder folder;
  ASSERT_EQ(mount("none", folder.path().c_str(), "tmpfs", 0, "size=1m"), 0);
  const std::string ballast = folder.file("ballast");
  std::optional<Child> owner(root(folder.file("store")));
  {
    const Child first = node("n1", "a");
    Tracer tracer = trace({"--every", "100ms"});
    const Numbers start = victim_->counts();
    victim_->run(10);
    std::ofstream(ballast) << std::string(1 << 20, 'x');
    victim_->run(10);
    std::optional<std::string> line = owner->read_error_line();
    while (line && line->find("full") == std::string::npos)
      line = owner->read_error_line();
    EXPECT_THAT(line.value_or(""), HasSubstr("clew-root.sqlite: database or disk is full"));
    fs::remove(ballast);
    victim_->run(10);
    const Numbers truth = difference(start, victim_->counts());
    expect_times(tracer.finish(), truth, 1);
  }
  owner.reset();
  EXPECT_EQ(umount2(folder.path().c_str(), MNT_DETACH), 0);
}

// The same of the server's.
TEST_F(Clusters, LoseNothingWhenTheServersDiskIsFull) {
  if (getuid() != 0) GTEST_SKIP() << "a small disk needs root";
  const TemporaryFolder folder;
  const TemporaryFolder stores;
  ASSERT_EQ(mount("none", folder.path().c_str(), "tmpfs", 0, "size=3m"), 0);
  server_->kill();
  server_->configure("jetstream { store_dir: " + folder.file("js") + ", max_file: 4G }\n");
  server_->start();
  {
    const Child owner = root(stores.file("store"));
    const Child first = node("n1", "a");
    Tracer tracer = trace({"--every", "100ms"});
    const Numbers start = victim_->counts();
    victim_->run(10);
    const std::string ballast = folder.file("ballast");
    std::ofstream(ballast) << std::string(4 << 20, 'x');
    victim_->run(10);
    fs::remove(ballast);
    server_->kill();
    victim_->run(10);
    server_->start();
    const Numbers truth = difference(start, victim_->counts());
    expect_times(tracer.finish(), truth, 1);
  }
  server_->kill();
  EXPECT_EQ(umount2(folder.path().c_str(), MNT_DETACH), 0);
}

TEST_F(Clusters, SayWhatIsWrong) {
  EXPECT_THAT(ask(query()).error, HasSubstr("no node answers at " + url()));
  const Child only = node("n1", "a");
  EXPECT_THAT(ask(query(), {"--on", "zone=b"}).error, HasSubstr("no node has the label zone=b"));
  const Report refused =
      ask("from e in cluster.Function(\"" + name_ + "!no_such\") select count()");
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.error, HasSubstr("node n1: "));
  EXPECT_THAT(refused.error, HasSubstr("no function 'no_such' in " + name_));
  // A closed port and a host that is none are told apart, by all of them.
  const TemporaryFolder folder;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"run", query()}, {"node"}, {"root", "--store", folder.path()}}) {
    const auto error_at = [&command](const std::string& url) {
      std::vector<std::string> words = command;
      words.insert(words.end(), {"--cluster", url});
      const Report report = run_clew(words);
      EXPECT_EQ(report.status, 1) << url;
      return report.error;
    };
    EXPECT_THAT(error_at("nats://127.0.0.1:1"),
                HasSubstr("nats://127.0.0.1:1: no NATS server listens there"));
    EXPECT_THAT(error_at("nats://no-such-host.invalid:4222"),
                HasSubstr("no machine is known as 'no-such-host.invalid'"));
  }
  EXPECT_THAT(run_clew({"run", query(), "--cluster", "http://127.0.0.1"}).error,
              HasSubstr("nats://"));
  EXPECT_THAT(run_clew({"node", "--cluster", url(), "--name", "a.b"}).error, HasSubstr("a.b"));
}

// What is read is known to the session alone: that of a type, and which process has the module.
TEST_F(Clusters, AnswerWhoMayAskWhat) {
  const TemporaryFolder folder;
  const std::string key = folder.file("alice.key");
  const auto made = run_program({CLEW_COMMAND, "key", key}, "");
  ASSERT_TRUE(made && made->succeeded);
  ASSERT_TRUE(run_program({CLEW_COMMAND, "key", folder.file("eve.key")}, "")->succeeded);
  std::ofstream(folder.file("roles.toml"))
      << "[keys.alice]\n"
      << made->output << "role = \"web\"\n[roles.web]\nsources = [\"" << name_
      << "!*\"]\nprocesses = [\"" << name_ << "\"]\n";
  const Child only =
      begin({"node", "--name", "n1", "--roles", folder.file("roles.toml")}, "node n1 is there");
  Tracer tracer = trace({"--sign", key});
  const Numbers start = victim_->counts();
  victim_->run(20);
  const Numbers truth = difference(start, victim_->counts());
  expect_times(tracer.finish(), truth, 1);
  EXPECT_THAT(ask(query()).error, HasSubstr("node n1: the query is not signed"));
  EXPECT_THAT(ask(query(), {"--sign", folder.file("eve.key")}).error,
              HasSubstr("has no role here"));
  const Report other =
      ask("from e in cluster.Function(\"libc.so.6!read\") select count()", {"--sign", key});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.error, HasSubstr("role 'web' may not trace 'libc.so.6!read'"));
  EXPECT_THAT(
      ask("from e in cluster.Function(\"" + name_ + "!*\") group by str(e.arg0) select count()",
          {"--sign", key})
          .error,
      HasSubstr("role 'web' may not read memory of processes"));
}

// What a server tells whoever connects: this one lets everybody in, on this machine alone.
TEST_F(Clusters, AreLookedAtByTheDoctor) {
  const auto told = run_program({CLEW_COMMAND, "doctor", "--cluster", url()}, "");
  ASSERT_TRUE(told);
  EXPECT_FALSE(told->succeeded);
  EXPECT_THAT(told->output, HasSubstr("PROBLEM  accounts           it lets in whoever connects"));
  EXPECT_THAT(told->output, HasSubstr("ok       tls                it is on this machine"));
  EXPECT_THAT(told->output, HasSubstr("ok       jetstream"));
  const auto shipped = run_program(
      {CLEW_COMMAND, "doctor", "--json", "--cluster", CLEW_EXAMPLES "/cluster/nats-server.conf"},
      "");
  ASSERT_TRUE(shipped);
  EXPECT_TRUE(shipped->succeeded) << shipped->output;
  EXPECT_THAT(shipped->output, HasSubstr("\"check\":\"jetstream-api\""));
}

}  // namespace
}  // namespace clew::live

// SPDX-License-Identifier: Apache-2.0
// To whom events belong: fields and keys by container, unit, control group and user, against the
// counters of victims that are put into groups with the paths that runtimes give them.
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/groups.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using ::testing::HasSubstr;

constexpr const char* kContainerId =
    "4f9d3b1c0a7e5d2286b1c0ffee00aa55993377bb11dd22ee33ff44aa55bb66cc";
constexpr const char* kShownId = "4f9d3b1c0a7e";
constexpr const char* kNoGroup = "no control group can be made here";

class Owners : public testing::Test {
 protected:
  // Each of them in its group, where that can be made.
  bool put_all() {
    return groups_.put(docker_.pid(), fmt::format("docker-{}.scope", kContainerId)) &&
           groups_.put(pod_.pid(),
                       "kubepods.slice/kubepods-pod8f2f6a0c_33d1_4b50_9e1f_5d4b6c7a8e90.slice/"
                       "cri-containerd-" +
                           std::string(64, 'b') + ".scope") &&
           groups_.put(service_.pid(), "system.slice/shop@1.service");
  }

  static uint64_t call(Victim& victim, uint64_t times) {
    const uint64_t before = victim.counts().at("take_parent");
    (void)victim.ask(fmt::format("parents {}", times));
    return victim.counts().at("take_parent") - before;
  }

  // What each has done, by what the query calls it.
  Report count(const std::string& query, const std::vector<std::string>& more = {}) {
    Tracer tracer = Tracer::start(query, more);
    docker_calls_ = call(docker_, 11);
    pod_calls_ = call(pod_, 23);
    service_calls_ = call(service_, 41);
    Report report = tracer.finish();
    EXPECT_EQ(report.status, 0) << report.error;
    return report;
  }

  [[nodiscard]] std::vector<std::string> all_three() const {
    return {"-p", std::to_string(docker_.pid()), "-p", std::to_string(pod_.pid()),
            "-p", std::to_string(service_.pid())};
  }

  [[nodiscard]] Numbers calls_by_container() const {
    return {{kShownId, docker_calls_}, {std::string(12, 'b'), pod_calls_}, {"", service_calls_}};
  }

  Groups groups_;
  Victim docker_{"calls"};
  Victim pod_{"calls"};
  Victim service_{"calls"};
  uint64_t docker_calls_ = 0;
  uint64_t pod_calls_ = 0;
  uint64_t service_calls_ = 0;
};

constexpr const char* kInline = "from e in entry(\"calls!take_parent\") ";
constexpr const char* kSystemCall = "from e in syscall(\"getppid\") ";
constexpr const char* kByContainer =
    "group by e.container select new { name = e.container, calls = count() }";

TEST_F(Owners, CallsAreCountedByContainer) {
  if (!put_all()) GTEST_SKIP() << kNoGroup;
  const Report report = count(std::string(kInline) + kByContainer, all_three());
  EXPECT_EQ(report.calls(), calls_by_container());
}

TEST_F(Owners, SystemCallsAreCountedByContainer) {
  if (geteuid() != 0) GTEST_SKIP() << "root alone sees the kernel's";
  if (!put_all()) GTEST_SKIP() << kNoGroup;
  const Report of_three = count(std::string(kSystemCall) + kByContainer, all_three());
  EXPECT_EQ(of_three.calls(), calls_by_container());
  // Of all processes: others may be in none.
  const Numbers calls = count(std::string(kSystemCall) + kByContainer).calls();
  EXPECT_EQ(calls.at(kShownId), docker_calls_);
  EXPECT_EQ(calls.at(std::string(12, 'b')), pod_calls_);
}

TEST_F(Owners, AConditionLeavesOutTheOthers) {
  if (!put_all()) GTEST_SKIP() << kNoGroup;
  const std::string where = fmt::format("where e.container == \"{}\" ", kShownId);
  const std::string counts = "select new { name = \"x\", calls = count() }";
  const Report counted = count(kInline + where + counts, all_three());
  EXPECT_EQ(counted.calls(), (Numbers{{"x", docker_calls_}}));
  // Each event at the tracer.
  const Report events = count(kInline + where + "select e.container, e.pid", all_three());
  EXPECT_EQ(events.rows.size(), docker_calls_);
  if (geteuid() != 0) return;
  const Report counted_of_all = count(kSystemCall + where + counts);
  EXPECT_EQ(counted_of_all.calls(), (Numbers{{"x", docker_calls_}}));
  const Report events_of_all = count(kSystemCall + where + "select e.container, e.pid");
  EXPECT_EQ(events_of_all.rows.size(), docker_calls_);
}

TEST_F(Owners, UnitAndControlGroupAreThoseOfThePath) {
  if (!put_all()) GTEST_SKIP() << kNoGroup;
  const std::string groups =
      "where e.unit == \"shop@1.service\" group by e.unit, e.cgroup "
      "select new { name = e.cgroup, calls = count() }";
  const std::string path = groups_.path_of("system.slice/shop@1.service");
  const Report of_three = count(kInline + groups, all_three());
  EXPECT_EQ(of_three.calls(), (Numbers{{path, service_calls_}}));
  if (geteuid() != 0) return;
  const Report of_all = count(kSystemCall + groups);
  EXPECT_EQ(of_all.calls(), (Numbers{{path, service_calls_}}));
}

TEST_F(Owners, AGroupThatIsMadeLaterIsAskedForByItsNumber) {
  if (geteuid() != 0) GTEST_SKIP() << "root alone sees the kernel's";
  if (!groups_.are_numbered()) GTEST_SKIP() << "no control groups of version 2";
  Tracer tracer = Tracer::start(std::string(kSystemCall) + kByContainer);
  if (!put_all()) GTEST_SKIP() << kNoGroup;
  const uint64_t calls = call(docker_, 17);
  const Report report = tracer.finish();
  EXPECT_EQ(report.calls().at(kShownId), calls);
}

// A child is in the group of its parent, also one that has ended before it was looked at.
TEST_F(Owners, FollowedChildrenBelongToTheSame) {
  Victim parent("forks");
  if (!groups_.put(parent.pid(), "lxc.payload.shop")) GTEST_SKIP() << kNoGroup;
  Tracer tracer = Tracer::attach(parent.pid(),
                                 "from e in entry(\"forks!traced_work\") group by e.container, "
                                 "e.pid select new { name = e.container, process = e.pid, calls = "
                                 "count() }",
                                 {"--follow"});
  parent.run(1);
  const uint64_t children_calls = parent.ask("children").at("children_work");
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  uint64_t by_children = 0;
  for (const nlohmann::json& row : report.rows) {
    const bool is_child = row.at("process") != parent.pid();
    if (is_child) by_children += row.at("calls").get<uint64_t>();
    EXPECT_EQ(row.at("name"), "shop") << row;
  }
  EXPECT_EQ(by_children, children_calls) << report.summary;
}

TEST_F(Owners, AUserIsWhomTheProcessActsAs) {
  if (geteuid() != 0) GTEST_SKIP() << "root alone can be another user";
  Victim other({.arguments = {victim_path("calls")}, .as_nobody = true}, Victim::Place::Started);
  const std::string pids = fmt::format("e.pid in ({}, {}) ", other.pid(), service_.pid());
  for (const std::string source : {kInline, kSystemCall}) {
    const std::string query = source + "where " + pids + "&& e.user == \"nobody\" group by e.uid " +
                              "select new { name = e.uid, calls = count() }";
    const bool is_inline = source == kInline;
    std::vector<std::string> who;
    if (is_inline) who = {"-p", std::to_string(other.pid()), "-p", std::to_string(service_.pid())};
    Tracer tracer = Tracer::start(query, who);
    const uint64_t calls = call(other, 13);
    (void)call(service_, 29);
    const Report report = tracer.finish();
    ASSERT_EQ(report.rows.size(), 1U) << query << report.error;
    EXPECT_EQ(report.rows[0].at("calls"), calls) << query;
    EXPECT_EQ(report.rows[0].at("name"), 65534) << query;
  }
}

TEST_F(Owners, AFileOfEventsSaysThem) {
  if (!put_all()) GTEST_SKIP() << kNoGroup;
  const std::string file =
      (std::filesystem::temp_directory_path() / fmt::format("clew-owners-{}", getpid())).string();
  const std::string events = std::string(kInline) + "select e.container, e.unit, e.cgroup, e.user";
  std::vector<std::string> more = all_three();
  more.insert(more.end(), {"--spill", file});
  (void)count(events, more);
  const Report read =
      run_clew({"run", "--json", "--from", file, std::string(kInline) + kByContainer});
  EXPECT_EQ(read.status, 0) << read.error;
  EXPECT_EQ(read.calls(), calls_by_container());
  unlink(file.c_str());
}

}  // namespace
}  // namespace clew::live

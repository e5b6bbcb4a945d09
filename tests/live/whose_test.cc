// SPDX-License-Identifier: Apache-2.0
// Processes that are chosen by whose they are: in control groups with the paths that runtimes of
// containers and systemd give them, by user, by command line, and the newest of a name.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/groups.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kId = "4f9d3b1c0a7e5d2286b1c0ffee00aa55993377bb11dd22ee33ff44aa55bb66cc";

class Whose : public testing::Test {
 protected:
  Whose() : name_("whose_" + std::to_string(getpid())) {
    fs::copy_file(fs::path(CLEW_VICTIMS) / "sites", fs::path(CLEW_VICTIMS) / name_);
  }
  ~Whose() override { fs::remove(fs::path(CLEW_VICTIMS) / name_); }

  bool put(pid_t pid, const std::string& path) { return groups_.put(pid, path); }

  [[nodiscard]] std::string calls_by_process() const {
    return "from e in entry(\"" + name_ +
           "!*\") group by e.pid select new { process = e.pid, "
           "calls = count() }";
  }

  // Which processes have counted, of these, while each ran a round.
  std::vector<pid_t> counted(std::vector<Victim*> victims, const std::vector<std::string>& who) {
    Tracer tracer = Tracer::start(calls_by_process(), who);
    for (Victim* victim : victims)
      victim->run(1);
    const Report report = tracer.finish();
    EXPECT_EQ(report.status, 0) << report.error;
    std::vector<pid_t> pids;
    for (const nlohmann::json& row : report.rows)
      pids.push_back(row.at("process").get<pid_t>());
    return pids;
  }

  Groups groups_;
  std::string name_;
};

TEST_F(Whose, AContainersAreThoseInItsGroup) {
  Victim inside(name_);
  Victim outside(name_);
  Victim in_other(name_);
  Victim in_longer(name_);
  const bool is_put = put(inside.pid(), "docker-" + kId + ".scope") &&
                      put(in_other.pid(), "lxc.payload.shop/init.scope") &&
                      put(in_longer.pid(), "lxc.payload.shop-test");
  if (!is_put) GTEST_SKIP() << "no control group can be made here";
  const std::vector<Victim*> all = {&inside, &outside, &in_other, &in_longer};
  EXPECT_EQ(counted(all, {"--container", kId.substr(0, 12)}), std::vector{inside.pid()});
  EXPECT_EQ(counted(all, {"--container", "sho?"}), std::vector{in_other.pid()});
  EXPECT_EQ(counted(all, {"-n", name_, "--container", "shop", "--container", kId}).size(), 2U);
  EXPECT_EQ(counted(all, {"--cgroup", (groups_.root() / "lxc.payload.shop").string()}),
            std::vector{in_other.pid()});
}

TEST_F(Whose, AUnitsAreThoseOfItsService) {
  Victim inside(name_);
  Victim outside(name_);
  if (!put(inside.pid(), "system.slice/shop@1.service"))
    GTEST_SKIP() << "no control group can be made here";
  const std::vector<Victim*> all = {&inside, &outside};
  EXPECT_EQ(counted(all, {"--unit", "shop@1"}), std::vector{inside.pid()});
  EXPECT_EQ(counted(all, {"--unit", "shop@*.service", "-n", name_}), std::vector{inside.pid()});
  const Report wrong = run_clew({"run", "--unit", "shp@1", "-n", name_, calls_by_process()});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.error, HasSubstr("is of the unit 'shp@1'; did you mean 'shop@1'?"));
}

TEST_F(Whose, TheNewestIsTheOneThatBeganLast) {
  Victim first(name_);
  Victim second(name_);
  EXPECT_EQ(counted({&first, &second}, {"--newest", name_}), std::vector{second.pid()});
}

TEST_F(Whose, SystemCallsAreThoseOfItsProcesses) {
  if (geteuid() != 0) GTEST_SKIP() << "root alone sees the kernel's";
  Victim inside(name_);
  Victim outside(name_);
  if (!put(inside.pid(), "libpod-" + kId + ".scope"))
    GTEST_SKIP() << "no control group can be made here";
  Tracer tracer = Tracer::start(
      "from s in syscall(\"read\") group by s.pid select new { process = s.pid, calls = count() }",
      {"--container", kId});
  // The first one ends a call that was there before, and the second one is behind another one.
  for (int round = 0; round < 2; ++round) {
    inside.run(1);
    outside.run(1);
  }
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 1U) << report.error;
  EXPECT_EQ(report.rows[0].at("process"), inside.pid());
}

TEST_F(Whose, WhatNobodyIsIsToldByItsName) {
  const Victim victim(name_);
  const auto error_of = [&](const std::string& option, const std::string& value) {
    const Report report = run_clew({"run", "-n", name_, option, value, calls_by_process()});
    EXPECT_EQ(report.status, 1) << option;
    return report.error;
  };
  EXPECT_THAT(error_of("--user", "no-such-user"), HasSubstr("no user is called 'no-such-user'"));
  EXPECT_THAT(error_of("--user", "4294967000"), HasSubstr("is of the user '4294967000'"));
  EXPECT_THAT(error_of("--cgroup", "/no/such"), HasSubstr("is in the control group '/no/such'"));
  EXPECT_THAT(error_of("--command-line", "--no-such-word"),
              HasSubstr("has in its command line '--no-such-word'"));
  EXPECT_THAT(error_of("--container", "nobody"), HasSubstr("is in a container called 'nobody'"));
  EXPECT_THAT(error_of("--cgroup", "/sys/fs/cgroupless"),
              HasSubstr("is in the control group '/sys/fs/cgroupless'"));
}

// As of a shell's variable without a value: that would be everybody.
TEST_F(Whose, NothingIsNobodys) {
  for (const std::string option :
       {"--container", "--unit", "--cgroup", "--user", "--command-line"}) {
    const Report report = run_clew({"run", option, "", calls_by_process()});
    EXPECT_EQ(report.status, 1) << option;
    EXPECT_THAT(report.error, HasSubstr(option + " wants "));
  }
  for (const std::string option : {"--newest", "--name"}) {
    const Report report = run_clew({"run", option, "", calls_by_process()});
    EXPECT_EQ(report.status, 1) << option;
    EXPECT_THAT(report.error, HasSubstr("the name of a process is not empty"));
  }
}

TEST_F(Whose, FunctionsAreListedOfThoseThatMayBeRead) {
  if (geteuid() != 0) GTEST_SKIP() << "root's processes are others'";
  const Victim victim(name_);
  const Report listed = run_clew({"list", "--json", "--user", "root", name_ + "!main"});
  EXPECT_EQ(listed.status, 0) << listed.error;
  EXPECT_EQ(run_clew({"list", "--json", "--command-line", name_, "main"}).status, 0);
  const Report mixed = run_clew({"run", "-c", "true", "--user", "root", calls_by_process()});
  EXPECT_EQ(mixed.status, 2);
  EXPECT_THAT(mixed.error, HasSubstr("excludes"));
}

}  // namespace
}  // namespace clew::live

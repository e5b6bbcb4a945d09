// SPDX-License-Identifier: Apache-2.0
// clew cluster try: what it shows is so, and nothing of it stays, however it ends.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "cluster/nats_server.h"
#include "live/child.h"
#include "live/process_state.h"
#include "live/server.h"
#include "live/tracer.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

std::string name_of(const fs::path& process) {
  std::string name;
  std::ifstream(process / "comm") >> name;
  return name;
}

// Those that lead to it, its parent first.
std::vector<pid_t> ancestors_of(pid_t pid) {
  std::vector<pid_t> found;
  while (pid > 1 && found.size() < 64) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    std::istringstream behind(text.substr(std::min(text.rfind(')') + 2, text.size())));
    std::string state;
    pid = 0;
    behind >> state >> pid;
    if (pid > 0) found.push_back(pid);
  }
  return found;
}

// The traced programs of this trial.
size_t programs_of(pid_t trial) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    if (name_of(entry.path()) != "shopd") continue;
    const std::vector<pid_t> ancestors = ancestors_of(std::stoi(entry.path().filename()));
    count += std::find(ancestors.begin(), ancestors.end(), trial) != ancestors.end() ? 1 : 0;
  }
  return count;
}

// What trials leave on this machine: programs that belong to none that runs, network devices.
std::multiset<std::string> traces() {
  std::multiset<std::string> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    if (name_of(entry.path()) != "shopd") continue;
    const std::vector<pid_t> ancestors = ancestors_of(std::stoi(entry.path().filename()));
    const bool is_of_one = std::any_of(ancestors.begin(), ancestors.end(), [](pid_t pid) {
      return name_of("/proc/" + std::to_string(pid)) == "clew";
    });
    if (!is_of_one) found.insert("shopd");
  }
  for (const auto& entry : fs::directory_iterator("/sys/class/net"))
    found.insert(entry.path().filename());
  return found;
}

class Trials : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: namespaces need root";
    if (!cluster::NatsServer::is_installed()) GTEST_SKIP() << "nats-server is not installed";
  }
  // Ends one, at the time when its machines are there, by this signal.
  static void end_by(int signal, int status) {
    const std::multiset<std::string> before = traces();
    Child trial({.arguments = {CLEW_COMMAND, "cluster", "try"}});
    while (const auto line = trial.read_line()) {
      if (line->find("All of them are asked") != std::string::npos) break;
    }
    EXPECT_GE(programs_of(trial.pid()), 1U);
    const FileDescriptor world(
        static_cast<int>(syscall(SYS_pidfd_open, only_child_of(trial.pid()), 0)));
    trial.signal(signal);
    EXPECT_EQ(trial.wait_for_end().status, status);
    pollfd one{.fd = world.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(poll(&one, 1, 30'000), 1);
    EXPECT_EQ(traces(), before);
  }
};

// The machines that each interval had in the end.
std::map<std::string, std::set<std::string>> machines_of(const std::string& output) {
  std::map<std::string, std::set<std::string>> intervals;
  std::set<std::string>* current = nullptr;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    std::string second;
    words >> first >> second;
    if (first.empty()) current = nullptr;
    if (first == "interval") (current = &intervals[second])->clear();
    if (current != nullptr && first.size() == 2 && first[0] == 'n') current->insert(first);
  }
  return intervals;
}

TEST_F(Trials, ShowWhatAKilledNodeAndAPulledCableCost) {
  const std::multiset<std::string> before = traces();
  const Child::End trial = clew({"cluster", "try"});
  ASSERT_EQ(trial.status, 0) << trial.error << trial.output;
  EXPECT_EQ(trial.error, "");
  const auto intervals = machines_of(trial.output);
  size_t without_killed = 0;
  for (const auto& [number, machines] : intervals) {
    std::set<std::string> expected = {"n1", "n2", "n3", "n4", "n5"};
    if (machines.count("n3") == 0) {
      expected.erase("n3");
      ++without_killed;
    }
    EXPECT_EQ(machines, expected) << "interval " << number;
  }
  EXPECT_GT(intervals.size(), 4U);
  EXPECT_GE(without_killed, 1U);
  EXPECT_LT(without_killed, intervals.size() - 2);
  EXPECT_THAT(trial.output, HasSubstr("not heard any more"));
  EXPECT_THAT(trial.output, HasSubstr("given once more, whole"));
  EXPECT_EQ(traces(), before);
}

TEST_F(Trials, LeaveNothingBehindWhenInterrupted) {
  end_by(SIGINT, 128 + SIGINT);
}

TEST_F(Trials, LeaveNothingBehindWhenKilled) {
  end_by(SIGKILL, 128 + SIGKILL);
}

TEST_F(Trials, SayWhichPackageIsMissing) {
  for (const auto& [program, package] : std::map<std::string, std::string>{
           {"/usr/sbin/nats-server", "nats-server"}, {"/usr/sbin/ip", "iproute2"}}) {
    Child trial({.arguments = {"unshare", "-m", "sh", "-c",
                               "mount --bind /dev/null " + fs::canonical(program).string() +
                                   " && exec \"$0\" cluster try",
                               CLEW_COMMAND}});
    const Child::End end = trial.wait_for_end();
    EXPECT_EQ(end.status, 1);
    EXPECT_THAT(end.error, HasSubstr("Debian's package '" + package + "'"));
  }
  Child trial({.arguments = {CLEW_COMMAND, "cluster", "try"}, .as_nobody = true});
  EXPECT_THAT(trial.wait_for_end().error, HasSubstr("needs root"));
}

}  // namespace
}  // namespace clew::live

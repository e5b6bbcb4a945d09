// SPDX-License-Identifier: Apache-2.0
// Whose locks a script with uprobes waits for, and how long.
#include "engine/dtrace/uprobe_locks.h"

#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace clew::engine {
namespace {

// A process that holds its own lock, which it may; and that has our files mapped.
class Hoarder {
 public:
  Hoarder() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    const FileDescriptor reader(ends[0]);
    const FileDescriptor writer(ends[1]);
    pid_ = fork();
    if (pid_ == 0) hold_own_lock(writer.get());
    char answer = 0;
    EXPECT_EQ(read(reader.get(), &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
  }
  Hoarder(const Hoarder&) = delete;
  Hoarder& operator=(const Hoarder&) = delete;
  ~Hoarder() {
    (void)kill(pid_, SIGKILL);
    (void)waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  [[noreturn]] static void hold_own_lock(int ready) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    inline_::ProcessLock lock(getpid());
    const auto hold = lock.hold();
    const char answer = hold ? 'y' : 'n';
    if (write(ready, &answer, 1) == 1) pause();
    _exit(1);
  }
  pid_t pid_ = -1;
};

kernel::DEnabling probe_of_this_program(pid_t pid) {
  kernel::DEnabling enabling;
  enabling.probe.kind = kernel::AttachKind::UserEntry;
  enabling.probe.path = "/proc/self/exe";
  enabling.probe.pid = pid;
  enabling.probe.is_everywhere = pid == 0;
  return enabling;
}

TEST(UprobeLocks, OfProcessesThatNobodyNamedAreWaitedForBrieflyHoweverManyTheyAre) {
  const Hoarder first;
  const Hoarder second;
  const Hoarder third;
  std::vector<std::string> told;
  UprobeLocks locks({.tell = [&](const std::string& text) { told.push_back(text); }});
  const auto begin = std::chrono::steady_clock::now();
  const auto held = locks.hold(std::vector{probe_of_this_program(0)});
  EXPECT_TRUE(held) << held.error().message;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  size_t named = 0;
  for (const Hoarder* one : {&first, &second, &third}) {
    for (const std::string& text : told) {
      if (text.find(" changes process " + std::to_string(one->pid())) != std::string::npos) {
        ++named;
        break;
      }
    }
  }
  EXPECT_EQ(named, 3U);
}

TEST(UprobeLocks, OfANamedProcessAreAnErrorWhenTheyAreNotLetGo) {
  const Hoarder hoarder;
  UprobeLocks locks({.timeout = std::chrono::milliseconds(1)});
  const auto held = locks.hold(std::vector{probe_of_this_program(hoarder.pid())});
  ASSERT_FALSE(held);
  EXPECT_NE(held.error().message.find(std::to_string(hoarder.pid())), std::string::npos);
}

TEST(UprobeLocks, AreTriedAgainByWhoHasOtherThingsToDo) {
  const Hoarder hoarder;
  UprobeLocks locks({.timeout = std::chrono::seconds(30)});
  const std::vector probes = {probe_of_this_program(hoarder.pid())};
  const auto early = locks.try_hold(probes, std::chrono::seconds(1));
  ASSERT_TRUE(early) << early.error().message;
  EXPECT_FALSE(*early);
  EXPECT_FALSE(locks.try_hold(probes, std::chrono::seconds(31)));
}

}  // namespace
}  // namespace clew::engine

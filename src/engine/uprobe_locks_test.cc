// SPDX-License-Identifier: Apache-2.0
// Whose locks a script with uprobes waits for, and how long.
#include "engine/uprobe_locks.h"

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace clew::engine {
namespace {

// A process that holds its own lock, which it may; and that has our files mapped.
class Hoarder {
 public:
  // Runs `before` first; nothing is held when that fails.
  explicit Hoarder(const std::function<bool()>& before = [] { return true; }) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    const FileDescriptor reader(ends[0]);
    const FileDescriptor writer(ends[1]);
    pid_ = fork();
    if (pid_ == 0) hold_own_lock(writer.get(), before);
    char answer = 0;
    EXPECT_EQ(read(reader.get(), &answer, 1), 1);
    holds_ = answer == 'y';
  }
  Hoarder(const Hoarder&) = delete;
  Hoarder& operator=(const Hoarder&) = delete;
  ~Hoarder() {
    (void)kill(pid_, SIGKILL);
    (void)waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool holds() const { return holds_; }

 private:
  [[noreturn]] static void hold_own_lock(int ready, const std::function<bool()>& before) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    const bool is_ready = before();
    inline_::ProcessLock lock(getpid());
    const auto hold = lock.hold();
    const char answer = is_ready && hold ? 'y' : 'n';
    if (write(ready, &answer, 1) == 1) pause();
    _exit(1);
  }
  pid_t pid_ = -1;
  bool holds_ = false;
};

// In mounts of our own: an overlay of two file systems, whose devices are made up.
bool map_from_overlay(const std::string& folder) {
  const std::string lower = folder + "/lower";
  const std::string upper = folder + "/upper";
  const auto mount_memory = [](const std::string& at) {
    std::filesystem::create_directory(at);
    return mount("none", at.c_str(), "tmpfs", 0, nullptr) == 0;
  };
  const bool mounted = unshare(CLONE_NEWNS) == 0 &&
                       mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                       mount_memory(lower) && mount_memory(upper);
  if (!mounted) return false;
  for (const char* part : {"/upper/files", "/upper/work", "/both"})
    std::filesystem::create_directory(folder + part);
  std::ofstream(lower + "/code") << std::string(4096, '\xcc');
  const std::string layers =
      "lowerdir=" + lower + ",upperdir=" + upper + "/files,workdir=" + upper + "/work";
  if (mount("none", (folder + "/both").c_str(), "overlay", 0, layers.c_str()) != 0) return false;
  const FileDescriptor file(open((folder + "/both/code").c_str(), O_RDONLY | O_CLOEXEC));
  void* const code = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
  return code != MAP_FAILED;
}

kernel::MachineEnabling probe_of_this_program(pid_t pid) {
  kernel::MachineEnabling enabling;
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
  ASSERT_TRUE(first.holds() && second.holds() && third.holds());
  std::vector<std::string> told;
  UprobeLocks locks({.tell = [&](const std::string& text) { told.push_back(text); }});
  const auto begin = std::chrono::steady_clock::now();
  const auto held = locks.hold(std::vector{probe_of_this_program(0)});
  EXPECT_TRUE(held) << held.error().message;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  size_t named = 0;
  for (const Hoarder* one : {&first, &second, &third}) {
    for (const std::string& text : told) {
      if (text.find(" has been changing process " + std::to_string(one->pid())) !=
          std::string::npos) {
        ++named;
        break;
      }
    }
  }
  EXPECT_EQ(named, 3U);
}

TEST(UprobeLocks, AreOfProcessesWhoseFileHasADeviceOfItsOwn) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: mounts need root";
  std::string folder = std::filesystem::temp_directory_path() / "clew.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  {
    const Hoarder hoarder([&] { return map_from_overlay(folder); });
    if (!hoarder.holds()) {
      std::filesystem::remove_all(folder);
      GTEST_SKIP() << "NOT TESTED: this kernel has no overlay here";
    }
    std::string told;
    UprobeLocks locks({.tell = [&](const std::string& text) { told += text; }});
    kernel::MachineEnabling probe = probe_of_this_program(0);
    probe.probe.path = "/proc/" + std::to_string(hoarder.pid()) + "/root" + folder + "/both/code";
    const auto held = locks.hold(std::vector{probe});
    EXPECT_TRUE(held) << held.error().message;
    EXPECT_NE(told.find(" has been changing process " + std::to_string(hoarder.pid())),
              std::string::npos);
  }
  std::filesystem::remove_all(folder);
}

TEST(UprobeLocks, OfANamedProcessAreAnErrorWhenTheyAreNotLetGo) {
  const Hoarder hoarder;
  ASSERT_TRUE(hoarder.holds());
  UprobeLocks locks({.timeout = std::chrono::milliseconds(1)});
  const auto held = locks.hold(std::vector{probe_of_this_program(hoarder.pid())});
  ASSERT_FALSE(held);
  EXPECT_NE(held.error().message.find(std::to_string(hoarder.pid())), std::string::npos);
}

TEST(UprobeLocks, AreTriedAgainByWhoHasOtherThingsToDo) {
  const Hoarder hoarder;
  ASSERT_TRUE(hoarder.holds());
  UprobeLocks locks({.timeout = std::chrono::seconds(30)});
  const std::vector probes = {probe_of_this_program(hoarder.pid())};
  const auto early = locks.try_hold(probes, std::chrono::seconds(1));
  ASSERT_TRUE(early) << early.error().message;
  EXPECT_FALSE(*early);
  EXPECT_FALSE(locks.try_hold(probes, std::chrono::seconds(31)));
}

}  // namespace
}  // namespace clew::engine

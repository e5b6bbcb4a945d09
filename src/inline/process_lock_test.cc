// SPDX-License-Identifier: Apache-2.0
// The lock of a process, between holders of one program and of two.
#include "inline/process_lock.h"

#include <array>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/process.h"

namespace clew::inline_ {
namespace {

LockWait at_once() {
  return {.timeout = std::chrono::milliseconds(0)};
}

TEST(ProcessLock, KeepsOthersOutUntilItsHolderLetsGo) {
  ProcessLock mine(getpid(), at_once());
  ProcessLock other(getpid(), at_once());
  {
    const auto hold = mine.hold();
    ASSERT_TRUE(hold) << hold.error().message;
    const auto again = mine.hold();
    EXPECT_TRUE(again);
    const auto refused = other.hold();
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("process " + std::to_string(getpid())),
              std::string::npos)
        << refused.error().message;
  }
  EXPECT_TRUE(other.hold());
}

TEST(ProcessLock, TheWaitForItEndsWhenTheSessionIsToStopButNotForWhoLeaves) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const FileDescriptor reader(ends[0]);
  const FileDescriptor writer(ends[1]);
  ASSERT_EQ(write(writer.get(), "x", 1), 1);
  ProcessLock mine(getpid());
  ProcessLock other(getpid(),
                    {.timeout = std::chrono::seconds(60), .stop_descriptor = reader.get()});
  {
    const auto hold = mine.hold();
    ASSERT_TRUE(hold);
    EXPECT_FALSE(other.hold());
  }
  EXPECT_TRUE(other.hold_to_leave());
}

// Those of one session have one time; nobody begins to wait again.
TEST(ProcessLock, WhoLeavesWaitsOnceForAllProcesses) {
  constexpr std::chrono::milliseconds kTime{50};
  const LockWait wait = {.leave_time = std::make_shared<LeaveTime>(kTime)};
  ProcessLock mine(getpid());
  ProcessLock one(getpid(), wait);
  ProcessLock another(getpid(), wait);
  {
    const auto hold = mine.hold();
    ASSERT_TRUE(hold);
    EXPECT_FALSE(one.hold_to_leave());
    EXPECT_EQ(wait.leave_time->left().count(), 0);
    EXPECT_FALSE(one.hold_to_leave());
    EXPECT_FALSE(another.hold_to_leave());
  }
  EXPECT_TRUE(another.hold_to_leave()) << "it is free: nobody has to wait";
}

// Holds the lock of its parent, says so, and waits to be killed.
[[noreturn]] void hold_for_ever(int ready) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  ProcessLock lock(getppid());
  const auto hold = lock.hold();
  const char answer = hold ? 'y' : 'n';
  if (write(ready, &answer, 1) == 1) pause();
  _exit(1);
}

TEST(ProcessLock, GoesWithAHolderThatIsKilled) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);
  const pid_t holder = fork();
  ASSERT_GE(holder, 0);
  if (holder == 0) hold_for_ever(writer.get());
  char answer = 0;
  ASSERT_EQ(read(reader.get(), &answer, 1), 1);
  ASSERT_EQ(answer, 'y');
  ProcessLock mine(getpid(), at_once());
  const auto refused = mine.hold();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(std::to_string(holder)), std::string::npos);
  ASSERT_EQ(kill(holder, SIGKILL), 0);
  ASSERT_EQ(waitpid(holder, nullptr, 0), holder);
  EXPECT_TRUE(mine.hold());
}

TEST(ProcessLock, OfAProcessThatIsGoneIsNotFound) {
  const pid_t gone = fork();
  ASSERT_GE(gone, 0);
  if (gone == 0) _exit(0);
  ASSERT_EQ(waitpid(gone, nullptr, 0), gone);
  ProcessLock lock(gone, at_once());
  const auto refused = lock.hold();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::NotFound);
}

TEST(ProcessLock, IsTriedForAMomentByWhoHasOtherThingsToDo) {
  ProcessLock mine(getpid());
  ProcessLock other(getpid());
  {
    const auto hold = mine.hold();
    ASSERT_TRUE(hold);
    const auto tried = other.try_hold();
    ASSERT_TRUE(tried) << tried.error().message;
    EXPECT_FALSE(*tried);
  }
  const auto tried = other.try_hold();
  ASSERT_TRUE(tried) << tried.error().message;
  EXPECT_TRUE(*tried);
}

// A process that answers with a byte when it is ready, goes on when it is sent one, and is ended
// with the object.
class Other {
 public:
  template <typename Work>
  explicit Other(const Work& work) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
      work(ends[1]);
      _exit(1);
    }
    (void)close(ends[1]);
    talk_ = FileDescriptor(ends[0]);
    char answer = 0;
    EXPECT_EQ(read(talk_.get(), &answer, 1), 1);
    is_ready_ = answer == 'y';
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  ~Other() {
    (void)kill(pid_, SIGKILL);
    (void)waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool is_ready() const { return is_ready_; }
  void go_on() const { EXPECT_EQ(write(talk_.get(), "g", 1), 1); }

 private:
  pid_t pid_ = -1;
  FileDescriptor talk_;
  bool is_ready_ = false;
};

void say(int talk, char answer) {
  if (write(talk, &answer, 1) != 1) _exit(1);
}

void wait_for_word(int talk) {
  char word = 0;
  if (read(talk, &word, 1) != 1) _exit(1);
}

// What it sees itself by is a FIFO without a writer: opening that would wait for ever.
TEST(ProcessLock, OfAProcessThatMountsSomethingOverItsMemoryIsHeldAllTheSame) {
  const std::string folder = testing::TempDir() + "process_lock_" + std::to_string(getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  const std::string fifo = folder + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const Other other([&](int talk) {
    const std::string memory = "/proc/" + std::to_string(getpid()) + "/mem";
    const bool mounted = unshare(CLONE_NEWNS) == 0 &&
                         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         mount(fifo.c_str(), memory.c_str(), nullptr, MS_BIND, nullptr) == 0;
    say(talk, mounted ? 'y' : 'n');
    pause();
  });
  (void)unlink(fifo.c_str());
  (void)rmdir(folder.c_str());
  if (!other.is_ready()) GTEST_SKIP() << "NOT TESTED: no mounts for us";
  ProcessLock mine(other.pid(), at_once());
  const auto hold = mine.hold();
  ASSERT_TRUE(hold) << hold.error().message;
  ProcessLock second(other.pid(), at_once());
  EXPECT_FALSE(second.hold());
}

// Another mount's file would be another lock.
TEST(ProcessLock, IsNotTakenWhenDescriptorsAreFew) {
  const Other other([](int talk) {
    ProcessLock lock(getppid(), at_once());
    const int next = dup(talk);
    (void)close(next);
    const rlimit two_more = {.rlim_cur = static_cast<rlim_t>(next) + 2, .rlim_max = 1024};
    (void)setrlimit(RLIMIT_NOFILE, &two_more);
    const auto refused = lock.hold();
    const bool is_said = !refused && refused.error().code == ErrorCode::Io &&
                         refused.error().message.find("Too many open files") != std::string::npos;
    const rlimit many = {.rlim_cur = 1024, .rlim_max = 1024};
    (void)setrlimit(RLIMIT_NOFILE, &many);
    say(talk, is_said && lock.hold() ? 'y' : 'n');
    pause();
  });
  EXPECT_TRUE(other.is_ready());
}

TEST(ProcessLock, StaysWithItsHolderWhenTheFirstThreadEnds) {
  const Other other([](int talk) {
    std::thread([talk] {
      say(talk, 'y');
      pause();
    }).detach();
    wait_for_word(talk);
    (void)syscall(SYS_exit, 0);  // Of this thread.
  });
  ASSERT_TRUE(other.is_ready());
  ProcessLock mine(other.pid(), at_once());
  ProcessLock second(other.pid(), at_once());
  {
    const auto hold = mine.hold();
    ASSERT_TRUE(hold) << hold.error().message;
    other.go_on();
    while (target::memory_holder(other.pid()) == other.pid())
      std::this_thread::yield();
    EXPECT_FALSE(second.hold());
  }
  const auto hold = second.hold();
  EXPECT_TRUE(hold) << hold.error().message;
}

// The one that has the lowest number ends while the lock is held.
TEST(ProcessLock, StaysWithItsHolderWhenAnotherThreadEndsBehindTheFirst) {
  const Other other([](int talk) {
    std::thread([talk] { wait_for_word(talk); }).detach();
    std::thread([talk] {
      say(talk, 'y');
      pause();
    }).detach();
    (void)syscall(SYS_exit, 0);  // Of this thread.
  });
  ASSERT_TRUE(other.is_ready());
  while (target::memory_holder(other.pid()) == other.pid())
    std::this_thread::yield();
  const pid_t oldest = target::memory_holder(other.pid());
  ProcessLock mine(other.pid(), at_once());
  ProcessLock second(other.pid(), at_once());
  {
    const auto hold = mine.hold();
    ASSERT_TRUE(hold) << hold.error().message;
    other.go_on();
    while (target::memory_holder(other.pid()) == oldest)
      std::this_thread::yield();
    EXPECT_FALSE(second.hold());
  }
  const auto hold = second.hold();
  EXPECT_TRUE(hold) << hold.error().message;
}

}  // namespace
}  // namespace clew::inline_

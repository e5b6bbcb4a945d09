// SPDX-License-Identifier: Apache-2.0
#include "target/end_status.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file_descriptor.h"

namespace clew::target {
namespace {

// A child that waits to be killed, or ends with a status of its own.
class Mortal {
 public:
  explicit Mortal(int exit_status, const char* name = "mortal") : pid_(fork()) {
    if (pid_ == 0) {
      prctl(PR_SET_NAME, name);
      if (exit_status >= 0) _exit(exit_status);
      for (;;)
        pause();
    }
    descriptor_ = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  }

  void kill_by(int signal) const { kill(pid_, signal); }
  void wait_until_dead() const {
    siginfo_t info = {};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  void reap() const { waitpid(pid_, nullptr, 0); }
  [[nodiscard]] std::optional<int> status() const { return end_status(descriptor_.get(), pid_); }

 private:
  pid_t pid_;
  FileDescriptor descriptor_;
};

bool kernel_remembers() {
  utsname name = {};
  uname(&name);
  int major = 0;
  int minor = 0;
  return sscanf(name.release, "%d.%d", &major, &minor) == 2 && major * 100 + minor >= 615;
}

TEST(TheEndOfAProcess, IsNotThereWhileItLives) {
  const Mortal mortal(-1);
  EXPECT_EQ(mortal.status(), std::nullopt);
  mortal.kill_by(SIGKILL);
  mortal.reap();
}

TEST(TheEndOfAProcess, TellsTheSignal) {
  const Mortal mortal(-1);
  mortal.kill_by(SIGTERM);
  mortal.wait_until_dead();
  const auto status = mortal.status();
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(WTERMSIG(*status), SIGTERM);
  mortal.reap();
  const auto reaped = mortal.status();
  ASSERT_EQ(reaped.has_value(), kernel_remembers());
  if (reaped) {
    EXPECT_EQ(*reaped, *status);
  }
}

TEST(TheEndOfAProcess, TellsItsOwnStatus) {
  for (const int expected : {0, 3}) {
    const Mortal mortal(expected);
    mortal.wait_until_dead();
    const auto zombie = mortal.status();
    ASSERT_EQ(zombie.has_value(), expected != 0);
    if (zombie) {
      EXPECT_EQ(WEXITSTATUS(*zombie), expected);
    }
    mortal.reap();
    const auto reaped = mortal.status();
    ASSERT_EQ(reaped.has_value(), kernel_remembers());
    if (reaped) {
      EXPECT_EQ(*reaped, expected << 8);
    }
  }
}

TEST(TheEndOfAProcess, IsToldWhateverItsName) {
  for (const char* const name : {"a\nb", "a) R\nb", "a) b"}) {
    const Mortal mortal(3, name);
    mortal.wait_until_dead();
    EXPECT_EQ(mortal.status(), 3 << 8) << name;
    mortal.reap();
  }
}

}  // namespace
}  // namespace clew::target

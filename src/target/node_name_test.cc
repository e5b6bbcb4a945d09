// SPDX-License-Identifier: Apache-2.0
#include "target/node_name.h"

#include <array>
#include <string>

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace clew::target {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  EXPECT_EQ(gethostname(name.data(), name.size() - 1), 0);
  return name.data();
}

// In a name space of its own, or 0 where that is not allowed.
pid_t child_named(const std::string& name) {
  std::array<int, 2> says{};
  EXPECT_EQ(pipe(says.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool is_named = unshare(CLONE_NEWUTS) == 0 && sethostname(name.data(), name.size()) == 0;
    const char word = is_named ? 'y' : 'n';
    if (write(says[1], &word, 1) == 1) pause();
    _exit(1);
  }
  char word = 'n';
  EXPECT_EQ(read(says[0], &word, 1), 1);
  close(says[0]);
  close(says[1]);
  if (word == 'y') return child;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return 0;
}

TEST(NodeName, IsTheMachinesOrThatOfTheNameSpace) {
  const std::string own = host_name();
  EXPECT_EQ(node_name_of(getpid()), own);
  const pid_t child = child_named("elsewhere");
  if (child == 0) GTEST_SKIP() << "NOT TESTED: a name space needs root";
  EXPECT_EQ(node_name_of(child), "elsewhere");
  EXPECT_EQ(host_name(), own);  // This thread is back.
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(node_name_of(child), "");
}

}  // namespace
}  // namespace clew::target

// SPDX-License-Identifier: Apache-2.0
#include "collect/threads.h"

#include <csignal>
#include <latch>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace clew::collect {
namespace {

TEST(ProcThreads, KnowsWhichThreadsOfAProcessLive) {
  std::latch started(1);
  std::latch may_end(1);
  pid_t tid = 0;
  std::jthread thread([&] {
    tid = gettid();
    started.count_down();
    may_end.wait();
  });
  started.wait();
  ProcThreads threads;
  threads.watch(0, getpid());
  threads.refresh();
  EXPECT_TRUE(threads.alive(0, static_cast<uint32_t>(getpid())));
  EXPECT_TRUE(threads.alive(0, static_cast<uint32_t>(tid)));
  may_end.count_down();
  thread.join();
  // join returns when the kernel clears the thread's id, which may be before /proc forgets it.
  while (access(("/proc/self/task/" + std::to_string(tid)).c_str(), F_OK) == 0) {
    std::this_thread::yield();
  }
  threads.refresh();
  EXPECT_FALSE(threads.alive(0, static_cast<uint32_t>(tid)));
  EXPECT_TRUE(threads.process_alive(0));
}

TEST(ProcThreads, SeesThatAProcessIsGone) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  ProcThreads threads;
  threads.watch(2, child);
  threads.refresh();
  EXPECT_TRUE(threads.process_alive(2));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  threads.refresh();
  EXPECT_FALSE(threads.process_alive(2));
  EXPECT_FALSE(threads.alive(2, static_cast<uint32_t>(child)));
}

TEST(ProcThreads, TakesWhatItDoesNotKnowForAlive) {
  const ProcThreads threads;
  EXPECT_TRUE(threads.alive(5, 1));
  EXPECT_TRUE(threads.process_alive(5));
}

}  // namespace
}  // namespace clew::collect

// SPDX-License-Identifier: Apache-2.0
#include "kernel/attachments.h"

#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "target/no_threads_testing.h"

namespace clew::kernel {
namespace {

// Descriptors that are no attachments end in the same way.
Attachments open_many() {
  constexpr size_t kMany = 100;
  Attachments attachments;
  for (size_t i = 0; i < kMany; ++i)
    attachments.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  return attachments;
}

template <typename End>
bool ends_all(const End& end) {
  Attachments attachments = open_many();
  const int last = attachments.back().get();
  end(attachments);
  return last >= 0 && fcntl(last, F_GETFD) == -1;
}

TEST(Attachments, EndAtOnce) {
  EXPECT_TRUE(ends_all(close_all));
  EXPECT_TRUE(ends_all(end_uprobes));
}

TEST(Attachments, EndWithoutThreads) {
  EXPECT_EXIT(target::end_without_threads([] { return ends_all(close_all); }),
              testing::ExitedWithCode(0), "");
}

TEST(Attachments, EndWithoutProcesses) {
  EXPECT_EXIT(target::end_without_threads([] { return ends_all(end_uprobes); }),
              testing::ExitedWithCode(0), "");
}

TEST(Attachments, EndThoughWhoHoldsThemIsKilled) {
  // Open all the time: its number is none of those that are looked at.
  std::ifstream children(fmt::format("/proc/self/task/{}/children", gettid()));
  if (!children) GTEST_SKIP() << "the kernel does not list children";
  const std::jthread killer([&](const std::stop_token& end) {
    while (!end.stop_requested()) {
      for (pid_t child = 0; children >> child;)
        (void)kill(child, SIGKILL);
      children.clear();
      children.seekg(0);
    }
  });
  constexpr int kRounds = 20;
  for (int i = 0; i < kRounds; ++i)
    EXPECT_TRUE(ends_all(end_uprobes));
}

}  // namespace
}  // namespace clew::kernel

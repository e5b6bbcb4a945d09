// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace clew {
namespace {

class LogFile : public testing::Test {
 protected:
  LogFile() {
    std::string name = testing::TempDir() + "clew-log-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~LogFile() override {
    end_log();
    (void)unlink(path().c_str());
    (void)rmdir(folder_.c_str());
  }
  [[nodiscard]] std::string path() const { return folder_ + "/log"; }
  [[nodiscard]] std::vector<std::string> lines() const {
    std::ifstream file(path());
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);)
      all.push_back(line);
    return all;
  }

  std::string folder_;
};

struct Unprintable {};

}  // namespace
}  // namespace clew

template <>
struct fmt::formatter<clew::Unprintable> : fmt::formatter<int> {
  static auto format(clew::Unprintable /*unused*/, fmt::format_context& context) {
    ADD_FAILURE() << "was formatted";
    return context.out();
  }
};

namespace clew {
namespace {

TEST_F(LogFile, FormatsNothingWhileOff) {
  log_step(1, "{}", Unprintable());
  log_detail(1, "{}", Unprintable());
}

TEST_F(LogFile, HasALineForEachStepAndDetailWithTimeAndProcess) {
  ASSERT_TRUE(log_to_file(path()));
  log_step(1234, "stopped {} threads", 5);
  log_detail(0, "read {}", "/bin/true");
  const auto all = lines();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(std::regex_match(all[0], std::regex(R"(0\.\d{3} s  pid 1234  stopped 5 threads)")));
  EXPECT_TRUE(std::regex_match(all[1], std::regex(R"(0\.\d{3} s  read /bin/true)")));
}

TEST_F(LogFile, KeepsWhatIsThereAndIsForItsOwnerAlone) {
  ASSERT_TRUE(log_to_file(path()));
  log_step(0, "first");
  ASSERT_TRUE(log_to_file(path()));
  log_step(0, "second");
  EXPECT_EQ(lines().size(), 2U);
  struct stat info = {};
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(LogFile, StaysALineWhateverANameHolds) {
  ASSERT_TRUE(log_to_file(path()));
  log_step(0, "read {}", "a\nb\x1b[2J");
  const auto all = lines();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(all[0].ends_with(R"(read a\x0ab\x1b[2J)")) << all[0];
}

TEST_F(LogFile, HasWholeLinesOfAllThreads) {
  constexpr int kThreads = 4;
  constexpr int kLines = 500;
  ASSERT_TRUE(log_to_file(path()));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < kLines; ++i)
        log_step(7, "line {:04} and its end", i);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  const std::regex whole(R"(\d+\.\d{3} s  pid 7  line \d{4} and its end)");
  const auto all = lines();
  EXPECT_EQ(all.size(), size_t{kThreads} * kLines);
  for (const std::string& line : all)
    EXPECT_TRUE(std::regex_match(line, whole)) << line;
}

TEST_F(LogFile, LeavesTheErrorNumberAlone) {
  ASSERT_TRUE(log_to_file(path()));
  errno = ENOTBLK;
  log_step(0, "said");
  EXPECT_EQ(errno, ENOTBLK);
}

TEST_F(LogFile, IsNoLinkNoPipeAndNoFolder) {
  const std::string other = folder_ + "/other";
  ASSERT_EQ(symlink("log", other.c_str()), 0);
  const auto link = log_to_file(other);
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().message, "CLEW_LOG: " + other + ": it is a symbolic link");
  (void)unlink(other.c_str());
  EXPECT_FALSE(log_to_file(folder_));
  EXPECT_FALSE(log_to_file(folder_ + "/none/log"));
  ASSERT_EQ(mkfifo(other.c_str(), 0600), 0);
  EXPECT_FALSE(log_to_file(other));
  (void)unlink(other.c_str());
  const auto device = log_to_file("/dev/null");
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().message, "CLEW_LOG: /dev/null is not a regular file");
  EXPECT_FALSE(is_logged(LogLevel::Steps));
}

TEST_F(LogFile, IsNotSomebodyElses) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give a file away";
  std::ofstream(path()) << "theirs\n";
  ASSERT_EQ(chown(path().c_str(), 65534, 65534), 0);
  const auto opened = log_to_file(path());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message, "CLEW_LOG: " + path() + " belongs to another user");
}

TEST_F(LogFile, HasDetailsThatStandardErrorIsSpared) {
  ASSERT_TRUE(log_to_file(path()));
  testing::internal::CaptureStderr();
  log_to_standard_error(LogLevel::Steps);
  log_detail(0, "in the file alone");
  log_step(0, "in both");
  EXPECT_TRUE(std::regex_match(testing::internal::GetCapturedStderr(),
                               std::regex(R"(0\.\d{3} s  in both\n)")));
  EXPECT_EQ(lines().size(), 2U);
}

TEST_F(LogFile, EndsWithOneWarningWhereNoMoreCanBeWritten) {
  ASSERT_TRUE(log_to_file(path()));
  (void)signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  int ends[2] = {};
  ASSERT_EQ(pipe(ends), 0);
  const int standard_error = dup(STDERR_FILENO);
  (void)dup2(ends[1], STDERR_FILENO);
  log_step(0, "not written");
  log_step(0, "not tried");
  (void)dup2(standard_error, STDERR_FILENO);
  (void)close(standard_error);
  (void)close(ends[1]);
  std::string said(4096, '\0');
  said.resize(static_cast<size_t>(std::max<ssize_t>(0, read(ends[0], said.data(), said.size()))));
  (void)close(ends[0]);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  (void)signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(said, "clew: warning: CLEW_LOG ends here: File too large\n");
  EXPECT_TRUE(lines().empty());
}

}  // namespace
}  // namespace clew

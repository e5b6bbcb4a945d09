// SPDX-License-Identifier: Apache-2.0
#include "target/process.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/proc_file.h"
#include "target/test_support.h"

namespace clew::target {
namespace {

TEST(MemoryMapTest, LinesAreTakenApartWhateverThePathHolds) {
  const auto map = parse_memory_map(
      "00400000-0040b000 r-xp 00001000 fe:01 1234567     /a b/\\012x (y) (deleted)\n"
      "7ffc5e9ae000-7ffc5e9cf000 rw-p 00000000 00:00 0 \n"
      "ffffffffff600000-ffffffffff601000 --xs 00000000 00:00 0                  [vsyscall]\n");
  ASSERT_TRUE(map) << map.error().message;
  ASSERT_EQ(map->size(), 3U);
  const Mapping& first = (*map)[0];
  EXPECT_EQ(first.start, 0x400000U);
  EXPECT_EQ(first.size_bytes(), 0xb000U);
  EXPECT_TRUE(first.readable && !first.writable && first.executable && !first.shared);
  EXPECT_EQ(first.file_offset, 0x1000U);
  EXPECT_EQ(first.device_major, 0xfeU);
  EXPECT_EQ(first.inode, 1234567U);
  EXPECT_EQ(first.path, "/a b/\nx (y)");
  EXPECT_TRUE(first.is_deleted);
  EXPECT_EQ((*map)[1].path, "");
  EXPECT_TRUE((*map)[2].shared);
}

TEST(MemoryMapTest, LinesThatTheKernelCannotHaveWrittenAreErrors) {
  for (const std::string_view text :
       {"garbage\n", "1000-2000\n", "2000-1000 r-xp 0 0:0 0\n", "1000-2000 rwzp 0 0:0 0\n",
        "1000-2000 r-xp 0 0:0\n", "1000-2000 r-xp 0 0:0 0\n1800-3000 r-xp 0 0:0 0\n",
        "11111111111111111-2 r-xp 0 0:0 0\n", "-1000-2000 r-xp 0 0:0 0\n", "\n"}) {
    EXPECT_FALSE(parse_memory_map(text)) << text;
  }
}

// As redis-server is a link to redis-check-rdb.
TEST(ProcessTest, AProgramHasTheNameByWhichItWasStarted) {
  const std::filesystem::path link = std::filesystem::temp_directory_path() /
                                     ("clew_process_test_" + std::to_string(getpid()) + "_bakery");
  std::filesystem::create_symlink(test::fixture("shop"), link);
  {
    const test::Child child({"anything"}, link.string());
    EXPECT_EQ(program_name(read_process(child.pid()).value()), link.filename());
  }
  std::filesystem::remove(link);
  const test::Child child({"/somewhere/else"}, test::fixture("shop"));
  EXPECT_EQ(program_name(read_process(child.pid()).value()), "shop");
  Process hidden;
  hidden.comm = "comm";
  EXPECT_EQ(program_name(hidden), "comm");
}

TEST(ProcessTest, AProcessIsDescribedAsItIs) {
  const test::Child child({"shop: waiting", "two words", ""}, test::fixture("shop"));
  const auto process = read_process(child.pid());
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_EQ(process->pid(), child.pid());
  EXPECT_EQ(process->parent_pid, getpid());
  EXPECT_EQ(process->uid, geteuid());
  EXPECT_EQ(process->comm, "shop");
  EXPECT_EQ(process->arguments, (std::vector<std::string>{"shop: waiting", "two words", ""}));
  EXPECT_EQ(process->executable, std::filesystem::canonical(test::fixture("shop")).string());
  EXPECT_GT(process->incarnation.start_ticks, 0U);
}

TEST(ProcessTest, AProcessIsFoundByItsFileAndByWhatItCallsItself) {
  const test::Child child({"/odd/seller", "x"}, test::fixture("shop"));
  for (const std::string_view pattern : {"shop", "sell?r", "s[h]op*"}) {
    const auto found = find_processes(pattern);
    ASSERT_TRUE(found);
    EXPECT_TRUE(std::any_of(found->begin(), found->end(), [&](const Process& process) {
      return process.pid() == child.pid();
    })) << pattern;
  }
  EXPECT_FALSE(find_processes("[x"));
}

TEST(ProcessTest, ACommWithParenthesesDoesNotForgeFields) {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_NAME, ") R 1 (x) Z 1 1");
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  const auto process = read_process(child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_EQ(process->comm, ") R 1 (x) Z 1 1");
  EXPECT_EQ(process->state, 'T');
  EXPECT_EQ(process->parent_pid, getpid());
}

TEST(ProcessTest, AZombieIsCalledOne) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  const Expected<void> program = check_has_program(child);
  waitpid(child, nullptr, 0);
  ASSERT_FALSE(program);
  EXPECT_NE(program.error().message.find("is a zombie"), std::string::npos);
  EXPECT_TRUE(check_has_program(getpid()));
}

TEST(ProcessTest, APidThatNobodyHasIsNotFound) {
  for (const pid_t pid : {0, -1, 0x3fffffff}) {
    const auto process = read_process(pid);
    ASSERT_FALSE(process);
    EXPECT_EQ(process.error().code, ErrorCode::NotFound);
  }
  EXPECT_EQ(read_modules(0x3fffffff).error().code, ErrorCode::NotFound);
  EXPECT_EQ(read_facts(0x3fffffff).error().code, ErrorCode::NotFound);
  EXPECT_EQ(list_threads(0x3fffffff).error().code, ErrorCode::NotFound);
}

TEST(ProcessTest, EveryThreadIsListed) {
  std::vector<std::thread> threads;
  std::vector<pid_t> expected = {getpid()};
  std::vector<pid_t> ids(3, 0);
  std::atomic<int> running = 0;
  std::atomic<bool> stop = false;
  for (pid_t& id : ids) {
    threads.emplace_back([&] {
      id = gettid();
      ++running;
      stop.wait(false);
    });
  }
  while (running < 3) {
    std::this_thread::yield();
  }
  const auto listed = list_threads(getpid());
  stop = true;
  stop.notify_all();
  for (std::thread& thread : threads) {
    thread.join();
  }
  ASSERT_TRUE(listed);
  expected.insert(expected.end(), ids.begin(), ids.end());
  for (const pid_t id : expected) {
    EXPECT_TRUE(std::binary_search(listed->begin(), listed->end(), id));
  }
}

TEST(FactsTest, WhatSpeaksAgainstTracingIsSeen) {
  const test::Child child({test::fixture("shop")});
  const auto before = read_facts(child.pid());
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_EQ(before->tracer_pid, 0);
  EXPECT_FALSE(before->is_32_bit);
  EXPECT_EQ(before->seccomp, ProcessFacts::Seccomp::Off);
  EXPECT_FALSE(before->namespace_pids.empty());
  EXPECT_EQ(before->root, "/");

  if (ptrace(PTRACE_SEIZE, child.pid(), nullptr, nullptr) != 0) {
    GTEST_SKIP() << "ptrace is not allowed here";
  }
  const auto during = read_facts(child.pid());
  ptrace(PTRACE_DETACH, child.pid(), nullptr, nullptr);
  ASSERT_TRUE(during);
  EXPECT_EQ(during->tracer_pid, getpid());
  EXPECT_EQ(during->incarnation, before->incarnation);
}

TEST(ModulesTest, TheRunningTestFindsItsOwnModulesAndBiases) {
  const auto modules = read_modules(getpid());
  ASSERT_TRUE(modules) << modules.error().message;
  const auto find = [&](uint64_t address) {
    return std::find_if(modules->begin(), modules->end(),
                        [&](const ProcessModule& module) { return module.contains(address); });
  };
  const auto own = find(reinterpret_cast<uint64_t>(&parse_memory_map));
  ASSERT_NE(own, modules->end());
  EXPECT_TRUE(own->is_executable);
  EXPECT_TRUE(own->problem.empty()) << own->problem;

  // The dynamic loader's own word for where libc is.
  void* symbol = dlsym(RTLD_DEFAULT, "getenv");
  Dl_info info{};
  ASSERT_NE(dladdr(symbol, &info), 0);
  const auto libc = find(reinterpret_cast<uint64_t>(symbol));
  ASSERT_NE(libc, modules->end());
  EXPECT_EQ(libc->load_bias, reinterpret_cast<uint64_t>(info.dli_fbase));
  EXPECT_FALSE(libc->is_executable);
  EXPECT_EQ(libc->build_id.size(), 40U);
  EXPECT_TRUE(std::none_of(modules->begin(), modules->end(), [](const ProcessModule& module) {
    return module.path.starts_with("[");
  }));
}

TEST(ModulesTest, AFileThatWasReplacedIsStillReadFromTheProcess) {
  const test::TemporaryDirectory directory;
  const std::string copy = directory.file("shop");
  std::filesystem::copy_file(test::fixture("shop"), copy);
  const test::Child child({copy});
  const auto before = read_modules(child.pid());
  std::filesystem::remove(copy);
  std::filesystem::copy_file(test::fixture("classes"), copy);  // Another program of that name.
  const auto after = read_modules(child.pid());
  ASSERT_TRUE(before && after);
  const auto& first = before->front();
  const auto& second = after->front();
  EXPECT_FALSE(first.is_deleted);
  EXPECT_TRUE(second.is_deleted);
  EXPECT_TRUE(second.is_executable);
  EXPECT_EQ(second.path, first.path);
  EXPECT_EQ(second.build_id, first.build_id);
  EXPECT_EQ(second.load_bias, first.load_bias);
}

TEST(MemoryTest, BytesOfAnotherProcessAreReadOrAnErrorIsGiven) {
  const test::Child child({test::fixture("shop")});
  const auto modules = read_modules(child.pid());
  ASSERT_TRUE(modules);
  std::vector<uint8_t> start(4);
  ASSERT_TRUE(read_memory(child.pid(), modules->front().load_bias, start));
  EXPECT_EQ(start, (std::vector<uint8_t>{0x7f, 'E', 'L', 'F'}));
  EXPECT_FALSE(read_memory(child.pid(), 8, start));
}

}  // namespace
}  // namespace clew::target

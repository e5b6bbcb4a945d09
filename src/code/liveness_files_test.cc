// SPDX-License-Identifier: Apache-2.0
// Liveness of installed files' functions, against what their code does: ways through their blocks
// run with what is dead scrambled (live_path.h).
#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "code/image_text.h"
#include "code/live_path.h"

namespace clew::code {
namespace {

constexpr size_t kFunctionsMax = 250;  // Of a file, spread over it.
constexpr unsigned kPathsOfFunction = 6;
constexpr unsigned kRunsOfPath = 2;
constexpr unsigned kScratch = 0x0fc7;  // rax rcx rdx rsi rdi r8..r11

// Of the child that runs them, in memory that both share.
struct ReportOfFile {
  size_t functions = 0;
  size_t blocks = 0;
  size_t with_scratch = 0;     // Blocks at whose start some register is dead that the ABI lets a
                               // function overwrite,
  size_t with_dead_flags = 0;  // and all flags.
  size_t runs = 0;
  size_t to_trap = 0;
  char problem[200] = {};
};

class FileRunner {
 public:
  FileRunner(const ModuleCode& code, const NoReturn& noreturn, ReportOfFile& report)
      : code_(code), noreturn_(noreturn), flags_(code), report_(report) {}

  void run() {
    const auto count = static_cast<uint32_t>(code_.functions().size());
    const auto step = static_cast<uint32_t>(std::max<size_t>(1, count / kFunctionsMax));
    for (uint32_t function = 0; function < count; function += step) {
      const bool is_part = code_.functions()[function].owner != kNoOwner;
      if (!is_part && report_.problem[0] == 0) run_function(function);
    }
  }

 private:
  void run_function(uint32_t function) {
    const Blocks blocks = find_blocks(code_, function, noreturn_);
    const Liveness liveness = Liveness::by_abi(code_, function, blocks, flags_);
    ++report_.functions;
    for (uint32_t block = 0; block < blocks.blocks().size(); ++block) {
      const Live live = liveness.at_start(block);
      ++report_.blocks;
      report_.with_scratch += (kScratch & ~live.registers.bits()) != 0 ? 1 : 0;
      report_.with_dead_flags += live.flags == 0 ? 1 : 0;
    }
    LivePath path(code_, blocks, liveness, random_);
    for (unsigned i = 0; i < kPathsOfFunction && !blocks.blocks().empty(); ++i) {
      const uint64_t start = random_start(blocks);
      for (unsigned run = 0; path.make(start) && run < kRunsOfPath; ++run)
        run_path(path, start);
    }
  }

  uint64_t random_start(const Blocks& blocks) {
    const Block& block = blocks.blocks()[random_() % blocks.blocks().size()];
    uint64_t start = block.begin;
    while (start < block.last && (random_() & 1) != 0)
      start += code_.at(start)->length;
    return start;
  }

  void run_path(LivePath& path, uint64_t start) {
    const std::string problem = path.run();
    ++report_.runs;
    report_.to_trap += path.came_to_trap() ? 1 : 0;
    if (problem.empty()) return;
    snprintf(report_.problem, sizeof report_.problem, "%s from %lx", problem.c_str(), start);
  }

  const ModuleCode& code_;
  const NoReturn& noreturn_;
  FlagValues flags_;
  ReportOfFile& report_;
  std::mt19937_64 random_{3};
};

class InstalledFileLiveness : public testing::TestWithParam<const char*> {};

TEST_P(InstalledFileLiveness, WhatIsDeadMakesNoDifference) {
  const auto image = target::ModuleImage::read(GetParam());
  ASSERT_TRUE(image) << image.error().message;
  const auto text = text_of(*image);
  ASSERT_TRUE(text);
  const ModuleCode code = analyse(*text);
  const auto slots = noreturn_slots(*image);
  ASSERT_TRUE(slots);
  const NoReturn noreturn(code, *slots);
  auto* report = static_cast<ReportOfFile*>(mmap(
      nullptr, sizeof(ReportOfFile), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(report, MAP_FAILED);
  const pid_t child = fork();
  if (child == 0) {
    FileRunner(code, noreturn, *report).run();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_STREQ(report->problem, "");
  // What merely faults shows little.
  EXPECT_GE(report->to_trap * 4, report->runs * 3);
  // Nor is it enough that all is live.
  EXPECT_GE(report->with_scratch * 2, report->blocks);
  EXPECT_GE(report->with_dead_flags * 20, report->blocks * 19);
  munmap(report, sizeof(ReportOfFile));
}

INSTANTIATE_TEST_SUITE_P(
    Liveness, InstalledFileLiveness,
    testing::Values("/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2",
                    "/lib/x86_64-linux-gnu/libm.so.6", "/lib/x86_64-linux-gnu/libgcc_s.so.1",
                    "/lib/x86_64-linux-gnu/libelf.so.1", "/lib/x86_64-linux-gnu/libdw.so.1",
                    "/lib/x86_64-linux-gnu/liblzma.so.5", "/lib/x86_64-linux-gnu/libzstd.so.1",
                    "/lib/x86_64-linux-gnu/libz.so.1", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                    "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0",
                    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
                    "/usr/lib/x86_64-linux-gnu/libbpf.so.1", "/usr/bin/redis-server",
                    "/usr/bin/lua5.4", "/usr/bin/strace", "/usr/bin/bpftrace", "/usr/bin/ninja",
                    "/usr/sbin/nginx", "/bin/bash"));

}  // namespace
}  // namespace clew::code

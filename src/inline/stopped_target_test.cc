// SPDX-License-Identifier: Apache-2.0
// Processes that change while they are being stopped, or are held: threads that are born, named
// like a line of /proc, killed, or that execute another program.
#include "inline/stopped_target.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <cpuid.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inline/brief_wait.h"
#include "inline/seize.h"
#include "inline/victim.h"

namespace clew::inline_ {
namespace {

using testing_::Victim;

constexpr std::chrono::milliseconds kTimeout{1000};

bool comes_true(const std::function<bool()>& condition) {
  Patience patience(std::chrono::seconds(5));
  while (!condition()) {
    if (patience.is_over()) return false;
    wait_briefly(std::chrono::microseconds(1000));
  }
  return true;
}

// The call that a thread waits in; -1 when it does not.
long current_call(pid_t tid) {
  std::ifstream file("/proc/" + std::to_string(tid) + "/syscall");
  long number = -1;
  return file >> number ? number : -1;
}

// The state letter of a thread, as the line "State:" has it.
char state_of(pid_t tid) {
  std::ifstream file("/proc/" + std::to_string(tid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("State:\t")) return line[sizeof "State:\t" - 1];
  }
  return 'X';
}

// How a child of ours has ended; -1 when nobody says.
int end_of(pid_t pid) {
  int status = -1;
  const bool ended = comes_true([&] { return waitpid(pid, &status, WNOHANG) == pid; });
  return ended ? status : -1;
}

class Stopped : public testing::Test {
 protected:
  StoppedTarget stop() {
    auto target = StoppedTarget::stop(victim_.pid(), kTimeout);
    if (!target) {
      ADD_FAILURE() << target.error().message;
      std::abort();
    }
    return std::move(*target);
  }

  Victim victim_{CLEW_COUNTER_VICTIM};
};

TEST_F(Stopped, ThreadsAreTakenForDeadByNoNameTheyHave) {
  for (const char* const name : {"a\\nb", "a) Z\\nb", "a) Z 1 2"}) {
    victim_.ask(std::string("name ") + name);
    victim_.ask("storm 8");
    for (int i = 0; i < 50; ++i) {
      StoppedTarget target = stop();
      EXPECT_EQ(target.threads().size(), 9U) << name;
    }
    EXPECT_GT(victim_.ask_number("calm"), 0);
    EXPECT_NE(state_of(victim_.pid()), 't') << name;
  }
}

TEST_F(Stopped, AProcessThatIsKilledIsItsParentsToWaitFor) {
  victim_.ask("storm 3");
  {
    StoppedTarget target = stop();
    kill(victim_.pid(), SIGKILL);
  }
  const int status = end_of(victim_.pid());
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST_F(Stopped, AProcessThatIsKilledInACallForUsEndsTheCall) {
  victim_.ask("storm 3");
  // The first thread makes the call, as it stops before the others once in a while.
  bool is_called = false;
  for (int i = 0; i < 1000 && !is_called; ++i) {
    StoppedTarget target = stop();
    ASSERT_TRUE(target.scratch().has_value());
    is_called = target.calling_thread() == victim_.pid();
    if (!is_called) continue;
    std::thread killer([&] {
      EXPECT_TRUE(comes_true([&] { return current_call(victim_.pid()) == SYS_pause; }));
      kill(victim_.pid(), SIGKILL);
    });
    EXPECT_FALSE(target.call({.number = SYS_pause}).has_value());
    killer.join();
  }
  ASSERT_TRUE(is_called);
  const int status = end_of(victim_.pid());
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST_F(Stopped, AnotherThreadsExecGoesOn) {
  for (int i = 0; i < 20; ++i) {
    victim_.ask("storm 16");
    victim_.send("exec_thread");
    for (int stops = 0; stops < 20; ++stops) {
      (void)StoppedTarget::stop(victim_.pid(), kTimeout);
    }
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_EQ(victim_.read_line(), "ready");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(500));
    EXPECT_EQ(victim_.ask("calls 5"), "5");
  }
}

// It waits until somebody waits for the thread that we have stopped, and who seizes it waits for
// it.
TEST_F(Stopped, AThreadThatExecutesIsSeizedBesideOneThatIsStopped) {
  const auto before = target::list_threads(victim_.pid());
  victim_.ask("storm 1");
  const auto threads = target::list_threads(victim_.pid());
  ASSERT_EQ(threads->size(), before->size() + 1);
  const pid_t stopped = threads->back();
  ASSERT_EQ(ptrace(PTRACE_SEIZE, stopped, nullptr, nullptr), 0);
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, stopped, nullptr, nullptr), 0);
  int status = 0;
  ASSERT_EQ(waitpid(stopped, &status, __WALL), stopped);
  victim_.send("exec_thread");
  ASSERT_TRUE(comes_true([&] { return state_of(victim_.pid()) == 'Z'; }));
  const auto left = target::list_threads(victim_.pid());
  ASSERT_EQ(left->size(), 3U);
  {
    const std::array taken = {stopped};
    const Seizing seizing(victim_.pid());
    (void)seizing.seize(left->back(), 0, taken);
  }
  EXPECT_EQ(victim_.read_line(), "ready");
}

TEST_F(Stopped, ThreadsThatAreBornWhileOthersRunAreStopped) {
  victim_.send("threads 200 3000000");
  for (int i = 0; i < 10; ++i) {
    StoppedTarget target = stop();
    const size_t all = target.threads().size();
    std::vector<size_t> which(all);
    for (size_t thread = 0; thread < all; ++thread)
      which[thread] = thread;
    ASSERT_TRUE(target.run_briefly(which, std::chrono::milliseconds(2)).has_value());
    const auto tids = target::list_threads(victim_.pid());
    ASSERT_TRUE(tids.has_value());
    for (const pid_t tid : *tids)
      EXPECT_EQ(state_of(tid), 't') << tid;
  }
  EXPECT_EQ(victim_.read_line(), "600000000");
}

TEST_F(Stopped, AThreadThatMadeCallsGoesOnWithItsOwn) {
  victim_.send("nap 300");
  ASSERT_TRUE(comes_true([&] { return current_call(victim_.pid()) == SYS_clock_nanosleep; }));
  {
    StoppedTarget target = stop();
    const auto answer = target.call({.number = SYS_getpid});
    ASSERT_TRUE(answer.has_value()) << answer.error().message;
    EXPECT_EQ(*answer, victim_.pid());
    const std::vector<size_t> which = {0};
    ASSERT_TRUE(target.run_briefly(which, std::chrono::milliseconds(2)).has_value());
  }
  EXPECT_EQ(victim_.read_line(), "0");
}

// What XSAVE and XRSTOR work on (SDM volume 1, 13.4).
struct alignas(64) ProcessorState {
  std::array<uint8_t, 16384> bytes{};
};
constexpr uint64_t kVectorFeatures = 0b1110'0110;  // SSE, AVX, and the three of AVX-512.

struct Cpuid {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};
Cpuid cpuid(uint32_t leaf, uint32_t subleaf) {
  Cpuid it;
  __cpuid_count(leaf, subleaf, it.a, it.b, it.c, it.d);
  return it;
}

bool has_xsave() {
  return (cpuid(1, 0).c >> 27 & 1) != 0;
}
bool has_protection_keys() {
  return (cpuid(7, 0).c >> 4 & 1) != 0;  // That the system has enabled.
}

uint64_t enabled_vectors() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low & kVectorFeatures;
}

// Another value in each byte of the vectors that there are.
void fill_vectors(ProcessorState& state, uint64_t features) {
  constexpr size_t kSseOffset = 160;
  constexpr size_t kSseBytes = 256;
  const auto fill = [&](size_t offset, size_t size) {
    for (size_t i = offset; i < offset + size; ++i)
      state.bytes[i] = static_cast<uint8_t>(i * 7 + 1);
  };
  fill(kSseOffset, kSseBytes);
  for (uint32_t feature = 2; feature < 8; ++feature) {
    const Cpuid place = cpuid(0xd, feature);
    if ((features >> feature & 1) != 0) fill(place.b, place.a);
  }
  const uint32_t kMxcsr = 0x1f80;
  std::memcpy(state.bytes.data() + 24, &kMxcsr, sizeof kMxcsr);
  std::memcpy(state.bytes.data() + 512, &features, sizeof features);
}

// Loads them, waits until it may go on, and compares.
bool vectors_stay(const std::atomic<int>& go_on) {
  constexpr uint32_t kKeys = 0x5555'5550;
  const uint64_t features = enabled_vectors();
  ProcessorState before;
  ProcessorState after;
  fill_vectors(before, features);
  uint32_t keys = kKeys;
  if (has_protection_keys()) __asm__ volatile("wrpkru" : : "a"(keys), "c"(0), "d"(0));
  __asm__ volatile(
      "xrstor64 %1\n"
      "1: pause\n cmpl $0, %2\n je 1b\n"
      "xsave64 %0"
      : "+m"(after)
      : "m"(before), "m"(go_on), "a"(static_cast<uint32_t>(features)), "d"(0)
      : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
        "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  uint32_t high = 0;
  if (has_protection_keys()) __asm__ volatile("rdpkru" : "=a"(keys), "=d"(high) : "c"(0));
  // Bytes 464 to 511 are the system's.
  const auto same = [&](size_t from, size_t to) {
    return std::equal(before.bytes.begin() + static_cast<ptrdiff_t>(from),
                      before.bytes.begin() + static_cast<ptrdiff_t>(to),
                      after.bytes.begin() + static_cast<ptrdiff_t>(from));
  };
  return keys == kKeys && same(160, 464) && same(512, before.bytes.size());
}

TEST(StoppedByOneWhoDies, AThreadHasItsVectorsAndRightsAsBefore) {
  if (!has_xsave()) GTEST_SKIP() << "no XSAVE";
  using Flag = std::atomic<int>;
  constexpr int kShared = MAP_SHARED | MAP_ANONYMOUS;
  void* const shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, kShared, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  Flag& go_on = *new (shared) Flag(0);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    _exit(vectors_stay(go_on) ? 0 : 1);
  }
  const pid_t tracer = fork();
  if (tracer == 0) {
    auto target = StoppedTarget::stop(pid, kTimeout);
    const bool began = target && target->call({.number = SYS_getpid}) == pid;
    if (!began) _exit(1);
    raise(SIGKILL);
  }
  const int died = end_of(tracer);
  EXPECT_TRUE(WIFSIGNALED(died)) << died;
  go_on = 1;
  EXPECT_EQ(end_of(pid), 0);
  munmap(shared, 4096);
}

[[noreturn]] void sleep_beside_a_spinning_sharer() {
  static std::array<char, 65536> stack;
  const auto spin = [](void*) -> int {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
      __asm__ volatile("");
  };
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  clone(spin, stack.data() + stack.size(), CLONE_VM, nullptr);
  for (;;)
    poll(nullptr, 0, -1);
}

TEST(StoppedSharers, OfItsMemoryMakeNoCallsForAProcess) {
  const pid_t pid = fork();
  if (pid == 0) sleep_beside_a_spinning_sharer();
  ASSERT_TRUE(comes_true([&] { return current_call(pid) == SYS_poll; }));
  std::vector<pid_t> sharers;
  {
    auto target = StoppedTarget::stop(pid, kTimeout);
    ASSERT_TRUE(target.has_value()) << target.error().message;
    for (const StoppedThread& thread : target->threads()) {
      if (thread.tid != pid) sharers.push_back(thread.tid);
    }
    EXPECT_EQ(sharers.size(), 1U);
    const auto answer = target->call({.number = SYS_getpid});
    ASSERT_TRUE(answer.has_value()) << answer.error().message;
    EXPECT_EQ(*answer, pid);
  }
  for (const pid_t sharer : sharers)
    kill(sharer, SIGKILL);
  kill(pid, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(end_of(pid)));
}

// Makes a call that its filter forbids, until it succeeds.
[[noreturn]] void try_what_is_forbidden() {
  const std::array<sock_filter, 4> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter = {program.size(), const_cast<sock_filter*>(program.data())};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
  while (syscall(SYS_getppid) < 0) {
  }
  _exit(0);
}

TEST(StoppedUnderAFilter, AProcessMakesNoCallThatItForbids) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: only root can suspend a filter";
  const pid_t pid = fork();
  if (pid == 0) try_what_is_forbidden();
  ASSERT_TRUE(comes_true([&] {
    const auto facts = target::read_facts(pid);
    return facts && facts->seccomp == target::ProcessFacts::Seccomp::Filter;
  }));
  for (int i = 0; i < 200; ++i) {
    auto target = StoppedTarget::stop(pid, kTimeout);
    if (!target) break;
    EXPECT_TRUE(target->call({.number = SYS_getppid}).has_value());
    const std::vector<size_t> which = {0};
    EXPECT_TRUE(target->run_briefly(which, std::chrono::microseconds(100)).has_value());
  }
  kill(pid, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(end_of(pid)));
}

[[noreturn]] void wait_beside_a_worker(int ready) {
  io_uring_params parameters = {};
  parameters.flags = IORING_SETUP_SQPOLL;
  parameters.sq_thread_idle = 60'000;  // Milliseconds.
  const bool is_made = syscall(SYS_io_uring_setup, 4, &parameters) >= 0;
  (void)!write(ready, is_made ? "y" : "n", 1);
  for (;;)
    poll(nullptr, 0, -1);
}

TEST(StoppedBesideAWorker, TheKernelsThreadsAreNotTheProgramsOwn) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t pid = fork();
  if (pid == 0) wait_beside_a_worker(ends[1]);
  char is_made = 0;
  ASSERT_EQ(read(ends[0], &is_made, 1), 1);
  close(ends[0]);
  close(ends[1]);
  if (is_made == 'y') {
    EXPECT_EQ(target::list_threads(pid)->size(), 2U);
    auto target = StoppedTarget::stop(pid, kTimeout);
    ASSERT_TRUE(target.has_value()) << target.error().message;
    EXPECT_EQ(target->threads().size(), 1U);
    EXPECT_TRUE(target->call({.number = SYS_getpid}).has_value());
  }
  kill(pid, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(end_of(pid)));
  if (is_made != 'y') GTEST_SKIP() << "NOT TESTED: the kernel makes no io_uring with a thread";
}

// A thread that faults all the time, jumps out of the handler, and has a timer besides. It ends
// with status 0 when told by SIGTERM, with another one when a signal was lost, doubled or changed.
struct Faults {
  sigjmp_buf back;
  const volatile char* at = nullptr;
  volatile uint64_t handled = 0;
};
Faults faults;

void jump_out(int, siginfo_t* info, void*) {
  if (info->si_addr != faults.at || info->si_code != SEGV_MAPERR) _exit(3);
  faults.handled = faults.handled + 1;
  siglongjmp(faults.back, 1);
}

[[noreturn]] void fault_again_and_again() {
  struct sigaction on_fault = {};
  on_fault.sa_sigaction = jump_out;
  on_fault.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &on_fault, nullptr);
  struct sigaction on_timer = {};
  on_timer.sa_handler = [](int) {};
  sigaction(SIGALRM, &on_timer, nullptr);
  static volatile sig_atomic_t is_over = 0;
  struct sigaction on_end = {};
  on_end.sa_handler = [](int) { is_over = 1; };
  sigaction(SIGTERM, &on_end, nullptr);
  const itimerval timer = {{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &timer, nullptr);
  static volatile uint64_t made = 0;
  while (is_over == 0) {
    faults.at = reinterpret_cast<const volatile char*>(1 + made % 4000);
    made = made + 1;
    if (sigsetjmp(faults.back, 1) == 0) {
      (void)*faults.at;
      _exit(4);
    }
    if (faults.handled != made) _exit(5);
  }
  _exit(0);
}

TEST(StoppedUnderSignals, AThreadMakesCallsBeforeItTakesItsSignal) {
  const pid_t pid = fork();
  if (pid == 0) fault_again_and_again();
  ASSERT_TRUE(comes_true([&] {
    std::ifstream file("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("SigCgt:")) return line.ends_with("6400");  // All three.
    }
    return false;
  }));
  unsigned in_delivery = 0;
  for (int i = 0; i < 500; ++i) {
    auto target = StoppedTarget::stop(pid, kTimeout);
    ASSERT_TRUE(target.has_value()) << target.error().message;
    if (target->threads().front().pending_signal != 0) ++in_delivery;
    const auto answer = target->call({.number = SYS_getpid});
    ASSERT_TRUE(answer.has_value()) << answer.error().message;
    EXPECT_EQ(*answer, pid);
    // It may be let run, held again and be asked for more.
    const std::vector<size_t> which = {0};
    if (i % 3 == 0) {
      ASSERT_TRUE(target->run_briefly(which, std::chrono::microseconds(100)));
      if (target->threads().front().pending_signal != 0) ++in_delivery;
    }
    if (i % 3 != 1) {
      EXPECT_TRUE(target->call({.number = SYS_getppid}).has_value());
    }
  }
  EXPECT_GT(in_delivery, 0U) << "nothing was tested";
  kill(pid, SIGTERM);
  const int status = end_of(pid);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace clew::inline_

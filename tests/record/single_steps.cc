// SPDX-License-Identifier: Apache-2.0
// Runs a command from its entry to its end in single steps, and writes what it executed: the
// program counter of each instruction (u64) to one file, and what was mapped at the end to another.
// Nothing of Clew is in it: it is what recordings are compared with.
//
//     single_steps FILE MAPS-FILE COMMAND [ARGUMENT...]
//
// Both stay on one processor: to wake another one takes ten times as long as a step. The command
// may not write to files: the first try ends it by SIGXFSZ. This ends as the command does.
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

[[noreturn]] void die(const char* what) {
  fprintf(stderr, "single_steps: %s: %s\n", what, strerror(errno));
  exit(125);
}

[[noreturn]] void become(char* const* command) {
  if (personality(ADDR_NO_RANDOMIZE) < 0) die("personality");
  const rlimit none{};
  if (setrlimit(RLIMIT_FSIZE, &none) != 0) die("limit");
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) die("ptrace");
  execv(command[0], command);
  die(command[0]);
}

void copy_maps(pid_t child, const char* to) {
  FILE* const maps = fopen(("/proc/" + std::to_string(child) + "/maps").c_str(), "re");
  FILE* const copy = fopen(to, "we");
  if (maps == nullptr || copy == nullptr) die(to);
  for (int one = getc(maps); one != EOF; one = getc(maps))
    putc(one, copy);
  fclose(maps);
  if (fclose(copy) != 0) die(to);
}

uint64_t entry_of(pid_t child) {
  FILE* const file = fopen(("/proc/" + std::to_string(child) + "/auxv").c_str(), "re");
  if (file == nullptr) die("auxv");
  uint64_t pair[2] = {};
  while (pair[0] != AT_ENTRY && fread(pair, sizeof(pair), 1, file) == 1) {
  }
  fclose(file);
  return pair[1];
}

// The loader's steps are nobody's here, and more than most programs'.
void run_to_entry(pid_t child) {
  constexpr uint64_t kTrap = 0xcc;  // int3
  const uint64_t entry = entry_of(child);
  const auto text = static_cast<uint64_t>(ptrace(PTRACE_PEEKTEXT, child, entry, nullptr));
  const auto poke = [&](uint64_t word) {
    if (ptrace(PTRACE_POKETEXT, child, entry, word) != 0) die("entry");
  };
  poke((text & ~uint64_t{0xff}) | kTrap);
  int status = 0;
  if (ptrace(PTRACE_CONT, child, nullptr, nullptr) != 0) die("run");
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) die("entry");
  user_regs_struct registers{};
  if (ptrace(PTRACE_GETREGS, child, nullptr, &registers) != 0) die("registers");
  registers.rip = entry;
  if (ptrace(PTRACE_SETREGS, child, nullptr, &registers) != 0) die("registers");
  poke(text);
}

bool is_ending(int status) {
  return status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8);
}

void stay_on_one_processor() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(sched_getcpu(), &here);
  if (sched_setaffinity(0, sizeof(here), &here) != 0) die("affinity");
}

int follow(pid_t child, FILE* file, const char* maps) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return 125 << 8;
  if (ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACEEXIT) != 0) die("options");
  run_to_entry(child);
  int signal = 0;
  while (true) {
    user_regs_struct registers{};
    if (ptrace(PTRACE_GETREGS, child, nullptr, &registers) != 0) die("registers");
    const uint64_t pc = registers.rip;
    if (signal == 0 && fwrite(&pc, sizeof(pc), 1, file) != 1) die("write");
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, signal) != 0) die("step");
    if (waitpid(child, &status, 0) != child) die("wait");
    if (is_ending(status)) break;
    if (!WIFSTOPPED(status)) return status;
    signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
  }
  copy_maps(child, maps);
  ptrace(PTRACE_CONT, child, nullptr, nullptr);
  if (waitpid(child, &status, 0) != child) die("wait");
  return status;
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) {
    fprintf(stderr, "usage: single_steps FILE MAPS-FILE COMMAND [ARGUMENT...]\n");
    return 125;
  }
  FILE* const file = fopen(words[1], "wbe");
  if (file == nullptr) die(words[1]);
  stay_on_one_processor();
  const pid_t child = fork();
  if (child == 0) become(words + 3);
  const int status = follow(child, file, words[2]);
  if (fclose(file) != 0) die("close");
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const rlimit none{};  // No core dump of this one.
  setrlimit(RLIMIT_CORE, &none);
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  return 125;
}

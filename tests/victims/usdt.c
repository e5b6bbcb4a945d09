// SPDX-License-Identifier: Apache-2.0
// Victim `usdt`: static probes with arguments of several sizes and forms, one name at two places
// with two texts, and a semaphore, which "listeners" prints. A probe counts as a call of its name.
//
//     narrow N    passes N times a probe that has no room for a jump
//     plug N      loads libusdt_plugin.so, if it is not there, and calls its probe N times: prints
//                 how often the probe was passed, and its listeners
//     unplug      unloads it
//     wide N      passes a probe at a nop of five bytes N times: prints a sum, and the place
//     child N     forks a child, which passes the guarded probe N times and stays: prints how often
//                 it found a listener, and its listeners
//     end_child   ends it: prints its listeners before that
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "static_probe.h"
#include "victim.h"

VICTIM_COUNTER(told);
VICTIM_COUNTER(twice);

__attribute__((section(".probes"), used)) volatile unsigned short told_semaphore;

// arg0 = -i, arg1 = a text, arg2 = -i as an int in memory, arg3 = i as a byte, arg4 = 7.
VICTIM_FUNCTION uint64_t tell(long number, const char* text) {
  const long negative = -number;
  const int low = (int)negative;
  VICTIM_COUNT(told);
  __asm__ volatile(VICTIM_STATIC_PROBE("clew_victim", "told__all", "told_semaphore",
                                       "-8@%0 8@%1 -4@%2 1@%b3 4@$7")
                   :
                   : "r"(negative), "r"(text), "m"(low), "q"(number));
  return (uint64_t)(negative + text[0]);
}

// Of the same name: 10 * i in a register of 4 bytes, and 10 * i + 1 on the stack.
VICTIM_FUNCTION uint64_t first_place(uint32_t number) {
  const uint32_t value = 10 * number;
  VICTIM_COUNT(twice);
  __asm__ volatile(VICTIM_STATIC_PROBE("clew_victim", "twice", "0", "4@%k0") : : "r"(value));
  return value;
}

VICTIM_FUNCTION uint64_t second_place(uint64_t number) {
  const uint64_t value = 10 * number + 1;
  VICTIM_COUNT(twice);
  __asm__ volatile(VICTIM_STATIC_PROBE("clew_victim", "twice", "0", "8@%0") : : "m"(value));
  return value;
}

// Passed when somebody listens; whether it was.
VICTIM_FUNCTION uint64_t guarded(uint64_t number) {
  if (told_semaphore == 0) return 0;
  __asm__ volatile(VICTIM_STATIC_PROBE("clew_guarded", "passed", "told_semaphore", "8@%0")
                   :
                   : "r"(number));
  return 1;
}

// The byte behind the nop is jumped to: no room for a jump.
VICTIM_FUNCTION uint64_t narrow(uint64_t rounds) {
  __asm__ volatile(
      VICTIM_STATIC_PROBE("clew_narrow", "begun", "told_semaphore", "8@%0") "1: dec %0\njnz 1b\n"
      : "+r"(rounds));
  return rounds;
}

// At a nop of five bytes.
VICTIM_FUNCTION uint64_t wide(uint64_t number) {
  __asm__ volatile(
      VICTIM_STATIC_PROBE_AT(".globl wide_place\nwide_place: .byte 0x0f, 0x1f, 0x44, 0, 0",
                             "clew_wide", "passed", "0", "8@%0")
      :
      : "r"(number));
  return number + 1;
}
extern const char wide_place[];

static const char* const kTexts[] = {"alpha", "beta", "gamma"};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 1;
  for (uint64_t i = 0; i < rounds; ++i) {
    digest = victim_mix(digest, tell((long)i, kTexts[i % 3]));
    digest = victim_mix(digest, first_place((uint32_t)i));
    digest = victim_mix(digest, second_place(i));
  }
  return digest;
}

static void print_listeners(uint64_t unused) {
  (void)unused;
  victim_print("listeners", told_semaphore);
}

static void run_narrow(uint64_t rounds) {
  for (uint64_t i = 0; i < rounds; ++i)
    VICTIM_CHECK(narrow(3) == 0);
}

static void* plugin;

static void load_plugin(void) {
  char path[PATH_MAX + 32];
  const ssize_t size = readlink("/proc/self/exe", path, PATH_MAX);
  VICTIM_CHECK(size > 0);
  path[size] = 0;
  strcpy(strrchr(path, '/') + 1, "libusdt_plugin.so");
  plugin = dlopen(path, RTLD_NOW);
  VICTIM_CHECK(plugin != NULL);
}

static void plug(uint64_t rounds) {
  if (plugin == NULL) load_plugin();
  if (plugin == NULL) return;
  uint64_t (*call)(uint64_t) = NULL;
  *(void**)&call = dlsym(plugin, "plugged");
  uint64_t passed = 0;
  for (uint64_t i = 0; i < rounds; ++i)
    passed += call(i);
  victim_print("passed", passed);
  victim_print("listeners", *(volatile unsigned short*)dlsym(plugin, "plugged_semaphore"));
}

static void unplug(uint64_t unused) {
  (void)unused;
  VICTIM_CHECK(dlclose(plugin) == 0);
  plugin = NULL;
}

static struct {
  pid_t pid;
  int wake;   // What it waits for, and
  int tells;  // what it says: how often it passed, and its listeners.
} child;

static void run_child(uint64_t rounds, int wake, int tells) {
  uint64_t answer[2] = {0, told_semaphore};
  for (uint64_t i = 0; i < rounds; ++i)
    answer[0] += guarded(i);
  char byte = 0;
  const int is_told = write(tells, answer, sizeof answer) == sizeof answer;
  const int is_woken = read(wake, &byte, 1) == 1;
  answer[1] = told_semaphore;
  _exit(is_told && is_woken && write(tells, answer, sizeof answer) == sizeof answer ? 0 : 1);
}

static void print_child(void) {
  uint64_t answer[2] = {0, 0};
  VICTIM_CHECK(read(child.tells, answer, sizeof answer) == sizeof answer);
  victim_print("passed", answer[0]);
  victim_print("listeners", answer[1]);
}

static void begin_child(uint64_t rounds) {
  int wake[2];
  int tells[2];
  VICTIM_CHECK(pipe(wake) == 0 && pipe(tells) == 0);
  child.pid = fork();
  if (child.pid == 0) {
    close(wake[1]);  // So it ends with its parent.
    close(tells[0]);
    run_child(rounds, wake[0], tells[1]);
  }
  close(wake[0]);
  close(tells[1]);
  child.wake = wake[1];
  child.tells = tells[0];
  print_child();
}

static void end_child(uint64_t unused) {
  (void)unused;
  VICTIM_CHECK(write(child.wake, "", 1) == 1);
  print_child();
  int status = -1;
  VICTIM_CHECK(waitpid(child.pid, &status, 0) == child.pid && status == 0);
  close(child.wake);
  close(child.tells);
}

static void pass_wide(uint64_t rounds) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < rounds; ++i)
    sum += wide(i);
  victim_print("sum", sum);
  victim_print("place", (uint64_t)wide_place);
}

const struct VictimCommand victim_commands[] = {
    {"wide", pass_wide}, {"narrow", run_narrow}, {"listeners", print_listeners}, {"plug", plug},
    {"unplug", unplug},  {"child", begin_child}, {"end_child", end_child},       {0, 0}};

// SPDX-License-Identifier: Apache-2.0
#include "victim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

extern struct VictimCounter __start_victim_counters[];
extern struct VictimCounter __stop_victim_counters[];

static uint64_t errors;

void victim_print(const char* name, uint64_t value) {
  printf("%s %llu\n", name, (unsigned long long)value);
}

void victim_check_failed(const char* condition, const char* file, int line) {
  __atomic_fetch_add(&errors, (uint64_t)1, __ATOMIC_RELAXED);
  fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
}

static void print_counts(void) {
  for (struct VictimCounter* c = __start_victim_counters; c != __stop_victim_counters; ++c) {
    victim_print(c->name, __atomic_load_n(&c->value, __ATOMIC_RELAXED));
  }
}

static void run(uint64_t rounds) {
  const uint64_t result = victim_run(rounds);
  victim_print("result", result);
  victim_print("errors", __atomic_load_n(&errors, __ATOMIC_RELAXED));
}

static void act(const char* name, uint64_t argument) {
  if (strcmp(name, "run") == 0) {
    run(argument);
    return;
  }
  if (strcmp(name, "counts") == 0) {
    print_counts();
    return;
  }
  for (const struct VictimCommand* c = victim_commands; c->name; ++c) {
    if (strcmp(name, c->name) == 0) {
      c->act(argument);
      return;
    }
  }
  fprintf(stderr, "unknown command: %s\n", name);
  exit(2);
}

void victim_serve(void) {
  char line[128];
  while (fgets(line, sizeof line, stdin)) {
    char name[64];
    unsigned long long argument = 0;
    if (sscanf(line, "%63s %llu", name, &argument) < 1) continue;
    if (strcmp(name, "exit") == 0) break;
    act(name, argument);
    puts("end");
    fflush(stdout);
  }
}

int main(void) {
  // Yama may restrict attaching to descendants; the tracer is our sibling.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  setvbuf(stdout, NULL, _IOFBF, 1 << 16);
  puts("ready");
  fflush(stdout);
  victim_serve();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Victim `plugins`: loads a library, calls it and unloads it, each round, with another library
// mapped at the same address every other time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(plugin_work);         // Calls into libplugin_a.so.
VICTIM_COUNTER(plugin_constructor);  // Its loads.
VICTIM_COUNTER(other_work);          // Calls into libplugin_b.so, which is not traced.
VICTIM_COUNTER(same_address);        // How often both were at one address.

static char folder[PATH_MAX];

static void find_folder(void) {
  const ssize_t size = readlink("/proc/self/exe", folder, sizeof folder - 1);
  VICTIM_CHECK(size > 0);
  folder[size] = 0;
  *strrchr(folder, '/') = 0;
}

static uint64_t call_plugin(const char* name, uint64_t x, void** address) {
  char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  VICTIM_CHECK(library != NULL);
  if (!library) return 0;
  uint64_t (*work)(uint64_t) = NULL;
  *(void**)&work = dlsym(library, "plugin_work");
  Dl_info info;
  VICTIM_CHECK(dladdr(*(void**)&work, &info) != 0);
  *address = info.dli_fbase;
  const uint64_t value = work(x);
  dlclose(library);
  return value;
}

const struct VictimCommand victim_commands[] = {{0}};

uint64_t victim_run(uint64_t rounds) {
  if (folder[0] == 0) find_folder();
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    void *address_a = NULL, *address_b = NULL;
    VICTIM_COUNT(plugin_constructor);
    VICTIM_COUNT(plugin_work);
    const uint64_t a = call_plugin("libplugin_a.so", round, &address_a);
    VICTIM_CHECK(a == round * 3 + 1);
    VICTIM_COUNT(other_work);
    const uint64_t b = call_plugin("libplugin_b.so", round, &address_b);
    VICTIM_CHECK(b == (round ^ 0x1234) * 15 + 2);
    if (address_a == address_b) VICTIM_COUNT(same_address);
    digest = victim_mix(digest, a + b);
  }
  return digest;
}

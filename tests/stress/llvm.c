// SPDX-License-Identifier: Apache-2.0
// Work of a program under stress: LLVM, a library of 100 MB of C++, reads a function, optimises it
// and prints it. Debian's package of the library has no headers: what is used is declared here.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"

struct Llvm {
  void* (*ContextCreate)(void);
  void (*ContextDispose)(void* context);
  void* (*CreateMemoryBufferWithMemoryRangeCopy)(const char* text, size_t size, const char* name);
  int (*ParseIRInContext)(void* context, void* buffer, void** module, char** message);
  void* (*CreatePassBuilderOptions)(void);
  void (*DisposePassBuilderOptions)(void* options);
  void* (*RunPasses)(void* module, const char* passes, void* machine, void* options);
  char* (*PrintModuleToString)(void* module);
  void (*DisposeMessage)(char* message);
  void (*DisposeModule)(void* module);
};

static struct Llvm llvm;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void* symbol(void* library, const char* name) {
  char full[64];
  snprintf(full, sizeof full, "LLVM%s", name);
  void* const found = dlsym(library, full);
  if (found == NULL) {
    fprintf(stderr, "no %s\n", full);
    exit(2);
  }
  return found;
}

static void load(void) {
  void* const library = dlopen("libLLVM-16.so.1", RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
#define LOAD(name) *(void**)&llvm.name = symbol(library, #name)
  LOAD(ContextCreate);
  LOAD(ContextDispose);
  LOAD(CreateMemoryBufferWithMemoryRangeCopy);
  LOAD(ParseIRInContext);
  LOAD(CreatePassBuilderOptions);
  LOAD(DisposePassBuilderOptions);
  LOAD(RunPasses);
  LOAD(PrintModuleToString);
  LOAD(DisposeMessage);
  LOAD(DisposeModule);
#undef LOAD
}

static const char kFunction[] =
    "define i64 @f(i64 %%x, ptr %%p) {\n"
    "entry:\n  br label %%loop\n"
    "loop:\n"
    "  %%i = phi i64 [ 0, %%entry ], [ %%next, %%loop ]\n"
    "  %%s = phi i64 [ %%x, %%entry ], [ %%t, %%loop ]\n"
    "  %%q = getelementptr i64, ptr %%p, i64 %%i\n"
    "  %%v = load i64, ptr %%q\n"
    "  %%m = mul i64 %%v, %lu\n"
    "  %%t = add i64 %%s, %%m\n"
    "  %%next = add i64 %%i, 1\n"
    "  %%c = icmp ult i64 %%next, 16\n"
    "  br i1 %%c, label %%loop, label %%end\n"
    "end:\n  ret i64 %%t\n}\n";

__attribute__((noinline, noclone)) uint64_t llvm_hash(const char* text) {
  uint64_t hash = 14695981039346656037U;
  for (; *text != 0; ++text)
    hash = (hash ^ (uint8_t)*text) * 1099511628211U;
  return hash;
}

// 0 when something is refused, which the first round would have been, too.
__attribute__((noinline, noclone)) uint64_t llvm_optimise(void* context, const char* text) {
  void* module = NULL;
  char* message = NULL;
  void* const buffer = llvm.CreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "f");
  if (llvm.ParseIRInContext(context, buffer, &module, &message) != 0) return 0;
  void* const options = llvm.CreatePassBuilderOptions();
  void* const error = llvm.RunPasses(module, "default<O1>", NULL, options);
  llvm.DisposePassBuilderOptions(options);
  char* const printed = llvm.PrintModuleToString(module);
  const uint64_t hash = error == NULL ? llvm_hash(printed) : 0;
  llvm.DisposeMessage(printed);
  llvm.DisposeModule(module);
  return hash;
}

uint64_t stress_round(uint64_t seed) {
  pthread_once(&once, load);
  char text[sizeof kFunction + 32];
  snprintf(text, sizeof text, kFunction, seed * 3 + 1);
  void* const context = llvm.ContextCreate();
  const uint64_t hash = llvm_optimise(context, text);
  llvm.ContextDispose(context);
  return hash;
}

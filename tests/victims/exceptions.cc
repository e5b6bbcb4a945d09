// SPDX-License-Identifier: Apache-2.0
// Victim `exceptions`: functions left by exceptions: to the direct caller, through several traced
// frames with destructors, through a C frame, out of and inside a library with its own runtime,
// after a longjmp, thrown again, thrown in a destructor that runs for another one, on two threads,
// and in a library that `late N` loads and calls N times.
#include <csetjmp>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>

#include <dlfcn.h>
#include <unistd.h>

#include "victim.h"

extern "C" {
uint64_t library_throws(uint64_t x);
uint64_t library_catches(uint64_t x);
uint64_t through_c(uint64_t (*callback)(uint64_t), uint64_t x);
}

VICTIM_COUNTER(library_throws);
VICTIM_COUNTER(library_catches);
VICTIM_COUNTER(throw_odd);
VICTIM_COUNTER(middle_frame);
VICTIM_COUNTER(catch_here);
// How often each function was left by an exception, not by a return.
VICTIM_COUNTER(thrown_throw_odd);
VICTIM_COUNTER(thrown_middle_frame);
VICTIM_COUNTER(rethrow_frame);
VICTIM_COUNTER(thrown_rethrow_frame);
VICTIM_COUNTER(nested_frame);
VICTIM_COUNTER(thrown_nested_frame);
VICTIM_COUNTER(deep_frame);
VICTIM_COUNTER(thrown_deep_frame);
VICTIM_COUNTER(catch_call);
VICTIM_COUNTER(jump_out);
VICTIM_COUNTER(late_throws);
VICTIM_COUNTER(thrown_late_throws);

namespace {

constexpr uint64_t kThreadRounds = 200;
constexpr uint64_t kDepth = 60;

uint64_t destroyed = 0;
struct Guard {
  ~Guard() { ++destroyed; }
};

}  // namespace

extern "C" VICTIM_FUNCTION uint64_t throw_odd(uint64_t x) {
  VICTIM_COUNT(throw_odd);
  if (x % 2 == 1) {
    VICTIM_COUNT(thrown_throw_odd);
    throw x;
  }
  return x * 3;
}

extern "C" VICTIM_FUNCTION uint64_t middle_frame(uint64_t x) {
  VICTIM_COUNT(middle_frame);
  if (x % 2 == 1) VICTIM_COUNT(thrown_middle_frame);
  const Guard guard;
  return through_c(throw_odd, x) + 5;
}

extern "C" VICTIM_FUNCTION uint64_t catch_here(uint64_t x) {
  VICTIM_COUNT(catch_here);
  try {
    return middle_frame(x);
  } catch (uint64_t thrown) {
    return thrown + 1000;
  }
}

extern "C" VICTIM_FUNCTION uint64_t catch_from_library(uint64_t x) {
  VICTIM_COUNT(library_throws);
  try {
    return library_throws(x);
  } catch (...) {  // Its runtime has its own type information.
    return x + 2000;
  }
}

extern "C" VICTIM_FUNCTION uint64_t rethrow_frame(uint64_t x) {
  VICTIM_COUNT(rethrow_frame);
  try {
    return throw_odd(x) + 7;
  } catch (uint64_t) {
    VICTIM_COUNT(thrown_rethrow_frame);
    throw;
  }
}

namespace {

// Runs while an exception passes, calls what threw that one at the same place of the stack, and
// catches what it throws.
struct Nested {
  ~Nested() {
    try {
      sum += throw_odd(2 * sum + 1);
    } catch (uint64_t thrown) {
      sum += thrown;
    }
  }
  uint64_t& sum;
};

}  // namespace

extern "C" VICTIM_FUNCTION uint64_t nested_frame(uint64_t x) {
  VICTIM_COUNT(nested_frame);
  if (x % 2 == 1) VICTIM_COUNT(thrown_nested_frame);
  static uint64_t sum = 0;
  sum = x;
  const Nested nested{sum};
  return throw_odd(x) + 9;
}

extern "C" VICTIM_FUNCTION uint64_t deep_frame(uint64_t x) {
  VICTIM_COUNT(deep_frame);
  if (x % 2 == 1) VICTIM_COUNT(thrown_deep_frame);
  uint64_t value = x / 2 % kDepth == 0 ? throw_odd(x) : deep_frame(x - 2);
  asm volatile("" : "+r"(value));  // It stays a recursion.
  return value + 1;
}

namespace {
jmp_buf landing;
}  // namespace

// Left by longjmp, not by an exception.
extern "C" VICTIM_FUNCTION uint64_t jump_out(uint64_t x) {
  VICTIM_COUNT(jump_out);
  if (x % 2 == 1) longjmp(landing, 1);
  return x;
}

// The exception that it throws itself passes the place of the stack where jump_out was called.
extern "C" VICTIM_FUNCTION uint64_t throw_after_jump(uint64_t x) {
  if (setjmp(landing) != 0) throw_odd(2 * x + 1);
  return jump_out(x) * 3 + 7;
}

extern "C" VICTIM_FUNCTION uint64_t catch_call(uint64_t (*call)(uint64_t), uint64_t x) {
  VICTIM_COUNT(catch_call);
  try {
    return call(x);
  } catch (uint64_t thrown) {
    return thrown + 1000;
  }
}

namespace {

using Function = uint64_t (*)(uint64_t);

void run_thread() {
  for (uint64_t round = 0; round < kThreadRounds; ++round) {
    const uint64_t expected = round % 2 == 1 ? round + 1000 : round * 3 + 7;
    VICTIM_CHECK(catch_call(rethrow_frame, round) == expected);
  }
}

Function find_late(const char* name) {
  char self[4096] = {};
  VICTIM_CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  std::string path = self;
  path = path.substr(0, path.rfind('/')) + "/liblate_thrower.so";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  VICTIM_CHECK(library != nullptr);
  return reinterpret_cast<Function>(dlsym(library, name));
}

void call_late(uint64_t times) {
  const Function catches = find_late("late_catches");
  for (uint64_t x = 0; x < times; ++x) {
    VICTIM_COUNT(late_throws);
    if (x % 2 == 1) VICTIM_COUNT(thrown_late_throws);
    VICTIM_CHECK(catches(x) == (x % 2 == 1 ? x + 4 : x + 3));
  }
}

}  // namespace

const VictimCommand victim_commands[] = {{"late", call_late}, {nullptr, nullptr}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  const uint64_t destroyed_before = destroyed;
  for (uint64_t round = 0; round < rounds; ++round) {
    const bool odd = round % 2 == 1;
    VICTIM_CHECK(catch_here(round) == (odd ? round + 1000 : round * 3 + 6));
    VICTIM_CHECK(catch_from_library(round) == (odd ? round + 2000 : round + 3));
    VICTIM_COUNT(library_catches);
    VICTIM_COUNT(library_throws);  // It calls the other through the PLT.
    VICTIM_CHECK(library_catches(round) == (odd ? round + 4 : round + 3));
    digest = victim_mix(digest, catch_here(round));
    for (const Function call : {rethrow_frame, nested_frame, deep_frame, throw_after_jump}) {
      digest = victim_mix(digest, catch_call(call, round));
    }
  }
  std::thread first(run_thread);
  std::thread second(run_thread);
  first.join();
  second.join();
  VICTIM_CHECK(destroyed - destroyed_before == 2 * rounds);
  return digest;
}

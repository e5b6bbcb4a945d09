// SPDX-License-Identifier: Apache-2.0
// Goes through its own functions in each way in which unwinders do, and says what it met: two runs
// say the same. As a library it does so for who calls run_way().
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include <execinfo.h>
#include <pthread.h>
#include <unwind.h>

#define KEPT __attribute__((noinline))

namespace {

volatile int odd;
pthread_barrier_t reached;

struct Told {
  const char* name;
  KEPT ~Told() {
    odd += 1;
    std::printf("destructor of %s\n", name);
  }
};

// ---- thrown ----

KEPT void throw_it(int value) {
  const Told told = {"throw_it"};
  if (value > 2) throw std::runtime_error(std::to_string(value));
  if (value == 2) throw value;
  odd += value;
}

KEPT int order(const void* left, const void* right) {
  const int a = *static_cast<const int*>(left);
  const int b = *static_cast<const int*>(right);
  if (a + b == 9) throw_it(a);
  return a - b;
}

KEPT void sort_them(int first) {
  const Told told = {"sort_them"};
  int values[] = {first, 9, 7, 9 - first, 3, 8};
  std::qsort(values, 6, sizeof *values, order);
  odd += values[3];
}

KEPT void throw_again(int value) {
  const Told told = {"throw_again"};
  try {
    sort_them(value);
  } catch (const std::exception& error) {
    std::printf("again: %s\n", error.what());
    throw;
  } catch (int number) {
    std::printf("another for %d\n", number);
    std::throw_with_nested(std::logic_error("outer"));
  }
}

KEPT void in_destructor(int value) {
  struct Throws {
    int value;
    KEPT ~Throws() {
      try {
        throw_it(value);
      } catch (const std::exception& error) {
        std::printf("inside: %s, %d on the way\n", error.what(), std::uncaught_exceptions());
      }
    }
  };
  const Throws throws = {value + 10};
  throw_it(value);
}

KEPT void keep(int value, std::exception_ptr* kept) {
  try {
    throw_again(value);
  } catch (...) {
    *kept = std::current_exception();
  }
}

KEPT int thrown() {
  for (int value = 1; value < 9; ++value) {
    try {
      if (value & 1) in_destructor(value);
      std::exception_ptr kept;
      keep(value, &kept);
      if (kept) std::rethrow_exception(kept);
    } catch (const std::logic_error& error) {
      std::printf("%d: %s\n", value, error.what());
    } catch (const std::exception& error) {
      std::printf("%d: caught %s\n", value, error.what());
    } catch (int number) {
      std::printf("%d: number %d\n", value, number);
    }
  }
  return 0;
}

// ---- forced ----

KEPT void say(void* name) {
  odd += 2;
  std::printf("handler of %s\n", static_cast<char*>(name));
}

KEPT void wait_for_it(int depth) {
  const Told told = {"wait_for_it"};
  if (depth > 0) {
    wait_for_it(depth - 1);
    odd += 3;
    return;
  }
  pthread_cleanup_push(say, const_cast<char*>("wait_for_it"));
  pthread_barrier_wait(&reached);
  while (odd >= 0)
    pthread_testcancel();
  pthread_cleanup_pop(0);
}

KEPT void leave(int depth) {
  const Told told = {"leave"};
  try {
    if (depth > 0) leave(depth - 1);
    if (depth == 0) pthread_exit(const_cast<char*>("left"));
  } catch (const std::exception&) {
    std::printf("never\n");
  } catch (...) {
    std::printf("passes on at %d\n", depth);
    throw;
  }
  odd += 5;
}

void* run_waits(void*) {
  wait_for_it(3);
  return nullptr;
}
void* run_leaves(void*) {
  leave(3);
  return nullptr;
}

KEPT void forced_in(void* (*function)(void*), bool cancels) {
  pthread_t thread{};
  void* result = nullptr;
  if (pthread_create(&thread, nullptr, function, nullptr) != 0) std::exit(2);
  if (cancels) {
    pthread_barrier_wait(&reached);
    pthread_cancel(thread);
  }
  pthread_join(thread, &result);
  std::printf("%s\n", result == PTHREAD_CANCELED ? "canceled" : static_cast<char*>(result));
}

KEPT int forced() {
  pthread_barrier_init(&reached, nullptr, 2);
  for (int i = 0; i < 3; ++i) {
    forced_in(run_waits, true);
    forced_in(run_leaves, false);
  }
  return 0;
}

// ---- looked at ----

KEPT _Unwind_Reason_Code count_frame(_Unwind_Context*, void* count) {
  ++*static_cast<int*>(count);
  return _URC_NO_REASON;
}

KEPT int look(int depth) {
  if (depth > 0) return look(depth - 1) + 1;
  void* places[64];
  const int count = backtrace(places, 64);
  char** const names = backtrace_symbols(places, count);
  std::printf("%d frames, %s\n", count, names != nullptr ? "named" : "without names");
  std::free(names);
  int unwound = 0;
  _Unwind_Backtrace(count_frame, &unwound);
  std::printf("%d unwound\n", unwound);
  return depth;
}

KEPT int order_looking(const void* left, const void* right) {
  if (odd++ == 0) look(1);
  return *static_cast<const char*>(left) - *static_cast<const char*>(right);
}

KEPT int looked() {
  odd = 0;
  look(4);
  odd = 0;
  char letters[] = "copies";
  std::qsort(letters, 6, 1, order_looking);
  return 0;
}

// ---- ended ----

KEPT void at_end() {
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
    std::printf("nothing was thrown\n");
  } catch (const std::exception& error) {
    std::printf("ended by %s\n", error.what());
  } catch (int value) {
    std::printf("ended by %d\n", value);
  }
  std::fflush(stdout);
  std::_Exit(7);
}

KEPT void none_passes(int value) noexcept {
  const Told told = {"none_passes"};
  throw_it(value);
}

KEPT int terminated(const char* way) {
  const Told told = {"terminated"};
  if (std::strcmp(way, "handled") == 0) std::set_terminate(at_end);
  if (std::strcmp(way, "noexcept") == 0) none_passes(2);
  throw_it(5);
  return 0;
}

}  // namespace

extern "C" int run_way(const char* way) {
  if (std::strcmp(way, "thrown") == 0) return thrown();
  if (std::strcmp(way, "forced") == 0) return forced();
  if (std::strcmp(way, "looked") == 0) return looked();
  return terminated(way);
}

int main(int words_count, char** words) {
  return run_way(words_count > 1 ? words[1] : "");
}

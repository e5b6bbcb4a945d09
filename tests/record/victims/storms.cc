// SPDX-License-Identifier: Apache-2.0
// Threads that throw all the time, through their own frames and those of the C library, beside one
// that loads a library (argument 1) and lets it go. "turns" on the standard input: says how often,
// when each thread has thrown once more; "end": says how often something else was caught.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))

namespace {

constexpr int kThreads = 3;
std::atomic<bool> ends{false};
std::atomic<int> wrong{0};
std::atomic<int> turns[kThreads + 1];

struct Counted {
  int& destroyed;
  KEPT ~Counted() { ++destroyed; }
};

KEPT int go_down(int depth, int* destroyed);

int order(const void* left, const void* right) {
  const int a = *static_cast<const int*>(left);
  const int b = *static_cast<const int*>(right);
  if (a == 5 || b == 5) throw std::to_string(a + b);
  return a - b;
}

KEPT int go_down(int depth, int* destroyed) {
  const Counted counted = {*destroyed};
  if (depth > 0) return go_down(depth - 1, destroyed) + depth;
  if ((*destroyed & 1) != 0) throw depth;
  int values[] = {5, 7};
  std::qsort(values, 2, sizeof *values, order);
  return values[0];
}

KEPT void throw_once(int depth) {
  int destroyed = depth & 1;
  const int before = destroyed;
  bool is_right = false;
  try {
    go_down(depth, &destroyed);
  } catch (const std::string& text) {
    is_right = before == 0 && text == "12";
  } catch (int value) {
    is_right = before == 1 && value == 0;
  }
  if (!is_right || destroyed - before != depth + 1) ++wrong;
}

void run(int number) {
  for (int depth = number; !ends; depth = (depth + 1) % 20) {
    throw_once(depth);
    ++turns[number];
  }
}

void load(const char* path) {
  while (!ends) {
    void* const library = dlopen(path, RTLD_NOW);
    if (library == nullptr || dlsym(library, "loaded_calls") == nullptr) ++wrong;
    if (library != nullptr) dlclose(library);
    ++turns[kThreads];
  }
}

int turn() {
  int sum = 0;
  for (std::atomic<int>& one : turns) {
    const int before = one;
    while (one == before)
      std::this_thread::yield();
    sum += one;
  }
  return sum;
}

}  // namespace

int main(int words_count, char** words) {
  if (words_count != 2) return 2;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back(run, i);
  threads.emplace_back(load, words[1]);
  std::printf("%d\n", static_cast<int>(getpid()));
  std::fflush(stdout);
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr && std::strcmp(line, "end\n") != 0) {
    std::printf("%d\n", turn());
    std::fflush(stdout);
  }
  ends = true;
  for (std::thread& thread : threads)
    thread.join();
  std::printf("%d wrong\n", wrong.load());
  return 9;
}

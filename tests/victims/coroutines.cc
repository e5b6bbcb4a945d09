// SPDX-License-Identifier: Apache-2.0
// Victim `coroutines`: coroutines of C++ that are resumed in turn, on two threads, left by
// exceptions, and destroyed before their end. What runs inside of them is traced, and so are their
// own functions, which the compiler makes.
#include <coroutine>
#include <cstdint>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "victim.h"

VICTIM_COUNTER(made);     // Coroutines.
VICTIM_COUNTER(inside);   // Calls from inside of them.
VICTIM_COUNTER(resumed);  // Each time is a call of a function that the compiler makes.
VICTIM_COUNTER(resume_one);
VICTIM_COUNTER(destroy_early);

namespace {

struct Generator {
  struct promise_type {
    uint64_t value = 0;
    std::exception_ptr thrown;

    Generator get_return_object() {
      VICTIM_COUNT(made);
      return Generator{std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(uint64_t next) {
      value = next;
      return {};
    }
    void return_void() {}
    void unhandled_exception() { thrown = std::current_exception(); }
  };

  explicit Generator(std::coroutine_handle<promise_type> made) : handle(made) {}
  Generator(Generator&& other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
  Generator& operator=(Generator&&) = delete;
  ~Generator() {
    if (handle) handle.destroy();
  }

  std::coroutine_handle<promise_type> handle;
};

constexpr uint64_t kCoroutines = 7;
constexpr uint64_t kYields = 5;

}  // namespace

extern "C" VICTIM_FUNCTION uint64_t inside(uint64_t x) {
  VICTIM_COUNT(inside);
  if (x % 11 == 10) throw x;
  return victim_mix(x, 37);
}

VICTIM_FUNCTION static Generator numbers(uint64_t seed) {
  for (uint64_t i = 0; i < kYields; ++i)
    co_yield inside(seed + i);
}

extern "C" VICTIM_FUNCTION uint64_t resume_one(void* address) {
  VICTIM_COUNT(resume_one);
  const auto handle = std::coroutine_handle<Generator::promise_type>::from_address(address);
  VICTIM_COUNT(resumed);
  handle.resume();
  if (handle.promise().thrown) return 1;
  return handle.done() ? 2 : handle.promise().value;
}

extern "C" VICTIM_FUNCTION void destroy_early(uint64_t seed) {
  VICTIM_COUNT(destroy_early);
  const Generator generator = numbers(seed);
  if (seed % 2 == 0) {
    VICTIM_COUNT(resumed);
    generator.handle.resume();
  }
}

const VictimCommand victim_commands[] = {{nullptr, nullptr}};

namespace {

uint64_t resume_all(std::vector<Generator>& generators) {
  uint64_t digest = 0;
  for (Generator& generator : generators) {
    if (!generator.handle.done()) {
      digest = victim_mix(digest, resume_one(generator.handle.address()));
    }
  }
  return digest;
}

}  // namespace

// Every other pass over the coroutines is another thread's.
uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    std::vector<Generator> generators;
    for (uint64_t i = 0; i < kCoroutines; ++i)
      generators.push_back(numbers(100 * round + 12 * i));
    for (uint64_t pass = 0; pass <= kYields; ++pass) {
      uint64_t value = 0;
      if (pass % 2 == 0) {
        value = resume_all(generators);
      } else {
        std::thread([&] { value = resume_all(generators); }).join();
      }
      digest = victim_mix(digest, value);
    }
    destroy_early(22 * round);
    destroy_early(22 * round + 1);
  }
  return digest;
}

// SPDX-License-Identifier: Apache-2.0
// Victim `boost_fibers`: functions that are entered on one stack of Boost.Context and left after
// others ran, in another order, some on another thread, and some by the exception that unwinds a
// fiber which is destroyed. It measures each call of `fiber_body` from inside and from outside:
// `inside_ns` <= what a tracer says <= `outside_ns`, in sum.
#include <array>
#include <cstdint>
#include <thread>

#include <boost/context/fiber.hpp>
#include <time.h>

#include "victim.h"

VICTIM_COUNTER(fiber_body);
VICTIM_COUNTER(fiber_step);
VICTIM_COUNTER(fiber_destroyed);
VICTIM_COUNTER(fiber_unwound);
VICTIM_COUNTER(inside_ns);
VICTIM_COUNTER(outside_ns);

using boost::context::fiber;

struct Task {
  fiber here;       // Where it was left; empty when it is done.
  fiber scheduler;  // Who resumed it.
  uint64_t value = 0;
};

namespace {

constexpr unsigned kFibers = 9;
constexpr unsigned kSteps = 3;

uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

void add(VictimCounter& counter, uint64_t value) {
  __atomic_fetch_add(&counter.value, value, __ATOMIC_RELAXED);
}

}  // namespace

extern "C" {

// Left in the middle and come back to.
VICTIM_FUNCTION uint64_t fiber_step(Task& task, uint64_t x) {
  VICTIM_COUNT(fiber_step);
  const uint64_t before = victim_mix(x, 31);
  task.scheduler = std::move(task.scheduler).resume();
  return before + x;
}

VICTIM_FUNCTION uint64_t fiber_body(Task& task, uint64_t x) {
  VICTIM_COUNT(fiber_body);
  const uint64_t begin = now_ns();
  for (unsigned step = 0; step < kSteps; ++step)
    x = fiber_step(task, x);
  add(victim_counter_inside_ns, now_ns() - begin);
  return x;
}

// Its steps never end.
VICTIM_FUNCTION uint64_t fiber_destroyed(Task& task, uint64_t x) {
  VICTIM_COUNT(fiber_destroyed);
  struct Notice {
    ~Notice() { VICTIM_COUNT(fiber_unwound); }
  } notice;
  for (;;)
    x = fiber_step(task, x);
}

}  // extern "C"

namespace {

template <uint64_t (*function)(Task&, uint64_t)>
void start(Task& task, uint64_t value) {
  task.value = value;
  task.here = fiber([&task](fiber&& resumer) {
    task.scheduler = std::move(resumer);
    const uint64_t begin = now_ns();
    task.value = function(task, task.value);
    add(victim_counter_outside_ns, now_ns() - begin);
    return std::move(task.scheduler);
  });
}

void resume(Task& task) {
  task.here = std::move(task.here).resume();
}

uint64_t finished(std::array<Task, kFibers>& tasks, uint64_t digest) {
  for (Task& task : tasks) {
    VICTIM_CHECK(!task.here);
    digest = victim_mix(digest, task.value);
  }
  return digest;
}

// They leave in the order they came: a stack would leave the other way round.
uint64_t run_round(uint64_t round) {
  std::array<Task, kFibers> tasks;
  for (unsigned i = 0; i < kFibers; ++i)
    start<fiber_body>(tasks[i], round * kFibers + i);
  for (unsigned step = 0; step <= kSteps; ++step)
    for (Task& task : tasks)
      resume(task);
  return finished(tasks, round);
}

// Entered here, left on another thread.
void move(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    std::array<Task, kFibers> tasks;
    for (unsigned i = 0; i < kFibers; ++i) {
      start<fiber_body>(tasks[i], round * kFibers + i);
      resume(tasks[i]);
    }
    std::thread([&tasks] {
      for (unsigned step = 0; step < kSteps; ++step)
        for (Task& task : tasks)
          resume(task);
    }).join();
    digest = finished(tasks, digest);
  }
  victim_print("result", digest);
}

// A fiber that is destroyed is resumed to unwind its stack.
void destroy(uint64_t rounds) {
  for (uint64_t round = 0; round < rounds; ++round) {
    Task task;
    start<fiber_destroyed>(task, round);
    resume(task);
    resume(task);
    task.here = fiber();
  }
  victim_print("destroyed", rounds);
}

}  // namespace

const VictimCommand victim_commands[] = {{"move", move}, {"destroy", destroy}, {nullptr, nullptr}};

uint64_t victim_run(uint64_t rounds) {
  uint64_t digest = 0;
  for (uint64_t round = 0; round < rounds; ++round)
    digest = victim_mix(digest, run_round(round));
  return digest;
}

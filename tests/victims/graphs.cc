// SPDX-License-Identifier: Apache-2.0
// Victim `graphs`: threads that take turns and do, at random, all that joins by cause follow within
// a process: requests begin and end, are handed over with objects and taken by any thread, and come
// together again; and there are events between. `random N` does that for N seeds from the last one
// on, `trees N` the same, but nothing comes together. Each event has a number of its own, so that a
// joined row says exactly which events it is of. Two sessions that watch one run must have seen the
// same.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "clew/cause.h"
#include "victim.h"

VICTIM_COUNTER(arrive);
VICTIM_COUNTER(note);
VICTIM_COUNTER(work);

namespace {

constexpr uint64_t kThreads = 4;
constexpr uint64_t kObjects = 8;
constexpr int kSteps = 120;

std::atomic<uint64_t> digest = 0;
uint64_t last_event = 0;
uint64_t last_seed = 0;
std::array<int, kObjects> objects;

}  // namespace

extern "C" VICTIM_FUNCTION void arrive(uint64_t event, uint64_t seed) {
  VICTIM_COUNT(arrive);
  digest += victim_mix(seed, event);
}

extern "C" VICTIM_FUNCTION void note(uint64_t event, uint64_t seed) {
  VICTIM_COUNT(note);
  digest += victim_mix(seed + 1, event);
}

extern "C" VICTIM_FUNCTION void work(uint64_t event, uint64_t seed) {
  VICTIM_COUNT(work);
  digest += victim_mix(seed + 2, event);
}

namespace {

// Does what it is given, one thing at a time.
class Worker {
 public:
  Worker()
      : thread_([this] {
          for (uint64_t done = 0; given_.wait(done), todo_; ++done) {
            todo_();
            done_ = done + 1;
            done_.notify_one();
          }
        }) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    give({});
    thread_.join();
  }

  void run(std::function<void()> todo) {
    const uint64_t before = done_;
    give(std::move(todo));
    done_.wait(before);
  }

 private:
  void give(std::function<void()> todo) {
    todo_ = std::move(todo);
    ++given_;
    given_.notify_one();
  }

  std::function<void()> todo_;
  std::atomic<uint64_t> given_ = 0;
  std::atomic<uint64_t> done_ = 0;
  std::thread thread_;
};

void act(uint64_t what, const int* object, bool may_join) {
  const uint64_t event = ++last_event;
  if (what == 0) clew_cause_begin();
  if (what == 1) clew_cause_end();
  if (what == 2 || what == 3) clew_cause_put(object);
  const bool joins = what == 5 || what == 6;
  if (what == 4 || (joins && !may_join)) clew_cause_take(object);
  if (joins && may_join) clew_cause_join(object);
  if (what == 7 || what == 8) arrive(event, last_seed);
  if (what == 9 || what == 10) note(event, last_seed);
  if (what > 10) work(event, last_seed);
}

void run_seed(std::vector<std::unique_ptr<Worker>>& workers, bool may_join) {
  std::mt19937_64 random(++last_seed);
  const uint64_t threads = 1 + last_seed % kThreads;
  for (int step = 0; step < kSteps;) {
    const int end = std::min<int>(kSteps, step + 1 + static_cast<int>(random() % 6));
    workers[random() % threads]->run([&] {
      for (; step < end; ++step)
        act(random() % 14, &objects[random() % kObjects], may_join);
    });
  }
}

void run_seeds(uint64_t count, bool may_join) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint64_t i = 0; i < kThreads; ++i)
    workers.push_back(std::make_unique<Worker>());
  for (uint64_t i = 0; i < count; ++i)
    run_seed(workers, may_join);
  victim_print("seeds", count);
}

void run_graphs(uint64_t count) {
  run_seeds(count, true);
}

void run_trees(uint64_t count) {
  run_seeds(count, false);
}

}  // namespace

extern "C" uint64_t victim_run(uint64_t rounds) {
  digest = 0;
  last_event = 0;
  last_seed = 0;
  run_graphs(rounds);
  return digest;
}

extern "C" const VictimCommand victim_commands[] = {
    {"random", run_graphs}, {"trees", run_trees}, {nullptr, nullptr}};

// SPDX-License-Identifier: Apache-2.0
// Victim `causes`: a server with a pool of threads. Each request is received by the first thread
// and handed over as jobs, which hand over further ones; several requests are under way at any
// time, and the memory of jobs is used again. Every job knows its request and the job that made it,
// so that what a join by cause finds can be compared with what was so. `messages N` hands N
// requests to a child process, over a pipe; `signals N` hands N over in a signal's handler; `pool
// N` has N requests of one job each for eight workers.
//
// It says itself what is handed over (clew/cause.h); victim `handoffs` is the same without a word.
#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

#ifdef SAYS_CAUSES
#include "clew/cause.h"
#else
static void clew_cause_begin() {}
static void clew_cause_end() {}
static void clew_cause_put(const void*) {}
static void clew_cause_take(const void*) {}
static void clew_cause_send(uint64_t) {}
static void clew_cause_receive(uint64_t) {}
#endif

VICTIM_COUNTER(receive);
VICTIM_COUNTER(work);
VICTIM_COUNTER(work_of_first_jobs);
VICTIM_COUNTER(work_elsewhere);

namespace {

constexpr int kWorkers = 4;
constexpr uint64_t kDepth = 3;

struct Job {
  uint64_t request;
  uint64_t parent;  // The number of the job that made it; 0: the request did.
  uint64_t depth;
};

std::mutex mutex;
std::condition_variable is_there;
std::condition_variable is_done;
std::deque<Job*> queue;
std::vector<Job*> spare;
uint64_t left = 0;  // Jobs that are not done.
std::atomic<uint64_t> last_job = 0;
std::atomic<uint64_t> digest = 0;

Job* make(uint64_t request, uint64_t parent, uint64_t depth) {
  const std::lock_guard lock(mutex);
  if (spare.empty()) spare.push_back(new Job);
  Job* const job = spare.back();
  spare.pop_back();
  *job = {request, parent, depth};
  ++left;
  return job;
}

}  // namespace

extern "C" VICTIM_FUNCTION void receive(uint64_t request) {
  VICTIM_COUNT(receive);
  digest += victim_mix(1, request);
}

extern "C" VICTIM_FUNCTION void submit(Job* job) {
  clew_cause_put(job);
  const std::lock_guard lock(mutex);
  queue.push_back(job);
  is_there.notify_one();
}

extern "C" VICTIM_FUNCTION void work(uint64_t request, uint64_t number, uint64_t parent) {
  VICTIM_COUNT(work);
  if (parent == 0) VICTIM_COUNT(work_of_first_jobs);
  digest += victim_mix(request, 7);
  VICTIM_CHECK(number != parent);
}

extern "C" VICTIM_FUNCTION void run_job(Job* job) {
  clew_cause_take(job);
  const uint64_t number = ++last_job;
  work(job->request, number, job->parent);
  for (uint64_t i = 0; job->depth < kDepth && i < 1 + job->request % 2; ++i)
    submit(make(job->request, number, job->depth + 1));
  const std::lock_guard lock(mutex);
  spare.push_back(job);
  --left;
  is_done.notify_one();
}

namespace {

void serve_jobs() {
  while (true) {
    Job* job = nullptr;
    {
      std::unique_lock lock(mutex);
      is_there.wait(lock, [] { return !queue.empty(); });
      job = queue.front();
      queue.pop_front();
    }
    if (job == nullptr) return;
    run_job(job);
  }
}

}  // namespace

extern "C" VICTIM_FUNCTION void send_message(uint64_t request, int to) {
  clew_cause_send(request);
  VICTIM_CHECK(write(to, &request, sizeof request) == sizeof request);
}

extern "C" VICTIM_FUNCTION void on_message(uint64_t request) {
  clew_cause_receive(request);
  digest += request;
}

extern "C" VICTIM_FUNCTION void work_elsewhere(uint64_t request) {
  digest += victim_mix(request, 9);
}

namespace {

void messages(uint64_t count) {
  std::array<int, 2> ends{};
  VICTIM_CHECK(pipe(ends.data()) == 0);
  const pid_t child = fork();
  if (child == 0) {
    uint64_t request = 0;
    while (request != count && read(ends[0], &request, sizeof request) == sizeof request) {
      on_message(request);
      work_elsewhere(request);
    }
    _exit(0);
  }
  for (uint64_t request = 1; request <= count; ++request) {
    clew_cause_begin();
    receive(request);
    send_message(request, ends[1]);
    clew_cause_end();
    VICTIM_COUNT(work_elsewhere);
  }
  int status = 0;
  VICTIM_CHECK(waitpid(child, &status, 0) == child && status == 0);
  close(ends[0]);
  close(ends[1]);
  victim_print("messages", count);
}

// Requests that a handler hands over, under the same key each time, while the thread runs traced
// functions; the handler comes between any two instructions.
std::atomic<uint64_t> in_handler = 0;
std::atomic<uint64_t> handed = 0;

void hand_over(int) {
  const uint64_t request = ++in_handler;
  clew_cause_begin();
  receive(request);
  clew_cause_put(&handed);
  clew_cause_end();
  handed = request;
}

// A thread and a process for each request, and a thread of none, which gets the number that the
// first one had where that may be asked for.
void threads(uint64_t count) {
  uint64_t same = 0;
  for (uint64_t request = 1; request <= count; ++request) {
    pid_t first = 0;
    clew_cause_begin();
    receive(request);
    std::thread([&] {
      first = gettid();
      work_elsewhere(request);
    }).join();
    const pid_t child = fork();
    if (child == 0) {
      work_elsewhere(request);
      _exit(0);
    }
    VICTIM_CHECK(waitpid(child, nullptr, 0) == child);
    clew_cause_end();
    const int last = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
    if (last >= 0) (void)dprintf(last, "%d", first - 1);
    close(last);
    std::thread([&] {
      same += gettid() == first ? 1 : 0;
      work_elsewhere(0);
    }).join();
  }
  victim_print("same", same);
}

// When all is done.
void stop(std::vector<std::thread>& workers) {
  {
    std::unique_lock lock(mutex);
    is_done.wait(lock, [] { return left == 0; });
    queue.insert(queue.end(), workers.size(), nullptr);
    is_there.notify_all();
  }
  for (std::thread& worker : workers)
    worker.join();
}

// No more jobs are under way than a server would let in.
void pool(uint64_t count) {
  constexpr uint64_t kUnderWay = 1000;
  std::vector<std::thread> workers;
  for (int i = 0; i < 2 * kWorkers; ++i)
    workers.emplace_back(serve_jobs);
  for (uint64_t request = 1; request <= count; ++request) {
    {
      std::unique_lock lock(mutex);
      is_done.wait(lock, [] { return left < kUnderWay; });
    }
    clew_cause_begin();
    receive(request);
    submit(make(request, 0, kDepth));
    clew_cause_end();
  }
  stop(workers);
  victim_print("pool", count);
}

void signals(uint64_t count) {
  struct sigaction action = {};
  action.sa_handler = hand_over;
  VICTIM_CHECK(sigaction(SIGUSR1, &action, nullptr) == 0);
  const pthread_t here = pthread_self();
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    for (uint64_t request = 1; request <= count; ++request) {
      VICTIM_CHECK(pthread_kill(here, SIGUSR1) == 0);
      while (handed != request)
        std::this_thread::yield();
      clew_cause_take(&handed);
      work_elsewhere(request);
      clew_cause_end();
    }
    is_over = true;
  });
  while (!is_over)
    on_message(0);
  other.join();
  victim_print("signals", count);
}

}  // namespace

extern "C" uint64_t victim_run(uint64_t rounds) {
  digest = 0;
  std::vector<std::thread> workers;
  for (int i = 0; i < kWorkers; ++i)
    workers.emplace_back(serve_jobs);
  for (uint64_t request = 1; request <= rounds; ++request) {
    clew_cause_begin();
    receive(request);
    for (uint64_t i = 0; i < 1 + request % 3; ++i)
      submit(make(request, 0, 1));
    clew_cause_end();
  }
  stop(workers);
  return digest;
}

extern "C" const VictimCommand victim_commands[] = {{"messages", messages},
                                                    {"pool", pool},
                                                    {"signals", signals},
                                                    {"threads", threads},
                                                    {nullptr, nullptr}};

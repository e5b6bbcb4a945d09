// SPDX-License-Identifier: Apache-2.0
// Victim `crowd`: a thousand threads. They wait for rounds of work; or they run traced code in turn
// without end while sessions come and go, a few at a time.
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>

#include "victim.h"

VICTIM_COUNTER(crowd_work);

enum { kThreads = 1000, kStackSize = 64 * 1024, kAtOnce = 8, kCallsPerTurn = 20 };

static pthread_t threads[kThreads];
static uint64_t results[kThreads];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_is_there = PTHREAD_COND_INITIALIZER;
static pthread_cond_t all_are_done = PTHREAD_COND_INITIALIZER;
static uint64_t generation;  // Of work; 0 = none yet.
static uint64_t calls_each;
static int done;
static int rushing;
static sem_t turns[kThreads];

VICTIM_FUNCTION uint64_t crowd_work(uint64_t x) {
  VICTIM_COUNT(crowd_work);
  return victim_mix(x, 17);
}

static void work(uint64_t thread, uint64_t calls) {
  uint64_t digest = thread;
  for (uint64_t call = 0; call < calls; ++call)
    digest = crowd_work(digest);
  results[thread] = digest;
}

// Then it is the next one's turn.
static void take_turns(uint64_t thread) {
  for (;;) {
    while (sem_wait(&turns[thread]) != 0) {
    }
    if (!__atomic_load_n(&rushing, __ATOMIC_RELAXED)) return;
    work(thread, kCallsPerTurn);
    sem_post(&turns[(thread + 1) % kThreads]);
  }
}

static void* thread_main(void* thread) {
  for (uint64_t mine = 1;; ++mine) {
    pthread_mutex_lock(&mutex);
    while (generation < mine)
      pthread_cond_wait(&work_is_there, &mutex);
    const uint64_t calls = calls_each;
    pthread_mutex_unlock(&mutex);
    if (calls == 0) {
      take_turns((uint64_t)thread);
    } else {
      work((uint64_t)thread, calls);
    }
    pthread_mutex_lock(&mutex);
    if (++done == kThreads) pthread_cond_signal(&all_are_done);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static void gather(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackSize);
  for (long i = 0; i < kThreads; ++i)
    VICTIM_CHECK(pthread_create(&threads[i], &attributes, thread_main, (void*)i) == 0);
  pthread_attr_destroy(&attributes);
}

static void begin(uint64_t calls) {
  if (generation == 0) gather();
  pthread_mutex_lock(&mutex);
  done = 0;
  calls_each = calls;
  ++generation;
  pthread_cond_broadcast(&work_is_there);
  pthread_mutex_unlock(&mutex);
}

static void wait_for_all(void) {
  pthread_mutex_lock(&mutex);
  while (done < kThreads)
    pthread_cond_wait(&all_are_done, &mutex);
  pthread_mutex_unlock(&mutex);
}

static void rush(uint64_t unused) {
  (void)unused;
  __atomic_store_n(&rushing, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < kThreads; ++i)
    sem_init(&turns[i], 0, i % (kThreads / kAtOnce) == 0);
  begin(0);
}

static void halt(uint64_t unused) {
  (void)unused;
  __atomic_store_n(&rushing, 0, __ATOMIC_RELAXED);
  for (int i = 0; i < kThreads; ++i)
    sem_post(&turns[i]);
  wait_for_all();
}

const struct VictimCommand victim_commands[] = {{"rush", rush}, {"halt", halt}, {0}};

uint64_t victim_run(uint64_t rounds) {
  begin(rounds);
  wait_for_all();
  uint64_t digest = 0;
  for (int i = 0; i < kThreads; ++i)
    digest = victim_mix(digest, results[i]);
  return digest;
}

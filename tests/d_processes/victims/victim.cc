// SPDX-License-Identifier: Apache-2.0
// A program for tests/d_processes/run: does one thing a known number of times, once its probes are
// set: it sees that itself, so that no test depends on time.
//
//   victim static N          fires its own static probes, when their semaphore is raised
//   victim plugin FILE N     loads FILE at a line of input, calls its plugin_work(-1) until the
//   next
//                            one, then plugin_work(0..N-1)
//   victim constructed       constructors, then main
//   victim locks N           N times a thread has to wait for each of three locks
//   victim asks N            calls getppid() of the C library N times
//   victim status N          ends with it
//   victim signal N          ends by it
//   victim waits             until its input ends
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

extern "C" {
// Counted up by the kernel while somebody traces the probe.
[[gnu::section(".probes"), gnu::used]] volatile uint16_t d_victim_semaphore = 0;
extern const uint8_t d_hit_code[];
[[gnu::used]] int64_t d_victim_numbers[4] = {10, -20, 30, -40};
int d_constructed_before_main = 0;

[[gnu::noinline, gnu::noclone]] int d_constructed(int value) {
  asm volatile("" : "+r"(value));
  return value + 1;
}
[[gnu::noinline, gnu::noclone]] int d_main_reached(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
// Further names of its address.
[[gnu::alias("d_main_reached")]] int __d_main_reached(int value);
[[gnu::weak, gnu::alias("d_main_reached")]] int d_reached(int value);
}

namespace {

constexpr size_t kHitCodeBytes = 9;
constexpr int kPauseUs = 1000;
constexpr int kPausesMax = 20'000;

[[gnu::constructor]] void construct() {
  d_constructed_before_main = d_constructed(7);
}

// What the victim waits for is what a tracer writes into it: the kernel gives nothing to wait on.
template <typename Condition>
void wait_until(Condition condition) {
  for (int i = 0; i < kPausesMax && !condition(); ++i)
    usleep(kPauseUs);
  if (!condition()) _exit(99);
}

void read_line() {
  char c = 0;
  while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n') {
  }
}

void say(const char* text) {
  printf("%s\n", text);
  fflush(stdout);
}

// The probe d_victim:hit__it, as the macros of <sys/sdt.h> would write it. The other nops tell when
// it is set: the kernel raises the semaphore first, and that is seen at once.
[[gnu::noinline]] void hit(int64_t number, const char* text, double real) {
  asm volatile(
      "d_hit_code:\n"
      "nop; nop; nop; nop; nop; nop; nop; nop\n"
      "990: nop\n"
      ".pushsection .note.stapsdt,\"\",\"note\"\n"
      ".balign 4\n"
      ".4byte 992f-991f, 994f-993f, 3\n"
      "991: .asciz \"stapsdt\"\n"
      "992: .balign 4\n"
      "993: .8byte 990b\n"
      ".8byte _.stapsdt.base\n"
      ".8byte d_victim_semaphore\n"
      ".asciz \"d_victim\"\n"
      ".asciz \"hit__it\"\n"
      ".asciz \"-8@%0 8@%1 8f@%2 -8@8+d_victim_numbers(%%rip) -4@$-3 1@%b0\"\n"
      "994: .balign 4\n"
      ".popsection\n"
      ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
      ".weak _.stapsdt.base\n"
      ".hidden _.stapsdt.base\n"
      "_.stapsdt.base: .space 1\n"
      ".size _.stapsdt.base, 1\n"
      ".popsection\n"
      :
      : "r"(number), "r"(text), "x"(real)
      : "memory");
}

bool hit_is_set() {
  constexpr uint8_t kNop = 0x90;
  const volatile uint8_t* const code = d_hit_code;
  return std::any_of(code, code + kHitCodeBytes, [](uint8_t byte) { return byte != kNop; });
}

int fire_static(int count) {
  wait_until([] { return d_victim_semaphore != 0 && hit_is_set(); });
  for (int i = 0; i < count; ++i)
    hit(i - 1, "text", 1.5);
  return 0;
}

int call_plugin(const char* path, int count) {
  say("ready");
  read_line();
  void* library = dlopen(path, RTLD_NOW);
  if (library == nullptr) return 98;
  void* symbol = dlsym(library, "plugin_work");
  if (symbol == nullptr) return 97;
  auto* work = reinterpret_cast<int (*)(int)>(symbol);
  pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (poll(&input, 1, 1) == 0)
    (void)work(-1);
  for (int i = 0; i < count; ++i)
    (void)work(i);
  return 0;
}

int ask(int count) {
  for (int i = 0; i < count; ++i)
    (void)getppid();
  return 0;
}

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

// Each way in which a mutex that checks can be used wrongly, once.
int fail_with(pthread_mutex_t* lock) {
  (void)pthread_mutex_unlock(lock);  // EPERM
  (void)pthread_mutex_lock(lock);
  (void)pthread_mutex_lock(lock);  // EDEADLK
  return pthread_mutex_unlock(lock);
}

enum class Lock : uint8_t { Mutex, Read, Write };

void* take(void* lock) {
  switch (*static_cast<Lock*>(lock)) {
    case Lock::Mutex:
      pthread_mutex_lock(&mutex);
      pthread_mutex_unlock(&mutex);
      break;
    case Lock::Read:
      pthread_rwlock_rdlock(&rwlock);
      pthread_rwlock_unlock(&rwlock);
      break;
    case Lock::Write:
      pthread_rwlock_wrlock(&rwlock);
      pthread_rwlock_unlock(&rwlock);
      break;
  }
  return nullptr;
}

// Whether another thread sleeps in futex(2).
bool another_waits() {
  constexpr std::string_view kFutex = "202 ";
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string call;
    std::getline(std::ifstream(task.path() / "syscall"), call);
    if (call.starts_with(kFutex)) return true;
  }
  return false;
}

int contend(int count) {
  printf("mutex %p rwlock %p checked %p\n", static_cast<void*>(&mutex), static_cast<void*>(&rwlock),
         static_cast<void*>(&checked));
  fflush(stdout);
  for (int i = 0; i < count; ++i) {
    for (Lock lock : {Lock::Mutex, Lock::Read, Lock::Write}) {
      if (lock == Lock::Mutex) {
        pthread_mutex_lock(&mutex);
      } else {
        pthread_rwlock_wrlock(&rwlock);
      }
      pthread_t thread;
      pthread_create(&thread, nullptr, take, &lock);
      wait_until(another_waits);
      if (lock == Lock::Mutex) {
        pthread_mutex_unlock(&mutex);
      } else {
        pthread_rwlock_unlock(&rwlock);
      }
      pthread_join(thread, nullptr);
    }
  }
  pthread_mutex_lock(&mutex);
  (void)pthread_mutex_trylock(&mutex);  // Busy: neither an acquire nor an error.
  pthread_mutex_unlock(&mutex);
  if (pthread_mutex_trylock(&mutex) == 0) pthread_mutex_unlock(&mutex);
  return fail_with(&checked);
}

}  // namespace

int main(int argc, char** argv) {
  const char* verb = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? atoi(argv[argc - 1]) : 0;
  if (strcmp(verb, "static") == 0) return fire_static(count);
  if (strcmp(verb, "plugin") == 0 && argc > 3) return call_plugin(argv[2], count);
  if (strcmp(verb, "constructed") == 0) return d_main_reached(d_constructed_before_main) - 8;
  if (strcmp(verb, "locks") == 0) return contend(count);
  if (strcmp(verb, "asks") == 0) return ask(count);
  if (strcmp(verb, "status") == 0) return count;
  if (strcmp(verb, "signal") == 0) return raise(count);
  if (strcmp(verb, "waits") != 0) return 2;
  say("ready");
  read_line();
  return 0;
}

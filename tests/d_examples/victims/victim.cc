// SPDX-License-Identifier: Apache-2.0
// The program that the D examples are tried on: each verb does one thing a known number of times,
// so that what a script counts can be compared with what was done.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr long kPageBytes = 4096;
constexpr long kMallocBytes = 70000;
constexpr long kNanosecondsInMs = 1000000;

pthread_mutex_t mutex_of_victim = PTHREAD_MUTEX_INITIALIZER;
volatile long sink = 0;
long calls_made = 0;  // Of hurries.

}  // namespace

// Functions that scripts name: outside the anonymous namespace, and never inlined.
extern "C" {

int futex_of_victim = 0;

[[gnu::noinline]] long innermost(long n) {
  sink = sink + n;
  return n + 1;
}

[[gnu::noinline]] long middle(long n) {
  long sum = innermost(n);
  sum += innermost(n + 1);
  sink = sink + sum;
  return sum;
}

[[gnu::noinline]] long outermost(long n) {
  const long result = middle(n);
  sink = sink + result;
  return result;
}

[[gnu::noinline]] long system_calls(long n) {
  sink = sink + n;
  const long parent = syscall(SYS_getppid);
  sink = sink + middle(parent);
  return parent;
}

[[gnu::noinline]] void burn() {
  for (long i = 0; i < 1000000; ++i)
    sink = sink + i;
}

[[gnu::noinline]] void write_one_byte(int fd) {
  if (write(fd, "x", 1) != 1) std::abort();
  sink = sink + 1;
}

[[gnu::noinline]] void allocate() {
  void* memory = std::malloc(kMallocBytes);
  sink = sink + (memory == nullptr ? 1 : 0);
  std::free(memory);
}
}

namespace {

void sleep_ms(long ms) {
  const timespec time = {.tv_sec = 0, .tv_nsec = ms * kNanosecondsInMs};
  nanosleep(&time, nullptr);
}

void opens(long) {
  const int fd = open("/dev/null", O_RDONLY);
  close(fd);
  open("/no/such/file/of/victim", O_RDONLY);
}

void fails(long) {
  close(-1);
}

void ioctls(long) {
  static const int fd = open("/dev/null", O_RDONLY);
  int unused = 0;
  ioctl(fd, FIONREAD, &unused);  // ENOTTY
  ioctl(fd, FIOCLEX);            // succeeds
}

void writes(long) {
  static const int fd = open("/dev/null", O_WRONLY);
  static const std::array<char, 3000> text{};
  write_one_byte(fd);
  if (write(fd, text.data(), text.size()) < 0) std::abort();
}

void copies(long) {
  static const int from = open("/dev/zero", O_RDONLY);
  static const int to = open("/dev/null", O_WRONLY);
  static std::array<char, 1000> text{};
  if (read(from, text.data(), text.size()) < 0) std::abort();
  if (write(to, text.data(), text.size()) < 0) std::abort();
}

void waits(long) {
  const timespec time = {.tv_sec = 0, .tv_nsec = kNanosecondsInMs};
  syscall(SYS_futex, &futex_of_victim, FUTEX_WAIT_PRIVATE, 0, &time, nullptr, 0);
}

void* lock_once(void*) {
  pthread_mutex_lock(&mutex_of_victim);
  sink = sink + 1;
  pthread_mutex_unlock(&mutex_of_victim);
  return nullptr;
}

// Another thread has to wait for the mutex.
void locks(long) {
  constexpr int kWaitedFor = 2;  // What the C library's mutex is then.
  pthread_mutex_lock(&mutex_of_victim);
  pthread_t other{};
  if (pthread_create(&other, nullptr, lock_once, nullptr) != 0) std::abort();
  const volatile int& state = mutex_of_victim.__data.__lock;
  while (state != kWaitedFor)
    sleep_ms(1);
  pthread_mutex_unlock(&mutex_of_victim);
  pthread_join(other, nullptr);
}

void sleeps(long) {
  sleep_ms(2);
}

// As many system calls as go into 10 ms.
void hurries(long) {
  constexpr long kTurnNs = 10 * kNanosecondsInMs;
  const auto now_ns = [] {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 * kNanosecondsInMs + time.tv_nsec;
  };
  for (const long end_ns = now_ns() + kTurnNs; now_ns() < end_ns; ++calls_made)
    syscall(SYS_getppid);
}

void polls(long) {
  poll(nullptr, 0, 1);
}
void allocations(long) {
  allocate();
}
void functions(long i) {
  outermost(i);
}
void crossings(long i) {
  system_calls(i);
}
void says(long) {
  if (write(STDERR_FILENO, "spoken\n", 7) < 0) std::abort();
}

void throws(long) {
  try {
    throw std::runtime_error("victim");
  } catch (const std::runtime_error&) {
    sink = sink + 1;
  }
}

void maps(long) {
  void* memory = mmap(nullptr, 3 * kPageBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(memory, 3 * kPageBytes);
}

void faults(long) {
  void* memory =
      mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<volatile char*>(memory) = 1;
  munmap(memory, kPageBytes);
}

void grows(long) {
  if (sbrk(16 * kPageBytes) == reinterpret_cast<void*>(-1)) std::abort();
}

void syncs(long) {
  static const int fd = open("synced", O_CREAT | O_RDWR | O_TRUNC, 0600);
  write_one_byte(fd);
  fsync(fd);
}

void forks(long) {
  const pid_t child = fork();
  if (child == 0) _exit(3);
  waitpid(child, nullptr, 0);
}

void kills(long) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  kill(child, SIGTERM);
  waitpid(child, nullptr, 0);
}

void removes(long) {
  close(open("removed", O_CREAT | O_RDWR, 0600));
  unlink("removed");
}

void misses(long) {
  const pid_t child = fork();
  if (child == 0) {
    execl("/no/such/program", "program", nullptr);
    _exit(1);
  }
  waitpid(child, nullptr, 0);
}

// Burns its CPU until standard input ends.
void spins(long) {
  pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (poll(&input, 1, 0) == 0)
    burn();
}

void run_on_cpu(int cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  sched_setaffinity(0, sizeof cpus, &cpus);
}

// Has another CPU start and stop a counter, for which it must be interrupted.
void interrupts(long) {
  run_on_cpu(0);
  perf_event_attr counter = {};
  counter.type = PERF_TYPE_SOFTWARE;
  counter.size = sizeof counter;
  counter.config = PERF_COUNT_SW_DUMMY;
  const long fd = syscall(SYS_perf_event_open, &counter, -1, 1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) std::abort();
  close(static_cast<int>(fd));
}

// Until the process waits for something.
void await_sleep(pid_t pid) {
  std::array<char, 64> path{};
  (void)std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  for (char state = 'R'; state != 'S' && state != 'Z';) {
    FILE* stat = std::fopen(path.data(), "re");
    if (stat == nullptr || std::fscanf(stat, "%*d %*s %c", &state) != 1) std::abort();
    std::fclose(stat);
    sched_yield();
  }
}

// The server and the client of section 9 of the DTrace paper: a request is a byte, and the server
// maps memory for each.
void answer(int socket, pid_t client) {
  pollfd input = {.fd = socket, .events = POLLIN, .revents = 0};
  for (;;) {
    poll(&input, 1, -1);
    char request = 0;
    if (read(socket, &request, 1) != 1) return;
    maps(0);
    await_sleep(client);  // For the reply.
    write_one_byte(socket);
  }
}

void serves(long) {
  int sockets[2] = {};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) std::abort();
  const pid_t client = fork();
  if (client == 0) {
    pthread_setname_np(pthread_self(), "d_client");
    close(sockets[0]);
    for (int i = 0; i < 50; ++i) {
      write_one_byte(sockets[1]);
      char reply = 0;
      if (read(sockets[1], &reply, 1) != 1) _exit(1);
    }
    _exit(0);
  }
  close(sockets[1]);
  answer(sockets[0], client);
  waitpid(client, nullptr, 0);
}

struct Verb {
  std::string_view name;
  void (*once)(long index);
};

constexpr Verb kVerbs[] = {
    {"opens", opens},         {"fails", fails},           {"ioctls", ioctls},
    {"writes", writes},       {"copies", copies},         {"waits", waits},
    {"locks", locks},         {"sleeps", sleeps},         {"hurries", hurries},
    {"polls", polls},         {"throws", throws},         {"allocations", allocations},
    {"maps", maps},           {"faults", faults},         {"grows", grows},
    {"syncs", syncs},         {"forks", forks},           {"kills", kills},
    {"removes", removes},     {"misses", misses},         {"spins", spins},
    {"serves", serves},       {"interrupts", interrupts}, {"says", says},
    {"functions", functions}, {"crossings", crossings},
};

void tell_usage() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const long cpu_us = usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec +
                      usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec;
  std::fprintf(stderr, "victim %d: slept %ld preempted %ld faults %ld cpu_us %ld calls %ld\n",
               getpid(), usage.ru_nvcsw, usage.ru_nivcsw, usage.ru_minflt, cpu_us, calls_made);
}

}  // namespace

// d_victim VERB COUNT [wait]: with wait, says "ready" and begins when standard input has a line.
int main(int argc, char** argv) {
  if (argc < 3) return 2;
  if (argc > 3) {
    std::puts("ready");
    std::fflush(stdout);
    char line = 0;
    if (read(STDIN_FILENO, &line, 1) != 1) return 1;
  }
  const Verb* verb = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                                  [&](const Verb& it) { return it.name == argv[1]; });
  if (verb == std::end(kVerbs)) return 2;
  const long count = std::atol(argv[2]);
  for (long i = 0; i < count; ++i)
    verb->once(i);
  tell_usage();
  return 0;
}

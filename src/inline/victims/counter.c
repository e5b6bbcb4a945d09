// SPDX-License-Identifier: Apache-2.0
// A program to trace: does on command what the tests want, and counts for itself. Commands come one
// per line on stdin; each is answered with one line on stdout.
//
//   calls N        calls work() N times             -> number of calls so far, of this process
//   exits N        calls choose() N times           -> number of returns so far
//   threads T N    T threads call work() N times    -> number of calls so far
//   fork N         a child calls work() N times     -> its exit status
//   exec           runs itself again
//   exec_thread    another thread does
//   name TEXT      calls the first thread so; \n is a newline -> done
//   sum            -> a checksum of all results
//   load FILE      loads a library and calls its plugin_work() 10 times -> what its constructor
//                  counted, plus what it counts now
//   unload         -> done
//   family N       a child calls work() N times, and lives until "bury" -> its pid
//   strays N       the same of a child that maps memory that grows down -> its pid
//   bury           -> its exit status
//   orphan N       a process that waits for SIGTERM, calls work() and ends with 7 -> its pid;
//                  N = 1: a child's child, whose parent has ended
//   breed N        a thread forks such a child every 2 ms, N in all -> done
//   bred           -> how many there are
//   weaned         when it has forked them all -> how many there are
//   crash, quit
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <dlfcn.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static atomic_long calls;
static atomic_long returns;
static atomic_long sum;

__attribute__((noinline)) long work(long value) {
  __asm__ volatile("" : : : "memory");
  return value * 3 + 1;
}

__attribute__((noinline)) long choose(long value) {
  if (value % 3 == 0) return work(value) + 7;
  if (value % 3 == 1) return work(value + 1);
  return value;
}

__attribute__((noinline)) long recurse(long depth) {
  if (depth <= 0) return 1;
  return recurse(depth - 1) + work(depth);
}

static void call_work(long count) {
  for (long i = 0; i < count; ++i)
    atomic_fetch_add(&sum, work(i));
  atomic_fetch_add(&calls, count);
}

static void* thread_main(void* argument) {
  call_work((long)argument);
  return NULL;
}

static void run_threads(long threads, long count) {
  pthread_t handles[256];
  if (threads > 256) threads = 256;
  for (long i = 0; i < threads; ++i)
    pthread_create(&handles[i], NULL, thread_main, (void*)count);
  for (long i = 0; i < threads; ++i)
    pthread_join(handles[i], NULL);
}

static int run_child(long count) {
  const pid_t child = fork();
  if (child == 0) {
    call_work(count);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

static void* plugin;

static long load(const char* path) {
  plugin = dlopen(path, RTLD_NOW);
  if (plugin == NULL) return -1;
  long (*plugin_work)(long) = (long (*)(long))dlsym(plugin, "plugin_work");
  long (*plugin_calls)(void) = (long (*)(void))dlsym(plugin, "plugin_calls");
  for (long i = 0; i < 10; ++i)
    atomic_fetch_add(&sum, plugin_work(i));
  return plugin_calls();
}

static void* exec_main(void* arguments) {
  execv("/proc/self/exe", arguments);
  return NULL;
}

static void take_name(char* name) {
  char* const gap = strstr(name, "\\n");
  if (gap != NULL) {
    *gap = '\n';
    memmove(gap + 1, gap + 2, strlen(gap + 2) + 1);
  }
  prctl(PR_SET_NAME, name);
}

static pid_t relative;
static int relative_pipe[2];

static void map_growing_memory(void) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN;
  if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED) _exit(1);
}

static pid_t start_family(long count, int strays) {
  if (pipe(relative_pipe) != 0) return -1;
  int done[2];
  if (pipe(done) != 0) return -1;
  relative = fork();
  if (relative == 0) {
    if (strays) map_growing_memory();
    call_work(count);
    char byte = 'd';
    close(relative_pipe[1]);
    if (write(done[1], &byte, 1) != 1) _exit(1);
    while (read(relative_pipe[0], &byte, 1) > 0) {
    }
    call_work(count);
    _exit(7);
  }
  char byte;
  if (read(done[0], &byte, 1) != 1) return -1;
  close(done[0]);
  close(done[1]);
  close(relative_pipe[0]);
  return relative;
}

static int end_family(void) {
  int status = -1;
  close(relative_pipe[1]);
  waitpid(relative, &status, 0);
  return status;
}

static void wait_for_the_end(void) {
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  alarm(60);
  while (sigwaitinfo(&end, NULL) != SIGTERM) {
  }
  call_work(100);
  _exit(7);
}

static void block_end(int how) {
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  pthread_sigmask(how, &end, NULL);
}

static pid_t start_orphan(long generations) {
  int born[2];
  if (pipe(born) != 0) return -1;
  block_end(SIG_BLOCK);
  const pid_t child = fork();
  if (child == 0) {
    if (generations != 0 && fork() != 0) _exit(0);
    const pid_t self = getpid();
    if (write(born[1], &self, sizeof self) != sizeof self) _exit(1);
    wait_for_the_end();
  }
  block_end(SIG_UNBLOCK);
  if (generations != 0) waitpid(child, NULL, 0);
  pid_t orphan = -1;
  if (read(born[0], &orphan, sizeof orphan) != sizeof orphan) orphan = -1;
  close(born[0]);
  close(born[1]);
  return orphan;
}

static atomic_long bred;
static pthread_t breeder;

static void* breed_main(void* raw) {
  const struct timespec pause = {.tv_nsec = 2000000};
  block_end(SIG_BLOCK);
  for (long left = (long)raw; left > 0; --left) {
    if (fork() == 0) wait_for_the_end();
    atomic_fetch_add(&bred, 1);
    nanosleep(&pause, NULL);
  }
  return NULL;
}

static atomic_int storming;
static atomic_long stormed;

static void* storm_main(void* unused) {
  long count = 0;
  while (atomic_load(&storming)) {
    atomic_fetch_add(&sum, work(count) & 1);
    ++count;
  }
  atomic_fetch_add(&stormed, count);
  return unused;
}

static pthread_t storm_threads[64];
static long storm_count;

static void start_storm(long threads) {
  atomic_store(&storming, 1);
  storm_count = threads > 64 ? 64 : threads;
  for (long i = 0; i < storm_count; ++i)
    pthread_create(&storm_threads[i], NULL, storm_main, NULL);
}

static long stop_storm(void) {
  atomic_store(&storming, 0);
  for (long i = 0; i < storm_count; ++i)
    pthread_join(storm_threads[i], NULL);
  return atomic_load(&stormed);
}

// A comparison and its branch with live flags, strings that go backwards and a word in the red zone
// between them: what a probe at an offset must not disturb. flags_work(n) = n + 1, and 100 more
// when n >= 10; and 16 less when strings go forwards.
long flags_work(long value);
__asm__(
    ".text\n.globl flags_work\n.type flags_work, @function\nflags_work:\n"
    "  mov %rdi, -8(%rsp)\n"
    "  std\n"
    "  cmp $10, %rdi\n"
    "  lea 1(%rdi), %rax\n"
    "  mov $100, %edi\n"
    "  jl 1f\n"
    "  add %rdi, %rax\n"
    "1: sub -8(%rsp), %rax\n"
    "  add -8(%rsp), %rax\n"
    "  mov %rax, %rdx\n"
    "  lea -8(%rsp), %rsi\n"
    "  mov %rsi, %rcx\n"
    "  lodsq\n"
    "  cld\n"
    "  sub %rsi, %rcx\n"
    "  lea -8(%rdx,%rcx), %rax\n"
    "  ret\n"
    ".size flags_work, . - flags_work\n");

// A function whose first five bytes are several instructions. short_work(n) = n + 1.
long short_work(long value);
__asm__(
    ".text\n.globl short_work\n.type short_work, @function\nshort_work:\n"
    "  push %rbx\n"
    "  mov %rdi, %rbx\n"
    "  lea 1(%rbx), %rax\n"
    "  pop %rbx\n"
    "  ret\n"
    ".size short_work, . - short_work\n");

// Holds the interrupted thread until a byte comes.
static void handle(int signal) {
  char byte = 0;
  (void)signal;
  if (write(1, "handler\n", 8) != 8) _exit(1);
  while (read(0, &byte, 1) == 1 && byte != '\n') {
  }
}

// From now on the handler runs on a stack of its own.
static int handle_elsewhere(void) {
  static char room[65536];
  const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
  return sigaltstack(&stack, NULL) | sigaction(SIGUSR1, &action, NULL);
}

// Two handlers of one thread: SIGUSR1 interrupts it where it is, and SIGALRM runs on a stack that
// is a variable of the main function.
static void handle_with_another(int signal) {
  (void)signal;
  raise(SIGALRM);
}

static int handle_nested(char* room, size_t size) {
  const stack_t stack = {.ss_sp = room, .ss_size = size};
  struct sigaction first = {.sa_handler = handle_with_another};
  struct sigaction second = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
  return sigaltstack(&stack, NULL) | sigaction(SIGUSR1, &first, NULL) |
         sigaction(SIGALRM, &second, NULL);
}

// The same handler on a stack that the interrupted one has switched to, in the same variable.
static char* other_stack;

static void handle_on_other(int signal) {
  static ucontext_t here;
  static ucontext_t there;
  getcontext(&there);
  there.uc_stack.ss_sp = other_stack;
  there.uc_stack.ss_size = 65536;
  there.uc_link = &here;
  makecontext(&there, (void (*)(void))handle, 1, signal);
  swapcontext(&here, &there);
}

static int handle_switched(char* room) {
  other_stack = room;
  const struct sigaction action = {.sa_handler = handle_on_other};
  return sigaction(SIGUSR1, &action, NULL);
}

// A thread that does one piece of work and then rests, with what signals left below its stack.
static atomic_int worker_turn;
static atomic_int worker_thread;
static long worker_total;
static long worker_count;

static void wait_for_turn(int turn) {
  for (int now; (now = atomic_load(&worker_turn)) != turn;)
    syscall(SYS_futex, &worker_turn, FUTEX_WAIT, now, NULL, NULL, 0);
}

static void give_turn(int turn) {
  atomic_store(&worker_turn, turn);
  syscall(SYS_futex, &worker_turn, FUTEX_WAKE, 2, NULL, NULL, 0);
}

static void* worker_main(void* unused) {
  atomic_store(&worker_thread, (int)syscall(SYS_gettid));
  give_turn(1);
  wait_for_turn(2);
  for (long i = 0; i < worker_count; ++i)
    worker_total += short_work(i);
  give_turn(3);
  wait_for_turn(4);
  return unused;
}

static int start_worker(const pthread_attr_t* attributes) {
  pthread_t thread;
  if (pthread_create(&thread, attributes, worker_main, NULL) != 0) return -1;
  wait_for_turn(1);
  return atomic_load(&worker_thread);
}

static void* rest(void* unused) {
  pause();
  return unused;
}

// The same on a stack below that of another thread, in one mapping.
static int start_neighbours(void) {
  const size_t size = 1 << 18;
  char* const stacks =
      mmap(NULL, 3 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(stacks + 2 * size, size, PROT_NONE);
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stacks + size, size);
  if (pthread_create(&thread, &attributes, rest, NULL) != 0) return -1;
  pthread_attr_setstack(&attributes, stacks, size);
  return start_worker(&attributes);
}

static long let_worker(long count) {
  worker_count = count;
  give_turn(2);
  wait_for_turn(3);
  return worker_total;
}

// A coroutine that SIGUSR2 switches away from, wherever it is; its signal frame stays on its stack.
static ucontext_t main_context;
static ucontext_t coroutine_context;
static volatile int in_coroutine;
static long coroutine_total;
static long coroutine_count;

static void coroutine_main(void) {
  for (long i = 0; i < coroutine_count; ++i)
    coroutine_total += short_work(i);
  in_coroutine = 0;
}

static void switch_away(int signal) {
  (void)signal;
  if (!in_coroutine) return;
  in_coroutine = 0;
  swapcontext(&coroutine_context, &main_context);
  in_coroutine = 1;
}

// The handler has a stack of its own, which nobody else gets until it has come back.
static int switch_elsewhere(void) {
  static char room[65536];
  const stack_t stack = {
      .ss_sp = room, .ss_size = sizeof room, .ss_flags = (int)0x80000000};  // SS_AUTODISARM
  struct sigaction action = {.sa_handler = switch_away, .sa_flags = SA_ONSTACK};
  return sigaltstack(&stack, NULL) | sigaction(SIGUSR2, &action, NULL);
}

static void start_coroutine(long count, char* stack, size_t size) {
  coroutine_count = count;
  coroutine_total = 0;
  getcontext(&coroutine_context);
  coroutine_context.uc_stack.ss_size = size;
  coroutine_context.uc_stack.ss_sp = stack;
  coroutine_context.uc_link = &main_context;
  makecontext(&coroutine_context, coroutine_main, 0);
  in_coroutine = 1;
  swapcontext(&main_context, &coroutine_context);
}

// Sleeps without restart after a signal: what is left in the kernel's answer tells of EINTR.
static long nap(long milliseconds) {
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  return nanosleep(&time, NULL);
}

// Leaves no free memory within 3 GiB of main().
static void reserve_around(void) {
  const unsigned long reach = 3UL << 30;
  const unsigned long here = (unsigned long)&reserve_around;
  unsigned long starts[512];
  unsigned long ends[512];
  unsigned long free_from = here - reach;
  size_t count = 0;
  char line[512];
  FILE* maps = fopen("/proc/self/maps", "r");
  while (count < 512 && fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%lx-%lx", &starts[count], &ends[count]) == 2) ++count;
  }
  fclose(maps);
  for (size_t i = 0; i <= count; ++i) {
    const unsigned long to = i < count && starts[i] < here + reach ? starts[i] : here + reach;
    if (to > free_from) {
      mmap((void*)(free_from & ~4095UL), to - (free_from & ~4095UL), PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    }
    if (i < count && ends[i] > free_from) free_from = ends[i];
  }
}

// Blocks in calls that a signal would end; counts those that ended early.
static int quiet_pipe[2];
static atomic_int woken_early;
static int gate;

static void* poll_main(void* unused) {
  struct pollfd entry = {quiet_pipe[0], POLLIN, 0};
  if (poll(&entry, 1, -1) != 1) atomic_fetch_add(&woken_early, 1);
  return unused;
}

static void* epoll_main(void* unused) {
  struct epoll_event event = {.events = EPOLLIN};
  const int fd = epoll_create1(0);
  epoll_ctl(fd, EPOLL_CTL_ADD, quiet_pipe[0], &event);
  if (epoll_wait(fd, &event, 1, -1) != 1) atomic_fetch_add(&woken_early, 1);
  close(fd);
  return unused;
}

static void* futex_main(void* unused) {
  if (syscall(SYS_futex, &gate, FUTEX_WAIT, 0, NULL, NULL, 0) != 0) {
    atomic_fetch_add(&woken_early, 1);
  }
  return unused;
}

static pthread_t sleepers[3];

static void start_sleepers(void) {
  if (pipe(quiet_pipe) != 0) return;
  pthread_create(&sleepers[0], NULL, poll_main, NULL);
  pthread_create(&sleepers[1], NULL, epoll_main, NULL);
  pthread_create(&sleepers[2], NULL, futex_main, NULL);
}

static int wake_sleepers(void) {
  if (write(quiet_pipe[1], "w", 1) != 1) return -1;
  while (syscall(SYS_futex, &gate, FUTEX_WAKE, 1, NULL, NULL, 0) == 0) {
    if (pthread_tryjoin_np(sleepers[2], NULL) == 0) return atomic_load(&woken_early);
    sched_yield();
  }
  for (int i = 0; i < 3; ++i)
    pthread_join(sleepers[i], NULL);
  return atomic_load(&woken_early);
}

int main(int argc, char** argv) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handle;
  sigaction(SIGUSR1, &action, NULL);
  action.sa_handler = switch_away;
  sigaction(SIGUSR2, &action, NULL);
  char line[256];
  char room[65536];
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin) != NULL) {
    long a = 0;
    long b = 0;
    char word[32] = "";
    if (sscanf(line, "%31s %ld %ld", word, &a, &b) < 1) continue;
    if (strcmp(word, "calls") == 0) {
      call_work(a);
      printf("%ld\n", atomic_load(&calls));
    } else if (strcmp(word, "exits") == 0) {
      for (long i = 0; i < a; ++i)
        atomic_fetch_add(&sum, choose(i));
      printf("%ld\n", atomic_fetch_add(&returns, a) + a);
    } else if (strcmp(word, "recurse") == 0) {
      printf("%ld\n", recurse(a));
    } else if (strcmp(word, "threads") == 0) {
      run_threads(a, b);
      printf("%ld\n", atomic_load(&calls));
    } else if (strcmp(word, "storm") == 0) {
      start_storm(a);
      printf("storming\n");
    } else if (strcmp(word, "calm") == 0) {
      printf("%ld\n", stop_storm());
    } else if (strcmp(word, "fork") == 0) {
      printf("%d\n", run_child(a));
    } else if (strcmp(word, "load") == 0) {
      line[strcspn(line, "\n")] = 0;
      printf("%ld\n", load(line + 5));
    } else if (strcmp(word, "unload") == 0) {
      dlclose(plugin);
      printf("done\n");
    } else if (strcmp(word, "family") == 0) {
      printf("%d\n", (int)start_family(a, 0));
    } else if (strcmp(word, "strays") == 0) {
      printf("%d\n", (int)start_family(a, 1));
    } else if (strcmp(word, "orphan") == 0) {
      printf("%d\n", (int)start_orphan(a));
    } else if (strcmp(word, "breed") == 0) {
      pthread_create(&breeder, NULL, breed_main, (void*)a);
      printf("done\n");
    } else if (strcmp(word, "bred") == 0) {
      printf("%ld\n", atomic_load(&bred));
    } else if (strcmp(word, "weaned") == 0) {
      pthread_join(breeder, NULL);
      printf("%ld\n", atomic_load(&bred));
    } else if (strcmp(word, "bury") == 0) {
      printf("%d\n", end_family());
    } else if (strcmp(word, "exec") == 0) {
      execv("/proc/self/exe", argv);
    } else if (strcmp(word, "exec_thread") == 0) {
      pthread_t thread;
      pthread_create(&thread, NULL, exec_main, argv);
      pause();
    } else if (strcmp(word, "name") == 0) {
      line[strcspn(line, "\n")] = 0;
      take_name(line + 5);
      printf("done\n");
    } else if (strcmp(word, "sum") == 0) {
      printf("%ld\n", atomic_load(&sum));
    } else if (strcmp(word, "flags") == 0) {
      long total = 0;
      for (long i = 0; i < a; ++i)
        total += flags_work(i % 20);
      printf("%ld\n", total);
    } else if (strcmp(word, "short") == 0) {
      long total = 0;
      for (long i = 0; i < a; ++i)
        total += short_work(i);
      printf("%ld\n", total);
    } else if (strcmp(word, "elsewhere") == 0) {
      printf("%d\n", handle_elsewhere());
    } else if (strcmp(word, "nested") == 0) {
      printf("%d\n", handle_nested(room, sizeof room));
    } else if (strcmp(word, "switched") == 0) {
      printf("%d\n", handle_switched(room));
    } else if (strcmp(word, "aside") == 0) {
      printf("%d\n", switch_elsewhere());
    } else if (strcmp(word, "neighbours") == 0) {
      printf("%d\n", start_neighbours());
    } else if (strcmp(word, "worker") == 0) {
      printf("%d\n", start_worker(NULL));
    } else if (strcmp(word, "work") == 0) {
      printf("%ld\n", let_worker(a));
    } else if (strcmp(word, "coroutine") == 0) {
      start_coroutine(a, malloc(65536), 65536);
      printf("%s\n", coroutine_total == a * (a + 1) / 2 ? "done" : "suspended");
    } else if (strcmp(word, "resume") == 0) {
      swapcontext(&main_context, &coroutine_context);
      printf("%ld\n", coroutine_total);
    } else if (strcmp(word, "gs") == 0) {
      printf("%s\n", syscall(SYS_arch_prctl, ARCH_SET_GS, line) == 0 ? "set" : "failed");
    } else if (strcmp(word, "reserve") == 0) {
      reserve_around();
      printf("full\n");
    } else if (strcmp(word, "nap") == 0) {
      printf("%ld\n", nap(a));
    } else if (strcmp(word, "sleepers") == 0) {
      start_sleepers();
      printf("asleep\n");
    } else if (strcmp(word, "wake") == 0) {
      printf("%d\n", wake_sleepers());
    } else if (strcmp(word, "crash") == 0) {
      raise(SIGSEGV);
    } else {
      break;
    }
  }
  return argc - 1;
}

// SPDX-License-Identifier: Apache-2.0
// Victim `oncall`: does one thing a known number of times, for the verbs that ask about it.
//
//   oncall calls N    close(-1)
//   oncall opens N    a file that is there, and one that is not; writes 3 bytes to /dev/null
//   oncall execs N    a shell that exits with 7
//   oncall locks N    waits 50 ms for a lock that another thread holds, whose id it prints
//   oncall sends N    1000 bytes to itself, by TCP, to a port that it prints
//   oncall throws N   exceptions of four kinds in turn
//   oncall naps N     20 ms
//   oncall keeps N    1000 bytes that it takes and keeps, and as many that it gives back
//   oncall spins N    64 million rounds of arithmetic
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VISIBLE __attribute__((noinline, visibility("default")))

namespace shop {
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct Plain {
  int code;
};
}  // namespace shop

namespace {

void check(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::exit(3);
}

void sleep_ms(long ms) {
  timespec left = {.tv_sec = 0, .tv_nsec = ms * 1000000};
  while (nanosleep(&left, &left) != 0) {
  }
}

void calls(int times) {
  for (int i = 0; i < times; ++i)
    (void)close(-1);
}

void opens(int times) {
  for (int i = 0; i < times; ++i) {
    const int file = open("/tmp", O_TMPFILE | O_WRONLY, 0600);
    const int null = open("/dev/null", O_WRONLY);
    check(file >= 0 && null >= 0 && write(null, "abc", 3) == 3, "write");
    check(open("/no/such/file/of/oncall", O_RDONLY) == -1, "open");
    (void)close(null);
    (void)close(file);
  }
}

void execs(int times) {
  for (int i = 0; i < times; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", "exit 7", nullptr);
      _exit(9);
    }
    check(waitpid(child, nullptr, 0) == child, "waitpid");
  }
}

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
std::atomic<int> rounds_held;

void* hold(void* times) {
  std::printf("owner %d\n", gettid());
  for (int i = 0; i < *static_cast<int*>(times); ++i) {
    pthread_mutex_lock(&lock);
    rounds_held = i + 1;
    sleep_ms(50);
    pthread_mutex_unlock(&lock);
    while (rounds_held != 0) {
    }
  }
  return nullptr;
}

void sends(int times) {
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  check(bind(server, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
  check(listen(server, 8) == 0, "listen");
  check(getsockname(server, reinterpret_cast<sockaddr*>(&address), &size) == 0, "getsockname");
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  check(connect(client, reinterpret_cast<sockaddr*>(&address), size) == 0, "connect");
  const int other = accept(server, nullptr, nullptr);
  std::printf("port %d\n", ntohs(address.sin_port));
  char bytes[1000] = {};
  for (int i = 0; i < times; ++i) {
    check(send(client, bytes, sizeof bytes, 0) == sizeof bytes, "send");
    check(recv(other, bytes, sizeof bytes, MSG_WAITALL) == sizeof bytes, "recv");
  }
}

}  // namespace

extern "C" {

VISIBLE void oncall_throws(int times) {
  for (int i = 0; i < times; ++i) {
    try {
      if (i % 4 == 0) throw shop::Refused("card " + std::to_string(i % 8));
      if (i % 4 == 1) throw shop::Plain{3};
      if (i % 4 == 2) throw std::out_of_range("far out");
      throw 7;
    } catch (...) {
    }
  }
}

VISIBLE void oncall_locks(int times) {
  pthread_t holder;
  check(pthread_create(&holder, nullptr, hold, &times) == 0, "pthread_create");
  for (int i = 0; i < times; ++i) {
    while (rounds_held != i + 1) {
    }
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    rounds_held = 0;
  }
  pthread_join(holder, nullptr);
}

VISIBLE void oncall_naps(int times) {
  for (int i = 0; i < times; ++i)
    sleep_ms(20);
}

VISIBLE void oncall_keeps(int times) {
  static void* volatile kept = nullptr;
  for (int i = 0; i < times; ++i) {
    kept = malloc(1000);
    void* volatile given_back = malloc(1000);
    free(given_back);
  }
  (void)kept;
}

VISIBLE uint64_t oncall_spins(int times) {
  uint64_t value = 1;
  for (int64_t i = 0; i < int64_t{64000000} * times; ++i)
    value = value * 6364136223846793005U + 1442695040888963407U;
  return value;
}

}  // extern "C"

int main(int count, char** words) {
  check(count == 3, "usage: oncall WHAT TIMES");
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string what = words[1];
  const int times = std::atoi(words[2]);
  if (what == "calls") calls(times);
  if (what == "opens") opens(times);
  if (what == "execs") execs(times);
  if (what == "sends") sends(times);
  if (what == "throws") oncall_throws(times);
  if (what == "locks") oncall_locks(times);
  if (what == "keeps") oncall_keeps(times);
  if (what == "naps") oncall_naps(times);
  if (what == "spins") return oncall_spins(times) == 0 ? 1 : 0;
  return 0;
}

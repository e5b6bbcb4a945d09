// SPDX-License-Identifier: Apache-2.0
// What does a message cost? Sends messages of 8 bytes to itself over TCP, in bursts, with a rest
// so many microseconds behind each: `time BURSTS MESSAGES REST` answers with ns_per_pair, the
// median of the bursts, and `pairs`, how many messages were sent and received.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kBurstsMax = 1000 };

static double bursts[kBurstsMax];

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void check(int good) {
  if (good) return;
  perror("messages");
  exit(1);
}

static void connect_ends(int* from, int* to) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  const int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  check(bind(listener, (struct sockaddr*)&address, size) == 0 && listen(listener, 1) == 0);
  check(getsockname(listener, (struct sockaddr*)&address, &size) == 0);
  *from = socket(AF_INET, SOCK_STREAM, 0);
  check(connect(*from, (struct sockaddr*)&address, size) == 0);
  check(setsockopt(*from, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
  check((*to = accept(listener, NULL, NULL)) >= 0);
  close(listener);
}

__attribute__((noinline, noclone)) void burst(int from, int to, long messages) {
  for (long i = 0; i < messages; ++i) {
    int64_t message = i;
    check(send(from, &message, sizeof message, 0) == sizeof message);
    check(recv(to, &message, sizeof message, 0) == sizeof message);
  }
}

static void measure(int from, int to, long count, long messages, long rest_us) {
  for (long i = 0; i < count; ++i) {
    const double begin = now_ns();
    burst(from, to, messages);
    bursts[i] = (now_ns() - begin) / (double)messages;
    if (rest_us > 0) usleep((unsigned)rest_us);
  }
  qsort(bursts, (size_t)count, sizeof *bursts, compare);
  printf("ns_per_pair %.1f\npairs %ld\nend\n", bursts[count / 2], count * messages);
}

int main(void) {
  int from, to;
  connect_ends(&from, &to);
  setvbuf(stdout, NULL, _IOLBF, 0);
  puts("ready");
  long count, messages, rest_us;
  while (scanf(" time %ld %ld %ld", &count, &messages, &rest_us) == 3) {
    check(count > 0 && count <= kBurstsMax);
    measure(from, to, count, messages, rest_us);
  }
  return 0;
}

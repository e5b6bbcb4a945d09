// SPDX-License-Identifier: Apache-2.0
// Three processes, each of which asks the next one by TCP. Message number n of each kind has n
// bytes more than it has of its own, so that its size tells which one it is.
//
//     relays work JOBS       answers, and crashes by the last one; prints its port
//     relays serve PORT      asks who works there for whoever asks it, and echoes to another one,
//                            each in a thread; prints its port
//     relays ask PORT        asks until nobody answers, and aborts
//     relays disturb PORT TIMES   is echoed to so often, or until nobody does; says when it is
//                            connected
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kAsked = 100, kWanted = 300, kDone = 500, kAnswered = 700, kEcho = 64, kMax = 1024 };

static int worker;

static struct sockaddr_in own_address(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

static int connected(const char* port) {
  const struct sockaddr_in address = own_address(atoi(port));
  const int made = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(made, (const struct sockaddr*)&address, sizeof address) != 0) exit(3);
  return made;
}

static int listening(void) {
  struct sockaddr_in address = own_address(0);
  socklen_t size = sizeof address;
  const int made = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(made, (const struct sockaddr*)&address, size) != 0 || listen(made, 8) != 0) exit(3);
  if (getsockname(made, (struct sockaddr*)&address, &size) != 0) exit(3);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  return made;
}

static __attribute__((noinline)) ssize_t work(int from, int jobs, volatile int* nothing) {
  char text[kMax];
  const ssize_t size = read(from, text, sizeof text);
  const ssize_t job = size - kWanted;
  if (job == jobs) *nothing = 1;  // LAST: worked
  return size <= 0 ? size : send(from, text, (size_t)(kDone + job), 0);
}

// Looks first how much there is, as some do.
static __attribute__((noinline)) void relay(int from) {
  char text[kMax];
  const ssize_t seen = recv(from, text, sizeof text, MSG_PEEK);
  const ssize_t size = recvfrom(from, text, sizeof text, 0, NULL, NULL);
  if (size <= 0 || seen != size) abort();
  const size_t job = (size_t)(size - kAsked);
  const struct iovec parts[] = {{text, 10}, {text, kWanted + job - 10}};
  if (writev(worker, parts, 2) < 0) abort();
  const ssize_t done = readv(worker, &(struct iovec){text, sizeof text}, 1);
  if (done != (ssize_t)(kDone + job)) abort();
  const struct msghdr message = {.msg_iov = &(struct iovec){text, kAnswered + job},
                                 .msg_iovlen = 1};
  if (sendmsg(from, &message, MSG_NOSIGNAL) < 0) abort();
}

static void* relays(void* from) {
  for (;;)
    relay((int)(intptr_t)from);
  return NULL;
}

static void* echoes(void* from) {
  char text[kEcho];
  while (read((int)(intptr_t)from, text, sizeof text) == kEcho) {
    if (send((int)(intptr_t)from, text, sizeof text, MSG_NOSIGNAL) != kEcho) break;
  }
  return NULL;
}

static void serve(const char* port) {
  pthread_t thread;
  const pid_t child = fork();  // What is opened behind it is ours alone.
  if (child == 0) _exit(0);
  if (waitpid(child, NULL, 0) != child) exit(3);
  worker = connected(port);
  const int door = listening();
  void* (*const all[])(void*) = {echoes, relays};
  for (int i = 0; i < 2; ++i)
    pthread_create(&thread, NULL, all[i], (void*)(intptr_t)accept(door, NULL, NULL));
  pthread_join(thread, NULL);
}

static __attribute__((noinline)) ssize_t ask(int whom, size_t job) {
  char text[kMax] = {0};
  if (write(whom, text, kAsked + job) < 0) abort();
  return read(whom, text, sizeof text);
}

int main(int count, char** words) {
  if (count < 3) return 2;
  if (strcmp(words[1], "work") == 0) {
    const int from = accept(listening(), NULL, NULL);
    while (work(from, atoi(words[2]), NULL) > 0)
      continue;
  } else if (strcmp(words[1], "serve") == 0) {
    serve(words[2]);
  } else if (strcmp(words[1], "ask") == 0) {
    const int whom = connected(words[2]);
    for (size_t job = 1; ask(whom, job) > 0; ++job)
      continue;
    abort();
  } else {
    char text[kEcho] = {0};
    const int whom = connected(words[2]);
    puts("connected");
    fflush(stdout);
    for (int i = 0; i < atoi(words[3]); ++i) {
      if (send(whom, text, kEcho, MSG_NOSIGNAL) != kEcho || read(whom, text, kEcho) <= 0) return 0;
    }
    while (read(whom, text, kEcho) > 0)
      continue;
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Victim `piper`: threads in front hand requests to child processes through pipes, and get answers
// through others. A request's number is in the bytes alone, so what a join by cause finds can be
// compared with what was so. The functions are front_request, where a request begins, back_request
// in a child, front_answer with the answer, and logged in one more child, which reads what all the
// others write into one pipe.
//
// `how N` says how bytes travel from now on: the sum of the k... below.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "victim.h"

VICTIM_COUNTER(front_request);
VICTIM_COUNTER(back_request);
VICTIM_COUNTER(front_answer);
VICTIM_COUNTER(logged);

namespace {

constexpr uint64_t kParts = 1;         // Writes and reads a message in parts.
constexpr uint64_t kVectors = 2;       // By writev() and readv().
constexpr uint64_t kPages = 4;         // Gives the message's memory to the pipe (vmsplice).
constexpr uint64_t kFifo = 8;          // Through a pipe with a name.
constexpr uint64_t kPackets = 16;      // Through a pipe that keeps messages apart.
constexpr uint64_t kShared = 32;       // All children read from one pipe.
constexpr uint64_t kWakes = 64;        // A child hands requests on in memory, and a byte wakes.
constexpr uint64_t kSplicedIn = 128;   // From another pipe.
constexpr uint64_t kSplicedOut = 256;  // Into another pipe.
constexpr int kFronts = 3;
constexpr uint64_t kOfFront = 1'000'000;

std::atomic<uint64_t> how = 0;
std::atomic<uint64_t> digest = 0;

bool travels(uint64_t which) {
  return (how & which) != 0;
}

}  // namespace

extern "C" VICTIM_FUNCTION void front_request(uint64_t request) {
  VICTIM_COUNT(front_request);
  digest += victim_mix(1, request);
}

extern "C" VICTIM_FUNCTION void back_request(uint64_t request) {
  VICTIM_COUNT(back_request);
  digest += victim_mix(2, request);
}

extern "C" VICTIM_FUNCTION void front_answer(uint64_t request) {
  VICTIM_COUNT(front_answer);
  digest += victim_mix(3, request);
}

extern "C" VICTIM_FUNCTION void logged(uint64_t request) {
  VICTIM_COUNT(logged);
  digest += victim_mix(4, request);
}

namespace {

struct Pipe {
  int from = -1;
  int to = -1;
};

Pipe make_fifo() {
  static std::atomic<int> last = 0;
  const std::string path = "/tmp/piper." + std::to_string(getpid()) + "." + std::to_string(++last);
  VICTIM_CHECK(mkfifo(path.c_str(), 0600) == 0);
  Pipe made;
  made.from = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  made.to = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  VICTIM_CHECK(made.from >= 0 && made.to >= 0 && fcntl(made.from, F_SETFL, 0) == 0);
  unlink(path.c_str());
  return made;
}

Pipe make_pipe() {
  if (travels(kFifo)) return make_fifo();
  std::array<int, 2> ends{};
  VICTIM_CHECK(pipe2(ends.data(), O_CLOEXEC | (travels(kPackets) ? O_DIRECT : 0)) == 0);
  return {.from = ends[0], .to = ends[1]};
}

void close_both(const Pipe& ends) {
  close(ends.from);
  close(ends.to);
}

using Message = std::array<char, 64>;  // A number, 8 times.

Message message_of(uint64_t request) {
  Message message{};
  for (size_t at = 0; at < message.size(); at += sizeof request)
    std::memcpy(&message[at], &request, sizeof request);
  return message;
}

uint64_t number_in(const char* message) {
  uint64_t request = 0;
  std::memcpy(&request, message, sizeof request);
  return request;
}

// The pipe has the memory itself, which stays as it is until the answer has come.
void give_pages(int to, const Message& message) {
  thread_local Message kept;
  kept = message;
  iovec part = {kept.data(), kept.size()};
  VICTIM_CHECK(vmsplice(to, &part, 1, 0) == sizeof message);
}

void splice_in(int to, const Message& message) {
  const Pipe own = make_pipe();
  VICTIM_CHECK(write(own.to, message.data(), message.size()) == sizeof message);
  VICTIM_CHECK(splice(own.from, nullptr, to, nullptr, message.size(), 0) == sizeof message);
  close_both(own);
}

void send_message(int to, const Message& message) {
  if (travels(kPages)) return give_pages(to, message);
  if (travels(kSplicedIn)) return splice_in(to, message);
  size_t sent = 0;
  while (travels(kParts) && sent < 3)
    VICTIM_CHECK(write(to, &message[sent++], 1) == 1);
  const auto rest = static_cast<ssize_t>(message.size() - sent);
  std::array<iovec, 2> parts = {
      {{const_cast<char*>(&message[sent]), 5},
       {const_cast<char*>(&message[sent + 5]), message.size() - sent - 5}}};
  if (travels(kVectors)) {
    VICTIM_CHECK(writev(to, parts.data(), parts.size()) == rest);
  } else {
    VICTIM_CHECK(write(to, &message[sent], message.size() - sent) == rest);
  }
}

ssize_t splice_out(int from, char* to, size_t size) {
  const Pipe own = make_pipe();
  const ssize_t moved = splice(from, nullptr, own.to, nullptr, size, 0);
  if (moved > 0) VICTIM_CHECK(read(own.from, to, static_cast<size_t>(moved)) == moved);
  close_both(own);
  return moved;
}

// False: nobody writes any more.
bool receive_message(int from, Message& message) {
  size_t got = 0;
  while (got < message.size()) {
    const size_t most = travels(kParts) ? 7 : message.size();
    const size_t wanted = std::min(most, message.size() - got);
    std::array<iovec, 2> parts = {{{&message[got], 1}, {&message[got + 1], wanted - 1}}};
    ssize_t count = 0;
    if (travels(kSplicedOut)) {
      count = splice_out(from, &message[got], wanted);
    } else if (travels(kVectors)) {
      count = readv(from, parts.data(), wanted > 1 ? 2 : 1);
    } else {
      count = read(from, &message[got], wanted);
    }
    if (count <= 0) return false;
    got += static_cast<size_t>(count);
  }
  return true;
}

// --- the children --------------------------------------------------------------------------------

struct Ends {
  std::array<Pipe, kFronts> jobs;
  std::array<Pipe, kFronts> answers;
  Pipe log;
};

void answer(const Ends& ends, const Message& message) {
  const uint64_t request = number_in(message.data());
  back_request(request);
  VICTIM_CHECK(write(ends.log.to, message.data(), message.size()) == sizeof message);
  send_message(ends.answers[request / kOfFront - 1].to, message);
}

void serve(const Ends& ends, int from) {
  Message message{};
  while (receive_message(from, message))
    answer(ends, message);
}

// Who reads and who works are different threads; the bytes between them say nothing.
void serve_by_waking(const Ends& ends) {
  std::mutex mutex;
  std::deque<Message> queue;
  std::array<int, 2> wake{};
  VICTIM_CHECK(pipe(wake.data()) == 0);
  std::vector<std::thread> readers;
  for (const Pipe& jobs : ends.jobs) {
    readers.emplace_back([&, from = jobs.from] {
      Message message{};
      while (receive_message(from, message)) {
        {
          const std::lock_guard lock(mutex);
          queue.push_front(message);
        }
        VICTIM_CHECK(write(wake[1], "x", 1) == 1);
      }
    });
  }
  std::thread worker([&] {
    std::array<char, 16> bytes{};
    while (read(wake[0], bytes.data(), bytes.size()) > 0) {
      while (true) {
        Message message{};
        {
          const std::lock_guard lock(mutex);
          if (queue.empty()) break;
          message = queue.front();
          queue.pop_front();
        }
        answer(ends, message);
      }
    }
  });
  for (std::thread& each : readers)
    each.join();
  close(wake[1]);
  worker.join();
}

// As many as are there.
void read_log(int from) {
  std::array<char, 64 * 64> bytes{};
  while (true) {
    const ssize_t count = read(from, bytes.data(), bytes.size());
    if (count <= 0) return;
    for (size_t at = 0; at < static_cast<size_t>(count); at += 64)
      logged(number_in(&bytes[at]));
  }
}

template <typename Work>
pid_t child_of(const Ends& ends, Work work) {
  const pid_t child = fork();
  if (child != 0) return child;
  for (const Pipe& jobs : ends.jobs)
    close(jobs.to);
  work();
  _exit(0);
}

std::vector<pid_t> make_children(const Ends& ends) {
  std::vector<pid_t> children;
  if (travels(kWakes)) {
    children.push_back(child_of(ends, [&] { serve_by_waking(ends); }));
  } else {
    for (const Pipe& jobs : ends.jobs)
      children.push_back(child_of(ends, [&, from = jobs.from] { serve(ends, from); }));
  }
  children.push_back(child_of(ends, [&] {
    close(ends.log.to);
    read_log(ends.log.from);
  }));
  return children;
}

// --- in front ------------------------------------------------------------------------------------

void ask(int to, int from, uint64_t first, uint64_t count) {
  for (uint64_t request = first; request < first + count; ++request) {
    front_request(request);
    send_message(to, message_of(request));
    Message message{};
    VICTIM_CHECK(receive_message(from, message) && number_in(message.data()) == request);
    front_answer(request);
  }
}

}  // namespace

extern "C" uint64_t victim_run(uint64_t rounds) {
  digest = 0;
  Ends ends;
  for (size_t i = 0; i < kFronts; ++i) {
    const bool is_same = i != 0 && travels(kShared);
    ends.jobs[i] = is_same ? Pipe{dup(ends.jobs[0].from), dup(ends.jobs[0].to)} : make_pipe();
    ends.answers[i] = make_pipe();
  }
  std::array<int, 2> log{};
  VICTIM_CHECK(pipe2(log.data(), O_CLOEXEC) == 0);
  ends.log = {.from = log[0], .to = log[1]};
  const std::vector<pid_t> children = make_children(ends);
  close(ends.log.to);
  std::vector<std::thread> fronts;
  for (size_t i = 0; i < kFronts; ++i)
    fronts.emplace_back(ask, ends.jobs[i].to, ends.answers[i].from, kOfFront * (i + 1), rounds);
  for (std::thread& each : fronts)
    each.join();
  for (const Pipe& jobs : ends.jobs)
    close(jobs.to);
  for (const pid_t child : children) {
    int status = 0;
    VICTIM_CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  for (size_t i = 0; i < kFronts; ++i) {
    close(ends.jobs[i].from);
    close_both(ends.answers[i]);
  }
  close(ends.log.from);
  return digest;
}

namespace {

void set_how(uint64_t which) {
  how = which;
  victim_print("how", which);
}

}  // namespace

extern "C" const VictimCommand victim_commands[] = {{"how", set_how}, {nullptr, nullptr}};

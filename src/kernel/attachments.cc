// SPDX-License-Identifier: Apache-2.0
#include "kernel/attachments.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <future>
#include <utility>

#include <fcntl.h>
#include <linux/bpf.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/bpf.h"
#include "target/side_work.h"

namespace clew::kernel {
namespace {

// Each end takes some 50 ms: so many wait at once.
constexpr size_t kHoldersMax = 64;
constexpr size_t kClosingThreadsMax = 64;

// Signals that came to a process of ours as well would be handled twice.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;
  ~WithoutSignals() { (void)pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// Until it ends, however many signals come meanwhile.
void await_end(pid_t pid) {
  while (pid > 0 && waitpid(pid, nullptr, __WALL) < 0 && errno == EINTR) {
  }
}

struct Pipe {
  FileDescriptor reading;
  FileDescriptor writing;
};

Pipe open_pipe() {
  int ends[2] = {-1, -1};
  (void)pipe2(ends, O_CLOEXEC);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// False at the end of what is read.
bool read_byte(int fd) {
  char byte = 0;
  ssize_t got = read(fd, &byte, 1);
  while (got < 0 && errno == EINTR)
    got = read(fd, &byte, 1);
  return got == 1;
}

// A process that holds a share of the descriptors, and ends. A kill of our process group does not
// reach it.
class Holder {
 public:
  Holder(const Attachments& attachments, size_t first, size_t stride, int ready, int over) {
    std::vector<int> kept = {ready, over};
    for (size_t i = first; i < attachments.size(); i += stride)
      kept.push_back(attachments[i].get());
    std::sort(kept.begin(), kept.end());
    pid_ = fork();
    if (pid_ == 0) hold(kept, ready, over);
  }
  Holder(Holder&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  Holder& operator=(Holder&&) = delete;
  ~Holder() { await_end(pid_); }

  [[nodiscard]] bool is_there() const { return pid_ > 0; }

 private:
  // Between fork() and the end of a process that may have threads: nothing but system calls.
  [[noreturn]] static void hold(const std::vector<int>& kept, int ready, int over) {
    (void)setpgid(0, 0);
    unsigned next = 0;
    for (const int fd : kept) {
      const auto number = static_cast<unsigned>(fd);
      if (number > next) (void)close_range(next, number - 1, 0);
      next = number + 1;
    }
    (void)close_range(next, ~0U, 0);
    const char byte = 0;
    (void)write(ready, &byte, 1);
    (void)close(ready);
    (void)read_byte(over);
    _exit(0);
  }

  pid_t pid_ = -1;
};

struct LinkCall {
  void* attributes = nullptr;
  size_t size = 0;
  int64_t result = -EINTR;  // Should the process that makes the call be killed.
};

int make_call(void* argument) {
  auto& call = *static_cast<LinkCall*>(argument);
  call.result = call_bpf(BPF_LINK_CREATE, call.attributes, call.size);
  return 0;
}

int make_call_beside(void* argument) {
  (void)setpgid(0, 0);  // Out of reach of a kill of our process group.
  return make_call(argument);
}

}  // namespace

// The calling thread waits (CLONE_VFORK), so that its errno can serve both.
int64_t create_link(void* attributes, size_t size) {
  constexpr size_t kStackBytes = 32 << 10;
  alignas(16) std::array<uint8_t, kStackBytes> stack;  // Not filled: nobody reads it.
  LinkCall call = {.attributes = attributes, .size = size};
  const WithoutSignals quiet;
  const pid_t pid =
      clone(make_call_beside, stack.end(), CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &call);
  if (pid < 0) (void)make_call(&call);
  await_end(pid);
  return call.result;
}

void end_uprobes(Attachments& uprobes) {
  if (uprobes.empty()) return;
  Pipe ready = open_pipe();
  Pipe over = open_pipe();
  std::vector<Holder> holders;
  const size_t count = std::min(uprobes.size(), kHoldersMax);
  for (size_t i = 0; i < count && over.reading.valid(); ++i) {
    const WithoutSignals quiet;
    Holder holder(uprobes, i, count, ready.writing.get(), over.reading.get());
    if (holder.is_there()) holders.push_back(std::move(holder));
  }
  ready.writing.reset();
  for (size_t told = 0; told < holders.size() && read_byte(ready.reading.get());)
    ++told;  // One that was killed tells nothing.
  uprobes.clear();
  over.writing.reset();
}

void close_all(Attachments& attachments) {
  for (size_t done = 0; done < attachments.size(); done += kClosingThreadsMax) {
    std::vector<std::future<void>> ends;
    for (size_t i = done; i < std::min(done + kClosingThreadsMax, attachments.size()); ++i) {
      ends.push_back(target::start_beside([&one = attachments[i]] { one = {}; }));
    }
  }
  attachments.clear();
}

}  // namespace clew::kernel

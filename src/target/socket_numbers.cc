// SPDX-License-Identifier: Apache-2.0
#include "target/socket_numbers.h"

#include <optional>
#include <thread>

#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/file_descriptor.h"

namespace clew::target {
namespace {

constexpr uint32_t kTakenAtATime = 1'024;  // Of a processor (get_next_ino(), Linux).

std::optional<uint32_t> number_of_new_socket() {
  const FileDescriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  struct stat status {};
  if (!made.valid() || fstat(made.get(), &status) != 0 || status.st_ino > UINT32_MAX) return {};
  return static_cast<uint32_t>(status.st_ino);
}

// Others make sockets, too, but not that many at once.
std::optional<uint32_t> number_here() {
  constexpr uint32_t kFew = 64;
  for (int i = 0; i < 3; ++i) {
    const auto one = number_of_new_socket();
    const auto next = number_of_new_socket();
    if (one && next && *next > *one && *next - *one < kFew) return next;
  }
  return {};
}

// One that is behind all that any processor has taken by now.
std::optional<uint32_t> number_behind_all(uint32_t here) {
  const uint32_t taken = (here - 1) / kTakenAtATime;
  for (uint32_t i = 0; i < 2 * kTakenAtATime; ++i) {
    const auto next = number_of_new_socket();
    if (!next) return {};
    if ((*next - 1) / kTakenAtATime != taken) return next;
  }
  return {};
}

std::vector<uint32_t> numbers_of_all() {
  std::vector<uint32_t> numbers;
  cpu_set_t own;  // Others may belong to somebody who does not want to be disturbed.
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof own, &own) != 0) return {};
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &own)) continue;
    cpu_set_t there;
    CPU_ZERO(&there);
    CPU_SET(processor, &there);
    if (sched_setaffinity(0, sizeof there, &there) != 0) continue;
    if (const auto number = number_here()) numbers.push_back(*number);
  }
  if (numbers.empty()) return {};
  const auto last = number_behind_all(numbers.back());
  if (!last) return {};
  numbers.back() = *last;
  return numbers;
}

}  // namespace

// In a thread, whose processors are nobody else's matter.
std::vector<uint32_t> socket_numbers() {
  std::vector<uint32_t> numbers;
  std::thread([&numbers] { numbers = numbers_of_all(); }).join();
  return numbers;
}

}  // namespace clew::target

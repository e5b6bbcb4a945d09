// SPDX-License-Identifier: Apache-2.0
#include "query/error_numbers.h"

#include <array>
#include <cerrno>
#include <cstring>

namespace clew::query {
namespace {

// Linux's asm-generic/errno.h ends with EHWPOISON.
constexpr int kLast = EHWPOISON;

// Names for numbers that have one already.
constexpr std::array<std::pair<const char*, int>, 3> kOthers = {
    {{"EWOULDBLOCK", EWOULDBLOCK}, {"EDEADLOCK", EDEADLOCK}, {"ENOTSUP", ENOTSUP}}};

// What a call that is interrupted ends with until the kernel decides how it goes on
// (include/linux/errno.h). Programs never see them, sources in the kernel do.
constexpr std::array<std::pair<const char*, int>, 5> kOfTheKernel = {
    {{"ERESTARTSYS", 512},
     {"ERESTARTNOINTR", 513},
     {"ERESTARTNOHAND", 514},
     {"ENOIOCTLCMD", 515},
     {"ERESTART_RESTARTBLOCK", 516}}};

}  // namespace

std::vector<Enumerator> error_numbers() {
  std::vector<Enumerator> result;
  for (int number = 1; number <= kLast; ++number) {
    const char* name = strerrorname_np(number);
    if (name != nullptr) result.push_back({.name = name, .value = number});
  }
  for (const auto& [name, number] : kOfTheKernel) {
    result.push_back({.name = name, .value = number});
  }
  for (const auto& [name, number] : kOthers) {
    result.push_back({.name = name, .value = number});
  }
  return result;
}

}  // namespace clew::query

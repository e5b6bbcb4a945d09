// SPDX-License-Identifier: Apache-2.0
// For tests of what is done where no thread can be started. In a process of its own: EXPECT_EXIT.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace clew::target {

// Ends the process with 0 when `works()` is true in it. Root has no limit of processes, so that
// ends as another user.
template <typename Works>
[[noreturn]] void end_without_threads(const Works& works) {
  constexpr uid_t kNobody = 65534;
  constexpr rlimit kNone{.rlim_cur = 0, .rlim_max = 0};
  const bool is_limited =
      setrlimit(RLIMIT_NPROC, &kNone) == 0 && (geteuid() != 0 || setuid(kNobody) == 0);
  _exit(is_limited && works() ? 0 : 1);
}

}  // namespace clew::target

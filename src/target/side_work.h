// SPDX-License-Identifier: Apache-2.0
// Work beside the caller, on a thread of its own. A machine, a container or a user may have no
// thread left (pids.max, RLIMIT_NPROC): std::async and std::thread throw then, which would end us
// with our jumps in other processes. Such work is done here and now instead; it takes longer.
#pragma once

#include <future>
#include <system_error>
#include <type_traits>

namespace clew::target {

// Calls work(), once. The future of a thread waits for it where it is destroyed.
template <typename Work>
std::future<std::invoke_result_t<Work>> start_beside(const Work& work) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    std::packaged_task<std::invoke_result_t<Work>()> here(work);
    here();
    return here.get_future();
  }
}

}  // namespace clew::target

// SPDX-License-Identifier: Apache-2.0
// What becomes of a uprobe that somebody else (bpftrace, perf) sets at a function's first byte
// while a session's windows are there. The kernel puts a trap over that byte, executes the
// instruction of the file elsewhere and goes on behind it (kept_instruction.h says why that
// matters). When it leaves, the kernel writes back the first byte that the file has, whatever stood
// there.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "code/module_code.h"
#include "code/window.h"

namespace clew::code {

enum class LaterUprobe : uint8_t {
  Safe,         // Both are run at each call.
  HidesProbe,   // Its trap stands in our jump, which is not taken: our probe misses the calls.
  HidesValues,  // Its trap stands at bytes that serve both ways (both_ways.h): probes that read
                // what the first instruction changes miss the calls, and each is counted.
  Dangerous,    // Control goes on in the middle of our jump, or the file's first byte stands in
                // front of the rest of it: the process may end.
};
std::string_view name(LaterUprobe fate);

// With these windows of one plan, by address, which need not be of that function.
LaterUprobe later_uprobe(const ModuleCode& code, std::span<const Window> windows,
                         uint64_t function);

}  // namespace clew::code

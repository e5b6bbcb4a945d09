// SPDX-License-Identifier: Apache-2.0
// What filters of system calls (seccomp(2)) answer to a call, worked out without making it.
//
// The language is classic BPF as the kernel lets it in (Linux, seccomp_check_filter): two 32-bit
// registers A and X, 16 words of memory, loads from the call's description only, jumps forward
// only. A filter comes from a foreign process: whatever the kernel would not have let in is
// answered with the death of the process, the most that an answer can be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>

namespace clew::inline_ {

using SeccompFilter = std::vector<sock_filter>;

// SECCOMP_RET_*: action and data.
uint32_t answer_of(std::span<const sock_filter> filter, const seccomp_data& call);

// The answer of all filters of a thread, the newest first: the one whose action restricts most, of
// equal ones the newest one's. Without any: allowed.
uint32_t answer_of(std::span<const SeccompFilter> newest_first, const seccomp_data& call);

}  // namespace clew::inline_

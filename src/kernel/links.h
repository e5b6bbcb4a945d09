// SPDX-License-Identifier: Apache-2.0
// The structs of bpf(2) for links, written out where they are newer than Debian 12's <linux/bpf.h>.
// Internal to attaching.
#pragma once

#include <cstdint>

#include <linux/bpf.h>

namespace clew::kernel {

inline constexpr uint32_t kUserProbeMulti = 48;  // BPF_TRACE_UPROBE_MULTI, Linux 6.6
inline constexpr uint32_t kMultiReturn = 1;  // BPF_F_UPROBE_MULTI_RETURN, …KPROBE_MULTI_RETURN

// bpf_attr::raw_tracepoint; the cookie came with Linux 6.10, and older kernels want its bytes to be
// 0 or not there.
struct RawTracepointOpen {
  uint64_t name = 0;
  uint32_t program = 0;
  uint32_t reserved = 0;
  uint64_t cookie = 0;
};

// bpf_attr::link_create for uprobe_multi.
struct UserProbeLink {
  uint32_t program = 0;
  uint32_t target = 0;
  uint32_t attach_type = kUserProbeMulti;
  uint32_t flags = 0;
  uint64_t path = 0;
  uint64_t offsets = 0;
  uint64_t semaphores = 0;
  uint64_t cookies = 0;
  uint32_t count = 0;
  uint32_t multi_flags = 0;
  uint32_t pid = 0;
  uint32_t reserved = 0;
};

// The same for kprobe_multi (Linux 5.18): names or addresses.
struct KernelProbeLink {
  uint32_t program = 0;
  uint32_t target = 0;
  uint32_t attach_type = BPF_TRACE_KPROBE_MULTI;
  uint32_t flags = 0;
  uint32_t multi_flags = 0;
  uint32_t count = 0;
  uint64_t names = 0;
  uint64_t addresses = 0;
  uint64_t cookies = 0;
};

// The same for perf_event.
struct PerfEventLink {
  uint32_t program = 0;
  uint32_t target = 0;
  uint32_t attach_type = BPF_PERF_EVENT;
  uint32_t flags = 0;
  uint64_t cookie = 0;
};

template <typename Value>
uint64_t address_of(const Value* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

}  // namespace clew::kernel

// SPDX-License-Identifier: Apache-2.0
// The providers whose probes stand for what the kernel does and not for a place in its code (proc,
// sched, io, ip, tcp, udp, lockstat, vminfo, sysinfo), as tables: each row names the tracepoint,
// function or system call behind a probe, when it counts, and what its arguments are made of.
// Private to derived*.cc.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel/providers/kernel_view.h"
#include "kernel/providers/provider.h"

namespace clew::kernel {

struct DerivedArgument {
  std::string_view native_type;
  std::string_view translated_type;
  uint8_t mapping = 0;
  bool is_userland = false;
};

// ProbeFilter in names: what a number is called in BTF.
struct DerivedFilter {
  uint8_t argument = 0;
  uint64_t mask = ~uint64_t{0};
  uint64_t value = 0;
  bool is_inverted = false;
  std::string_view enumerator = {};  // Instead of `value`.
  std::string_view record = {};      // Struct that the argument points to, and
  std::string_view member = {};      // the member to compare.
};

struct DerivedProbe {
  std::string_view provider;
  std::string_view name;
  AttachKind kind = AttachKind::RawTracepoint;
  std::string_view symbol;        // Tracepoint, function, or system call (its kernel name).
  bool is_shown = false;          // `symbol` is the probe's function: others have its name too.
  std::vector<uint8_t> map = {};  // Probe::argument_map
  std::string_view loaded_record = {};  // Where kArgumentLoaded is: the struct that argument 0
  std::string_view loaded_member = {};  // points to, and the member.
  std::vector<DerivedArgument> arguments = {};
  std::vector<DerivedFilter> filters = {};
  bool is_first_thread_only = false;
  uint32_t parameters_min = 0;  // Tracepoints of older kernels have fewer parameters.
  bool is_fallback = false;     // Only if no row above, of the same names, could be used.
};

std::vector<DerivedProbe> process_probes();    // proc
std::vector<DerivedProbe> scheduler_probes();  // sched
std::vector<DerivedProbe> io_probes();
std::vector<DerivedProbe> network_probes();  // ip, tcp, udp
std::vector<DerivedProbe> lock_probes();     // lockstat
std::vector<DerivedProbe> counter_probes();  // vminfo, sysinfo

inline constexpr uint64_t kSignBit = uint64_t{1} << 63;

// A number as an entry of DerivedProbe::map.
constexpr uint8_t constant(uint8_t number) {
  return static_cast<uint8_t>(kArgumentNumber + number);
}

// A task as the thread and as the process: args[at], args[at + 1], made of arg<mapping>.
inline std::vector<DerivedArgument> thread_arguments(uint8_t mapping) {
  return {{"struct task_struct *", "lwpsinfo_t *", mapping},
          {"struct task_struct *", "psinfo_t *", mapping}};
}

}  // namespace clew::kernel

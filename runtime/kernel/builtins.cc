// SPDX-License-Identifier: Apache-2.0
// Built-in variables that the kernel and a process know alike. The others are in task.cc.
#include "abi/machine/accessor.h"
#include "runtime/kernel/text.h"
#include "runtime/kernel/thread.h"
#include "runtime/kernel/times.h"

namespace clew::runtime::kernel {
namespace {

using abi::MachineBuiltin;

[[gnu::always_inline]] inline const abi::MachineEnabled& enabled_probe(MachineWindow* w) {
  const uint64_t last = number(d_n_enabled) - 1;
  const uint64_t enabling =
      w->header.in_error != 0 ? number(d_n_error_enabling) : w->header.enabling;
  return enabled_probes()[enabling < last ? enabling : last];
}

// Appends the pid of who fires to a text of `length` bytes; gives the new length.
[[gnu::always_inline]] inline uint64_t append_pid(MachineWindow* w, uint64_t text,
                                                  uint64_t length) {
  constexpr uint64_t kDigitsMax = 10;
  const uint64_t pid = process_and_thread() >> 32;
  uint64_t digits = zero(w) + 1;
  uint64_t power = zero(w) + 10;
  for (; digits < kDigitsMax && power <= pid && go_on(); ++digits)
    power *= 10;
  uint64_t left = pid;
  // Forgotten, since the verifier of Linux 7.3 would have to know exactly which byte it is, and
  // what a quotient's bounds are in each round.
  digits = forgotten(w, digits);
  uint64_t round = 0;
  for (uint64_t i = zero(w); i < digits && go_on(round, kDigitsMax); ++i) {
    set_byte(w, forgotten(w, text + length + digits - 1 - i), '0' + left % 10);
    left = forgotten(w, left / 10);
  }
  return length + digits;
}

[[gnu::always_inline]] inline uint64_t enabled_name(MachineWindow* w, uint64_t dst,
                                                    uint32_t which) {
  const abi::MachineEnabled& enabled = enabled_probe(w);
  uint64_t offset = enabled.names[which];
  const uint64_t end = number(d_n_names_bytes) - 1;
  if (offset > end) offset = end;
  const int64_t length = copy_own_text(at(w, dst), string_bytes(), names() + offset);
  if (which == 0 && enabled.provider_has_pid != 0) {
    const uint64_t size = forgotten(w, static_cast<uint64_t>(length) - 1);
    return finish(w, dst, append_pid(w, dst, size));
  }
  pad(w, dst, static_cast<uint64_t>(length));
  return dst;
}

}  // namespace

extern "C" {

// BuiltinInteger and BuiltinString: src/kernel/to_bpf.cc chooses the function by the constant in
// r2.
uint64_t d_builtin_argument(MachineWindow* w, uint64_t builtin) {
  constexpr uint64_t kArguments = sizeof w->header.arguments / sizeof w->header.arguments[0];
  const uint64_t index = masked(builtin - static_cast<uint64_t>(MachineBuiltin::Arg0), 0xF);
  return index < kArguments ? w->header.arguments[index] : 0;
}
uint64_t d_builtin_cpu(MachineWindow*) {
  return processor();
}
uint64_t d_builtin_epid(MachineWindow* w) {
  return w->header.clause + 1;
}
uint64_t d_builtin_errno(MachineWindow* w) {
  return w->header.errno_value;
}
uint64_t d_builtin_gid(MachineWindow*) {
  return group_and_user() >> 32;
}
uint64_t d_builtin_uid(MachineWindow*) {
  return group_and_user() & 0xFFFF'FFFF;
}
uint64_t d_builtin_id(MachineWindow* w) {
  return w->header.probe;
}
uint64_t d_builtin_ipl(MachineWindow*) {
  return 0;
}
uint64_t d_builtin_pid(MachineWindow* w) {
  return firing_thread(w) >> 32;
}
uint64_t d_builtin_tid(MachineWindow* w) {
  return firing_thread(w) & 0xFFFF'FFFF;
}
uint64_t d_builtin_timestamp(MachineWindow* w) {
  return timestamp(w);
}
uint64_t d_builtin_walltimestamp(MachineWindow* w) {
  return timestamp(w) + shared().wall_offset_ns;
}

uint64_t d_builtin_probeprov(MachineWindow* w, uint64_t, uint64_t dst) {
  return enabled_name(w, dst, 0);
}
uint64_t d_builtin_probemod(MachineWindow* w, uint64_t, uint64_t dst) {
  return enabled_name(w, dst, 1);
}
uint64_t d_builtin_probefunc(MachineWindow* w, uint64_t, uint64_t dst) {
  return enabled_name(w, dst, 2);
}
uint64_t d_builtin_probename(MachineWindow* w, uint64_t, uint64_t dst) {
  return enabled_name(w, dst, 3);
}

uint64_t d_probe_name(MachineWindow* w, uint64_t builtin) {
  const abi::MachineEnabled& enabled = enabled_probe(w);
  if (builtin == static_cast<uint64_t>(MachineBuiltin::Probemod)) return enabled.names[1];
  return builtin == static_cast<uint64_t>(MachineBuiltin::Probefunc) ? enabled.names[2]
                                                                     : enabled.names[3];
}

}  // extern "C"

}  // namespace clew::runtime::kernel

// SPDX-License-Identifier: Apache-2.0
// The main programs, one per kind of attach point: each takes a window of its CPU, fills in what
// fired and with which arguments, and runs the clauses. d_run is made by the linker, for the
// clauses that the probe enables.
//
// A main program may be interrupted by another one, or preempted by one in another thread: each has
// a window of its own, and when a CPU has none left, the firing is lost and counted.
#include "runtime/kernel/bpf.h"

namespace clew::runtime::kernel {

extern "C" {
uint64_t d_run(DWindow* w);
uint64_t d_clear_local(DWindow* w);
extern const char d_n_wants_arguments;
}

namespace {

// Words of struct pt_regs (arch/x86/include/asm/ptrace.h).
inline constexpr uint32_t kR10 = 7;
inline constexpr uint32_t kR9 = 8;
inline constexpr uint32_t kR8 = 9;
inline constexpr uint32_t kRax = 10;
inline constexpr uint32_t kRcx = 11;
inline constexpr uint32_t kRdx = 12;
inline constexpr uint32_t kRsi = 13;
inline constexpr uint32_t kRdi = 14;
inline constexpr uint32_t kOriginalRax = 15;
inline constexpr uint32_t kRip = 16;
inline constexpr uint32_t kCs = 17;

inline constexpr uint64_t kErrnoMax = 4095;

[[gnu::always_inline]] inline bool may_run() {
  return abi::load_word(d_shared.activity) == number(d_n_run_when);
}

[[gnu::always_inline]] inline void release(DWindow* w) {
  abi::store_word(w->header.busy, 0);
}

// A free window of this CPU, or none; none also when no clause may run now. That is asked behind
// the claim, so that who ends tracing may wait until no window is busy.
[[gnu::always_inline]] inline DWindow* claim() {
  const uint64_t cpu = processor();
  if (cpu >= number(d_n_cpus)) return nullptr;
  for (uint64_t i = 0; i < abi::kDWindowsPerCpu; ++i) {
    DWindow* w = d_windows + (cpu * abi::kDWindowsPerCpu + i);
    if (abi::load_word(w->header.busy) != 0 || !abi::swap_word(w->header.busy, 0, 1)) continue;
    if (may_run()) return w;
    release(w);
    return nullptr;
  }
  if (may_run()) abi::add_word(d_shared.losses.nested, 1);
  return nullptr;
}

// `cookie`: the probe's id, above the index of its enabling.
[[gnu::always_inline]] inline void run(DWindow* w, uint64_t cookie) {
  w->header.probe = static_cast<uint32_t>(cookie >> 32);
  w->header.enabling = cookie & 0xFFFF'FFFF;
  w->header.timestamp = 0;
  w->header.run_when = number(d_n_run_when);
  w->header.exit_pending = 0;
  w->header.in_error = 0;
  w->header.token_offset = 0;
  if (number(d_n_local_bytes) != 0) d_clear_local(w);
  d_run(w);
}

[[gnu::always_inline]] inline bool wants_arguments() {
  return number(d_n_wants_arguments) != 0;
}

[[gnu::always_inline]] inline void clear_arguments(DWindow* w) {
  for (uint32_t i = 0; i < 10; ++i)
    w->header.arguments[i] = 0;
}

[[gnu::always_inline]] inline void no_registers(DWindow* w) {
  w->header.kernel_pc = 0;
  w->header.user_pc = 0;
  w->header.errno_value = 0;
  w->header.has_stack = 0;
}

// Only as many as the tracepoint has: the kernel refuses a program that reads more.
[[gnu::always_inline]] inline void read_arguments(const uint64_t* context, uint64_t* arguments) {
  const uint64_t count = number(d_n_argument_count);
  arguments[0] = count > 0 ? context[0] : 0;
  arguments[1] = count > 1 ? context[1] : 0;
  arguments[2] = count > 2 ? context[2] : 0;
  arguments[3] = count > 3 ? context[3] : 0;
  arguments[4] = count > 4 ? context[4] : 0;
  arguments[5] = count > 5 ? context[5] : 0;
  arguments[6] = count > 6 ? context[6] : 0;
  arguments[7] = count > 7 ? context[7] : 0;
  arguments[8] = count > 8 ? context[8] : 0;
  arguments[9] = count > 9 ? context[9] : 0;
}

[[gnu::always_inline]] inline bool passes_filter(const uint64_t* arguments) {
  const uint64_t mask = number(d_n_filter_mask);
  if (mask == 0) return true;
  const uint64_t argument = arguments[masked(number(d_n_filter_argument), 0xF)];
  return (argument & mask) == number(d_n_filter_value);
}

[[gnu::always_inline]] inline void map_arguments(DWindow* w, const uint64_t* from) {
  for (uint32_t i = 0; i < 10; ++i) {
    const uint64_t map = i < 8 ? number(d_n_argument_map_low) >> (8 * i)
                               : number(d_n_argument_map_high) >> (8 * (i - 8));
    w->header.arguments[i] = from[masked(map, 0xF)];
  }
}

// The enabling of a system call, or 0. The table's other words are 0, too.
[[gnu::always_inline]] inline uint64_t cookie_of(uint64_t system_call) {
  if (system_call >= abi::kDSystemCallsMax) return 0;
  return d_system_calls[number(d_n_system_calls_begin) + system_call];
}

[[gnu::always_inline]] inline void read_call(DWindow* w) {
  const uint64_t* registers = user_registers();
  w->header.arguments[0] = registers[kRdi];
  w->header.arguments[1] = registers[kRsi];
  w->header.arguments[2] = registers[kRdx];
  w->header.arguments[3] = registers[kR10];
  w->header.arguments[4] = registers[kR8];
  w->header.arguments[5] = registers[kR9];
  for (uint32_t i = 6; i < 10; ++i)
    w->header.arguments[i] = 0;
}

}  // namespace

extern "C" {

int d_main_host(const uint64_t* context) {
  DWindow* w = claim();
  if (w == nullptr) return 0;
  no_registers(w);
  clear_arguments(w);
  run(w, context[0]);
  release(w);
  return 1;
}

int d_main_raw_tracepoint(const uint64_t* context) {
  DWindow* w = claim();
  if (w == nullptr) return 0;
  no_registers(w);
  bool passes = true;
  if (number(d_n_has_argument_map) != 0 || number(d_n_filter_mask) != 0) {
    auto* arguments = reinterpret_cast<uint64_t*>(w->scratch);
    read_arguments(context, arguments);
    passes = passes_filter(arguments);
    map_arguments(w, arguments);
  } else if (wants_arguments()) {
    read_arguments(context, w->header.arguments);
  }
  if (passes) run(w, attach_cookie(context));
  release(w);
  return 0;
}

int d_main_syscall_entry(const uint64_t* context) {
  const uint64_t cookie = cookie_of(context[1]);
  if (cookie == 0) return 0;
  DWindow* w = claim();
  if (w == nullptr) return 0;
  no_registers(w);
  if (wants_arguments()) read_call(w);
  run(w, cookie);
  release(w);
  return 0;
}

int d_main_syscall_return(const uint64_t* context) {
  const uint64_t cookie = cookie_of(user_registers()[kOriginalRax]);
  if (cookie == 0) return 0;
  DWindow* w = claim();
  if (w == nullptr) return 0;
  no_registers(w);
  const uint64_t result = context[1];
  if (result >= ~kErrnoMax + 1) w->header.errno_value = ~result + 1;
  clear_arguments(w);
  w->header.arguments[0] = result;
  w->header.arguments[1] = result;
  run(w, cookie);
  release(w);
  return 0;
}

int d_main_profile(const uint64_t* context) {
  DWindow* w = claim();
  if (w == nullptr) return 0;
  no_registers(w);
  clear_arguments(w);
  const uint64_t pc = context[kRip];
  if ((context[kCs] & 3) != 0) {
    w->header.user_pc = pc;
    w->header.arguments[1] = pc;
  } else {
    w->header.kernel_pc = pc;
    w->header.arguments[0] = pc;
  }
  // Only the context knows where the kernel was interrupted.
  if (number(d_n_wants_stack) != 0) {
    const int64_t bytes = helper<67>(context, w->clock_stack, sizeof w->clock_stack, uint64_t{0});
    w->header.has_stack = 1;
    w->header.stack_bytes = bytes < 0 ? 0 : static_cast<uint64_t>(bytes);
  }
  run(w, attach_cookie(context));
  release(w);
  return 0;
}

int d_main_user_entry(const uint64_t* context) {
  DWindow* w = claim();
  if (w == nullptr) return 0;
  no_registers(w);
  w->header.user_pc = context[kRip];
  clear_arguments(w);
  w->header.arguments[0] = context[kRdi];
  w->header.arguments[1] = context[kRsi];
  w->header.arguments[2] = context[kRdx];
  w->header.arguments[3] = context[kRcx];
  w->header.arguments[4] = context[kR8];
  w->header.arguments[5] = context[kR9];
  run(w, attach_cookie(context));
  release(w);
  return 0;
}

int d_main_user_return(const uint64_t* context) {
  DWindow* w = claim();
  if (w == nullptr) return 0;
  no_registers(w);
  clear_arguments(w);
  w->header.user_pc = context[kRip];
  w->header.arguments[1] = context[kRax];
  run(w, attach_cookie(context));
  release(w);
  return 0;
}

int d_main_user_offset(const uint64_t* context) {
  DWindow* w = claim();
  if (w == nullptr) return 0;
  no_registers(w);
  clear_arguments(w);
  w->header.user_pc = context[kRip];
  run(w, attach_cookie(context));
  release(w);
  return 0;
}

}  // extern "C"

}  // namespace clew::runtime::kernel

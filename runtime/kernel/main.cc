// SPDX-License-Identifier: Apache-2.0
// The main programs, one per kind of attach point: each takes a window of its CPU, fills in what
// fired and with which arguments, and runs the clauses. d_run is made by the linker, for the
// clauses that the probe enables.
//
// A main program may be interrupted by another one, or preempted by one in another thread: each has
// a window of its own, and when a CPU has none left, the firing is lost and counted.
#include "abi/machine/extension.h"
#include "runtime/kernel/arguments.h"

namespace clew::runtime::kernel {

extern "C" {
uint64_t d_run(MachineWindow* w);
uint64_t d_clear_local(MachineWindow* w);
uint64_t d_static_arguments(MachineWindow* w);
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
inline constexpr uint32_t kRsp = 19;

inline constexpr uint64_t kErrnoMax = 4095;

[[gnu::always_inline]] inline bool may_run() {
  return abi::load_word(d_shared.activity) == number(d_n_run_when);
}

[[gnu::always_inline]] inline void release(MachineWindow* w) {
  abi::store_word(w->header.busy, 0);
}

[[gnu::always_inline]] inline bool take(MachineWindow* w) {
  return abi::load_word(w->header.busy) == 0 && abi::swap_word(w->header.busy, 0, 1);
}

}  // namespace

extern "C" {

// Another window than the CPU's first, by its place among the CPU's; 0, and counted, when none is
// free.
[[gnu::noinline]] uint64_t d_take_other(MachineWindow* w, uint64_t cpu) {
  if (cpu >= number(d_n_cpus)) return 0;
  for (uint64_t i = zero(w) + 1; i < abi::kMachineWindowsPerCpu && go_on(); ++i) {
    if (take(d_windows +
             (cpu * abi::kMachineWindowsPerCpu + masked(i, abi::kMachineWindowsPerCpu - 1)))) {
      return i;
    }
  }
  if (may_run()) abi::add_word(d_shared.losses.nested, 1);
  return 0;
}

}  // extern "C"

namespace {

// A free window of this CPU, or none; none also when no clause may run now. That is asked behind
// the claim, so that who ends tracing may wait until no window is busy.
[[gnu::always_inline]] inline MachineWindow* claim() {
  const uint64_t cpu = processor();
  if (cpu >= number(d_n_cpus)) return nullptr;
  if (number(d_n_only_cpu) != 0 && number(d_n_only_cpu) != cpu + 1) return nullptr;
  MachineWindow* w = d_windows + cpu * abi::kMachineWindowsPerCpu;
  if (!take(w)) {
    const uint64_t other = d_take_other(w, cpu);
    if (other == 0) return nullptr;
    w = d_windows +
        (cpu * abi::kMachineWindowsPerCpu + masked(other, abi::kMachineWindowsPerCpu - 1));
  }
  if (may_run()) return w;
  release(w);
  return nullptr;
}

// `cookie`: the probe's id, above the index of its enabling.
[[gnu::always_inline]] inline void run(MachineWindow* w, uint64_t cookie) {
  w->header.probe = static_cast<uint32_t>(cookie >> 32);
  w->header.enabling = cookie & 0xFFFF'FFFF;
  w->header.timestamp = 0;
  w->header.vtimestamp = 0;
  w->header.thread = 0;
  w->header.run_when = number(d_n_run_when);
  w->header.exit_pending = 0;
  w->header.in_error = 0;
  if (number(d_n_extension_fuel) != 0) {
    w->header.frame[abi::kMachineExtensionFuelWord] = number(d_n_extension_fuel);
  }
  if (number(d_n_local_bytes) != 0) d_clear_local(w);
  d_run(w);
}

[[gnu::always_inline]] inline void no_registers(MachineWindow* w) {
  w->header.kernel_pc = 0;
  w->header.user_pc = 0;
  w->header.errno_value = 0;
  w->header.has_stack = 0;
}

// Only the context knows where the kernel was interrupted.
[[gnu::always_inline]] inline void take_stack(MachineWindow* w, const uint64_t* context) {
  if (number(d_n_wants_stack) == 0) return;
  const int64_t bytes = helper<67>(context, w->clock_stack, sizeof w->clock_stack, uint64_t{0});
  w->header.has_stack = 1;
  w->header.stack_bytes = bytes < 0 ? 0 : static_cast<uint64_t>(bytes);
}

// Only as many as the tracepoint has: the kernel refuses a program that reads more.
[[gnu::always_inline]] inline void read_context(const uint64_t* context, uint64_t* arguments) {
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

// The enabling of a system call, or 0. The table's other words are 0, too.
[[gnu::always_inline]] inline uint64_t cookie_of(uint64_t system_call) {
  if (system_call >= abi::kMachineSystemCallsMax) return 0;
  return d_system_calls[number(d_n_system_calls_begin) + system_call];
}

// At a system call's begin or end.
[[gnu::always_inline]] inline const uint64_t* call_registers(const uint64_t* context) {
  if (number(d_n_knows_registers) == 0) return user_registers();
  return reinterpret_cast<const uint64_t*>(context[0]);
}

// Of a system call, by its registers.
[[gnu::always_inline]] inline void read_call(const uint64_t* registers, uint64_t* arguments) {
  arguments[0] = registers[kRdi];
  arguments[1] = registers[kRsi];
  arguments[2] = registers[kRdx];
  arguments[3] = registers[kR10];
  arguments[4] = registers[kR8];
  arguments[5] = registers[kR9];
  for (uint32_t i = 6; i < kArguments; ++i)
    arguments[i] = 0;
}

[[gnu::always_inline]] inline void read_result(uint64_t result, uint64_t* arguments) {
  clear_arguments(arguments);
  arguments[0] = result;
  arguments[1] = result;
}

[[gnu::always_inline]] inline void read_function(const uint64_t* context, uint64_t* arguments) {
  clear_arguments(arguments);
  arguments[0] = context[kRdi];
  arguments[1] = context[kRsi];
  arguments[2] = context[kRdx];
  arguments[3] = context[kRcx];
  arguments[4] = context[kR8];
  arguments[5] = context[kR9];
}

inline constexpr uint64_t kFutexCall = 202;

[[gnu::always_inline]] inline abi::MachineEntered* entered_by_thread() {
  const uint64_t thread = process_and_thread();
  return reinterpret_cast<abi::MachineEntered*>(helper<1>(&d_entered, &thread));
}

[[gnu::always_inline]] inline uint64_t is_writer(const abi::MachineEntered* entered) {
  const uint64_t kind = entered->function & ((1 << abi::kMachineLockKindBits) - 1);
  return kind == static_cast<uint64_t>(abi::MachineLockKind::Write) ? 1 : 0;
}

// arg0: the lock; arg1: the result; arg2: whether the thread waited; arg3: whether it writes;
// arg4: whether it has the lock.
[[gnu::always_inline]] inline void read_lock_return(const uint64_t* context,
                                                    const abi::MachineEntered* entered,
                                                    uint64_t* arguments) {
  clear_arguments(arguments);
  const uint64_t result = context[kRax] & 0xFFFF'FFFF;
  arguments[1] = result;
  arguments[4] = result == 0 ? 1 : 0;
  arguments[0] = entered->lock;
  arguments[2] = entered->has_waited;
  arguments[3] = is_writer(entered);
}

// What the thread entered, when its futex(2) is the first wait for that lock.
[[gnu::always_inline]] inline abi::MachineEntered* waiting_for_lock() {
  constexpr uint64_t kCommandMask = 0x7F;
  constexpr uint64_t kWait = 0;
  constexpr uint64_t kLockPi = 6;
  constexpr uint64_t kWaitBitset = 9;
  constexpr uint64_t kLockPi2 = 13;
  if (process_and_thread() >> 32 != number(d_n_lock_pid)) return nullptr;
  const uint64_t* registers = user_registers();
  const uint64_t command = registers[kRsi] & kCommandMask;
  if (command != kWait && command != kWaitBitset && command != kLockPi && command != kLockPi2) {
    return nullptr;
  }
  abi::MachineEntered* entered = entered_by_thread();
  if (entered == nullptr || entered->has_waited != 0) return nullptr;
  if (registers[kRdi] - entered->lock >= abi::kMachineLockBytesMax) return nullptr;
  if (entered->function >> abi::kMachineLockKindBits != number(d_n_lock_function)) return nullptr;
  return entered;
}

// The compiler would choose among places first and load then, which the kernel does not take.
template <uint32_t kIndex>
[[gnu::always_inline]] inline uint64_t context_word(const uint64_t* context) {
  uint64_t value = 0;
  asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(value) : "r"(context), "i"(kIndex * 8));
  return value;
}

// Of a function that returns: its result behind its arguments, of which only those that are asked
// for are looked at, since the kernel refuses those of some types.
[[gnu::always_inline]] inline void read_exit(const uint64_t* context, uint64_t* arguments) {
  const uint64_t count = number(d_n_argument_count);
  const uint64_t used = number(d_n_used_arguments);
  clear_arguments(arguments);
  if (number(d_n_has_result) != 0) {
    if (count == 0) arguments[1] = context_word<0>(context);
    if (count == 1) arguments[1] = context_word<1>(context);
    if (count == 2) arguments[1] = context_word<2>(context);
    if (count == 3) arguments[1] = context_word<3>(context);
    if (count == 4) arguments[1] = context_word<4>(context);
    if (count == 5) arguments[1] = context_word<5>(context);
    if (count == 6) arguments[1] = context_word<6>(context);
  }
  if ((used & 1) != 0) arguments[2] = context_word<0>(context);
  if ((used & 2) != 0) arguments[3] = context_word<1>(context);
  if ((used & 4) != 0) arguments[4] = context_word<2>(context);
  if ((used & 8) != 0) arguments[5] = context_word<3>(context);
  if ((used & 16) != 0) arguments[6] = context_word<4>(context);
  if ((used & 32) != 0) arguments[7] = context_word<5>(context);
}

// All that code of a process may use to say where its arguments are, in the order of pt_regs.
[[gnu::always_inline]] inline void copy_registers(MachineWindow* w, const uint64_t* context) {
  auto* registers = reinterpret_cast<uint64_t*>(w->scratch);
#pragma unroll
  for (uint32_t i = 0; i <= kRsp; ++i)
    registers[i] = context[i];
}

[[gnu::always_inline]] inline void read_function_result(const uint64_t* context,
                                                        uint64_t* arguments) {
  clear_arguments(arguments);
  arguments[1] = context[kRax];
}

// One firing: `read` fills in the attach point's arguments; `begin` puts into the window what else
// it has to have, and gives the cookie. False when nothing ran.
template <typename Read, typename Begin>
[[gnu::always_inline]] inline bool fire(Read read, Begin begin) {
  if (!passes_filters(read)) return false;
  MachineWindow* w = claim();
  if (w == nullptr) return false;
  no_registers(w);
  uint64_t cookie = 0;
  [[clang::always_inline]] cookie = begin(w);
  put_arguments(w, read);
  run(w, cookie);
  release(w);
  return true;
}

// In a process, whose registers are the context. `above`: how far the stack pointer is above the
// place of the call's return address.
template <typename Read>
[[gnu::always_inline]] inline int fire_in_process(const uint64_t* context, uint64_t above,
                                                  Read read) {
  fire(read, [context, above](MachineWindow* w) {
    w->header.user_pc = context[kRip];
    w->header.frame_address = context[kRsp] - above;
    return attach_cookie(context);
  });
  return 0;
}

// At a function of the kernel, the same.
template <typename Read>
[[gnu::always_inline]] inline int fire_at_function(const uint64_t* context, uint64_t above,
                                                   Read read) {
  fire(read, [context, above](MachineWindow* w) {
    w->header.kernel_pc = context[kRip];
    w->header.frame_address = context[kRsp] - above;
    take_stack(w, context);
    return attach_cookie(context);
  });
  return 0;
}

}  // namespace

extern "C" {

int d_main_host(const uint64_t* context) {
  return fire(clear_arguments, [context](MachineWindow*) { return context[0]; }) ? 1 : 0;
}

int d_main_raw_tracepoint(const uint64_t* context) {
  fire([context](uint64_t* arguments) { read_context(context, arguments); },
       [context](MachineWindow*) { return cookie_at(context); });
  return 0;
}

int d_main_syscall_entry(const uint64_t* context) {
  const uint64_t cookie = cookie_of(context[1]);
  if (cookie == 0) return 0;
  fire([context](uint64_t* arguments) { read_call(call_registers(context), arguments); },
       [cookie](MachineWindow*) { return cookie; });
  return 0;
}

int d_main_syscall_return(const uint64_t* context) {
  const uint64_t cookie = cookie_of(call_registers(context)[kOriginalRax]);
  const uint64_t result = context[1];
  if (cookie == 0) return 0;
  fire([result](uint64_t* arguments) { read_result(result, arguments); },
       [cookie, result](MachineWindow* w) {
         if (result >= ~kErrnoMax + 1) w->header.errno_value = ~result + 1;
         return cookie;
       });
  return 0;
}

int d_main_profile(const uint64_t* context) {
  const uint64_t pc = context[kRip];
  const bool is_user = (context[kCs] & 3) != 0;
  const auto read = [pc, is_user](uint64_t* arguments) {
    clear_arguments(arguments);
    arguments[is_user ? 1 : 0] = pc;
  };
  fire(read, [context, pc, is_user](MachineWindow* w) {
    if (is_user) w->header.user_pc = pc;
    if (!is_user) w->header.kernel_pc = pc;
    take_stack(w, context);
    return attach_cookie(context);
  });
  return 0;
}

int d_main_function_entry(const uint64_t* context) {
  return fire_at_function(context, 0,
                          [context](uint64_t* arguments) { read_function(context, arguments); });
}

int d_main_function_return(const uint64_t* context) {
  return fire_at_function(
      context, 8, [context](uint64_t* arguments) { read_function_result(context, arguments); });
}

// A return with the function's arguments (fexit); the program is for one enabling.
int d_main_function_exit(const uint64_t* context) {
  fire([context](uint64_t* arguments) { read_exit(context, arguments); },
       [](MachineWindow*) { return number(d_n_cookie); });
  return 0;
}

// The words above the return address, where a clause asks for them. What cannot be read is 0.
[[gnu::always_inline]] inline void read_stack_arguments(const uint64_t* context,
                                                        uint64_t* arguments) {
  constexpr uint32_t kInRegisters = 6;
  if (number(d_n_wants_stack_arguments) == 0) return;
  helper<112>(arguments + kInRegisters, uint64_t{8 * (kArguments - kInRegisters)},
              pointer(context[kRsp] + 8));
}

int d_main_user_entry(const uint64_t* context) {
  return fire_in_process(context, 0, [context](uint64_t* arguments) {
    read_function(context, arguments);
    read_stack_arguments(context, arguments);
  });
}

int d_main_user_return(const uint64_t* context) {
  return fire_in_process(
      context, 8, [context](uint64_t* arguments) { read_function_result(context, arguments); });
}

// At an instruction that leaves a function: as at its return, which is where the word at the top of
// the stack says, as long as it can be read.
int d_main_user_exit(const uint64_t* context) {
  fire([context](uint64_t* arguments) { read_function_result(context, arguments); },
       [context](MachineWindow* w) {
         const uint64_t frame = context[kRsp];
         w->header.frame_address = frame;
         helper<112>(&w->header.user_pc, uint64_t{8}, pointer(frame));
         return attach_cookie(context);
       });
  return 0;
}

int d_main_user_offset(const uint64_t* context) {
  return fire_in_process(context, 0, clear_arguments);
}

// Nothing fires here: what the thread enters is kept for when it waits or returns. The cookie is
// MachineEntered::function.
int d_main_lock_entry(const uint64_t* context) {
  const uint64_t thread = process_and_thread();
  const abi::MachineEntered entered = {context[kRdi], context[kRsp], attach_cookie(context), 0};
  helper<2>(&d_entered, &thread, &entered, uint64_t{0});
  return 0;
}

int d_main_lock_return(const uint64_t* context) {
  const abi::MachineEntered* entered = entered_by_thread();
  if (entered == nullptr || entered->stack + 8 != context[kRsp]) return 0;
  return fire_in_process(context, 8, [context, entered](uint64_t* arguments) {
    read_lock_return(context, entered, arguments);
  });
}

// At the begin of all system calls: a thread that waits for the lock whose function it is in.
int d_main_lock_wait(const uint64_t* context) {
  if (context[1] != kFutexCall) return 0;
  abi::MachineEntered* entered = waiting_for_lock();
  if (entered == nullptr) return 0;
  entered->has_waited = 1;
  const auto read = [entered](uint64_t* arguments) {
    clear_arguments(arguments);
    arguments[0] = entered->lock;
    arguments[1] = is_writer(entered);
  };
  fire(read, [context](MachineWindow*) { return cookie_at(context); });
  return 0;
}

// d_static_arguments is made of the probe's own words for where its arguments are.
int d_main_static(const uint64_t* context) {
  MachineWindow* w = claim();
  if (w == nullptr) return 0;
  no_registers(w);
  w->header.user_pc = context[kRip];
  clear_arguments(w->header.arguments);
  copy_registers(w, context);
  d_static_arguments(w);
  run(w, attach_cookie(context));
  release(w);
  return 0;
}

}  // extern "C"

}  // namespace clew::runtime::kernel

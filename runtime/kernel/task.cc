// SPDX-License-Identifier: Apache-2.0
// Built-in variables of the thread that runs, as the kernel knows it: its task, its stacks and its
// registers. runtime/process/task.cc is the same for a process.
#include "abi/machine/accessor.h"
#include "runtime/kernel/stack.h"
#include "runtime/kernel/text.h"
#include "runtime/kernel/walk.h"

namespace clew::runtime::kernel {
namespace {

inline constexpr uint32_t kRegistersMax = 21;  // Words of struct pt_regs.
inline constexpr uint32_t kRegisterSp = 19;
inline constexpr uint64_t kRegisterArguments = 6;
inline constexpr uint64_t kDepthMax = 127;  // The kernel keeps no more frames.

template <typename Value>
[[gnu::always_inline]] inline Value field(const uint8_t* object, uint64_t offset) {
  return *reinterpret_cast<const Value*>(object + offset);
}

// The kernel's own account, which is brought up to date at each tick and switch.
[[gnu::always_inline]] inline uint64_t run_time() {
  return field<uint64_t>(current_task(), number(d_n_task_runtime));
}

[[gnu::always_inline]] inline uint64_t parent() {
  const auto* task = field<const uint8_t*>(current_task(), number(d_n_task_real_parent));
  return field<uint32_t>(task, number(d_n_task_tgid));
}

[[gnu::always_inline]] inline uint64_t frame(MachineWindow* w, uint64_t index) {
  const Frames frames = capture(w, 8);
  return frames.count > index ? frame_at(w, frames.first + index) : 0;
}

// The top bit of the first NUL among eight bytes of a text, or 0: up to there the subtraction
// borrows from none but NULs. The bytes without what is behind it.
[[gnu::always_inline]] inline uint64_t first_nul(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101'0101'0101'0101;
  const uint64_t nuls = (word - kOnes) & ~word & (kOnes << 7);
  return nuls & (~nuls + 1);
}
[[gnu::always_inline]] inline uint64_t until_nul(uint64_t word) {
  return word & (first_nul(word) - 1);
}

// The arguments of the process, NULs between them as spaces.
[[gnu::always_inline]] inline uint64_t program_arguments(MachineWindow* w, uint64_t dst) {
  const auto* mm = field<const uint8_t*>(current_task(), number(d_n_task_mm));
  uint64_t size = 0;
  if (mm != nullptr) {
    const auto begin = field<uint64_t>(mm, number(d_n_mm_arg_start));
    const auto end = field<uint64_t>(mm, number(d_n_mm_arg_end));
    size = end > begin ? end - begin : 0;
    const uint64_t limit = string_bytes() - 1;
    if (size > limit) size = limit;
    if (copy_user(at(w, dst), size, pointer(begin)) != 0) size = 0;
  }
  for (uint64_t i = zero(w); i + 1 < size && go_on(); ++i) {
    if (byte(w, dst + i) == 0) set_byte(w, dst + i, ' ');
  }
  return finish(w, dst, size);
}

}  // namespace

extern "C" {

uint64_t d_builtin_caller(MachineWindow* w) {
  return frame(w, 1);
}
// The tracer's own probes (BEGIN, END, ERROR: src/kernel/probe.h) are on nobody's stack.
uint64_t d_builtin_stackdepth(MachineWindow* w) {
  constexpr uint32_t kLastOfTracer = 3;
  if (w->header.probe <= kLastOfTracer) return 0;
  return capture(w, kDepthMax).count;
}
uint64_t d_builtin_task(MachineWindow*) {
  return current_task_address();
}
uint64_t d_builtin_ppid(MachineWindow*) {
  return parent();
}
// A tick may be between two questions of a firing.
uint64_t d_builtin_vtimestamp(MachineWindow* w) {
  if (w->header.vtimestamp == 0) w->header.vtimestamp = run_time();
  return w->header.vtimestamp;
}
uint64_t d_builtin_execname(MachineWindow* w, uint64_t, uint64_t dst) {
  const uint64_t comm = number(d_n_task_comm);
  if (comm == 0) {  // A kernel that does not show its types.
    helper<16>(at(w, dst), uint64_t{16});
    return dst;
  }
  const uint8_t* task = current_task();
  const auto first = field<uint64_t>(task, comm);
  const auto second = field<uint64_t>(task, comm + 8);
  auto* to = reinterpret_cast<uint64_t*>(at(w, dst));
  to[0] = until_nul(first);
  to[1] = first_nul(first) == 0 ? until_nul(second) : 0;
  return dst;
}
uint64_t d_builtin_execargs(MachineWindow* w, uint64_t, uint64_t dst) {
  return program_arguments(w, dst);
}

uint64_t d_user_register(MachineWindow* w, uint64_t index) {
  if (index >= kRegistersMax) return fail(w, MachineFault::IllegalOperation, index);
  uint64_t value = 0;
  helper<113>(&value, uint64_t{8}, user_registers() + index);
  return value;
}

// Beyond those in registers: above the return address on the stack.
uint64_t d_user_argument(MachineWindow* w, uint64_t index) {
  if (index < kRegisterArguments) return w->header.arguments[masked(index, 0x7)];
  const uint64_t address = user_registers()[kRegisterSp] + 8 * (index - kRegisterArguments + 1);
  uint64_t value = 0;
  if (helper<112>(&value, uint64_t{8}, pointer(address)) != 0) {
    return fail(w, MachineFault::BadAddress, address);
  }
  return value;
}

// Whether the process is `pid` or one of its descendants; as far up as 64 generations.
uint64_t d_progenyof(MachineWindow* w, uint64_t pid) {
  constexpr uint64_t kGenerationsMax = 64;
  uint64_t task = current_task_address();
  for (uint64_t i = zero(w); i < kGenerationsMax && go_on(); ++i) {
    uint64_t id = 0;
    read_kernel(&id, 4, task + number(d_n_task_tgid));
    if (id == pid) return 1;
    if (id <= 1) return 0;
    task = read_pointer(task + number(d_n_task_real_parent));
  }
  return 0;
}

}  // extern "C"

}  // namespace clew::runtime::kernel

// SPDX-License-Identifier: Apache-2.0
// Built-in variables of the thread that runs, as its process knows it: runtime/kernel/task.cc for
// processes. What only the kernel knows is not here (src/plan/d/firing.h keeps such clauses there),
// or empty: no stack of the kernel belongs to the firing.
#include "abi/machine/accessor.h"
#include "runtime/kernel/text.h"
#include "runtime/process/user_stack.h"

namespace clew::runtime::kernel {
namespace {

constexpr uint64_t kDepthMax = 127;  // As many as the kernel keeps.
constexpr uint64_t kUserStack = 1;
constexpr uint64_t kRegisterArguments = 6;
constexpr uint64_t kGetName = 16;  // PR_GET_NAME

uint64_t user_frame(MachineWindow* w, uint64_t index) {
  const uint64_t count = walk_user_stack(w, index + 1);
  return count > index ? user_frames(w)[index] : 0;
}

}  // namespace

extern "C" {

// An accessor that a process does not have.
uint64_t d_refuse(MachineWindow* w) {
  return fail(w, MachineFault::IllegalOperation, 0);
}

uint64_t d_builtin_caller(MachineWindow*) {
  return 0;
}
uint64_t d_builtin_ucaller(MachineWindow* w) {
  return user_frame(w, 1);
}
uint64_t d_builtin_stackdepth(MachineWindow*) {
  return 0;
}
uint64_t d_builtin_ustackdepth(MachineWindow* w) {
  return walk_user_stack(w, kDepthMax);
}
uint64_t d_builtin_ppid(MachineWindow*) {
  return may_call() ? static_cast<uint64_t>(call({kSysGetppid})) : 0;
}
// Within a firing it stands still, as `timestamp` does.
uint64_t d_builtin_vtimestamp(MachineWindow* w) {
  if (w->header.vtimestamp == 0) w->header.vtimestamp = thread_ns();
  return w->header.vtimestamp;
}

uint64_t d_builtin_execname(MachineWindow* w, uint64_t, uint64_t dst) {
  uint64_t name[2] = {};
  if (may_call()) call({kSysPrctl, {kGetName, address_of(name)}});
  copy_own(at(w, dst), sizeof name, name);
  return finish(w, dst, length_of(w, dst));
}

uint64_t d_builtin_cwd(MachineWindow* w, uint64_t, uint64_t dst) {
  const uint64_t room = string_bytes();
  int64_t size = 0;  // With the NUL.
  if (may_call()) size = call({kSysGetcwd, {address_of(w->scratch), sizeof w->scratch}});
  if (size <= 0) return finish(w, dst, 0);
  copy_own_text(at(w, dst), room, w->scratch);
  return finish(w, dst, static_cast<uint64_t>(size) - 1);
}

uint64_t d_builtin_root(MachineWindow* w, uint64_t, uint64_t dst) {
  set_byte(w, dst, '/');
  return finish(w, dst, 1);
}

uint64_t d_user_register(MachineWindow* w, uint64_t index) {
  if (index >= kRegisterWords || w->header.registers == 0) {
    return fail(w, MachineFault::IllegalOperation, index);
  }
  return registers_of(w)[index];
}

// Beyond those in registers: above the return address on the stack.
uint64_t d_user_argument(MachineWindow* w, uint64_t index) {
  if (index < kRegisterArguments) return w->header.arguments[index];
  const uint64_t address = registers_of(w)[kRegisterSp] + 8 * (index - kRegisterArguments + 1);
  uint64_t value = 0;
  if (w->header.registers == 0 || copy_user(&value, 8, pointer(address)) != 0) {
    return fail(w, MachineFault::BadAddress, address);
  }
  return value;
}

uint64_t d_stack(MachineWindow* w, uint64_t dst, uint64_t frames, uint64_t kind) {
  uint64_t out = dst;
  uint64_t count = 0;
  const uint64_t limit = frames < kUserFramesMax ? frames : kUserFramesMax;
  if (kind == kUserStack) {
    *reinterpret_cast<uint64_t*>(at(w, out)) = process_and_thread() >> 32;
    out += 8;
    count = walk_user_stack(w, limit);
    copy_own(at(w, out), count * 8, user_frames(w));
  }
  for (uint64_t i = count; i <= limit; ++i)
    *reinterpret_cast<uint64_t*>(at(w, out + 8 * i)) = 0;
  return 0;
}

uint64_t d_stack_depth(MachineWindow* w, uint64_t kind) {
  return kind == kUserStack ? walk_user_stack(w, kUserFramesMax) : 0;
}

}  // extern "C"

}  // namespace clew::runtime::kernel

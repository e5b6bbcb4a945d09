// SPDX-License-Identifier: Apache-2.0
// What the programs of queries need of the kernel besides the D accessors (abi/query_window.h), and
// the main program at trace events.
#include "abi/query_window.h"
#include "runtime/kernel/text.h"
#include "runtime/kernel/times.h"
#include "runtime/kernel/walk.h"

namespace clew::runtime::kernel {

extern "C" {
extern const char d_n_task_group_leader;
extern const char d_n_mm_exe_file;
extern const char d_n_file_dentry;
extern const char d_n_task_nsproxy;
extern const char d_n_nsproxy_uts;
extern const char d_n_uts_name;
extern const char d_n_task_cred;
extern const char d_n_cred_euid;
}

namespace {

// Addresses of the kernel have their top bit set, those of programs have not; those of the window
// are tagged.
[[gnu::always_inline]] inline bool is_kernel(uint64_t address) {
  return static_cast<int64_t>(address) < 0;
}

// Zeroes what is left of `size` bytes behind the first `length`.
[[gnu::always_inline]] inline void clear_rest(MachineWindow* w, uint64_t dst, uint64_t length,
                                              uint64_t size) {
  const uint64_t left = length < size ? size - length : 0;
  clear(w, dst + length, forgotten(w, left));
}

}  // namespace

extern "C" {

uint64_t d_query_time(MachineWindow* w) {
  return timestamp(w);
}

uint64_t d_query_bit_length(MachineWindow*, uint64_t value) {
  uint64_t length = value != 0 ? 1 : 0;
#pragma unroll
  for (uint32_t step = 32; step != 0; step /= 2) {
    if ((value >> step) != 0) {
      value >>= step;
      length += step;
    }
  }
  return length;
}

// 1, or 0 and the destination zeroed.
uint64_t d_query_read(MachineWindow* w, uint64_t dst, uint64_t size, uint64_t address) {
  if (size > kCopyBytesMax) return 0;
  int64_t result = 0;
  if (is_tagged(address)) {
    result = copy_kernel(at(w, dst), size, at(w, address));
  } else if (is_kernel(address)) {
    result = copy_kernel(at(w, dst), size, pointer(address));
  } else {
    result = copy_user(at(w, dst), size, pointer(address));
  }
  return result == 0 ? 1 : 0;
}

// The length without NUL, or -1. Of an empty text of a program the kernel says 0 (Linux 6.1,
// strncpy_from_user_nofault) or, with its NUL, 1.
uint64_t d_query_read_text(MachineWindow* w, uint64_t dst, uint64_t size, uint64_t address) {
  if (size > kCopyBytesMax || size == 0) return ~uint64_t{0};
  int64_t length = 0;
  if (is_tagged(address)) {
    length = copy_kernel_text(at(w, dst), size, at(w, address));
  } else if (is_kernel(address)) {
    length = copy_kernel_text(at(w, dst), size, pointer(address));
  } else {
    length = copy_user_text(at(w, dst), size, pointer(address));
  }
  if (length < 0) return ~uint64_t{0};
  clear_rest(w, dst, static_cast<uint64_t>(length), size);
  return length == 0 ? 0 : static_cast<uint64_t>(length) - 1;
}

uint64_t d_query_comm(MachineWindow* w, uint64_t dst) {
  clear(w, dst, abi::kQueryCommBytes);
  helper<16>(at(w, dst), uint64_t{abi::kQueryCommBytes});
  return 0;
}

// The last part of the path of the process's program. A thread of the kernel has none; its own name
// stands for it.
uint64_t d_query_process_name(MachineWindow* w, uint64_t dst) {
  constexpr uint64_t kNameText = 8;  // In struct qstr.
  clear(w, dst, abi::kQueryProcessNameBytes);
  const uint64_t task = current_task_address();
  const uint64_t mm = read_pointer(task + number(d_n_task_mm));
  const uint64_t file = mm == 0 ? 0 : read_pointer(mm + number(d_n_mm_exe_file));
  const uint64_t entry = file == 0 ? 0 : read_pointer(file + number(d_n_file_dentry));
  uint64_t name = 0;
  if (entry != 0) name = read_pointer(entry + number(d_n_dentry_name) + kNameText);
  if (name == 0) {
    name = read_pointer(task + number(d_n_task_group_leader)) + number(d_n_task_comm);
  }
  copy_kernel_text(at(w, dst), abi::kQueryProcessNameBytes, pointer(name));
  return 0;
}

// Empty of a thread that has left its name spaces, as it ends.
uint64_t d_query_node_name(MachineWindow* w, uint64_t dst) {
  constexpr uint64_t kNodeName = 65;  // In struct new_utsname, behind the system's name.
  clear(w, dst, abi::kQueryNodeNameBytes);
  const uint64_t spaces = read_pointer(current_task_address() + number(d_n_task_nsproxy));
  const uint64_t space = spaces == 0 ? 0 : read_pointer(spaces + number(d_n_nsproxy_uts));
  if (space == 0) return 0;
  const uint64_t name = space + number(d_n_uts_name) + kNodeName;
  copy_kernel_text(at(w, dst), abi::kQueryNodeNameBytes, pointer(name));
  return 0;
}

// The effective one, as the machine numbers users, whatever name space of users the thread is in.
// The helper for that says the real one.
uint64_t d_query_uid(MachineWindow*) {
  uint32_t user = ~uint32_t{0};
  const uint64_t rights = read_pointer(current_task_address() + number(d_n_task_cred));
  if (rights != 0) read_kernel(&user, sizeof user, rights + number(d_n_cred_euid));
  return user;
}

uint64_t d_query_control_group(MachineWindow*) {
  return static_cast<uint64_t>(helper<80>());  // bpf_get_current_cgroup_id
}

// A trace event, as its format file describes it: arg0 is the address of its record.
int d_main_trace_event(const uint64_t* context) {
  MachineWindow* w = claim();
  if (w == nullptr) return 0;
  no_registers(w);
  clear_arguments(w->header.arguments);
  w->header.arguments[0] = reinterpret_cast<uint64_t>(context);
  run(w, cookie_at(context));
  release(w);
  return 0;
}

}  // extern "C"

}  // namespace clew::runtime::kernel

// SPDX-License-Identifier: Apache-2.0
// The main program at a system call that has moved bytes through a descriptor, and returns: of
// which pipe or socket that is. All processes of the machine read and write, so what nobody asks
// for is over as early as possible: calls that have moved nothing, other processes, other files.
#include "runtime/kernel/walk.h"

namespace clew::runtime::kernel {

extern "C" {
extern const char d_n_moved_descriptor;  // The call's argument that it is.
extern const char d_n_moved_kind;        // Of its file, as in st_mode.
extern const char d_n_moved_unread;      // Whether what a pipe has left is asked for.
extern const char d_n_only_pids;         // How many; 0: all processes are meant.
extern const char d_n_only_pid_0;
extern const char d_n_only_pid_1;
extern const char d_n_only_pid_2;
extern const char d_n_only_pid_3;
extern const char d_n_task_files;
extern const char d_n_files_table;
extern const char d_n_table_size;
extern const char d_n_table_files;
extern const char d_n_file_inode;
extern const char d_n_file_private;
extern const char d_n_inode_mode;
extern const char d_n_socket_sock;
extern const char d_n_pipe_head;
extern const char d_n_pipe_tail;
extern const char d_n_pipe_ring_size;
extern const char d_n_pipe_buffers;
extern const char d_n_buffer_length;
extern const char d_n_buffer_bytes;
}

namespace {

inline constexpr uint64_t kKindMask = 0xF000;
inline constexpr uint64_t kIsPipe = 0x1000;
inline constexpr uint64_t kUnreadIsUnknown = 0x7FFF'FFFF;
inline constexpr uint64_t kBuffersMax = 64;  // Of a pipe, that are counted.

template <typename Value>
[[gnu::always_inline]] inline uint64_t read_value(uint64_t address) {
  Value value = 0;
  helper<113>(&value, uint64_t{sizeof value}, pointer(address));
  return value;
}

[[gnu::always_inline]] inline bool is_of_wanted_process() {
  const uint64_t count = number(d_n_only_pids);
  if (count == 0) return true;
  const uint64_t pid = process_and_thread() >> 32;
  return pid == number(d_n_only_pid_0) || (count > 1 && pid == number(d_n_only_pid_1)) ||
         (count > 2 && pid == number(d_n_only_pid_2)) ||
         (count > 3 && pid == number(d_n_only_pid_3));
}

[[gnu::always_inline]] inline uint64_t descriptor_in(const uint64_t* registers) {
  if (number(d_n_moved_descriptor) == 1) return registers[kRsi] & 0xFFFF'FFFF;
  if (number(d_n_moved_descriptor) == 2) return registers[kRdx] & 0xFFFF'FFFF;
  return registers[kRdi] & 0xFFFF'FFFF;
}

// Of the thread's process, or 0. Another thread may have closed it since, and opened another one.
[[gnu::always_inline]] inline uint64_t file_of(uint64_t descriptor) {
  const auto* files =
      *reinterpret_cast<const uint8_t* const*>(current_task() + number(d_n_task_files));
  if (files == nullptr) return 0;
  const auto* table = *reinterpret_cast<const uint8_t* const*>(files + number(d_n_files_table));
  if (table == nullptr) return 0;
  const uint32_t size = *reinterpret_cast<const uint32_t*>(table + number(d_n_table_size));
  if (descriptor >= size) return 0;
  const uint64_t places = *reinterpret_cast<const uint64_t*>(table + number(d_n_table_files));
  return read_pointer(places + 8 * descriptor);
}

}  // namespace

extern "C" {

// What the pipe has to give yet. Whoever writes meanwhile writes behind what is counted.
[[gnu::noinline]] uint64_t d_unread(MachineWindow* w, uint64_t pipe) {
  const uint64_t head = read_value<uint32_t>(pipe + number(d_n_pipe_head));
  const uint64_t tail = read_value<uint32_t>(pipe + number(d_n_pipe_tail));
  const uint64_t used = (head - tail) & 0xFFFF'FFFF;
  if (used > kBuffersMax) return kUnreadIsUnknown;
  const uint64_t mask = read_value<uint32_t>(pipe + number(d_n_pipe_ring_size)) - 1;
  const uint64_t buffers = read_pointer(pipe + number(d_n_pipe_buffers));
  uint64_t unread = zero(w);
  for (uint64_t i = zero(w); i < kBuffersMax && i < used && go_on(); ++i) {
    const uint64_t buffer = buffers + ((tail + i) & mask) * number(d_n_buffer_bytes);
    unread += read_value<uint32_t>(buffer + number(d_n_buffer_length));
  }
  return unread;
}

// arg0: the pipe, or the socket; arg1: how many bytes; arg2: the file's inode; arg3: what the pipe
// has left; arg4 and arg5: the call's third and fourth argument.
int d_main_moved(const uint64_t* context) {
  const uint64_t* registers = user_registers();
  const uint64_t moved = registers[kRax];
  if (static_cast<int64_t>(moved) <= 0 || !is_of_wanted_process()) return 0;
  const uint64_t file = file_of(descriptor_in(registers));
  if (file == 0) return 0;
  const uint64_t inode = read_pointer(file + number(d_n_file_inode));
  const uint64_t kind = read_value<uint16_t>(inode + number(d_n_inode_mode)) & kKindMask;
  if (kind != number(d_n_moved_kind)) return 0;
  uint64_t object = read_pointer(file + number(d_n_file_private));
  if (kind != kIsPipe) object = read_pointer(object + number(d_n_socket_sock));
  MachineWindow* w = claim();
  if (w == nullptr) return 0;
  no_registers(w);
  clear_arguments(w->header.arguments);
  w->header.arguments[0] = object;
  w->header.arguments[1] = moved;
  w->header.arguments[2] = inode;
  if (number(d_n_moved_unread) != 0) w->header.arguments[3] = d_unread(w, object);
  w->header.arguments[4] = registers[kRdx];
  w->header.arguments[5] = registers[kR10];
  run(w, cookie_at(context));
  release(w);
  return 0;
}

}  // extern "C"

}  // namespace clew::runtime::kernel

// SPDX-License-Identifier: Apache-2.0
// ustack(), ustackdepth and ucaller.
#include "runtime/kernel/user_stack.h"

namespace clew::runtime::kernel {
namespace {

inline constexpr uint64_t kWalkOffset = 8 * kFramesMax;
inline constexpr uint64_t kMessageOffset = kWalkOffset + sizeof(abi::MachineWalk);

inline constexpr uint64_t kExecutable = 4;  // VM_EXEC
inline constexpr uint64_t kPageBytes = 4096;

// A mapping, as the kernel has it.
struct FoundMapping {
  uint64_t start;
  uint64_t end;
  uint64_t page;  // Of the file.
  uint64_t flags;
  uint64_t file;
};

[[gnu::always_inline]] inline uint64_t inode_of(uint64_t file) {
  return read_pointer(file + number(d_n_file_inode));
}

// The inode of the program that the process runs.
[[gnu::always_inline]] inline uint64_t program_inode() {
  const uint64_t mm = read_pointer(current_task_address() + number(d_n_task_mm));
  const uint64_t file = read_pointer(mm + number(d_n_mm_program));
  return read_pointer(inode_of(file) + number(d_n_inode_number));
}

// Null when the tracer does not know the file.
[[gnu::always_inline]] inline const abi::MachineUnwindFile* find_file(MachineWindow* w,
                                                                      uint64_t file) {
  const uint64_t inode = inode_of(file);
  const uint64_t id = read_pointer(inode + number(d_n_inode_number));
  const uint64_t super = read_pointer(inode + number(d_n_inode_super));
  uint64_t device = 0;
  read_kernel(&device, 4, super + number(d_n_super_device));
  for (uint64_t i = zero(w); i < abi::kMachineUnwindSlotsMax && go_on(); ++i) {
    const abi::MachineUnwindFile* one =
        d_unwind_files +
        masked(abi::unwind_slot(id, i, abi::kMachineUnwindFiles), abi::kMachineUnwindFiles - 1);
    const uint64_t found = abi::load_word(one->inode);
    if (found == 0) return nullptr;
    if (found == id && one->device == device) return one;
  }
  return nullptr;
}

// The process's entry; null when it has none.
[[gnu::always_inline]] inline MachineUnwindProcess* find_process(MachineWindow* w, uint64_t pid) {
  for (uint64_t i = zero(w); i < abi::kMachineUnwindSlotsMax && go_on(); ++i) {
    MachineUnwindProcess* process =
        d_unwind_processes + masked(abi::unwind_slot(pid, i, abi::kMachineUnwindProcesses),
                                    abi::kMachineUnwindProcesses - 1);
    const uint64_t found = abi::load_word(process->pid);
    if (found == pid) return process;
    if (found == 0) return nullptr;
  }
  return nullptr;
}

// Behind the frames.
[[gnu::always_inline]] inline abi::MachineWalk& walk_of(MachineWindow* w) {
  return *reinterpret_cast<abi::MachineWalk*>(w->scratch + kWalkOffset);
}

[[gnu::always_inline]] inline void tell_tracer(MachineWindow* w, uint64_t pid) {
  auto* message = reinterpret_cast<uint64_t*>(w->scratch + kMessageOffset);
  *message = pid;
  helper<130>(&d_unwind_asked, message, uint64_t{8}, uint64_t{0});
}

// A new entry, without segments.
[[gnu::always_inline]] inline void add_process(MachineWindow* w, uint64_t pid) {
  for (uint64_t i = zero(w); i < abi::kMachineUnwindSlotsMax && go_on(); ++i) {
    MachineUnwindProcess* process =
        d_unwind_processes + masked(abi::unwind_slot(pid, i, abi::kMachineUnwindProcesses),
                                    abi::kMachineUnwindProcesses - 1);
    const uint64_t found = abi::load_word(process->pid);
    if (found != 0 && found != abi::kMachineUnwindRemoved) continue;
    if (!abi::swap_word(process->pid, found, pid)) continue;
    abi::store_word(process->asked, 1);
    return tell_tracer(w, pid);
  }
}

[[gnu::always_inline]] inline void ask_again(MachineWindow* w, MachineUnwindProcess* process,
                                             uint64_t pid) {
  if (abi::load_word(process->asked) != 0) return;
  if (abi::swap_word(process->asked, 0, 1)) tell_tracer(w, pid);
}

[[gnu::always_inline]] inline uint64_t follow_frame_pointers(MachineWindow* w, uint64_t limit) {
  const uint64_t size = masked(limit * 8, 0x1FF8);
  const int64_t bytes = helper<141>(current_task(), w->scratch, size, kUserFlag);
  return bytes <= 0 ? 0 : static_cast<uint64_t>(bytes) / 8;
}

}  // namespace

extern "C" {

uint64_t d_user_frame(MachineWindow* w);

}  // extern "C"

namespace {

[[gnu::always_inline]] inline uint64_t walk_frames(MachineWindow* w, uint64_t first, uint64_t count,
                                                   uint64_t limit) {
  const uint64_t* registers = user_registers();
  abi::MachineWalk& walk = walk_of(w);
  walk.frame = {registers[kUserIp], registers[kUserSp], registers[kUserBp], registers[kUserBx], 0};
  walk.first_segment = first;
  walk.segment_count = count;
  walk.depth = 0;
  walk.is_begun = 0;
  walk.is_stale = 0;
  for (uint64_t turn = zero(w); turn < 2 * kFramesMax && walk.depth < limit && go_on(); ++turn) {
    if (d_user_frame(w) == 0) break;
  }
  return walk.depth;
}

}  // namespace

extern "C" {

// For bpf_find_vma.
int64_t d_callback_mapping(const uint8_t*, const uint8_t* mapping, FoundMapping* found) {
  found->start = *reinterpret_cast<const uint64_t*>(mapping + number(d_n_vma_start));
  found->end = *reinterpret_cast<const uint64_t*>(mapping + number(d_n_vma_end));
  found->page = *reinterpret_cast<const uint64_t*>(mapping + number(d_n_vma_offset));
  found->flags = *reinterpret_cast<const uint64_t*>(mapping + number(d_n_vma_flags));
  found->file = *reinterpret_cast<const uint64_t*>(mapping + number(d_n_vma_file));
  return 0;
}

// Sets the walk's segment to the executable mapping at the address. (No function of its own: the
// stack of a chain of calls has 512 bytes.) Not where interrupts are off: there the kernel may not
// look at more than one mapping.
[[gnu::always_inline]] inline uint64_t d_user_mapping(MachineWindow* w, uint64_t address) {
  FoundMapping found{};
  if (helper<180>(current_task(), address, &d_callback_mapping, &found, uint64_t{0}) != 0) return 0;
  if ((found.flags & kExecutable) == 0) return 0;
  abi::MachineUnwindSegment& segment = walk_of(w).segment;
  segment.begin = found.start;
  segment.end = found.end;
  segment.row_count = 0;
  const abi::MachineUnwindFile* file = found.file == 0 ? nullptr : find_file(w, found.file);
  if (file == nullptr) return 1;
  segment.origin = found.start - found.page * kPageBytes + file->delta;
  segment.first_row = file->first_row;
  segment.row_count = file->row_count;
  return 1;
}

// One frame of the walk in the scratch room; whether there are more.
uint64_t d_user_frame(MachineWindow* w) {
  UserStackHost host(w);
  return abi::FrameVisitor<UserStackHost>(host, walk_of(w)).visit() ? 1 : 0;
}

}  // extern "C"

namespace {

// Puts up to `wanted` frames at the start of the scratch room; how many.
[[gnu::always_inline]] inline uint64_t put_frames(MachineWindow* w, uint64_t wanted) {
  const uint64_t limit = wanted < kFramesMax ? wanted : kFramesMax;
  const uint64_t code = user_registers()[kUserCs];
  if ((code & 3) == 0) return 0;  // A thread of the kernel.
  if (code != kUserCode64) return follow_frame_pointers(w, limit);
  const uint64_t pid = process_and_thread() >> 32;
  MachineUnwindProcess* process = find_process(w, pid);
  if (process == nullptr) {
    add_process(w, pid);
    return walk_frames(w, 0, 0, limit);
  }
  // When its entry is being changed, or is of another program, each mapping is asked for.
  const uint64_t version = abi::load_word(process->version);
  const bool is_valid = (version & 1) == 0 && process->program == program_inode();
  const uint64_t count = is_valid ? process->segment_count : 0;
  const uint64_t frames = walk_frames(w, process->first_segment, count, limit);
  if (walk_of(w).is_stale != 0) ask_again(w, process, pid);
  if (abi::load_word(process->version) == version) return frames;
  return walk_frames(w, 0, 0, limit);
}

}  // namespace

extern "C" {

uint64_t d_user_frames(MachineWindow* w, uint64_t wanted) {
  return put_frames(w, wanted);
}

// (By no call, as above.)
uint64_t d_user_stack(MachineWindow* w, uint64_t dst, uint64_t wanted) {
  *reinterpret_cast<uint64_t*>(at(w, dst)) = process_and_thread() >> 32;
  const uint64_t out = dst + 8;
  const uint64_t limit = wanted < kFramesMax ? wanted : kFramesMax;
  const uint64_t count = forgotten(w, put_frames(w, limit));
  const uint64_t taken = count < limit ? count : limit;
  copy_kernel(at(w, out), taken * 8, w->scratch);
  uint64_t round = zero(w);
  for (uint64_t i = zero(w) + taken; i <= limit && go_on(round, kFramesMax + 1); ++i) {
    *reinterpret_cast<uint64_t*>(at(w, out + 8 * i)) = 0;
  }
  return 0;
}

uint64_t d_user_stack_depth(MachineWindow* w) {
  return d_user_frames(w, kFramesMax);
}

uint64_t d_builtin_ucaller(MachineWindow* w) {
  return d_user_frames(w, 2) > 1 ? frame_at(w, 1) : 0;
}
uint64_t d_builtin_ustackdepth(MachineWindow* w) {
  return d_user_frames(w, kFramesMax);
}

}  // extern "C"

}  // namespace clew::runtime::kernel

// SPDX-License-Identifier: Apache-2.0
// What D accessors need of the kernel: BPF helpers by number, the session's maps, and the numbers
// that the linker puts in. Everything here is the linker's to resolve (src/kernel/link.h): a map's
// symbol becomes its address, a number's symbol the number.
#pragma once

#include <cstdint>

#include "abi/machine/loop.h"
#include "abi/machine/tables.h"
#include "abi/machine/window.h"
#if !defined(__bpf__)  // The D accessors of a process: the same names for its own machine.
#include "runtime/process/machine.h"
#endif

namespace clew::runtime::kernel {

using abi::go_on;
using abi::MachineFault;
using abi::MachineWindow;

#if defined(__bpf__)

// --- helpers (include/uapi/linux/bpf.h)
// -----------------------------------------------------------

template <uint64_t kNumber, typename... Arguments>
[[gnu::always_inline]] inline int64_t helper(Arguments... arguments) {
  using Function = int64_t (*)(Arguments...);
  return reinterpret_cast<Function>(kNumber)(arguments...);
}

[[gnu::always_inline]] inline uint64_t monotonic_ns() {
  return static_cast<uint64_t>(helper<5>());
}
[[gnu::always_inline]] inline uint64_t processor() {
  return static_cast<uint64_t>(helper<8>()) & 0xFFFF'FFFF;
}
[[gnu::always_inline]] inline uint64_t process_and_thread() {
  return static_cast<uint64_t>(helper<14>());
}
[[gnu::always_inline]] inline uint64_t group_and_user() {
  return static_cast<uint64_t>(helper<15>());
}
[[gnu::always_inline]] inline uint64_t random_word(MachineWindow*) {
  return static_cast<uint64_t>(helper<7>()) & 0xFFFF'FFFF;
}
// To the process.
[[gnu::always_inline]] inline uint64_t send_signal(uint64_t signal) {
  return static_cast<uint64_t>(helper<109>(static_cast<uint32_t>(signal)));
}
// A struct task_struct that the verifier knows: its fields can be loaded.
[[gnu::always_inline]] inline const uint8_t* current_task() {
  return reinterpret_cast<const uint8_t*>(helper<158>());
}
[[gnu::always_inline]] inline uint64_t current_task_address() {
  return static_cast<uint64_t>(helper<35>());
}
// The same for struct pt_regs.
[[gnu::always_inline]] inline const uint64_t* user_registers() {
  return reinterpret_cast<const uint64_t*>(helper<175>(current_task()));
}
[[gnu::always_inline]] inline uint64_t attach_cookie(const void* context) {
  return static_cast<uint64_t>(helper<174>(context));
}

// --- maps
// ------------------------------------------------------------------------------------------

extern "C" {
extern MachineWindow d_windows[];  // kMachineWindowsPerCpu for each CPU.
extern abi::MachineShared d_shared;
extern uint8_t d_globals[];
extern uint8_t d_dynamic[];     // abi/machine/dynamic.h
extern uint8_t d_aggregates[];  // abi/machine/tables.h
extern abi::MachineVariable d_variables[];
extern abi::MachineAggregationTable d_aggregations[];
extern abi::MachineEnabled d_enabled[];    // By index of the enabling.
extern uint8_t d_names[];                  // Texts of probes' names.
extern uint64_t d_system_calls[];          // By number: enabling + 1.
extern abi::MachineCodeRange d_skipped[];  // Functions of the kernel that stacks leave out.
extern const uint8_t d_zeros[];
extern uint8_t d_records;  // The ring: only its map is meant.
extern uint8_t
    d_entered;  // A hash of abi::MachineEntered by process and thread: only its map is meant.
}

// What is shared with processes, too.
[[gnu::always_inline]] inline abi::MachineShared& shared() {
  return d_shared;
}
[[gnu::always_inline]] inline uint8_t* globals() {
  return d_globals;
}
[[gnu::always_inline]] inline uint8_t* dynamic() {
  return d_dynamic;
}
[[gnu::always_inline]] inline uint8_t* aggregates() {
  return d_aggregates;
}
[[gnu::always_inline]] inline const abi::MachineVariable* variables() {
  return d_variables;
}
[[gnu::always_inline]] inline const abi::MachineAggregationTable* aggregations() {
  return d_aggregations;
}
[[gnu::always_inline]] inline const abi::MachineEnabled* enabled_probes() {
  return d_enabled;
}
[[gnu::always_inline]] inline const uint8_t* names() {
  return d_names;
}

// The kernel wakes the reader only when it had read all there was.
[[gnu::always_inline]] inline bool put_record(MachineWindow*, const void* record, uint64_t size) {
  return helper<130>(&d_records, record, size, uint64_t{0}) == 0;
}

// --- numbers
// ---------------------------------------------------------------------------------------

// The address of a symbol that the linker replaces by a number.
template <typename Symbol>
[[gnu::always_inline]] inline uint64_t number(const Symbol& symbol) {
  uint64_t value = reinterpret_cast<uint64_t>(&symbol);
  asm volatile("" : "+r"(value));
  return value;
}

extern "C" {
extern const char d_n_cpus;
extern const char d_n_only_cpu;  // One more than the processor that alone is traced; 0: all are.
extern const char d_n_string_bytes;
extern const char d_n_variables;
extern const char d_n_aggregations;
extern const char d_n_enabled;
extern const char d_n_names_bytes;
extern const char d_n_globals_bytes;
extern const char d_n_dynamic_buckets;
extern const char d_n_dynamic_entry_bytes;
extern const char d_n_dynamic_key_bytes;
extern const char d_n_aggregates_cpu_bytes;
extern const char d_n_speculations;
extern const char d_n_speculation_bytes;
extern const char d_n_target_pid;
extern const char d_n_may_write_user;
extern const char d_n_local_begin;
extern const char d_n_local_bytes;
extern const char d_n_error_enabling;
extern const char d_n_skipped;
extern const char d_n_wants_stack;
extern const char d_n_extension_fuel;  // Of a firing; 0 when no function of an extension is called.
extern const char d_n_wants_stack_arguments;
// Of one program.
extern const char d_n_run_when;
extern const char d_n_cookie;           // Where it is for one attachment, else 0.
extern const char d_n_knows_registers;  // Of a system call's context.
extern const char d_n_argument_count;
extern const char d_n_has_result;  // Of a function's return; what d_n_used_arguments has a bit for,
extern const char d_n_used_arguments;     // is read.
extern const char d_n_argument_map_low;   // Eight bytes of argument_map;
extern const char d_n_argument_map_high;  // the other two.
extern const char d_n_has_argument_map;
extern const char d_n_load_offset;
extern const char d_n_wants_arguments;
extern const char d_n_first_thread_only;
extern const char d_n_filters;  // How many; each has three numbers (arguments.h).
extern const char d_n_filter_0_what;
extern const char d_n_filter_0_mask;
extern const char d_n_filter_0_value;
extern const char d_n_filter_1_what;
extern const char d_n_filter_1_mask;
extern const char d_n_filter_1_value;
extern const char d_n_filter_2_what;
extern const char d_n_filter_2_mask;
extern const char d_n_filter_2_value;
extern const char d_n_filter_3_what;
extern const char d_n_filter_3_mask;
extern const char d_n_filter_3_value;
extern const char d_n_system_calls_begin;
extern const char d_n_lock_pid;  // Of a program that sees threads wait in a function:
extern const char d_n_lock_function;
// Offsets of fields of the kernel's structs.
extern const char d_n_task_tgid;
extern const char d_n_task_real_parent;
extern const char d_n_task_comm;
extern const char d_n_task_runtime;
extern const char d_n_task_fs;
extern const char d_n_task_mm;
extern const char d_n_fs_root;
extern const char d_n_fs_pwd;
extern const char d_n_path_mnt;
extern const char d_n_path_dentry;
extern const char d_n_dentry_parent;
extern const char d_n_dentry_name;
extern const char d_n_mount_mnt;
extern const char d_n_mount_parent;
extern const char d_n_mount_point;
extern const char d_n_mnt_root;
extern const char d_n_mm_arg_start;
extern const char d_n_mm_arg_end;
}

// The probe's cookie, which the kernel keeps for each attachment or the linker put in.
[[gnu::always_inline]] inline uint64_t cookie_at(const void* context) {
  const uint64_t own = number(d_n_cookie);
  return own != 0 ? own : attach_cookie(context);
}

// The `and`s are instructions that the compiler cannot argue away, since the verifier has to see
// them.
[[gnu::always_inline]] inline uint64_t masked(uint64_t value, uint64_t mask) {
  asm volatile("%0 &= %1" : "+r"(value) : "i"(mask));
  return value;
}

// 0, which the verifier does not know: loops must begin with such a value (abi/machine/loop.h).
// Where it walks through the rounds, one that only the compiler does not know.
[[gnu::always_inline]] inline uint64_t zero(const MachineWindow* w) {
#if defined(CLEW_COUNTED_LOOPS)
  // `w` is named, so that the compiler passes it to functions that need it for this alone.
  uint64_t value = 0;
  asm volatile("%0 = 0" : "=r"(value) : "r"(w));
  return value;
#else
  return w->header.reserved_null[0];
#endif
}

// The same value, of which the verifier forgets where it came from. The size of a copy has to be
// exact for it, which it then asks of all that the size was computed from: of a loop's counter,
// too, and then it would walk through each round.
[[gnu::always_inline]] inline uint64_t forgotten(MachineWindow* w, uint64_t value) {
  volatile uint64_t& place = w->header.forgotten;
  place = value;
  return place;
}

// value * count, where `count` is a number of the linker's: older verifiers keep the bounds of a
// product only when its second factor is known.
[[gnu::always_inline]] inline uint64_t times(uint64_t value, uint64_t count) {
  asm volatile("%0 *= %1" : "+r"(value) : "r"(count));
  return value;
}

// --- copies
// ----------------------------------------------------------------------------------------

// Up to kCopyBytesMax bytes from kernel or user memory. `size` is masked, for the verifier. 0, or
// negative when an address is bad: then `to` is zeroed.
[[gnu::always_inline]] inline int64_t copy_kernel(void* to, uint64_t size, const void* from) {
  return helper<113>(to, masked(size, 0x1FFF), from);
}
[[gnu::always_inline]] inline int64_t copy_user(void* to, uint64_t size, const void* from) {
  return helper<112>(to, masked(size, 0x1FFF), from);
}
// Texts: the length with the NUL, which is always there; negative when the address is bad.
[[gnu::always_inline]] inline int64_t copy_kernel_text(void* to, uint64_t size, const void* from) {
  return helper<115>(to, masked(size, 0x1FFF), from);
}
[[gnu::always_inline]] inline int64_t copy_user_text(void* to, uint64_t size, const void* from) {
  return helper<114>(to, masked(size, 0x1FFF), from);
}
// The same from memory of the session: windows and tables.
[[gnu::always_inline]] inline int64_t copy_own(void* to, uint64_t size, const void* from) {
  return copy_kernel(to, size, from);
}
[[gnu::always_inline]] inline int64_t copy_own_text(void* to, uint64_t size, const void* from) {
  return copy_kernel_text(to, size, from);
}
[[gnu::always_inline]] inline void zero_bytes(void* to, uint64_t size) {
  copy_kernel(to, size, d_zeros);
}
// To user memory, 1 to kCopyBytesMax bytes: older helpers want to be sure that there is one. 0, or
// negative when the address is bad.
[[gnu::always_inline]] inline int64_t write_user(uint64_t to, const void* from, uint64_t size) {
  return helper<36>(reinterpret_cast<const void*>(to), from, masked(size - 1, 0xFFF) + 1);
}

#endif

// --- the window
// ------------------------------------------------------------------------------------

inline constexpr uint64_t kCopyBytesMax = abi::kMachineCopyBytesMax;

// An offset of which the verifier knows nothing, since a function was given or gave it: a multiple
// of 8 below `limit`, else 0.
[[gnu::always_inline]] inline uint64_t bounded(uint64_t offset, uint64_t limit) {
  uint64_t aligned = masked(offset, 0x3FFF'FFF8);
  if (aligned >= limit) return 0;
  asm volatile("" : "+r"(aligned));  // What is computed from it comes after the comparison.
  return aligned;
}

// An index below `count`, which is a number of the linker's; 0 for one that is not.
[[gnu::always_inline]] inline uint64_t index_below(uint64_t index, uint64_t count) {
  uint64_t kept = masked(index, 0xFFFF);
  if (kept >= count) kept = 0;
  asm volatile("" : "+r"(kept));
  return kept;
}

[[gnu::always_inline]] inline uint8_t* at(MachineWindow* w, uint64_t offset) {
  return reinterpret_cast<uint8_t*>(w) + masked(offset, 0xFFFF);
}

[[gnu::always_inline]] inline uint64_t fail(MachineWindow* w, MachineFault fault, uint64_t value) {
  w->header.fault_value = value;
  w->header.fault = static_cast<uint64_t>(fault);
  return 0;
}

[[gnu::always_inline]] inline bool is_tagged(uint64_t address) {
  return (address & abi::kMachineWindowTagMask) == abi::kMachineWindowTag;
}

[[gnu::always_inline]] inline bool is_global_pointer(uint64_t address) {
  return (address & abi::kMachineWindowTagMask) == abi::kMachineGlobalTag;
}

// A part of the globals that D may touch; null when it is none.
[[gnu::always_inline]] inline uint8_t* global_at(uint64_t address, uint64_t size) {
  const uint64_t offset = address & ~abi::kMachineWindowTagMask;
  const uint64_t end = number(d_n_globals_bytes);
  if (size > kCopyBytesMax || offset >= end || end - offset < size) return nullptr;
  return globals() + offset;
}

// Parts of MachineWindowHeader::alloca_top, whose lower half is the next free byte of scratch:
// whether strtok() has a text to go on with, and how many pieces alloca() gave to this clause. It
// is set to scratch_begin before each clause. Where each piece begins, and its size, are in
// pieces().
inline constexpr uint64_t kHasToken = uint64_t{1} << 63;
inline constexpr uint64_t kPieceCountShift = 32;
inline constexpr uint64_t kPieceCountMask = 0xFF;
inline constexpr uint64_t kPiecesMax = 30;
inline constexpr uint64_t kPieceShift = 16;
inline constexpr uint64_t kPieceBytesMask = 0xFFFF;
[[gnu::always_inline]] inline uint32_t* pieces(MachineWindow* w) {
  static_assert(kPiecesMax * sizeof(uint32_t) <= sizeof(w->header.reserved));
  return reinterpret_cast<uint32_t*>(w->header.reserved);
}

[[gnu::always_inline]] inline const void* pointer(uint64_t address) {
  return reinterpret_cast<const void*>(address);
}

// Zeroes `size` <= kCopyBytesMax bytes of the window.
[[gnu::always_inline]] inline void clear(MachineWindow* w, uint64_t offset, uint64_t size) {
  zero_bytes(at(w, offset), size);
}

}  // namespace clew::runtime::kernel

// SPDX-License-Identifier: Apache-2.0
// Records into the ring, speculations, faults and the end of tracing.
#include "runtime/kernel/times.h"

namespace clew::runtime::kernel {
namespace {

using abi::MachineActivity;
using abi::MachineRecordHeader;
using abi::MachineRecordKind;

inline constexpr uint64_t kSpinRounds = 256;  // Of each of three loops.
inline constexpr uint64_t kFree = 0;
inline constexpr uint64_t kActive = 1;
inline constexpr uint64_t kCommitting = 2;
inline constexpr uint64_t kDiscarding = 3;

[[gnu::always_inline]] inline uint64_t lose() {
  const uint64_t cpu = processor();
  if (cpu < abi::kMachineCpusMax) abi::add_word(shared().losses.principal[cpu], 1);
  return 0;
}

[[gnu::always_inline]] inline void fill(MachineWindow* w, MachineRecordHeader& h,
                                        MachineRecordKind kind) {
  h.size_bytes = sizeof h;
  h.kind = kind;
  h.probe = w->header.probe;
  h.clause = w->header.clause;
  h.cpu = static_cast<uint32_t>(processor());
  h.speculation = 0;
  h.time_ns = timestamp(w);
}

[[gnu::always_inline]] inline abi::MachineSpeculation& speculation(uint64_t id) {
  return shared().speculations[masked(id - 1, abi::kMachineSpeculationsMax - 1)];
}

[[gnu::always_inline]] inline uint32_t key_of(uint64_t id) {
  return abi::machine_speculation_key(id, abi::load_word(speculation(id).generation));
}

// Whether the record of `size` bytes may go to the clause's speculation.
[[gnu::always_inline]] inline bool admit(MachineWindow* w, uint64_t size) {
  const auto key = static_cast<uint32_t>(w->header.speculation);
  const uint64_t id = abi::machine_speculation_id(key);
  abi::MachineSpeculation& s = speculation(id);
  if (abi::load_word(s.state) != kActive || key_of(id) != key) return false;
  const uint64_t held = abi::add_word(s.bytes, size);
  if (held + size <= number(d_n_speculation_bytes)) return true;
  abi::add_word(s.bytes, ~size + 1);
  abi::add_word(shared().losses.speculative, 1);
  return false;
}

// 1 when the id names a speculation; 0 when it is to be ignored, or a fault.
[[gnu::always_inline]] inline bool is_speculation(MachineWindow* w, uint64_t id) {
  if (id == 0) return false;
  if (id <= number(d_n_speculations)) return true;
  fail(w, MachineFault::IllegalOperation, id);
  return false;
}

// What the collector holds of it goes when it reads of that, or of the next use.
[[gnu::always_inline]] inline void release(uint64_t id) {
  abi::MachineSpeculation& s = speculation(id);
  abi::store_word(s.bytes, 0);
  abi::add_word(s.generation, 1);
  abi::store_word(s.state, kFree);
}

[[gnu::always_inline]] inline uint64_t end_speculation(MachineWindow* w, uint64_t id,
                                                       uint64_t state, MachineRecordKind kind) {
  if (!is_speculation(w, id)) return 0;
  if (!abi::swap_word(speculation(id).state, kActive, state)) return 0;
  MachineRecordHeader h;
  fill(w, h, kind);
  h.speculation = key_of(id);
  if (kind == MachineRecordKind::Discard) release(id);
  if (put_record(w, &h, sizeof h) || kind == MachineRecordKind::Discard) return 0;
  abi::swap_word(speculation(id).state, state, kActive);
  return lose();
}

}  // namespace

extern "C" {

uint64_t d_commit(MachineWindow* w, uint64_t size) {
  auto& h = *reinterpret_cast<MachineRecordHeader*>(at(w, abi::kMachineRecordOffset));
  const uint64_t key = w->header.speculation;
  if (key != 0 && !admit(w, size)) return 0;
  fill(w, h, MachineRecordKind::Data);
  h.size_bytes = static_cast<uint32_t>(size);
  h.speculation = static_cast<uint32_t>(key);
  if (size > abi::kMachineRecordBytesMax) return lose();
  const uint64_t bytes = masked(size, 0x7FFF);
  if (bytes > abi::kMachineRecordBytesMax) return 0;
  return put_record(w, &h, bytes) ? 0 : lose();
}

uint64_t d_speculation(MachineWindow* w) {
  const uint64_t count = number(d_n_speculations);
  bool is_busy = false;
  for (uint64_t id = zero(w) + 1; id <= count && go_on(); ++id) {
    const uint64_t state = abi::load_word(speculation(id).state);
    if (state == kFree && abi::swap_word(speculation(id).state, kFree, kActive)) return id;
    if (state == kCommitting || state == kDiscarding) is_busy = true;
  }
  if (is_busy) {
    abi::add_word(shared().losses.speculation_busy, 1);
  } else {
    abi::add_word(shared().losses.speculation_unavailable, 1);
  }
  return 0;
}

// Of what is no speculation the rest of the clause does not happen.
uint64_t d_speculate(MachineWindow* w, uint64_t id) {
  const bool is_known = id != 0 && id <= number(d_n_speculations);
  if (!is_known || abi::load_word(speculation(id).state) != kActive) {
    return fail(w, MachineFault::Dropped, id);
  }
  w->header.speculation = key_of(id);
  return 0;
}

uint64_t d_speculate_commit(MachineWindow* w, uint64_t id) {
  return end_speculation(w, id, kCommitting, MachineRecordKind::Commit);
}

uint64_t d_speculate_discard(MachineWindow* w, uint64_t id) {
  return end_speculation(w, id, kDiscarding, MachineRecordKind::Discard);
}

// The first exit() stops all other probes; its record follows the clause's own (d_after_clause).
uint64_t d_exit(MachineWindow* w, uint64_t code) {
  const uint64_t when = w->header.run_when;
  const uint64_t next = static_cast<uint64_t>(MachineActivity::Draining);
  const bool ends = static_cast<MachineActivity>(when) == MachineActivity::Stopped ||
                    abi::swap_word(shared().activity, when, next);
  if (!ends) return 0;
  shared().exit_code = code;
  abi::store_word(shared().exit_called, 1);
  w->header.exit_pending = 1;
  return 0;
}

// What a clause leaves to do: an exit() or a fault. Gives 1 when the ERROR clauses are to run.
uint64_t d_after_clause(MachineWindow* w) {
  if (w->header.exit_pending != 0) {
    w->header.exit_pending = 0;
    MachineRecordHeader h;
    fill(w, h, MachineRecordKind::Exit);
    (void)put_record(w, &h, sizeof h);  // It only wakes the reader, whom a full ring wakes, too.
  }
  const uint64_t fault = w->header.fault;
  w->header.fault = 0;
  if (fault == 0 || fault == static_cast<uint64_t>(MachineFault::Dropped)) return 0;
  if (w->header.in_error != 0) {
    abi::add_word(shared().losses.error_in_error, 1);
    return 0;
  }
  abi::MachineErrorRecord record;
  fill(w, record.header, MachineRecordKind::Error);
  record.header.size_bytes = sizeof record;
  record.fault = fault;
  record.value = w->header.fault_value;
  record.pc = w->header.fault_pc;
  if (!put_record(w, &record, sizeof record)) lose();
  for (uint32_t i = 0; i < 6; ++i)
    w->header.kept_arguments[i] = w->header.arguments[i];
  w->header.kept_probe = w->header.probe;
  w->header.kept_clause = w->header.clause;
  w->header.arguments[0] = 0;
  w->header.arguments[1] = w->header.probe;
  w->header.arguments[2] = w->header.clause;
  w->header.arguments[3] = record.pc;
  w->header.arguments[4] = fault;
  w->header.arguments[5] = record.value;
  w->header.probe = 3;  // ERROR
  w->header.in_error = 1;
  return 1;
}

uint64_t d_after_error(MachineWindow* w) {
  for (uint32_t i = 0; i < 6; ++i)
    w->header.arguments[i] = w->header.kept_arguments[i];
  w->header.probe = static_cast<uint32_t>(w->header.kept_probe);
  w->header.clause = static_cast<uint32_t>(w->header.kept_clause);
  w->header.in_error = 0;
  return 0;
}

uint64_t d_raise(MachineWindow*, uint64_t signal) {
  return send_signal(signal);
}

// Loops in loops, for verifiers that walk through the rounds of each. 0 while it is too early.
[[gnu::noinline]] uint64_t d_spin_shortly(MachineWindow* w, uint64_t until) {
  for (uint64_t i = zero(w); i < kSpinRounds && go_on(); ++i) {
    if (monotonic_ns() >= until) return 1;
  }
  return 0;
}

[[gnu::noinline]] uint64_t d_spin(MachineWindow* w, uint64_t until) {
  for (uint64_t i = zero(w); i < kSpinRounds && go_on(); ++i) {
    if (d_spin_shortly(w, until) != 0) return 1;
  }
  return 0;
}

// Spins; the kernel allows no program to wait. At most half a second.
uint64_t d_chill(MachineWindow* w, uint64_t nanoseconds) {
  constexpr uint64_t kLongest = 500'000'000;
  const uint64_t wanted = nanoseconds < kLongest ? nanoseconds : kLongest;
  const uint64_t until = monotonic_ns() + wanted;
  for (uint64_t i = zero(w); i < kSpinRounds && go_on(); ++i) {
    if (d_spin(w, until) != 0) break;
  }
  return 0;
}

}  // extern "C"

}  // namespace clew::runtime::kernel

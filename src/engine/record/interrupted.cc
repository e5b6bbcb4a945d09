// SPDX-License-Identifier: Apache-2.0
// Where a thread of a recorded process is: as a handler interrupts it, and in a snap.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include <sys/ptrace.h>
#include <x86intrin.h>

#include "engine/record/recorded_process.h"
#include "recorder/signal_records.h"
#include "target/process.h"

namespace clew::engine {

namespace {

constexpr std::array<uint8_t, 2> kReadTime = {0x0f, 0x31};  // rdtsc

bool reads_time(pid_t process, uint64_t address) {
  std::array<uint8_t, kReadTime.size()> bytes{};
  return target::read_memory(process, address, bytes) && bytes == kReadTime;
}

}  // namespace

// On the way from an original to its copy, behind the record of that, a thread is where that leads.
user_regs_struct RecordedProcess::in_copy(pid_t process, user_regs_struct registers) const {
  const Installed* const installed = installed_at(registers.rip);
  if (installed == nullptr || installed->has_copy_of(registers.rip)) return registers;
  std::array<uint8_t, recorder::kEnteringBytesMax> bytes{};
  if (!target::read_memory(process, registers.rip, bytes)) return registers;
  const auto entered = recorder::entered(bytes, registers.rip);
  if (entered && installed->has_copy_of(*entered)) registers.rip = *entered;
  return registers;
}

// A thread that stops in what we have put into the process.
const RecordedProcess::Installed* RecordedProcess::installed_at(uint64_t pc) const {
  const auto installed = std::find_if(
      installed_.begin(), installed_.end(),
      [pc](const Installed& one) { return pc - one.room.address < one.room.size_bytes; });
  return installed == installed_.end() ? nullptr : &*installed;
}

// The program's own reading of it is a signal, as ever.
bool RecordedProcess::gives_time(pid_t process, const WatchedThread& thread) const {
  user_regs_struct registers = thread.registers;
  const Installed* const installed = installed_at(registers.rip);
  if (installed == nullptr || !reads_time(process, registers.rip)) return false;
  const auto original = installed->module->copy().original_of(installed->in_shared(registers.rip));
  if (original && reads_time(process, installed->described.load_bias + *original)) return false;
  const uint64_t ticks = began_.ticks == 0 ? 0 : __rdtsc();
  registers.rax = ticks & UINT32_MAX;
  registers.rdx = ticks >> 32;
  registers.rip += kReadTime.size();
  return ptrace(PTRACE_SETREGS, thread.thread, nullptr, &registers) == 0;
}

std::optional<uint64_t> RecordedProcess::cursor_in(user_regs_struct registers) const {
  const uint64_t pc = registers.rip;
  for (const Installed& one : installed_) {
    registers.rip = one.in_shared(pc);
    if (const auto cursor = one.module->module().cursor_in(registers)) return cursor;
  }
  return std::nullopt;
}

bool RecordedProcess::is_in_recorded(uint64_t pc) const {
  return std::any_of(installed_.begin(), installed_.end(),
                     [pc](const Installed& one) { return one.runs_at(pc); });
}

uint64_t RecordedProcess::called_from(pid_t process, const user_regs_struct& registers,
                                      const Modules& modules) {
  const auto is_there = [this](uint64_t pc) { return is_in_recorded(pc); };
  return call_sites_.find(process, registers, modules, is_there).value_or(0);
}

// A new thread has the slot of who made it, until it comes to an entry: abi/slot.h.
bool RecordedProcess::owns(pid_t process, const user_regs_struct& registers, uint32_t slot) const {
  uint64_t cookie = 0;
  std::array<uint8_t, sizeof(cookie)> bytes{};
  if (!target::read_memory(process, places_of({}).cookie, bytes)) return false;
  std::memcpy(&cookie, bytes.data(), sizeof(cookie));
  return __atomic_load_n(&control_of(slot).owner, __ATOMIC_ACQUIRE) == registers.fs_base + cookie;
}

// In the probe of a guard a register has the cursor, which the handler would not know, and whose
// store would undo the handler's records. Up to that store it can begin anew: what it writes is
// behind the cursor in memory, and what it reads is still there.
user_regs_struct RecordedProcess::at_probe(pid_t process, const Installed& installed,
                                           user_regs_struct registers) {
  const uint64_t pc = registers.rip;
  const auto probe = installed.module->module().guard_probe(installed.described.load_bias);
  if (probe.empty() || installed.has_copy_of(pc)) return registers;
  const uint64_t last = probe.size() - recorder::Guards::kLastStoreBytes;
  const inline_::CopyRoom& room = installed.room;
  const uint64_t begin = pc - std::min(pc - room.address, last);
  const uint64_t end = std::min(room.address + room.size_bytes, pc + probe.size());
  std::vector<uint8_t> bytes(end - begin);
  if (!target::read_memory(process, begin, bytes)) return registers;
  const auto found = std::search(bytes.begin(), bytes.end(), probe.begin(), probe.end());
  const uint64_t start = begin + static_cast<uint64_t>(found - bytes.begin());
  if (found != bytes.end() && start < pc) registers.rip = start;
  return registers;
}

// A handler begins with the cursor in memory, which is older than what a register may have. Where
// the newest record is not written yet, there is nothing to say.
void RecordedProcess::caught(pid_t process, const WatchedThread& thread, int signal) {
  user_regs_struct registers = in_copy(process, thread.registers);
  if (const Installed* const installed = installed_at(registers.rip)) {
    const user_regs_struct anew = at_probe(process, *installed, registers);
    const bool is_set =
        anew.rip != registers.rip && ptrace(PTRACE_SETREGS, thread.thread, nullptr, &anew) == 0;
    if (is_set) registers = anew;
  }
  const auto slot = slot_at(registers.gs_base);
  if (!slot || !owns(process, registers, *slot)) return;
  const auto by_register = cursor_in(registers);
  uint64_t cursor = 0;
  std::memcpy(&cursor, cursor_place(*slot), sizeof(cursor));
  if (by_register) cursor = *by_register;
  // It has claimed the slot, and has not come to giving it a cursor, which the handler needs.
  if (!lobes_->has(*slot, cursor)) return set_cursor(*slot, lobes_->start_of(*slot));
  uint64_t place = registers.rip;
  if (!is_in_recorded(place)) {
    const uint64_t behind_call = called_from(process, registers, modules_);
    place = behind_call == 0 ? 0 : behind_call - 1;
  }
  const auto value = static_cast<uint16_t>(signal);
  const bool is_in_memory = is_in_recorded(registers.rip) && !by_register;
  const auto record =
      recorder::signal_record(is_in_memory ? value | abi::kCursorInMemory : value, place);
  set_cursor(*slot, lobes_->append(*slot, cursor, record));
}

}  // namespace clew::engine

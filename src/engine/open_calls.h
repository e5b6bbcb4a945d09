// SPDX-License-Identifier: Apache-2.0
// Which records of calls (collect/open_records.h) are of calls that are open now. A call that was
// left by longjmp, or ended with its thread, leaves its record behind; so a record counts when
//     its thread lives, and
//     its frame is not below the thread's stack pointer, where that is known: the thread waits, and
//     the word at its frame is the return address that was there at the entry; where the record
//     does not hold it, one that a call could have left there.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <sys/types.h>

#include "answer/open_call.h"
#include "collect/open_records.h"
#include "plan/lower.h"
#include "target/process.h"

namespace clew::engine {

// Processes of a tracee by abi::SlotControl::process: these lives, not who has their pids later.
using ProcessIds = std::map<uint64_t, target::Incarnation>;

// The life that the pid has now; nothing when it has none.
std::optional<target::Incarnation> incarnation_of(pid_t pid);
// The same of a process that has the file mapped, which its descriptor here knows. Pids of followed
// children are what the target wrote, and nobody else's memory is read for it.
std::optional<target::Incarnation> sharer_of(int file, pid_t pid);

class ReadMemory final : public answer::ProcessMemory {
 public:
  explicit ReadMemory(ProcessIds processes) : processes_(std::move(processes)) {}
  bool read(uint64_t process, uint64_t address, std::span<uint8_t> bytes) override;

 private:
  ProcessIds processes_;
};

class OpenRecordCheck {
 public:
  // Looks at the threads as they are now.
  explicit OpenRecordCheck(const ProcessIds& processes);
  [[nodiscard]] bool is_open(const collect::OpenRecord& record, const plan::RecordShape& shape);

 private:
  struct Process {
    pid_t pid = 0;
    // Stack pointers by thread id as the process knows it; nothing for one that runs.
    std::map<uint32_t, std::optional<uint64_t>> threads;
    std::vector<target::Mapping> mappings;
  };
  [[nodiscard]] static Process look_at(pid_t pid);
  [[nodiscard]] static bool follows_call(const Process& process, uint64_t address);

  std::map<uint64_t, Process> processes_;
};

}  // namespace clew::engine

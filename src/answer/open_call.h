// SPDX-License-Identifier: Apache-2.0
// A call that has not returned when the session ends: with `including open` it is an event, which
// the tracer computes itself (Intake::take_open), as no probe fires for it.
#pragma once

#include <cstdint>
#include <span>

namespace clew::answer {

// Memory of the processes of a tracee, as it is now. `process` is abi::SlotControl::process.
class ProcessMemory {
 public:
  ProcessMemory() = default;
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;
  virtual ~ProcessMemory() = default;
  // All of the bytes, or false.
  virtual bool read(uint64_t process, uint64_t address, std::span<uint8_t> bytes) = 0;
};

struct OpenCall {
  uint16_t source = 0;
  uint64_t names = 0;  // Index of its site's names: Names::function.
  uint64_t process = 0;
  uint32_t tid = 0;
  uint64_t end_ticks = 0;             // Now,
  uint64_t entry_ticks = 0;           // and then.
  uint64_t caller = 0;                // The return address.
  std::span<const uint64_t> payload;  // Of its record: plan::RecordShape says what it holds.
};

}  // namespace clew::answer

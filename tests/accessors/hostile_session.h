// SPDX-License-Identifier: Apache-2.0
// Test support: a D session in this process whose memory anybody may have written. What the tracer
// describes (MachineProcess, variables, aggregations, names) is right and read-only; what programs
// and other processes write is for the test to fill; each part ends before a page that nobody may
// touch. One at a time: the arena's low block has a fixed address, and gs is the thread's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "abi/machine/process.h"
#include "abi/machine/tables.h"
#include "guarded_memory.h"

namespace clew::accessors {

// What differs between sessions. Some shapes have long texts, long keys, many cells, one processor.
inline constexpr uint32_t kShapes = 8;

// The parts that others write.
enum class Part : uint8_t { Window, Region, Shared, Globals, Dynamic, Aggregates };
inline constexpr uint32_t kParts = 6;

inline constexpr uint32_t kAccessorCount =
    abi::kMachineProcessAccessorsEnd - abi::kMachineAccessorBase;

class HostileSession {
 public:
  explicit HostileSession(uint32_t shape);
  HostileSession(const HostileSession&) = delete;
  HostileSession& operator=(const HostileSession&) = delete;
  ~HostileSession();

  // For a copy of the D runtime, whose thunks then begin at this address.
  [[nodiscard]] const abi::MachinePlace& place() const { return place_; }
  void set_thunks(uint64_t address) { thunks_ = address; }
  // gs of the calling thread; the constructor does so for its own.
  void enter() const;

  [[nodiscard]] std::span<uint8_t> part(Part which) const;
  [[nodiscard]] abi::MachineWindow& window() const;
  [[nodiscard]] const abi::MachineProcess& process() const {
    return *process_.as<abi::MachineProcess>();
  }
  [[nodiscard]] std::span<const abi::MachineAggregationTable> aggregations() const;
  [[nodiscard]] std::span<const abi::MachineVariable> variables() const;
  // All parts are zero again.
  void clear() const;
  void allow_system_calls(bool allowed) const;
  // Code that walks of stacks met and nobody had told of.
  [[nodiscard]] uint64_t unknown_code() const;

  // Calls accessor `index` of kAccessorCount as a body does, r2 to r5 given. It must keep all
  // registers but rax.
  [[nodiscard]] uint64_t call(uint32_t index, const std::array<uint64_t, 4>& arguments) const;
  // Whether nothing was written in front of a part.
  [[nodiscard]] bool has_paint() const;

 private:
  void describe(uint32_t shape);
  void fill_arena() const;
  [[nodiscard]] std::array<const GuardedMemory*, 4> arrays() const;

  GuardedMemory low_;
  GuardedMemory process_;
  GuardedMemory slot_;
  GuardedMemory shared_;
  std::unique_ptr<GuardedMemory> globals_;
  std::unique_ptr<GuardedMemory> dynamic_;
  std::unique_ptr<GuardedMemory> aggregates_;
  std::vector<std::unique_ptr<GuardedMemory>> constants_;
  abi::MachinePlace place_{};
  uint64_t thunks_ = 0;
};

}  // namespace clew::accessors

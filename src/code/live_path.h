// SPDX-License-Identifier: Apache-2.0
// Test support: a random way through the blocks of a function, as code that runs in the sandbox.
// Calls on it do nothing, and where a branch would leave it, and at its end, a trap stands:
//
//     block:  mov rax, [rdi]       way:  mov rax, [rdi]
//             test rax, rax              test rax, rax
//             je other                   je trap 1
//             call f                     mov rbx, rax
//             mov rbx, rax               trap 0
//             ret
//
// It runs twice from the same random state, but for what is dead at its start by Liveness: that is
// scrambled. What the ABI says of a return or a call, and Liveness of other places, must be the
// same where it stops, and so must be all memory and vector registers.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "code/liveness.h"
#include "code/sandbox.h"

namespace clew::code {

class LivePath {
 public:
  LivePath(const ModuleCode& code, const Blocks& blocks, const Liveness& liveness,
           std::mt19937_64& random)
      : sandbox_(Sandbox::get()),
        code_(code),
        blocks_(blocks),
        liveness_(liveness),
        random_(random) {}

  // From the instruction at `start`. False when there is nothing to run.
  bool make(uint64_t start);
  // An empty string, or what differs.
  std::string run();
  // Of the last run: it came to a trap, and not to a fault.
  [[nodiscard]] bool came_to_trap() const { return came_to_trap_; }

 private:
  struct Stop {
    Live live;         // What must be the same there.
    size_t field = 0;  // Of the branch to it; 0: the end.
  };

  bool put_block(const Block& block, uint64_t& at);
  bool put_instruction(const Instruction& instruction);
  uint32_t put_last(const Block& block, const Instruction& last);
  uint32_t put_conditional(const Block& block, const Instruction& branch);
  void put_stops();
  [[nodiscard]] Live at_end(const Instruction& last) const;
  [[nodiscard]] Live along(const Edge& edge, const Instruction& last) const;
  [[nodiscard]] uint64_t base() const;
  int64_t data_middle();
  int64_t random_value();
  Registers random_registers();
  void aim(const Instruction& instruction, Registers& registers);
  Outcome run_from(const Registers& registers, const std::vector<uint8_t>& data);
  [[nodiscard]] Live live_at_stop(const Outcome& outcome) const;

  Sandbox& sandbox_;
  const ModuleCode& code_;
  const Blocks& blocks_;
  const Liveness& liveness_;
  std::mt19937_64& random_;
  uint64_t start_ = 0;
  std::vector<uint8_t> bytes_;
  std::vector<std::pair<uint64_t, Instruction>> instructions_;  // By where they are in bytes_.
  std::vector<Stop> stops_;
  uint64_t stops_begin_ = 0;
  bool came_to_trap_ = false;
};

}  // namespace clew::code

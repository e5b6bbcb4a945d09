// SPDX-License-Identifier: Apache-2.0
// Test support: a copy of a window must do what the original does. Runs both in the sandbox, from
// the same random registers, flags and memory, and compares all that they leave.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include <Zydis/Zydis.h>

#include "code/relocate.h"
#include "code/sandbox.h"

namespace clew::code {

struct Comparison {
  std::string problem;  // Empty, or what differs.
  int signal = 0;       // Of the original. SIGTRAP: it ran to a trap behind the window.
};

class Differ {
 public:
  explicit Differ(uint64_t seed);

  // Moves the window into the sandbox: same instructions, with targets inside the sandbox.
  void transplant(const Window& window);
  Comparison compare();
  [[nodiscard]] const Window& window() const { return window_; }

 private:
  [[nodiscard]] bool is_call_at(uint64_t address) const;
  void retarget(Displaced& displaced);
  void retarget_branch(Displaced& displaced, uint8_t* bytes);
  Registers random_registers();
  int64_t data_middle();
  int64_t random_general();
  void aim_operands(const Displaced& displaced, Registers& registers);
  void fill_random(std::array<uint8_t, kSandboxDataSize>& bytes);
  void fill_vectors(Registers& registers);
  void lay_out(const std::array<uint8_t, kSandboxDataSize>& data);
  [[nodiscard]] uint64_t original_address(uint64_t address, uint64_t destination,
                                          const Relocated& copy) const;

  Sandbox& sandbox_;
  std::mt19937_64 random_;
  ZydisDecoder decoder_{};
  Window window_;
};

// False where results depend on time, chance or the machine, or where an instruction changes what
// the sandbox itself needs.
bool is_repeatable(const Window& window);

// The window's bytes in hex.
std::string hex(const Window& window);

}  // namespace clew::code

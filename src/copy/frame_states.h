// SPDX-License-Identifier: Apache-2.0
// Call frame instructions (DWARF 5, section 6.4.2) as states by address, and back: instructions
// that lead from one state to another one. So they can be written for code whose instructions are
// longer, or in another order. What a state says is not looked at: rules stay the bytes that they
// were. Internal to copy/.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "target/frame_tables.h"

namespace clew::copy {

// The canonical frame address: a register and an offset, or an expression.
struct CfaRule {
  uint64_t column = 0;
  int64_t offset = 0;
  std::vector<uint8_t> expression;  // With its length in front; empty: there is none.
  bool operator==(const CfaRule&) const = default;
};

struct RegisterRule {
  uint64_t column = 0;
  std::vector<uint8_t> instruction;  // That sets it.
  bool operator==(const RegisterRule&) const = default;
};

struct FrameState {
  CfaRule cfa;
  std::vector<RegisterRule> rules;  // By column. Of other registers nothing was said.
  uint64_t arguments_size = 0;      // DW_CFA_GNU_args_size
  bool operator==(const FrameState&) const = default;
};

struct FrameRow {
  uint64_t address = 0;  // Up to the next one's.
  FrameState state;
};

// What the shared instructions say. Nothing when they are not understood.
std::optional<FrameState> initial_state(const target::FrameCommon& common);

// The rows of an entry, by address; the first is at its start. Nothing when an instruction is not
// understood.
std::optional<std::vector<FrameRow>> frame_rows(const target::FrameCommon& common,
                                                const FrameState& initial,
                                                const target::FrameEntry& entry);

// Instructions that move on by so many bytes. Code alignment is 1.
void append_advance(uint64_t bytes, std::vector<uint8_t>& to);
// Instructions that make one state the other. Both have what the same shared instructions set.
void append_change(const FrameState& from, const FrameState& state, std::vector<uint8_t>& to);

void append_uleb128(uint64_t value, std::vector<uint8_t>& to);

}  // namespace clew::copy

// SPDX-License-Identifier: Apache-2.0
// How an unwinder gets through copies: the module's .eh_frame and exception tables, written anew
// for the copies' addresses, with the .eh_frame_hdr that leads to them. Return addresses lie in
// copies, and what is known of the originals holds there:
//
//   - an instruction's copy, and what is inserted in front of it, has the row of the original;
//   - a call's copy lands where the original does, in the copy of it behind nothing that is
//   inserted
//     in front of that, or lets nothing pass as that does;
//   - types, personality routines and the places of actions are the module's own.
//
//   bytes:  exception tables, one for each entry that has one
//           .eh_frame: what entries share, each once, and entries; a 0
//           .eh_frame_hdr, with a table to search in
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "copy/insertions.h"
#include "copy/module_copy.h"
#include "target/frame_tables.h"

namespace clew::copy {

// Addresses are link-time addresses, as the copy's.
struct UnwindBytes {
  uint64_t address = 0;
  std::vector<uint8_t> bytes;
  uint32_t header = 0;            // Where .eh_frame_hdr is. There is none when `bytes` is empty.
  std::vector<uint32_t> outward;  // Fields of 4 bytes: distances to the module.

  // As the copy is moved, by the same distances: the bytes stay where they are from there. Errors:
  // Limit when the module is too far away.
  Expected<void> move_to(uint64_t load_bias, uint64_t shift);
};

struct UnwindInput {
  const target::FrameTables& tables;  // Of the module's file.
  const Insertions& insertions;
  const ModuleCopy& copy;  // As it was written with them.
  bool is_position_independent = true;
};

// For a place behind the copy. Errors: Refused when a copied function has an exception table that
// is not understood; Limit when something is out of reach.
Expected<UnwindBytes> write_unwind(const UnwindInput& input);

}  // namespace clew::copy

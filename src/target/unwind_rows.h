// SPDX-License-Identifier: Apache-2.0
// How to get from a frame to its caller's, for each instruction of a file: its call frame
// information (.eh_frame; DWARF 5, section 6.4) as rows by address, each with one of few rules. A
// row holds up to the next one. Only what a walk over pc, rsp, rbp and rbx needs is kept; forms
// that compilers and linkers do not use become Unsupported, and code that no entry covers None, but
// for the first instruction of a function that a symbol names.
//
// The file is foreign: what cannot be read is left out and named in `problems`.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace clew::target {

enum class UnwindKind : uint8_t {
  None,         // No information.
  End,          // The outermost frame: it has no caller.
  Unsupported,  // There is information, of a kind that is not understood.
  Base,         // CFA = base + offset; when `is_loaded`, the word there + second_offset.
  Plt,          // CFA = rsp + offset, and 8 more from byte `second_offset` of 16 on.
};

// Where the caller's value of a register is: as it is, nowhere, or at an offset.
enum class SavedAt : uint8_t { Same, Lost, Cfa, Sp, Fp };

struct SavedRegister {
  SavedAt at = SavedAt::Same;
  int32_t offset = 0;
  bool operator==(const SavedRegister&) const = default;
};

struct UnwindRule {
  UnwindKind kind = UnwindKind::None;
  uint8_t base = 0;  // DWARF's number of a register (psABI x86-64, figure 3.36).
  bool is_loaded = false;
  bool is_signal = false;  // The caller was interrupted there, it made no call.
  int32_t offset = 0;
  int32_t second_offset = 0;
  SavedRegister pc;
  SavedRegister fp;  // rbp
  SavedRegister bx;  // rbx
  bool operator==(const UnwindRule&) const = default;
};

struct UnwindRow {
  uint64_t address = 0;  // The file's own.
  uint32_t rule = 0;     // Index in UnwindRows::rules.
};

struct UnwindRows {
  std::vector<UnwindRow> rows;    // By address, each once; neighbours differ in their rules.
  std::vector<UnwindRule> rules;  // Each once; the first is None.
  std::vector<std::string> problems;
};

// Errors: NotFound, Io, Refused, as ModuleImage::read. A file without the information has no rows.
// Any thread; ends early, with some of the rows, once `is_over` is true.
Expected<UnwindRows> read_unwind_rows(const std::string& path,
                                      const std::atomic<bool>* is_over = nullptr);
// The same of an image in memory: the vDSO.
Expected<UnwindRows> read_unwind_rows(std::span<const uint8_t> image);

}  // namespace clew::target

// SPDX-License-Identifier: Apache-2.0
// Calls that never record: of imported functions which, as the C library has them, call nothing of
// the program's. A path goes on behind such a call, in the same record.
//
// A name is all that the file says. Whoever installs copies checks that each of these words leads
// into a C library that does not record, or tiles without it: a program may bring its own malloc.
// Not among the names: what may be cancelled (a clean-up handler runs then), prints (it has hooks),
// takes a function, returns twice or not at all, or destroys an exception.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "code/module_code.h"
#include "target/module_image.h"

namespace clew::recorder {

// Ascending, as the linker has them (without the version).
[[nodiscard]] std::span<const std::string_view> silent_names();

// The words that the loader fills with the addresses of such functions.
class SilentSlots {
 public:
  // None: every call may record.
  SilentSlots() = default;
  // Errors: Io, as ModuleImage::import_slots. Looks through the file's relocations once a name.
  static Expected<SilentSlots> of(const target::ModuleImage& image);

  // Does this call or jump lead to such a function, through its word or a stub of the PLT?
  [[nodiscard]] bool reaches(const code::ModuleCode& code, const code::Instruction& branch) const;
  [[nodiscard]] const std::vector<uint64_t>& slots() const { return slots_; }

 private:
  std::vector<uint64_t> slots_;  // Ascending.
};

}  // namespace clew::recorder
